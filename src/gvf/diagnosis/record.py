"""What a diagnosis found: numbers, what they recommend, and how they are shown.

The numbers come from :mod:`gvf.diagnosis.diagnose`; what to make of them is told by
:mod:`gvf.diagnosis.advice`, and :mod:`gvf.diagnosis.show` draws them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gvf.correction import Correction
from gvf.diagnosis import advice, show
from gvf.diagnosis.comparison import Comparison
from gvf.diagnosis.moments import Moments

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Group


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What :func:`gvf.diagnose` found about a window, for mini-batches of k.

    Printed, it is a summary; ``rich.print`` shows it as tables; :meth:`plot` draws it.

    Attributes:
        window: number of transitions, n.
        batch_size: k.
        effective_sample_size: (sum rho)^2 / sum rho^2: so many equal ratios are worth as much.
        zero_ratios: the share of ratios that are exactly 0.
        max_ratio: the largest.
        max_share: the share of the sum of all ratios that the largest holds.
        mean_ratio: should be 1, else the behaviour's probabilities are wrong.
        mean_ratio_error: its standard error (nan for one ratio); not to be trusted where `k_hat`
            is above `k_threshold`.
        k_hat: the Pareto index of the tail of the ratios. -inf where the largest are all the same,
            nan where there are too few to tell.
        k_threshold: the k-hat up to which averages over the window are to be trusted.
        moments: of the mini-batch update, by the correction's name.
        comparison: the difference of IS and BC-IR, and the conditions of Theorems 3.3 and 3.4.
        bias_windows: after about so many windows' worth of transitions, and not before, the bias
            of IR outweighs the chance of which transitions a window contains.
        histogram: of the ratios, for :meth:`plot`.

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
    zero_ratios: float
    max_ratio: float
    max_share: float
    mean_ratio: float
    mean_ratio_error: float
    k_hat: float
    k_threshold: float
    moments: dict[str, Moments]
    comparison: Comparison
    bias_windows: float
    histogram: show.Histogram = field(compare=False)

    @property
    def recommendation(self) -> Correction:
        """The correction to use."""
        return advice.recommend(self)[0]

    @property
    def reason(self) -> str:
        """Why, in a sentence."""
        return advice.recommend(self)[1]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong with the data, a sentence or two each."""
        return tuple(advice.warnings(self))

    def __repr__(self) -> str:
        return show.summary(self)

    def __rich__(self) -> Group:
        return show.tables(self)

    def plot(self, axes: Any = None) -> Figure:
        """Draw the ratios (log scale, zeros apart) and the variances; returns the figure.

        Args:
            axes: two matplotlib axes to draw on; by default a new figure has them.
        """
        return show.picture(self, axes)
