"""The result of a diagnosis, and the correction that it recommends, with the reason for it.

:mod:`gvf.diagnosis.diagnose` computes the numbers, and :mod:`gvf.diagnosis.show_diagnosis` displays
them. The variances of IS and BC-IR at the present weights are known exactly
(:mod:`gvf.diagnosis.variance_comparison`). But weights change: if ratios and updates are unrelated,
as early in learning, the variance of IS is about n / (effective sample size) times larger (Theorem
3.4). IS is therefore recommended only if its present advantage exceeds this factor. Two decisions
remain: whether the bias of IR matters (:mod:`gvf.diagnosis.moments`), and whether the window can be
trusted at all (:mod:`gvf.ratios`). V-trace and WIS-Minibatch are never recommended,
because their biases do not vanish with more transitions. Emphatic corrections aim at another
update, that of emphatic TD, so the advice does not compare them with the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gvf.corrections import BCIR, IR, IS, Correction
from gvf.diagnosis import show_diagnosis
from gvf.diagnosis.moments import Moments
from gvf.diagnosis.variance_comparison import VarianceComparison
from gvf.findings import Code, Finding, sentence
from gvf.ratios import findings_of_ratios

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Group


EQUAL_FACTOR = 1.1
"""Variances within this factor of each other count as equal."""
TRANSITIONS_PER_SAMPLE = 2.0
"""Below this many transitions per effective sample the ratios hardly vary."""
LASTING_WINDOWS = 100
"""A bias that outweighs chance only after this many windows does not matter."""


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


def recommend(diagnosis: Diagnosis) -> tuple[Correction, Finding]:
    """Return the recommended correction, and the reason."""
    reweighted = diagnosis.comparison.reweighted.variance.value
    resampled = diagnosis.comparison.resampled.variance.value
    if diagnosis.max_ratio == diagnosis.mean_ratio:
        return IS(), Finding(Code.EQUAL_RATIOS, "note")
    if reweighted == resampled == 0.0:
        return IR(), Finding(Code.NOTHING_VARIES, "note")
    if math.isinf(reweighted):
        return IR(), Finding(Code.INFINITE_VARIANCE, "note")
    gain, loss = _quotient(reweighted, resampled), _quotient(resampled, reweighted)
    unrelated = diagnosis.window / diagnosis.effective_sample_size
    if loss > unrelated:
        return IS(), Finding(Code.SHORT_UPDATES, "note", {"loss": loss})
    if gain < EQUAL_FACTOR and unrelated < TRANSITIONS_PER_SAMPLE:
        return IS(), Finding(Code.MILD_RATIOS, "note")
    variance = "less" if gain >= EQUAL_FACTOR else "equal" if loss < EQUAL_FACTOR else "more"
    fields = {"variance": variance, "gain": gain, "loss": loss, "unrelated": unrelated}
    if diagnosis.k_hat > diagnosis.k_threshold:
        return IR(), Finding(Code.UNTRUSTED_MEAN, "note", fields)
    fields["windows"] = windows = diagnosis.bias_windows
    if windows < LASTING_WINDOWS:
        return BCIR(), Finding(Code.LASTING_BIAS, "note", fields)
    return IR(), Finding(Code.SMALL_BIAS, "note", fields)


def _quotient(first: float, second: float) -> float:
    return first / second if second > 0.0 else math.inf
