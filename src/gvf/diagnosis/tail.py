"""How heavy is the tail of the ratios? The Pareto index k-hat.

Far out, a distribution looks like a generalised Pareto one, ``P(rho - u > y) = (1 + k y /
sigma)^(-1/k)``: moments of order 1/k and above do not exist, so with k above 1/2 the ratios have no
variance. As in Pareto-smoothed importance sampling (Vehtari et al. 2024) k is fitted to the M =
min(n/5, 3 sqrt(n)) largest ratios, by the estimator of Zhang and Stephens (2009), and averages over
the window are to be trusted where k-hat is below min(1 - 1/log10(n), 0.7).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

LEAST = 5
"""Fewer ratios above the threshold u tell nothing of a tail."""


def trusted_up_to(n: int) -> float:
    """The k-hat up to which averages over n ratios are to be trusted."""
    return min(1.0 - 1.0 / math.log10(max(n, 10)), 0.7)


def tail_index(ratios: NDArray[np.float64]) -> float:
    """k-hat of ratios [n]; -inf where the largest are all the same, nan where they are too few.

    Equal largest ratios mean that they are bounded, and that the bound has been seen.
    """
    n = len(ratios)
    size = math.ceil(min(0.2 * n, 3.0 * math.sqrt(n)))
    if size < LEAST:
        return math.nan
    largest = np.sort(np.partition(ratios, n - size - 1)[n - size - 1 :])
    above = largest[1:][largest[1:] > largest[0]] - largest[0]
    if len(above) == 0 or (len(above) >= LEAST and np.ptp(above) <= 1e-12 * largest[-1]):
        return -math.inf
    return pareto_shape(above) if len(above) >= LEAST else math.nan


def pareto_shape(excesses: NDArray[np.float64]) -> float:
    """The shape k of a generalised Pareto distribution, from a sorted sample [m] above 0.

    With theta = -k / sigma, k = mean log(1 - theta x) is known given theta, and theta is averaged
    over a grid, each with its likelihood. The result is drawn towards 1/2 with the weight of ten
    observations, as in Pareto-smoothed importance sampling, since short tails say little.
    """
    x = excesses / excesses[-1]
    m = len(x)
    points = 30 + int(math.sqrt(m))
    quartile = x[int(m / 4 + 0.5) - 1]
    theta = 1.0 + (1.0 - np.sqrt(points / (np.arange(points) + 0.5))) / (3.0 * quartile)
    theta[theta == 0.0] = 1e-9  # an exponential tail, k = 0: its likelihood is a limit
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    likelihood = m * (np.log(-theta / k) - k - 1.0)
    weight = np.exp(likelihood - likelihood.max())
    mean_theta = float(weight @ theta / weight.sum())
    shape = float(np.log1p(-mean_theta * x).mean())
    return (m * shape + 10 * 0.5) / (m + 10)
