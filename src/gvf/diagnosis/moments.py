"""Mean and variance of one mini-batch update, given the window: the paper's variance lemma.

A correction that draws slot i with probability p_i, k times independently, and weighs each draw by
a_i / k has, with ``g_i = |Delta_i|^2``,

    E[X | B] = sum_i p_i a_i Delta_i,        V(X | B) = (1/k) (sum_i p_i a_i^2 g_i - |E[X | B]|^2).

With r the mean ratio: IS has p = 1/n and a = rho; V-trace a = min(rho, clip); BC-IR p = rho / (n r)
and a = r; IR a = 1. So V(IR) = V(BC-IR) / r^2. The weights of WIS-Minibatch depend on the batch:
it is simulated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gvf.correction import BCIR, IR, IS, Correction, VTrace, WISMinibatch
from gvf.diagnosis.updates import Updates, squared_distances, weighted_sum

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Mean and variance of a correction's mini-batch update, over draws from the given window.

    Attributes:
        correction: which.
        variance: ``E|X - E X|^2`` given the window, the sum of all components' variances.
        error: the standard error of `variance` where it is simulated; 0 where it is exact.
        length: ``|E X|``, the length of the expected update.
        bias: the length of the bias. IS and BC-IR have none. V-trace: the distance of its
            expected update from that of IS. WIS-Minibatch: from that of WIS-Optimal, to which it
            tends as k grows. IR: a plug-in estimate of its bias over windows, which falls as 1/n.

    Example:
        >>> import gvf
        >>> gvf.diagnose([0.5, 1.5], [1.0, 1.0], batch_size=1).moments["IS"]
        Moments(correction=IS(), variance=0.25, error=0.0, length=1.0, bias=0.0)
    """

    correction: Correction
    variance: float
    error: float
    length: float
    bias: float


def all_moments(
    ratios: Floats,
    mean: float,
    updates: Updates,
    dimensions: int,
    squares: Floats,
    *,
    batch_size: int,
    clips: Sequence[float],
    batches: int,
    rng: np.random.Generator,
) -> tuple[dict[str, Moments], float]:
    """Moments by name, and after how many windows the bias of IR outweighs chance.

    ``squares`` [n] are the squared lengths of the updates.
    """
    # In units of the mean ratio, so that large ones do not overflow when squared.
    n, rho = len(ratios), ratios / mean
    w = rho / n
    centre, second = (weighted_sum(*updates, dimensions, weights) for weights in (w, w * w))
    bias, windows = _bias_of_ir(w, squares, centre, second)

    def exact(
        correction: Correction, p: Floats, a: Floats, mean_update: Floats, unit: float, bias: float
    ) -> Moments:
        moment = float(np.sum(p * a * a * squares)) - _product(mean_update, mean_update)
        return Moments(
            correction,
            variance=unit * unit * max(moment, 0.0) / batch_size,
            error=0.0,
            length=unit * _length(mean_update),
            bias=bias,
        )

    evenly, ones = np.full(n, 1.0 / n), np.ones(n)
    found = [
        exact(IS(), evenly, rho, centre, mean, 0.0),
        exact(BCIR(), w, ones, centre, mean, 0.0),
        exact(IR(), w, ones, centre, 1.0, bias),
    ]
    for clip in clips:
        clipped = np.minimum(ratios, clip) / mean
        expected = weighted_sum(*updates, dimensions, clipped / n)
        off = mean * _length(expected - centre)
        found.append(exact(VTrace(float(clip)), evenly, clipped, expected, mean, off))
    found.append(_simulated(ratios, updates, dimensions, centre, batch_size, batches, rng))
    return {moments.correction.name: moments for moments in found}, windows


def _bias_of_ir(w: Floats, squares: Floats, centre: Floats, second: Floats) -> tuple[float, float]:
    """The length of IR's plug-in bias over windows, and when it outweighs chance.

    To first order in 1/n the expected update X of IR, ``sum w_i Delta_i``, has the bias b =
    ``-sum w_i^2 (Delta_i - X)`` and the variance s^2 = ``sum w_i^2 |Delta_i - X|^2`` over windows
    of independent transitions. The mean over m of them is off by chance s / sqrt(m), and by b: the
    two are equal after s^2 / |b|^2 windows, which is never less than the effective sample size.
    """
    shares = _product(w, w)
    bias = _length(second - shares * centre)
    chance = _product(w * w, squares) + _product(centre, shares * centre - 2.0 * second)
    if bias <= 1e-9 * math.sqrt(shares * max(chance, 0.0)):
        return bias, math.inf  # nothing but rounding
    return bias, chance / bias / bias


def _simulated(
    ratios: Floats,
    updates: Updates,
    dimensions: int,
    centre: Floats,
    batch_size: int,
    batches: int,
    rng: np.random.Generator,
) -> Moments:
    """WIS-Minibatch; a batch without mass is an update of 0."""
    slots = rng.integers(len(ratios), size=(batches, batch_size))
    drawn = ratios[slots]
    mass = drawn.sum(axis=1, keepdims=True)
    w = np.divide(drawn, mass, out=np.zeros_like(drawn), where=mass > 0.0)
    total = np.bincount(slots.ravel(), w.ravel(), minlength=len(ratios))
    mean_update = weighted_sum(*updates, dimensions, total / batches)
    distances = squared_distances(*updates, dimensions, slots, w, mean_update)
    variance = float(distances.sum()) / (batches - 1)
    error = float(distances.std(ddof=1)) / math.sqrt(batches)
    # A mean over batches is longer than the true one, by variance / batches in the square.
    length, bias = (
        math.sqrt(max(_product(v, v) - variance / batches, 0.0))
        for v in (mean_update, mean_update - centre)
    )
    return Moments(WISMinibatch(), variance, error, length, bias)


def _product(one: Floats, other: Floats) -> float:
    # Not one @ other, which wakes up BLAS's threads and waits for them.
    return float(np.sum(one * other))


def _length(vector: Floats) -> float:
    return math.sqrt(_product(vector, vector))
