"""Scores: squared errors of predictions against returns, and their paired differences.

The score of a prediction V is the mean of (V(s_t) - G_t)^2 over the states of held-out episodes,
weighted by interest. If E[ G | s ] = v(s), then

    E[ (V - G)^2 ] = E[ (V - v)^2 ] + E[ Var(G | s) ].

The last term is the noise of the returns. It is the same for all candidates only if all are scored
by the same returns, with one baseline for all (:mod:`gvf.judging.return_baseline`). Then the
difference of two scores estimates the difference of their true squared errors without bias. The
baseline decides only how noisy the difference is.

A squared TD error has no such property. Each candidate would be scored by its own targets,
C + gamma V(s'), and values that hardly vary have small TD errors.

Intervals come from the bootstrap over episodes, the independent units of a log. All candidates are
resampled together. In cross-validation the learners of K parts share most of their episodes, so
their errors are not independent. Deviations of bootstrap samples are then enlarged by
sqrt(1 + K / (K - 1)), the correction of Nadeau and Bengio (2003): 1.5 for five parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gvf.common.arrays import Array, Floats
from gvf.common.quantiles import tail_of
from gvf.judging.held_out import HeldOut

FEWEST = 2
"""The number of episodes from which on there are intervals."""
_AT_ONCE = 2**22
"""The largest number of counts of a bootstrap in memory."""


@dataclass(frozen=True, eq=False)
class Sums:
    """The squared errors of L candidates, summed in each of E episodes.

    Attributes:
        error: the sums of squared errors, weighted by interest, float64[E, L].
        weight: the sums of interests, float64[E].
    """

    error: Floats
    weight: Floats

    @property
    def scores(self) -> Floats:
        """The score of each candidate, float64[L]."""
        return self.error.sum(axis=0) / self.weight.sum()

    def resampled(self, replicates: int, seed: int, parts: int = 1) -> Floats:
        """Compute scores in bootstrap samples of the episodes of some parts, float64[B, L]."""
        rng, count = np.random.default_rng(seed), len(self.weight)
        batches, step = [], max(1, _AT_ONCE // count)
        diverged = ~np.isfinite(self.error).all(axis=0)
        error = np.where(diverged, 0.0, self.error)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for start in range(0, replicates, step):
                size = min(step, replicates - start)
                times = rng.multinomial(count, np.full(count, 1.0 / count), size=size)
                batches.append((times @ error) / (times @ self.weight)[:, None])
            samples = np.concatenate(batches)
            if parts > 1:
                scores = error.sum(axis=0) / self.weight.sum()
                samples = scores + math.sqrt(1 + parts / (parts - 1)) * (samples - scores)
        return np.where(diverged | np.isnan(samples), np.inf, samples)


def squared_errors(held: HeldOut, returns: Floats, predicted: Floats) -> Sums:
    """Sum squared errors by episode; those of predictions that are not finite are infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = (predicted - returns[:, None]) ** 2
        square[np.isnan(square)] = np.inf
        square *= held.interest[:, None]
        square[np.isnan(square)] = 0.0  # no interest in a state, and no prediction
        error = np.add.reduceat(square, held.starts, axis=0)
    return Sums(error, np.add.reduceat(held.interest, held.starts))


def interval(values: Array, episodes: int, level: float) -> tuple[float, float]:
    """Return the ends of the bootstrap interval from values [B]; nan with too few episodes."""
    good = values[np.isfinite(values)]
    if episodes < FEWEST or len(good) < len(values):
        return float("nan"), float("nan")
    tail = tail_of(episodes, level)
    return float(np.quantile(good, tail)), float(np.quantile(good, 1 - tail))


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
        >>> from gvf.judging.score import low_of_chosen
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
