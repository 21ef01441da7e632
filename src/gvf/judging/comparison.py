"""Comparisons as records: the scores of candidates, their table, and the verdict.

A verdict is a code with its fields; only `str` makes words of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import numpy as np

from gvf.common.arrays import Array, Floats
from gvf.common.quantiles import tail_of
from gvf.estimate import Estimate, percent
from gvf.findings import Finding, sentence
from gvf.judging.held_out import Sums
from gvf.judging.off_policy_returns import Returns
from gvf.judging.policy_value import Estimator
from gvf.ratios import LARGEST_K_HAT

TIE = 0.5
"""The difference of two scores, in standard errors, up to which chance alone orders them."""
CONSTANT = "a constant"
"""The name of the reference, which predicts the mean return everywhere."""
FEWEST = 2
"""The number of episodes from which on there are intervals."""


Standing = Literal["best", "as good", "worse", "diverged", "reference"]


@dataclass(frozen=True)
class Score:
    """The score of one candidate, a learner or one lane of it.

    Attributes:
        name: the candidate's name.
        learner: the learner's name.
        lane: the number of the lane; None if the learner has no lanes.
        score: the mean squared difference of predictions and returns. It contains the noise of the
            returns, so only differences of scores tell of errors.
        difference: the score minus the best candidate's, with its interval.
        chance: the share of bootstrap samples in which the candidate is best.
        standing: "best"; "as good" if the interval of the difference contains 0; "worse";
            "diverged" if a prediction is not finite; "reference" for the constant.

    Example:
        Predict the reward of one step by its mean, and by 0:

        >>> import gvf, numpy as np
        >>> class Predictor:
        ...     def __init__(self, value):
        ...         self.value = value
        ...     def predict(self, states):
        ...         return np.full(len(states), self.value)
        >>> steps = gvf.Transitions(
        ...     state=[0] * 40, action=[0, 1] * 20, reward=[0.0, 1.0] * 20,
        ...     terminated=[True] * 40, behaviour_probability=[0.5] * 40,
        ... )
        >>> question = gvf.GVF(gvf.policies.Fixed([0.4, 0.6]), "reward")
        >>> found = gvf.compare_learners(
        ...     {"a": Predictor(0.6), "b": Predictor(0.0)}, steps, question=question
        ... )
        >>> found.best.name, found.best.standing, found.best.chance
        ('a', 'best', 1.0)
    """

    name: str
    learner: str
    lane: int | None
    score: float
    difference: Estimate
    chance: float
    standing: Standing


class Outcome(StrEnum):
    """The kinds of verdicts on candidates by held-out episodes.

    Example:
        >>> from gvf.judging import Outcome
        >>> Outcome("cannot tell").sure, Outcome.TIED.sure, [*map(str, Outcome)]
        (False, True,
         ['best', 'tied', 'no better than a constant', 'cannot tell', 'all diverged'])
    """

    BEST = "best"
    """The winner predicts better than all other candidates and than the constant."""
    TIED = "tied"
    """The winner predicts better than the constant, and cannot be told from other candidates."""
    NO_BETTER = "no better than a constant"
    """The winner is not shown to predict better than the constant."""
    CANNOT_TELL = "cannot tell"
    """The episodes are too few, or their weights too uneven, to tell anything."""
    ALL_DIVERGED = "all diverged"
    """No candidate has finite predictions."""

    @property
    def sure(self) -> bool:
        """True if the winner was shown to predict better than a constant."""
        return self in (Outcome.BEST, Outcome.TIED)


@dataclass(frozen=True)
class Verdict:
    """A verdict on candidates by held-out episodes. Print it for a sentence.

    Attributes:
        outcome: the code, an :class:`Outcome`.
        winner: the name of the candidate with the lowest error.
        tied: the names of the candidates that cannot be told from it.
        others: the number of all other candidates.
        findings: the reasons why nothing can be told; none if something can.

    Example:
        >>> from gvf.judging import Outcome, Verdict
        >>> verdict = Verdict(Outcome.TIED, "IR", ("IS",), others=4)
        >>> print(verdict)
        IR has the lowest error, and cannot be told from IS
        >>> verdict.outcome.sure
        True
    """

    outcome: Outcome
    winner: str
    tied: tuple[str, ...] = ()
    others: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def doubts(self) -> tuple[str, ...]:
        """The findings in words."""
        return tuple(map(sentence, self.findings))

    def __str__(self) -> str:
        match self.outcome:
            case Outcome.ALL_DIVERGED:
                return "all candidates have diverged"
            case Outcome.CANNOT_TELL:
                return f"cannot tell: {'; '.join(self.doubts)}"
            case Outcome.NO_BETTER:
                return f"{self.winner} is not shown to predict better than a constant"
            case Outcome.TIED:
                many = self.tied[0] if len(self.tied) == 1 else f"{len(self.tied)} others"
                return f"{self.winner} has the lowest error, and cannot be told from {many}"
            case Outcome.BEST if self.others:
                return f"{self.winner} is best"
            case Outcome.BEST:
                return f"{self.winner}, the only candidate, predicts better than a constant"


@dataclass(frozen=True, repr=False)
class Comparison:
    """The scores of learners on held-out episodes, and how far they can be trusted.

    Attributes:
        scores: a :class:`Score` for each candidate and for the best constant, best first.
        returns: the kind of returns.
        level: the level of the intervals.
        episodes: the number of held-out episodes.
        states: the number of states in them.
        effective_sample_size: (sum w)^2 / sum w^2 of the episodes' weights w: the number of
            episodes of the target that they are worth.
        k_hat: the Pareto index of the tail of the weights; averages can be trusted up to 0.7. It is
            nan with fewer than 21 episodes.
        beyond: the mean share of the values that lies beyond the ends of episodes that were cut.
            There the shared baseline stands in for what is not in the log.
        estimated: True if ratios were formed with estimated probabilities of the behaviour. Their
            errors are then in the returns, and in none of the intervals.
        findings: reasons why the log cannot tell which candidate is best; none if it can.
        noise: True if returns exceed the limit beyond which predictions have diverged, by products
            of ratios. Then scores are noise.
        values: estimates of the value of the policy from the returns alone, with intervals: the
            mean return of the first states, under the name of the kind of returns, and of all
            states, "constant"; for single decisions also "plain" and "self-normalised"
            (:mod:`gvf.judging.policy_value`).
        rewards: the effective number of rewards of single decisions; nan for longer episodes. Below
            20 the intervals of the values are too short.

    Example:
        Predict the reward of one step by its mean, and by 0:

        >>> import gvf, numpy as np
        >>> class Predictor:
        ...     def __init__(self, value):
        ...         self.value = value
        ...     def predict(self, states):
        ...         return np.full(len(states), self.value)
        >>> steps = gvf.Transitions(
        ...     state=[0] * 40, action=[0, 1] * 20, reward=[0.0, 1.0] * 20,
        ...     terminated=[True] * 40, behaviour_probability=[0.5] * 40,
        ... )
        >>> question = gvf.GVF(gvf.policies.Fixed([0.4, 0.6]), "reward")
        >>> found = gvf.compare_learners(
        ...     {"a": Predictor(0.6), "b": Predictor(0.0)}, steps, question=question
        ... )
        >>> found.episodes, round(found.effective_sample_size, 1), found.doubts
        (40, 38.5, ())
        >>> found.values["plain"]
        0.600 (0.406 to 0.794)
    """

    scores: tuple[Score, ...]
    returns: Returns
    level: float
    episodes: int
    states: int
    effective_sample_size: float
    k_hat: float
    beyond: float
    estimated: bool
    findings: tuple[Finding, ...]
    noise: bool
    values: Mapping[Estimator, Estimate]
    rewards: float
    _sums: Sums = field(compare=False)
    _samples: Floats = field(compare=False)
    _names: tuple[str, ...] = field(compare=False)

    @property
    def doubts(self) -> tuple[str, ...]:
        """The findings in words."""
        return tuple(map(sentence, self.findings))

    @property
    def best(self) -> Score:
        """The candidate with the lowest score; the constant is none."""
        return next(score for score in self.scores if score.standing != "reference")

    @property
    def constant(self) -> Score:
        """The constant's score: the mean squared difference of returns from their mean."""
        return next(score for score in self.scores if score.standing == "reference")

    @property
    def verdict(self) -> Verdict:
        """The verdict: which candidate is best, or why that cannot be told. Print it."""
        best, rest = self.best, [score for score in self.scores if score.standing == "as good"]
        if best.standing == "diverged":
            outcome = Outcome.ALL_DIVERGED
        elif self.findings:
            outcome = Outcome.CANNOT_TELL
        elif not self.constant.difference.low > 0.0:
            outcome = Outcome.NO_BETTER
        else:
            outcome = Outcome.TIED if rest else Outcome.BEST
        tied = tuple(score.name for score in rest)
        return Verdict(outcome, best.name, tied, len(self.scores) - 2, self.findings)

    def choose(
        self, step_size: Callable[[Score], float], without: Container[str] = ()
    ) -> Score | None:
        """Return the candidate to take: the best, or one tied with it that has a smaller step size.

        Noise decides between candidates that are tied. The smaller step then learns with less of
        it, and is less likely to diverge. A candidate is tied with the best if it differs from it
        in nothing but the step size, and its score by at most half a standard error; or, if
        returns are beyond all reason (``noise``), by as much as the log cannot tell. A candidate
        that has diverged is never taken.

        Args:
            step_size: a function of a score that returns the step size of its candidate.
            without: names of candidates that are not to be taken.

        Returns:
            The score of the candidate; None if none is left.
        """
        left = [
            score
            for score in self.scores
            if score.standing not in ("reference", "diverged") and score.name not in without
        ]
        if not left:
            return None
        best = left[0]
        tied = [
            score for score in left if score.learner == best.learner and self._tied(score, best)
        ]
        return min(tied, key=step_size)

    def _tied(self, score: Score, best: Score) -> bool:
        if score is best:
            return True
        a, b = self._names.index(score.name), self._names.index(best.name)
        with np.errstate(invalid="ignore"):
            error = (self._samples[:, a] - self._samples[:, b]).std()
        near = score.score - best.score <= TIE * error
        return bool(near or (self.noise and not self.compare(score.name, best.name).low > 0.0))

    def compare(self, first: str, second: str) -> Estimate:
        """Compute the score of one candidate minus that of another, with its paired interval.

        Args:
            first: the name of a candidate, as in the table.
            second: the name of another.
        """
        for name in (first, second):
            if name not in self._names:
                raise ValueError(f"no candidate {name!r}; there are: {', '.join(self._names)}")
        a, b = self._names.index(first), self._names.index(second)
        return difference_of(self._sums.scores, self._samples, a, b, self.episodes, self.level)

    def __repr__(self) -> str:
        rows = [("", "squared error", "above the best", f"{percent(self.level, 'g')} interval")]
        for score in self.scores:
            d = score.difference
            above, ends = ("", "") if score is self.best else (_text(d.value), _ends(d))
            rows.append((score.name, _text(score.score), above, ends))
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        standings = ["chance to be best", *(self._standing(score) for score in self.scores)]
        lines = [
            f"  {name:<{widths[0]}}  {a:>{widths[1]}}  {b:>{widths[2]}}  {c:>{widths[3]}}  {last}"
            for (name, a, b, c), last in zip(rows, standings, strict=True)
        ]
        k_hat = "unknown" if math.isnan(self.k_hat) else f"{self.k_hat:.2g}"
        return "\n".join([
            f"{self.episodes:,} held-out episodes, {self.states:,} states; {self.returns} returns"
            f"{', of estimated ratios, whose errors are in no interval' * self.estimated}",
            *(line.rstrip() for line in lines),
            f"  weights: effective sample size {self.effective_sample_size:.3g} of "
            f"{self.episodes:,} episodes, k-hat {k_hat} (trusted up to {LARGEST_K_HAT}); "
            f"{percent(self.beyond)} of the values beyond cut episodes",
            f"  verdict: {self.verdict}",
        ])  # fmt: skip

    @staticmethod
    def _standing(score: Score) -> str:
        if score.standing in ("diverged", "reference"):
            return score.standing
        return f"{percent(score.chance, '3.0f')}  {score.standing}"


def difference_of(
    scores: Floats, samples: Floats, at: int, other: int, episodes: int, level: float
) -> Estimate:
    """Compute the difference of two scores and its interval from bootstrap samples [B, L]."""
    with np.errstate(invalid="ignore"):
        value, values = scores[at] - scores[other], samples[:, at] - samples[:, other]
    if at == other:
        return Estimate(0.0, 0.0, 0.0, level=level)
    low, high = interval(values, episodes, level)
    return Estimate(float(value), low, high, level=level)


def interval(values: Array, episodes: int, level: float) -> tuple[float, float]:
    """Return the ends of the bootstrap interval from values [B]; nan with too few episodes."""
    good = values[np.isfinite(values)]
    if episodes < FEWEST or len(good) < len(values):
        return float("nan"), float("nan")
    tail = tail_of(episodes, level)
    return float(np.quantile(good, tail)), float(np.quantile(good, 1 - tail))


def _text(number: float) -> str:
    return f"{number:.4g}"


def _ends(difference: Estimate) -> str:
    if math.isnan(difference.low):
        return ""
    return f"{difference.low:.3g} to {difference.high:.3g}"
