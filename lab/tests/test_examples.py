"""Every example that a reader can copy runs: README, documentation, scripts."""

import contextlib
import io
import re
import runpy
import sys
from pathlib import Path

import pytest

from gvf.cli.command_line import EXAMPLE

ROOT = Path(__file__).parents[2]
NO_PROGRAM = {"changelog.md", "install.md", "minari.md"}
"""Pages without Python for everyone: a file, commands of a shell, and one that needs Minari.

The last one runs in `make test-extras`."""
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in NO_PROGRAM),
]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"^```python\n(.*?)^```\n+(.*?)(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
PRECISE = re.compile(r"(?<![\w.])\d*\.\d{3,}(?![\w.]*\w)")
NUMBER = re.compile(r"\d*\.?\d+(?:e[+-]?\d+)?")


FENCED = re.compile(r"^```(\S*).*?^```", re.DOTALL | re.MULTILINE)
INCLUDE = re.compile(r"^```\{include\} (\S+)", re.MULTILINE)
COMMAND = re.compile(r"^(?:python|gvf|make) |`(?:python|gvf|make) [^`]+`", re.MULTILINE)
QUIET = re.compile(
    r"`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$|\[\d+\.\d+\]\([^)]*\)|\]\([^)]*\)|95 %\s+interval",
    re.DOTALL,
)
"""Prose that is no measurement: code, formulas, links, numbers of papers, a level."""
UNIT = r" ?± ?\d| ?%| (?:Hz|ms|us|seconds?|minutes?|hours?|times|MB)\b"
MEASURED = re.compile(
    rf"(?<![\w.^/-])\d[\d,]*(?:\.\d+)?(?={UNIT}| to -?[\d.]+\))"  # 1,200 in "1,200 Hz"
    r"|(?<=\d to )[\d.]*\d(?=\))|(?<=± )\d*\.?\d+"  # .9 in "(.3 to .9)"
    r"|(?<![\w.])\d*\.\d{3,}(?![\w.]*\w)"  # .123
)
"""Numbers that look like measurements: with an error, a unit or an interval, or precise."""


OTHERS: dict[str, list[str]] = {
    "disagreements.md": [".087"],  # a root of a published variance
    "emphatic.md": [".0003"],  # a setting
    "horde.md": ["188"],  # seconds of runs of examples/humanoid, which the page names above
}
"""The numbers that look measured and have no command beside them, and why each may stand."""


def included(page: Path) -> str:
    """The tables that a page includes, which commands have written."""
    names = INCLUDE.findall(page.read_text("utf-8"))
    return "\n".join((page.parent / name).read_text("utf-8") for name in names)


def numbers_without_command(text: str, known: str) -> list[str]:
    """The numbers of a page that look measured, with nothing beside them that makes them.

    What makes a number is a command that the same section names, a file that the page includes, or
    a program of the page, which prints it.
    """
    numbers = {float(number) for number in NUMBER.findall(known.replace(",", ""))}
    strange: list[str] = []

    def shell(block: re.Match[str]) -> str:
        return "`make it`" if not block[1] and COMMAND.search(block[0]) else ""

    for section in re.split(r"^(?=#+ )", FENCED.sub(shell, text), flags=re.MULTILINE):
        if COMMAND.search(section):
            continue
        for told in MEASURED.findall(QUIET.sub("", section)):
            digits = len(told.partition(".")[2])
            value = float(told.replace(",", ""))
            rounded = {round(n * scale, digits) for n in numbers for scale in (1, 100)}
            if value not in rounded:
                strange.append(told)
    return strange


def python_blocks(page: str) -> list[tuple[str, str]]:
    """The Python blocks of a Markdown page, at their own line numbers, and the paragraphs below."""
    return [
        ("\n" * page.count("\n", 0, found.start(1)) + found[1], found[2])
        for found in BLOCK.finditer(page)
    ]


def never_printed(paragraph: str, printed: str) -> list[str]:
    """The numbers of three decimals or more in a paragraph that no printed number rounds to."""
    known = [float(number) for number in NUMBER.findall(printed)]
    return [
        told
        for told in PRECISE.findall(paragraph)
        if float(told) not in {round(number, len(told.partition(".")[2])) for number in known}
    ]


@pytest.fixture(autouse=True)
def in_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_blocks_of_a_page_run_in_order(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = python_blocks(text)
    assert len(blocks) == len(re.findall("^```py", text, re.MULTILINE)) > 0
    namespace: dict[str, object] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for block, _ in blocks:
            exec(compile(block, page, "exec"), namespace)
    # The text below a block repeats numbers of the program and of what it prints.
    known = "".join(block for block, _ in blocks) + printed.getvalue()
    assert [strange for _, below in blocks for strange in never_printed(below, known)] == []
    assert numbers_without_command(text, known + included(page)) == OTHERS.get(page.name, [])


@pytest.mark.parametrize("page", sorted(NO_PROGRAM - {"changelog.md"}))
def test_a_page_without_programs_names_the_commands_of_its_numbers(page: str) -> None:
    path = ROOT / "docs" / page
    assert numbers_without_command(path.read_text("utf-8"), included(path)) == OTHERS.get(page, [])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_an_example_script_runs(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")


def test_the_example_in_the_help_runs() -> None:
    namespace: dict[str, object] = {}
    exec(EXAMPLE, namespace)
    assert len(namespace["slots"]) == 16  # pyright: ignore[reportArgumentType]


def test_blocks_keep_their_line_numbers_and_other_languages_are_left_alone() -> None:
    page = "# Title\n\n```python\none\n```\n\n```\nshell\n```\n\n```python\ntwo\nthree\n```\nSo.\n"
    assert python_blocks(page) == [
        ("\n" * 3 + "one\n", "```\nshell\n```"),
        ("\n" * 11 + "two\nthree\n", "So.\n"),
    ]


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
