"""Checking the predictions of questions about the behaviour, by the returns that follow them.

If the target is the behaviour, all ratios are 1, and what happens after a prediction is what was
predicted. At a look (:mod:`gvf.horde.watch`) each question about the behaviour whose last return is
complete takes its prediction v for the newest next state, and adds up the return G of the rows that
follow in the same stream, until the product of continuations is at most :data:`CUTOFF`. So the
returns of a question do not overlap, and its memory is a few numbers. With averages over its recent
returns,

    variance explained = 1 - mean (v - G)^2 / var G.

A question is worse than a constant if (v - G)^2 is on average larger than (m - G)^2, with m the
mean of the returns before, by :data:`STANDARD_ERRORS` standard errors.

A return is cut if its episode is truncated, or if rows are missing. Those that are complete then
belong to short episodes. As in :mod:`gvf.horde.returns`, no return is begun where the continuation
may not complete it before a known time limit, and returns that are cut are counted.

A ratio other than 1 shows that the policy does not act. What is known of its questions is dropped,
until all ratios in the window are 1 again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Floats
from gvf.horde.courses import Course
from gvf.horde.layout import Ints, Layout
from gvf.horde.pauses import Pauses
from gvf.horde.report import FEWEST

CUTOFF = 0.01
"""The largest share of a value that a return may leave out."""
RECENT = 100
"""The number of returns that an average is about."""
STANDARD_ERRORS = 3.0
"""The number of standard errors by which a question must be worse than a constant."""
ALIKE = 1e-6
"""The largest distance of a ratio from 1 that counts as none."""
_LOST = 10_000
"""The number of steps after which a stream without a row is taken to be over."""

_WAITING = ("left", "total", "prediction", "stream", "moved")
_AVERAGES = ("mean", "variance", "error", "excess", "excess_square")
_COUNTS = ("returns", "cut")
CHECKS = ("variance_explained", "returns", "cut", "on_policy", "worse")
"""The numbers of a report about the places of a horde."""


class Outcomes:
    """The predictions that wait for their returns, and the averages of those that had them.

    Args:
        layout: the layout of the questions.
        capacity: the number of transitions in the window, n.

    Attributes:
        off: the latest step at which the ratio of each group was not 1, int64[groups].
        left: the share of the return of each place that is still to come, float64[G]; 0 if no
            prediction waits.
        total: the return so far, float64[G].
        prediction: the prediction that waits, float64[G].
        stream: the number of its stream, int64[G].
        moved: the step of the latest row of its return, int64[G].
        returns: the number of complete returns, int64[G].
        cut: the number of returns that were cut, int64[G].
        mean, variance, error, excess, excess_square: averages of G, of its variance, of (v - G)^2,
            of (v - G)^2 - (m - G)^2, and of the square of this, float64[G] each.
    """

    def __init__(self, layout: Layout, capacity: int) -> None:
        self._layout, self._capacity = layout, capacity
        self.off = np.full(layout.groups, -capacity)
        self.left, self.total, self.prediction = np.zeros((3, len(layout)))
        self.stream, self.moved, self.returns, self.cut = np.zeros((4, len(layout)), np.int64)
        self.mean, self.variance, self.error, self.excess, self.excess_square = np.zeros(
            (5, len(layout))
        )
        self.waiting = 0  # the number of predictions that wait

    def summary(self, steps: int) -> dict[str, NDArray[Any]]:
        """Return the numbers of a report at all places, [G]."""
        on = np.repeat(self.on_policy(steps), np.diff(self._layout.starts))
        numbers = self.variance_explained(), self.returns, self.cut, on, self.worse()
        return dict(zip(CHECKS, numbers, strict=True))

    def on_policy(self, steps: int) -> NDArray[np.bool_]:
        """Return True for the groups whose policy acts, bool[groups]."""
        return (self.off <= steps - self._capacity) & (steps > 0)

    def note(self, steps: int, ratios: Floats) -> None:
        """Note the ratios [groups, m] of rows after so many steps; drop who does not act."""
        was = self.off.copy()
        _newest_off(ratios, steps, self.off)
        starts = self._layout.starts
        for g in np.flatnonzero((self.off != was) & (was <= steps - self._capacity)):
            self._drop(slice(starts[g], starts[g + 1]))
            for name in (*_COUNTS, *_AVERAGES):
                getattr(self, name)[starts[g] : starts[g + 1]] = 0

    def _drop(self, places: Any) -> None:
        """Wait no longer at some places."""
        self.waiting -= int(np.count_nonzero(self.left[places]))
        self.left[places] = 0.0

    def follow(self, steps: int, columns: Arrays, course: Course, resting: Ints) -> None:
        """Add rows to the returns of predictions that wait.

        Args:
            steps: the number of steps before these rows.
            columns: their columns cumulant [m, C] and continuation [m, 1 + Z].
            course: their course of events.
            resting: the places that pause, which wait no longer.
        """
        if not self.waiting:
            return
        if len(resting):
            self._drop(resting)
        layout = self._layout
        groups = np.flatnonzero(self.on_policy(steps))
        self.waiting -= _follow(
            steps,
            (columns["cumulant"], columns["continuation"], course.stream, course.begins),
            (groups, layout.starts, layout.cumulant, layout.source, layout.scale),
            tuple(getattr(self, name) for name in _WAITING),
            tuple(getattr(self, name) for name in _AVERAGES),
            (self.returns, self.cut),
        )

    def begin(
        self, steps: int, values: Array, course: Course, pauses: Pauses, resting: Ints
    ) -> None:
        """Take predictions for the next state of the newest row, where none waits.

        Args:
            steps: the number of steps so far.
            values: the predictions at all places, [G].
            course: the course of the newest row.
            pauses: the pauses, which know the largest continuations so far.
            resting: the places that pause.
        """
        on = self.on_policy(steps)
        if not on.any():
            return
        usable = np.repeat(on, np.diff(self._layout.starts))
        usable[resting] = False
        waits = self.left > 0.0
        lost = waits & (self.moved < steps - _LOST)
        self.cut += lost
        self._drop(lost)
        usable &= self.left == 0.0
        if not course.room[0]:
            return
        needed = steps_needed(pauses.largest_continuations, CUTOFF)
        usable &= (needed <= course.room[0]) | (needed > course.limit[0])
        self.left[usable], self.total[usable] = 1.0, 0.0
        self.prediction[usable] = values[usable]
        self.stream[usable], self.moved[usable] = course.stream[0], steps
        self.waiting += int(usable.sum())

    def variance_explained(self) -> Floats:
        """Return the variance explained at all places, float64[G]; nan if it is not known."""
        known = (self.returns >= FEWEST) & (self.variance > 1e-24 * self.mean**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(known, 1.0 - self.error / self.variance, np.nan)

    def worse(self) -> NDArray[np.bool_]:
        """Return True at places that are worse than a constant, bool[G]."""
        count = np.minimum(self.returns - 1, 2 * RECENT - 1)
        noise = np.maximum(self.excess_square - self.excess**2, 0.0) / np.maximum(count - 1, 1)
        return (self.returns >= FEWEST) & (self.excess > STANDARD_ERRORS * np.sqrt(noise))

    def moved_from(self, other: Outcomes, was: Ints, now: Ints, off: Ints) -> None:
        """Take over what another knows: that of its places `was` for the places `now`.

        Args:
            other: the other.
            was: its places.
            now: the places here.
            off: what it knows of the groups, in the order of those here.
        """
        for name in (*_WAITING, *_COUNTS, *_AVERAGES):
            getattr(self, name)[now] = getattr(other, name)[was]
        self.off[:] = off
        self.waiting = int(np.count_nonzero(self.left))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return copies of the arrays that change."""
        names = ("off", *_WAITING, *_COUNTS, *_AVERAGES)
        return {name: getattr(self, name).copy() for name in names}

    def restore(self, arrays: Arrays, steps: int) -> None:
        """Restore the arrays that :meth:`arrays` returned after so many steps.

        Older files have none, and do not tell which ratios were 1.
        """
        self.off[:] = steps
        for name, array in arrays.items():
            getattr(self, name)[...] = array
        self.waiting = int(np.count_nonzero(self.left))


