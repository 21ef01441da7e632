"""Closed forms: what one mini-batch's update is on average, and how it varies, given the window.

With ratios rho_i and updates Delta_i of a window of n, r the mean ratio, mu_B the mean of
rho_i Delta_i, g_i = |Delta_i|^2, w_i = rho_i / sum_j rho_j, and k independent draws (the paper's
variance lemma, where V is the trace of the covariance):

    V(IS | B)      = (mean of rho^2 g - |mu_B|^2) / k
    V(BC-IR | B)   = (r * mean of rho g - |mu_B|^2) / k
    V(IR | B)      = (sum of w g - |sum of w Delta|^2) / k
    V(V-trace | B) = (mean of c^2 g - |mean of c Delta|^2) / k,    c = min(rho, clip)

Functions take ratios [..., n] and updates [..., n, d], and give one number, or one vector [d], for
each window. Windows need no mass: without, nothing is drawn by ratio, and the update is 0.
"""

from __future__ import annotations

import numpy as np

from gvf.theory.row import Array


def squared_norms(updates: Array) -> Array:
    """The squared lengths g = |Delta|^2 [...] of updates [..., d]."""
    return (updates**2).sum(axis=-1)


def mean_ratio_times_update(ratios: Array, updates: Array) -> Array:
    """The mean mu_B [..., d] of rho Delta: what IS and BC-IR are on average, given the window."""
    return (ratios[..., None] * updates).mean(axis=-2)


def weighted_mean(ratios: Array, updates: Array) -> Array:
    """Sum of w Delta [..., d]: WIS-Optimal, and what IR is on average, given the window."""
    return (shares(ratios)[..., None] * updates).sum(axis=-2)


def shares(ratios: Array) -> Array:
    """The weights w = rho / sum of rho [..., n]; all 0 where the window has no mass."""
    total = ratios.sum(axis=-1, keepdims=True)
    return np.divide(ratios, total, out=np.zeros_like(ratios), where=total > 0.0)


def variance_of_is(ratios: Array, updates: Array, k: int) -> Array:
    """V(IS | B) [...].

    Example:
        >>> import numpy as np
        >>> from gvf.theory.moments import variance_of_is
        >>> float(variance_of_is(np.array([0.0, 2.0]), np.array([[1.0], [1.0]]), 1))
        1.0
    """
    second = (ratios**2 * squared_norms(updates)).mean(axis=-1)
    return (second - squared_norms(mean_ratio_times_update(ratios, updates))) / k


def variance_of_bcir(ratios: Array, updates: Array, k: int) -> Array:
    """V(BC-IR | B) [...]."""
    second = ratios.mean(axis=-1) * (ratios * squared_norms(updates)).mean(axis=-1)
    return (second - squared_norms(mean_ratio_times_update(ratios, updates))) / k


def variance_of_ir(ratios: Array, updates: Array, k: int) -> Array:
    """V(IR | B) [...]."""
    second = (shares(ratios) * squared_norms(updates)).sum(axis=-1)
    return (second - squared_norms(weighted_mean(ratios, updates))) / k


def variance_of_vtrace(ratios: Array, updates: Array, k: int, clip: float) -> Array:
    """V(V-trace | B) [...]."""
    return variance_of_is(np.minimum(ratios, clip), updates, k)


def bias_of_vtrace(ratios: Array, updates: Array, clip: float) -> Array:
    """The mean of (min(rho, clip) - rho) Delta [..., d]: V-trace's average less that of IS."""
    return mean_ratio_times_update(np.minimum(ratios, clip) - ratios, updates)


def is_minus_bcir(ratios: Array, updates: Array, k: int) -> Array:
    """V(IS | B) - V(BC-IR | B) = Cov_B(rho, rho g) / k [...], over the window (dividing by n)."""
    return covariance(ratios, ratios * squared_norms(updates)) / k


def covariance(x: Array, y: Array) -> Array:
    """Cov_B(x, y) [...] of numbers [..., n], dividing by n."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return (centred * y).mean(axis=-1)


def gap_of_theorem_3_3(ratios: Array, updates: Array) -> Array:
    """The least rho g where rho >= r, less the largest where rho < r [...].

    Positive exactly where the condition of Theorem 3.3 holds for some c: rho g below c for ratios
    below their mean, above c for the others.

    Example:
        >>> import numpy as np
        >>> from gvf.theory.moments import gap_of_theorem_3_3
        >>> float(gap_of_theorem_3_3(np.array([0.5, 1.5]), np.array([[1.0], [2.0]])))
        5.5
    """
    product = ratios * squared_norms(updates)
    above = ratios >= ratios.mean(axis=-1, keepdims=True)
    least = np.where(above, product, np.inf).min(axis=-1)
    return least - np.where(above, -np.inf, product).max(axis=-1)
