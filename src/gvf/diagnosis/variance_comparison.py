"""The exact comparison of IS and BC-IR on one window, and Theorems 3.3 and 3.4.

With ``g_i = |Delta_i|^2`` and means and covariances over the window (r is the mean ratio),

    V(IS | B) - V(BC-IR | B) = Cov(rho, rho g) / k
                             = (mean of (rho - r)^2 g  +  r Cov(rho, g)) / k.

The first term is never negative, so BC-IR can have more variance only if larger ratios go with
shorter updates. Theorem 3.3: BC-IR has less variance if, for some c > 0, ``rho g > c`` wherever
``rho >= r`` and ``rho g < c`` wherever ``rho < r`` (and not all ratios are equal). Theorem 3.4:
BC-IR has no more variance if rho and g are uncorrelated. Neither condition is necessary; the
difference itself is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gvf.common.arrays import Floats
from gvf.diagnosis.moments import Moments

_ROUNDING = 1e-9


@dataclass(frozen=True)
class VarianceComparison:
    """The variances of IS and BC-IR given the window, and the conditions of the theorems.

    Attributes:
        reweighted: the moments of IS.
        resampled: the moments of BC-IR.
        difference: V(IS) - V(BC-IR) = `spread` + `dependence`; positive if BC-IR is better.
        spread: the mean of (rho - r)^2 g, divided by k; never negative.
        dependence: r Cov(rho, g), divided by k; 0 under the condition of Theorem 3.4.
        exceptions: the smallest share of transitions to remove so that the condition of Theorem 3.3
            holds (with the same mean ratio); 0 if it holds.
        c: the constant of Theorem 3.3 with the fewest exceptions.
        correlation: the correlation of rho and g; 0 under the condition of Theorem 3.4, and if one
            of them is constant.
        chance: the standard deviation of this correlation if ratios and lengths were paired at
            random, 1 / sqrt(n - 1).

    Example:
        >>> import gvf
        >>> comparison = gvf.diagnose([0.5, 1.5], [1.0, 1.0], batch_size=1).comparison
        >>> comparison.difference, comparison.theorem_3_3, comparison.theorem_3_4
        (0.25, True, True)
    """

    reweighted: Moments
    resampled: Moments
    difference: float
    spread: float
    dependence: float
    exceptions: float
    c: float
    correlation: float
    chance: float

    @property
    def theorem_3_3(self) -> bool:
        """True if the condition of Theorem 3.3 holds."""
        return self.exceptions == 0.0

    @property
    def theorem_3_4(self) -> bool:
        """True if the condition of Theorem 3.4 holds, up to rounding."""
        return abs(self.correlation) <= _ROUNDING


def compare(
    reweighted: Moments,
    resampled: Moments,
    ratios: Floats,
    mean: float,
    squares: Floats,
    batch_size: int,
) -> VarianceComparison:
    """Compare on a window: ratios [n], their mean, and squared lengths of updates [n]."""
    s, n = ratios / mean, len(ratios)  # in units of the mean, so that squares do not overflow
    spread, dependence = (float(part) for part in difference_of_variances(s, squares))
    scale = mean * mean / batch_size
    deviations = float(s.std()) * float(squares.std())
    exceptions, c = separation(ratios, mean, squares)
    return VarianceComparison(
        reweighted=reweighted,
        resampled=resampled,
        difference=scale * spread + scale * dependence,
        spread=scale * spread,
        dependence=scale * dependence,
        exceptions=exceptions,
        c=c,
        correlation=dependence / deviations if deviations > 0.0 else 0.0,
        chance=1.0 / math.sqrt(n - 1) if n > 1 else math.nan,
    )


def difference_of_variances(ratios: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """Compute the two parts of k (V(IS | B) - V(BC-IR | B)), each [...]: spread and dependence.

    Args:
        ratios: the ratios of windows, [..., n].
        squares: the squared lengths g of the updates, [..., n].

    Example:
        >>> import numpy as np
        >>> from gvf.diagnosis.variance_comparison import difference_of_variances
        >>> spread, dependence = difference_of_variances(np.array([0.5, 1.5]), np.array([1.0, 3.0]))
        >>> float(spread), float(dependence)
        (0.5, 0.5)
    """
    mean = ratios.mean(axis=-1)
    spread = np.mean((ratios - mean[..., None]) ** 2 * squares, axis=-1)
    return spread, mean * covariance(ratios, squares)


def covariance(x: Floats, y: Floats) -> Floats:
    """Compute Cov_B(x, y) [...] over windows of numbers [..., n], dividing by n."""
    centred = (z - z.mean(axis=-1, keepdims=True) for z in (x, y))
    return np.mean(np.multiply(*centred), axis=-1)


def separation(ratios: Floats, mean: float, squares: Floats) -> tuple[float, float]:
    """Return the share of transitions on the wrong side of the best c of Theorem 3.3, and c.

    A transition is on the wrong side if ``rho g >= c`` and ``rho < r``, or ``rho g <= c`` and
    ``rho >= r``.
    """
    products, n = ratios * squares, len(ratios)
    order = np.argsort(products)
    ordered, above = products[order], (ratios >= mean)[order]
    # A cut at j has j products below c and the others above it.
    wrong = np.empty(n + 1, np.int64)
    wrong[0] = n - np.count_nonzero(above)
    wrong[1:] = wrong[0] + np.cumsum(np.where(above, 1, -1))
    edges = np.concatenate([[0.0], ordered, [2.0 * ordered[-1] + 1.0]])
    possible = np.flatnonzero(edges[1:] > edges[:-1])  # c lies strictly between, and above 0
    cut = int(possible[np.argmin(wrong[possible])])
    return float(wrong[cut]) / n, float(edges[cut] + edges[cut + 1]) / 2.0
