"""The baseline of doubly robust returns, one for all candidates, that does not know the returns.

The episodes are dealt into groups. The baseline b of a group is the prediction of the candidate
with the lowest score in all other groups. Their scores need a baseline too. It is the median of all
candidates at first, then the candidate that is best by these scores, and so on, for a few rounds.
The advantage A of a group is a ridge regression of the TD error

    C + gamma b(s') - b(s)

on the predictions of all candidates for s, apart for each action, over the other groups. Together
they approximate action values, b + A, without features. There is no advantage if actions are
continuous. A worse baseline makes scores noisier, and leaves them unbiased.

In cross-validation the parts of the log are the groups. Learners of other parts have then learned
from the group's episodes. This enters a baseline only through the choice of one candidate and the
coefficients of the regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gvf.common.arrays import Array, Bools, Floats
from gvf.common.divergence import DIVERGED, largest_return
from gvf.judging.held_out import HeldOut
from gvf.judging.off_policy_returns import recursive_returns, weighted_returns
from gvf.judging.score import Sums, squared_errors

Returns = Literal["doubly-robust", "per-decision", "weighted"]
GROUPS = 5
"""The number of groups of episodes for cross-fitting."""
ROUNDS = 3
"""The number of times that a candidate is chosen, each time by returns with the one before."""
RIDGE = 10.0
"""The penalty of the regression, in squared units of standardised predictions."""
_WIDEST = 100.0
"""Predictions that vary this many times as much as the baseline are left out of the regression."""


@dataclass(frozen=True, eq=False)
class Baseline:
    """The baseline of n states.

    Attributes:
        value: the baseline b of each state, float64[n].
        after: its value after each cut, float64[n].
        control: sum_a pi(a|s) A(s, a) - rho A(s, a) of each transition, float64[n].
    """

    value: Floats
    after: Floats
    control: Floats


def sound(held: HeldOut) -> Bools:
    """Return True for candidates that have not diverged, bool[L].

    Their predictions are all finite, and within the limit of :class:`gvf.LearnerReport`.
    """
    largest = np.maximum(np.abs(held.predicted).max(axis=0), np.abs(held.after).max(axis=0))
    return np.asarray(largest <= limit_of(held))


def limit_of(held: HeldOut) -> float:
    """Return the limit beyond which predictions, and returns, are out of all reason."""
    cumulant, continuation = np.abs(held.cumulant).max(), held.continuation.max()
    return DIVERGED * largest_return(float(cumulant), float(continuation), len(held.ratio))


def shared_baseline(held: HeldOut, seed: int) -> Baseline:
    """Compute the shared baseline; the seed deals episodes into groups."""
    alive, zeros = sound(held), np.zeros(len(held.ratio))
    if not alive.any():
        return Baseline(zeros, zeros, zeros)
    predicted, after = held.predicted[:, alive], held.after[:, alive]
    group = held.part[held.starts]
    if not group.any():
        group = np.random.default_rng(seed).permutation(len(group)) % GROUPS
    rows = group[held.episode]
    first = Baseline(np.median(predicted, axis=1), np.median(after, axis=1), zeros)
    start = squared_errors(held, _recursive(held, first), predicted)
    value, beyond, control = first.value.copy(), first.after.copy(), zeros.copy()
    for part in np.unique(group):
        best = _best(held, group, part, first, start, predicted, after)
        if best is not None:
            mine = rows == part
            value[mine], beyond[mine] = predicted[mine, best], after[mine, best]
            control[mine] = _control(held, predicted, after[:, best], best, mine)
    return Baseline(value, beyond, control)


def _best(
    held: HeldOut, group: Array, without: int, baseline: Baseline, sums: Sums,
    predicted: Floats, after: Floats,
) -> int | None:  # fmt: skip
    """Choose the candidate that is best in all groups but one; None if there is none."""
    rows, kept = group[held.episode], group != without
    others = np.unique(group[kept])
    for _ in range(ROUNDS - 1 if len(others) > 1 else 0):
        value, beyond = baseline.value.copy(), baseline.after.copy()
        for part in others:
            error = sums.error[kept & (group != part)].sum(axis=0)
            if np.isfinite(error).any():
                at, best = rows == part, int(np.argmin(error))
                value[at], beyond[at] = predicted[at, best], after[at, best]
        baseline = Baseline(value, beyond, baseline.control)
        sums = squared_errors(held, _recursive(held, baseline), predicted)
    error = sums.error[kept].sum(axis=0)
    return int(np.argmin(error)) if len(others) and np.isfinite(error).any() else None


def _control(held: HeldOut, predicted: Floats, after: Floats, best: int, mine: Bools) -> Floats:
    """Compute the control of the rows of a group by a regression over all other rows."""
    actions = held.target.shape[1]
    control = np.zeros(int(mine.sum()))
    if not actions:
        return control
    value = predicted[:, best]
    following = np.where(held.last, after, np.append(value[1:], 0.0))
    error = held.cumulant + held.continuation * following - value
    with np.errstate(over="ignore", invalid="ignore"):
        spread = predicted.std(axis=0)
    usable = (spread > 0.0) & (spread <= _WIDEST * max(spread[best], 1e-12))
    x = predicted[:, usable]
    x = np.column_stack([np.ones(len(x)), (x - x[~mine].mean(axis=0)) / spread[usable]])
    ratio, taken = held.ratio[mine], held.action[mine]
    for action in range(actions):
        rows = ~mine & (held.action == action)
        square = x[rows].T @ x[rows] + RIDGE * np.eye(x.shape[1])
        advantage = x[mine] @ np.linalg.solve(square, x[rows].T @ error[rows])
        control += (held.target[mine, action] - ratio * (taken == action)) * advantage
    return control


def _recursive(held: HeldOut, baseline: Baseline) -> Floats:
    signals = held.ratio, held.cumulant, held.continuation, baseline.value, held.last
    return recursive_returns(*signals, baseline.after, baseline.control)


def returns_of(held: HeldOut, kind: Returns, baseline: Baseline) -> Floats:
    """Compute the returns by which all candidates are scored, float64[n]."""
    if kind == "doubly-robust":
        return _recursive(held, baseline)
    signals, none = (held.ratio, held.cumulant, held.continuation), np.zeros(len(held.ratio))
    if kind == "weighted":
        return weighted_returns(*signals, held.last, baseline.after)
    return recursive_returns(*signals, none, held.last, baseline.after)
