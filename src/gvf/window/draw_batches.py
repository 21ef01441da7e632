"""Draws: the rows of a walk that each update sees, drawn once and shared by all methods.

Methods whose corrections draw alike (:attr:`gvf.corrections.Correction.draw`) see the same rows.
All methods that draw by a mass turn the same uniform numbers into rows. These common random numbers
make comparisons between methods sharp. Update u comes after step ``warm_up + gap (u + 1)`` and sees
the n rows before it. If only active steps count, it comes after the ``gap (u + 1)``-th of those
that follow the warm-up. With a fixed buffer, all updates see the same n rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gvf.common.arrays import Bools, Floats
from gvf.corrections import Correction
from gvf.sampling import xoshiro
from gvf.sampling.prefix_sums import advance, new_place, new_rings, ring_search
from gvf.window.buffer import UNIFORM, Masses, kind_of, write_means, write_rings

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Draws:
    """Rows and statistics for U updates.

    Attributes:
        rows: the rows drawn, int64[U, k]; -1 if the window has no mass. No columns if every batch
            is the whole window.
        first: the window's first row, int64[U].
        last: one past its last row, int64[U].
        means: the means of the inputs and of the mass over the window, float64[U, C + 1].
        inputs: the inputs of all rows of the walk, float64[C, T].
        p: the masses of these rows, float64[T]; empty if all are 1.
        mass: the place of the masses, as in :mod:`gvf.window.buffer`.
    """

    rows: Rows
    first: Rows
    last: Rows
    means: Floats
    inputs: Floats
    p: Floats
    mass: int

    def batches(self) -> Rows:
        """Return the rows of each batch, int64[U, k]: those drawn, or the whole window.

        If batches are whole windows, all windows must have the same length.
        """
        if self.rows.shape[1]:
            return self.rows
        return self.first[:, None] + np.arange(self.last[0] - self.first[0])

    def weights(self, correction: Correction) -> Floats:
        """Return a correction's weights of each batch, float64[U, k]; 0 if a window has no mass."""
        rows = self.batches()
        w = correction.weigh_rows(self.inputs, self.p, np.maximum(rows, 0), self.means)
        w[rows[:, 0] < 0] = 0.0
        return w


@njit(cache=True, nogil=True)
def _draw(masses, mass, end, size, stream, uniforms, rows, means):
    """Draw rows [k] from the `size` rows before `end`, whose masses are in `masses`."""
    n, k = masses.place[0], rows.size
    write_means(masses, mass, means)
    if mass == UNIFORM:
        for j in range(k):
            rows[j] = end - size + int(xoshiro.uniform(stream) * size)
    if mass >= 0:
        xoshiro.fill(stream, uniforms)
        if means[-1] > 0.0:
            ring_search(masses.rings[mass], masses.place, uniforms, rows)
            # A slot holds the latest row whose number is the slot modulo n.
            head = end % n
            for j in range(k):
                rows[j] += end - head - (n if rows[j] >= head else 0)
        else:
            rows[:] = -1


@njit(cache=True, nogil=True)
def _sliding(inputs, p, times, masses, mass, stream, rows, first, last, means):
    n, uniforms = masses.place[0], np.empty(rows.shape[1])
    u = 0
    for t in range(1, inputs.shape[1] + 1):
        write_rings(masses, inputs, p, t - 1)
        advance(masses.place)
        if u < times.size and t == times[u]:
            size = min(t, n)
            first[u], last[u] = t - size, t
            _draw(masses, mass, t, size, stream, uniforms, rows[u], means[u])
            u += 1


@njit(cache=True, nogil=True)
def _fixed(inputs, p, masses, mass, stream, rows, first, last, means):
    n, uniforms = inputs.shape[1], np.empty(rows.shape[1])
    for t in range(n):
        write_rings(masses, inputs, p, t)
        advance(masses.place)
    for u in range(rows.shape[0]):
        first[u], last[u] = 0, n
        _draw(masses, mass, n, n, stream, uniforms, rows[u], means[u])


def update_times(steps: int, warm_up: int = 0, gap: int = 1, active: Bools | None = None) -> Rows:
    """Return the number of steps before each update, int64[U].

    Args:
        steps: the number of steps, T.
        warm_up: steps before the first of the intervals between updates.
        gap: steps between updates.
        active: True for the steps that count as such, bool[T]; by default all do.

    Example:
        >>> from gvf.window.draw_batches import update_times
        >>> import numpy as np
        >>> update_times(10, warm_up=2, gap=3).tolist()
        [5, 8]
        >>> update_times(10, warm_up=2, gap=3, active=np.arange(10) % 2 == 1).tolist()
        [8]
    """
    times = np.arange(warm_up + 1, steps + 1)
    if active is not None:
        times = times[active[warm_up:]]
    return np.ascontiguousarray(times[gap - 1 :: gap])


def draw_batches(
    correction: Correction,
    inputs: Floats,
    *,
    window: int,
    batch_size: int,
    seed: np.random.SeedSequence,
    updates: int = 0,
    warm_up: int = 0,
    gap: int = 1,
    active: Bools | None = None,
) -> Draws:
    """Draw the rows of every update; with `updates` > 0, from one fixed buffer of all rows.

    Args:
        correction: the correction; those with equal `draw` get the same rows.
        inputs: the inputs of all T rows, oldest first: ratios [T], or inputs [C, T].
        window: the number of most recent rows that a batch is drawn from.
        batch_size: the number of rows in a batch, k.
        seed: the seed of the draws.
        updates: the number of batches from a fixed buffer; 0 for a sliding window.
        warm_up: steps before the first of the intervals between updates.
        gap: steps between updates.
        active: True for the steps that count in gaps, bool[T]; by default all do.

    Example:
        Two batches of three rows each, from eight rows of which the first has ratio 0:

        >>> import gvf, numpy as np
        >>> ratios = np.array([0.0, 1.0, 2.0, 0.5, 1.0, 1.0, 2.0, 0.5])
        >>> draws = gvf.draw_batches(
        ...     gvf.corrections.IR(), ratios, window=8, batch_size=3, gap=4,
        ...     seed=np.random.SeedSequence(1),
        ... )
        >>> draws.rows.shape, bool((draws.rows > 0).all())
        ((2, 3), True)
    """
    if correction.refresh is not None:
        raise ValueError(
            f"the masses of {correction.name} change as it learns, so its draws cannot be made "
            "beforehand and shared; use a learner"
        )
    inputs = np.ascontiguousarray(np.atleast_2d(inputs))
    how, fixed, steps = correction.draw, updates > 0, inputs.shape[1]
    times = update_times(steps, warm_up, gap, active)
    count = updates if fixed else len(times)
    capacity = steps if fixed else window
    mass, rings, nodes = kind_of(correction, capacity)
    p = correction.masses(inputs) if mass >= 0 else np.empty(0)
    masses = Masses(new_place(capacity), new_rings(rings, capacity), nodes)
    stream = xoshiro.streams(2, seed)[0 if how.uniform else 1]
    rows = np.empty((count, 0 if how.whole else batch_size), np.int64)
    first, last = np.empty(count, np.int64), np.empty(count, np.int64)
    means = np.empty((count, len(inputs) + 1))
    out = (masses, mass, stream, rows, first, last, means)
    if fixed:
        _fixed(inputs, p, *out)
    else:
        _sliding(inputs, p, times, *out)
    return Draws(rows, first, last, means, inputs, p, mass)
