"""Means over the rows of a log, with intervals that treat its episodes as the independent parts.

Rows of an episode depend on each other. With sums s_e and counts n_e of episode e, the mean is
m = sum s_e / sum n_e, and its standard error comes from how much episodes differ,

    se^2 = E / (E - 1) * sum (s_e - m n_e)^2 / (sum n_e)^2.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats

_NORMAL = 1.959964
"""The quantile of the normal distribution for 95 % intervals."""


class Interval(NamedTuple):
    """A number with an interval; nan bounds if it cannot be told, as from a single episode.

    Example:
        >>> from gvf.behaviour import Interval
        >>> Interval(0.5, 0.4, 0.6128)
        0.5 (0.4 to 0.613)
    """

    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        bounds = "" if math.isnan(self.low) else f" ({self.low:.3g} to {self.high:.3g})"
        return f"{self.value:.3g}{bounds}"


def mean_by_episode(values: Floats, episode: NDArray[Any]) -> Interval:
    """Return the mean of values [m], with a 95 % interval over episodes int[m].

    Example:
        >>> import numpy as np
        >>> from gvf.common.means import mean_by_episode
        >>> mean_by_episode(np.array([1.0, 3.0, 1.0, 3.0]), np.array([0, 0, 1, 2]))
        2 (1.15 to 2.85)
    """
    _, place = np.unique(episode, return_inverse=True)
    sums, counts = np.bincount(place, values), np.bincount(place)
    return mean_of_sums(sums, counts)


def mean_of_sums(sums: NDArray[Any], counts: NDArray[Any], quantile: float = _NORMAL) -> Interval:
    """Return the mean of all rows from the sums and counts of E episodes, [E].

    The interval reaches `quantile` standard errors to either side.
    """
    total, episodes = counts.sum(), len(sums)
    mean = float(sums.sum() / total) if total else math.nan
    if episodes < 2 or not math.isfinite(mean):
        return Interval(mean, math.nan, math.nan)
    squares = float(((sums - mean * counts) ** 2).sum())
    half = quantile * math.sqrt(episodes / (episodes - 1) * squares) / total
    return Interval(mean, mean - half, mean + half)
