"""Judgements: how well learners predict held-out episodes, and what the log can tell of it.

:func:`compare_learners` scores learners that have learned (:mod:`gvf.judging.score`). It says
"cannot tell" where the returns rest on too little: few episodes, few of them with any weight, a
heavy tail of weights, or values that mostly lie beyond the ends of the episodes. The weight of an
episode is the sum of the discounted weights in its returns, divided by the sum of the discounts. It
is 1 if all ratios are. :mod:`gvf.judging.select_learner` splits a log, and lets learners learn,
before it judges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gvf.common.arrays import Floats
from gvf.common.checks import check_choice, whole
from gvf.common.quantiles import tail_of
from gvf.findings import Code, Finding
from gvf.judging.candidates import Candidate, named, question_of
from gvf.judging.comparison import (
    CONSTANT,
    Comparison,
    Score,
    Standing,
    difference_of,
)
from gvf.judging.held_out import HeldOut, gather
from gvf.judging.off_policy_returns import beyond_cut, mean_weights
from gvf.judging.policy_value import effective_rewards, policy_values
from gvf.judging.return_baseline import Returns, limit_of, returns_of, shared_baseline, sound
from gvf.judging.score import FEWEST, low_of_chosen, squared_errors
from gvf.policies import Policy
from gvf.question import GVF, OnConflict
from gvf.ratios import LARGEST_K_HAT, effective_size, tail_index

FEWEST_EPISODES = 10
"""The number of held-out episodes, and of effective ones, below which a log cannot tell."""
LARGEST_SHARE = 0.5
"""The largest share of the values that may lie beyond the ends of episodes that were cut."""


def compare_learners(
    learners: Any,
    log: Any,
    *,
    returns: Returns = "doubly-robust",
    question: GVF | None = None,
    behaviour: Policy | None = None,
    on_conflict: OnConflict = "error",
    level: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Score learners by held-out episodes, from a log alone.

    Every prediction is compared with the return from the same state, corrected for the target
    policy. All candidates are scored by the same returns, whose noise therefore cancels in
    differences. The differences are those of the true squared errors, up to sampling noise.

    Args:
        learners: learners, by name in a dict or in a list, or one learner. A learner with several
            step sizes is several candidates. Any object with ``predict`` will do, if `question` is
            given. They must not have learned from these episodes.
        log: the held-out episodes: a :class:`gvf.Log`, such as the second part of
            :meth:`gvf.Log.split`; or :class:`gvf.Transitions`, those of each ``stream`` in order;
            or a list of these, one for each episode.
        returns: "doubly-robust", whose baseline is the learners' own values;
            "per-decision" for importance-sampled returns without a baseline; or "weighted", whose
            weights are divided by their mean. See :mod:`gvf.judging.off_policy_returns`.
        question: the question; by default the learners' own, which must be the same.
        behaviour: the policy that chose the actions, if the log has no probabilities.
        on_conflict: as in :meth:`gvf.GVF.evaluate`.
        level: the level of the intervals.
        replicates: the number of bootstrap samples.
        seed: the seed of the bootstrap, and of the halves in which the baseline is chosen.

    Returns:
        A :class:`Comparison`; print it.

    Example:
        >>> import gvf, gymnasium
        >>> env = gymnasium.make("CliffWalking-v1", max_episode_steps=30)
        >>> batch, = gvf.collect(env, gvf.policies.Uniform(4), steps=5000, batch=5000, seed=0)
        >>> log = gvf.read_log(batch.columns, ends="truncated", quiet=True)
        >>> train, held_out = log.split(0.3)
        >>> question = gvf.GVF(gvf.policies.Favour(1, 0.4, actions=4), "reward", 0.9)
        >>> learner = gvf.Learner(
        ...     question, gvf.features.OneHot(48), gvf.updates.TD([0.001, 0.1]), seed=0
        ... )
        >>> report = learner.fit(train, order="log")
        >>> print(gvf.compare_learners(learner, held_out).verdict)
        TD, IR, step size 0.1 is best
    """
    by_name = named(learners)
    asked = question_of(by_name, question)
    check(returns, level, replicates)
    held, candidates = gather(by_name, log, asked, behaviour, on_conflict)
    return judged(held, candidates, returns, level, replicates, seed)


