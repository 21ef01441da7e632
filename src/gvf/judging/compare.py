"""Judgements: how well learners predict held-out episodes, and what the log can tell of it.

The score of a prediction V is the mean of (V(s_t) - G_t)^2 over the states of held-out episodes,
weighted by interest. If E[ G | s ] = v(s), then

    E[ (V - G)^2 ] = E[ (V - v)^2 ] + E[ Var(G | s) ].

The last term is the noise of the returns. It is the same for all candidates only if all are scored
by the same returns, with one baseline for all (:mod:`gvf.judging.off_policy_returns`). Then the
difference of two scores estimates the difference of their true squared errors without bias. The
baseline decides only how noisy the difference is.

A squared TD error has no such property. Each candidate would be scored by its own targets,
C + gamma V(s'), and values that hardly vary have small TD errors.

Intervals come from the bootstrap over episodes, the independent units of a log. All candidates are
resampled together. In cross-validation the learners of K parts share most of their episodes, so
their errors are not independent. Deviations of bootstrap samples are then enlarged by
sqrt(1 + K / (K - 1)), the correction of Nadeau and Bengio (2003): 1.5 for five parts.

:func:`compare_learners` says
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
    FEWEST,
    Comparison,
    Score,
    Standing,
    difference_of,
)
from gvf.judging.held_out import HeldOut, Sums, gather, squared_errors
from gvf.judging.off_policy_returns import (
    Returns,
    beyond_cut,
    limit_of,
    mean_weights,
    returns_of,
    shared_baseline,
    sound,
)
from gvf.judging.policy_value import effective_rewards, policy_values
from gvf.policies import Policy
from gvf.question import GVF, OnConflict
from gvf.ratios import LARGEST_K_HAT, effective_size, tail_index

FEWEST_EPISODES = 10
"""The number of held-out episodes, and of effective ones, below which a log cannot tell."""
LARGEST_SHARE = 0.5
"""The largest share of the values that may lie beyond the ends of episodes that were cut."""
_AT_ONCE = 2**22
"""The largest number of counts of a bootstrap in memory."""


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
    samples = resampled(sums, replicates, seed, int(held.part.max()) + 1)
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


def resampled(sums: Sums, replicates: int, seed: int, parts: int = 1) -> Floats:
    """Compute scores in bootstrap samples of the episodes of some parts, float64[B, L]."""
    rng, count = np.random.default_rng(seed), len(sums.weight)
    batches, step = [], max(1, _AT_ONCE // count)
    diverged = ~np.isfinite(sums.error).all(axis=0)
    error = np.where(diverged, 0.0, sums.error)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for start in range(0, replicates, step):
            size = min(step, replicates - start)
            times = rng.multinomial(count, np.full(count, 1.0 / count), size=size)
            batches.append((times @ error) / (times @ sums.weight)[:, None])
        samples = np.concatenate(batches)
        if parts > 1:
            scores = error.sum(axis=0) / sums.weight.sum()
            samples = scores + math.sqrt(1 + parts / (parts - 1)) * (samples - scores)
    return np.where(diverged | np.isnan(samples), np.inf, samples)


def low_of_chosen(gains: Floats, samples: Floats, chosen: int, tail: float) -> float:
    """Return the lower end of an interval for the gain of a candidate that was chosen among L.

    The largest of many gains is large by chance. With the deviations of all gains in bootstrap
    samples, in units of their standard deviations s_j, the end is

        g - s q,    q = the quantile of max_j (g_j - g*_j) / s_j.

    It holds for all candidates at once, so also for one that was chosen by the same episodes. With
    one candidate it is the end of the plain interval.

    Args:
        gains: the gain of each candidate, float64[L].
        samples: their gains in bootstrap samples, float64[B, L].
        chosen: the number of the candidate.
        tail: the share of samples beyond the end.

    Example:
        >>> import numpy as np
        >>> from gvf.judging.compare import low_of_chosen
        >>> samples = 1.0 + np.random.default_rng(0).normal(size=(10_000, 24))
        >>> for number in (1, 24):
        ...     print(round(low_of_chosen(np.ones(number), samples[:, :number], 0, 0.025), 1))
        -1.0
        -2.1
    """
    deviation = samples - gains
    spread = deviation.std(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.nanmin(np.where(spread > 0.0, deviation / spread, 0.0), axis=1)
    return float(gains[chosen] + spread[chosen] * np.quantile(worst, tail))


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
