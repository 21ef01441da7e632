"""Pages about logs say in words what their programs compute."""

import contextlib
import csv
import io
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
FENCED = re.compile(r"^ *```.*?^ *```\n", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.^{])\d[\d,]*(?:\.\d+)?")


def run(page: str, folder: Path) -> tuple[dict[str, Any], str, str]:
    """The names that a page defines, its code with what it prints, and its text."""
    text = (DOCS / page).read_text(encoding="utf-8")
    code, names = "".join(BLOCK.findall(text)), {"__name__": "__main__"}
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    return names, code + printed.getvalue(), FENCED.sub("", text)


def unknown(text: str, known: str) -> list[str]:
    """The numbers of a text that are not among those known."""
    among = {number.replace(",", "") for number in NUMBER.findall(known)}
    return [n for n in NUMBER.findall(text) if n.strip(",").replace(",", "") not in among]


def test_the_page_about_a_database_tells_what_it_computes(tmp_path: Path) -> None:
    names, known, text = run("database.md", tmp_path)
    assert unknown(text, known) == []
    support = names["support"]
    assert support.lost[0.1].value == 0.0  # "both actions are frequent in all states"
    assert support.mean_ratio.low <= 1.0 <= support.mean_ratio.high
    assert names["log"].terminated.mean() > 0.5  # "the task ended most of the runs"
    point, low, high = names["intervals"].predict([names["upright"]])
    assert f"answer: {point[0]:.2f} ({low[0]:.2f} to {high[0]:.2f})" in known


def test_the_report_of_the_clinic_is_computed(tmp_path: Path) -> None:
    names, known, text = run("clinic.md", tmp_path)
    report = text[text.index("## What to report") :]
    assert unknown(report, "2 0.9") == []  # the age group, and the discount
    assert "log: 600 patients, of whom 63 came only once;\n    150 recovered, 387 others" in known
    verdict = "curves has the lowest error, and cannot be told from tiles, step size 0.1"
    assert str(names["selection"].comparison.verdict) == verdict


def test_the_page_about_judging_tells_what_its_tables_have() -> None:
    with (DOCS / "judge" / "logs.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    text = " ".join((DOCS / "judge.md").read_text("utf-8").split())

    def share(kind: str, most: float = 1.1, kept: Callable[[Any], bool] = lambda row: True) -> str:
        """The share of logs in which the error is at most so many times the lowest."""
        near = [float(row[f"{kind}_ratio"]) <= most for row in rows if kept(row)]
        return f"{100 * (sum(near) / len(near)):.0f} %"

    robust = partial(share, "doubly-robust")
    largest = sum(float(row["best"].split()[-1]) in (10.0, 10.0 / 8) for row in rows)
    cut = [row for row in rows if float(row["beyond"]) > 0.15]
    covered, pairs = (sum(int(row[name]) for row in rows) for name in ("covered", "pairs"))
    doubtful, sure = (robust(kept=lambda row, d=d: (row["doubts"] != "0") == d) for d in (1, 0))
    close, clear = (
        robust(kept=lambda row: float(row["chance"]) < 0.4),
        robust(kept=lambda row: float(row["chance"]) > 0.6),
    )
    weighted, returns = (
        share(kind, kept=lambda row: row["world"] == "rooms")
        for kind in ("ratio-td", "doubly-robust")
    )
    far = robust(kept=lambda row: float(row["beyond"]) > 0.15)
    for sentence in (
        f"nearly the best candidate in {share('td')}, and doubly robust returns did in {robust()}:",
        f"{robust(2.0)} of their selections have at most twice the lowest error",
        f"in {largest} of the logs the largest step size is best",
        f'"cannot tell", {doubtful} of the selections are good, elsewhere {sure}.',
        f"below 40 %, {close} of the selections are good; above 60 %, it is {clear}.",
        f"contain the true difference in {100 * covered / pairs:.0f} % of the cases",
        f"did as well as returns ({weighted} and {returns})",
        f"beyond the cuts, {far} of the selections are good ({len(cut)} logs)",
    ):
        assert sentence in text


def test_numbers_that_no_program_knows_are_seen() -> None:
    assert unknown("9.62 of 259 runs, 1,000 or $0.9^n$", "259 runs; 1000; 9.84") == ["9.62", "0.9"]
