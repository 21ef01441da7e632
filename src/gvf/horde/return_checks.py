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
belong to short episodes. As in :mod:`gvf.horde.horde_returns`, no return is begun where the
continuation may not complete it before a known time limit, and returns that are cut are counted.

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
from gvf.horde.course import Course
from gvf.horde.horde_report import FEWEST
from gvf.horde.layout import Ints, Layout

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

_FLOATS = ("left", "total", "prediction", "mean", "variance", "error", "excess", "excess_square")
_INTS = ("stream", "moved", "returns", "cut")
_LEFT, _TOTAL, _PREDICTION, _MEAN, _VARIANCE, _ERROR, _EXCESS, _EXCESS_SQUARE = range(8)
_STREAM, _MOVED, _RETURNS, _CUT = range(4)
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
        self._floats = np.zeros((len(_FLOATS), len(layout)))
        self._ints = np.zeros((len(_INTS), len(layout)), np.int64)
        self.left, self.total, self.prediction = self._floats[:_MEAN]
        self.mean, self.variance, self.error, self.excess, self.excess_square = self._floats[_MEAN:]
        self.stream, self.moved, self.returns, self.cut = self._ints
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
        self.waiting -= _note(
            ratios, steps, self._capacity, self.off, self._layout.starts, self._floats, self._ints
        )

    def _drop(self, places: Any) -> None:
        """Wait no longer at some places."""
        self.waiting -= int(np.count_nonzero(self.left[places]))
        self.left[places] = 0.0

    def follow(
        self, steps: int, columns: Arrays, course: Course, piece: slice, resting: Ints
    ) -> None:
        """Add a piece of some rows to the returns of predictions that wait.

        Args:
            steps: the number of steps before all rows.
            columns: their columns cumulant [m, C] and continuation [m, 1 + Z].
            course: their course of events.
            piece: the piece.
            resting: the places that pause, which wait no longer.
        """
        if not self.waiting:
            return
        if len(resting):
            self._drop(resting)
        layout = self._layout
        self.waiting -= _follow(
            (steps, piece.start, piece.stop, self._capacity),
            (columns["cumulant"], columns["continuation"], course.stream, course.begins),
            (self.off, layout.starts, layout.cumulant, layout.source, layout.scale),
            self._floats,
            self._ints,
        )

    def begin(
        self, steps: int, values: Array, course: Course, continuations: Floats, resting: Ints
    ) -> None:
        """Take predictions for the next state of the newest row, where none waits.

        Args:
            steps: the number of steps so far.
            values: the predictions at all places, [G].
            course: the course of the newest row.
            continuations: the largest continuation so far at each place, [G].
            resting: the places that pause.
        """
        may = np.ones(len(self._layout), np.bool_)
        may[resting] = False
        self.waiting += _begin(
            (steps, self._capacity, course.stream[0], course.room[0], course.limit[0]),
            (self.off, self._layout.starts, continuations, may),
            values,
            self._floats,
            self._ints,
        )

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
        self._floats[:, now] = other._floats[:, was]
        self._ints[:, now] = other._ints[:, was]
        self.off[:] = off
        self.waiting = int(np.count_nonzero(self.left))

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return copies of the arrays that change."""
        names = ("off", *_FLOATS, *_INTS)
        return {name: getattr(self, name).copy() for name in names}

    def load_state_dict(self, arrays: Arrays) -> None:
        """Restore the arrays that :meth:`state_dict` returned."""
        for name, array in arrays.items():
            getattr(self, name)[...] = array
        self.waiting = int(np.count_nonzero(self.left))


@njit(cache=True, nogil=True)
def steps_needed(continuation, cutoff):
    """Return the number of steps after which a product of continuations is at most the cutoff.

    It is infinite if the continuation is 1.
    """
    if continuation <= cutoff:
        return 1.0
    if continuation >= 1.0 or cutoff <= 0.0:
        return math.inf
    return math.ceil(math.log(cutoff) / math.log(continuation))


@njit(cache=True, nogil=True)
def _note(ratios, steps, capacity, off, starts, floats, ints):
    """Note the newest ratio of each group that is not 1, and drop what was known of its places.

    Return how many wait no longer.
    """
    done = 0
    for group in range(ratios.shape[0]):
        for i in range(ratios.shape[1] - 1, -1, -1):
            if abs(ratios[group, i] - 1.0) > ALIKE:
                if off[group] <= steps - capacity:
                    for g in range(starts[group], starts[group + 1]):
                        done += floats[_LEFT, g] > 0.0
                    floats[:, starts[group] : starts[group + 1]] = 0.0
                    ints[:, starts[group] : starts[group + 1]] = 0
                off[group] = steps + i + 1
                break
    return done


@njit(cache=True, nogil=True)
def _begin(numbers, layout, values, floats, ints):
    """Take predictions where none waits; return how many more wait now."""
    steps, capacity, stream, room, limit = numbers
    off, starts, continuation, may = layout
    more = 0
    for group in range(off.size):
        if off[group] > steps - capacity:
            continue
        for g in range(starts[group], starts[group + 1]):
            if floats[_LEFT, g] > 0.0:
                if ints[_MOVED, g] >= steps - _LOST:
                    continue
                floats[_LEFT, g] = 0.0
                ints[_CUT, g] += 1
                more -= 1
            if not may[g] or room == 0.0:
                continue
            if room < math.inf:
                needed = steps_needed(continuation[g], CUTOFF)
                if room < needed <= limit:
                    continue
            floats[_LEFT, g], floats[_TOTAL, g], floats[_PREDICTION, g] = 1.0, 0.0, values[g]
            ints[_STREAM, g], ints[_MOVED, g] = stream, steps
            more += 1
    return more


@njit(cache=True, nogil=True)
def _follow(numbers, rows, layout, floats, ints):
    """Add a piece of some rows to the returns that wait; return how many wait no longer.

    Rows that follow each other are taken together, so that the inner loop has little to ask.
    """
    steps, first, last, capacity = numbers
    cumulants, continuations, streams, begins = rows
    off, starts, cumulant, source, scale = layout
    done = 0
    for group in range(off.size):
        if off[group] > steps + first - capacity:
            continue
        stop = first
        while stop < last:
            start, stop = stop, stop + 1
            while stop < last and streams[stop] == streams[start] and not begins[stop]:
                stop += 1
            for g in range(starts[group], starts[group + 1]):
                rest, total = floats[_LEFT, g], floats[_TOTAL, g]
                if rest == 0.0 or ints[_STREAM, g] != streams[start]:
                    continue
                if begins[start]:
                    floats[_LEFT, g] = 0.0
                    ints[_CUT, g] += 1
                    done += 1
                    continue
                column, factor, signal = np.uint64(cumulant[g]), scale[g], np.uint64(source[g])
                for i in range(start, stop):
                    total += rest * cumulants[i, column]
                    rest *= factor * continuations[i, signal]
                    if rest <= CUTOFF:
                        break
                floats[_TOTAL, g], ints[_MOVED, g] = total, steps + stop
                floats[_LEFT, g] = rest if rest > CUTOFF else 0.0
                if rest <= CUTOFF:
                    done += 1
                    _average(g, floats, ints)
    return done


@njit(cache=True, nogil=True)
def _average(g, floats, ints):
    """Change the averages of a place by its prediction and its return, if both are finite."""
    outcome, mean = floats[_TOTAL, g], floats[_MEAN, g]
    error, away = floats[_PREDICTION, g] - outcome, outcome - mean
    square = error * error
    if not square < math.inf or not away * away < math.inf:
        return
    ints[_RETURNS, g] += 1
    returns = ints[_RETURNS, g]
    rate = max(1.0 / returns, 1.0 / RECENT)
    if returns > 1:
        more = square - away * away
        slower = max(1.0 / (returns - 1), 1.0 / RECENT)
        floats[_EXCESS, g] += slower * (more - floats[_EXCESS, g])
        floats[_EXCESS_SQUARE, g] += slower * (more * more - floats[_EXCESS_SQUARE, g])
    floats[_MEAN, g] += rate * away
    floats[_VARIANCE, g] = (1.0 - rate) * (floats[_VARIANCE, g] + rate * away * away)
    floats[_ERROR, g] += rate * (square - floats[_ERROR, g])
