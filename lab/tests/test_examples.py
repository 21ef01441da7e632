"""Every example that a reader can copy runs: README and scripts; the build runs the pages."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from experiments.__main__ import draw
from experiments.page_blocks import (
    BELOW,
    BLOCK,
    OTHERS,
    included,
    never_printed,
    numbers_without_command,
    run_page,
    strange_numbers,
    unknown,
)
from gvf.cli.command_line import EXAMPLE

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture(autouse=True)
def in_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_blocks_of_the_readme_run() -> None:
    """Those of the documentation run in its build, which checks them in the same way."""
    page = ROOT / "README.md"
    assert strange_numbers(page, run_page(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_without_programs_names_the_commands_of_its_numbers(page: Path) -> None:
    text = page.read_text("utf-8")
    if not BLOCK.search(text) and page.name != "changelog.md":
        assert numbers_without_command(text, included(page)) == OTHERS.get(page.name, [])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page_is_one_that_the_build_runs(page: Path) -> None:
    text = page.read_text("utf-8")
    if page.name != "minari.md":  # its blocks run in `make test-extras`
        assert len(BLOCK.findall(text)) == len(re.findall("^```py", text, re.MULTILINE))
    assert len(BELOW.findall(text)) == len(BLOCK.findall(text))


def test_a_number_that_nothing_makes_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    block = "# A\n\n```python\nprint(0.12345)\nhere = 1\n```\n\nIt is .123, and {} %.\n"
    page.write_text(block.format(12))
    ran = run_page(page)
    assert strange_numbers(page, ran) == []
    assert ran.names["here"] == 1
    assert ran.with_output == block.format(12).replace(
        "```\n\nIt", "```\n\n```text\n0.12345\n```\n\nIt"
    )
    page.write_text(block.format(47).replace(".123,", ".124,"))
    assert strange_numbers(page, run_page(page)) == [".124", ".124", "47"]


def test_blocks_draw_in_the_folder_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "own.md").write_text("```python\nopen('own.png', 'w').close()\n```\n")
    draw("own", tmp_path)
    assert [path.name for path in (tmp_path / "own").iterdir()] == ["own.png"]
    with pytest.raises(SystemExit, match="has no Python blocks"):
        draw("other", tmp_path)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_an_example_script_runs(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")


def test_the_example_in_the_help_runs() -> None:
    namespace: dict[str, object] = {}
    exec(EXAMPLE, namespace)
    assert len(namespace["slots"]) == 16  # pyright: ignore[reportArgumentType]


def test_an_error_names_its_line_in_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```\nshell\n```\n\n```python\nx = 1\ny = x / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as error:
        run_page(page)
    assert error.traceback[-1].lineno == 8
    assert str(error.traceback[-1].path) == str(page)


def test_numbers_that_the_text_repeats_are_those_printed() -> None:
    printed = "absolute 0.7386, relative 1.2346e-01"
    assert never_printed("It is above .7386, about .123, of 104/121 or .2.", printed) == []
    assert never_printed("It is above .7368, and .124.", printed) == [".7368", ".124"]


def test_a_measured_number_needs_a_command_a_file_or_a_program() -> None:
    page = "# A\nIt covers 86 %, 0.62 (0.33 to 0.91), 1,200 Hz, 4 ± 3, after 30 episodes.\n"
    assert numbers_without_command(page, "") == ["86", "0.33", "0.91", "1,200", "4", "3"]
    assert numbers_without_command(page, "| 0.864 | 0.331 | .912 | 1200 |") == ["4", "3"]
    for command in ("`python docs/x.py` tells.", "```\ngvf verify\n```"):
        assert numbers_without_command(page + command, "") == []
        assert len(numbers_without_command(page + "## B\n" + command, "")) == 6
    assert numbers_without_command(page + "```python\nmake = 1\n```\n", "") != []
    assert numbers_without_command("# A\nUse `gamma=0.999` ($.999$, [x](2107.054)).\n", "") == []


def test_numbers_that_no_program_knows_are_seen() -> None:
    assert unknown("9.62 of 259 runs, 1,000 or $0.9^n$", "259 runs; 1000; 9.84") == ["9.62", "0.9"]
