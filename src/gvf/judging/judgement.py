"""Judgements: how well learners predict held-out episodes, and what the log can tell of it.

:func:`judge` scores learners that have learned (:mod:`gvf.judging.score`). It says "cannot tell"
where the returns rest on too little: few episodes, few of them with any weight, a heavy tail of
weights, or values that mostly lie beyond the ends of the episodes. The weight of an episode is the
sum of the discounted weights in its returns, divided by the sum of the discounts. It is 1 if all
ratios are. :mod:`gvf.judging.selection` splits a log, and lets learners learn, before it judges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gvf.common.arrays import Floats
from gvf.common.bootstrap import tail_of
from gvf.common.checks import check_choice, whole
from gvf.diagnosis.tail import tail_index
from gvf.judging.baseline import Returns, limit_of, returns_of, shared_baseline, sound
from gvf.judging.candidates import Candidate, named, question_of
from gvf.judging.held_out import HeldOut, gather
from gvf.judging.policy_value import effective_rewards, policy_values
from gvf.judging.record import (
    CONSTANT,
    LARGEST_K_HAT,
    Judgement,
    Score,
    Standing,
    difference_of,
)
from gvf.judging.returns import beyond_cut, mean_weights
from gvf.judging.score import FEWEST, low_of_chosen, squared_errors
from gvf.policy import Policy
from gvf.question import GVF, OnConflict

FEWEST_EPISODES = 10
"""The number of held-out episodes, and of effective ones, below which a log cannot tell."""
LARGEST_SHARE = 0.5
"""The largest share of the values that may lie beyond the ends of episodes that were cut."""


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
            :meth:`gvf.Log.split`; or :class:`gvf.Transitions`, those of each ``stream`` in order;
            or a list of these, one for each episode.
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
        >>> print(gvf.judge(learner, held_out).verdict)
        TD, IR, step size 0.1 is best
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


@np.errstate(over="ignore", invalid="ignore")  # candidates that have nearly diverged
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
        difference = difference_of(scores, samples, at, best, episodes, confidence)
        constant = at == count
        if constant:  # the best was chosen by the same episodes
            low = _low_of_best(scores, samples, best, episodes, confidence)
            difference = difference._replace(low=min(difference.low, low))
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
    largest, limit = float(np.abs(targets).max()), limit_of(held)
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
        doubts=tuple(_doubts(episodes, size, k_hat, share, largest, limit)),
        noise=not largest <= limit,
        values=policy_values(held, targets, returns, confidence),
        rewards=effective_rewards(held),
        _sums=sums,
        _samples=samples,
        _names=tuple(one.name for one in everything),
    )


def _low_of_best(
    scores: Floats, samples: Floats, best: int, episodes: int, confidence: float
) -> float:
    """Return the lower end of the constant's score minus the best, corrected for the choice."""
    usable = np.asarray(np.isfinite(samples).all(axis=0))
    if episodes < FEWEST or not usable[[best, -1]].all():
        return math.nan
    usable[-1] = False
    gains, drawn = scores[-1] - scores[usable], samples[:, -1:] - samples[:, usable]
    chosen = int(usable[:best].sum())
    return low_of_chosen(gains, drawn, chosen, tail_of(episodes, confidence))


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


def _doubts(
    episodes: int, size: float, k_hat: float, beyond: float, largest: float, limit: float
) -> list[str]:
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
    if not math.isfinite(largest):
        doubts.append("products of ratios overflow")
    elif largest > limit:
        doubts.append(f"products of ratios make returns of {largest:.2g}")
    return doubts
