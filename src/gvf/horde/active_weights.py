"""Plain TD with active features: one-hot states and tile coding.

A row reads and changes only the weights of its active features, one run of neighbouring columns for
each. The columns of a group are split into blocks whose weights fit into the cache of a processor.
Blocks depend on no other, so a compiled loop takes a block through all steps of a chunk before the
next, and threads work on different blocks.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit

from gvf.common.arrays import Array, Arrays, Floats
from gvf.common.tiles import prefetch
from gvf.horde.group_draws import DrawnRows, Pool
from gvf.horde.layout import Ints, Layout
from gvf.horde.weights import WeightBlocks

_CACHE = 2**20
"""The number of bytes of weights in a block, about the size of a processor's own cache."""
_LANES = 16
"""The number of columns in the narrowest block, if its group has so many."""
_DRAWN = 2**19
"""The number of rows drawn for a chunk; more would only pass through memory."""


class ActiveWeights(WeightBlocks):
    """The weights of all questions, changed by loops over active features.

    Args:
        layout: the layout of the questions.
        step_size: the step size, if it is constant.
        size: the number of features.
        dtype: the type of the weights.
        pool: the threads.
    """

    def __init__(
        self, layout: Layout, step_size: float, size: int, dtype: np.dtype[Any], pool: Pool
    ) -> None:
        super().__init__(_cut(layout.starts, size * dtype.itemsize), size, dtype)
        self._layout, self._step_size, self._pool = layout, step_size, pool
        self._group = layout.group[self.starts[:-1]]
        self._scale = layout.scale.astype(dtype)

    @staticmethod
    def best_updates(layout: Layout, batch_size: int) -> int:
        """Return the number of updates that are best done in one call."""
        return int(np.clip(_DRAWN // (layout.groups * batch_size), 8, 64))

    def apply(self, columns: Arrays, drawn: DrawnRows, step_size: Floats | None) -> None:
        """Apply U updates; see :class:`gvf.horde.weights.Weights`."""
        alpha = self._step_size if step_size is None else step_size[:, :, None]
        layout, w = self._layout, (drawn.w * alpha).astype(self.flat.dtype)
        signals = (columns["cumulant"], columns["continuation"], self._scale)
        places = (layout.cumulant, layout.source, self.starts, self._group)

        def work(first: int, last: int) -> None:
            _learn(
                self.flat, columns["x"], columns["x_next"], signals, places, drawn.rows, w,
                first, last,
            )  # fmt: skip

        worth = drawn.rows.size * columns["x"].shape[1] > 5_000
        self._pool.over(len(self._group), work, worth=worth)

    def predict(self, x: Array) -> Array:
        """Return the values of active features [m, active] at all places, [m, G]."""
        out = np.empty((len(x), int(self.starts[-1])), self.flat.dtype)
        for matrix, first in zip(self.matrices, self.starts.tolist(), strict=False):
            _values(matrix, x, out[:, first : first + matrix.shape[1]])
        return out


def _cut(starts: Ints, column: int) -> Ints:
    """Cut groups into blocks of columns, of so many bytes each, that fit into the cache."""
    lanes = max(_CACHE // column // _LANES * _LANES, _LANES)
    cuts = [np.arange(first, last, lanes) for first, last in pairwise(starts.tolist())]
    return np.append(np.concatenate(cuts), starts[-1])


@njit(cache=True, nogil=True)
def _add_rows(weights, x, row, out):
    """Add the weights of the active features of a row to out [lanes]."""
    active, lanes, j = x.shape[1], out.size, 0
    while j + 4 <= active:  # four at a time, because out is read and written each time
        a, b = weights[x[row, j]], weights[x[row, j + 1]]
        c, d = weights[x[row, j + 2]], weights[x[row, j + 3]]
        for q in range(lanes):
            out[q] += (a[q] + b[q]) + (c[q] + d[q])
        j += 4
    while j < active:
        a = weights[np.uint64(x[row, j])]
        for q in range(lanes):
            out[q] += a[q]
        j += 1


@njit(cache=True, nogil=True)
def _values(weights, x, out):
    """Write the values of rows of x into out [m, lanes]."""
    for i in range(x.shape[0]):
        out[i] = 0.0
        _add_rows(weights, x, i, out[i])


@njit(cache=True, nogil=True)
def _learn_one(weights, x, x_next, signals, places, rows, w, place):
    """Apply all updates to the only question of a block, its weights [size]; rows are [U, k]."""
    cumulants, continuations, scale = signals
    column, source = places[0][place], places[1][place]
    errors = np.empty(rows.shape[1], weights.dtype)
    for u in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            row = np.uint64(rows[u, i])
            if i + 4 < rows.shape[1]:  # rows lie anywhere in memory
                soon = rows[u, i + 4]
                prefetch(x, soon * x.shape[1])
                prefetch(x_next, soon * x.shape[1])
                prefetch(cumulants, soon * cumulants.shape[1] + column)
            near, far = weights[x[row, 0]], weights[x_next[row, 0]]
            for j in range(1, x.shape[1]):
                near += weights[np.uint64(x[row, j])]
                far += weights[np.uint64(x_next[row, j])]
            gamma = scale[place] * continuations[row, source]
            errors[i] = w[u, i] * (cumulants[row, column] + gamma * far - near)
        for i in range(rows.shape[1]):
            for j in range(x.shape[1]):
                weights[np.uint64(x[rows[u, i], j])] += errors[i]


@njit(cache=True, nogil=True)
def _learn(flat, x, x_next, signals, places, rows, w, first, last):
    """Apply all updates to the blocks from `first` to `last`.

    Args:
        flat: the weights of all blocks.
        x: the active features of all rows, [n, active].
        x_next: those of the next states.
        signals: the cumulants [n, C], the continuations [n, 1 + Z], and their factors [G].
        places: the cumulant and the source of the continuation at each place [G], the first place
            of each block, and its group.
        rows: the drawn rows, [U, D, k].
        w: their weights times the step size, [U, groups, k].
        first: the first block.
        last: the end of the blocks.
    """
    cumulants, continuations, scale = signals
    cumulant, source, starts, groups = places
    updates, sets, k = rows.shape
    size = flat.size // starts[-1]
    for block in range(first, last):
        begin, end, g = starts[block], starts[block + 1], groups[block]
        lanes, d = end - begin, g if sets > 1 else 0
        weights = flat[begin * size : end * size].reshape(size, lanes)
        if lanes == 1:
            _learn_one(weights[:, 0], x, x_next, signals, places, rows[:, d], w[:, g], begin)
            continue
        errors = np.empty((k, lanes), flat.dtype)
        near, far = np.empty(lanes, flat.dtype), np.empty(lanes, flat.dtype)
        for u in range(updates):
            for i in range(k):
                row, weight = rows[u, d, i], w[u, g, i]
                if weight == 0.0:
                    continue
                near[:] = 0.0
                _add_rows(weights, x, row, near)
                far[:] = 0.0
                if continuations[row, 0] != 0.0:
                    _add_rows(weights, x_next, row, far)
                for q in range(lanes):
                    place = begin + q
                    gamma = scale[place] * continuations[row, source[place]]
                    c = cumulants[row, cumulant[place]]
                    errors[i, q] = weight * (c + gamma * far[q] - near[q])
            for i in range(k):
                if w[u, g, i] != 0.0:
                    for j in range(x.shape[1]):
                        changed, error = weights[x[rows[u, d, i], j]], errors[i]
                        for q in range(lanes):
                            changed[q] += error[q]
