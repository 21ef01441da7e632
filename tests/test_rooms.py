"""The rooms of the package: which may import which, as the table in CONTRIBUTING.md says."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "gvf"
ROOMS = {
    path.stem
    for path in SOURCE.iterdir()
    if path.suffix == ".py" or (path / "__init__.py").exists()
} - {"__init__", "__main__"}


def table() -> dict[str, set[str]]:
    """The rooms in the order of the table, each with those that it may import."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    lines = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", text, re.MULTILINE)
    return {room: set(re.findall(r"`(\w+)`", allowed)) for room, allowed in lines}


def imported(tree: ast.AST) -> Iterator[str]:
    """The rooms that a module imports: on top, in a function, for types only, or by a string.

    ``gvf`` stands for the package itself, which imports all rooms.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = re.fullmatch(r"gvf\.(\w+)[\w.:]*", node.value)
            names = [node.value] if words and words[1] in ROOMS else []
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            room = re.split(r"[.:]", rest)[0]
            if package == "gvf":
                yield room if room in ROOMS else "gvf"


def modules() -> Iterator[tuple[str, Path]]:
    """Every module below a room, with the room's name."""
    for path in sorted(SOURCE.rglob("*.py")):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room in ROOMS:
            yield room, path


@cache
def graph() -> dict[str, set[str]]:
    """The rooms that each room imports, itself left out."""
    edges: dict[str, set[str]] = {room: set() for room in ROOMS}
    for room, path in modules():
        edges[room] |= {*imported(ast.parse(path.read_text("utf-8")))} - {room}
    return edges


def test_the_table_has_every_room() -> None:
    assert set(table()) == ROOMS


def test_imports_point_one_way() -> None:
    order = list(table())
    for room, allowed in table().items():
        assert allowed <= set(order[: order.index(room)]), f"{room} would import a room below it"


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_imports_what_the_table_says_and_no_more(room: str) -> None:
    assert graph()[room] == table()[room]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import gvf.study.store", "study"),
        ("from gvf import study", "study"),
        ("from gvf.study import Study", "study"),
        ("def f():\n    from gvf.study.store import Store", "study"),
        ("if TYPE_CHECKING:\n    import gvf.study as s", "study"),
        ("import_module('gvf.study.store')", "study"),
        ("entry = 'gvf.study:Study'", "study"),
        ("import gvf", "gvf"),
        ("from gvf import Learner", "gvf"),
    ],
)
def test_an_import_is_seen_wherever_it_stands(source: str, expected: str) -> None:
    assert list(imported(ast.parse(source))) == [expected]
