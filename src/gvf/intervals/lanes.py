"""Replicates in lanes: they learn side by side from the same draws, with weights of their own.

All lanes share the window, which is the whole log, the features, and the draws: slots drawn in
proportion to p_i. A learner of the log in which unit e occurs N_e times would draw in proportion to
N_i p_i instead, N_i being the count of row i's unit, and would weigh by the means of that log. Lane
b has the same mean update with the weights

    w_ib = N_ib (K_b / k) w_i(copies of the batch, means of lane b) sum_j p_j / sum_j N_jb p_j.

Its batch has N_ib copies of row i, K_b in all. The last factor makes up for draws by p_i instead of
N_i p_i. For ``IR`` the weights are ``N_ib / k * sum p / sum N p``, and for ``IS`` they are
``N_ib rho_i / k * n / sum N``. The fixed point would be the same without the factors, but lanes
would differ in their step sizes.

Lanes that share their draws differ by the noise of draws all the same: rows of a batch come from
different units, so their counts N differ as the counts of draws with replacement do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int64, njit, types, uint8, void
from numba.core.errors import TypingError
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.compiled import address_of, call, call_float, compile_for, once, unowned
from gvf.correction import Correction
from gvf.intervals.whole import UNIT, WholeLog
from gvf.learner.linear import experience_type
from gvf.learner.loop import SKIPPED, UPDATES
from gvf.learner.update import LearnerState, state_type
from gvf.sampling.generator import addresses
from gvf.sampling.prefix_sums import SIZE
from gvf.window.buffer import DRAW, WHOLE, masses_type, take_rows, write_means


@njit(cache=True, nogil=True)
def weigh_lanes(weigh, batch, lanes, parameters, by_row, w):
    """Write the weights of a batch in all lanes into w [k, lanes]; see the module."""
    units, inputs, p = batch
    copies, means, factor = lanes
    k, out = p.size, np.empty(p.size)
    for i in range(k):
        for lane in range(w.shape[1]):
            w[i, lane] = copies[units[i], lane]
    for lane in range(w.shape[1]):
        if not by_row:
            _weigh_copies(weigh, inputs, p, means[lane], parameters, w, lane)
        else:
            call(weigh, (inputs, p, means[lane], parameters, out))
            for i in range(k):
                w[i, lane] *= out[i]
    for i in range(k):
        for lane in range(w.shape[1]):
            w[i, lane] *= factor[lane]


@njit(cache=True, nogil=True)
def _weigh_copies(weigh, inputs, p, means, parameters, w, lane):
    """Replace the counts of the rows of a batch in a lane by their weights among all copies."""
    k, kinds, total, at = p.size, inputs.shape[0], 0, 0
    for i in range(k):
        total += int(w[i, lane])
    copied, masses, out = np.empty((kinds, total)), np.empty(total), np.empty(total)
    for i in range(k):
        for _ in range(int(w[i, lane])):
            for c in range(kinds):
                copied[c, at] = inputs[c, i]
            masses[at] = p[i]
            at += 1
    if total == 0:
        return
    call(weigh, (copied, masses, means, parameters, out))
    at = 0
    for i in range(k):
        times = int(w[i, lane])
        if times > 0:
            w[i, lane] = times * out[at] * total / k
        at += times


def _learn(kernels, arrays, numbers):
    """Draw, weigh and update a number of times; :func:`compiled` describes the arguments."""
    draw, weigh, update = kernels
    state, experience, masses, parameters, unit, counts, lanes = unowned(arrays)
    mass, k, updates, function, generator, by_row = numbers
    kinds = lanes[1].shape[1] - 1
    if mass == WHOLE:
        k = masses.place[SIZE]
    slots, p, units = np.empty(k, np.int64), np.ones(k), np.empty(k, np.int64)
    inputs, means, w = np.empty((kinds, k)), np.empty(kinds + 1), np.empty((k, lanes[0].shape[1]))
    write_means(masses, mass, means)
    for _ in range(updates):
        if call_float(draw, (masses, mass, means, function, generator, slots)) == 0.0:
            counts[SKIPPED] += 1
            continue
        take_rows(masses, mass, slots, inputs, p)
        for i in range(k):
            units[i] = unit[slots[i]]
        weigh_lanes(weigh, (units, inputs, p), lanes, parameters, by_row == 1, w)
        call(update, (state, experience, slots, w))
        counts[UPDATES] += 1


@once
def compiled(dense: bool) -> tuple[Any, Any]:
    """Return the compiled loop for a representation, and the signature of its update kernel.

    The call is ``loop(kernels, arrays, numbers)``. The kernels are the addresses of those that
    draw, weigh and update. The arrays are the state of the update, the rows' columns, the masses,
    the correction's parameters, the unit of each row, the counts int64[3], and the lanes: copies of
    each unit, means of the inputs and the mass [lanes, C + 1], and the factor [lanes]. The numbers
    are the ring of masses, k, the number of updates, a generator's function and state, and 1 if the
    correction weighs by row.
    """
    f1, f2, i1 = float64[::1], float64[:, ::1], int64[::1]
    state, experience, masses = state_type(), experience_type(dense), masses_type()
    lanes = types.Tuple((uint8[:, ::1], f2, f1))
    signature = void(
        types.UniTuple(int64, 3),
        types.Tuple((state, experience, masses, f1, i1, i1, lanes)),
        types.UniTuple(int64, 6),
    )
    return compile_for(_learn, signature), void(state, experience, i1, f2)


@once
def weighs_by_row(correction: Correction) -> bool:
    """Return True if a row's weight, times k, does not depend on the rest of the batch.

    Then a batch need not be written out with all of its copies. It is found out by trying batches
    with random inputs.

    Example:
        >>> import gvf
        >>> from gvf.intervals.lanes import weighs_by_row
        >>> weighs_by_row(gvf.BCIR()), weighs_by_row(gvf.WISMinibatch())
        (True, False)
    """
    rng = np.random.default_rng(0)
    for _ in range(20):
        inputs, p = rng.gamma(1.0, size=(correction.rows, 6)), rng.gamma(1.0, size=6)
        means = rng.gamma(1.0, size=correction.rows + 1)
        among = [
            correction.weights(inputs[:, :rows], means, p=p[:rows])[0] * rows for rows in (1, 3, 6)
        ]
        if not np.allclose(among, among[0], rtol=1e-12, atol=0.0):
            return False
    return True


class Lanes:
    """The replicates of a learner, side by side.

    Args:
        whole: the whole log.
        copies: the count of each unit in each replicate, uint8[units, lanes].
    """

    def __init__(self, whole: WholeLog, copies: NDArray[np.uint8]) -> None:
        self._whole, count = whole, copies.shape[1]
        one = whole.values.state
        self.state = LearnerState(
            weights=np.repeat(one.weights, count, axis=1),
            memory=np.repeat(one.memory, count, axis=2),
            marks=one.marks.copy(),
            lanes=np.repeat(one.lanes, count, axis=1),
            numbers=one.numbers.copy(),
        )
        self._lanes = copies, *of_lanes(whole, copies)
        correction, dense = whole.correction, whole.columns["x"].dtype.kind == "f"
        self._loop, signature = compiled(dense)
        rule = whole.values.update_rule
        try:
            update = address_of(rule.kernel, signature)
        except TypingError as error:
            raise TypeError(
                f"the kernel of {type(rule).__name__} cannot take weights w [k, lanes], which "
                'replicates need: read them by gvf.learner.linear.weight_at, or take method="lstd"'
            ) from error
        draws, weigh = address_of(whole.buffer.draws, DRAW), correction.address("weigh")
        self._kernels = draws, weigh, update

    def learn(self, updates: int) -> None:
        """Do a number of updates in all lanes."""
        whole = self._whole
        buffer, schedule, correction = whole.buffer, whole.schedule, whole.correction
        self._loop(
            self._kernels,
            (
                self.state,
                whole.values.experience(whole.window.columns),
                buffer.masses,
                correction.parameters,
                whole.window.columns[UNIT],
                schedule.counts,
                self._lanes,
            ),
            (
                buffer.mass,
                schedule.batch_size,
                updates,
                *(addresses(schedule.rng) or ()),
                int(weighs_by_row(correction)),
            ),
        )


def of_lanes(whole: WholeLog, copies: NDArray[np.uint8]) -> tuple[Floats, Floats]:
    """Return the means of inputs and mass in each lane [lanes, C + 1], and its factor [lanes].

    The factor is 0 in lanes without a row of positive mass, which learn nothing.
    """
    inputs = whole.inputs
    p = whole.correction.masses(inputs)
    terms = [np.ones_like(p), *inputs, p]
    units = [np.bincount(whole.unit, term, len(copies)) for term in terms]
    # [C + 2, lanes]: of N, of N times each input, of N p. A matrix product would round differently
    # for other numbers of lanes.
    sums = np.stack([(unit[:, None] * copies).sum(axis=0) for unit in units])
    mass = sums[-1]
    means = sums[1:] / np.where(sums[0] > 0.0, sums[0], 1.0)
    factor = np.where(mass > 0.0, p.sum() / np.where(mass > 0.0, mass, 1.0), 0.0)
    return np.ascontiguousarray(means.T), factor
