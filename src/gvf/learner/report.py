"""What a learner says about itself: counts, and the ratios in its window."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LearnerReport:
    """What a learner has done, and what its window looks like now.

    Attributes:
        steps: transitions observed.
        updates: updates done.
        skipped: updates left out since no ratio in the window was above 0.
        window: transitions in the window.
        mean_ratio: over the window; should be near 1, else the behaviour's probabilities are wrong.
        max_ratio: over the window.
        zero_ratios: share of ratios that are exactly 0.
        effective_sample_size: (sum rho)^2 / sum rho^2, of at most ``window``.
        diverged: the lanes with a weight that is not finite, as a tuple of numbers.

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

    def __repr__(self) -> str:
        diverged = f"; DIVERGED in lanes {list(self.diverged)}" if self.diverged else ""
        return (
            f"LearnerReport({self.steps} steps, {self.updates} updates, {self.skipped} skipped; "
            f"window {self.window}, mean ratio {self.mean_ratio:.3g}, max {self.max_ratio:.3g}, "
            f"{100 * self.zero_ratios:.0f} % zeros, "
            f"effective sample size {self.effective_sample_size:.4g}{diverged})"
        )
