"""Tables of the page about emphatic resampling, from the CSV files of its experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from experiments.tables import column, read_rows, with_interval, write_table

IR, OURS, ETD = "IR", "Emphatic IR", "Emphatic TD(0)"
LARGEST = 100.0
"""The error above which a run has diverged; errors are below 30 otherwise."""
Row = Mapping[str, str]


class Table(NamedTuple):
    """A table with a row for each case.

    Attributes:
        methods: the methods that have a column of errors.
        ratios: the methods that have a column of ratios.
        word: the words before a method in the heading of its ratio; if there are none, the heading
            has both methods.
        without: the end of the names of cases that are left out.
    """

    methods: Sequence[str]
    ratios: Sequence[str]
    word: str = ""
    without: str = "nothing"


TABLES = {
    "windows": Table((IR, OURS, "Emphatic BC-IR"), (OURS,)),
    "tables": Table((IR, OURS), (OURS,)),
    "early": Table((IR, OURS, f"{OURS}, k = 1", ETD, "with traces"), (OURS,)),
    "wrong-ratios": Table((IR, OURS, ETD), (IR, OURS, ETD), "growth of", ", 0%"),
    "far-rooms": Table((IR, OURS, ETD), (OURS,)),
    "random-worlds": Table((), ("emphatic point", OURS, "Emphatic IR(0.8)", ETD)),
    "networks": Table((IR, OURS, "IS"), (OURS,)),
    "least-squares": Table(
        (OURS, "Emphatic LSTD(0)", "Emphatic LSTD(λ)", "LSTD(λ)"),
        ("Emphatic LSTD(0)", "Emphatic LSTD(λ)"),
    ),
}
"""The tables by the name of their file."""


def write(folder: Path) -> None:
    """Write the tables of all CSV files that a folder has."""
    for name, table in TABLES.items():
        if (folder / f"{name}.csv").exists():
            rows = [
                row
                for row in read_rows(folder / f"{name}.csv")
                if not row["case"].endswith(table.without)
            ]
            write_table(folder / f"{name}.markdown", by_case(rows, table))
    for name, lines in (("horizon", of_horizon), ("effective", of_windows)):
        if (folder / f"{name}.csv").exists():
            rows = read_rows(folder / f"{name}.csv")
            write_table(folder / f"{name}.markdown", lines(rows))


def by_case(rows: Sequence[Row], table: Table) -> list[list[str]]:
    """Return the lines of a table, with a column for each method and ratio."""
    by = {(row["case"], row["method"]): row for row in rows}
    first = {
        method: next(row for row in rows if row["method"] == method) for method in table.ratios
    }
    over = [f"{table.word} {m}" if table.word else f"{m} / {first[m]['to']}" for m in table.ratios]
    lines = [["", *table.methods, *over]]
    for case in dict.fromkeys(row["case"] for row in rows):
        errors = [_error(by[case, method]) for method in table.methods]
        lines.append([case, *errors, *(_ratio(by[case, method]) for method in table.ratios)])
    return lines


def of_horizon(rows: Sequence[Row]) -> list[list[str]]:
    """Return the lines about continuations that tend to 1, with a row for each decay."""
    lines = [["continuation", "β", "fixed point", "Emphatic IR(β)", "Emphatic TD(0, β)"]]
    by = {(row["case"], row["method"]): row for row in rows}
    for case, name in by:
        if name.startswith("fixed point("):
            beta = name[len("fixed point(") : -1]
            ir = {"0": IR, "": OURS}.get(beta, f"Emphatic IR({beta})")
            etd = f"Emphatic TD(0, {beta})" if beta else ETD
            errors = [_error(by[case, method]) for method in (name, ir, etd)]
            lines.append([case, beta or "continuation", *errors])
    return lines


def of_windows(rows: Sequence[Row]) -> list[list[str]]:
    """Return the lines about how many transitions windows are worth."""
    lines = [["task", "n", "ρ", "ρF, β = 0.5", "ρF, β = 0.8", "ρF", "largest share of one, ρF"]]
    by = {(row["task"], row["beta"], int(row["window"])): row for row in rows}
    betas = ("ratio only", "0.5", "0.8", "continuation")
    for task in dict.fromkeys(row["task"] for row in rows):
        for n in (1000, 15_000):
            if (task, betas[0], n) in by:
                several = [by[task, beta, n] for beta in betas]
                shares = [f"{share:.2%}" for share in column(several, "share")]
                largest = column(several, "largest")[-1]
                lines.append([task, f"{n:,}", *shares, f"{largest:.2%}"])
    return lines


def _error(row: Row) -> str:
    error, stderr = column([row], "error")[0], column([row], "stderr")[0]
    return f"{error:.3f} ± {stderr:.3f}" if error < LARGEST else "a run diverges"


def _ratio(row: Row) -> str:
    ratio, low, high, error = (column([row], k)[0] for k in ("ratio", "low", "high", "error"))
    return with_interval(ratio, low, high) if error < LARGEST else ""
