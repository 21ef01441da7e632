r"""Plain TD with dense features: many steps as a few matrix products.

Take the R = U k rows drawn for U updates of a policy, in order, with features X, next features X'
and weights w (the step size included). Questions with the continuation gamma have errors
``delta = c + Z W`` with ``Z = gamma X' - X``, where W are the weights at the row's own step. These
are W_0 plus the updates of the steps before, so with N the products of rows with rows of earlier
steps, ``N_ij = Z_i . X_j w_j``,

    delta = c + Z W_0 + N delta,    W_U = W_0 + X^T diag(w) delta = W_0 + Y (c + Z W_0),

    Y = X^T diag(w) (I - N)^-1.

Y depends on no question, and :func:`_joint` finds it from the Y of fewer steps. All questions of a
policy and continuation then need two products with matrices of R rows. These are the numbers of one
step after the other, up to rounding. If there are fewer features than rows, ``(Y Z) W_0 + Y c``
needs fewer operations.

Products are PyTorch's if it is installed, because it adds a product to a matrix in place, and each
of our threads can work on groups of its own; otherwise NumPy's.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays
from gvf.horde.draws import Batch, Pool
from gvf.horde.layout import Ints, Layout
from gvf.horde.weights import Weights

_CACHE = 2**20
"""The number of bytes of weights that are worked on together, unless a group has more."""
_MOST_STEPS = 16


class Block(NamedTuple):
    """Groups with as many questions of one continuation each, at the same columns."""

    groups: Ints
    """The groups, [p]."""
    columns: slice
    """The columns in the matrices of the groups."""
    scale: Array
    """The factor of the continuation in each group, [p]."""
    source: Ints
    """The column of the continuation in each group, [p]."""
    cumulant: Ints
    """The cumulants of the columns in each group, [p, q]."""


class DenseEngine(Weights):
    """The weights of all questions, changed by matrix products.

    Args:
        layout: the layout of the questions.
        step_size: the step size, if it is constant.
        size: the number of features.
        dtype: the type of the weights.
        pool: the threads.
    """

    def __init__(
        self,
        layout: Layout,
        step_size: float,
        size: int,
        dtype: np.dtype[Any],
        pool: Pool,
    ) -> None:
        super().__init__(layout.starts, size, dtype)
        self._layout = layout
        self._step_size, self._pool = step_size, pool
        self._scratch = threading.local()
        self._blocks = _blocks(layout, size * dtype.itemsize, pool.threads)
        _divide_work(pool)

    @property
    def cuts(self) -> Ints:
        """The groups at which blocks begin or end; products in other blocks round differently."""
        return np.unique([[block.groups[0], block.groups[-1] + 1] for block in self._blocks])

    @staticmethod
    def best_chunk(layout: Layout, batch_size: int) -> int:
        """Return the number of steps that are best taken together.

        Products of rows with rows of earlier steps cost R / q of the other products, for q
        questions of a policy and continuation.
        """
        _, sizes = np.unique(
            np.stack([layout.group, layout.source, layout.scale]), axis=1, return_counts=True
        )
        return int(np.clip(np.median(sizes) // (2 * batch_size), 1, _MOST_STEPS))

    def learn(self, columns: Arrays, batch: Batch, step_size: NDArray[Any] | None) -> None:
        """Apply U updates; see :class:`gvf.horde.engine.Engine`."""
        updates, _, k = batch.rows.shape
        alpha = self._step_size if step_size is None else step_size[:, :, None]
        w = np.moveaxis(batch.w * alpha, 1, 0).reshape(-1, updates * k).astype(self.flat.dtype)
        rows = np.ascontiguousarray(np.moveaxis(batch.rows, 1, 0)).reshape(-1, updates * k)
        self._over_blocks(lambda block: self._learn(block, columns, rows, w[block.groups], k))

    def _over_blocks(self, work: Callable[[Block], None]) -> None:
        """Work on all blocks, some in each thread."""

        def some(first: int, last: int) -> None:
            with np.errstate(over="ignore", invalid="ignore"):  # of questions that diverge
                for block in self._blocks[first:last]:
                    work(block)

        if _torch() is None:
            some(0, len(self._blocks))  # NumPy has threads of its own
        else:
            self._pool.apart(len(self._blocks), some)

    def _learn(self, block: Block, columns: Arrays, rows: Ints, w: Array, k: int) -> None:
        """Apply the updates of a block's groups: rows int64[groups or 1, R], w [p, R]."""
        own = rows if len(rows) == 1 else rows[block.groups]
        shape, size = w.shape, columns["x"].shape[1]
        X, Z = self._room("X", (*shape, size)), self._room("Z", (*shape, size))
        E = self._room("E", (*shape, block.cumulant.shape[1]))
        signals = columns["cumulant"], columns["continuation"]
        _gather(columns["x"], columns["x_next"], *signals, own, *block[2:], X, Z, E)
        Y, W = _joint(X, Z, w, k), self._stacked(block)
        if size < shape[1]:
            change = product(product(Y, Z), W)
            add_product(change, Y, E)
            W += change
        else:
            add_product(E, Z, W)
            add_product(W, Y, E)

    def _room(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return an array to write into, in memory that is used again."""
        size, rooms = math.prod(shape), self._scratch.__dict__  # those of this thread
        if name not in rooms or len(rooms[name]) < size:
            rooms[name] = np.empty(size, self.flat.dtype)
        return rooms[name][:size].reshape(shape)

    def _stacked(self, block: Block) -> Array:
        """Return a view [p, size, q] of the weights of a block; its groups are neighbours."""
        first, last = self.starts[[block.groups[0], block.groups[-1] + 1]] * self.size
        matrix = self.matrices[block.groups[0]]
        return self.flat[first:last].reshape(-1, *matrix.shape)[:, :, block.columns]

    def predict(self, x: Array) -> Array:
        """Return the values of features [m, size] at all places, [m, G]."""
        out = np.empty((len(x), len(self._layout)), self.flat.dtype)
        x = np.require(x, requirements="W")  # arrays of Ray are not, and PyTorch would complain

        def work(block: Block) -> None:
            for g in block.groups:
                first = self.starts[g] + block.columns.start
                values = product(x, self.matrices[g][:, block.columns])
                out[:, first : first + values.shape[1]] = values

        self._over_blocks(work)
        return out


def _blocks(layout: Layout, column: int, threads: int) -> list[Block]:
    """Return the blocks of a layout, for columns of so many bytes: at least one for each thread.

    A block has neighbouring groups of the same form, as many as fit into the cache. If there are
    fewer groups than threads, their columns are divided.
    """
    forms = []
    parts = -(-threads // layout.groups)
    for g in range(layout.groups):
        places = np.arange(layout.starts[g], layout.starts[g + 1])
        kinds = np.stack([layout.scale[places], layout.source[places].astype(float)])
        cuts = np.flatnonzero((np.diff(kinds, axis=1) != 0).any(axis=0)) + 1
        shares = np.linspace(0, len(places), parts + 1).astype(int).tolist()
        forms.append(tuple(sorted({*cuts.tolist(), *shares})))
    blocks, first = [], 0
    while first < layout.groups:
        form, last = forms[first], first + 1
        most = max(1, min(_CACHE // (column * form[-1]), -(-layout.groups // threads)))
        while last < layout.groups and forms[last] == form and last - first < most:
            last += 1
        groups = np.arange(first, last)
        for a, b in pairwise(form):
            places = layout.starts[groups] + a
            every = places[:, None] + np.arange(b - a)
            blocks.append(
                Block(
                    groups,
                    slice(a, b),
                    layout.scale[places],
                    layout.source[places],
                    layout.cumulant[every],
                )
            )
        first = last
    return blocks


def _joint(X: Array, Z: Array, w: Array, k: int) -> Array:
    """Return Y [p, size, R] of the module's text, for updates of k rows each.

    Neighbouring stretches of rows are joined, then neighbours of these, until there is one. If the
    rows A come before the rows B, what A changes is in the errors of B: Y_A + Y_B Z_B Y_A.
    """
    Y, length = X * w[:, :, None], k
    while length < Y.shape[1]:
        for start in range(0, Y.shape[1] - length, 2 * length):
            middle, end = start + length, start + 2 * length
            passed_on = product(Y[:, start:middle], Z[:, middle:end].transpose(0, 2, 1))
            add_product(Y[:, start:middle], passed_on, Y[:, middle:end])
        length *= 2
    return Y.transpose(0, 2, 1)


@njit(cache=True, nogil=True)
def _gather(x, x_next, cumulants, continuations, rows, scale, source, cumulant, X, Z, E):
    """Write the features, their differences and the cumulants of drawn rows, group by group."""
    for g in range(len(X)):
        own = g if rows.shape[0] > 1 else 0
        for r in range(rows.shape[1]):
            row = rows[own, r]
            gamma = scale[g] * continuations[row, source[g]]
            for j in range(x.shape[1]):
                level = x[row, j]
                X[g, r, j] = level
                Z[g, r, j] = gamma * x_next[row, j] - level
            for j in range(cumulant.shape[1]):
                E[g, r, j] = cumulants[row, cumulant[g, j]]


def product(a: Array, b: Array) -> Array:
    """Return the product of matrices, or the products of matrices [p, ...]."""
    torch = _torch()
    if torch is None:
        return np.matmul(a, b)
    return torch.matmul(torch.from_numpy(a), torch.from_numpy(b)).numpy()


def add_product(out: Array, a: Array, b: Array) -> None:
    """Add the products of matrices [p, ...] to matrices, in place."""
    torch = _torch()
    if torch is None:
        out += np.matmul(a, b)
    else:
        torch.from_numpy(out).baddbmm_(torch.from_numpy(a), torch.from_numpy(b))


@cache
def _torch() -> Any:
    """Return the module torch if it is installed, else None."""
    return import_module("torch") if find_spec("torch") is not None else None


def _divide_work(pool: Pool) -> None:
    """Let each thread of the pool make its products alone; torch's other threads stay as they are.

    A thread's setting is also that of threads that start later, so the caller's is set again.
    """
    torch = _torch()
    if torch is not None:
        threads = torch.get_num_threads()
        pool.prepare(lambda: torch.set_num_threads(1))
        torch.set_num_threads(threads)
