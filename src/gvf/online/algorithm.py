"""Algorithms that learn online, with traces: one kernel signature, lanes of parameters, arrays.

An algorithm learns from each transition once, when it happens, and needs neither a window nor a
correction. A trace z remembers the features of earlier states, so that an error also changes the
predictions for these. A step of the stream is

    kernel(state, trace, x, x_next, i, now, first, last)

    state        the arrays that all streams share, an :class:`OnlineState`
    trace        the arrays of this stream, a :class:`Carried`
    x, x_next    the features of all steps, as in :mod:`gvf.features`; those of this step in row i
    now          the numbers of this step, a :class:`Now`
    first, last  the lanes that the kernel changes, first .. last - 1, in whole vectors

and is written with the functions of :mod:`gvf.online.lane_vectors`. All kernels have this
signature, so one loop runs them all (:mod:`gvf.online.online_loop`).

Two continuations enter a step. A trace decays by the continuation *into* the state, which belongs
to the transition before it. The error bootstraps by the continuation of the transition itself. With
a constant continuation the two are the same except where an episode begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numba import float64, int64, types

from gvf.common.arrays import Array, Floats
from gvf.learners.learner_report import BaseReport
from gvf.online.lane_vectors import WIDTH
from gvf.updates.update import LaneFields

GROUP = 64
"""The number of lanes that pass through the stream together; their arrays stay in the cache."""


class Now(NamedTuple):
    """The numbers of one step."""

    c: float
    """The cumulant of the transition."""
    rho: float
    """The ratio of the action taken."""
    gamma: float
    """The continuation into the state; 0 where an episode begins."""
    gamma_next: float
    """The continuation of the transition, into the next state."""
    rho_before: float
    """The ratio of the action before."""
    pi_before: float
    """The target's probability of the action before."""
    interest: float
    """The interest of the state."""


class OnlineState(NamedTuple):
    """The arrays that an algorithm changes. L is the number of lanes, in whole vectors.

    Lanes that only fill a vector have a step size of 0, and nobody reads their weights.
    """

    weights: Array
    """float64[rows, L]"""
    memory: Array
    """float64[M, rows, L]: further arrays of the same shape, such as secondary weights."""
    lanes: Array
    """float64[P, L]: one value for each lane, such as its step size."""
    numbers: Array
    """float64[C]: constants."""


class Carried(NamedTuple):
    """The arrays that one stream carries from step to step.

    Rows that are not listed have traces of 0.
    """

    traces: Array
    """float64[T, rows, L]"""
    follow_on: Array
    """float64[1, L]: the follow-on trace of emphatic algorithms."""
    listed: Array
    """int64[rows]: the listed rows come first, in any order."""
    is_listed: Array
    """int64[rows]: 1 for listed rows, else 0."""
    counts: Array
    """int64[2]: the number of listed rows, and the number from which on they are looked through."""


def now_type() -> types.NamedTuple:
    """Return the compiled type of a Now."""
    return types.NamedTuple((float64,) * len(Now._fields), Now)


def state_type() -> types.NamedTuple:
    """Return the compiled type of an OnlineState."""
    f1, f2 = float64[::1], float64[:, ::1]
    return types.NamedTuple((f2, float64[:, :, ::1], f2, f1), OnlineState)


def carried_type() -> types.NamedTuple:
    """Return the compiled type of a Carried."""
    i1 = int64[::1]
    return types.NamedTuple((float64[:, :, ::1], float64[:, ::1], i1, i1, i1), Carried)


@dataclass(frozen=True)
class Algorithm(LaneFields):
    """The base class of all algorithms that learn online.

    A field named in `lane_fields` is a number or a sequence of L numbers, as in
    :class:`gvf.updates.Update`. With sequences, L copies of the weights learn side by side, each
    with its own parameters. To write an algorithm, give it a compiled `kernel` with the arguments
    of the example, and declare its arrays: `memories` (as the weights, shared by all streams) and
    `traces` (as the weights, of each stream). Use the functions of :mod:`gvf.online.lane_vectors`.

    Example:
        TD(0) with a ratio, written anew:

        >>> from dataclasses import dataclass
        >>> import gvf, numba
        >>> from gvf.online.lane_vectors import WIDTH, add_features, of_lanes, td_error
        >>> @numba.njit
        ... def step(state, trace, x, x_next, i, now, first, last):
        ...     for lane in range(first, last, WIDTH):
        ...         delta = td_error(state.weights, x, x_next, i, now, lane)
        ...         alpha = of_lanes(state, 0, lane)
        ...         add_features(state.weights, alpha * now.rho * delta, x, i, lane)
        >>> @dataclass(frozen=True)
        ... class Plain(gvf.online.Algorithm):
        ...     step_size: float
        ...     kernel = staticmethod(step)
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.OnlineLearner(
        ...     question, gvf.features.OneHot(2), Plain(0.5), behaviour=gvf.policies.Uniform(2)
        ... )
        >>> learner.observe(0, 1, 1.0, 1, False)
        >>> learner.weights
        array([1., 0.])
    """

    lane_fields: ClassVar[tuple[str, ...]] = ("step_size",)
    kernel: ClassVar[Callable[..., None]]
    traces: ClassVar[int] = 0
    needs_probabilities: ClassVar[bool] = False
    """True if the kernel uses ``pi_before``; the target must then be discrete."""

    uses_interest: ClassVar[bool] = False
    """True if the kernel uses the interest of the question."""

    remedy: ClassVar[str] = BaseReport.remedy
    """The advice for lanes that have diverged."""

    def memories(self, rows: int) -> int:
        """Return the number of further arrays like the weights; none by default."""
        return 0

    def numbers(self) -> Sequence[float]:
        """Return the constants of the kernel; none by default."""
        return ()

    def start(self, rows: int) -> OnlineState:
        """Return the initial arrays; all weights are 0."""
        values = self.lane_values()
        # An odd number of vectors spreads the rows evenly over the places of a processor's cache.
        count = (-(-values.shape[1] // WIDTH) | 1) * WIDTH
        lanes = np.zeros((len(values), count))
        lanes[:, : values.shape[1]] = values
        return OnlineState(
            weights=np.zeros((rows, count)),
            memory=np.zeros((self.memories(rows), rows, count)),
            lanes=lanes,
            numbers=np.array(self.numbers(), np.float64),
        )

    def weights(self, state: OnlineState) -> Floats:
        """Return the weights [rows, lanes], as a view where they are kept."""
        return state.weights[:, : self.lanes or 1]