def check(returns: Returns, level: float, replicates: int) -> None:
    """Raise an error if an option of a judgement is not one of its choices."""
    check_choice("returns", returns, Returns)
    whole("replicates", replicates, 1)
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")


@np.errstate(over="ignore", invalid="ignore")  # candidates that have nearly diverged
def judged(
    held: HeldOut,
    candidates: Sequence[Candidate],
    returns: Returns,
    level: float,
    replicates: int,
    seed: int,
) -> Comparison:
    """Score candidates by held-out episodes with their predictions."""
    targets = returns_of(held, returns, shared_baseline(held, seed))
    diverged = ~sound(held)
    predicted = np.where(diverged, np.inf, held.predicted)
    sums = squared_errors(held, targets, np.column_stack([predicted, _constant(held, targets)]))
    scores = sums.scores
    samples = sums.resampled(replicates, seed, int(held.part.max()) + 1)
    episodes, count = len(sums.weight), len(candidates)
    best = int(np.argmin(np.where(np.isnan(scores[:-1]), np.inf, scores[:-1])))
    chances = np.bincount(samples[:, :-1].argmin(axis=1), minlength=count) / replicates
    everything = [*candidates, Candidate(CONSTANT, "", None)]

    def entry(at: int) -> Score:
        difference = difference_of(scores, samples, at, best, episodes, level)
        constant = at == count
        if constant:  # the best was chosen by the same episodes
            low = _low_of_best(scores, samples, best, episodes, level)
            difference = replace(difference, low=min(difference.low, low))
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
    size = effective_size(weights)
    beyond = beyond_cut(held.ratio, held.continuation, held.last, held.cut)
    share = float(np.clip(np.average(beyond, weights=held.interest), 0.0, 1.0))
    k_hat = tail_index(weights)
    largest, limit = float(np.abs(targets).max()), limit_of(held)
    return Comparison(
        scores=tuple(sorted(entries, key=lambda entry: (not entry.score < math.inf, entry.score))),
        returns=returns,
        level=level,
        episodes=episodes,
        states=len(targets),
        effective_sample_size=size,
        k_hat=k_hat,
        beyond=share,
        estimated=bool(held.estimated.any()),
        findings=tuple(_findings(episodes, size, k_hat, share, largest, limit)),
        noise=not largest <= limit,
        values=policy_values(held, targets, returns, level),
        rewards=effective_rewards(held),
        _sums=sums,
        _samples=samples,
        _names=tuple(candidate.name for candidate in everything),
    )


def _low_of_best(scores: Floats, samples: Floats, best: int, episodes: int, level: float) -> float:
    """Return the lower end of the constant's score minus the best, corrected for the choice."""
    usable = np.asarray(np.isfinite(samples).all(axis=0))
    if episodes < FEWEST or not usable[[best, -1]].all():
        return math.nan
    usable[-1] = False
    gains, drawn = scores[-1] - scores[usable], samples[:, -1:] - samples[:, usable]
    chosen = int(usable[:best].sum())
    return low_of_chosen(gains, drawn, chosen, tail_of(episodes, level))


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


def _findings(
    episodes: int, size: float, k_hat: float, beyond: float, largest: float, limit: float
) -> Iterator[Finding]:
    """Yield the reasons why held-out episodes cannot tell."""
    if episodes < FEWEST_EPISODES:
        yield Finding(Code.FEW_EPISODES, "stops", {"episodes": episodes})
    elif not size >= FEWEST_EPISODES:
        yield Finding(Code.FEW_OF_TARGET, "stops", {"episodes": episodes, "size": size})
    elif k_hat > LARGEST_K_HAT:
        yield Finding(Code.UNEVEN_EPISODES, "stops", {"k_hat": k_hat})
    if beyond > LARGEST_SHARE:
        yield Finding(Code.BEYOND_ENDS, "stops", {"share": beyond})
    if not math.isfinite(largest):
        yield Finding(Code.OVERFLOW, "stops")
    elif largest > limit:
        yield Finding(Code.LARGE_RETURNS, "stops", {"largest": largest})
