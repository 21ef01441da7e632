"""Scores: squared errors of predictions against returns, and their paired differences.

The score of a prediction V is the mean of (V(s_t) - G_t)^2 over the states of held-out episodes,
weighted by interest. If E[ G | s ] = v(s), then

    E[ (V - G)^2 ] = E[ (V - v)^2 ] + E[ Var(G | s) ].

The last term is the noise of the returns. It is the same for all candidates only if all are scored
by the same returns. So one baseline serves all. Then the difference of two scores estimates the
difference of their true squared errors without bias, whatever the baseline is; the baseline decides
only how noisy the difference is. (A squared TD error has no such property. Each candidate would
be scored by its own targets, C + gamma V(s'), and values that hardly vary have small TD errors.)

The baseline must not know the returns that it helps to compute. It is the prediction of the
candidate that is best in *other* episodes: the episodes are dealt into groups, and each takes the
candidate with the lowest score in all other groups. Their scores need a baseline too. It is the
median of all candidates at first, then the candidate that is best by these scores, and so on, for a
few rounds (:func:`baselines`).

Intervals come from the bootstrap over episodes, the independent units of a log. All candidates are
resampled together. In cross-validation the learners of K parts share most of their episodes, so
their errors are not independent. Deviations of bootstrap samples are then enlarged by
sqrt(1 + K / (K - 1)), the correction of Nadeau and Bengio (2003): 1.5 for five parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gvf.common.arrays import Array, Bools, Floats
from gvf.common.bootstrap import tail_of
from gvf.judging.held_out import HeldOut
from gvf.judging.returns import recursive_returns, weighted_returns

Returns = Literal["doubly-robust", "per-decision", "weighted"]
GROUPS = 5
"""The number of groups of episodes for the cross-fitting of the baseline."""
ROUNDS = 3
"""The number of times that a baseline is chosen, each time by returns with the one before."""
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
        found, step = [], max(1, _AT_ONCE // count)
        diverged = ~np.isfinite(self.error).all(axis=0)
        error = np.where(diverged, 0.0, self.error)
        for start in range(0, replicates, step):
            size = min(step, replicates - start)
            times = rng.multinomial(count, np.full(count, 1.0 / count), size=size)
            with np.errstate(invalid="ignore", divide="ignore"):
                found.append((times @ error) / (times @ self.weight)[:, None])
        samples = np.concatenate(found)
        if parts > 1:
            scores = error.sum(axis=0) / self.weight.sum()
            samples = scores + math.sqrt(1 + parts / (parts - 1)) * (samples - scores)
        return np.where(diverged, np.inf, samples)


def baselines(held: HeldOut, seed: int) -> tuple[Floats, Floats]:
    """Compute the shared baseline of each state, and after each cut, both float64[n].

    All rounds for a group leave out its episodes, so its returns are unbiased. In cross-validation
    the parts of the log are the groups. Learners of other parts have then learned from the group's
    episodes; nothing of this enters a baseline but the choice of one candidate out of several.

    Args:
        held: the held-out episodes.
        seed: the seed by which episodes are dealt into groups.
    """
    alive = finite(held)
    if not alive.any():
        return np.zeros(len(held.ratio)), np.zeros(len(held.ratio))
    predicted, after = held.predicted[:, alive], held.after[:, alive]
    first = np.median(predicted, axis=1), np.median(after, axis=1)
    group = held.part[held.starts]
    if not group.any():
        group = np.random.default_rng(seed).permutation(len(group)) % GROUPS
    rows = group[held.episode]

    def improved(
        baseline: tuple[Floats, Floats], sums: Sums, groups: Array, without: int
    ) -> tuple[Floats, Floats]:
        """Take the candidate that is best in the other groups, except for one group."""
        shared, beyond = (column.copy() for column in baseline)
        for one in groups:
            error = sums.error[(group != one) & (group != without)].sum(axis=0)
            if np.isfinite(error).any():
                at, best = rows == one, int(np.argmin(error))
                shared[at], beyond[at] = predicted[at, best], after[at, best]
        return shared, beyond

    start = squared_errors(held, _recursive(held, *first), predicted)
    found, groups = first, np.unique(group)
    for one in groups:
        baseline, sums, others = first, start, groups[groups != one]
        for _ in range(ROUNDS - 1 if len(others) > 1 else 0):
            baseline = improved(baseline, sums, others, one)
            sums = squared_errors(held, _recursive(held, *baseline), predicted)
        if len(others):
            found = improved(found, sums, groups[groups == one], one)
    return found


def finite(held: HeldOut) -> Bools:
    """Return True for candidates whose predictions are all finite, bool[L]."""
    return np.asarray(np.isfinite(held.predicted).all(axis=0) & np.isfinite(held.after).all(axis=0))


def _recursive(held: HeldOut, baseline: Floats, after: Floats) -> Floats:
    return recursive_returns(
        held.ratio, held.cumulant, held.continuation, baseline, held.last, after
    )


def returns_of(held: HeldOut, kind: Returns, baseline: Floats, after: Floats) -> Floats:
    """Compute the returns by which all candidates are scored, float64[n]."""
    if kind == "weighted":
        return weighted_returns(held.ratio, held.cumulant, held.continuation, held.last, after)
    return _recursive(held, baseline if kind == "doubly-robust" else 0.0 * baseline, after)


def squared_errors(held: HeldOut, returns: Floats, predicted: Floats) -> Sums:
    """Sum squared errors by episode; those of predictions that are not finite are infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = (predicted - returns[:, None]) ** 2
        square[np.isnan(square)] = np.inf
        square *= held.interest[:, None]
        square[np.isnan(square)] = 0.0  # no interest in a state, and no prediction
        error = np.add.reduceat(square, held.starts, axis=0)
    return Sums(error, np.add.reduceat(held.interest, held.starts))


def interval(values: Array, episodes: int, confidence: float) -> tuple[float, float]:
    """Return the ends of the bootstrap interval from values [B]; nan with too few episodes."""
    good = values[np.isfinite(values)]
    if episodes < FEWEST or len(good) < len(values):
        return float("nan"), float("nan")
    tail = tail_of(episodes, confidence)
    return float(np.quantile(good, tail)), float(np.quantile(good, 1 - tail))
