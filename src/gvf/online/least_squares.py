"""Least squares: LSTD(lambda) along a stream, and LSTD over a window with any correction.

LSTD solves for the fixed point of TD(lambda) directly. With the trace of TD(lambda), or of emphatic
TD(lambda), it adds up

    A += z (x - gamma' x')^T,    b += c z

and the weights solve ``(A + regulariser I) w = b``. There is no step size. A step takes time
proportional to the number of weights times that of active features, memory is their square, and a
solution takes their cube.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from gvf.common.arrays import Floats
from gvf.common.checks import brief, is_number
from gvf.common.vector import load, zeros
from gvf.corrections import IS, Correction
from gvf.corrections.carried import Trace
from gvf.features import FeatureMap
from gvf.learners.linear_values import check_features, represent
from gvf.online.algorithm import Algorithm, OnlineState
from gvf.online.lane_vectors import WIDTH, add_features, add_trace, fade, of_lanes
from gvf.online.online_loop import run, start_streams, steps_of
from gvf.online.semi_gradient import follow
from gvf.policies import Policy
from gvf.question import GVF, OnConflict
from gvf.transition import TransitionsLike, as_transitions, without_last_states
from gvf.updates.update import Lanes

CUTOFF = 1e-10
"""Singular values below this share of the largest count as 0; the solution of least norm is taken.

It is above the rounding errors of sums over millions of steps.
"""


@njit(cache=True, nogil=True)
def lstd(state, trace, x, x_next, i, now, first, last):
    """Add a step to A and b; memory: the rows of A, then b; lanes: lambda; numbers: emphatic."""
    z, rows = trace.traces[0], state.weights.shape[0]
    for lane in range(first, last, WIDTH):
        decay, emphasis = of_lanes(state, 0, lane), zeros(WIDTH) + 1.0
        if state.numbers[0] != 0.0:
            emphasis = follow(trace, zeros(WIDTH) + now.gamma, decay, now, lane)
        fade(z, now.rho * now.gamma * decay, trace, lane)
        add_features(z, now.rho * emphasis, x, i, lane)
        for k in range(trace.counts[0]):
            row = trace.listed[k]
            part = load(decay, z, row, lane)
            add_features(state.memory[row], part, x, i, lane)
            add_features(state.memory[row], -now.gamma_next * part, x_next, i, lane)
        add_trace(state.memory[rows], now.c, z, trace, lane)


@dataclass(frozen=True)
class LSTD(Algorithm):
    """Least squares TD(lambda), off-policy: the ratio is in the trace, and there is no step size.

    Singular values below 1e-10 of the largest count as 0. Where the equations have several
    solutions, the one of least norm is taken.

    Args:
        trace_decay: lambda, in [0, 1]; a number or one for each lane.
        emphatic: True for the fixed point of emphatic TD(lambda).
        regulariser: the number added to the diagonal of A, which is a sum over all steps.

    Example:
        >>> import gvf
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.5)
        >>> learner = gvf.OnlineLearner(
        ...     question,
        ...     gvf.features.OneHot(2),
        ...     gvf.online.LSTD(),
        ...     behaviour=gvf.policies.Uniform(2),
        ... )
        >>> for state in (0, 1, 0):
        ...     learner.observe(state, 1, 1.0, 1 - state, False)
        >>> learner.predict([0, 1])
        array([2., 2.])
    """

    trace_decay: Lanes = 0.0
    emphatic: bool = False
    regulariser: float = 0.0

    lane_fields = ("trace_decay",)
    unit_fields = ("trace_decay",)
    kernel = staticmethod(lstd)
    traces = 1
    remedy = "take a regulariser, a smaller trace_decay, or a behaviour closer to the target"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.regulariser) and self.regulariser >= 0.0):
            raise ValueError(
                f"regulariser must be finite and not negative, got {brief(self.regulariser)}"
            )

    @property
    def uses_interest(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """True if emphatic."""
        return self.emphatic

    def memories(self, rows: int) -> int:
        """Return the number of rows of A, and one more for b."""
        return rows + 1

    def numbers(self) -> Sequence[float]:
        """Return 1 if emphatic, else 0."""
        return (float(self.emphatic),)

    def weights(self, state: OnlineState) -> Floats:
        """Solve for the weights [rows, lanes]; NaN in lanes whose sums are not finite."""
        rows, lanes = len(state.weights), self.lanes or 1
        solutions = np.full((rows, lanes), np.nan)
        for lane in range(lanes):
            a, b = state.memory[:rows, :, lane], state.memory[rows, :, lane]
            if np.isfinite(a).all() and np.isfinite(b).all():
                a = a + self.regulariser * np.eye(rows)
                solutions[:, lane] = np.linalg.lstsq(a, b, rcond=CUTOFF)[0]
        return solutions


def window_lstd(
    question: GVF,
    features: FeatureMap,
    transitions: TransitionsLike,
    correction: Correction = IS(),  # noqa: B008 (frozen)
    *,
    behaviour: Policy | None = None,
    on_conflict: OnConflict = "error",
    regulariser: float = 0.0,
) -> Floats:
    """Solve for the fixed point of TD(0) over a window of transitions, with a correction.

    Row i has the weight p_i w_i, with the whole window as the batch that the correction weighs. Up
    to a factor this is the mean update of a mini-batch, if the weight of a row does not depend on
    the rest of the batch. It does in :class:`gvf.corrections.WISMinibatch` and its emphatic form,
    so there the result is that of large batches, and small ones lead elsewhere.

    Args:
        question: the question.
        features: the representation.
        transitions: the window, in the order of the stream if the correction has a trace.
        correction: the correction.
        behaviour: the policy that chose the actions, as in :meth:`gvf.GVF.evaluate`.
        on_conflict: as in :meth:`gvf.GVF.evaluate`.
        regulariser: as in :class:`LSTD`.

    Returns:
        The weights, float64[size]; they are chosen as :class:`LSTD` says.

    Example:
        >>> import gvf
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.0)
        >>> batch = gvf.Transitions(
        ...     state=[0, 0], action=[0, 1], reward=[5.0, 7.0], next_state=[0, 0]
        ... )
        >>> gvf.online.window_lstd(
        ...     question,
        ...     gvf.features.OneHot(1),
        ...     batch,
        ...     gvf.corrections.IR(),
        ...     behaviour=gvf.policies.Uniform(2),
        ... )
        array([7.])
    """
    check_features(features)
    if not isinstance(correction, Correction):
        raise TypeError(f"correction must be a gvf.corrections.Correction, got {brief(correction)}")
    transitions = as_transitions(transitions)
    if not len(transitions):
        raise ValueError("the window has no transitions, so there is nothing to solve")
    ratio, cumulant, continuation, interest = question.evaluate(
        transitions, behaviour=behaviour, on_conflict=on_conflict
    )
    inputs = Trace(correction).inputs(ratio, continuation, transitions, interest=interest)
    p = correction.masses(inputs)
    w = correction.weights(inputs, correction.means(inputs), p=p)
    share = np.where(p > 0.0, p * w, 0.0)
    x, x_next = represent(features, without_last_states(transitions))
    algorithm = LSTD(regulariser=regulariser)
    state = algorithm.start(features.size)
    alone = np.ones(len(ratio), bool)
    steps = steps_of(x, x_next, cumulant, continuation, share, restart=alone)
    run(algorithm, state, start_streams(algorithm, state, 1), steps)
    return algorithm.weights(state)[:, 0]
