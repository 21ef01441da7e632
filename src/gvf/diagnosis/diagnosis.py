"""The result of a diagnosis.

:mod:`gvf.diagnosis.diagnose` computes the numbers, :mod:`gvf.diagnosis.recommend` derives the
recommendation and the warnings, and :mod:`gvf.diagnosis.show_diagnosis` displays them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gvf.corrections import Correction
from gvf.diagnosis import show_diagnosis
from gvf.diagnosis.moments import Moments
from gvf.diagnosis.recommend import recommend
from gvf.diagnosis.variance_comparison import VarianceComparison
from gvf.findings import Finding, sentence
from gvf.ratios import findings_of_ratios

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Group


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The result of :func:`gvf.diagnose` for a window and mini-batches of k.

    ``print`` shows a summary, ``rich.print`` shows tables, and :meth:`plot` draws a figure.

    Attributes:
        window: the number of transitions, n.
        batch_size: the number of transitions in a mini-batch, k.
        effective_sample_size: (sum rho)^2 / sum rho^2, about the number of on-policy transitions
            that the window is worth.
        emphatic_sample_size: the same of rho F, the products of ratios and traces, if a correction
            is emphatic; otherwise nan.
        zero_ratios: the share of ratios that are exactly 0.
        max_ratio: the largest ratio.
        max_share: the share of the largest ratio in the sum of all ratios.
        mean_ratio: the mean ratio. It should be near 1; if not, the behaviour's probabilities are
            probably wrong.
        mean_ratio_error: the standard error of the mean ratio (nan for one ratio); unreliable if
            `k_hat` is above `k_threshold`.
        k_hat: the Pareto index of the tail of the ratios; -inf if the largest ratios are all equal,
            nan if there are too few.
        k_threshold: the largest k-hat for which averages over the window can be trusted.
        moments: the moments of the mini-batch update, by the correction's name.
        comparison: the difference of IS and BC-IR, and the conditions of Theorems 3.3 and 3.4.
        bias_windows: the number of windows after which the bias of IR outweighs the noise of the
            window's contents.
        histogram: the histogram of the ratios, for :meth:`plot`.
        estimated: True if the ratios were formed with estimated probabilities of the behaviour.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> ratios = np.where(rng.random(5000) < 0.1, 9.0, 1 / 9)
        >>> gvf.diagnose(ratios, rng.normal(size=(5000, 3)), batch_size=16)
        Diagnosis of 5,000 transitions, batches of 16: use IR
          IR has 7.7 times less variance than IS at the present weights; its bias is small.
          ratios: mean 1.05 ± 0.039, largest 9 with 0.17 % of the mass, 0 % zeros
          effective sample size: 642 (13 %)
          tail: bounded: the largest ratios are all the same
          variance: IS 1.49, BC-IR 0.193, IR 0.175, V-trace(1.0) 0.0205, WIS-Minibatch 1.12 ±
            0.04
    """

    window: int
    batch_size: int
    effective_sample_size: float
    emphatic_sample_size: float
    zero_ratios: float
    max_ratio: float
    max_share: float
    mean_ratio: float
    mean_ratio_error: float
    k_hat: float
    k_threshold: float
    moments: dict[str, Moments]
    comparison: VarianceComparison
    bias_windows: float
    histogram: show_diagnosis.Histogram = field(compare=False)
    estimated: bool = False

    @property
    def recommendation(self) -> Correction:
        """The recommended correction."""
        return recommend(self)[0]

    @property
    def reason(self) -> str:
        """The reason for the recommendation, as a sentence."""
        return sentence(recommend(self)[1])

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings about the data, as codes with fields."""
        return tuple(findings_of_ratios(self))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The findings in words, one or two sentences each."""
        return tuple(sentence(finding, estimated=self.estimated) for finding in self.findings)

    def __repr__(self) -> str:
        return show_diagnosis.summary(self)

    def __rich__(self) -> Group:
        return show_diagnosis.tables(self)

    def plot(self, axes: Any = None) -> Figure:
        """Draw the ratios (on a log scale, zeros apart) and the variances.

        Args:
            axes: two matplotlib axes to draw on; by default those of a new figure.

        Returns:
            The figure.
        """
        return show_diagnosis.picture(self, axes)