def steps_needed(continuation: Floats, cutoff: float) -> Floats:
    """Return the number of steps after which a product of continuations is at most the cutoff.

    It is infinite if the continuation is 1, or the cutoff 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.ceil(np.log(cutoff) / np.log(continuation))
    return np.where(continuation < 1.0, np.fmax(steps, 1.0), np.inf)


@njit(cache=True, nogil=True)
def _newest_off(ratios, steps, off):
    """Write the step of the newest ratio of each group that is not 1, if there is one."""
    for g in range(ratios.shape[0]):
        for i in range(ratios.shape[1] - 1, -1, -1):
            if abs(ratios[g, i] - 1.0) > ALIKE:
                off[g] = steps + i + 1
                break


@njit(cache=True, nogil=True)
def _follow(steps, rows, layout, waiting, averages, counts):
    """Add rows to the returns that wait; return how many wait no longer."""
    cumulants, continuations, streams, begins = rows
    groups, starts, cumulant, source, scale = layout
    left, total, prediction, stream, moved = waiting
    done = 0
    for group in groups:
        for g in range(starts[group], starts[group + 1]):
            if left[g] == 0.0:
                continue
            rest, sum_so_far, latest = left[g], total[g], moved[g]
            for i in range(streams.size):
                if streams[i] != stream[g]:
                    continue
                if begins[i]:
                    rest = 0.0
                    counts[1][g] += 1
                    break
                latest = steps + i + 1
                sum_so_far += rest * cumulants[i, cumulant[g]]
                rest *= scale[g] * continuations[i, source[g]]
                if rest <= CUTOFF:
                    rest = 0.0
                    _average(g, prediction[g], sum_so_far, averages, counts[0])
                    break
            left[g], total[g], moved[g] = rest, sum_so_far, latest
            done += rest == 0.0
    return done


@njit(cache=True, nogil=True)
def _average(g, value, outcome, averages, returns):
    """Change the averages of a place by a prediction and its return, if both are finite."""
    mean, variance, error, excess, excess_square = averages
    square = (value - outcome) * (value - outcome)
    away = outcome - mean[g]
    if not square < math.inf or not away * away < math.inf:
        return
    returns[g] += 1
    rate = max(1.0 / returns[g], 1.0 / RECENT)
    if returns[g] > 1:
        more = square - away * away
        slower = max(1.0 / (returns[g] - 1), 1.0 / RECENT)
        excess[g] += slower * (more - excess[g])
        excess_square[g] += slower * (more * more - excess_square[g])
    mean[g] += rate * away
    variance[g] = (1.0 - rate) * (variance[g] + rate * away * away)
    error[g] += rate * (square - error[g])
