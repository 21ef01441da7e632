"""The loop of a learner: insert, draw, weigh, update, row after row.

    for each row: write it at the head; if an update is due: draw slots, weigh them, update

There are two versions. :func:`observe` is in Python and works for every value function.
:func:`compiled_loop` gives the same bits for linear values without returning to Python between
rows. It takes the kernels that write, draw, weigh, refresh and update as arguments, so one compiled
loop serves all corrections and updates. Replicates, hordes and studies have loops of their own:
they draw from rows that never change (:mod:`gvf.intervals.replicate_learner`), for many questions
at once (:mod:`gvf.horde.group_draws`), or beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numba import float64, int64, njit, types, void
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.compiled import address_of, call, call_float, compile_for, once, unowned
from gvf.corrections import Correction
from gvf.sampling.prefix_sums import HEAD, SIZE, advance
from gvf.sampling.ratio_ring import Slots
from gvf.sampling.sum_tree import tree_set
from gvf.updates.linear_kernels import experience_type, td_errors
from gvf.updates.update import Update, state_type
from gvf.window.buffer import (
    DRAW,
    WHOLE,
    WRITE,
    Buffer,
    Rows,
    check_refreshed,
    masses_type,
    take_rows,
    write_means,
)

STEPS, UPDATES, SKIPPED = range(3)
"""Positions in ``Schedule.counts``."""


@dataclass(frozen=True)
class Schedule:
    """The schedule of updates, the generator of their draws, and the counts so far.

    Attributes:
        batch_size: the number of rows drawn for an update, k.
        update_every: the number of steps between updates.
        warm_up: the number of steps before the first of these intervals begins.
        rng: the generator of the draws, one of NumPy's own.
        counts: steps, updates, and updates skipped because the window had no mass; int64[3].
    """

    batch_size: int
    update_every: int
    warm_up: int
    rng: np.random.Generator
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(3, np.int64))

    @property
    def steps_to_update(self) -> int:
        """The number of steps until the next update is due."""
        done = int(self.counts[STEPS]) - self.warm_up
        return (
            self.update_every - done if done < 0 else self.update_every - done % self.update_every
        )


class Learns(Protocol):
    """The interface of a value function for the loop."""

    def update(self, buffer: Buffer, slots: Slots, w: Floats) -> None:
        """Change the values by the transitions in slots [k], with weights w [k]."""
        ...

    def td_errors(self, buffer: Buffer, slots: Slots) -> Floats:
        """Return the TD errors of the transitions in slots [k]."""
        ...


def observe(values: Learns, buffer: Buffer, rows: Rows, schedule: Schedule) -> None:
    """Insert rows into the buffer, and update whenever an update is due."""
    start = 0
    while start < len(rows):
        due = start + schedule.steps_to_update
        piece = rows[start:due]
        buffer.extend(piece)
        schedule.counts[STEPS] += len(piece)
        start += len(piece)
        if start == due:
            learn_once(values, buffer, schedule)


def learn_once(values: Learns, buffer: Buffer, schedule: Schedule) -> None:
    """Draw, weigh and update once."""
    slots = buffer.draw(schedule.batch_size, schedule.rng)
    if slots is None:
        schedule.counts[SKIPPED] += 1
        return
    w = buffer.weigh(slots)
    if buffer.mass == WHOLE and not w.any():
        schedule.counts[SKIPPED] += 1
        return
    if buffer.correction.refresh is not None:
        buffer.refresh(slots, values.td_errors(buffer, slots))
    values.update(buffer, slots, w)
    schedule.counts[UPDATES] += 1


def _observe(kernels, arrays, numbers):
    """Insert all rows of a batch, then repeat; :func:`compiled_loop` describes the arguments."""
    write, draw, weigh, refresh, update = kernels
    state, kept, new, masses, rows, counts = unowned(arrays)
    all_inputs, all_p, parameters = rows
    mass, k, update_every, warm_up, function, generator, repeats = numbers
    place = masses.place
    slots, p, w = np.empty(k, np.int64), np.ones(k), np.empty(k)
    inputs, means = np.empty((all_inputs.shape[0], k)), np.empty(all_inputs.shape[0] + 1)
    for i in range(all_p.size + repeats):
        if i < all_p.size:
            slot = place[HEAD]
            for j in range(kept.x.shape[1]):
                kept.x[slot, j], kept.x_next[slot, j] = new.x[i, j], new.x_next[i, j]
            for j in range(kept.share.shape[1]):
                kept.share[slot, j] = new.share[i, j]
                kept.share_next[slot, j] = new.share_next[i, j]
            kept.cumulant[slot], kept.continuation[slot] = new.cumulant[i], new.continuation[i]
            call(write, (masses, all_inputs, all_p, i))
            advance(place)
            counts[STEPS] += 1
            done = counts[STEPS] - warm_up
            if done <= 0 or done % update_every != 0:
                continue
        if mass == WHOLE and slots.size != place[SIZE]:
            size = place[SIZE]
            slots, p, w = np.empty(size, np.int64), np.ones(size), np.empty(size)
            inputs = np.empty((all_inputs.shape[0], size))
        write_means(masses, mass, means)
        if call_float(draw, (masses, mass, means, function, generator, slots)) == 0.0:
            counts[SKIPPED] += 1
            continue
        take_rows(masses, mass, slots, inputs, p)
        call(weigh, (inputs, p, means, parameters, w))
        if mass == WHOLE and not w.any():
            counts[SKIPPED] += 1
            continue
        if refresh != 0:
            call(refresh, (state, kept, masses, inputs, parameters, slots))
        call(update, (state, kept, slots, w))
        counts[UPDATES] += 1


def compiled_loop(
    dense: bool, correction: Correction, update: Update, write: Any, draw: Any
) -> Callable[[Any, Any], None]:
    """Return the compiled loop of a correction and an update, for dense or active features.

    The call is ``loop(arrays, numbers)``. The arrays are the state of the update, the window's
    columns, the new rows' columns, the masses, the new rows' inputs [C, m] and masses [m] with the
    correction's parameters, and the counts int64[3]. The numbers are the index of the ring of
    masses, k, update_every, warm_up, a generator's function and state, and the number of updates
    after the last row.

    Args:
        dense: True for real-valued features, False for active indices.
        correction: the correction, which weighs rows and may refresh their masses.
        update: the update.
        write: the kernel that writes a row into the masses, as in :mod:`gvf.window.buffer`.
        draw: the kernel that draws slots, as there.
    """
    loop, signature = _compiled(dense)
    kernels = (
        address_of(write, WRITE),
        address_of(draw, DRAW),
        correction.address("weigh"),
        refreshing(correction, dense),
        address_of(update.kernel, signature),
    )
    return partial(loop, kernels)


@once
def _compiled(dense: bool) -> tuple[Any, Any]:
    """Return the loop for a representation, and the signature of its update kernel."""
    f1, f2, i1 = float64[::1], float64[:, ::1], int64[::1]
    state, experience, masses = state_type(), experience_type(dense), masses_type()
    signature = void(
        types.UniTuple(int64, 5),
        types.Tuple((state, experience, experience, masses, types.Tuple((f2, f1, f1)), i1)),
        types.UniTuple(int64, 7),
    )
    return compile_for(_observe, signature), void(state, experience, i1, f1)


def refreshing(correction: Correction, dense: bool) -> int:
    """Return the address of the kernel that refreshes drawn slots' masses; 0 if there is none."""
    if correction.refresh is None:
        return 0
    state, experience, masses = state_type(), experience_type(dense), masses_type()
    f1, f2, i1 = float64[::1], float64[:, ::1], int64[::1]
    signature = void(state, experience, masses, f2, f1, i1)
    return address_of(_refreshing(correction.refresh), signature)


@once
def _refreshing(refresh: Any) -> Any:
    """Make the kernel for a correction's ``refresh``, and keep it alive."""

    @njit
    def change(state, kept, masses, inputs, parameters, slots):
        errors, p = np.empty((slots.size, state.weights.shape[1])), np.empty(slots.size)
        td_errors(state.weights, kept, slots, errors)
        refresh(errors[:, 0].copy(), inputs, parameters, p)
        check_refreshed(p)
        tree_set(masses.nodes, slots, p)

    return change
