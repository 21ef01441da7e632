"""Scores of an estimated behaviour, on rows of episodes that its models have not seen.

    log loss       mean of -log mu(a|s)
    Brier score    mean over rows of sum_b (mu(b|s) - 1[b = a])^2

Beside the log loss stands that of the same frequencies (or the same Gaussian) in every state: what
the states tell of the behaviour is the difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.behaviour.behaviour_rows import LogRows
from gvf.behaviour.reliability import (
    Reliability,
    few_rows,
    of_densities,
    of_probabilities,
    transforms,
)
from gvf.common.arrays import Floats
from gvf.estimate import Estimate, mean_by_episode
from gvf.policies import DiscretePolicy, Policy
from gvf.policies.policy import log


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of an estimated behaviour, with 95 % intervals over episodes.

    Attributes:
        rows: the number of rows.
        episodes: the number of episodes that they are from.
        log_loss: the mean of -log mu(a|s); for densities it may be negative.
        constant: the log loss of the same frequencies, or the same Gaussian, in every state.
        brier: the Brier score; None for densities.
        smallest: the smallest probability of an action that was taken; None for densities.
        reliability: the reliability, with the calibration error.
    """

    rows: int
    episodes: int
    log_loss: Estimate
    constant: float
    brier: Estimate | None
    smallest: float | None
    reliability: Reliability


def scored(
    policies: Sequence[Policy], fold_of: NDArray[Any], rows: LogRows, rng: np.random.Generator
) -> Scores:
    """Judge the policies of the folds, each on the rows of its own fold."""
    fold, actions, episode = fold_of[rows.episode], rows.actions, rows.episode
    m = len(actions)
    if rows.count is not None:
        p = np.empty((m, rows.count))
        for k, policy in enumerate(policies):
            assert isinstance(policy, DiscretePolicy)
            p[fold == k] = policy.probabilities(rows.states[fold == k])
        taken = p[np.arange(m), actions]
        squares = (p * p).sum(axis=1) - 2 * taken + 1
        shares = np.bincount(actions, minlength=rows.count) / m
        return Scores(
            rows=m,
            episodes=len(np.unique(episode)),
            log_loss=mean_by_episode(-np.log(taken), episode),
            constant=-float(np.dot(shares, np.where(shares > 0, log(shares), 0.0))),
            brier=mean_by_episode(squares, episode),
            smallest=float(taken.min()),
            reliability=of_probabilities(p, actions, episode, rng),
        )
    logs, transform = np.empty(m), np.empty(actions.shape)
    few = np.zeros(m, bool)
    few[few_rows(m, rng)] = True
    for k, policy in enumerate(policies):
        in_fold, judged = fold == k, few & (fold == k)
        logs[in_fold] = policy.log_probability(rows.states[in_fold], actions[in_fold])
        transform[judged] = transforms(policy, rows.states[judged], actions[judged], rng)
    return Scores(
        rows=m,
        episodes=len(np.unique(episode)),
        log_loss=mean_by_episode(-logs, episode),
        constant=_gaussian_loss(actions),
        brier=None,
        smallest=None,
        reliability=of_densities(transform[few], episode[few], rng),
    )


def _gaussian_loss(actions: Floats) -> float:
    """Return the log loss of the Gaussian with the mean and spread of actions [m, d]."""
    return float((np.log(actions.std(axis=0)) + 0.5 * math.log(2 * math.pi) + 0.5).sum())
