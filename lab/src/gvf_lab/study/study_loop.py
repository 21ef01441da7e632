"""The compiled loop: updates and errors of all step sizes of one method, in slices.

    for each measurement: do the updates up to it, then average |V - v| over the evaluation states

One loop serves every correction, update and representation. Corrections and updates are compiled
functions, each with one signature (:mod:`gvf.corrections`, :mod:`gvf.updates.update`), and the loop
gets their addresses. A slice ends after a given number of measurements with its state in arrays, so
that a long run can be interrupted.

A lane has diverged once a weight is not finite; its error is infinite from then on. Lanes do not
depend on each other, so it can be dropped, and the others go on with the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import boolean, float64, int64, njit, types, void

from gvf.common.arrays import Array
from gvf.common.compiled import address_of, call, compile_for, once, unowned
from gvf.corrections import RATIO
from gvf.kernels import Experience, LearnerState, experience_type, state_type
from gvf_lab.domain import Trajectory
from gvf_lab.study.measure import measure

VECTOR, LINE = 8, 64
"""Numbers in the widest vectors of today's processors, and bytes in a cache line."""


def experience_of(
    path: Trajectory, question: str, share: Array | None = None, share_next: Array | None = None
) -> Experience:
    """Return the columns of a trajectory that updates read, with shares of the weight blocks."""
    asked, ones = path.signals[question], np.ones((len(path.x), 1))
    return Experience(
        path.x,
        ones if share is None else share,
        path.x_next,
        ones if share_next is None else share_next,
        asked.cumulant,
        asked.continuation,
    )


@njit(cache=True, nogil=True)
def account(error, j, held, bins, total, curve):
    """Add the errors of measurement j to the sums; it counts `held[j]` times."""
    steps, point = held[j], bins[j]
    for lane in range(error.size):
        total[lane] += steps * error[lane]
        curve[point, lane] += steps * error[lane]


def run_updates(kernels, arrays, mass, parameters, squared, start, stop):
    """Do measurements start ... stop - 1, with drawn rows [U, k]; row -1 means no update.

    The groups of arrays are the learner's state, its experience, the draws, the schedule of
    measurements, the target of the errors and their sums; :func:`compiled` has their types.
    ``mass`` is the place of the masses, as in :mod:`gvf.window.buffer`.
    """
    update_kernel, weigh = kernels
    state, experience, drawn, schedule, target, errors = unowned(arrays)
    all_inputs, all_p, means, rows = drawn
    upto, held, bins = schedule
    dead, error, total, curve = errors
    k = rows.shape[1]
    inputs, w = np.empty((all_inputs.shape[0], k)), np.empty(k)
    p = inputs[RATIO] if mass == RATIO else np.ones(k)
    update = upto[start - 1] if start > 0 else 0
    for j in range(start, stop):
        while update < upto[j]:
            if rows[update, 0] >= 0:
                for i in range(k):
                    for c in range(inputs.shape[0]):
                        inputs[c, i] = all_inputs[c, rows[update, i]]
                if mass > RATIO:
                    for i in range(k):
                        p[i] = all_p[rows[update, i]]
                call(weigh, (inputs, p, means[update], parameters, w))
                call(update_kernel, (state, experience, rows[update], w))
            update += 1
        measure(state.weights, target, squared, dead, error)
        account(error, j, held, bins, total, curve)


def run_window_updates(kernels, arrays, mass, parameters, squared, start, stop):
    """Do the same without draws: every update sees the whole window, first ... last - 1.

    Transitions of one kind are equal, so their weights are summed and each kind is one row of the
    experience. A window of thousands of transitions has a few hundred kinds.
    """
    update_kernel, weigh = kernels
    state, experience, drawn, schedule, target, errors = unowned(arrays)
    all_inputs, means, kind, first, last = drawn
    upto, held, bins = schedule
    dead, error, total, curve = errors
    kinds = experience.x.shape[0]
    by_kind, slots, w = np.empty(kinds), np.empty(kinds, np.int64), np.empty(kinds)
    update = upto[start - 1] if start > 0 else 0
    count, seen_first, seen_last = 0, -1, -1
    for j in range(start, stop):
        while update < upto[j]:
            begin, end = first[update], last[update]
            if begin != seen_first or end != seen_last:
                seen_first, seen_last = begin, end
                each = np.empty(end - begin)
                window = all_inputs[:, begin:end].copy()
                call(weigh, (window, np.ones(end - begin), means[update], parameters, each))
                by_kind[:] = 0.0
                for i in range(end - begin):
                    by_kind[kind[begin + i]] += each[i]
                count = 0
                for b in range(kinds):
                    if by_kind[b] != 0.0:
                        slots[count], w[count] = b, by_kind[b]
                        count += 1
            if count > 0:
                call(update_kernel, (state, experience, slots[:count], w[:count]))
            update += 1
        measure(state.weights, target, squared, dead, error)
        account(error, j, held, bins, total, curve)


@once
def compiled(dense: bool, window: bool) -> Any:
    """Compile the loop for a representation."""
    f1, f2, i1, i2 = float64[::1], float64[:, ::1], int64[::1], int64[:, ::1]
    state, experience = state_type(), experience_type(dense)
    features = experience.types[0]
    drawn = (f2, f2, i1, i1, i1) if window else (f2, f1, f2, i2)
    schedule, errors = (i1, f1, i1), (boolean[::1], f1, f1, f2)
    target = (features, f2, i1, f1, f1, i2, i1)
    groups = (types.Tuple(group) for group in (drawn, schedule, target, errors))
    signature = void(
        types.UniTuple(int64, 2), types.Tuple([state, experience, *groups]), int64, f1, boolean,
        int64, int64,
    )  # fmt: skip
    return compile_for(run_window_updates if window else run_updates, signature)


@once
def update_address(kernel: Any, dense: bool) -> int:
    """Return the address of an update's kernel, for the loop of a representation.

    The address is cached, because Numba takes 40 us to compare the types of a signature.
    """
    signature = void(state_type(), experience_type(dense), int64[::1], float64[::1])
    return address_of(kernel, signature)


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
