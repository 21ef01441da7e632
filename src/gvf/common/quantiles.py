"""The tails of bootstrap intervals, wide enough for few units."""

from __future__ import annotations

import math
from statistics import NormalDist


def tail_of(runs: int, level: float = 0.95) -> float:
    """Return the share of bootstrap samples beyond either end of an interval.

    With few runs plain percentiles are too narrow, since the bootstrap divides by the number of
    runs and has no tails as wide as the t distribution's. The share Phi(-t sqrt(R / (R - 1)))
    corrects both. Here t is the quantile of the t distribution with R - 1 degrees of freedom.

    Args:
        runs: the number of independent units R, at least 2.
        level: the level of the interval.

    Example:
        >>> from gvf.common.quantiles import tail_of
        >>> round(tail_of(5), 5), round(tail_of(100), 4)
        (0.00098, 0.0231)
    """
    return NormalDist().cdf(-t_quantile(runs - 1, level) * math.sqrt(runs / (runs - 1)))


def t_quantile(degrees: int, level: float = 0.95) -> float:
    """Return the number of standard errors to which an interval by the t distribution reaches.

    It is an expansion around the normal quantile: exact to 1 % from 4 degrees of freedom on.

    Args:
        degrees: the degrees of freedom, at least 1.
        level: the level of the interval.

    Example:
        >>> from gvf.common.quantiles import t_quantile
        >>> round(t_quantile(4), 2), round(t_quantile(99), 3)
        (2.77, 1.984)
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    t = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    return t + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
