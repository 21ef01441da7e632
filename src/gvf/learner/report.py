"""The report of a learner: counts, the ratios in its window, and lanes that have diverged."""

from __future__ import annotations

import math
from dataclasses import dataclass

FEWEST_RATIOS = 100
"""The number of ratios from which on their mean is compared with 1."""
STANDARD_ERRORS = 8.0
"""The distance of a mean ratio from 1 that is worth a sentence; rows of a stream are dependent."""


@dataclass(frozen=True, kw_only=True)
class BaseReport:
    """The counts, statistics and sentences that the reports of all learners have in common."""

    steps: int
    mean_ratio: float
    max_ratio: float
    zero_ratios: float
    effective_sample_size: float
    diverged: tuple[int, ...]
    largest_predictions: tuple[float, ...]
    largest_return: float
    missing: int
    estimated: bool = False
    remedy: str = "take a smaller step size"

    @property
    def _counted(self) -> int:
        """The number of ratios that the statistics are about."""
        return self.steps

    @property
    def divergence(self) -> str:
        """A sentence on the divergence and its remedy; empty if no lane has diverged."""
        if not self.diverged:
            return ""
        most = max(self.largest_predictions[lane] for lane in self.diverged)
        finding = f"predictions up to {most:.3g}, " if math.isfinite(most) else "infinite weights, "
        return f"{finding}and no return here can be above {self.largest_return:.3g}; {self.remedy}"

    @property
    def doubt(self) -> str:
        """A sentence about a mean ratio that is far from 1; empty if it is near.

        With n ratios of the mean m and the effective sample size e, the standard error of m is
        m sqrt((n / e - 1) / n), since ratios of the true behaviour are 1 on average.
        """
        n, size, mean = self._counted, self.effective_sample_size, self.mean_ratio
        if n < FEWEST_RATIOS or not mean > 0:
            return ""
        error = mean * math.sqrt(max(n / size - 1, 1e-12) / n)
        away = abs(mean - 1) / error
        if away < STANDARD_ERRORS:
            return ""
        return (
            f"the mean ratio is {away:.0f} standard errors from 1: check the behaviour's "
            "probabilities, unless large ratios are rare"
        )

    @property
    def _steps(self) -> str:
        left_out = f", {self.missing} transitions left out for a NaN" if self.missing else ""
        return f"{self.steps} steps{left_out}"

    @property
    def _ratios(self) -> str:
        if self._counted and math.isnan(self.mean_ratio):
            return "ratios and effective sample size unknown (the behaviour is not known)"
        return (
            f"mean ratio {self.mean_ratio:.3g}, max {self.max_ratio:.3g}, "
            f"{100 * self.zero_ratios:.0f} % zeros, "
            f"effective sample size {self.effective_sample_size:.4g}"
            f"{'; ratios are estimated' if self.estimated else ''}"
        )

    @property
    def _warnings(self) -> str:
        lanes = f"; DIVERGED in lanes {list(self.diverged)}: {self.divergence}"
        return f"{f'; {self.doubt}' if self.doubt else ''}{lanes if self.diverged else ''}"


@dataclass(frozen=True, kw_only=True)
class LearnerReport(BaseReport):
    """The counts of a learner and the statistics of its window.

    A lane has diverged if a weight is not finite, or if a prediction for a state in the window is
    more than 1000 times the largest possible return. Let C be the largest absolute cumulant and g
    the largest continuation seen so far: no return is above C / (1 - g). For g = 1 this is no
    bound, but n updates of k transitions each can pass on the cumulants of at most n k steps, so no
    sound prediction is above C n k. The largest possible return is the smaller of the two bounds,
    and at least 1, because the predictions of a new network may have that size.

    Ratio statistics are nan if the behaviour is not known; ``OnPolicy`` does not need it.

    Attributes:
        steps: the number of transitions observed.
        updates: the number of updates done.
        skipped: the number of updates skipped because no ratio in the window was above 0.
        window: the number of transitions in the window.
        mean_ratio: the mean ratio of the window. It should be near 1; if not, the behaviour's
            probabilities are probably wrong.
        max_ratio: the largest ratio in the window.
        zero_ratios: the share of ratios that are exactly 0.
        effective_sample_size: (sum rho)^2 / sum rho^2, at most ``window``.
        diverged: the numbers of the lanes that have diverged.
        largest_predictions: the largest absolute prediction for states in the window, one per lane.
        largest_return: the largest possible return, as above.
        step_size: the default step size in use; None if the update was given one.
        missing: the number of transitions skipped because of a NaN, with ``on_nan="skip"``.
        estimated: True if a ratio was formed with an estimated probability of the behaviour; see
            :func:`gvf.estimate_behaviour`.
        remedy: the advice for lanes that have diverged.

    Example:
        >>> import gvf
        >>> question = gvf.GVF(gvf.Always(0, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(question, gvf.OneHot(3), gvf.TD(0.1), behaviour=gvf.Uniform(2))
        >>> learner.observe(0, 1, 0.0, 1, False)
        >>> learner.report()
        LearnerReport(1 steps, 0 updates, 1 skipped; window 1, mean ratio 0, max 0, 100 % zeros, \
effective sample size 0)
    """

    updates: int
    skipped: int
    window: int
    step_size: float | None

    @property
    def _counted(self) -> int:
        """The number of transitions in the window."""
        return self.window

    def __repr__(self) -> str:
        step_size = f"; step size {self.step_size:.3g} by default" if self.step_size else ""
        return (
            f"LearnerReport({self._steps}, {self.updates} updates, {self.skipped} skipped; "
            f"window {self.window}, {self._ratios}{step_size}{self._warnings})"
        )
