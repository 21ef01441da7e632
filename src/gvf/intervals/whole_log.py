"""The whole log as a window: every row, with what a learner knows of it, and its unit.

The rows come in as they come to the learner itself: through its question, features, corrections,
traces and n-step returns, without those it skips for a NaN. No update is made; the replicates then
draw from all rows, or solve for what learning from them tends to (:mod:`gvf.intervals.replicates`).
"""

from __future__ import annotations

from copy import copy
from functools import cached_property

import numpy as np

from gvf.common.arrays import Array, Bools, Floats
from gvf.common.errors import positions_counted_from
from gvf.common.interrupts import postponed_interrupt
from gvf.intervals.resampling import Units
from gvf.learners import batches
from gvf.learners.learner import Learner
from gvf.learners.linear_values import LinearValues
from gvf.learners.totals import Totals
from gvf.log import Log
from gvf.online.least_squares import Equations
from gvf.sampling.random_streams import native
from gvf.transition import Transitions, without_last_states
from gvf.updates.linear_kernels import Experience
from gvf.window import Window
from gvf.window.buffer import Buffer
from gvf.window.n_step import NSteps

UNIT = "bootstrap unit"
"""The column with the number of a row's unit."""


class WholeLog:
    """All rows of a log, as a learner sees them.

    Args:
        learner: the learner that sees them; it does not change.
        log: the log.
        units: the units of the log.
        seed: the seed of the actions that some updates draw.

    Attributes:
        learner: the learner.
        units: the units.
        values: the values that every replicate begins with.
        buffer: the rows, in the order of the log; with n steps, in that of their last steps.

    Example:
        >>> import gvf
        >>> from gvf.intervals.resampling import Units
        >>> from gvf.intervals.whole_log import WholeLog
        >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "reward": [0, 1], "terminated": True}
        >>> log = gvf.read_log([walk] * 5, quiet=True)
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2))
        >>> learner = gvf.Learner(
        ...     question,
        ...     gvf.features.OneHot(3),
        ...     gvf.updates.TD(0.1),
        ...     behaviour=gvf.policies.Uniform(2),
        ... )
        >>> whole = WholeLog(learner, log, Units(log), seed=0)
        >>> len(whole.buffer), whole.unit[:5], whole.buffer.inputs[:, :3]
        (10, array([0, 0, 1, 1, 2]), array([[2., 2., 2.]]))
    """

    def __init__(self, learner: Learner, log: Log, units: Units, seed: int) -> None:
        correction = learner.correction
        self.learner, self.units = learner, units
        rng, rule = native(np.random.default_rng(seed)), learner.values.update_rule
        self.values = LinearValues(learner.question.policy, learner.features, rule, rng)
        self.buffer = Buffer(Window(len(log)), correction)
        self._n_steps = NSteps(learner.n_steps.n, correction)
        self._totals = Totals()
        read = 0
        with postponed_interrupt() as interrupted:
            for batch in batches.batches_of(log):
                if interrupted():
                    break
                with positions_counted_from(read, "the log"):
                    self._insert(batch, units.of(batch))
                read += len(batch)
        if len(self._n_steps):
            self.buffer.extend(self._n_steps.rest())

    def _insert(self, batch: Transitions, unit: Array) -> None:
        """Insert the rows of a batch, with their units [m]."""
        rows = self.learner.row_maker.many(batch, self.learner.behaviour)
        ratio, cumulant, continuation, interest, origin = rows
        left_out = origin.left_out
        if not len(ratio):
            self.buffer.trace.leave_out(batch)
            self._n_steps.cut()
            return
        used = ~left_out if left_out is not None else np.ones(len(batch), bool)
        gaps = np.unique(np.cumsum(used)[~used]).tolist()
        with origin.positions_explained():
            columns = self.values.represent(without_last_states(origin.transitions))
        columns |= {"cumulant": cumulant, "continuation": continuation, UNIT: unit[used]}
        with self.buffer.rows(
            columns, ratio, continuation, batch, interest=interest, missing=left_out
        ) as single:
            joined = self._n_steps.join(single, origin.transitions, gaps)
            if len(joined):
                self.buffer.extend(joined)
        self._totals.add(rows, None)

    @cached_property
    def columns(self) -> dict[str, Array]:
        """The columns of the rows, [n, ...] each."""
        window = self.buffer.window
        return {name: column[: len(window)] for name, column in window.columns.items()}

    @cached_property
    def unit(self) -> Array:
        """The unit of every row, int64[n]."""
        return self.columns[UNIT]

    @cached_property
    def experience(self) -> Experience:
        """The columns of the rows that updates read."""
        return self.values.experience(self.columns)

    @cached_property
    def masses(self) -> Floats:
        """The mass of every row, float64[n]."""
        return self.buffer.correction.masses(self.buffer.inputs)

    @cached_property
    def units_with_mass(self) -> Array:
        """The units with a row of positive mass, int64[count]."""
        return np.unique(self.unit[self.masses > 0.0])

    @cached_property
    def shares(self) -> Floats:
        """The share p w of every row in the mean update, with the whole log as a batch, [n]."""
        correction, inputs, p = self.buffer.correction, self.buffer.inputs, self.masses
        w = correction.weights(inputs, correction.means(inputs), p=p)
        return np.where(p > 0.0, p * w, 0.0)

    @cached_property
    def equations(self) -> Equations:
        """The equations of least squares for the log itself."""
        rows = len(self.values.state.weights)
        equations = Equations(rows, most=rows)
        equations.add(self.experience, self.shares)
        return equations

    @cached_property
    def known(self) -> Bools:
        """True for weights with a feature that some row of positive mass has, bool[rows]."""
        correction, inputs = self.buffer.correction, self.buffer.inputs
        w = correction.weights(inputs, correction.means(inputs))
        is_known = np.zeros(len(self.values.state.weights), bool)
        some = np.flatnonzero((self.masses > 0.0) & (w > 0.0))
        x, shares = self.experience.x[some], self.experience.share[some]
        for block, share in enumerate(shares.T):
            rows, first = x[share > 0.0], block * self.values.features.size
            active = np.flatnonzero((rows != 0.0).any(axis=0)) if x.dtype.kind == "f" else rows
            is_known[first + active] = True
        return is_known

    def diverged(self, weights: Floats, updates: int) -> Bools:
        """Return True for the columns of weights [rows, lanes] that have diverged, as in a report.

        Updates pass on the cumulants of as many rows as they draw; least squares, of all rows.
        """
        drawn = updates * self.learner.schedule.batch_size * self._n_steps.n
        signals = self._totals.range(drawn or len(self.buffer))
        values = copy(self.values)
        values.state = values.state._replace(weights=weights)
        assert isinstance(self.buffer.window, Window)
        findings = signals.findings(values.predict_sample(self.buffer.window))
        return np.isin(np.arange(weights.shape[1]), findings["diverged"])
