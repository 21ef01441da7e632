"""The horde: thousands of questions answered from one stream of transitions.

    transitions -> distinct parts (P ratios, C cumulants, Z continuations) -> rings, one a policy
                -> drawn rows and weights -> engine -> weights of all questions

A :class:`Horde` gives the answers that one :class:`gvf.Learner` for each question would give, and
shares the work: one window for all, ratios and draws for each policy, features for each drawn row.
Rows are taken in by chunks. What a chunk changes is, up to rounding, what its rows change one by
one. A question is a column of weights that depends on no other, so one that diverges, or whose
sensor fails, disturbs nobody: its weights are put back after each chunk until it may go on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Floats
from gvf.common.checks import brief, check_choice, whole
from gvf.correction import IR, Correction
from gvf.correction.trace import Trace
from gvf.features import FeatureMap, features_of
from gvf.horde.draws import Batch, Draws, Pool
from gvf.horde.engine import Engine, check_memory, engine_for
from gvf.horde.evaluate import Evaluator
from gvf.horde.layout import Ints, Layout
from gvf.horde.pauses import LOOK_EVERY, LOOKED_AT, Pauses
from gvf.horde.report import HordeReport
from gvf.learner import Update
from gvf.learner.base import Observer, check_answers
from gvf.learner.values import Form, check_features, represent
from gvf.policy import DiscretePolicy, Policy
from gvf.question import GVF, OnConflict
from gvf.sampling.prefix_sums import SIZE
from gvf.stream.info import info_columns
from gvf.transition import Transitions, as_column, without_last_states
from gvf.window import Window

Precision = Literal["float64", "float32"]


class Horde(Observer[HordeReport]):
    """Many questions, answered by linear values from one stream of off-policy transitions.

    Args:
        questions: the questions, each with a name of its own; see :func:`gvf.questions`.
        features: the representation, as in :class:`gvf.Learner`.
        update: the learning rule, with one step size. :class:`gvf.TD` with ``SGD`` is much the
            fastest.
        correction: the correction for the behaviour, except :class:`gvf.PrioritisedIR`.
        behaviour: the policy that chooses the actions, if known; as in :class:`gvf.Learner`.
        window: the number of recent transitions to keep, n.
        batch_size: the number of transitions drawn for an update of a question, k.
        every: the number of steps between updates.
        warm_up: the number of steps before the first of these intervals begins.
        on_conflict: as in :class:`gvf.Learner`.
        dtype: the precision of weights and features, ``"float64"`` or ``"float32"``. The second is
            for :class:`gvf.TD` with ``SGD``.
        chunk: the number of transitions that are learned from together, if there are so many. It
            has no influence on the answers beyond rounding. The default suits the machine.
        threads: the number of threads; by default one for each processor.
        device: ``"cpu"``.
        seed: the seed of the draws: anything that :class:`numpy.random.SeedSequence` accepts.

    Example:
        >>> import gymnasium, gvf
        >>> env = gymnasium.make("FrozenLake-v1", is_slippery=False)
        >>> policies = {name: gvf.Favour(a, 0.9, actions=4) for a, name in enumerate("LDRU")}
        >>> asked = gvf.questions(policies, {"reward": "reward"}, [0.5, 0.9])
        >>> horde = gvf.Horde(
        ...     asked, gvf.OneHot(16), gvf.TD(1.0), gvf.IR(), behaviour=gvf.Uniform(4), seed=0
        ... )
        >>> report = horde.learn(env, steps=2000, seed=0)
        >>> horde.predict([14]).shape
        (1, 8)
        >>> horde.predict([14], "R, reward, 0.9").shape
        (1,)
    """

    kind = "horde"

    def __init__(
        self,
        questions: Sequence[GVF],
        features: FeatureMap,
        update: Update,
        correction: Correction = IR(),  # noqa: B008 (frozen)
        *,
        behaviour: Policy | None = None,
        window: int = 15_000,
        batch_size: int = 16,
        every: int = 1,
        warm_up: int = 0,
        on_conflict: OnConflict = "error",
        dtype: Precision = "float64",
        chunk: int | None = None,
        threads: int | None = None,
        device: str = "cpu",
        seed: Any = None,
    ) -> None:
        if isinstance(questions, GVF):
            raise TypeError("questions must be a list of gvf.GVFs; for one, use a gvf.Learner")
        check_answers(behaviour, on_conflict, "error")
        check_choice("dtype", dtype, Precision)
        check_features(features)
        if device != "cpu":
            raise ValueError(f"device must be 'cpu', got {brief(device)}")
        for what, given, kind in (
            ("update", update, Update),
            ("correction", correction, Correction),
        ):
            if not isinstance(given, kind):
                raise TypeError(f"{what} must be a gvf.{kind.__name__}, got {brief(given)}")
        if update.lanes is not None or update.action_values:
            raise ValueError(
                f"a horde has one step size and learns values of states, got {update}; use TD, "
                "IncrementalTD, WISTD, TDC or TDRC with one step size"
            )
        self.features, self.update, self.correction = features, update, correction
        self.behaviour, self.on_conflict, self.dtype = behaviour, on_conflict, np.dtype(dtype)
        self.capacity, self.batch_size = (
            whole("window", window, 1),
            whole("batch_size", batch_size, 1),
        )
        self.every, self.warm_up = whole("every", every, 1), whole("warm_up", warm_up, 0)
        self.chunk = None if chunk is None else whole("chunk", chunk, 1)
        self.threads = whole("threads", os.cpu_count() if threads is None else threads, 1)
        self._pool = Pool(self.threads)
        self._seed = (
            seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        )
        self._lay_out(Layout(questions, correction))
        self._engine: Engine | None = None  # until the form of the features is known
        self._form: set[Form] = set()

    def _lay_out(self, layout: Layout) -> None:
        self.layout, self._evaluator = layout, Evaluator(layout)
        discrete = [p for p in (*layout.policies, self.behaviour) if isinstance(p, DiscretePolicy)]
        if discrete and discrete[-1].actions != discrete[0].actions:
            raise ValueError(
                f"targets and behaviour differ in their number of actions: {discrete[0].actions} "
                f"and {discrete[-1].actions}"
            )
        check_memory(layout, self.update, self.features.size, self.dtype, self.capacity)
        carries = self.correction.trace is not None
        self._traces = [Trace(self.correction) for _ in range(layout.groups * carries)]
        self._pauses = Pauses(layout, self.capacity)
        self._skipped = np.zeros(layout.groups, np.int64)
        self._step_size = np.full(layout.groups, np.inf)
        self._numbers = {name: i for i, name in enumerate(layout.names)}
        # A question without end, whose continuation tells where episodes terminate.
        self._endless = GVF(layout.policies[0], "reward", 1.0)

    def _start(self, x: Array) -> Engine:
        """Make the engine, the window and the rings once the form of the features is known."""
        self._engine, chunk = engine_for(
            self.layout, self.update, self.features.size, x, self.dtype, self.batch_size, self._pool
        )
        whole_window = self.correction.draw.whole
        self._chunk = 1 if whole_window else (self.chunk or chunk) * self.every
        kept = self.capacity + self._chunk - 1
        self._window = Window(kept)
        self._draws = Draws(
            self.correction, self.layout.groups, self.capacity, kept, self.batch_size, self._seed
        )
        return self._engine

    @property
    def questions(self) -> tuple[GVF, ...]:
        """The questions, in the order of predictions."""
        return self.layout.questions

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the questions, in the order of predictions."""
        return self.layout.names

    @property
    def steps(self) -> int:
        """The number of transitions observed."""
        return 0 if self._engine is None else self._draws.steps

    @property
    def updates(self) -> int:
        """The number of updates that have been due."""
        return max(self.steps - self.warm_up, 0) // self.every

    def _take_in(self, transitions: Transitions, behaviour: Policy | None) -> None:
        if not len(transitions):
            return
        ratios = self._ratios(transitions, behaviour)
        cumulant = self._evaluator.cumulants(transitions)
        alive = self._endless.continuations(transitions) > 0.0
        continuation = self._evaluator.continuations(transitions, alive)
        x, x_next = represent(self.features, without_last_states(transitions), self._form)
        engine = self._engine or self._start(x)
        steps = self._draws.steps
        with ExitStack() as stack:
            for trace in self._traces:
                stack.enter_context(trace.undone(unless=lambda: self._draws.steps > steps))
            inputs = self._inputs(ratios, continuation, transitions)
            rows = Rows(
                {"x": x, "x_next": x_next, "cumulant": cumulant, "continuation": continuation},
                inputs,
                self.correction.masses(inputs.reshape(len(inputs), -1)).reshape(inputs.shape[1:]),
            )
            self._form = {(x.dtype, x.shape[1])}
            self._learn(engine, rows)

    def _ratios(self, transitions: Transitions, behaviour: Policy | None) -> Floats:
        """Return the ratios of all groups, float64[groups, m]."""
        recorded = {"behaviour_probability", "behaviour_log_probability"}
        known = behaviour is not None or bool(recorded & transitions.columns.keys())
        if not self.correction.needs_ratios and not known:
            return np.ones((self.layout.groups, len(transitions)))
        ratios = self._evaluator.ratios(transitions, behaviour, self.on_conflict)
        return ratios[self.layout.group_policy]

    def _inputs(self, ratios: Floats, continuation: Floats, transitions: Transitions) -> Floats:
        """Return the correction's inputs of all groups, float64[C, groups, m]."""
        if self.correction.trace is None:
            return ratios[None]
        layout, inputs = self.layout, np.empty((2, *ratios.shape))
        for g, trace in enumerate(self._traces):
            question, place = layout.questions[layout.group_question[g]], layout.starts[g]
            inputs[:, g] = trace.inputs(
                ratios[g],
                layout.scale[place] * continuation[:, layout.source[place]],
                transitions,
                interest=None if question.interest is None else question.interests(transitions),
            )
        return inputs

    def _learn(self, engine: Engine, rows: Rows) -> None:
        """Insert rows piece by piece, and update; all checks are done."""
        before, m = self._draws.steps, rows.p.shape[1]
        done = before + 1 + np.arange(m) - self.warm_up
        due = (done > 0) & (done % self.every == 0)
        step_size = self._step_sizes(rows) if self.update.chooses_step_size else None
        columns = {
            name: c.astype(self.dtype) if c.dtype.kind == "f" else c
            for name, c in rows.columns.items()
        }
        segments = self._pauses.observe(before, columns["cumulant"], columns["continuation"])
        ends = [row for row, _ in segments[1:]] + [m]
        for (start, signals), end in zip(segments, ends, strict=True):
            while start < end:
                steps = before + start
                to_look = LOOK_EVERY - steps % LOOK_EVERY
                stop = min(start + self._chunk, end, start + to_look)
                piece = slice(start, stop)
                self._window.extend(**{name: c[piece] for name, c in columns.items()})
                inputs = np.ascontiguousarray(rows.inputs[:, :, piece])
                p = np.ascontiguousarray(rows.p[:, piece])
                batch = self._draws.insert(inputs, p, due[piece], self._pool)
                if len(batch.w):
                    own = None if step_size is None else step_size[piece][due[piece]]
                    self._update(engine, batch, own, self._pauses.places(signals))
                if stop == start + to_look:
                    self._pauses.diverged[:] = self._divergent()
                start = stop

    def _update(self, engine: Engine, batch: Batch, step_size: Floats | None, paused: Ints) -> None:
        """Apply a batch, and put back the weights of the questions that pause."""
        self._skipped += (batch.drawn == 0).sum(axis=0)
        kept = engine.take(paused) if len(paused) else {}
        engine.learn(self._window.columns, batch, step_size)
        if len(paused):
            engine.put(paused, kept)

    def _divergent(self) -> NDArray[np.bool_]:
        """Find the places that have diverged, by their predictions for recent states, bool[G]."""
        if self._engine is None or not len(self._window):
            return self._pauses.diverged
        recent = self._window.oldest_first[-LOOKED_AT:]
        predictions = self._engine.predict(self._window.columns["x"][recent])
        return self._pauses.divergent(predictions, self.updates * self.batch_size)

    def _step_sizes(self, rows: Rows) -> Floats:
        """Return the default step size from each row on in each group, float64[m, groups]."""
        groups, m = rows.p.shape
        x, x_next = rows.columns["x"], rows.columns["x_next"]
        lengths = np.full(m, x.shape[1], np.float64)
        if x.dtype.kind == "f":
            lengths = np.maximum(*(np.einsum("ij,ij->i", f, f) for f in (x, x_next)))
        inputs, p = rows.inputs.reshape(len(rows.inputs), -1), rows.p.ravel()
        # The weight in a batch of copies of one row, when the means of the window are 1.
        alone = np.repeat(np.arange(p.size)[:, None], self.batch_size, axis=1)
        means = np.ones((p.size, len(inputs) + 1))
        weight = self.correction.weigh_rows(inputs, p, alone, means)[:, 0]
        weight[(p == 0.0) | np.isnan(weight)] = 0.0  # never drawn
        own = self.update.default_step_size(
            np.tile(lengths, groups), np.abs(weight), self.batch_size
        ).reshape(groups, m)
        own[:, 0] = np.minimum(own[:, 0], self._step_size)
        falling = np.minimum.accumulate(own, axis=1)
        self._step_size = falling[:, -1].copy()
        return np.where(np.isfinite(falling), falling, 0.0).T.copy()

    def predict(self, states: Any, names: str | Sequence[str] | None = None) -> Floats:
        """Predict for a batch of states [m, ...].

        Args:
            states: the states.
            names: the name of a question, or several; all questions by default.

        Returns:
            [m, G] for all questions in their order, [m, names] for several, [m] for one.
        """
        states = as_column(states, "the states")
        x = features_of(self.features, self.features.size, states)
        engine = self._engine or self._start(x)
        values = engine.predict(x.astype(self.dtype) if x.dtype.kind == "f" else x)
        if names is None:
            return values[:, self.layout.place]
        if isinstance(names, str):
            return values[:, self._place(names)]
        return values[:, [self._place(name) for name in names]]

    def _place(self, name: str) -> int:
        if name not in self._numbers:
            raise KeyError(f"no question is named {name!r}")
        return int(self.layout.place[self._numbers[name]])

    def weights(self, name: str) -> Floats:
        """Return a copy of the weights of a question, [size]."""
        place = self._place(name)
        if self._engine is None:
            return np.zeros(self.features.size, self.dtype)
        return self._engine.take([place])["weights"].reshape(-1)

    def report(self) -> HordeReport:
        """Return counts, statistics of the ratios, and the questions that are paused."""
        layout, window = self.layout, 0 if self._engine is None else int(self._draws.place[SIZE])
        names = tuple(layout.group_name(g) for g in range(layout.groups))
        skipped = {names[g]: int(self._skipped[g]) for g in np.flatnonzero(self._skipped)}
        unknown = np.full(layout.groups, np.nan)
        return HordeReport(
            questions=len(layout),
            policies=names,
            steps=self.steps,
            updates=self.updates,
            skipped=skipped,
            window=window,
            mean_ratio=self._draws.ratios.mean(axis=1) if window else unknown,
            effective_sample_size=self._draws.effective_sample_sizes if window else unknown,
            paused=self._pauses.reasons(self.steps, self._divergent()),
        )

    def _begin_anew(self) -> None:
        for trace in self._traces:
            trace.restart()

    def _change_source(self) -> None:
        for trace in self._traces:
            trace.change_source()

    def _named_columns(self, info: Iterable[str]) -> tuple[str, ...]:
        asked = [name for q in self.questions for name in info_columns(q)]
        return tuple(dict.fromkeys([*asked, *info_columns(self._endless, info)]))

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        pass

    def _parts(self) -> dict[str, Any]:
        return {}


class Rows(NamedTuple):
    """New rows: columns [m, ...], inputs float64[C, groups, m] and masses float64[groups, m]."""

    columns: dict[str, Array]
    inputs: Floats
    p: Floats
