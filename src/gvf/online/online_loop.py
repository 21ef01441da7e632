"""The loop of online learning: the steps of one or more streams, in order, in all lanes.

    for each step: restart or fade the traces of its stream, change the weights

Lanes are independent of each other. So a group of lanes passes through all steps before the next
group does, and the arrays of a group stay in the processor's first cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64, int32, int64, njit, types, void
from numpy.typing import ArrayLike, NDArray

from gvf.common.arrays import Array, Floats
from gvf.common.compiled import address_of, call, compile_for, once, unowned
from gvf.common.vector import load, root, store, zeros
from gvf.online.algorithm import (
    GROUP,
    Algorithm,
    Carried,
    Now,
    OnlineState,
    carried_type,
    now_type,
    state_type,
)
from gvf.online.lane_vectors import WIDTH, enlist


class Steps(NamedTuple):
    """The columns of T steps."""

    x: Array
    """The features of the states: int32[T, a] (active indices) or float64[T, size] (dense)."""
    x_next: Array
    cumulant: Array
    """float64[T]"""
    continuation: Array
    """The continuation of each transition, into its next state, float64[T]."""
    into: Array
    """The continuation into each state, float64[T]; 0 where an episode begins."""
    ratio: Array
    """float64[T]"""
    probability: Array
    """The target's probability of each action, float64[T]; only some algorithms use it."""
    interest: Array
    """float64[T]"""
    stream: Array
    """The number of the stream that each step belongs to, int64[T]."""


class Streams(NamedTuple):
    """The arrays that S streams carry from step to step, in G groups of lanes."""

    traces: Array
    """float64[S, T, rows, L]"""
    follow_on: Array
    """float64[S, 1, L]"""
    listed: Array
    """int64[S, G, rows], as in :class:`gvf.online.algorithm.Carried`."""
    is_listed: Array
    """int64[S, G, rows]"""
    counts: Array
    """int64[S, G, 2]"""
    before: Array
    """float64[S, 2]: the ratio and the probability of the step before."""


class Measure(NamedTuple):
    """An error of the weights, sqrt(|root w - target|^2 + rest)."""

    root: Floats
    """float64[m, rows]"""
    target: Floats
    """float64[m]"""
    rest: float = 0.0

    @classmethod
    def of_states(cls, x: ArrayLike, values: ArrayLike, shares: ArrayLike) -> Measure:
        """Make the root mean square error of predictions for S states.

        It has at most as many rows as there are weights, however many the states are.

        Args:
            x: the features of the states, float64[S, rows].
            values: the true values, float64[S].
            shares: the weight of each state, float64[S]; their sum does not matter.
        """
        roots = np.sqrt(np.asarray(shares) / np.sum(shares))
        q, root = np.linalg.qr(roots[:, None] * np.asarray(x))
        scaled = roots * np.asarray(values)
        target = q.T @ scaled
        return cls(root, target, float(np.sum((scaled - q @ target) ** 2)))


