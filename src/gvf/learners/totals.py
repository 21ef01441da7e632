"""Totals: what a learner's report says of all transitions so far, however it learned from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gvf.common.arrays import Floats
from gvf.features import outside_bounds
from gvf.learners.learner_report import Range
from gvf.rows import Origin, QuestionRows

_HIGHEST, _CONTINUATION, _UNKNOWN, _MISSING, _ESTIMATED, _LOWEST, _OUTSIDE, _UNCOUNTED = range(8)
"""Positions in ``Totals.numbers``: the largest cumulant (at least 0), the largest continuation,
the last step with an unknown ratio, the number of transitions skipped because of a NaN, 1 if a
ratio was estimated, the smallest cumulant (at most 0), the number of states outside the bounds of
the features, and the number of the first states that were not looked at for this."""


class Totals:
    """The range of signals, and counts of what is missing, unknown, estimated or out of bounds.

    Example:
        >>> import gvf
        >>> from gvf.learners.totals import Totals
        >>> from gvf.rows import RowMaker
        >>> batch = gvf.Transitions(state=[[0.5], [2.0]], action=[0, 0], reward=[-1.0, 3.0])
        >>> maker = RowMaker(gvf.GVF(gvf.policies.Uniform(2), continuation=0.5))
        >>> totals, tiles = Totals(), gvf.features.TileCoder([0.0], [1.0])
        >>> totals.add(maker.many(batch, gvf.policies.Uniform(2)), tiles)
        >>> totals.range(passed_on=100).returns, totals.fields(tiles, 2)["outside_bounds"]
        ((-2.0, 6.0), 0.5)
    """

    def __init__(self) -> None:
        self.numbers = np.zeros(8)

    def add(self, rows: QuestionRows, features: object) -> None:
        """Add rows, of at least one transition.

        Args:
            rows: the rows.
            features: the features, whose bounds states may leave; None if there are none.
        """
        numbers, (_, cumulant, continuation, _, origin) = self.numbers, rows
        if len(cumulant) == 1:  # reductions would take longer than the update
            low = high = cumulant[0]
            longest = continuation[0]
        else:
            low, high, longest = cumulant.min(), cumulant.max(), continuation.max()
        if low < numbers[_LOWEST]:
            numbers[_LOWEST] = low
        if high > numbers[_HIGHEST]:
            numbers[_HIGHEST] = high
        if longest > numbers[_CONTINUATION]:
            numbers[_CONTINUATION] = longest
        if origin.is_known and origin.has_estimates:
            numbers[_ESTIMATED] = 1.0
        if outside := outside_bounds(features, origin.transitions.columns["state"]):
            numbers[_OUTSIDE] += outside

    def add_left_out(self, origin: Origin) -> None:
        """Count the transitions that are left out."""
        self.numbers[_MISSING] += origin.left_out_count

    @property
    def last_unknown(self) -> int:
        """The last step with an unknown ratio; 0 if all are known."""
        return int(self.numbers[_UNKNOWN])

    @last_unknown.setter
    def last_unknown(self, step: int) -> None:
        self.numbers[_UNKNOWN] = step

    def range(self, passed_on: int) -> Range:
        """Return the signals, from which the range of returns follows."""
        low, high, continuation = self.numbers[[_LOWEST, _HIGHEST, _CONTINUATION]].tolist()
        return Range(low, high, continuation, passed_on)

    def fields(self, features: object, steps: int) -> dict[str, Any]:
        """Return the fields of a report."""
        outside, uncounted = self.numbers[[_OUTSIDE, _UNCOUNTED]].tolist()
        counted = steps - uncounted
        has_bounds = hasattr(features, "outside")
        return {
            "missing": int(self.numbers[_MISSING]),
            "estimated": bool(self.numbers[_ESTIMATED]),
            "outside_bounds": outside / counted if has_bounds and counted else None,
        }

    def state_dict(self) -> Floats:
        """Return a copy of the numbers."""
        return self.numbers.copy()

    def load_state_dict(self, numbers: Floats) -> None:
        """Take over the numbers of another."""
        self.numbers[:] = numbers
