"""The statistics of ratios alone: for policies whose updates are not looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gvf.common.arrays import Floats
from gvf.diagnosis import advice
from gvf.diagnosis.tail import tail_index, trusted_up_to


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
        >>> from gvf.diagnosis.ratios import RatioStatistics
        >>> found = RatioStatistics.of(np.array([0.0, 0.5, 1.5, 2.0]), batch_size=16)
        >>> found.mean_ratio, round(found.effective_sample_size, 2)
        (1.0, 2.46)
        >>> found.warnings[0][:53]
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
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the ratios, of one or two sentences each."""
        if self.max_ratio == 0.0:
            return (
                f"All {self.window} ratios are 0: the behaviour took no action of the target, so "
                "nothing in the window tells of it.",
            )
        return tuple(advice.warnings(self))
