"""A page's Python blocks: they run once, in the build of the documentation, which checks them.

The text of a page repeats numbers that its program has or prints, that a file has which the page
includes, or that a command makes which the same section names. :func:`run_page` runs the blocks,
and :func:`strange_numbers` finds numbers that come from nowhere.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
BELOW = re.compile(r"^```python\n.*?^```\n+(.*?)(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
"""The paragraphs below blocks."""
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


@dataclass(frozen=True)
class RunPage:
    """A page whose blocks have run.

    Attributes:
        text: the text of the page.
        names: the names that its blocks define.
        printed: what each block printed.
    """

    text: str
    names: dict[str, Any]
    printed: list[str]

    @property
    def known(self) -> str:
        """The blocks with all that they printed: numbers of the text may come from there."""
        return "".join([*BLOCK.findall(self.text), *self.printed])

    @property
    def with_output(self) -> str:
        """The text with the output of each block below it."""
        outputs = iter(self.printed)

        def shown(block: re.Match[str]) -> str:
            output = next(outputs)
            return block[0] + (f"\n```text\n{output}```\n" if output else "")

        return BLOCK.sub(shown, self.text)


def run_page(page: Path, folder: Path | None = None) -> RunPage:
    """Run a page's Python blocks in order, in a folder, by default one that is thrown away."""
    text, printed = page.read_text(encoding="utf-8"), []
    program = ModuleType("__main__")  # so that its functions are found by their names
    names = vars(program)
    with contextlib.ExitStack() as stack:
        stack.callback(sys.modules.__setitem__, "__main__", sys.modules["__main__"])
        sys.modules["__main__"] = program
        where = folder or stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(contextlib.chdir(where))
        for block in BLOCK.finditer(text):
            above = "\n" * text.count("\n", 0, block.start(1))  # for the numbers of lines
            with contextlib.redirect_stdout(io.StringIO()) as stdout:
                exec(compile(above + block[1], page, "exec"), names)
            printed.append(stdout.getvalue())
    return RunPage(text, names, printed)


def strange_numbers(page: Path, ran: RunPage) -> list[str]:
    """Return the numbers of a page that nothing beside them makes, unless they may stand."""
    strange = [
        number for below in BELOW.findall(ran.text) for number in never_printed(below, ran.known)
    ]
    known = OTHERS.get(page.name, [])
    measured = numbers_without_command(ran.text, ran.known + included(page))
    return strange + (measured if measured != known else [])


def included(page: Path) -> str:
    """Return the tables that a page includes, which commands have written."""
    names = INCLUDE.findall(page.read_text("utf-8"))
    return "\n".join((page.parent / name).read_text("utf-8") for name in names)


def numbers_without_command(text: str, known: str) -> list[str]:
    """Return the numbers of a page that look measured, with nothing beside them that makes them.

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


def never_printed(paragraph: str, printed: str) -> list[str]:
    """Return the precise numbers of a paragraph that no printed number rounds to."""
    known = [float(number) for number in NUMBER.findall(printed)]
    return [
        told
        for told in PRECISE.findall(paragraph)
        if float(told) not in {round(number, len(told.partition(".")[2])) for number in known}
    ]


NUMBER_OF_TEXT = re.compile(r"(?<![\w.^{])\d[\d,]*(?:\.\d+)?")


def unknown(text: str, known: str) -> list[str]:
    """Return the numbers of a text that are not among those known."""
    among = {number.replace(",", "") for number in NUMBER_OF_TEXT.findall(known)}
    numbers = NUMBER_OF_TEXT.findall(text)
    return [n for n in numbers if n.strip(",").replace(",", "") not in among]


def check_database(ran: RunPage) -> None:
    """Compare the sentences of the page about a database with what it computes."""
    text = FENCES.sub("", ran.text)
    assert unknown(text, ran.known) == []
    support = ran.names["support"]
    assert support.lost[0.1].value == 0.0  # "both actions are frequent in all states"
    assert support.mean_ratio.low <= 1.0 <= support.mean_ratio.high
    assert ran.names["log"].terminated.mean() > 0.5  # "the task ended most of the runs"
    point, low, high = ran.names["intervals"].predict([ran.names["upright"]])
    assert f"answer: {point[0]:.2f} ({low[0]:.2f} to {high[0]:.2f})" in ran.known


def check_clinic(ran: RunPage) -> None:
    """Compare the report of the page about a clinic with what it computes."""
    text = FENCES.sub("", ran.text)
    report = text[text.index("## What to report") :]
    assert unknown(report, "2 0.9") == []  # the age group, and the discount
    log = "log: 600 patients, of whom 63 came only once;\n    150 recovered, 387 others"
    assert log in ran.known
    verdict = "curves has the lowest error, and cannot be told from tiles, step size 0.1"
    assert str(ran.names["selection"].comparison.verdict) == verdict


FENCES = re.compile(r"^ *```.*?^ *```\n", re.DOTALL | re.MULTILINE)
"""Blocks of any language."""
CHECKS = {"database.md": check_database, "clinic.md": check_clinic}
"""Checks of what else a page says in words about what it computes."""
