"""What a learner says about itself: counts, the ratios in its window, and whether it diverges."""

from __future__ import annotations

import math
from dataclasses import dataclass

DIVERGED = 1000.0
"""How many times the largest possible return a prediction may be."""


@dataclass(frozen=True)
class LearnerReport:
    """What a learner has done, and what its window looks like now.

    A lane has diverged if a weight is not finite, or if a prediction for a state in the window is
    more than 1000 times the largest return that is possible. With C the largest cumulant ever seen
    (in size) and g the largest continuation, no return is above C / (1 - g). Where g is 1 that is
    no bound; but n updates of k transitions each pass on the cumulants of at most n k steps, so
    that no sound prediction is above C n k. The smaller of the two counts, and at least 1, since a
    network may begin with predictions of that size.

    Attributes:
        steps: transitions observed.
        updates: updates done.
        skipped: updates left out since no ratio in the window was above 0.
        window: transitions in the window.
        mean_ratio: over the window; should be near 1, else the behaviour's probabilities are wrong.
            This and what follows about ratios is nan where the behaviour is not known, as it need
            not be for ``OnPolicy``.
        max_ratio: over the window.
        zero_ratios: share of ratios that are exactly 0.
        effective_sample_size: (sum rho)^2 / sum rho^2, of at most ``window``.
        diverged: the lanes that have diverged, as a tuple of numbers.
        largest_predictions: for states in the window, in size, one a lane.
        largest_return: that is possible, as above.
        step_size: the default step size in use; None where the update has its own.
        missing: transitions left out for a NaN in them, with ``on_nan="skip"``.

    Example:
        >>> import gvf
        >>> question = gvf.GVF(gvf.Always(0, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(question, gvf.OneHot(3), gvf.TD(0.1), behaviour=gvf.Uniform(2))
        >>> learner.observe(0, 1, 0.0, 1, False)
        >>> learner.report()
        LearnerReport(1 steps, 0 updates, 1 skipped; window 1, mean ratio 0, max 0, 100 % zeros, \
effective sample size 0)
    """

    steps: int
    updates: int
    skipped: int
    window: int
    mean_ratio: float
    max_ratio: float
    zero_ratios: float
    effective_sample_size: float
    diverged: tuple[int, ...]
    largest_predictions: tuple[float, ...]
    largest_return: float
    step_size: float | None
    missing: int

    @property
    def divergence(self) -> str:
        """How a lane has diverged and what to do about it, in a sentence; empty if none has."""
        if not self.diverged:
            return ""
        most = max(self.largest_predictions[lane] for lane in self.diverged)
        told = f"predictions up to {most:.3g}, " if math.isfinite(most) else "infinite weights, "
        return (
            f"{told}and no return here can be above {self.largest_return:.3g}; take a smaller step "
            "size"
        )

    def __repr__(self) -> str:
        ratios = (
            f"mean ratio {self.mean_ratio:.3g}, max {self.max_ratio:.3g}, "
            f"{100 * self.zero_ratios:.0f} % zeros, "
            f"effective sample size {self.effective_sample_size:.4g}"
        )
        if self.window and math.isnan(self.mean_ratio):
            ratios = "ratios and effective sample size unknown (the behaviour is not known)"
        left_out = f", {self.missing} transitions left out for a NaN" if self.missing else ""
        step_size = f"; step size {self.step_size:.3g} by default" if self.step_size else ""
        lanes = f"; DIVERGED in lanes {list(self.diverged)}: {self.divergence}"
        return (
            f"LearnerReport({self.steps} steps{left_out}, {self.updates} updates, "
            f"{self.skipped} skipped; window {self.window}, {ratios}{step_size}"
            f"{lanes if self.diverged else ''})"
        )


def largest_return(cumulant: float, continuation: float, passed_on: int) -> float:
    """The largest return that is possible; at least 1.

    Args:
        cumulant: the largest one seen, in size.
        continuation: the largest one seen.
        passed_on: over how many steps updates can have passed on a cumulant.

    Example:
        >>> from gvf.learner.report import largest_return
        >>> largest_return(2.0, 0.5, passed_on=1000), largest_return(2.0, 1.0, passed_on=1000)
        (4.0, 2000.0)
    """
    steps = 1.0 / (1.0 - continuation) if continuation < 1.0 else math.inf
    return max(cumulant * min(steps, passed_on), 1.0)
