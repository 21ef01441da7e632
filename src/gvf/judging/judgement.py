"""Judgements: how well learners predict held-out episodes, and what the log can tell of it.

:func:`judge` scores learners that have learned (:mod:`gvf.judging.score`). It says "cannot tell"
where the returns rest on too little: few episodes, few of them with any weight, a
heavy tail of weights, or values that mostly lie beyond the ends of the episodes. The weight of an
episode is the sum of the weights in its returns by the sum of the discounts, which is 1 if all
ratios are. :mod:`gvf.judging.selection` splits a log, and lets learners learn, before it judges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from gvf.common.arrays import Array, Floats
from gvf.common.checks import check_choice, whole
from gvf.diagnosis.tail import tail_index
from gvf.judging.baseline import Returns, finite, returns_of, shared_baseline
from gvf.judging.candidates import Candidate, named, question_of
from gvf.judging.held_out import HeldOut, gather
from gvf.judging.returns import beyond_cut, mean_weights
from gvf.judging.score import Sums, interval, squared_errors
from gvf.policy import Policy
from gvf.question import GVF, OnConflict

FEWEST_EPISODES = 10
"""The number of held-out episodes, and of effective ones, below which a log cannot tell."""
LARGEST_K_HAT = 0.7
"""The largest Pareto index of the weights with which averages can be trusted."""
LARGEST_SHARE = 0.5
"""The largest share of the values that may lie beyond the ends of episodes that were cut."""
CONSTANT = "a constant"
"""The name of the reference, which predicts the mean return everywhere."""

Standing = Literal["best", "as good", "worse", "diverged", "reference"]


class Difference(NamedTuple):
    """The difference of two scores, with its bootstrap interval over episodes.

    Example:
        >>> from gvf.judging import Difference
        >>> Difference(0.5, 0.25, 0.75)
        0.5 [0.25, 0.75]
    """

    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


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
    """

    name: str
    learner: str
    lane: int | None
    score: float
    difference: Difference
    chance: float
    standing: Standing


@dataclass(frozen=True, repr=False)
class Judgement:
    """The scores of learners on held-out episodes, and how far they can be trusted.

    Attributes:
        scores: a :class:`Score` for each candidate and for the best constant, best first.
        returns: the kind of returns.
        confidence: the level of the intervals.
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
        doubts: reasons why the log cannot tell which candidate is best; none if it can.
    """

    scores: tuple[Score, ...]
    returns: Returns
    confidence: float
    episodes: int
    states: int
    effective_sample_size: float
    k_hat: float
    beyond: float
    estimated: bool
    doubts: tuple[str, ...]
    _sums: Sums = field(compare=False)
    _samples: Floats = field(compare=False)
    _names: tuple[str, ...] = field(compare=False)

    @property
    def best(self) -> Score:
        """The candidate with the lowest score; the constant is none."""
        return next(score for score in self.scores if score.standing != "reference")

    @property
    def constant(self) -> Score:
        """The constant's score: the mean squared difference of returns from their mean."""
        return next(score for score in self.scores if score.standing == "reference")

    @property
    def verdict(self) -> str:
        """One sentence: which candidate is best, or why the log cannot tell."""
        best = self.best
        if best.standing == "diverged":
            return "all candidates have diverged"
        if self.doubts:
            return f"cannot tell: {'; '.join(self.doubts)}"
        rest = [score for score in self.scores if score.standing == "as good"]
        if not self.constant.difference.low > 0.0:
            return f"cannot tell: {best.name} predicts no better than {CONSTANT}"
        if not rest:
            return f"{best.name} is best"
        others = rest[0].name if len(rest) == 1 else f"{len(rest)} others"
        return f"{best.name} has the lowest error, and cannot be told from {others}"

    def compare(self, first: str, second: str) -> Difference:
        """Compute the score of one candidate minus that of another, with its paired interval.

        Args:
            first: the name of a candidate, as in the table.
            second: the name of another.
        """
        for name in (first, second):
            if name not in self._names:
                raise ValueError(f"no candidate {name!r}; there are: {', '.join(self._names)}")
        a, b = self._names.index(first), self._names.index(second)
        return _difference(self._sums.scores, self._samples, a, b, self.episodes, self.confidence)

    def __repr__(self) -> str:
        rows = [("", "squared error", "above the best", f"{100 * self.confidence:.0f} % interval")]
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
            f"{100 * self.beyond:.2g} % of the values beyond cut episodes",
            f"  verdict: {self.verdict}",
        ])  # fmt: skip

    @staticmethod
    def _standing(score: Score) -> str:
        if score.standing in ("diverged", "reference"):
            return score.standing
        return f"{100 * score.chance:3.0f} %  {score.standing}"


