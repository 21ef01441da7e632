"""The lanes of a method that learn side by side, without those that have ended.

Lanes do not depend on each other, so a lane that has diverged can be dropped: its error is infinite
from then on, and the others go on with the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gvf.common.arrays import Array
from gvf.kernels import LearnerState

VECTOR, LINE = 8, 64
"""Numbers in the widest vectors of today's processors, and bytes in a cache line."""


@dataclass(frozen=True)
class StudyLanes:
    """Lanes that learn side by side.

    Attributes:
        choice: the index of each lane's choice, int64[L]; the last lanes may repeat one.
        state: the state of the update.
        dead: True for lanes that have diverged, bool[L].
        sums: the last error, the sum of errors, and their sums for each point of the curve,
            float64[2 + points, L].
    """

    choice: Array
    state: LearnerState
    dead: Array
    sums: Array

    @classmethod
    def start(cls, state: LearnerState, choices: int, points: int) -> StudyLanes:
        """Make the lanes of an update before the first step; lanes after the choices repeat one."""
        width = state.weights.shape[1]
        choice, sums = np.minimum(np.arange(width), choices - 1), np.zeros((2 + points, width))
        state = LearnerState(*map(aligned, state))
        return cls(choice, state, np.zeros(width, np.bool_), aligned(sums))

    def without_dead(self) -> StudyLanes:
        """Return the lanes that still learn, or these if no whole vector is saved."""
        _, first = np.unique(self.choice, return_index=True)
        kept = first[~self.dead[first]]
        # Whole vectors are fastest, so the last lane is repeated.
        kept = np.append(kept, np.repeat(kept[-1:], -len(kept) % VECTOR))
        if len(kept) >= len(self.choice):
            return self
        weights, memory, marks, values, numbers = self.state
        state = (weights[:, kept], memory[:, :, kept], marks, values[:, kept], numbers)
        aligned_state = LearnerState(*map(aligned, state))
        return StudyLanes(
            self.choice[kept], aligned_state, self.dead[kept], aligned(self.sums[:, kept])
        )


def aligned(array: Array) -> Array:
    """Copy to memory that starts at a cache line, so that no vector of a row spans two lines."""
    memory = np.empty(array.nbytes + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
