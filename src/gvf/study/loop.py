"""The compiled loop: updates and errors of all step sizes of one method, in slices.

    for each measurement: do the updates up to it, then average |V - v| over the states that count

One loop serves every correction, update and representation: corrections and updates are compiled
functions of one signature each (:mod:`gvf.correction`, :mod:`gvf.learner.update`), handed in as
arguments. A slice ends after a given number of measurements, with everything in arrays, so that a
long run can be interrupted.

A lane has diverged once a weight is not finite; its error is infinite from then on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, wraps
from threading import RLock
from typing import Any

import numpy as np
from numba import boolean, float64, int32, int64, njit, types, void
from numba.core import cgutils
from numba.core.errors import NumbaExperimentalFeatureWarning
from numba.extending import intrinsic

from gvf.learner.linear import accumulate, weight_row


def _unowned(typing: Any, arrays: Any) -> Any:
    """The same tuples of arrays, but nobody counts references: the caller keeps them alive.

    Counting is atomic, and a small update would take less time than the counts around it.
    """

    def release(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        if not isinstance(kind, types.Array):
            for i, part in enumerate(kind):
                freed = release(context, builder, part, builder.extract_value(value, i))
                value = builder.insert_value(value, freed, i)
            return value
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return release(context, builder, arrays, arguments[0])

    return arrays(arrays), code


unowned: Any = intrinsic(_unowned)


@njit(cache=True, nogil=True, forceinline=True)
def table_errors(weights, x, truth, squared, error):
    """Add |V - v|, or its square, of all states of a table to error [L], four at a time."""
    whole = truth.size - truth.size % 4
    for s in range(0, whole, 4):
        a, b = weight_row(x, s, 0, 0), weight_row(x, s + 1, 0, 0)
        c, d = weight_row(x, s + 2, 0, 0), weight_row(x, s + 3, 0, 0)
        p, q, r, t = truth[s], truth[s + 1], truth[s + 2], truth[s + 3]
        if squared:
            for lane in range(error.size):
                first = error[lane] + (weights[a, lane] - p) ** 2 + (weights[b, lane] - q) ** 2
                error[lane] = first + (weights[c, lane] - r) ** 2 + (weights[d, lane] - t) ** 2
        else:
            for lane in range(error.size):
                first = abs(weights[a, lane] - p) + abs(weights[b, lane] - q)
                second = abs(weights[c, lane] - r) + abs(weights[d, lane] - t)
                error[lane] += first + second
    for s in range(whole, truth.size):
        a, p = weight_row(x, s, 0, 0), truth[s]
        for lane in range(error.size):
            difference = abs(weights[a, lane] - p)
            error[lane] += difference * difference if squared else difference


@njit(cache=True, nogil=True)
def measure(weights, x, share, unseen, truth, squared, dead, error):
    """Write each lane's error over the states [S] into error [L]; inf for the dead.

    Rows of weights that these states do not use are `unseen`, and only looked at to tell the dead.
    """
    error[:] = 0.0
    if x.shape[1] == 1 and share.shape[1] == 1:
        # In a table the errors count every weight that ever changes, so they tell who is dead.
        table_errors(weights, x, truth, squared, error)
    else:
        feature_errors(weights, x, share, truth, squared, error)
        for row in unseen:
            for lane in range(error.size):
                # 0 times a number that is not finite is none: it poisons the sum.
                error[lane] += 0.0 * weights[row, lane]
    for lane in range(error.size):
        dead[lane] |= not error[lane] < np.inf
        mean = error[lane] / truth.size
        error[lane] = np.inf if dead[lane] else (np.sqrt(mean) if squared else mean)


@njit(cache=True, nogil=True)
def feature_errors(weights, x, share, truth, squared, error):
    """Add |V - v|, or its square, of all states to error [L]."""
    difference = np.empty((1, error.size))
    for s in range(truth.size):
        for lane in range(error.size):
            difference[0, lane] = -truth[s]
        accumulate(weights, x, share, s, 1.0, difference, 0)
        if squared:
            for lane in range(error.size):
                error[lane] += difference[0, lane] * difference[0, lane]
        else:
            for lane in range(error.size):
                error[lane] += abs(difference[0, lane])


@njit(cache=True, nogil=True)
def account(error, j, held, bins, total, curve):
    """Add the errors of measurement j, which stands for `held[j]` steps, to sums."""
    steps, point = held[j], bins[j]
    for lane in range(error.size):
        total[lane] += steps * error[lane]
        curve[point, lane] += steps * error[lane]


def _learn(kernel, weigh, arrays, parameter, squared, start, stop):
    """Measurements start ... stop - 1, with drawn rows [U, k] (-1: no mass, so no update).

    The arrays are what learns, what it learns from, what is drawn, when errors are measured and
    against what, and where they are added up; :func:`compiled` has their types.
    """
    state, experience, drawn, schedule, target, errors = unowned(arrays)
    ratio, mean, rows = drawn
    weights, (upto, held, bins) = state[0], schedule
    x, share, unseen, truth = target
    dead, error, total, curve = errors
    k = rows.shape[1]
    rho, w, statistics = np.empty(k), np.empty(k), np.empty(2)
    statistics[1] = parameter
    update = upto[start - 1] if start > 0 else 0
    for j in range(start, stop):
        while update < upto[j]:
            if rows[update, 0] >= 0:
                for i in range(k):
                    rho[i] = ratio[rows[update, i]]
                statistics[0] = mean[update]
                weigh(rho, statistics, w)
                kernel(*state, *experience, rows[update], w)
            update += 1
        measure(weights, x, share, unseen, truth, squared, dead, error)
        account(error, j, held, bins, total, curve)


def _learn_window(kernel, weigh, arrays, parameter, squared, start, stop):
    """The same, without draws: every update sees the whole window, first ... last - 1.

    Transitions of one kind are alike, so their weights are added up and each kind is one row of the
    experience: a window of thousands is a few hundred kinds.
    """
    state, experience, drawn, schedule, target, errors = unowned(arrays)
    ratio, mean, kind, first, last = drawn
    weights, (upto, held, bins) = state[0], schedule
    x, share, unseen, truth = target
    dead, error, total, curve = errors
    kinds = experience[0].shape[0]
    longest = 0
    for u in range(first.size):
        longest = max(longest, last[u] - first[u])
    rho, each = np.empty(longest), np.empty(longest)
    by_kind, slots, w = np.empty(kinds), np.empty(kinds, np.int64), np.empty(kinds)
    statistics = np.empty(2)
    statistics[1] = parameter
    update = upto[start - 1] if start > 0 else 0
    count, seen_first, seen_last = 0, -1, -1
    for j in range(start, stop):
        while update < upto[j]:
            begin, size = first[update], last[update] - first[update]
            if first[update] != seen_first or last[update] != seen_last:
                seen_first, seen_last = first[update], last[update]
                for i in range(size):
                    rho[i] = ratio[begin + i]
                statistics[0] = mean[update]
                weigh(rho[:size], statistics, each[:size])
                by_kind[:] = 0.0
                for i in range(size):
                    by_kind[kind[begin + i]] += each[i]
                count = 0
                for b in range(kinds):
                    if by_kind[b] != 0.0:
                        slots[count], w[count] = b, by_kind[b]
                        count += 1
            if mean[update] > 0.0:
                kernel(*state, *experience, slots[:count], w[:count])
            update += 1
        measure(weights, x, share, unseen, truth, squared, dead, error)
        account(error, j, held, bins, total, curve)


def _weigh_rows(weigh, ratio, rows, mean, parameter, w):
    """Write the weights of batches of rows [B, k] into w [B, k]."""
    rho, statistics = np.empty(rows.shape[1]), np.array([mean, parameter])
    for b in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            rho[i] = ratio[rows[b, i]]
        weigh(rho, statistics, w[b])


_compiling = RLock()  # workers may ask for the same loop at the same time


def _once(make: Callable[..., Any]) -> Callable[..., Any]:
    """Make a thing once for all threads."""
    made = cache(make)

    @wraps(make)
    def one_at_a_time(*arguments: Any) -> Any:
        with _compiling:
            return made(*arguments)

    return one_at_a_time


@_once
def weigh_rows() -> tuple[Any, Any]:
    """The compiled function of that name, and the signature of the weigher that it takes."""
    f1, f2 = float64[::1], float64[:, ::1]
    weigh = void(f1, f1, f1)
    signature = void(types.FunctionType(weigh), f1, int64[:, ::1], float64, float64, f2)
    return _compile(_weigh_rows, signature), weigh


def _compile(function: Any, signature: Any) -> Any:
    """Compile for one signature; numba calls functions as arguments an experiment, rightly."""
    loop: Any = njit(cache=True, nogil=True)(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        loop.compile(signature)
    loop.disable_compile()
    return loop


@_once
def compiled(dense: bool, window: bool) -> tuple[Any, Any, Any]:
    """The loop for a representation, and the signatures of the functions that it takes."""
    f1, f2, f3, i1, i2 = (
        float64[::1],
        float64[:, ::1],
        float64[:, :, ::1],
        int64[::1],
        int64[:, ::1],
    )
    features = f2 if dense else int32[:, ::1]
    state = (f2, f3, i1, f2, f1)
    experience = (features, f2, features, f2, f1, f1)
    update = void(*state, *experience, i1, f1)
    weigh = void(f1, f1, f1)
    drawn = (f1, f1, i1, i1, i1) if window else (f1, f1, i2)
    schedule, target, errors = (i1, f1, i1), (features, f2, i1, f1), (boolean[::1], f1, f1, f2)
    groups = (state, experience, drawn, schedule, target, errors)
    signature = void(
        types.FunctionType(update), types.FunctionType(weigh),
        types.Tuple([types.Tuple(group) for group in groups]), float64, boolean, int64, int64,
    )  # fmt: skip
    return _compile(_learn_window if window else _learn, signature), update, weigh


def as_argument(kernel: Any, signature: Any) -> Any:
    """A compiled function, ready to be handed to a loop."""
    with _compiling:
        if signature.args not in kernel.overloads:
            kernel.compile(signature)
    return kernel
