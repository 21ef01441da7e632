"""Files that all experiments write: numbers as CSV, and tables in Markdown.

Numbers get six digits. A statistic with an interval comes from bootstrap samples, of which the
first is the data themselves, so that both are of one computation.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gvf.common.arrays import Floats
from gvf.common.quantiles import tail_of

Interval = tuple[float, float, float]
"""A statistic and the ends of its 95 % interval."""


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV; the first row has the names of all columns."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)


def cell(value: Any) -> Any:
    """Return a number with six digits, and anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else value


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(rows: Iterable[Mapping[str, str]], name: str) -> Floats:
    """Return a column as numbers; an empty cell is nan."""
    return np.array([float(row[name] or "nan") for row in rows])


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; the first line has the headings.

    Example:
        >>> from experiments.tables import markdown
        >>> print(markdown([["task", "error"], ["chain", "0.1"]]), end="")
        | task | error |
        |---|---|
        | chain | 0.1 |
    """
    head, *rest = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, "|---" * len(lines[0]) + "|", *rest]) + "\n"


def write_table(path: Path, lines: Sequence[Sequence[str]]) -> None:
    """Write a table in Markdown."""
    path.write_text(markdown(lines), encoding="utf-8")


def interval(samples: Floats, runs: int, method: Any = "linear") -> Interval:
    """Return a statistic of so many runs with its interval, from its bootstrap samples [1 + B]."""
    tail = tail_of(runs)
    low, high = np.quantile(samples[1:], (tail, 1 - tail), method=method)
    return float(samples[0]), float(low), float(high)


def with_interval(value: float, low: float, high: float, digits: int = 3) -> str:
    """Return a number with its interval in words.

    Example:
        >>> from experiments.tables import with_interval
        >>> with_interval(0.5, 0.4, 0.62)
        '0.500 (0.400 to 0.620)'
    """
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
