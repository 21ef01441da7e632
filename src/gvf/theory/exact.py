"""Exact moments of the library's own draws and weights: every mini-batch, with its probability.

A :class:`gvf.RatioRing` turns a number u, uniform in [0, 1), into a slot; which u give which slot
is found by bisection, to the last bit, so the probabilities are those of the ring as it is, not
those that it should have. With them, sums over all batches of k give mean and variance of

    X = sum over the batch of w_i Delta_i

for any correction: its masses are in the ring, and its own kernel gives the weights w. The
neighbour :mod:`gvf.theory.moments` has what they should be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf.correction import Correction
from gvf.sampling import RatioRing

BEFORE = (3.7, 0.2)
"""Inputs of transitions that have left the window: a ring must not draw them, nor count them."""


class _Chosen(np.random.Generator):
    """A generator whose uniform numbers are chosen beforehand."""

    def __init__(self, uniforms: Array) -> None:
        super().__init__(np.random.PCG64(0))
        self.uniforms = uniforms

    def random(self, *_: Any, **__: Any) -> Any:
        return self.uniforms.copy()


def draw_probabilities(
    masses: Array, capacity: int, *, ring: Callable[..., RatioRing] = RatioRing
) -> tuple[Array, Array]:
    """Which of m streamed transitions a ring draws, with what probability, and its mean mass.

    Args:
        masses: of G streams, oldest first, [G, m]; the ring sees all, and keeps the last.
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
    streams, m = masses.shape
    kept = _ring_of(masses, capacity, ring)
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


def _ring_of(numbers: Array, capacity: int, ring: Callable[..., RatioRing]) -> RatioRing:
    """A ring that has seen numbers [G, m]."""
    kept = ring(capacity, questions=len(numbers), seed=0)
    kept.extend(numbers.T)
    return kept


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
    window without mass gives the update 0.

    Args:
        correction: draws and weighs.
        ratios: [G, n], oldest first; for a correction with a trace, all of its inputs [2, G, n].
        updates: [G, n, d].
        k: the size of a batch; all n^k batches are summed over.
        ring: makes what draws by mass, and what knows the means.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.theory.exact import moments
        >>> ratios, updates = np.array([[1.0, 3.0]]), np.array([[[2.0], [4.0]]])
        >>> found = moments(gvf.IR(), ratios, updates, k=2)
        >>> found.mean.round(12), found.variance.round(12)
        (array([[3.5]]), array([0.375]))
    """
    windows, n = ratios.shape[-2:]
    inputs = ratios.reshape(-1, windows, n)
    stream = np.concatenate([np.broadcast_to(BEFORE, (*inputs.shape[:2], 2)), inputs], axis=2)
    old = np.ones((windows, 2, updates.shape[2]))
    update, m = np.concatenate([old, updates], axis=1).reshape(-1, updates.shape[2]), n + 2
    rows = stream.reshape(len(inputs), -1)
    p = correction.masses(rows)
    masses = p.reshape(windows, m)
    means = np.ones((windows, len(inputs) + 1))
    means[:, :-1] = np.transpose([_ring_of(column, n, ring).mean for column in stream])
    if correction.draw.whole:
        batches, chance = np.arange(m - n, m)[None], np.ones((windows, 1))
    else:
        one = np.zeros((windows, m))
        if correction.draw.uniform:
            one[:, m - n :] = 1.0 / n
        elif (full := masses[:, m - n :].any(axis=1)).any():
            one[full], means[full, -1] = draw_probabilities(masses[full], n, ring=ring)
        batches = np.indices((m,) * k).reshape(k, -1).T
        chance = np.prod(one[:, batches], axis=2)
    # A batch that is never drawn need not have weights.
    window, which = np.nonzero(chance)
    drawn = m * window[:, None] + batches[which]
    w = correction.weigh_rows(rows, p, drawn, means[window])
    x = (w[:, :, None] * update[drawn]).sum(axis=1)
    chance = chance[window, which]
    mean, second = np.zeros((windows, updates.shape[2])), np.zeros(windows)
    np.add.at(mean, window, chance[:, None] * x)
    np.add.at(second, window, chance * (x**2).sum(axis=1))
    return Moments(mean, second)
