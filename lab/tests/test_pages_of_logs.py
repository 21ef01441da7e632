"""The page about judging says in words what its tables have."""

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"


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
