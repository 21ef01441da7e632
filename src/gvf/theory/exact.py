"""Exact moments of the library's own draws and weights: every mini-batch, with its probability.

A :class:`gvf.RatioRing` turns a number u, uniform in [0, 1), into a slot; which u give which slot
is found by bisection, to the last bit, so the probabilities are those of the ring as it is, not
those that it should have. With them, sums over all batches of k give mean and variance of

    X = sum over the batch of w_i Delta_i

for any correction, whose own weigher gives the w. The neighbour :mod:`gvf.theory.moments` has what
they should be.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gvf.correction import Correction
from gvf.sampling import RatioRing
from gvf.study.loop import as_argument, weigh_rows
from gvf.theory.row import Array

BEFORE = (3.7, 0.2)
"""Ratios of transitions that have left the window: a ring must not draw them, nor count them."""


class _Chosen(np.random.Generator):
    """A generator whose uniform numbers are chosen beforehand."""

    def __init__(self, uniforms: Array) -> None:
        super().__init__(np.random.PCG64(0))
        self.uniforms = uniforms

    def random(self, *_: Any, **__: Any) -> Any:
        return self.uniforms.copy()


def draw_probabilities(
    ratios: Array, capacity: int, *, ring: Callable[..., RatioRing] = RatioRing
) -> tuple[Array, Array]:
    """Which of m streamed transitions a ring draws, with what probability, and its mean ratio.

    Args:
        ratios: of G streams, oldest first, [G, m]; the ring sees all, and keeps the last.
        capacity: of the ring, at most m.
        ring: makes it.

    Returns:
        Probabilities [G, m] and means [G].

    Example:
        >>> import numpy as np
        >>> from gvf.theory.exact import draw_probabilities
        >>> p, mean = draw_probabilities(np.array([[5.0, 1.0, 3.0]]), 2)
        >>> p.round(12), mean
        (array([[0.  , 0.25, 0.75]]), array([2.]))
    """
    streams, m = ratios.shape
    kept = ring(capacity, questions=streams, seed=0)
    kept.extend(ratios.T)
    # u -> row grows: below which u does the ring answer with one of the rows 0 ... j?
    low, high = np.zeros((streams, m - 1)), np.ones((streams, m - 1))
    rows = np.arange(m - 1)
    for _ in range(54):
        middle = 0.5 * (low + high)
        slots = kept.sample(m - 1, rng=_Chosen(middle))
        reached = m - 1 - (m - 1 - slots) % kept.capacity > rows
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    edges = np.hstack([np.zeros((streams, 1)), low, np.ones((streams, 1))])
    return np.diff(edges, axis=1), kept.mean


def weigh(correction: Correction, ratio: Array, rows: Array, mean: Array) -> Array:
    """A correction's weights [B, k] of batches of rows [B, k], each from a window of given mean.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.theory.exact import weigh
        >>> ratio, rows = np.array([1.0, 3.0]), np.array([[0, 1], [1, 1]])
        >>> weigh(gvf.BCIR(), ratio, rows, np.array([2.0, 4.0]))
        array([[1., 1.],
               [2., 2.]])
    """
    compiled, signature = weigh_rows()
    kernel, parameter = as_argument(correction.kernel, signature), correction.parameter
    # The compiled function takes one mean: batches of equal means go together.
    order = np.argsort(mean, kind="stable")
    edges = np.flatnonzero(np.diff(mean[order], prepend=np.nan, append=np.nan))
    sorted_rows, w = rows[order], np.empty(rows.shape)
    for start, stop in itertools.pairwise(edges.tolist()):
        batch = sorted_rows[start:stop]
        compiled(kernel, ratio, batch, float(mean[order[start]]), parameter, w[start:stop])
    out = np.empty_like(w)
    out[order] = w
    return out


@dataclass(frozen=True)
class Moments:
    """Of the update X of G windows.

    Attributes:
        mean: E[X | B], [G, d].
        second: E[|X|^2 | B], [G].
    """

    mean: Array
    second: Array

    @property
    def variance(self) -> Array:
        """V(X | B), the trace of the covariance, [G]."""
        return self.second - (self.mean**2).sum(axis=1)


def moments(
    correction: Correction,
    ratios: Array,
    updates: Array,
    k: int = 2,
    *,
    ring: Callable[..., RatioRing] = RatioRing,
) -> Moments:
    """Exact moments of a correction's update, given the window, for G windows.

    All batches of k are enumerated. The rings have seen older transitions, which have left. A
    window without mass gives the update 0 where draws are by ratio.

    Args:
        correction: draws and weighs.
        ratios: [G, n], oldest first.
        updates: [G, n, d].
        k: the size of a batch; all n^k batches are summed over.
        ring: makes what draws by ratio.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.theory.exact import moments
        >>> ratios, updates = np.array([[1.0, 3.0]]), np.array([[[2.0], [4.0]]])
        >>> found = moments(gvf.IR(), ratios, updates, k=2)
        >>> found.mean.round(12), found.variance.round(12)
        (array([[3.5]]), array([0.375]))
    """
    windows, n = ratios.shape
    old = np.tile(BEFORE, (windows, 1))
    stream = np.hstack([old, ratios])
    update = np.concatenate([np.ones((*old.shape, updates.shape[2])), updates], axis=1)
    m = stream.shape[1]
    full = ratios.sum(axis=1) > 0.0
    p, mean = np.zeros((windows, m)), ratios.mean(axis=1)
    if correction.draw == "ratio":
        p[full], mean[full] = draw_probabilities(stream[full], n, ring=ring)
    else:
        p[:, m - n :] = 1.0 / n
    if correction.draw == "window":
        batches, chance = np.arange(m - n, m)[None], np.ones((windows, 1))
    else:
        batches = np.indices((m,) * k).reshape(k, -1).T
        chance = np.prod(p[:, batches], axis=2)
    rows = (np.arange(windows)[:, None, None] * m + batches).reshape(-1, batches.shape[1])
    w = weigh(correction, stream.ravel(), rows, np.repeat(mean, len(batches)))
    x = (w[:, :, None] * update.reshape(windows * m, -1)[rows]).sum(axis=1)
    x = x.reshape(windows, len(batches), -1)
    return Moments(
        mean=(chance[:, :, None] * x).sum(axis=1),
        second=(chance * (x**2).sum(axis=2)).sum(axis=1),
    )
