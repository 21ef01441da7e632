"""WIS-TD(0): weighted importance sampling online, with a step size for every weight.

This is WIS-TD (Mahmood and Sutton 2015) for lambda = 0, as in the paper's appendix. Transitions are
applied one after the other. With r = k w_i (the ratio for uniform draws with ``IS``, 1 for ratio
draws with ``IR``), for every feature x_f that is not 0:

    u_f <- (1 - eta x_f^2) u_f + r x_f^2
    W_f <- W_f + r delta x_f / u_f

Here delta is the usual TD error: the terms in theta_{i-1} of the printed update cancel. u_f starts
at u0 and grows with the ratios seen by the feature, so the step size 1 / u_f falls by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from gvf.common.vector import choose, load, store, zeros
from gvf.features import feature_level, weight_row
from gvf.updates.linear_kernels import NARROW, WIDE, block_error
from gvf.updates.update import Lanes, LearnerState, Update


@njit(cache=True, nogil=True, error_model="numpy")
def wis_td(state, experience, slots, w):
    """Apply the batch's transitions one after the other; memory: u; lanes: u0, eta."""
    lane, lanes = 0, state.weights.shape[1]
    while lane + WIDE <= lanes:
        wis_td_block(zeros(WIDE), state, experience, slots, w, lane)
        lane += WIDE
    while lane + NARROW <= lanes:
        wis_td_block(zeros(NARROW), state, experience, slots, w, lane)
        lane += NARROW
    for rest in range(lane, lanes):
        wis_td_block(0.0, state, experience, slots, w, rest)


@njit(cache=True, nogil=True, error_model="numpy")
def wis_td_block(zero, state, experience, slots, w, lane):
    """Apply the batch's transitions to as many lanes as `zero` has numbers."""
    weights, memory, eta = state.weights, state.memory[0], load(zero, state.lanes, 1, lane)
    x, share, k = experience.x, experience.share, float(slots.size)
    blocks = share.shape[1]
    size = weights.shape[0] // blocks
    for i in range(slots.size):
        slot, r = slots[i], zero + k * w[i]
        error = r * block_error(zero, weights, experience, slot, 1.0, lane)
        for b in range(blocks):
            part = share[slot, b]
            for j in range(x.shape[1]):
                row, level = weight_row(x, slot, j, b * size), part * feature_level(x, slot, j)
                if level != 0.0:
                    u = load(zero, memory, row, lane) * (1.0 - eta * level * level)
                    u += r * level * level
                    store(memory, row, lane, u)
                    # The step would be negative: this lane has diverged.
                    before = choose(u, 0.0, np.nan, load(zero, weights, row, lane))
                    after = choose(0.0, r, before + error * level / u, before)
                    store(weights, row, lane, after)


@dataclass(frozen=True)
class WISTD(Update):
    """WIS-TD(0): the step size of every weight falls with the ratios seen by its feature.

    With ``IS`` this is WIS-TD(0), with ``IR`` the paper's IR+WIS-TD(0). Either argument may be a
    sequence, with one copy of the weights for each value.

    Args:
        u0: the initial value of u, positive; the first step size is about 1/u0.
        eta: the rate at which u forgets, mu/u0 in the paper. For eta above 1 (with binary features)
            u turns negative, and the lane has diverged.

    Example:
        >>> import gvf
        >>> gvf.updates.WISTD(u0=10.0, eta=0.01)
        WISTD(u0=10.0, eta=0.01)
    """

    lane_fields: ClassVar[tuple[str, ...]] = ("u0", "eta")

    u0: Lanes
    eta: Lanes

    kernel = staticmethod(wis_td)
    memories = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.all(np.asarray(self.u0) > 0.0):
            raise ValueError(f"u0 must be positive, got {self.u0}")

    def start(self, rows: int) -> LearnerState:
        """Return the initial state, in which u is u0."""
        state = super().start(rows)
        state.memory[0] = state.lanes[0]
        return state
