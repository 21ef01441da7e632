"""The value of the target policy from returns alone, without features or learning.

Held-out episodes give a return G of the target for each of their states
(:mod:`gvf.judging.off_policy_returns`). With sums over episodes e, each estimate is a ratio

    V = sum_e y_e / sum_e w_e,

    of returns         y = G of the first state             w = 1
    constant           y = sum of i(s) G over its states    w = sum of i(s), the interest
    plain              y = rho C                            w = 1
    self-normalised    y = rho C                            w = rho

The last two are for single decisions, episodes of one step after which nothing follows. There the
doubly robust return is the model's value of the state, under the target, plus rho times the error
of the model's value of the action, so the first line is the doubly robust estimate of off-policy
evaluation (Dudik et al. 2011). The plain estimate weighs by the inverse propensity.

The intervals treat episodes as the independent parts (:mod:`gvf.estimate`), with
quantiles of the t distribution with E - 1 degrees of freedom. They need many rewards: where few
carry an estimate, its interval is too short. Of single decisions with c as the commonest cumulant,

    (sum rho |C - c|)^2 / sum (rho |C - c|)^2

is the effective number of rewards; below 20 of them the intervals cover less often than they say
(experiments/judge/policy_value.py).
"""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np

from gvf.common.arrays import Array, Floats
from gvf.common.quantiles import t_quantile
from gvf.estimate import Estimate, mean_of_sums
from gvf.judging.held_out import HeldOut
from gvf.judging.off_policy_returns import Returns
from gvf.ratios import effective_size

FEWEST_REWARDS = 20
"""The effective number of rewards of single decisions below which intervals are too short."""


class Estimator(StrEnum):
    """The way in which the value of a policy is estimated.

    Example:
        >>> from gvf.judging import Estimator
        >>> Estimator("plain"), Estimator.PLAIN == "plain"
        (<Estimator.PLAIN: 'plain'>, True)
    """

    LEARNED = "learned"
    """The mean prediction of a learner for the first states of episodes."""
    DOUBLY_ROBUST = "doubly-robust"
    """The mean doubly robust return of the first states."""
    PER_DECISION = "per-decision"
    """The mean return of the first states, each reward weighted by the ratios before it."""
    WEIGHTED = "weighted"
    """The same, with weights divided by their mean."""
    PLAIN = "plain"
    """The mean of ratio times cumulant over single decisions."""
    SELF_NORMALISED = "self-normalised"
    """The same, divided by the mean ratio."""
    CONSTANT = "constant"
    """The mean return of all states: the constant that predicts best."""


def policy_values(
    held: HeldOut, returns: Floats, kind: Returns, level: float
) -> dict[Estimator, Estimate]:
    """Estimate the value of the target policy from the returns of held-out episodes.

    Args:
        held: the held-out episodes, E of them.
        returns: the return of each state, float64[n].
        kind: the kind of the returns.
        level: the level of the intervals.

    Returns:
        The estimates with their intervals, nan where they overflow or there is one episode.
    """
    starts, every = held.starts, np.ones(len(held.starts))

    def estimate(y: Array, w: Array) -> Estimate:
        return mean_of_sums(y, w, t_quantile(max(len(y) - 1, 1), level), level)

    values = {Estimator(kind): estimate(returns[starts], every)}
    if is_single(held):
        weighted = held.ratio * held.cumulant
        values[Estimator.PLAIN] = estimate(weighted, every)
        values[Estimator.SELF_NORMALISED] = estimate(weighted, held.ratio)
    # Without interest in a state its return may be infinite.
    wanted = held.interest * np.where(held.interest > 0.0, returns, 0.0)
    sums = (np.add.reduceat(column, starts) for column in (wanted, held.interest))
    return {**values, Estimator.CONSTANT: estimate(*sums)}


def is_single(held: HeldOut) -> bool:
    """Return True if all episodes are single decisions, after which nothing follows."""
    return bool(held.last.all()) and not held.cut.any()


def effective_rewards(held: HeldOut) -> float:
    """Return the effective number of rewards of single decisions; nan for longer episodes."""
    if not is_single(held):
        return math.nan
    values, counts = np.unique(held.cumulant, return_counts=True)
    size = held.ratio * np.abs(held.cumulant - values[counts.argmax()])
    return effective_size(size)
