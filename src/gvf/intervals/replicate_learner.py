"""A replicate that learns: the learner of a log in which every unit occurs as often as it counts.

A learner of that log, with the whole of it as its window, draws row i in proportion to

    N_i p_i,

N_i being the count of row i's unit and p_i the mass of the row, and weighs a batch by the means of
that log. A replicate does the same with the rows of the log itself, which all replicates share. It
has weights, masses, means and a stream of draws of its own. So replicates differ by their draws, as
learners of different logs do, and a row is never more than a row of a batch: a step is not larger
than that of the learner.

The loop is not that of learners (:mod:`gvf.learners.update_loop`): nothing is inserted and the
means never change, and a loop that knows it takes 250 ns an update instead of 350.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int64, types, uint64, void

from gvf.common.arrays import Array, Floats
from gvf.common.compiled import address_of, call, compile_for, once, unowned
from gvf.corrections import MASS
from gvf.intervals.whole_log import WholeLog
from gvf.sampling import xoshiro
from gvf.sampling.alias_table import alias_draw, alias_table
from gvf.updates.linear_kernels import experience_type
from gvf.updates.update import LearnerState, state_type


def _learn(kernels, arrays, numbers):
    """Draw, weigh and update a number of times; :func:`compiled` describes the arguments."""
    weigh, update = kernels
    state, experience, rows, drawn, stream, slots = unowned(arrays)
    inputs, masses, means, parameters = rows
    share, pairs = drawn
    draws, updates = numbers
    k = slots.size
    taken, p, w = np.empty((inputs.shape[0], k)), np.empty(k), np.empty(k)
    for _ in range(updates):
        if draws == 1:
            alias_draw(share, pairs, stream, slots)
        for j in range(k):
            p[j] = masses[slots[j]]
            for c in range(inputs.shape[0]):
                taken[c, j] = inputs[c, slots[j]]
        call(weigh, (taken, p, means, parameters, w))
        if draws == 0 and not w.any():
            continue
        call(update, (state, experience, slots, w))


@once
def compiled(dense: bool) -> tuple[Any, Any]:
    """Return the compiled loop for a representation, and the signature of its update kernel.

    The call is ``loop(kernels, arrays, numbers)``. The kernels are the addresses of those that
    weigh and update. The arrays are the state of the update; the rows' columns; the rows' inputs
    [C, n] and masses [n], the means [C + 1], and the correction's parameters; the alias table
    [n]; a stream; and the slots of a batch [k]. The numbers are 1 if slots are drawn, or 0 if they
    stay because the whole log is the batch, and the number of updates.
    """
    f1, f2, i1 = float64[::1], float64[:, ::1], int64[::1]
    state, experience = state_type(), experience_type(dense)
    rows, drawn = types.Tuple((f2, f1, f1, f1)), types.Tuple((f1, int64[:, ::1]))
    signature = void(
        types.UniTuple(int64, 2),
        types.Tuple((state, experience, rows, drawn, uint64[::1], i1)),
        types.UniTuple(int64, 2),
    )
    return compile_for(_learn, signature), void(state, experience, i1, f1)


class Replicate:
    """A replicate of a learner.

    Args:
        whole: the whole log.
        copies: the count of each unit, [units].
        seed: the seed of the draws.

    Attributes:
        state: the arrays that learning changes.
        means: the means over the resampled log of the correction's inputs and of the mass, [C + 1].
            If the mean mass is 0, nothing is learned.
    """

    def __init__(self, whole: WholeLog, copies: Array, seed: Any) -> None:
        self.state = LearnerState(*(array.copy() for array in whole.values.state))
        times, correction = copies[whole.unit], whole.buffer.correction
        inputs = np.ascontiguousarray(whole.buffer.inputs)
        mass = times * whole.masses
        self.means = np.array([*((times * row).sum() for row in inputs), mass.sum()]) / times.sum()
        slots = np.empty(whole.learner.schedule.batch_size, np.int64)
        if correction.draw.whole:
            slots = np.repeat(np.arange(len(times)), times)
        dense = whole.columns["x"].dtype.kind == "f"
        self._loop, signature = compiled(dense)
        update = address_of(whole.values.update_rule.kernel, signature)
        self._kernels = correction.address("weigh"), update
        self._arrays = (
            self.state,
            whole.experience,
            (inputs, whole.masses, self.means, correction.parameters),
            alias_table(mass) if mass.any() else None,
            xoshiro.streams(1, seed)[0],
            slots,
        )
        self._draws = int(not correction.draw.whole)

    @property
    def weights(self) -> Floats:
        """The weights, [rows]."""
        return self.state.weights[:, 0]

    def learn(self, updates: int) -> None:
        """Do a number of updates."""
        if self.means[MASS] > 0.0:
            self._loop(self._kernels, self._arrays, (self._draws, updates))
