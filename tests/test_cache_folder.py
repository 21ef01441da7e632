"""An edited kernel changes the loop that calls it, because the cache is named after the source."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPE = "tools/cache_folder.py"

KERNEL = """
from numba import njit

@njit(cache=True)
def kernel(x):
    return x + {added}
"""
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
    """A package whose loop, in one file, calls a kernel in another."""
    package = tmp_path / "toy"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "loop.py").write_text(LOOP)
    write_kernel(package, added=1)
    return package


def write_kernel(package: Path, *, added: int) -> None:
    (package / "kernel.py").write_text(KERNEL.format(added=added))


def named_folder(package: Path) -> Path:
    """The folder for this state of the package, from the command in the Makefile."""
    command = [sys.executable, ROOT / RECIPE, package, package.parent / "cache"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def run_loop(package: Path, folder: Path) -> int:
    """Three steps of the loop, in a process of its own."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", "from toy.loop import loop; print(loop(3))"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return int(done.stdout)


def test_an_edited_kernel_changes_the_loop_that_calls_it(toy: Path) -> None:
    assert run_loop(toy, named_folder(toy)) == 3
    write_kernel(toy, added=7)
    assert run_loop(toy, named_folder(toy)) == 21


def test_in_a_fixed_folder_the_loop_goes_on_running_the_old_kernel(toy: Path) -> None:
    # Why the recipe is needed. Should this ever fail, Numba has learnt better: drop the recipe.
    folder = toy.parent / "fixed"
    assert run_loop(toy, folder) == 3
    write_kernel(toy, added=7)
    assert run_loop(toy, folder) == 3


def test_the_same_source_keeps_its_folder(toy: Path) -> None:
    before = named_folder(toy)
    (toy / "__pycache__").mkdir()
    (toy / "__pycache__" / "kernel.pyc").touch()
    assert named_folder(toy) == before
    (toy / "kernel.py").rename(toy / "core.py")
    assert named_folder(toy) != before


def test_make_uses_the_recipe() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert f"{RECIPE} src/gvf .numba_cache)" in makefile
