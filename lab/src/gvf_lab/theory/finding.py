"""The finding of an experiment: rows of predicted, measured and tolerance, a table, a picture.

A row holds if the measured number is where the theory predicts, within a tolerance. If nothing is
sampled, the tolerance is 1e-12 of the largest number compared; otherwise it is a multiple of the
simulation's standard error. A row that compares many numbers shows the worst. Each row names the
smallest error that it detects, and a test plants that error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gvf.common.arrays import Floats
from gvf.common.files import replaced

Relation = Literal["=", "!=", ">=", ">", "<"]

NUMBERS = ("predicted", "measured", "apart", "tolerance")
"""The names of a row's numbers, as tables show them."""

BLACK = "#000000"
"""The colour of the theory's predictions. Methods have theirs of :mod:`gvf.common.colours`."""
ROUNDING = 1e-12
"""The largest rounding error of a number that is not sampled, relative to its scale."""
STANDARD_ERRORS = 5.0
"""The largest error of a sampled number, in standard errors; it occurs 6 times in ten million."""


@dataclass(frozen=True)
class FindingRow:
    """A row of a finding: one claim under test.

    Attributes:
        claim: the comparison in words.
        predicted: the theory's number.
        measured: the library's number.
        tolerance: the largest difference allowed.
        basis: the source of the tolerance, in words.
        detects: the smallest planted error that makes the row fail.
        relation: the claimed relation of measured to predicted; "!=", ">" and "<" mean by more than
            the tolerance.

    Example:
        >>> from gvf_lab.theory import FindingRow
        >>> row = FindingRow("a mean", 0.5, 0.52, 0.03, "5 s.e.", "a mean wrong by 0.06")
        >>> row.holds, FindingRow("a mean", 0.5, 0.54, 0.03, "5 s.e.", "0.06").holds
        (True, False)
    """

    claim: str
    predicted: float
    measured: float
    tolerance: float
    basis: str
    detects: str
    relation: Relation = "="

    @property
    def holds(self) -> bool:
        """True if the claimed relation holds within the tolerance; False if a number is nan."""
        above = self.measured - self.predicted
        if self.relation == "=":
            return abs(above) <= self.tolerance
        if self.relation == "!=":
            return abs(above) > self.tolerance
        if self.relation == ">=":
            return above >= -self.tolerance
        return above > self.tolerance if self.relation == ">" else above < -self.tolerance

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The numbers as text, in the order of NUMBERS.

        Example:
            >>> from gvf_lab.theory import FindingRow
            >>> FindingRow("a mean", 0.5, 0.52, 0.03, "5 s.e.", "0.06").cells
            ('0.5', '0.52', '0.02', '0.03')
        """
        sign = "" if self.relation == "=" else f"{self.relation} "
        return (
            f"{sign}{self.predicted:.5g}",
            f"{self.measured:.5g}",
            f"{abs(self.measured - self.predicted):.2g}",
            f"{self.tolerance:.2g}",
        )

    @property
    def verdict(self) -> str:
        """The word for whether the row holds."""
        return "holds" if self.holds else "VIOLATED"

    @property
    def remark(self) -> str:
        """The source of the tolerance, and the error that the row detects."""
        return f"tolerance: {self.basis}; detects: {self.detects}"


@dataclass(frozen=True)
class Finding:
    """One formal result: the rows that test it, and a picture.

    Attributes:
        result: the name of the result, in the paper if it has it.
        title: the result in one line.
        rows: the tests.
        picture: the function that draws the rows' numbers into a matplotlib Figure.
    """

    result: str
    title: str
    rows: tuple[FindingRow, ...]
    picture: Callable[[Any], None]

    @property
    def slug(self) -> str:
        """The name of the picture's file, without the extension."""
        return self.result.lower().replace(" ", "-").replace(".", "-")

    @property
    def text(self) -> str:
        """The rows as lines of text, under the result's name and title."""
        lines = [f"{self.result}: {self.title}"]
        for row in self.rows:
            lines += [text_line(row.claim, row.cells, row.verdict), f"    {row.remark}"]
        return "\n".join(lines)

    def save_picture(self, folder: Path) -> Path:
        """Draw the picture into ``folder/<slug>.png``."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8.0, 3.4), layout="constrained")
        self.picture(figure)
        path = folder / f"{self.slug}.png"
        with replaced(path) as unfinished:
            figure.savefig(unfinished, format="png", dpi=120)
        return path


def text_line(claim: str, numbers: Sequence[str], verdict: str) -> str:
    """Return a line of the table for the shell; its heading is the line of NUMBERS."""
    predicted, measured, apart, tolerance = numbers
    line = f"  {claim:<62}{predicted:>12}{measured:>11}{apart:>9}{tolerance:>10}  {verdict}"
    return line.rstrip()


def markdown_table(findings: Iterable[Finding]) -> str:
    """Return all findings as one Markdown table."""
    lines = [
        "| claim | predicted | measured | apart | tolerance | verdict | detects |",
        "|---|---:|---:|---:|---:|---|---|",
    ]
    for finding in findings:
        lines.append(f"| **{finding.result}** | | | | | | |")
        for row in finding.rows:
            *numbers, tolerance = row.cells
            within = f"{tolerance} ({row.basis})"
            texts = (row.claim, *numbers, within, row.verdict, row.detects)
            lines.append(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in texts)} |")
    return "\n".join(lines) + "\n"


def exactly(
    claim: str, predicted: Any, measured: Any, detects: str, *, scale: Any = None
) -> FindingRow:
    """Make a row without sampling: the worst of many numbers, within 1e-12 of their scale.

    Args:
        claim: the comparison in words.
        predicted: numbers of any shape.
        measured: numbers of the same shape.
        detects: the smallest planted error that makes the row fail.
        scale: the size of the terms behind each number, if they cancel; by default the largest
            number predicted.

    Example:
        >>> from gvf_lab.theory.finding import exactly
        >>> exactly("thirds", [1 / 3, 2.0], [0.3333, 2.0], "1e-11").measured
        0.3333
    """
    predicted, measured = np.atleast_1d(predicted, measured)
    scale = np.abs(predicted).max() if scale is None else scale
    expected, observed, tolerance = _worst(predicted, measured, ROUNDING * np.abs(scale))
    return FindingRow(claim, expected, observed, tolerance, "exact", detects)


def sampled(
    claim: str,
    predicted: Any,
    measured: Any,
    standard_error: Any,
    detects: str,
    *,
    relation: Relation = "=",
) -> FindingRow:
    """Make a row about a simulation: the worst of many numbers, in standard errors.

    Example:
        >>> from gvf_lab.theory.finding import sampled
        >>> sampled("means", [0.0, 1.0], [0.01, 1.4], [0.1, 0.1], "0.6").holds
        True
    """
    expected, observed, error = _worst(predicted, measured, standard_error)
    basis = f"{STANDARD_ERRORS:g} s.e."
    return FindingRow(claim, expected, observed, STANDARD_ERRORS * error, basis, detects, relation)


def _worst(predicted: Any, measured: Any, unit: Any) -> tuple[float, float, float]:
    """Pick the pair that is farthest apart in its unit, or the first that is not a number."""
    arrays: tuple[Floats, ...] = np.broadcast_arrays(*np.atleast_1d(predicted, measured, unit))
    off = np.abs(arrays[1] - arrays[0]) / arrays[2]
    place = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
    expected, observed, scale = (float(values.ravel()[place]) for values in arrays)
    return expected, observed, scale


def draw_points(axis: Any, x: Any, y: Any, errors: Any, colour: str, label: str) -> None:
    """Draw points with bars of STANDARD_ERRORS standard errors."""
    bars = STANDARD_ERRORS * np.array(errors)
    axis.errorbar(x, y, bars, fmt="o", color=colour, capsize=4, label=label)


def label_axis(axis: Any, x: str, y: str, title: str, *, legend: str = "best") -> None:
    """Label an axis, place its legend, and hide the two spines that are not needed."""
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.set_title(title, fontsize="medium")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize="small", loc=legend)
