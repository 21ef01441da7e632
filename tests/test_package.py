"""What holds for the package as a whole: its names, its weight, its command."""

import ast
import inspect
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path

import pytest

import gvf

HEAVY = {"jinja2", "matplotlib", "pyarrow", "ray", "rich", "scipy", "torch"}
PUBLIC = [name for name in gvf.__all__ if not name.startswith("__")]


def run(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("modules", ["gvf", "gvf, gvf.paper, gvf.study, gvf.cli"])
def test_importing_gvf_brings_in_no_heavy_module(modules: str) -> None:
    # Numba asks for SciPy's version by itself, so only what `import gvf` adds counts. It brings in
    # much of SciPy where a kernel with an explicit signature is compiled, or loaded, at import:
    # that alone takes as long as all the rest.
    program = (
        f"import gymnasium, numba, numpy, sys; before = set(sys.modules); import {modules};"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    brought = set(run("-c", program).split())
    assert "gvf" in brought
    assert brought & HEAVY == set()


@pytest.mark.parametrize("start", [["-m", "gvf"], ["-c", "from gvf.cli import main; main()"]])
def test_the_command_tells_its_version(start: list[str]) -> None:
    assert run(*start, "--version") == f"gvf {gvf.__version__}\n"


def test_the_installed_command_is_the_one_tested_here() -> None:
    (command,) = metadata.entry_points(group="console_scripts", name="gvf")
    assert command.value == "gvf.cli:main"


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_the_command_alone_teaches_how_to_begin(arguments: list[str]) -> None:
    told = run("-m", "gvf", *arguments)
    assert "importance resampling" in told.lower()
    assert "gvf.RatioRing" in told


def test_an_unknown_argument_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gvf", "--colour"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--colour" in done.stderr


def test_public_names_are_sorted_and_unique() -> None:
    assert gvf.__all__ == sorted(set(gvf.__all__))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_a_docstring_with_an_example(name: str) -> None:
    assert ">>>" in (inspect.getdoc(getattr(gvf, name)) or "")


def test_imports_between_rooms_point_one_way_also_where_they_are_lazy() -> None:
    root = Path(gvf.__file__).parent
    known: dict[str, set[str]] = {}
    for file in root.rglob("*.py"):
        room = file.relative_to(root).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [part.name for part in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{part.name}" for part in node.names]
            others = {name.split(".")[1] for name in names if name.startswith("gvf.")}
            known.setdefault(room, set()).update(others - {room})
    del known["__init__"]  # it puts all of them together
    assert {"diagnosis", "spec"} <= known["learner"]  # they are seen
    TopologicalSorter(known).prepare()
