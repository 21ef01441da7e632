"""Returns of the target policy from episodes of the behaviour, one for every state visited.

With ratio rho_t, cumulant C_{t+1} and continuation gamma_{t+1} of the transition from s_t, any
baseline b of states, and any advantage A of actions,

    per decision      G_t = rho_t (C_{t+1} + gamma_{t+1} G_{t+1})
    doubly robust     G_t = b(s_t) + sum_a pi(a|s_t) A(s_t, a)
                            + rho_t (C_{t+1} + gamma_{t+1} G_{t+1} - b(s_t) - A(s_t, a_t)).

Both are unbiased, E_mu[ G_t | s_t ] = v(s_t), as long as b and A were chosen without the episode.
For given s_t, rho_t has the mean 1 and rho_t A(s_t, a_t) has the mean sum_a pi(a|s_t) A(s_t, a), so
b and A cancel. And since G_{t+1} depends on a_t only through s_{t+1},

    E_mu[ rho_t (C_{t+1} + gamma_{t+1} v(s_{t+1})) | s_t ]
        = E_pi[ C_{t+1} + gamma_{t+1} v(s_{t+1}) | s_t ] = v(s_t),

by induction from the end of the episode. If b is near v, and b + A near the value of each action,
the bracket is a small error, so its ratio adds little noise. With b = A = 0 the returns are the
same.

Weighted returns divide each weight by its mean. Let W_{t,k} = rho_t ... rho_{t+k}, and n the number
of states visited:

    weighted          G_t = sum_k (W_{t,k} / N_k) gamma_{t+1} ... gamma_{t+k} C_{t+k+1},
                      N_k = 1/n sum_t W_{t,k},

where W_{t,k} stays at its last value once the episode is over, and so keeps its mean of 1. They are
biased, consistent, and bounded where the cumulants are.

An episode that is cut ends with b(s) of the state after its last transition, in all three. This is
a bias, whose size is that of b's error times the share of the value that lies beyond the cut
(:func:`beyond_cut`).

**The baseline** is one for all candidates, and does not know the returns that it enters.
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
from numba import njit

from gvf.common.arrays import Array, Bools, Floats
from gvf.common.divergence import DIVERGED, largest_return
from gvf.judging.held_out import HeldOut, Sums, squared_errors

Returns = Literal["doubly-robust", "per-decision", "weighted"]
GROUPS = 5
"""The number of groups of episodes for cross-fitting."""
ROUNDS = 3
"""The number of times that a candidate is chosen, each time by returns with the one before."""
RIDGE = 10.0
"""The penalty of the regression, in squared units of standardised predictions."""
_WIDEST = 100.0
"""Predictions that vary this many times as much as the baseline are left out of the regression."""
NEGLIGIBLE = 1e-8
"""The product of continuations below which weighted returns end."""


@njit(cache=True, nogil=True)
def _backwards(ratio, cumulant, continuation, baseline, control, last, after, out):
    following = 0.0
    for t in range(ratio.size - 1, -1, -1):
        if last[t]:
            following = after[t]
        value = baseline[t] + control[t]
        if ratio[t] > 0.0:  # or what follows does not matter, and may be infinite
            rest = continuation[t] * following if continuation[t] > 0.0 else 0.0
            value += ratio[t] * (cumulant[t] + rest - baseline[t])
        out[t] = following = value


def recursive_returns(
    ratio: Floats,
    cumulant: Floats,
    continuation: Floats,
    baseline: Floats,
    last: Bools,
    after: Floats,
    control: Floats | None = None,
) -> Floats:
    """Compute doubly robust returns, float64[n]; with a baseline of 0, per-decision returns.

    Args:
        ratio: the ratios of n transitions of complete episodes in order, float64[n], like the rest.
        cumulant: their cumulants.
        continuation: their continuations.
        baseline: the baseline b of each state.
        last: True for the last transition of an episode, bool[n].
        after: the value that follows the last transition of an episode that was cut.
        control: sum_a pi(a|s) A(s, a) - rho A(s, a) of each transition, whose mean is 0.

    Example:
        >>> import numpy as np
        >>> from gvf.judging.off_policy_returns import recursive_returns
        >>> one, last = np.ones(2), np.array([False, True])
        >>> recursive_returns(2 * one, one, 0.5 * one, 0 * one, last, 0 * one)
        array([4., 2.])
        >>> recursive_returns(2 * one, one, 0.5 * one, one, last, 0 * one)
        array([2., 1.])
    """
    out = np.empty(len(ratio))
    control = np.zeros(len(ratio)) if control is None else control
    _backwards(ratio, cumulant, continuation, baseline, control, last, after, out)
    return out


def weighted_returns(
    ratio: Floats, cumulant: Floats, continuation: Floats, last: Bools, after: Floats
) -> Floats:
    """Compute weighted per-decision returns, float64[n]; arguments as above.

    The time is proportional to the sum of the squared lengths of episodes, unless continuations
    shorten the returns.

    Example:
        >>> import numpy as np
        >>> from gvf.judging.off_policy_returns import weighted_returns
        >>> one, last = np.ones(4), np.array([True, True, True, True])
        >>> ratio, cumulant = np.array([0.0, 0.0, 3.0, 3.0]), np.array([0.0, 0.0, 1.0, 1.0])
        >>> weighted_returns(ratio, cumulant, 0.5 * one, last, 0 * one)
        array([0., 0., 2., 2.])
    """
    n = len(ratio)
    out, weight, discount = np.zeros(n), np.ones(n), np.ones(n)
    start = at = np.arange(n)
    with np.errstate(over="ignore", invalid="ignore"):
        while len(start):
            weight[start] *= ratio[at]
            mean = weight.mean()
            share = weight[start] / mean if mean > 0.0 else np.zeros(len(start))
            out[start] += share * discount[start] * cumulant[at]
            discount[start] *= continuation[at]
            ends = last[at]
            out[start[ends]] += share[ends] * discount[start[ends]] * after[at[ends]]
            on = ~ends & (discount[start] > NEGLIGIBLE)
            start, at = start[on], at[on] + 1
    return out


def mean_weights(ratio: Floats, continuation: Floats, last: Bools) -> tuple[Floats, Floats]:
    """Compute the sum of the weights in each per-decision return, and of the discounts without.

    With one as cumulant and no ratios a return is the sum of its discounts. The ratio of the two
    sums is the mean weight of the return, which is 1 if all ratios are.

    Returns:
        The sums of discounted weights, and the sums of discounts, each float64[n].

    Example:
        >>> import numpy as np
        >>> from gvf.judging.off_policy_returns import mean_weights
        >>> mean_weights(np.array([2.0, 2.0]), np.ones(2), np.array([False, True]))
        (array([6., 2.]), array([2., 1.]))
    """
    ones, zeros = np.ones(len(ratio)), np.zeros(len(ratio))
    weights = recursive_returns(ratio, ones, continuation, zeros, last, zeros)
    return weights, recursive_returns(ones, ones, continuation, zeros, last, zeros)


def beyond_cut(ratio: Floats, continuation: Floats, last: Bools, cut: Bools) -> Floats:
    """Compute the weight with which the value after a cut enters each return, float64[n].

    Its mean is the share of the target's future that is not in the log: the mean product of
    continuations from the state to the cut, under the target.

    Example:
        >>> import numpy as np
        >>> from gvf.judging.off_policy_returns import beyond_cut
        >>> last = np.array([False, False, True])
        >>> beyond_cut(np.ones(3), np.full(3, 0.5), last, last)
        array([0.125, 0.25 , 0.5  ])
    """
    zeros = np.zeros(len(ratio))
    after: Array = np.where(cut, 1.0, 0.0)
    return recursive_returns(ratio, zeros, continuation, zeros, last, after)


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
