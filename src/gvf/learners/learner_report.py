"""The report of a learner: counts, the ratios in its window, and lanes that have diverged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from gvf.common.arrays import Floats
from gvf.common.divergence import DIVERGED, largest_return
from gvf.estimate import percent
from gvf.findings import Code, Finding, sentence
from gvf.ratios import STANDARD_ERRORS_OF_STREAM

FEWEST = 100
"""The number of transitions from which on ratios are doubted, and ends missed."""
MANY_STATES = 0.1
"""The share of states outside the bounds of features that is worth a sentence."""
MANY_PREDICTIONS = 0.01
"""The share of predictions outside twice the range of returns that is worth a sentence."""


class Problem(Enum):
    """The kinds of problems that a report names; :attr:`gvf.LearnerReport.problems` lists them.

    Example:
        >>> import gvf
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 1.0)
        >>> tiles = gvf.features.TileCoder([0.0], [1.0])
        >>> learner = gvf.Learner(
        ...     question, tiles, gvf.updates.TD(0.01), behaviour=gvf.policies.Uniform(2), seed=0
        ... )
        >>> for step in range(100):
        ...     learner.observe([2.0 + step], step % 2, 1.0, [3.0 + step], False)
        >>> learner.report().problems
        (<Problem.OUTSIDE_BOUNDS: 'outside bounds'>, <Problem.ENDLESS: 'endless'>)
    """

    RATIOS = "ratios"
    """The mean ratio is far from 1."""
    DIVERGED = "diverged"
    """A prediction is far above the largest possible return, or a weight is not finite."""
    OUTSIDE_BOUNDS = "outside bounds"
    """States are often outside the bounds of the features."""
    OUTSIDE_RETURNS = "outside returns"
    """Predictions are outside twice the range of possible returns."""
    ENDLESS = "endless"
    """The continuation is 1, and no transition ends."""
    WORSE = "worse than a constant"
    """Questions of a horde predict worse than a constant, by the returns that followed."""
    CUT = "returns cut"
    """Many returns were cut, and those which are left may be a biased sample."""


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
    outside_bounds: float | None = None
    outside_returns: tuple[float, ...] = ()
    return_range: tuple[float, float] = (0.0, 0.0)
    endless: bool = False
    remedy: str = "take a smaller step size"

    @property
    def _counted(self) -> int:
        """The number of ratios that the statistics are about."""
        return self.steps

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems that the report names."""
        checks = {
            Problem.RATIOS: self._errors_from_1 >= STANDARD_ERRORS_OF_STREAM,
            Problem.DIVERGED: bool(self.diverged),
            Problem.OUTSIDE_BOUNDS: (self.outside_bounds or 0.0) >= MANY_STATES,
            Problem.OUTSIDE_RETURNS: bool(self._wide),
            Problem.ENDLESS: self.endless,
        }
        return tuple(problem for problem, is_found in checks.items() if is_found)

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
        """A sentence about a mean ratio that is far from 1; empty if it is near."""
        if Problem.RATIOS not in self.problems:
            return ""
        return (
            f"the mean ratio is {self._errors_from_1:.0f} standard errors from 1: check the "
            "behaviour's probabilities, unless large ratios are rare"
        )

    @property
    def _errors_from_1(self) -> float:
        """The distance of the mean ratio from 1 in standard errors; 0 if it is not known.

        With n ratios of the mean m and the effective sample size e, the standard error of m is
        m sqrt((n / e - 1) / n), since ratios of the true behaviour are 1 on average.
        """
        n, size, mean = self._counted, self.effective_sample_size, self.mean_ratio
        if n < FEWEST or not mean > 0:
            return 0.0
        error = mean * math.sqrt(max(n / size - 1, 1e-12) / n)
        return abs(mean - 1) / error

    @property
    def _wide(self) -> list[int]:
        """The lanes with predictions outside twice the range, without those that diverged."""
        lanes = enumerate(self.outside_returns)
        wide = [lane for lane, share in lanes if share >= MANY_PREDICTIONS]
        return [lane for lane in wide if lane not in self.diverged]

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
            f"{percent(self.zero_ratios, '.0f')} zeros, "
            f"effective sample size {self.effective_sample_size:.4g}"
            f"{'; ratios are estimated' if self.estimated else ''}"
        )

    @property
    def _warnings(self) -> str:
        return "".join(f"; {self._words(problem)}" for problem in self.problems)

    def _words(self, problem: Problem) -> str:
        """Return the sentence about a problem."""
        match problem:
            case Problem.DIVERGED:
                return f"DIVERGED in lanes {list(self.diverged)}: {self.divergence}"
            case Problem.RATIOS:
                return self.doubt
            case Problem.OUTSIDE_BOUNDS:
                return clipped(self.outside_bounds or 0.0)
            case Problem.OUTSIDE_RETURNS:
                share = percent(max(self.outside_returns[lane] for lane in self._wide), ".0f")
                lanes = f" in lanes {self._wide}" if len(self.outside_returns) > 1 else ""
                low, high = self.return_range
                return (
                    f"{share} of predictions{lanes} are outside twice the range of possible "
                    f"returns, {low:.3g} to {high:.3g}: {self.remedy}"
                )
            case Problem.ENDLESS:
                return (
                    "the continuation is 1 and no transition ends, so values may grow for ever: "
                    "mark ends as terminated, or take a continuation below 1"
                )
            case Problem.WORSE | Problem.CUT:  # of hordes, which have words for them
                return problem.value


