"""The whole log as a window: every row, with what a learner knows of it, and its unit.

The rows come in as they come to the learner itself: through its question, features, corrections,
traces and n-step returns, without those it skips for a NaN. No update is made; the replicates then
draw from all rows (:mod:`gvf.intervals.replicate_learner`) or sum over them
(:mod:`gvf.online.least_squares`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from gvf.common.arrays import Array, Bools, Floats
from gvf.intervals.resampling import Units
from gvf.learners import batches
from gvf.learners.learner import Learner
from gvf.learners.learner_options import LearnerOptions
from gvf.learners.linear_values import LinearValues
from gvf.learners.update_loop import STEPS, Schedule
from gvf.learners.window_learner import WindowLearner
from gvf.log import Log
from gvf.online.least_squares import Equations
from gvf.policies import Policy
from gvf.sampling.random_streams import native
from gvf.transition import Transitions
from gvf.updates.linear_kernels import Experience
from gvf.window import Window
from gvf.window.buffer import Buffer, Rows

UNIT = "bootstrap unit"
"""The column with the number of a row's unit."""


def check(interrupted: Callable[[], bool]) -> None:
    """Raise KeyboardInterrupt if Ctrl-C was heard."""
    if interrupted():
        raise KeyboardInterrupt


class _KeptValues(LinearValues):
    """Linear values that keep the unit of every row, and wait for updates."""

    def represent(self, transitions: Transitions) -> dict[str, Array]:
        """Return the columns to keep in the window."""
        unit = np.ascontiguousarray(transitions[UNIT], np.int64)
        return {**super().represent(transitions), UNIT: unit}

    def _observe(self, buffer: Buffer, rows: Rows, schedule: Schedule, repeats: int = 0) -> None:
        buffer.extend(rows)
        schedule.counts[STEPS] += len(rows)


class WholeLog(WindowLearner):
    """All rows of a log, as a learner sees them.

    Args:
        learner: the learner that sees them; it does not change.
        log: the log.
        units: the units of the log.
        seed: the seed of the actions that some updates draw.

    Attributes:
        inputs: the correction's inputs of every row, float64[C, n].
        masses: the mass of every row, float64[n].

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
        >>> whole.take(log)
        >>> len(whole.window), whole.unit[:5], whole.inputs[:, :3]
        (10, array([0, 0, 1, 1, 2]), array([[2., 2., 2.]]))
    """

    values: _KeptValues  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, learner: Learner, log: Log, units: Units, seed: Any) -> None:
        self._units = units
        rng = native(np.random.default_rng(seed))
        options = LearnerOptions(
            behaviour=learner.behaviour,
            window=len(log),
            batch_size=learner.schedule.batch_size,
            update_every=learner.schedule.update_every,
            warm_up=learner.schedule.warm_up,
            on_conflict=learner.on_conflict,
            on_nan=learner.on_nan,
            n_step=learner.n_steps.n,
        )
        policy, rule = learner.question.policy, learner.values.update_rule
        values = _KeptValues(policy, learner.features, rule, rng)
        super().__init__(learner.question, learner.correction, values, options, rng)

    def observe_batch(self, batch: Transitions, behaviour: Policy | None) -> None:
        """Observe transitions, with the unit of each."""
        unit = {UNIT: self._units.of(batch)}
        super().observe_batch(Transitions(**batch.columns, **unit), behaviour)

    def take(
        self,
        log: Log,
        interrupted: Callable[[], bool] = lambda: False,
        advance: Callable[[int], object] = lambda rows: None,
    ) -> None:
        """Observe all rows of the log."""
        taken = 0
        for batch in batches.batches_of(log):
            check(interrupted)
            try:
                self.observe_batch(batch, self.behaviour)
            except ValueError as error:
                error.add_note(f"Positions count from transition {taken} of the log.")
                raise
            taken += len(batch)
            advance(len(batch))
        self.end_source()
        self.inputs = np.ascontiguousarray(self.buffer.inputs)
        self.masses = self.correction.masses(self.inputs)

    @property
    def columns(self) -> dict[str, Array]:
        """The columns of the rows, [n, ...] each."""
        return {name: column[: len(self.window)] for name, column in self.window.columns.items()}

    @cached_property
    def equations(self) -> Equations:
        """The equations of least squares for the log itself."""
        rows = len(self.values.state.weights)
        equations = Equations(rows, most=rows)
        equations.add(self.experience, self.shares)
        return equations

    @cached_property
    def unit(self) -> Array:
        """The unit of every row, int64[n]."""
        return self.columns[UNIT]

    @cached_property
    def experience(self) -> Experience:
        """The columns of the rows that updates read."""
        return self.values.experience(self.columns)

    @cached_property
    def shares(self) -> Floats:
        """The share p w of every row in the mean update, with the whole log as a batch, [n]."""
        correction, p = self.correction, self.masses
        w = correction.weights(self.inputs, correction.means(self.inputs), p=p)
        return np.where(p > 0.0, p * w, 0.0)

    @property
    def known(self) -> Bools:
        """True for weights with a feature that some row of positive mass has, bool[rows]."""
        w = self.correction.weights(self.inputs, self.correction.means(self.inputs))
        is_known = np.zeros(len(self.values.state.weights), bool)
        some = np.flatnonzero((self.masses > 0.0) & (w > 0.0))
        kept = self.values.experience({name: c[some] for name, c in self.columns.items()})
        for block, share in enumerate(kept.share.T):
            x, first = kept.x[share > 0.0], block * self.values.features.size
            active = np.flatnonzero((x != 0.0).any(axis=0)) if x.dtype.kind == "f" else x
            is_known[first + active] = True
        return is_known

    def diverged(self, weights: Floats, updates: int) -> Bools:
        """Return True for the columns of weights [rows, lanes] that have diverged, as in a report.

        Updates pass on the cumulants of as many rows as they draw; least squares, of all rows.
        """
        passed_on = updates * self.schedule.batch_size * self.n_steps.n or len(self.window)
        self.values.state = self.values.state._replace(weights=weights)
        assert isinstance(self.window, Window)
        findings = self.totals.range(passed_on).findings(self.values.predict_sample(self.window))
        return np.isin(np.arange(weights.shape[1]), findings["diverged"])
