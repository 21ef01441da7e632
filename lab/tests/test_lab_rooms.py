"""The rooms of the laboratory, and what it takes from the library."""

import ast
import re
from importlib import import_module

import pytest
from rooms import ROOT, graph, imports, modules, room_of, rooms, table

import gvf.cli

HOUSE = "gvf_lab"
TOOLS = set(
    re.findall(
        r"`(\w+)`",
        (ROOT / "CONTRIBUTING.md")
        .read_text("utf-8")
        .partition("have no meaning of their own\n")[2]
        .partition(")")[0],
    )
)
"""The modules of gvf.common that CONTRIBUTING.md allows."""


KERNELS = ("gvf.kernels", "gvf.neural.network_kernels")
"""The lists of what the laboratory may take beyond public names; the second needs PyTorch."""


def listed(module: str) -> list[str]:
    """The names in the list of a module, which may need PyTorch."""
    tree = ast.parse((ROOT / "src" / f"{module.replace('.', '/')}.py").read_text("utf-8"))
    (names,) = (node.value for node in tree.body if isinstance(node, ast.Assign))
    return ast.literal_eval(names)


def is_allowed(name: str) -> bool:
    """True for a public name, a kernel, or a tool without meaning of its own."""
    parts = name.split(".")
    home, _, attribute = name.rpartition(".")
    if home in KERNELS:
        return attribute in listed(home)
    if home == "gvf.cli":
        return attribute in gvf.cli.__all__
    if parts[1] == "common":
        return len(parts) > 2 and parts[2] in TOOLS
    if len(parts) == 2:
        return parts[1] in gvf.__all__
    if parts[1] not in gvf.__all__:
        return False
    public = getattr(import_module(f"gvf.{parts[1]}"), "__all__", None)
    return public is not None and parts[2] in public and len(parts) == 3


def test_the_table_has_every_room() -> None:
    assert set(table(HOUSE)) == rooms(HOUSE)


def test_imports_point_one_way() -> None:
    order = list(table(HOUSE))
    for room, allowed in table(HOUSE).items():
        assert allowed <= set(order[: order.index(room)]), f"{room} would import a room below it"


@pytest.mark.parametrize("room", sorted(rooms(HOUSE)))
def test_a_room_imports_what_the_table_says_and_no_more(room: str) -> None:
    assert graph(HOUSE)[room] == table(HOUSE)[room]


def test_the_laboratory_takes_public_names_kernels_and_tools_of_the_library() -> None:
    private = {
        name
        for _, path in modules(HOUSE)
        for name in imports(path)
        if room_of(name)[0] == "gvf" and name != "gvf" and not is_allowed(name)
    }
    assert not private


@pytest.mark.parametrize("module", KERNELS)
def test_the_laboratory_uses_every_kernel_that_is_listed(module: str) -> None:
    used = {name for _, path in modules(HOUSE) for name in imports(path)}
    assert {f"{module}.{name}" for name in listed(module)} <= used
    tree = ast.parse((ROOT / "src" / f"{module.replace('.', '/')}.py").read_text("utf-8"))
    assert {type(node) for node in tree.body[1:]} == {ast.ImportFrom, ast.Assign}, "a pure list"


def test_a_private_import_would_be_seen() -> None:
    pytest.importorskip("torch")
    assert {"arrays", "files"} < TOOLS
    assert is_allowed("gvf.corrections.IR")
    assert is_allowed("gvf.GVF")
    assert is_allowed("gvf.kernels.carried")
    assert is_allowed("gvf.neural.network_kernels.td_loss")
    assert is_allowed("gvf.common.files.replaced")
    for name in (
        "gvf.corrections.carried.carried",
        "gvf.kernels.BETWIXT",
        "gvf.neural.tensors.td_loss",
        "gvf.log.log.Log",
        "gvf.common.errors.x",
    ):
        assert not is_allowed(name), name
