"""Questions that pause: a sensor that fails, or weights that diverge.

A cumulant or continuation that is not a finite number says nothing about its transition. Its
questions pause as long as the window has such a transition, and go on with the weights that they
had. A question has diverged if a prediction is far above the largest return that is possible; it
does not go on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Arrays, Floats
from gvf.common.divergence import DIVERGED
from gvf.horde.layout import Ints, Layout

LOOK_EVERY = 1024
"""The number of steps between two searches for questions that have diverged."""
LOOKED_AT = 32
"""The number of recent transitions whose predictions are looked at."""


class Pauses:
    """The questions that pause at present, found from the signals of each transition.

    Args:
        layout: the layout of the questions.
        capacity: the number of transitions in the window, n.
    """

    def __init__(self, layout: Layout, capacity: int) -> None:
        self._layout, self._capacity = layout, capacity
        signals = len(layout.cumulants) + 1 + len(layout.signals)
        self.last = np.full(signals, -capacity)  # the latest step at which a signal was not finite
        self.largest = np.zeros(signals)  # the largest absolute value of each signal
        self.diverged = np.zeros(len(layout), np.bool_)

    def observe(self, steps: int, cumulant: Floats, continuation: Floats) -> list[tuple[int, Ints]]:
        """Replace numbers that are not finite by 0, and find who pauses.

        Args:
            steps: the number of transitions observed before.
            cumulant: the cumulants of m transitions, [m, C].
            continuation: the continuations, [m, 1 + Z].

        Returns:
            Pairs of a row, 0 the first, and the signals that are missing from there on.
        """
        values = np.concatenate([cumulant, continuation], axis=1)
        bad = ~np.isfinite(values)
        if bad.any():
            for part in (cumulant, continuation):
                part[~np.isfinite(part)] = 0.0
            values[bad] = 0.0
        np.maximum(self.largest, np.abs(values).max(axis=0), out=self.largest)
        missing = np.flatnonzero(bad.any(axis=0) | (self.last > steps - self._capacity))
        if not len(missing):
            return [(0, missing)]
        at = steps + 1 + np.arange(len(values))[:, None]
        latest = np.where(bad[:, missing], at, self.last[missing])
        latest = np.maximum.accumulate(latest, axis=0)
        pauses = latest > at - self._capacity
        self.last[missing] = latest[-1]
        changes = np.flatnonzero((pauses[1:] != pauses[:-1]).any(axis=1)) + 1
        return [(int(row), missing[pauses[row]]) for row in (0, *changes)]

    def places(self, signals: Ints) -> Ints:
        """Return the places that pause if some signals are missing, and those that diverged."""
        if not len(signals):
            return np.flatnonzero(self.diverged)
        return np.flatnonzero(self._without(signals) | self.diverged)

    def _without(self, signals: Ints) -> NDArray[np.bool_]:
        missing = np.zeros(len(self.last), np.bool_)
        missing[signals] = True
        layout = self._layout
        return missing[layout.cumulant] | missing[len(layout.cumulants) + layout.source]

    def divergent(self, largest: Floats, passed_on: int) -> NDArray[np.bool_]:
        """Find the places that have diverged, bool[G].

        Args:
            largest: the largest absolute prediction for some states at each place, [G].
            passed_on: the number of steps over which updates can have passed on cumulants.
        """
        limit = DIVERGED * self.largest_returns(passed_on)
        with np.errstate(invalid="ignore"):
            return self.diverged | ~(largest <= limit)

    def largest_returns(self, passed_on: int, least: float = 1.0) -> Floats:
        """Return the largest possible return at each place, at least `least`, float64[G]."""
        cumulant = self.largest[self._layout.cumulant]
        with np.errstate(divide="ignore", over="ignore"):
            horizon = np.minimum(1.0 / (1.0 - self.largest_continuations), passed_on)
            return np.maximum(cumulant * horizon, least)

    @property
    def largest_continuations(self) -> Floats:
        """The largest continuation so far at each place, float64[G]."""
        layout = self._layout
        return layout.scale * self.largest[len(layout.cumulants) + layout.source]

    def missing(self, steps: int) -> NDArray[np.bool_]:
        """Find the places that pause after so many steps because a signal is missing, bool[G]."""
        return self._without(np.flatnonzero(self.last > steps - self._capacity))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return copies of the arrays that change."""
        return {name: getattr(self, name).copy() for name in ("last", "largest", "diverged")}

    def restore(self, arrays: Arrays) -> None:
        """Restore the arrays that :meth:`arrays` returned."""
        for name, array in self.arrays().items():
            getattr(self, name)[...] = np.broadcast_to(arrays[name], array.shape)


def reasons(
    layout: Layout, missing: NDArray[np.bool_], diverged: NDArray[np.bool_]
) -> dict[str, str]:
    """Return the questions at the places that pause, with the reason."""
    reasons_by_question = {}
    for place in np.flatnonzero(missing | diverged):
        reason = "it has diverged" if diverged[place] else "a signal was not finite"
        reasons_by_question[int(layout.order[place])] = reason
    return {
        layout.names[question]: reasons_by_question[question]
        for question in sorted(reasons_by_question)
    }
