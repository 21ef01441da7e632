"""Judgement: the share of the variance of held-out returns that predictions explain.

The error of a question is its mean squared error over states and rollouts, divided by the variance
of the returns, and the variance explained is 1 minus the error. Two rollouts from one state differ
only by chance, so half of their mean squared difference cannot be explained by any prediction.
States are independent, so standard errors and intervals come from weights of states: leaving out
one at a time, or drawing as many with replacement.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from examples.humanoid.robot import Calibration
from gvf.common.arrays import Arrays, Floats

WORST = 100.0
"""The largest error that counts; a prediction that has diverged has it."""

TINY = 1e-9
"""The smallest variance that is divided by."""


def scaled_returns(held_out: Arrays, calibration: Calibration) -> Floats:
    """Return the returns of sensors in standard deviations, [S, R, targets, C, continuations]."""
    of_mean = held_out["discounts"][..., None] * calibration.mean
    scaled = (held_out["returns"][..., calibration.varying] - of_mean) / calibration.sd
    return scaled.transpose(0, 2, 1, 4, 3)


class Sums(NamedTuple):
    """Sums over the rollouts of each state, [S, targets, C, continuations].

    Attributes:
        wrong: the sum of squared errors.
        first: the sum of returns.
        second: the sum of squared returns.
        rollouts: the number of rollouts.
    """

    wrong: Floats
    first: Floats
    second: Floats
    rollouts: int


def sums(predictions: NDArray[Any], returns: Floats) -> Sums:
    """Return the sums for predictions [S, targets, C, continuations]."""
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = np.square(predictions[:, None] - returns).sum(axis=1)
    wrong = np.where(wrong < 1e12, wrong, 1e12)
    return Sums(wrong, returns.sum(axis=1), np.square(returns).sum(axis=1), returns.shape[1])


def errors(sums: Sums, weights: Floats) -> Floats:
    """Return the errors for weights of states [B, S], as [B, targets, C, continuations]."""
    shares = weights / (sums.rollouts * weights.sum(axis=1, keepdims=True))
    wrong, first, second = (np.tensordot(shares, part, 1) for part in sums[:3])
    return np.minimum(wrong / np.maximum(second - first**2, TINY), WORST)


def all_states(count: int) -> Floats:
    """Return equal weights, [1, S]."""
    return np.ones((1, count))


def all_but_one(count: int) -> Floats:
    """Return weights that leave out one state each, [S, S]."""
    return 1.0 - np.eye(count)


def drawn(count: int, draws: int = 400) -> Floats:
    """Return the weights of states drawn with replacement, [draws, S]."""
    rng = np.random.default_rng(0)
    return rng.multinomial(count, np.full(count, 1.0 / count), size=draws).astype(float)


def by_chance(returns: Floats) -> Floats:
    """Return the share of the variance of returns that is chance, [targets, C, continuations]."""
    return returns.var(axis=1, ddof=1).mean(axis=0) / np.maximum(returns.var(axis=(0, 1)), TINY)


def interval(values: Floats) -> tuple[float, float]:
    """Return the middle 95 % of values."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
