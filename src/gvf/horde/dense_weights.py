r"""Plain TD with dense features: many steps as a few matrix products.

Take the R = U k rows drawn for U updates of a policy, in order, with features X, next features X'
and weights w (the step size included). Questions with the continuation gamma have errors
``delta = c + Z W`` with ``Z = gamma X' - X``, where W are the weights at the row's own step. These
are W_0 plus the updates of the steps before, so with N the products of rows with rows of earlier
steps, ``N_ij = Z_i . X_j w_j``,

    delta = c + Z W_0 + N delta,    W_U = W_0 + X^T diag(w) delta = W_0 + Y (c + Z W_0),

    Y = X^T diag(w) (I - N)^-1.

Y depends on no question, and :func:`_join` finds it from the Y of fewer steps. All questions of a
policy and continuation then need two products with matrices of R rows. These are the numbers of one
step after the other, up to rounding. If there are fewer features than rows, ``(Y Z) W_0 + Y c``
needs fewer operations.

A compiled loop takes a few columns of weights at a time through both products
(:mod:`gvf.common.tiles`), so that the weights are read and written once for all steps of a product.
A call may have the steps of several products, which follow one another.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit

from gvf.common.arrays import Array, Arrays, Floats
from gvf.common.tiles import BYTES, add_product, aligned, lanes_of, prefetch
from gvf.horde.group_draws import DrawnRows, Pool
from gvf.horde.layout import Ints, Layout
from gvf.horde.weights import WeightBlocks

_WEIGHTS_COST = 24
"""Reading and writing a weight takes as long as so many multiply-adds."""
_MOST_ROWS = 512
"""The number of rows of a chunk beyond which their products would leave the cache."""
ZERO, ONE = np.int64(0), np.int64(1)
GROUP, BLOCK, END, SOURCE, CUMULANT = range(5)
"""The columns of the table of parts: the group, the first block and the end of the blocks, the
source of the continuation, and the first cumulant if the cumulants are neighbours, else -1."""


class DenseWeights(WeightBlocks):
    """The weights of all questions, changed by matrix products.

    Args:
        layout: the layout of the questions.
        step_size: the step size, if it is constant.
        size: the number of features.
        dtype: the type of the weights.
        pool: the threads.
        updates_per_product: the largest number of updates that are joined into one product.
    """

    def __init__(
        self,
        layout: Layout,
        step_size: float,
        size: int,
        dtype: np.dtype[Any],
        pool: Pool,
        updates_per_product: int,
    ) -> None:
        self._parts, starts = _parts(layout, 3 * lanes_of(dtype), pool.threads)
        super().__init__(starts, size, dtype)
        self._layout, self.updates_per_product = layout, updates_per_product
        self._step_size, self._pool = step_size, pool
        self._scale = layout.scale.astype(dtype)

    @staticmethod
    def best_updates(layout: Layout, batch_size: int) -> int:
        """Return the number of updates that are best joined into one product.

        With q questions of a policy and continuation, joining R rows takes R / 2q of the other
        products, and passing the weights through the cache takes a share that falls with R.
        """
        rows = math.sqrt(2 * _WEIGHTS_COST * float(np.median(layout.stretches.questions)))
        return max(1, int(min(rows, _MOST_ROWS) / batch_size))

    def apply(self, columns: Arrays, drawn: DrawnRows, step_size: Floats | None) -> None:
        """Apply U updates; see :class:`gvf.horde.weights.Weights`."""
        updates, _, k = drawn.rows.shape
        alpha = self._step_size if step_size is None else step_size[:, :, None]
        w = (drawn.w * alpha).swapaxes(0, 1).reshape(-1, updates * k)
        w = w.astype(self.flat.dtype, order="C")  # Numba compiles for each order
        rows = np.ascontiguousarray(drawn.rows.swapaxes(0, 1)).reshape(-1, updates * k)
        joined = min(updates, self.updates_per_product) * k
        products = [(rows, w)]
        if joined < updates * k:
            cuts = [slice(start, start + joined) for start in range(0, updates * k, joined)]
            products = [(rows[:, cut].copy(), w[:, cut].copy()) for cut in cuts]
        features = columns["x"], columns["x_next"]
        signals = columns["cumulant"], columns["continuation"]
        places = self.starts, self._scale, self._layout.cumulant
        room = _room(self.size, joined, k, self.flat.dtype)

        def work(first: int, last: int) -> None:
            parts, buffer = self._parts[first:last], aligned(room, self.flat.dtype)
            for some, weights in products:
                _learn(self.flat, features, signals, parts, places, some, weights, k, buffer)

        worth = drawn.w.size * self.size > 50_000
        self._pool.over(len(self._parts), work, worth=worth)

    def predict(self, x: Array) -> Array:
        """Return the values of features [m, size] at all places, [m, G]."""
        out = np.empty((len(x), len(self._layout)), self.flat.dtype)
        flat_x = np.ascontiguousarray(x).reshape(-1)
        room = (self.size + len(x)) * 3 * lanes_of(self.flat.dtype)

        def work(first: int, last: int) -> None:
            buffer = aligned(room, self.flat.dtype)
            _predict(self.flat, flat_x, self.starts, first, last, buffer, out)

        self._pool.over(len(self.matrices), work, worth=self.flat.size > 500_000)
        return out


def _parts(layout: Layout, widest: int, threads: int) -> tuple[Ints, Ints]:
    """Divide groups into parts of one continuation, and these into blocks of a few columns.

    If there are fewer groups than threads, their columns are divided.

    Returns:
        A table of parts, and the first place of each block, with the number of places at the end.
    """
    parts, starts, shares = [], [0], -(-threads // layout.groups)
    first_of, _, of_group, *_ = layout.stretches
    for g in range(layout.groups):
        begin, end = layout.starts[g : g + 2].tolist()
        share = -(-(end - begin) // (shares * widest)) * widest
        edges = sorted({*first_of[of_group == g].tolist(), *range(begin, end, share), end})
        for first, last in pairwise(edges):
            cumulants = layout.cumulant[first:last]
            neighbours = (np.diff(cumulants) == 1).all()
            block = len(starts) - 1
            starts += [*range(first + widest, last, widest), last]
            cumulant = cumulants[0] if neighbours else -1
            parts.append((g, block, len(starts) - 1, layout.source[first], cumulant))
    return np.array(parts, np.int64), np.array(starts, np.int64)


def _room(size: int, rows: int, k: int, dtype: np.dtype[Any]) -> int:
    """Return how many numbers :func:`_learn` needs beside its arguments, for updates of k rows."""
    lanes = lanes_of(dtype)
    wide, tall = -(-size // lanes) * lanes, (-(-rows // lanes) + 1) * lanes
    # One update has no rows to join. Its rows may be the whole window, too many for a square.
    between = max(rows * tall if k < rows else 0, size * wide if size < rows else 0)
    return rows * wide + size * tall + between + (rows + 2 * size) * 3 * lanes


@njit(cache=True, nogil=True)
def _learn(flat, features, signals, parts, places, rows, w, k, room):
    """Apply the updates of some parts.

    Args:
        flat: the weights of all blocks.
        features: the features of all rows, [n, size], and those of the next states.
        signals: the cumulants [n, C] and the continuations [n, 1 + Z].
        parts: the parts, a row each; see :func:`_parts`.
        places: the first place of each block, and the factor of the continuation and the cumulant
            at each place.
        rows: the drawn rows, [groups or 1, R].
        w: their weights times the step size, [groups, R].
        k: the number of rows of an update.
        room: memory to work in; see :func:`_room`.
    """
    (x, x_next), (cumulants, continuations) = features, signals
    starts, scale, cumulant = places
    size, R, lanes = x.shape[1], rows.shape[1], _lanes(flat)
    wide, tall = (size + lanes - 1) // lanes * lanes, ((R + lanes - 1) // lanes + 1) * lanes
    panel = 3 * lanes
    Y, room = room[: R * wide], room[R * wide :]  # rows of R
    Z, room = room[: size * tall], room[size * tall :]  # columns of R: transposed
    E, room = room[: R * panel], room[R * panel :]
    W, room = room[: size * panel], room[size * panel :]
    before, between = room[: size * panel], room[size * panel :]
    for part in range(len(parts)):
        g, block, end = parts[part, GROUP], parts[part, BLOCK], parts[part, END]
        source, neighbours = parts[part, SOURCE], parts[part, CUMULANT]
        drawn, place = rows[g if len(rows) > 1 else 0], starts[block]
        _gather(x, x_next, continuations, drawn, w[g], scale[place], source, Y, wide, Z, tall)
        _join(Y, wide, Z, tall, size, R, k, between)
        few = size < R
        if few:  # (Y Z)^T
            between[: size * wide] = 0.0
            add_product((between, ZERO, wide), (Z, ZERO, tall, ONE), (Y, ZERO, wide), size, size, R)
        for b in range(block, end):
            at, width = starts[b], starts[b + 1] - starts[b]
            panel_of_weights = (flat, at * size, panel)
            if width < panel:  # what follows in a row is overwritten
                _copy(flat, at * size, width, W, 0, panel, size, width)
                panel_of_weights = (W, ZERO, panel)
            for r in range(R):  # unsigned, because Numba checks signed indices for negative ones
                row, to = np.uint64(drawn[r]), np.uint64(r * panel)
                if neighbours >= 0:
                    column = np.uint64(neighbours + at - place)
                    for j in range(np.uint64(width)):
                        E[to + j] = cumulants[row, column + j]
                else:
                    column = np.uint64(at)
                    for j in range(np.uint64(width)):
                        E[to + j] = cumulants[row, np.uint64(cumulant[column + j])]
            if few:
                _copy(
                    panel_of_weights[0], panel_of_weights[1], panel, before, 0, panel, size, panel
                )
                add_product(
                    panel_of_weights,
                    (between, ZERO, ONE, wide),
                    (before, ZERO, panel),
                    size,
                    width,
                    size,
                )
            else:
                add_product(
                    (E, ZERO, panel), (Z, ZERO, ONE, tall), panel_of_weights, R, width, size
                )
            add_product(panel_of_weights, (Y, ZERO, ONE, wide), (E, ZERO, panel), size, width, R)
            if width < panel:
                _copy(W, 0, panel, flat, at * size, width, size, width)


@njit(nogil=True)
def _lanes(array):
    """Return how many numbers of an array a vector has."""
    return BYTES // array.itemsize


@njit(nogil=True)
def _copy(source, source_at, source_row, target, target_at, target_row, rows, columns):
    """Copy a matrix between flat arrays, from positions and with distances of rows."""
    for i in range(rows):
        a, b = np.uint64(source_at + i * source_row), np.uint64(target_at + i * target_row)
        for j in range(np.uint64(columns)):
            target[b + j] = source[a + j]


@njit(nogil=True)
def _gather(x, x_next, continuations, rows, w, scale, source, Y, wide, Z, tall):
    """Write the weighed features of drawn rows, and their differences, transposed."""
    size, line = x.shape[1], 64 // x.itemsize
    for r in range(len(rows)):
        row, weight = rows[r], w[r]
        if r + 1 < len(rows):
            for j in range(0, size, line):
                prefetch(x, rows[r + 1] * size + j)
                prefetch(x_next, rows[r + 1] * size + j)
        gamma = scale * continuations[row, source]
        for j in range(x.shape[1]):
            level = x[row, j]
            Y[r * wide + j] = level * weight
            Z[j * tall + r] = gamma * x_next[row, j] - level


@njit(nogil=True)
def _join(Y, wide, Z, tall, size, R, k, between):
    """Turn weighed features into the rows of Y in the module's text, for updates of k rows each.

    Neighbouring stretches of rows are joined, then neighbours of these, until there is one. If the
    rows A come before the rows B, what A changes is in the errors of B: Y_A + Y_B Z_B Y_A.
    """
    length = k
    while length < R:
        for start in range(0, R - length, 2 * length):
            middle = start + length
            more = min(length, R - middle)
            between[: length * tall] = 0.0
            add_product(
                (between, ZERO, tall), (Y, start * wide, wide, ONE), (Z, middle, tall),
                length, more, size,
            )  # fmt: skip
            add_product(
                (Y, start * wide, wide), (between, ZERO, tall, ONE), (Y, middle * wide, wide),
                length, size, more,
            )  # fmt: skip
        length *= 2


@njit(cache=True, nogil=True)
def _predict(flat, x, starts, first, last, room, out):
    """Write the values of features x, flat [m, size], at the places of some blocks."""
    m, panel, size = len(out), 3 * _lanes(flat), len(flat) // starts[-1]
    W, values = room[: size * panel], room[size * panel :]
    for b in range(first, last):
        at, width = starts[b], starts[b + 1] - starts[b]
        panel_of_weights = (flat, at * size, panel)
        if width < panel:
            _copy(flat, at * size, width, W, 0, panel, size, width)
            panel_of_weights = (W, ZERO, panel)
        values[:] = 0.0
        add_product((values, ZERO, panel), (x, ZERO, size, ONE), panel_of_weights, m, width, size)
        for i in range(m):
            for j in range(width):
                out[i, at + j] = values[i * panel + j]
