"""Numbers with their errors, and means over the rows of a log.

Rows of an episode depend on each other, so its episodes are the independent parts. With sums s_e
and counts n_e of episode e, the mean is m = sum s_e / sum n_e, and its standard error comes from
how much episodes differ,

    se^2 = E / (E - 1) * sum (s_e - m n_e)^2 / (sum n_e)^2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats

_NORMAL = 1.959964
"""The quantile of the normal distribution for 95 % intervals."""


@dataclass(frozen=True, repr=False)
class Estimate:
    """A number with its interval or its standard error; nan where these cannot be told.

    It unpacks into value, low and high. Formats such as ``f"{estimate:.2g}"`` are those of its
    numbers, which get equally many decimals.

    Attributes:
        value: the number.
        low: the lower end of its interval.
        high: the upper end.
        standard_error: its standard error.
        level: the level of the interval.

    Example:
        >>> from gvf import Estimate
        >>> f"{Estimate(0.452, 0.408, 0.497):.2g}", Estimate(0.51234, standard_error=0.01)
        ('0.45 (0.41 to 0.50)', 0.5123 ± 0.01)
        >>> value, low, high = Estimate(0.5, 0.4, 0.6)
        >>> round(high - low, 1)
        0.2
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    standard_error: float = math.nan
    level: float = 0.95

    def __iter__(self) -> Iterator[float]:
        return iter((self.value, self.low, self.high))

    def __format__(self, spec: str) -> str:
        if not math.isnan(self.low):
            value, low, high = _aligned([format(number, spec or ".3g") for number in self])
            return f"{value} ({low} to {high})"
        value = format(self.value, spec or ".4g")
        error = self.standard_error
        return value if math.isnan(error) else f"{value} ± {error:.2g}"

    def __repr__(self) -> str:
        return format(self, "")


def _aligned(numbers: list[str]) -> list[str]:
    """Return numbers as text with equally many decimals; those with an exponent stay."""
    decimals = [len(number.partition(".")[2]) for number in numbers]
    if not all(number.strip("+-").replace(".", "").isdigit() for number in numbers):
        return numbers
    return [
        number if count == max(decimals) else f"{float(number):.{max(decimals)}f}"
        for number, count in zip(numbers, decimals, strict=True)
    ]


def percent(share: float, spec: str = "") -> str:
    """Format a share: 0.5 %, 37 %, 120 %.

    Args:
        share: the share.
        spec: a format for its number of hundredths; by default two digits, and whole numbers from
            99.5 % on.

    Example:
        >>> from gvf.estimate import percent
        >>> percent(0.0051), percent(0.374), percent(1.2)
        ('0.51 %', '37 %', '120 %')
        >>> percent(0.995, "g")
        '99.5 %'
    """
    if spec:
        return f"{100 * share:{spec}} %"
    share = share if share > 1e-9 else 0.0  # a rounding error
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"


def percent_of_mass(share: Estimate) -> str:
    """Format a share of a mass with its interval; estimates with large weights may exceed 1.

    Example:
        >>> from gvf.estimate import Estimate, percent_of_mass
        >>> percent_of_mass(Estimate(0.4, 0.35, 1.02))
        '40 % (35 to 100 %)'
    """
    value = percent(min(share.value, 1.0))
    if math.isnan(share.low):
        return value
    return f"{value} ({100 * max(share.low, 0):.2g} to {percent(min(share.high, 1.0))})"


def mean_by_episode(values: Floats, episode: NDArray[Any]) -> Estimate:
    """Return the mean of values [m], with a 95 % interval over episodes int[m].

    Example:
        >>> import numpy as np
        >>> from gvf.estimate import mean_by_episode
        >>> mean_by_episode(np.array([1.0, 3.0, 1.0, 3.0]), np.array([0, 0, 1, 2]))
        2.00 (1.15 to 2.85)
    """
    _, number = np.unique(episode, return_inverse=True)
    sums, counts = np.bincount(number, values), np.bincount(number)
    return mean_of_sums(sums, counts)


def mean_of_sums(
    sums: NDArray[Any], counts: NDArray[Any], quantile: float = _NORMAL, level: float = 0.95
) -> Estimate:
    """Return the mean of all rows from the sums and counts of E episodes, [E].

    The interval reaches `quantile` standard errors to either side.
    """
    total, episodes = counts.sum(), len(sums)
    mean = float(sums.sum() / total) if total else math.nan
    if episodes < 2 or not math.isfinite(mean):
        return Estimate(mean, level=level)
    squares = float(((sums - mean * counts) ** 2).sum())
    root = math.sqrt(episodes / (episodes - 1) * squares)
    half = quantile * root / total
    return Estimate(mean, mean - half, mean + half, float(root / total), level)