def start_streams(algorithm: Algorithm, state: OnlineState, count: int) -> Streams:
    """Return the arrays of new streams."""
    rows, lanes = state.weights.shape
    groups = -(-lanes // GROUP)
    return Streams(
        traces=np.zeros((count, algorithm.traces, rows, lanes)),
        follow_on=np.zeros((count, 1, lanes)),
        listed=np.zeros((count, groups, rows), np.int64),
        is_listed=np.zeros((count, groups, rows), np.int64),
        counts=np.zeros((count, groups, 2), np.int64),
        before=np.zeros((count, 2)),
    )


def run(
    algorithm: Algorithm,
    state: OnlineState,
    streams: Streams,
    steps: Steps,
    measure: Measure | None = None,
    every: int = 1,
) -> Floats:
    """Learn from steps in order, in all lanes, and measure errors on the way.

    The arrays of `state` and `streams` change, so a stream may come in several calls.

    Args:
        algorithm: the algorithm.
        state: its arrays, from :meth:`Algorithm.start`.
        streams: the arrays of the streams, from :func:`start_streams`.
        steps: the steps; :func:`steps_of` makes them.
        measure: the error to measure; None for none.
        every: the number of steps between measurements. The first is before the first step.

    Returns:
        The errors, float64[measurements, lanes].

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.online.online_loop import Measure, run, start_streams, steps_of
        >>> algorithm = gvf.online.TDLambda(step_size=[0.1, 0.5])
        >>> state = algorithm.start(rows=1)
        >>> x, ones = np.zeros((4, 1), np.int32), np.ones(4)
        >>> steps = steps_of(x, x, cumulant=ones, continuation=0 * ones, ratio=ones)
        >>> measure = Measure(np.ones((1, 1)), np.ones(1))
        >>> run(algorithm, state, start_streams(algorithm, state, 1), steps, measure, every=2)
        array([[1.  , 1.  ],
               [0.81, 0.25]])
        >>> algorithm.weights(state)
        array([[0.3439, 0.9375]])
    """
    if measure is None:
        measure = Measure(np.zeros((0, len(state.weights))), np.zeros(0))
    measured = -(-len(steps.cumulant) // every) if len(measure.target) else 0
    errors = np.empty((measured, state.weights.shape[1]))
    goal = (np.ascontiguousarray(measure.root, np.float64), np.array(measure.target, np.float64))
    loop, kernel = _compiled(algorithm.kernel, steps.x.dtype.kind == "f")
    loop(kernel, (state, streams, steps, goal, errors), every, measure.rest)
    return errors[:, : algorithm.lanes or 1]


def steps_of(
    x: ArrayLike,
    x_next: ArrayLike,
    cumulant: Floats,
    continuation: Floats,
    ratio: Floats,
    *,
    restart: NDArray[np.bool_] | None = None,
    probability: Floats | None = None,
) -> Steps:
    """Make the steps of one stream from its columns.

    Indices of features are not checked, neither here nor in :func:`run`.

    Args:
        x: the features of the states: int[T, a] (active indices) or float64[T, size] (dense).
        x_next: the features of the next states.
        cumulant: float64[T].
        continuation: the continuation of each transition, float64[T].
        ratio: float64[T].
        restart: True for steps that do not follow the one before; by default only the first.
        probability: the target's probability of each action; only some algorithms use it.
    """
    count, active = len(ratio), np.asarray(x).dtype.kind in "iu"
    into = np.append(0.0, continuation[:-1])
    into[slice(0) if restart is None else restart] = 0.0
    columns = [cumulant, continuation, into, ratio, np.ones(count), np.ones(count)]
    if probability is not None:
        columns[4] = probability
    for column in columns:
        if np.shape(column) != (count,):
            raise ValueError(f"columns must have one number a step, {count}: {np.shape(column)}")
    return Steps(
        *(np.ascontiguousarray(f, np.int32 if active else np.float64) for f in (x, x_next)),
        *(np.ascontiguousarray(column, np.float64) for column in columns),
        stream=np.zeros(count, np.int64),
    )


def _run(kernel, arrays, every, rest):
    """Take all steps in all lanes; see :func:`_compiled`."""
    state, streams, steps, measure, errors = unowned(arrays)
    x, x_next, before = steps.x, steps.x_next, streams.before
    at_start = before.copy()
    for group in range(streams.counts.shape[1]):
        first = group * GROUP
        last = min(first + GROUP, state.weights.shape[1])
        before[:] = at_start
        for i in range(steps.cumulant.size):
            if errors.shape[0] > 0 and i % every == 0:
                write_errors(state.weights, measure, rest, first, last, errors, i // every)
            s = steps.stream[i]
            trace = Carried(
                streams.traces[s],
                streams.follow_on[s],
                streams.listed[s, group],
                streams.is_listed[s, group],
                streams.counts[s, group],
            )
            now = Now(
                steps.cumulant[i],
                steps.ratio[i],
                steps.into[i],
                steps.continuation[i],
                before[s, 0],
                before[s, 1],
                steps.interest[i],
            )
            enlist(trace, x, i, first, last, now)
            call(kernel, (state, trace, x, x_next, i, now, first, last))
            before[s, 0], before[s, 1] = steps.ratio[i], steps.probability[i]


@njit(cache=True, nogil=True)
def write_errors(weights, measure, rest, first, last, out, k):
    """Write the errors of the weights in lanes first .. last - 1 into ``out[k]``."""
    goal, target = measure
    for lane in range(first, last, WIDTH):
        total = zeros(WIDTH) + rest
        for m in range(target.size):
            difference = zeros(WIDTH) - target[m]
            for row in range(weights.shape[0]):
                difference += goal[m, row] * load(difference, weights, row, lane)
            total += difference * difference
        store(out, k, lane, root(total))


@once
def _compiled(kernel: Any, dense: bool) -> tuple[Any, int]:
    """Return the compiled loop for a representation, and the address of a kernel for it.

    The call is ``loop(kernel, arrays, every, rest)``, with the arrays of the state, the streams,
    the steps and the measure, and the errors to write.
    """
    f1, f2, f3 = float64[::1], float64[:, ::1], float64[:, :, ::1]
    i1, i3 = int64[::1], int64[:, :, ::1]
    x = f2 if dense else int32[:, ::1]
    state, trace = state_type(), carried_type()
    streams = types.NamedTuple((float64[:, :, :, ::1], f3, i3, i3, i3, f2), Streams)
    steps = types.NamedTuple((x, x, f1, f1, f1, f1, f1, f1, i1), Steps)
    arrays = types.Tuple((state, streams, steps, types.Tuple((f2, f1)), f2))
    signature = void(state, trace, x, x, int64, now_type(), int64, int64)
    loop = _loop(void(int64, arrays, int64, float64))
    return loop, address_of(kernel, signature)


@once
def _loop(signature: Any) -> Any:
    return compile_for(_run, signature)