def judge(
    learners: Any,
    log: Any,
    *,
    returns: Returns = "doubly-robust",
    question: GVF | None = None,
    behaviour: Policy | None = None,
    on_conflict: OnConflict = "error",
    confidence: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> Judgement:
    """Score learners by held-out episodes, from a log alone.

    Every prediction is compared with the return from the same state, corrected for the target
    policy. All candidates are scored by the same returns, whose noise therefore cancels in
    differences. The differences are those of the true squared errors, up to sampling noise.

    Args:
        learners: learners, by name in a dict or in a list, or one learner. A learner with several
            step sizes is several candidates. Any object with ``predict`` will do, if `question` is
            given. They must not have learned from these episodes.
        log: the held-out episodes: a :class:`gvf.Log`, such as the second part of
            :meth:`gvf.Log.split`; or :class:`gvf.Transitions` in order; or a list of these, one for
            each episode.
        returns: "doubly-robust", whose baseline is the learners' own values;
            "per-decision" for importance-sampled returns without a baseline; or "weighted", whose
            weights are divided by their mean. See :mod:`gvf.judging.returns`.
        question: the question; by default the learners' own, which must be the same.
        behaviour: the policy that chose the actions, if the log has no probabilities.
        on_conflict: as in :meth:`gvf.GVF.evaluate`.
        confidence: the level of the intervals.
        replicates: the number of bootstrap samples.
        seed: the seed of the bootstrap, and of the halves in which the baseline is chosen.

    Returns:
        A :class:`Judgement`; print it.

    Example:
        >>> import gvf, gymnasium
        >>> env = gymnasium.make("gvf/MarkovChain-v0")
        >>> batch, = gvf.transitions(env, gvf.Uniform(2), steps=2000, batch=2000, seed=0)
        >>> log = gvf.read(batch.columns, ends="truncated", quiet=True)
        >>> train, held_out = log.split(0.3)
        >>> question = gvf.GVF(gvf.Fixed([0.1, 0.9]), "reward", 0.9)
        >>> learner = gvf.Learner(question, gvf.OneHot(10), gvf.TD([0.001, 0.1]), seed=0)
        >>> report = learner.learn(train)
        >>> gvf.judge(learner, held_out).verdict
        'TD, IR, step size 0.1 is best'
    """
    given = named(learners)
    asked = question_of(given, question)
    check(returns, confidence, replicates)
    held, candidates = gather(given, log, asked, behaviour, on_conflict)
    return judged(held, candidates, returns, confidence, replicates, seed)


def check(returns: Returns, confidence: float, replicates: int) -> None:
    """Raise an error if an option of a judgement is not one of its choices."""
    check_choice("returns", returns, Returns)
    whole("replicates", replicates, 1)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")


def judged(
    held: HeldOut,
    candidates: Sequence[Candidate],
    returns: Returns,
    confidence: float,
    replicates: int,
    seed: int,
) -> Judgement:
    """Score candidates by held-out episodes with their predictions."""
    targets = returns_of(held, returns, shared_baseline(held, seed))
    predicted = np.column_stack([held.predicted, _constant(held, targets)])
    sums = squared_errors(held, targets, predicted)
    scores, diverged = sums.scores, ~finite(held)
    samples = sums.resampled(replicates, seed, int(held.part.max()) + 1)
    episodes, count = len(sums.weight), len(candidates)
    best = int(np.argmin(np.where(np.isnan(scores[:-1]), np.inf, scores[:-1])))
    chances = np.bincount(samples[:, :-1].argmin(axis=1), minlength=count) / replicates
    everything = [*candidates, Candidate(CONSTANT, "", None)]

    def entry(at: int) -> Score:
        difference = _difference(scores, samples, at, best, episodes, confidence)
        constant = at == count
        standing: Standing = "as good"
        if constant:
            standing = "reference"
        elif diverged[at]:
            standing = "diverged"
        elif at == best:
            standing = "best"
        elif difference.low > 0.0:
            standing = "worse"
        chance = 0.0 if constant else float(chances[at])
        return Score(*everything[at], float(scores[at]), difference, chance, standing)

    entries = [entry(at) for at in range(count + 1)]
    weights = _weights(held)
    size = float(weights.sum() ** 2 / (weights**2).sum()) if weights.any() else 0.0
    beyond = beyond_cut(held.ratio, held.continuation, held.last, held.cut)
    share = float(np.clip(np.average(beyond, weights=held.interest), 0.0, 1.0))
    k_hat = tail_index(weights)
    return Judgement(
        scores=tuple(sorted(entries, key=lambda one: (not one.score < math.inf, one.score))),
        returns=returns,
        confidence=confidence,
        episodes=episodes,
        states=len(targets),
        effective_sample_size=size,
        k_hat=k_hat,
        beyond=share,
        estimated=bool(held.estimated.any()),
        doubts=tuple(_doubts(episodes, size, k_hat, share, targets)),
        _sums=sums,
        _samples=samples,
        _names=tuple(one.name for one in everything),
    )


def _constant(held: HeldOut, targets: Floats) -> Floats:
    """Return the mean return of the other episodes as a prediction for each state, float64[n]."""
    sums = np.add.reduceat(np.stack([held.interest * targets, held.interest], 1), held.starts)
    total, weight = (sums.sum(axis=0) - sums).T
    means = np.divide(total, weight, out=np.zeros(len(sums)), where=weight > 0.0)
    return means[held.episode]


def _weights(held: HeldOut) -> Floats:
    """Compute the mean weight of each episode's returns, float64[E]."""
    sums = np.stack(mean_weights(held.ratio, held.continuation, held.last), axis=1)
    weight, discount = np.add.reduceat(sums, held.starts, axis=0).T
    return weight / discount


def _doubts(episodes: int, size: float, k_hat: float, beyond: float, targets: Array) -> list[str]:
    """List the reasons why held-out episodes cannot tell."""
    doubts = []
    if episodes < FEWEST_EPISODES:
        doubts.append(f"there are only {episodes} held-out episodes")
    elif not size >= FEWEST_EPISODES:
        doubts.append(f"the {episodes:,} held-out episodes are worth only {size:.2g} of the target")
    elif k_hat > LARGEST_K_HAT:
        doubts.append(f"few episodes have most of the weight (k-hat {k_hat:.2g})")
    if beyond > LARGEST_SHARE:
        doubts.append(f"{100 * beyond:.0f} % of the values lie beyond the ends of cut episodes")
    if not np.isfinite(targets).all():
        doubts.append("products of ratios overflow")
    return doubts


def _difference(
    scores: Floats, samples: Floats, at: int, other: int, episodes: int, confidence: float
) -> Difference:
    with np.errstate(invalid="ignore"):
        value, values = scores[at] - scores[other], samples[:, at] - samples[:, other]
    if at == other:
        return Difference(0.0, 0.0, 0.0)
    return Difference(float(value), *interval(values, episodes, confidence))


def _text(number: float) -> str:
    return f"{number:.4g}"


def _ends(difference: Difference) -> str:
    if math.isnan(difference.low):
        return ""
    return f"{difference.low:.3g} to {difference.high:.3g}"
