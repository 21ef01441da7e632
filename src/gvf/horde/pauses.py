"""Questions that pause: a sensor that fails, or weights that diverge.

A cumulant or continuation that is not a finite number says nothing about its transition. Its
questions pause as long as the window has such a transition, and go on with the weights that they
had. :class:`SignalHistory` finds them, wherever transitions are evaluated. A question has diverged
if a prediction is far above the largest return that is possible; it does not go on.
:class:`Pauses` remembers it, wherever the weights are.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from gvf.common.arrays import Bools, Floats
from gvf.common.divergence import DIVERGED
from gvf.horde.layout import Ints, Layout

LOOK_EVERY = 1024
"""The number of steps between two searches for questions that have diverged."""
LOOKED_AT = 32
"""The number of recent transitions whose predictions are looked at."""
_NONE = np.zeros(0, np.int64)


class SignalHistory(NamedTuple):
    """The distinct signals of a layout in the past: first cumulants, then continuations."""

    last: Ints
    """The latest step at which each was not finite, int64[C + 1 + Z]."""
    largest: Floats
    """The largest absolute value of each, float64[C + 1 + Z]."""

    @classmethod
    def new(cls, layout: Layout, capacity: int) -> Self:
        """Return the history before the first transition, for a window of so many rows."""
        signals = len(layout.signal_columns)
        return cls(np.full(signals, -capacity), np.zeros(signals))

    def after(
        self, steps: int, capacity: int, cumulant: Floats, continuation: Floats
    ) -> tuple[SignalHistory, list[tuple[int, Ints]]]:
        """Replace numbers that are not finite by 0, and find which signals are missing.

        Args:
            steps: the number of transitions observed before.
            capacity: the number of transitions in the window, n.
            cumulant: the cumulants of m transitions, [m, C].
            continuation: the continuations, [m, 1 + Z].

        Returns:
            The history after these transitions, and pairs of a row, 0 the first, and the signals
            that are missing from there on.
        """
        values = np.concatenate([cumulant, continuation], axis=1)
        finite, recent = np.isfinite(values), self.last > steps - capacity
        if finite.all():
            largest = np.maximum(self.largest, np.abs(values).max(axis=0))
            if not recent.any():
                return SignalHistory(self.last, largest), [(0, _NONE)]
        bad = ~finite
        for part in (cumulant, continuation):
            part[~np.isfinite(part)] = 0.0
        values[bad] = 0.0
        largest = np.maximum(self.largest, np.abs(values).max(axis=0))
        missing = np.flatnonzero(bad.any(axis=0) | recent)
        at = steps + 1 + np.arange(len(values))[:, None]
        latest = np.where(bad[:, missing], at, self.last[missing])
        latest = np.maximum.accumulate(latest, axis=0)
        pauses, last = latest > at - capacity, self.last.copy()
        last[missing] = latest[-1]
        changes = np.flatnonzero((pauses[1:] != pauses[:-1]).any(axis=1)) + 1
        segments = [(int(row), missing[pauses[row]]) for row in (0, *changes)]
        return SignalHistory(last, largest), segments

    def missing(self, steps: int, capacity: int) -> Ints:
        """Find the signals that are missing after so many steps."""
        return np.flatnonzero(self.last > steps - capacity)


class Pauses:
    """The questions of a layout that have diverged, and those that need a missing signal.

    Args:
        layout: the layout of the questions.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.diverged = np.zeros(len(layout), np.bool_)

    def places(self, missing: Ints) -> Ints:
        """Return the places that pause if some signals are missing, and those that diverged."""
        if not len(missing):
            return np.flatnonzero(self.diverged)
        return np.flatnonzero(needing(self._layout, missing) | self.diverged)

    def divergent(self, predictions: Floats, largest_returns: Floats) -> Bools:
        """Find the places that have diverged, bool[G].

        Args:
            predictions: the largest absolute prediction for some states at each place, [G].
            largest_returns: the largest possible return at each place, [G].
        """
        with np.errstate(invalid="ignore"):
            return self.diverged | ~(predictions <= DIVERGED * largest_returns)


def needing(layout: Layout, signals: Ints) -> Bools:
    """Return True at the places whose questions need one of some signals, bool[G]."""
    some = np.zeros(len(layout.signal_columns), np.bool_)
    some[signals] = True
    return some[layout.cumulant] | some[len(layout.cumulants) + layout.source]


def largest_returns(layout: Layout, largest: Floats, passed_on: int, least: float = 1.0) -> Floats:
    """Return the largest possible return at each place, at least `least`, float64[G].

    Args:
        layout: the layout of the questions.
        largest: the largest absolute value of each signal so far.
        passed_on: the number of steps over which updates can have passed on cumulants.
        least: the smallest number to return.
    """
    cumulant = largest[layout.cumulant]
    with np.errstate(divide="ignore", over="ignore"):
        horizon = np.minimum(1.0 / (1.0 - largest_continuations(layout, largest)), passed_on)
        return np.maximum(cumulant * horizon, least)


def largest_continuations(layout: Layout, largest: Floats) -> Floats:
    """Return the largest continuation so far at each place, float64[G]."""
    return layout.scale * largest[len(layout.cumulants) + layout.source]


def pause_reasons(layout: Layout, missing: Bools, diverged: Bools) -> dict[str, str]:
    """Return the questions at the places that pause, with the reason."""
    places = np.flatnonzero(missing | diverged)
    return {
        layout.names[layout.order[place]]: (
            "it has diverged" if diverged[place] else "a signal was not finite"
        )
        for place in places[np.argsort(layout.order[places])]
    }
