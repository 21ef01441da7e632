"""Exact moments of the library's own draws and weights: every mini-batch, with its probability.

A :class:`gvf.RatioRing` turns a number u, uniform in [0, 1), into a slot. Bisection finds, to the
last bit, which u give which slot. So these are the probabilities that the ring has, not those that
it should have. With them, sums over all batches of k give mean and variance of

    X = sum over the batch of w_i Delta_i

for any correction: the ring holds its masses, and its own kernel gives the weights w. The
predictions for these moments are in :mod:`gvf_lab.theory.numbers.prediction`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf import RatioRing
from gvf.common.arrays import Floats
from gvf.corrections import Correction

MakeRing = Callable[..., RatioRing]
EVICTED_INPUTS = (3.7, 0.2)
"""Inputs of transitions that have left the window: a ring must neither draw nor count them."""


class _ChosenUniforms(np.random.Generator):
    """A generator whose uniform numbers are chosen beforehand."""

    def __init__(self, uniforms: Floats) -> None:
        super().__init__(np.random.PCG64(0))
        self.uniforms = uniforms

    def random(self, *_: Any, **__: Any) -> Any:
        return self.uniforms.copy()


def draw_probabilities(
    masses: Floats, capacity: int, *, ring: MakeRing = RatioRing
) -> tuple[Floats, Floats]:
    """Find the probability with which a ring draws each of m streamed transitions.

    Args:
        masses: the masses of G streams, oldest first, [G, m]; the ring sees all and keeps the last.
        capacity: the length of the ring, at most m.
        ring: the function that makes the ring.

    Returns:
        The probabilities [G, m], and the ring's mean masses [G].

    Example:
        >>> import numpy as np
        >>> from gvf_lab.theory.numbers.enumeration import draw_probabilities
        >>> p, mean = draw_probabilities(np.array([[5.0, 1.0, 3.0]]), 2)
        >>> p.round(12), mean
        (array([[0.  , 0.25, 0.75]]), array([2.]))
    """
    streams, m = masses.shape
    kept = _ring_of(masses, capacity, ring)
    # The row grows with u. Bisection finds the largest u for which the ring draws a row up to j.
    low, high = np.zeros((streams, m - 1)), np.ones((streams, m - 1))
    rows = np.arange(m - 1)
    for _ in range(54):
        middle = 0.5 * (low + high)
        slots = kept.sample(m - 1, rng=_ChosenUniforms(middle))
        reached = m - 1 - (m - 1 - slots) % kept.capacity > rows
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    edges = np.hstack([np.zeros((streams, 1)), low, np.ones((streams, 1))])
    return np.diff(edges, axis=1), kept.mean


def _ring_of(numbers: Floats, capacity: int, ring: MakeRing) -> RatioRing:
    """Make a ring that has seen numbers [G, m]."""
    kept = ring(capacity, questions=len(numbers), seed=0)
    kept.extend(numbers.T)
    return kept


@dataclass(frozen=True)
class EnumeratedMoments:
    """The first two moments of the update X of G windows, summed over all batches.

    Attributes:
        mean: E[X | B], [G, d].
        second: E[|X|^2 | B], [G].
    """

    mean: Floats
    second: Floats

    @property
    def variance(self) -> Floats:
        """The variance V(X | B), the trace of the covariance, [G]."""
        return self.second - (self.mean**2).sum(axis=1)


def enumerated_moments(
    correction: Correction,
    ratios: Floats,
    updates: Floats,
    k: int = 2,
    *,
    ring: MakeRing = RatioRing,
) -> EnumeratedMoments:
    """Sum a correction's update over all batches of k, in each of G windows.

    The rings have also seen older transitions, which have left. A window without mass gives the
    update 0.

    Args:
        correction: the correction that draws and weighs.
        ratios: the ratios, oldest first, [G, n]; for a correction with a trace, all
            inputs [2, G, n].
        updates: the updates, [G, n, d].
        k: the size of a batch; the sums are over all n^k batches.
        ring: the function that makes a ring, which draws by mass and computes the means.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf_lab.theory.numbers.enumeration import enumerated_moments
        >>> ratios, updates = np.array([[1.0, 3.0]]), np.array([[[2.0], [4.0]]])
        >>> found = enumerated_moments(gvf.corrections.IR(), ratios, updates, k=2)
        >>> found.mean.round(12), found.variance.round(12)
        (array([[3.5]]), array([0.375]))
    """
    windows, n = ratios.shape[-2:]
    inputs = ratios.reshape(-1, windows, n)
    evicted = np.broadcast_to(EVICTED_INPUTS, (*inputs.shape[:2], 2))
    stream, m = np.concatenate([evicted, inputs], axis=2), n + 2
    old = np.ones((windows, 2, updates.shape[2]))
    update = np.concatenate([old, updates], axis=1).reshape(-1, updates.shape[2])
    rows = stream.reshape(len(inputs), -1)
    p = correction.masses(rows)
    means = np.ones((windows, len(inputs) + 1))
    means[:, :-1] = np.transpose([_ring_of(column, n, ring).mean for column in stream])
    batches, chance = _batches(correction, p.reshape(windows, m), n, k, means, ring)
    # Weights are computed only for batches that can be drawn.
    window, which = np.nonzero(chance)
    drawn = m * window[:, None] + batches[which]
    w = correction.weigh_rows(rows, p, drawn, means[window])
    x = (w[:, :, None] * update[drawn]).sum(axis=1)
    chance = chance[window, which]
    mean, second = np.zeros((windows, updates.shape[2])), np.zeros(windows)
    np.add.at(mean, window, chance[:, None] * x)
    np.add.at(second, window, chance * (x**2).sum(axis=1))
    return EnumeratedMoments(mean, second)


def _batches(
    correction: Correction, masses: Floats, n: int, k: int, means: Floats, ring: MakeRing
) -> tuple[NDArray[np.int64], Floats]:
    """Return all batches of rows [batches, k] and their probabilities [G, batches].

    The masses [G, m] are those of streams whose last n rows are the window. The function writes the
    mean mass of each window that has mass into the last column of `means`.
    """
    windows, m = masses.shape
    if correction.draw.whole:
        return np.arange(m - n, m)[None], np.ones((windows, 1))
    chance = np.zeros((windows, m))
    if correction.draw.uniform:
        chance[:, m - n :] = 1.0 / n
    elif (full := masses[:, m - n :].any(axis=1)).any():
        chance[full], means[full, -1] = draw_probabilities(masses[full], n, ring=ring)
    batches = np.indices((m,) * k).reshape(k, -1).T
    return batches, np.prod(chance[:, batches], axis=2)
