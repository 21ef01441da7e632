"""Moments of an update, given the window: by the formula, and summed over all mini-batches.

The formula is the paper's variance lemma, for any correction. The library's diagnosis has it
(:func:`gvf.diagnose`) and tells users by it which correction to choose. Here it is applied to many
small windows.

A :class:`gvf.RatioRing` turns a number u, uniform in [0, 1), into a slot. Bisection finds, to the
last bit, which u give which slot. So these are the probabilities that the ring has, not those that
it should have. With them, sums over all batches of k give mean and variance of

    X = sum over the batch of w_i Delta_i

for any correction: the ring holds its masses, and its own kernel gives the weights w.

Some windows are constructed to meet a theorem's condition. The size of an update is its squared
length g = |Delta|^2, and its direction is random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf import RatioRing
from gvf.common.arrays import Floats
from gvf.corrections import Correction
from gvf.kernels import covariance, law_of
from gvf_lab.study.base_study import seed_for


class PredictedMoments(NamedTuple):
    """Mean and variance of the update X of G windows, by the lemma."""

    mean: Floats
    """E[X | B], [G, d]."""
    variance: Floats
    """V(X | B), the trace of the covariance, [G]."""


def squared_norms(updates: Floats) -> Floats:
    """Return the squared lengths g = |Delta|^2 [...] of updates [..., d]."""
    return (updates**2).sum(axis=-1)


def predicted_moments(
    correction: Correction, ratios: Floats, updates: Floats, k: int = 1
) -> PredictedMoments:
    """Predict the mean and variance of a correction's update in each of G windows.

    If nothing can be drawn from a window, its update is 0.

    Args:
        correction: the correction; a row's weight must not depend on the rest of the batch.
        ratios: the ratios, [G, n].
        updates: the updates, [G, n, d].
        k: the size of a batch; the mean does not depend on it.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf_lab.theory.enumeration import predicted_moments
        >>> predicted_moments(
        ...     gvf.corrections.IS(), np.array([[0.0, 2.0]]), np.array([[[1.0], [1.0]]])
        ... )
        PredictedMoments(mean=array([[1.]]), variance=array([1.]))
    """
    law = law_of(correction, ratios[None], k)
    if not law.exact:
        raise ValueError(f"{correction.name} weighs by batch, and the lemma is about single rows")
    mean = (law.expected[:, :, None] * updates).sum(axis=1)
    variance = law.variance(squared_norms(updates), squared_norms(mean))
    return PredictedMoments(law.unit[:, None] * mean, law.unit**2 * variance)


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
        >>> from gvf_lab.theory.enumeration import draw_probabilities
        >>> p, mean = draw_probabilities(np.array([[5.0, 1.0, 3.0]]), 2)
        >>> p.round(12), mean
        (array([[0.  , 0.25, 0.75]]), array([2.]))
    """
    streams, m = masses.shape
    window_ring = _ring_of(masses, capacity, ring)
    # The row grows with u. Bisection finds the largest u for which the ring draws a row up to j.
    low, high = np.zeros((streams, m - 1)), np.ones((streams, m - 1))
    rows = np.arange(m - 1)
    for _ in range(54):
        middle = 0.5 * (low + high)
        slots = window_ring.sample(m - 1, rng=_ChosenUniforms(middle))
        reached = m - 1 - (m - 1 - slots) % window_ring.capacity > rows
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    edges = np.hstack([np.zeros((streams, 1)), low, np.ones((streams, 1))])
    return np.diff(edges, axis=1), window_ring.mean


def _ring_of(numbers: Floats, capacity: int, ring: MakeRing) -> RatioRing:
    """Make a ring that has seen numbers [G, m]."""
    window_ring = ring(capacity, questions=len(numbers), seed=0)
    window_ring.extend(numbers.T)
    return window_ring


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
        >>> from gvf_lab.theory.enumeration import enumerated_moments
        >>> ratios, updates = np.array([[1.0, 3.0]]), np.array([[[2.0], [4.0]]])
        >>> moments = enumerated_moments(gvf.corrections.IR(), ratios, updates, k=2)
        >>> moments.mean.round(12), moments.variance.round(12)
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


def random_windows(count: int, n: int, *, seed: int, purpose: str) -> tuple[Floats, Floats]:
    """Draw ratios [count, n], some of them 0 and some large, and updates [count, n, 3].

    Example:
        >>> from gvf_lab.theory.enumeration import random_windows
        >>> ratios, updates = random_windows(5, 6, seed=0, purpose="example")
        >>> ratios.shape, updates.shape, bool((ratios.max(axis=1) > 0).all())
        ((5, 6), (5, 6, 3), True)
    """
    rng = np.random.default_rng(seed_for(seed, n, "theory", purpose))
    ratios = rng.lognormal(-0.5, 1.0, (count, n))
    ratios[:, 1:] *= rng.random((count, n - 1)) > 0.15
    return ratios, rng.normal(size=(count, n, 3))


def with_sizes(vectors: Floats, squared: Floats) -> Floats:
    """Give vectors [..., n, d] these squared lengths [..., n], and keep their directions."""
    return vectors * np.sqrt(squared / squared_norms(vectors))[..., None]


def rising_sizes(ratios: Floats) -> Floats:
    """Return squared lengths that meet the condition of Theorem 3.3, with c = 1."""
    above = ratios >= ratios.mean(axis=1, keepdims=True)
    return np.where(above, 1.1, 0.9) / np.maximum(ratios, 0.05)


def uncorrelated_sizes(ratios: Floats, squared: Floats) -> Floats:
    """Return positive g [..., n] near those given, uncorrelated with the ratios of each window."""
    centred = ratios - ratios.mean(axis=1, keepdims=True)
    slope = covariance(ratios, squared) / centred.var(axis=1)
    squared = squared - slope[:, None] * centred
    return squared - np.minimum(squared.min(axis=1, keepdims=True), 0.0) + 0.01
