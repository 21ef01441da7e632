"""Every example that a reader can copy runs: README, documentation, scripts."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from gvf.cli import EXAMPLE

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def python_blocks(page: str) -> list[str]:
    """The Python blocks of a Markdown page, each moved down to its own line numbers."""
    return ["\n" * page.count("\n", 0, found.start(1)) + found[1] for found in BLOCK.finditer(page)]


@pytest.fixture(autouse=True)
def in_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_blocks_of_a_page_run_in_order(page: Path) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in python_blocks(page.read_text(encoding="utf-8")):
        exec(compile(block, page, "exec"), namespace)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_an_example_script_runs(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")


def test_the_example_in_the_help_runs() -> None:
    namespace: dict[str, object] = {}
    exec(EXAMPLE, namespace)
    assert len(namespace["slots"]) == 16  # pyright: ignore[reportArgumentType]


def test_the_readme_has_an_example() -> None:
    assert python_blocks((ROOT / "README.md").read_text(encoding="utf-8"))


def test_blocks_keep_their_line_numbers_and_other_languages_are_left_alone() -> None:
    page = "# Title\n\n```python\none\n```\n\n```\nshell\n```\n\n```python\ntwo\nthree\n```\n"
    assert python_blocks(page) == ["\n" * 3 + "one\n", "\n" * 11 + "two\nthree\n"]