def clipped(share: float) -> str:
    """Return the sentence about states outside the bounds of features, for a report or a log."""
    return sentence(Finding(Code.OUTSIDE_BOUNDS, "warning", {"share": share}))


@dataclass(frozen=True, kw_only=True)
class LearnerReport(BaseReport):
    """The counts of a learner and the statistics of its window.

    A lane has diverged if a weight is not finite, or if a prediction for a state in the window is
    more than 1000 times the largest possible return. Let C be the largest absolute cumulant and g
    the largest continuation seen so far: no return is above C / (1 - g). For g = 1 this is no
    bound, but n updates of k transitions each can pass on the cumulants of at most n k steps, so no
    sound prediction is above C n k. The largest possible return is the smaller of the two bounds,
    and at least 1, because the predictions of a new network may have that size.

    Predictions may also be wrong long before that. If the cumulants seen are from c to C, with 0,
    possible returns are from c / (1 - g) to C / (1 - g), or to the same bound for g = 1. The report
    counts predictions outside a range that is twice as wide, and warns from 1 % on.

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
        outside_bounds: the share of all states observed so far, also of those that have left the
            window, that were outside the bounds of the features; None if features have no bounds.
            From 10 % on it is a problem.
        outside_returns: the share of predictions for states in the window that are outside twice
            the range of possible returns, one per lane.
        return_range: the smallest and the largest possible return.
        endless: True if the continuation is 1 for all of the window's transitions, at least 100.
        remedy: the advice for lanes that have diverged.

    Example:
        >>> import gvf
        >>> question = gvf.GVF(gvf.policies.Always(0, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(
        ...     question,
        ...     gvf.features.OneHot(3),
        ...     gvf.updates.TD(0.1),
        ...     behaviour=gvf.policies.Uniform(2),
        ... )
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


class Range(NamedTuple):
    """The signals seen so far, from which the range of possible returns follows.

    Attributes:
        low: the smallest cumulant, at most 0.
        high: the largest cumulant, at least 0.
        continuation: the largest continuation.
        passed_on: the number of steps over which updates can have passed on cumulants.

    Example:
        >>> from gvf.learners.learner_report import Range
        >>> Range(-2.0, 1.0, 0.5, passed_on=1000).returns
        (-4.0, 2.0)
        >>> Range(-2.0, 1.0, 1.0, passed_on=1000).returns
        (-2000.0, 1000.0)
    """

    low: float
    high: float
    continuation: float
    passed_on: int

    @property
    def returns(self) -> tuple[float, float]:
        """The smallest and the largest possible return."""
        steps = 1.0 / (1.0 - self.continuation) if self.continuation < 1.0 else math.inf
        steps = min(steps, self.passed_on)
        return self.low * steps, self.high * steps

    def findings(self, predictions: Floats, least: float = 0.0) -> dict[str, Any]:
        """Return the fields of a report about some predictions, [m, lanes].

        Args:
            predictions: the predictions, infinite in a lane with weights that are not finite.
            least: the size that predictions may have at first, as those of a new network.
        """
        low, high = self.returns
        size = max(self.high, -self.low)
        limit = largest_return(size, self.continuation, self.passed_on)
        margin = max((high - low) / 2, least)
        outside = ~((predictions >= low - margin) & (predictions <= high + margin))
        largest = np.abs(predictions).max(axis=0, initial=0.0)
        return {
            "diverged": tuple(np.flatnonzero(~(largest <= DIVERGED * limit)).tolist()),
            "largest_predictions": tuple(largest.tolist()),
            "largest_return": limit,
            "outside_returns": tuple(outside.mean(axis=0).tolist()) if len(outside) else (),
            "return_range": (low, high),
        }
