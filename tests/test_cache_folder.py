"""An edited kernel or constant changes the loop that reads it: the cache is named after code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPE = "tools/cache_folder.py"

SIZES = '''
"""Sizes."""

SIDE = 11  # cells
'''
KERNEL = '''
from numba import njit
from toy.sizes import SIDE

@njit(cache=True)
def kernel(x):
    """Return a number."""
    return x + SIDE  # the side
'''
LOOP = """
from numba import njit
from toy.kernel import kernel

@njit(cache=True)
def loop(steps):
    x = 0
    for _ in range(steps):
        x = kernel(x)
    return x
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A package whose loop, in one file, calls a kernel in another, with a constant of a third."""
    package = tmp_path / "toy"
    package.mkdir()
    for name, text in (("__init__", ""), ("sizes", SIZES), ("kernel", KERNEL), ("loop", LOOP)):
        (package / f"{name}.py").write_text(text)
    return package


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def named_folder(*packages: Path) -> Path:
    """The folder for this state of the packages, from the command in the Makefile."""
    command = [sys.executable, ROOT / RECIPE, packages[0].parent / "cache", *packages]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def run_loop(package: Path, folder: Path) -> int:
    """Three steps of the loop, in a process of its own."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", "from toy.loop import loop; print(loop(3))"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return int(done.stdout)


def test_an_edited_kernel_or_constant_changes_the_loop_in_another_file(toy: Path) -> None:
    assert run_loop(toy, named_folder(toy)) == 33
    edit(toy / "sizes.py", "11", "12")
    assert run_loop(toy, named_folder(toy)) == 36
    edit(toy / "kernel.py", "x + SIDE", "x + 7")
    assert run_loop(toy, named_folder(toy)) == 21


def test_in_a_fixed_folder_the_loop_goes_on_running_the_old_kernel(toy: Path) -> None:
    # Why the recipe is needed. Should this ever fail, Numba has learnt better: drop the recipe.
    folder = toy.parent / "fixed"
    assert run_loop(toy, folder) == 33
    edit(toy / "sizes.py", "11", "12")
    assert run_loop(toy, folder) == 33


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("sizes.py", "# cells", "# how many cells, on each side"),
        ("sizes.py", '"""Sizes."""', '"""The sizes of all things.\n\nIn cells.\n"""'),
        ("kernel.py", '"""Return a number."""', '"""Return the sum of a number and the side."""'),
        ("kernel.py", "x + SIDE  # the side", "(x\n        + SIDE)"),
    ],
    ids=["comment", "docstring", "docstring of a function", "layout"],
)
def test_an_edited_sentence_keeps_the_folder(toy: Path, file: str, old: str, new: str) -> None:
    before = named_folder(toy)
    edit(toy / file, old, new)
    assert named_folder(toy) == before


def test_data_keep_the_folder_and_names_of_modules_do_not(toy: Path) -> None:
    before = named_folder(toy)
    (toy / "evidence").mkdir()
    (toy / "evidence" / "numbers.csv").write_text("1\n")
    (toy / "__pycache__").mkdir()
    (toy / "__pycache__" / "kernel.pyc").touch()
    assert named_folder(toy) == before
    (toy / "kernel.py").rename(toy / "core.py")
    assert named_folder(toy) != before


def test_the_code_of_every_house_counts(toy: Path) -> None:
    other = toy.parent / "other"
    other.mkdir()
    (other / "kernel.py").write_text("SIDE = 1\n")
    before = named_folder(toy, other)
    assert before != named_folder(toy)
    edit(other / "kernel.py", "1", "2")
    assert named_folder(toy, other) != before


def test_an_edit_of_the_side_of_a_cell_gives_the_kernels_of_a_body_another_folder(
    tmp_path: Path,
) -> None:
    """A constant of our own that a kernel reads from another file."""
    room = ROOT / "lab" / "src" / "gvf_lab" / "domain"
    assert "SIDE" in (room / "body.py").read_text()
    package = tmp_path / "domain"
    package.mkdir()
    for name in ("body.py", "four_rooms.py"):
        (package / name).write_text((room / name).read_text())
    before = named_folder(package)
    edit(package / "four_rooms.py", "SIDE = len(WALLS)", "SIDE = len(WALLS) + 1")
    assert named_folder(package) != before


def test_make_uses_the_recipe() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert f"{RECIPE} .numba_cache src/gvf lab/src/gvf_lab" in makefile
