"""The two distributions of this repository belong together, and say so in their files."""

import re
import tomllib
from pathlib import Path

import gvf

ROOT = Path(__file__).parents[1]
LIBRARY, LABORATORY = (
    tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for folder in (".", "lab")
)


def test_both_have_one_version() -> None:
    assert LABORATORY["version"] == gvf.__version__
    assert LABORATORY["dependencies"] == [f"gvf=={gvf.__version__}"]


def test_both_are_for_the_same_python() -> None:
    for field in ("requires-python", "classifiers", "license", "authors"):
        assert LABORATORY[field] == LIBRARY[field]


def test_both_have_their_types() -> None:
    for source in ("src/gvf", "lab/src/gvf_lab"):
        assert (ROOT / source / "py.typed").exists()


def test_the_library_needs_nothing_that_only_the_laboratory_uses() -> None:
    needed = {re.split(r"[\[<>= ]", name)[0] for name in LIBRARY["dependencies"]}
    text = "\n".join(path.read_text("utf-8") for path in (ROOT / "src" / "gvf").rglob("*.py"))
    imports = set(re.findall(r"^\s*(?:import|from) (\w+)", text, re.MULTILINE))
    assert needed <= imports


def test_numba_has_an_upper_bound() -> None:
    """We use its inside: tests/common/test_inside_of_numba.py."""
    (numba,) = (name for name in LIBRARY["dependencies"] if name.startswith("numba"))
    pinned = re.search(r"^numba==0\.(\d+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    assert numba == f"numba>=0.61,<0.{int(pinned[1]) + 1}"
