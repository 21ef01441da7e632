"""Any update, question by question and step by step, with the kernels of :class:`gvf.Learner`.

These weights call the kernel of a :class:`gvf.updates.Update` for each question as a learner would:
with one lane, and the drawn rows as its experience. They serve every update and every kind of
features, and their results are a learner's, bit for bit. :mod:`gvf.horde.dense_weights` and
:mod:`gvf.horde.active_weights` are faster for plain TD.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int32, int64, types, void
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Floats
from gvf.common.compiled import address_of, call, compile_for, once, unowned
from gvf.horde.group_draws import DrawnRows, Pool
from gvf.horde.layout import Layout
from gvf.horde.weights import Weights
from gvf.updates.linear_kernels import Experience, experience_type, values
from gvf.updates.update import LearnerState, Update, state_type


class StepwiseWeights(Weights):
    """The states of an update for all questions, one lane each.

    Args:
        layout: the layout of the questions.
        update: the learning rule.
        size: the number of features.
        pool: the threads.
    """

    def __init__(self, layout: Layout, update: Update, size: int, pool: Pool) -> None:
        self._layout, self._update, self._pool = layout, update, pool
        start = update.start(size)
        self.state = LearnerState(*(np.stack([part] * len(layout)) for part in start))

    def apply(self, columns: Arrays, drawn: DrawnRows, step_size: Floats | None) -> None:
        """Apply U updates; see :class:`gvf.horde.weights.Weights`."""
        layout, x = self._layout, columns["x"]
        loop, signature = _compiled(x.dtype.kind == "f")
        update = address_of(self._update.kernel, signature)
        arrays = (
            self.state,
            (x[drawn.rows], columns["x_next"][drawn.rows]),
            (columns["cumulant"], columns["continuation"], layout.scale),
            (drawn.w, np.zeros((0, 0)) if step_size is None else step_size),
            (drawn.rows, drawn.has_mass),
            (layout.group, layout.cumulant, layout.source),
        )

        def work(first: int, last: int) -> None:
            loop(update, arrays, (first, last))

        worth = len(layout) * drawn.rows.shape[2] > 1000
        self._pool.over(len(layout), work, worth=worth)

    def predict(self, x: Array) -> Floats:
        """Return the values of features [m, ...] at all places, [m, G]."""
        share, out = np.ones((len(x), 1)), np.empty((len(self._layout), len(x), 1))
        for place, weights in enumerate(self.state.weights):
            values(weights, x, share, out[place])
        return out[:, :, 0].T

    def take(self, places: Any) -> dict[str, NDArray[Any]]:
        """Return copies of the states at some places, their first axis."""
        return {name: part[places] for name, part in self.state._asdict().items()}

    def put(self, places: Any, arrays: Arrays) -> None:
        """Replace the states at some places by those that :meth:`take` returned."""
        for name, part in self.state._asdict().items():
            part[places] = arrays[name]


def _learn(update, arrays, numbers):
    """Apply all updates to the questions at the places from `first` to `last`."""
    state, (x, x_next), (cumulants, continuations, scale), weighed, drawn_rows, places = unowned(
        arrays
    )
    w, step_size = weighed
    rows, has_mass = drawn_rows
    group, cumulant, source = places
    first, last = numbers
    k = rows.shape[2]
    share, slots = np.ones((k, 1)), np.arange(k)
    c, gamma = np.empty(k), np.empty(k)
    for q in range(first, last):
        g = group[q]
        d = g if rows.shape[1] > 1 else 0
        state_of_policy = LearnerState(
            state.weights[q], state.memory[q], state.marks[q], state.lanes[q], state.numbers[q]
        )
        for u in range(rows.shape[0]):
            if has_mass[u, g] == 0:
                continue
            if step_size.size > 0:
                state_of_policy.lanes[0, 0] = step_size[u, g]
            for i in range(k):
                c[i] = cumulants[rows[u, d, i], cumulant[q]]
                gamma[i] = scale[q] * continuations[rows[u, d, i], source[q]]
            experience = Experience(x[u, d], share, x_next[u, d], share, c, gamma)
            call(update, (state_of_policy, experience, slots, w[u, g]))


@once
def _compiled(dense: bool) -> tuple[Any, Any]:
    """Return the compiled loop for a representation, and the signature of its update kernel."""
    f1, f2, f3, i1, i2, i3 = (
        float64[::1], float64[:, ::1], float64[:, :, ::1], int64[::1], int64[:, ::1],
        int64[:, :, ::1],
    )  # fmt: skip
    features = (float64 if dense else int32)[:, :, :, ::1]
    states = types.NamedTuple((f3, float64[:, :, :, ::1], i2, f3, f2), LearnerState)
    arrays = types.Tuple(
        (
            states,
            types.UniTuple(features, 2),
            types.Tuple((f2, f2, f1)),
            types.Tuple((f3, f2)),
            types.Tuple((i3, i2)),
            types.UniTuple(i1, 3),
        )
    )
    signature = void(state_type(), experience_type(dense), int64[::1], float64[::1])
    return compile_for(_learn, void(int64, arrays, types.UniTuple(int64, 2))), signature
