"""Groups of lanes: which of a method's choices learn side by side, and which have ended.

Lanes do not depend on each other, so they can learn in groups, and a lane that has diverged can be
dropped: its error is infinite from then on. A group has as many lanes as a core's cache has room
for, because updates of many weights take as long as reading and writing them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gvf.common.arrays import Array
from gvf.learner.update import LearnerState

VECTOR, LINE = 8, 64
"""Numbers in the widest vectors of today's processors, and bytes in a cache line."""
CACHE, FEWEST = 2**20, 16
"""Bytes of a core's own cache, and the fewest lanes of a group that is smaller than all lanes."""


@dataclass(frozen=True)
class Group:
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
    def of(cls, choice: Array, state: LearnerState, dead: Array, sums: Array) -> Group:
        """Make a group whose arrays start at cache lines and belong to it alone."""
        return cls(choice, LearnerState(*map(aligned, state)), dead.copy(), aligned(sums))

    def take(self, lanes: Array) -> Group:
        """Make a group of some of the lanes."""
        weights, memory, marks, values, numbers = self.state
        state = LearnerState(
            weights[:, lanes], memory[:, :, lanes], marks, values[:, lanes], numbers
        )
        return Group.of(self.choice[lanes], state, self.dead[lanes], self.sums[:, lanes])


def split(groups: list[Group]) -> list[Group]:
    """Put the lanes that still learn into as few groups as the cache allows."""
    whole = _joined(groups)
    _, first = np.unique(whole.choice, return_index=True)
    lanes = first[~whole.dead[first]]
    # Whole vectors are fastest, so the last lane is repeated.
    lanes = np.append(lanes, np.repeat(lanes[-1:], -len(lanes) % VECTOR))
    rows, memories = len(whole.state.weights), len(whole.state.memory)
    room = CACHE // (8 * rows * (1 + memories))
    width = max(FEWEST, room - room % VECTOR)
    return [whole.take(lanes[i : i + width]) for i in range(0, len(lanes), width)]


def can_shrink(groups: list[Group]) -> bool:
    """Return True if the lanes that still learn need fewer vectors than there are."""
    alive = {int(choice) for group in groups for choice in group.choice[~group.dead]}
    return len(alive) <= sum(len(group.choice) for group in groups) - VECTOR


def _joined(groups: list[Group]) -> Group:
    if len(groups) == 1:
        return groups[0]
    states = [group.state for group in groups]
    state = LearnerState(
        np.concatenate([state.weights for state in states], axis=1),
        np.concatenate([state.memory for state in states], axis=2),
        states[0].marks,
        np.concatenate([state.lanes for state in states], axis=1),
        states[0].numbers,
    )
    choice, dead = (
        np.concatenate([getattr(group, name) for group in groups]) for name in ("choice", "dead")
    )
    return Group(choice, state, dead, np.concatenate([group.sums for group in groups], axis=1))


def aligned(array: Array) -> Array:
    """Copy to memory that starts at a cache line, so that no vector of a row spans two lines."""
    memory = np.empty(array.nbytes + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
