"""Statistics of importance ratios, and whether averages with them can be trusted.

    effective sample size   (sum rho)^2 / sum rho^2
    mean ratio              r = (1/n) sum rho, with standard error sd(rho) / sqrt(n); rho - 1 is a
                            martingale difference, so this holds for a Markov stream too

The Pareto index k-hat measures how heavy the tail of the ratios is. The tail of a distribution
resembles a generalised Pareto distribution, ``P(rho - u > y) = (1 + k y / sigma)^(-1/k)``. Its
moments of order 1/k and above do not exist, so for k above 1/2 the ratios have no variance. As in
Pareto-smoothed importance sampling (Vehtari et al. 2024), k is fitted to the M = min(n/5, 3
sqrt(n)) largest ratios by the estimator of Zhang and Stephens (2009). Averages over the window can
be trusted if k-hat is below min(1 - 1/log10(n), 0.7).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.findings import Code, Finding, sentence

LARGEST_K_HAT = 0.7
"""The largest Pareto index with which averages over very many weights can be trusted."""
FEWEST_EXCESSES = 5
"""The least number of ratios above the threshold u for an estimate."""
SMALL_SAMPLE = 100
"""Below this effective sample size a mean has more than a tenth of the noise of one sample."""
STANDARD_ERRORS = 4
"""A mean ratio within this many of 1 is due to chance, even in thousands of diagnoses."""
STANDARD_ERRORS_OF_STREAM = 8.0
"""The distance of a learner's mean ratio from 1 that is worth a sentence; rows of a stream depend
on each other, and a report is made often."""
EMPTY_SHARE = 0.05
"""A larger share of empty mini-batches gives a warning."""


def effective_size(weights: NDArray[Any]) -> float:
    """Return (sum w)^2 / sum w^2 of weights [n]; 0 if all are 0.

    Example:
        >>> import numpy as np
        >>> from gvf.ratios import effective_size
        >>> effective_size(np.array([1.0, 1.0, 2.0])), effective_size(np.zeros(3))
        (2.6666666666666665, 0.0)
    """
    return float(weights.sum() ** 2 / (weights**2).sum()) if weights.any() else 0.0


def trusted_up_to(n: int) -> float:
    """Return the largest k-hat for which averages over n ratios can be trusted."""
    return min(1.0 - 1.0 / math.log10(max(n, 10)), LARGEST_K_HAT)


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


@dataclass(frozen=True)
class RatioStatistics:
    """The statistics of the ratios of a window that :class:`gvf.Diagnosis` has, and its warnings.

    Attributes:
        window: as in :class:`gvf.Diagnosis`, like the rest.
        batch_size: the number of transitions in a mini-batch, k.
        effective_sample_size: (sum rho)^2 / sum rho^2; 0 if all ratios are 0.
        zero_ratios: the share of ratios that are exactly 0.
        max_ratio: the largest ratio.
        max_share: the share of the largest ratio in the sum; nan if all ratios are 0.
        mean_ratio: the mean ratio.
        mean_ratio_error: the standard error of the mean ratio.
        k_hat: the Pareto index of the tail of the ratios.
        k_threshold: the largest k-hat for which averages over the window can be trusted.
        emphatic_sample_size: nan.

    Example:
        >>> import numpy as np
        >>> from gvf.ratios import RatioStatistics
        >>> statistics = RatioStatistics.of(np.array([0.0, 0.5, 1.5, 2.0]), batch_size=16)
        >>> statistics.mean_ratio, round(statistics.effective_sample_size, 2)
        (1.0, 2.46)
        >>> statistics.findings[0].code
        <Code.SMALL_SAMPLE: 'small sample'>
        >>> statistics.warnings[0][:53]
        'The window is worth 2.46 transitions from the target,'
    """

    window: int
    batch_size: int
    effective_sample_size: float
    zero_ratios: float
    max_ratio: float
    max_share: float
    mean_ratio: float
    mean_ratio_error: float
    k_hat: float
    k_threshold: float
    emphatic_sample_size: float = math.nan

    @classmethod
    def of(cls, ratios: Floats, batch_size: int) -> RatioStatistics:
        """Compute the statistics of ratios [n], at least one, none negative."""
        n, mean, largest = len(ratios), float(ratios.mean()), float(ratios.max())
        # In units of the mean, because squares of large ratios may overflow.
        relative = ratios / mean if mean > 0.0 else ratios
        square = float(np.mean(relative * relative))
        spread = float(relative.std(ddof=1)) if n > 1 else math.nan
        return cls(
            window=n,
            batch_size=batch_size,
            effective_sample_size=n / square if mean > 0.0 else 0.0,
            zero_ratios=float(np.mean(ratios == 0.0)),
            max_ratio=largest,
            max_share=largest / (mean * n) if mean > 0.0 else math.nan,
            mean_ratio=mean,
            mean_ratio_error=mean * spread / math.sqrt(n),
            k_hat=tail_index(ratios),
            k_threshold=trusted_up_to(n),
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings about the ratios."""
        if self.max_ratio == 0.0:
            return (Finding(Code.NO_MASS, "warning", {"window": self.window}),)
        return tuple(findings_of_ratios(self))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the ratios, of one or two sentences each."""
        return tuple(map(sentence, self.findings))


class _Statistics(Protocol):
    """The numbers that findings are about: a :class:`RatioStatistics` or a diagnosis."""

    @property
    def batch_size(self) -> int: ...
    @property
    def effective_sample_size(self) -> float: ...
    @property
    def emphatic_sample_size(self) -> float: ...
    @property
    def zero_ratios(self) -> float: ...
    @property
    def max_share(self) -> float: ...
    @property
    def mean_ratio(self) -> float: ...
    @property
    def mean_ratio_error(self) -> float: ...
    @property
    def k_hat(self) -> float: ...
    @property
    def k_threshold(self) -> float: ...


def findings_of_ratios(statistics: _Statistics) -> Iterator[Finding]:
    """Yield findings about a window of ratios, which are not all 0."""
    k_hat, limit = statistics.k_hat, statistics.k_threshold
    distance, error = abs(statistics.mean_ratio - 1.0), statistics.mean_ratio_error
    if distance > max(STANDARD_ERRORS * error, 1e-6):
        errors = distance / error if error > 1e-6 * distance else math.inf
        # The tail is not known if k-hat is nan, because there are too few large ratios.
        fields = {"mean": statistics.mean_ratio, "errors": errors, "tail_is_known": k_hat <= limit}
        yield Finding(Code.MEAN_RATIO, "warning", fields)
    if k_hat > limit:
        yield Finding(Code.HEAVY_TAIL, "warning", {"k_hat": k_hat, "limit": limit})
    size = statistics.effective_sample_size
    if size < SMALL_SAMPLE:
        fields = {"size": size, "largest_share": statistics.max_share}
        yield Finding(Code.SMALL_SAMPLE, "warning", fields)
    if statistics.emphatic_sample_size < SMALL_SAMPLE:
        fields = {"size": statistics.emphatic_sample_size}
        yield Finding(Code.SMALL_EMPHATIC_SAMPLE, "warning", fields)
    empty = statistics.zero_ratios**statistics.batch_size
    if empty > EMPTY_SHARE:
        yield Finding(Code.EMPTY_BATCHES, "warning", {"share": empty})
