"""What an experiment finds: rows of predicted, measured and tolerance.

A row holds when the measured number is where the theory says, within a tolerance that is either
1e-12 of the largest number compared (nothing was sampled), or a multiple of the simulation's
standard error. Where many numbers are compared, a row shows the worst of them. How small an error a
row would notice is part of it, and a test plants that error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gvf.common.arrays import Array

Relation = Literal["=", "!=", ">=", ">", "<"]

EXACT = 1e-12
"""How far rounding may take a number that is computed without sampling, relative to its scale."""
ERRORS = 5.0
"""How many standard errors a sampled number may be off: by chance 6 times in ten million."""


@dataclass(frozen=True)
class Row:
    """One claim, put to the test.

    Attributes:
        claim: what is compared.
        predicted: by the theory.
        measured: with the library.
        tolerance: how far they may be apart.
        basis: what the tolerance is made of.
        detects: the smallest planted error that makes the row fail.
        relation: of measured to predicted; "!=", ">" and "<" by more than the tolerance.

    Example:
        >>> from gvf.theory import Row
        >>> row = Row("a mean", 0.5, 0.52, 0.03, "5 s.e.", "a mean wrong by 0.06")
        >>> row.holds, Row("a mean", 0.5, 0.54, 0.03, "5 s.e.", "a mean wrong by 0.06").holds
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
        """Whether the measured number is where it should be; one that is not finite is not."""
        above = self.measured - self.predicted
        if self.relation == "=":
            return abs(above) <= self.tolerance
        if self.relation == "!=":
            return abs(above) > self.tolerance
        if self.relation == ">=":
            return above >= -self.tolerance
        return above > self.tolerance if self.relation == ">" else above < -self.tolerance


@dataclass(frozen=True)
class Finding:
    """One formal result: the rows that test it, and a picture.

    Attributes:
        result: its name in the paper.
        title: what it says, in a line.
        rows: the tests.
        picture: draws it into a matplotlib Figure.
    """

    result: str
    title: str
    rows: tuple[Row, ...]
    picture: Callable[[Any], None]

    @property
    def slug(self) -> str:
        """The name of its picture's file, without the extension."""
        return self.result.lower().replace(" ", "-").replace(".", "-")


def exactly(claim: str, predicted: Any, measured: Any, detects: str, *, scale: Any = None) -> Row:
    """A row without sampling: the worst of numbers of one shape, within 1e-12 of their scale.

    Args:
        claim: what is compared.
        predicted: numbers of any shape.
        measured: as many.
        detects: the smallest planted error that makes it fail.
        scale: of the numbers from which each was made, where they cancel; by default the largest
            number predicted.

    Example:
        >>> from gvf.theory.row import exactly
        >>> exactly("thirds", [1 / 3, 2.0], [0.3333, 2.0], "1e-11").measured
        0.3333
    """
    predicted, measured = np.atleast_1d(predicted, measured)
    scale = np.abs(predicted).max() if scale is None else scale
    arrays = np.broadcast_arrays(predicted, measured, EXACT * np.abs(scale))
    worst = _worst(np.abs(arrays[1] - arrays[0]) / arrays[2])
    one, other, tolerance = (_at(values, worst) for values in arrays)
    return Row(claim, one, other, tolerance, "exact", detects)


def sampled(
    claim: str,
    predicted: Any,
    measured: Any,
    standard_error: Any,
    detects: str,
    *,
    relation: Relation = "=",
) -> Row:
    """A row about a simulation: the worst of numbers of one shape, in standard errors.

    Example:
        >>> from gvf.theory.row import sampled
        >>> sampled("means", [0.0, 1.0], [0.01, 1.4], [0.1, 0.1], "0.6").holds
        True
    """
    arrays = np.broadcast_arrays(*np.atleast_1d(predicted, measured, standard_error))
    worst = _worst(np.abs(arrays[1] - arrays[0]) / arrays[2])
    one, other, error = (_at(values, worst) for values in arrays)
    return Row(claim, one, other, ERRORS * error, f"{ERRORS:g} s.e.", detects, relation)


def _worst(off: Array) -> int:
    """Where the largest is, or the first that is not a number."""
    return int(np.argmax(np.where(np.isnan(off), np.inf, off)))


def _at(values: Array, place: int) -> float:
    return float(values.ravel()[place])
