"""The Pareto index k-hat, which measures how heavy the tail of the ratios is.

The tail of a distribution resembles a generalised Pareto distribution, ``P(rho - u > y) = (1 +
k y / sigma)^(-1/k)``. Its moments of order 1/k and above do not exist, so for k above 1/2 the
ratios have no variance. As in Pareto-smoothed importance sampling (Vehtari et al. 2024), k is
fitted to the M = min(n/5, 3 sqrt(n)) largest ratios by the estimator of Zhang and Stephens (2009).
Averages over the window can be trusted if k-hat is below min(1 - 1/log10(n), 0.7).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FEWEST_EXCESSES = 5
"""The least number of ratios above the threshold u for an estimate."""


def trusted_up_to(n: int) -> float:
    """Return the largest k-hat for which averages over n ratios can be trusted."""
    return min(1.0 - 1.0 / math.log10(max(n, 10)), 0.7)


def tail_index(ratios: NDArray[np.float64]) -> float:
    """Estimate k-hat of ratios [n]; -inf if the largest are all equal, nan if they are too few.

    If the largest ratios are equal, the ratios are bounded and have reached the bound.
    """
    n = len(ratios)
    size = math.ceil(min(0.2 * n, 3.0 * math.sqrt(n)))
    if size < FEWEST_EXCESSES:
        return math.nan
    largest = np.sort(np.partition(ratios, n - size - 1)[n - size - 1 :])
    above = largest[1:][largest[1:] > largest[0]] - largest[0]
    if len(above) == 0 or (len(above) >= FEWEST_EXCESSES and np.ptp(above) <= 1e-12 * largest[-1]):
        return -math.inf
    return pareto_shape(above) if len(above) >= FEWEST_EXCESSES else math.nan


def pareto_shape(excesses: NDArray[np.float64]) -> float:
    """Estimate the shape k of a generalised Pareto distribution from a sorted sample [m] above 0.

    With theta = -k / sigma, theta determines k = mean log(1 - theta x). theta is averaged over a
    grid, weighted by its likelihood. The result is shrunk towards 1/2 with the weight of ten
    observations, as in Pareto-smoothed importance sampling, because small samples are noisy.
    """
    x = excesses / excesses[-1]
    m = len(x)
    points = 30 + int(math.sqrt(m))
    quartile = x[int(m / 4 + 0.5) - 1]
    theta = 1.0 + (1.0 - np.sqrt(points / (np.arange(points) + 0.5))) / (3.0 * quartile)
    theta[theta == 0.0] = 1e-9  # k = 0, an exponential tail, where the likelihood is a limit
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    likelihood = m * (np.log(-theta / k) - k - 1.0)
    weight = np.exp(likelihood - likelihood.max())
    mean_theta = float(weight @ theta / weight.sum())
    shape = float(np.log1p(-mean_theta * x).mean())
    return (m * shape + 10 * 0.5) / (m + 10)
