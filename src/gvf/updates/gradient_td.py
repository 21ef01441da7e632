"""Gradient TD: TDC and TDRC converge with features for which off-policy TD may diverge.

A second set of weights h learns to predict the TD error from the features. It corrects for the
part of the next state in the gradient (Sutton et al. 2009; Ghiassian et al. 2020). With
e_i = h . x_i:

    W <- W + alpha sum_i w_i (delta_i x_i - gamma_i e_i x'_i)
    h <- h + alpha_h (sum_i w_i (delta_i - e_i) x_i - beta h)

TDC has beta = 0 and a second step size alpha_h = secondary * alpha; TDRC has alpha_h = alpha and
beta = 1. Note that w_i multiplies e_i x_i in the second line too, so that both lines use the same
(p, w). Publications often leave the ratio out there; the mean is the same, since E[rho | s] = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from gvf.common.arrays import Array
from gvf.common.checks import brief, is_number
from gvf.updates.linear_kernels import add_at, td_error_at, value_at
from gvf.updates.update import Lanes, LearnerState, Update


@njit(cache=True, nogil=True)
def gradient_td(state, experience, slots, w):
    """Apply a batch of TDC or TDRC; memory: h; lanes: alpha; numbers: alpha_h / alpha, beta."""
    weights, secondary, step_size = state.weights, state.memory[0], state.lanes[0]
    secondary_step, beta = state.numbers[0] * step_size, state.numbers[1]
    x, share, x_next, share_next, _, gamma = experience
    errors = np.empty((slots.size, weights.shape[1]))
    expected = np.empty((slots.size, weights.shape[1]))
    # All errors are computed before the weights change.
    for i in range(slots.size):
        slot = slots[i]
        td_error_at(weights, experience, slot, 1.0, errors, i)
        value_at(secondary, x, share, slot, expected, i)
    if beta > 0.0:
        for row in range(secondary.shape[0]):
            for lane in range(weights.shape[1]):
                secondary[row, lane] *= 1.0 - secondary_step[lane] * beta
    for i in range(slots.size):
        slot = slots[i]
        for lane in range(weights.shape[1]):
            errors[i, lane] *= w[i]
            expected[i, lane] *= w[i]
        add_at(weights, step_size, x, share, slot, errors, i)
        for lane in range(weights.shape[1]):
            errors[i, lane] -= expected[i, lane]
            expected[i, lane] *= -gamma[slot]
        add_at(secondary, secondary_step, x, share, slot, errors, i)
        if gamma[slot] > 0.0:
            add_at(weights, step_size, x_next, share_next, slot, expected, i)


@dataclass(frozen=True)
class TDC(Update):
    """TD with gradient correction.

    Args:
        step_size: the step size alpha of the weighted sum. With a sequence, one copy of the weights
            learns with each. The default is 0.1 / (largest squared length of the features).
        secondary: the second step size alpha_h, in units of the first.

    Example:
        >>> import gvf
        >>> gvf.updates.TDC(step_size=0.01, secondary=4.0)
        TDC(step_size=0.01, secondary=4.0)
    """

    step_size: Lanes | None = None
    secondary: float = 1.0

    beta: ClassVar[float] = 0.0
    kernel = staticmethod(gradient_td)
    memories = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.secondary) and self.secondary >= 0.0):
            raise ValueError(
                f"secondary must be finite and not negative, got {brief(self.secondary)}"
            )

    def default_step_size(self, squared_length: Array, weight: Array, batch_size: int) -> Array:
        """Return the default of :class:`TD`, with its bound shared by both sets of weights."""
        both = 1.0 + self.secondary
        return super().default_step_size(squared_length, both * weight, batch_size)

    def numbers(self) -> Sequence[float]:
        """Return alpha_h / alpha, and beta."""
        return self.secondary, self.beta

    def secondary_weights(self, state: LearnerState) -> Array:
        """Return h, float64[rows, L]."""
        return state.memory[0]


@dataclass(frozen=True)
class TDRC(TDC):
    """TD with regularised corrections: TDC with one step size, and h regularised towards 0.

    TDRC is close to TD where TD works, and stable where TD diverges. It has no second step size to
    tune.

    Args:
        step_size: as in :class:`TDC`.
        secondary: the second step size, in units of the first; 1 in the publication.

    Example:
        >>> import gvf
        >>> gvf.updates.TDRC(step_size=0.01)
        TDRC(step_size=0.01, secondary=1.0)
    """

    beta = 1.0
