"""The core of a horde: one window, the rings of all policies, and the engine that learns.

    transitions -> distinct parts (P ratios, C cumulants, Z continuations) -> rings, one a policy
                -> drawn rows and weights -> engine -> weights of all questions

Rows are taken in by chunks. What a chunk changes is, up to rounding, what its rows change one by
one. A question is a column of weights that depends on no other, so one that diverges, or whose
sensor fails, disturbs nobody: its weights are put back after each chunk until it may go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Bools, Floats
from gvf.common.checks import as_array
from gvf.corrections import RATIO, Correction
from gvf.corrections.carried import Trace
from gvf.features import FeatureMap, features_of, outside_bounds
from gvf.horde.course import Course, Courses
from gvf.horde.device import Device
from gvf.horde.group_draws import Batch, GroupDraws, Pool
from gvf.horde.layout import Ints, Layout
from gvf.horde.pauses import LOOK_EVERY, LOOKED_AT, Pauses
from gvf.horde.return_checks import Outcomes
from gvf.horde.signals import Evaluator
from gvf.horde.watch import EVERY, Watch
from gvf.horde.weight_engine import WeightEngine, check_memory, engine_for, watch_for
from gvf.learners.learner_report import FEWEST
from gvf.learners.linear_values import Form, represent
from gvf.learners.saved_state import group
from gvf.policies import Policy, Uniform
from gvf.question import GVF, OnConflict, OnNaN, ratios_are_estimated, unusable
from gvf.sampling.prefix_sums import SIZE
from gvf.transition import Transitions, without_last_states
from gvf.updates import Update
from gvf.updates.default_step_size import default_step_sizes
from gvf.window import Window

_ROOM = 1 << 26
"""The number of bytes of ratios, signals and features that are computed before rows are learned."""
TOGETHER = 256
"""The number of rows that are learned from, or sent to workers, together."""


@dataclass(frozen=True, kw_only=True)
class Common:
    """The arguments that every kind of horde has, checked, without the questions."""

    correction: Correction
    behaviour: Policy | None
    window: int
    batch_size: int
    update_every: int
    warm_up: int
    on_conflict: OnConflict
    on_nan: OnNaN
    dtype: np.dtype[Any]
    steps_per_call: int | None
    pool: Pool
    seed: np.random.SeedSequence


@dataclass(frozen=True, kw_only=True)
class HordeOptions(Common):
    """The arguments of :class:`gvf.Horde`, checked, without the questions."""

    features: FeatureMap
    update: Update
    rupee: bool
    device: Device
    workers: int | None = None
    address: str | None = None


class HordeRows(NamedTuple):
    """New rows: columns [m, ...], inputs float64[C, groups, m] and masses float64[groups, m]."""

    columns: dict[str, Array]
    inputs: Floats
    p: Floats
    course: Course

    def parts(self) -> Iterator[HordeRows]:
        """Yield the rows in parts that are learned from together."""
        m = self.p.shape[1]
        if m <= TOGETHER:
            yield self
            return
        for start in range(0, m, TOGETHER):
            rows = slice(start, start + TOGETHER)
            columns = {name: column[rows] for name, column in self.columns.items()}
            yield HordeRows(
                columns, self.inputs[:, :, rows], self.p[:, rows], self.course.part(rows)
            )


class Core:
    """All that changes in a horde while it learns.

    The first features decide which engine is used, so there is none before; :meth:`start` makes it.

    Args:
        layout: the layout of the questions.
        options: the other arguments of the horde.
    """

    first_size: float = 0.0
    """The size that predictions may have before anything is learned."""

    def __init__(self, layout: Layout, options: HordeOptions) -> None:
        self.layout, self.options = layout, options
        correction = options.correction
        self._check_memory()
        self.evaluator, self.pauses = Evaluator(layout), Pauses(layout, options.window)
        self.courses, self.outcomes = Courses(), Outcomes(layout, options.window)
        carries = correction.trace is not None
        self.traces = [Trace(correction) for _ in range(layout.groups * carries)]
        self.skipped = np.zeros(layout.groups, np.int64)
        self.step_size = np.full(layout.groups, np.inf)
        size, since = options.batch_size, self._known_since
        self.draws = GroupDraws(
            correction, layout.groups, options.window, size, options.seed, since
        )
        self.left_out = 0
        self.estimated = False  # True once a ratio was estimated
        self.outside = 0  # the number of states outside the bounds of the features
        self.uncounted = 0  # the number of the first states that were not looked at for this
        # Fewer rows if updates are rare, so that looks stay cheap beside them.
        rows = max(options.batch_size // options.update_every, 1)
        self.watch = self._watch_kind(layout, rows, self._watched_features, options.dtype)
        self.engine: WeightEngine | None = None
        self.window = Window(1)  # until there is an engine
        self.steps_per_call = 1
        self.form: set[Form] = set()
        # A question without end, whose continuation tells where episodes terminate.
        self.endless = GVF(Uniform(1), "reward", 1.0)

    def _check_memory(self) -> None:
        options = self.options
        arrays = 1 + options.update.memories + 2 * options.rupee
        check_memory(
            self.layout,
            arrays,
            options.features.size,
            options.dtype,
            options.window,
            options.device,
        )

    @property
    def _watched_features(self) -> int:
        """The number of features that RUPEE is about; 0 if it is not wanted."""
        return self.options.features.size if self.options.rupee else 0

    @property
    def _watch_kind(self) -> type[Watch]:
        """The class of the watch: that of the device that has the weights."""
        return watch_for(self.options.device)

    @property
    def on_device(self) -> bool:
        """True if predictions stay on a device, and so are not checked by returns."""
        return self._watch_kind is not Watch

    @property
    def steps(self) -> int:
        """The number of transitions observed."""
        return self.draws.steps

    def start(self, form: Form) -> None:
        """Make the engine and the window, once the form of the features is known."""
        options = self.options
        self.engine, best = engine_for(
            self.layout,
            options.update,
            options.features.size,
            form[0].kind == "f",
            options.dtype,
            options.batch_size,
            options.pool,
            options.device,
        )
        self.steps_per_call = (
            best * options.update_every
            if options.steps_per_call is None
            else options.steps_per_call
        )
        if options.correction.draw.whole:
            self.steps_per_call = 1
        self.window = Window(options.window + self.steps_per_call - 1)
        self.form = {form}

    def values(self, states: Any) -> Floats:
        """Return the values of states [m, ...] at all places, [m, G]."""
        features, states = self.options.features, as_array(states, "the states")
        x = features_of(features, features.size, states)
        if not self.form:
            self.start((x.dtype, x.shape[1]))
        return self.predict(self._rounded(x))

    def predict(self, x: Array) -> Floats:
        """Return the values of features [m, ...] at all places, [m, G]."""
        assert self.engine is not None
        return self.engine.predict(x)

    def weights(self, places: Ints) -> Array:
        """Return copies of the weights at some places, [places, size]."""
        if self.engine is None:
            return np.zeros((len(places), self.options.features.size), self.options.dtype)
        return self.engine.take(places)["weights"].reshape(len(places), -1)

    def _rounded(self, column: Array) -> Array:
        """Return a column in the precision of the weights; active features stay as they are."""
        with np.errstate(over="ignore"):  # of a signal, whose questions pause then
            return column.astype(self.options.dtype) if column.dtype.kind == "f" else column

    @property
    def rows_together(self) -> int:
        """The number of transitions that are checked before any of them is learned from."""
        layout = self.layout
        width = next(iter(self.form))[1] if self.form else self.options.features.size
        signals = len(layout.cumulants) + len(layout.signals)
        groups = layout.groups * (2 + self.options.correction.rows)
        return max(_ROOM // (8 * (groups + len(layout.policies) + signals + 2 * width)), TOGETHER)

    def take_in(self, transitions: Transitions, behaviour: Policy | None) -> None:
        """Observe transitions, and update when due. If it fails, nothing has changed."""
        missing = unusable(transitions) if self.options.on_nan == "skip" else None
        if missing is None or not missing.any():
            self._take_in(transitions, transitions, behaviour, None)
        elif missing.all():
            for trace in self.traces:
                trace.inputs(np.empty(0), np.empty(0), transitions, missing=missing)
        else:
            try:
                self._take_in(transitions[~missing], transitions, behaviour, missing)
            except ValueError as error:
                rows = np.array2string(np.flatnonzero(missing), separator=", ", threshold=8)
                error.add_note(f"Positions do not count the rows left out for a NaN, {rows}.")
                raise
        self.left_out += 0 if missing is None else int(missing.sum())

    def _take_in(
        self,
        transitions: Transitions,
        batch: Transitions,
        behaviour: Policy | None,
        missing: Bools | None,
    ) -> None:
        """Observe transitions: those given, without those that are missing."""
        correction, steps = self.options.correction, self.steps
        ratios = self._ratios(transitions, behaviour)
        cumulant = self.evaluator.cumulants(transitions)
        alive = self.endless.continuations(transitions) > 0.0
        continuation = self.evaluator.continuations(transitions, alive)
        x, x_next = self._represented(without_last_states(transitions))
        with ExitStack() as stack:
            for trace in self.traces:
                stack.enter_context(trace.undone(unless=lambda: self.steps > steps))
            inputs = self._inputs(ratios, continuation, transitions, batch, missing)
            p = correction.masses(inputs.reshape(len(inputs), -1)).reshape(ratios.shape)
            columns = {
                "x": x,
                "x_next": x_next,
                "cumulant": cumulant,
                "continuation": continuation,
            }
            course, courses = self.courses.follow(transitions)
            try:
                for rows in HordeRows(columns, inputs, p, course).parts():
                    self.learn(rows)
            finally:
                if self.steps > steps:  # as after an interrupt that came too late to stop it
                    self.courses = courses
                    self._note_states(transitions["state"])
        on_conflict = self.options.on_conflict
        self.estimated |= ratios_are_estimated(transitions, behaviour, on_conflict)

    def _note_states(self, states: Array) -> None:
        """Count the states outside the bounds of the features, if they have any."""
        self.outside += outside_bounds(self.options.features, states) or 0

    @property
    def outside_bounds(self) -> float | None:
        """The share of states outside the bounds of the features; None if they have none."""
        counted = self.steps - self.uncounted
        has_bounds = hasattr(self.options.features, "outside")
        return self.outside / counted if has_bounds and counted else None

    def _represented(self, transitions: Transitions) -> tuple[Array, Array]:
        """Return what the window keeps of the states and of the next states."""
        x, x_next = represent(self.options.features, transitions, self.form)
        if not self.form:
            self.start((x.dtype, x.shape[1]))
        return x, x_next

    def _ratios(self, transitions: Transitions, behaviour: Policy | None) -> Floats:
        """Return the ratios of all groups, float64[groups, m]; 1 if none are needed or known."""
        recorded = {"behaviour_probability", "behaviour_log_probability"}
        known = behaviour is not None or bool(recorded & transitions.columns.keys())
        if not self.options.correction.needs_ratios and not known:
            return np.ones((self.layout.groups, len(transitions)))
        ratios = self.evaluator.ratios(transitions, behaviour, self.options.on_conflict)
        return ratios[self.layout.group_policy]

    def _inputs(
        self,
        ratios: Floats,
        continuation: Floats,
        transitions: Transitions,
        batch: Transitions,
        missing: Bools | None,
    ) -> Floats:
        """Return the correction's inputs of all groups, float64[C, groups, m]."""
        if not self.traces:
            return ratios[None]
        layout, inputs = self.layout, np.empty((2, *ratios.shape))
        for g, trace in enumerate(self.traces):
            question, place = layout.questions[layout.group_question[g]], layout.starts[g]
            inputs[:, g] = trace.inputs(
                ratios[g],
                layout.scale[place] * continuation[:, layout.source[place]],
                batch,
                interest=None if question.interest is None else question.interests(transitions),
                missing=missing,
            )
        return inputs

    def learn(self, rows: HordeRows) -> None:
        """Insert rows piece by piece, and update; all checks are done."""
        options, before, m, engine = self.options, self.steps, rows.p.shape[1], self.engine
        assert engine is not None
        done = before + 1 + np.arange(m) - options.warm_up
        due = (done > 0) & (done % options.update_every == 0)
        step_size = self._step_sizes(rows)
        columns = {name: self._rounded(column) for name, column in rows.columns.items()}
        self.outcomes.note(before, rows.inputs[RATIO])
        segments = self.pauses.observe(before, columns["cumulant"], columns["continuation"])
        ends, followed = [row for row, _ in segments[1:]] + [m], 0
        for (start, signals), end in zip(segments, ends, strict=True):
            while start < end:
                to_look = EVERY - (before + start) % EVERY
                stop = min(start + self.steps_per_call, end, start + to_look)
                piece = slice(start, stop)
                self.window.extend(**{name: column[piece] for name, column in columns.items()})
                inputs = np.ascontiguousarray(rows.inputs[:, :, piece])
                p, kept = np.ascontiguousarray(rows.p[:, piece]), self.window.capacity
                later = engine.follow(self.draws, kept)
                batch = self.draws.insert(inputs, p, due[piece], kept, options.pool, later)
                if len(batch.w):
                    due_sizes = None if step_size is None else step_size[piece][due[piece]]
                    self._update(batch, due_sizes, self.pauses.places(signals))
                if stop in (end, start + to_look):
                    if self.outcomes.waiting:
                        paused, waited = self.pauses.places(signals), slice(followed, stop)
                        self.outcomes.follow(before, columns, rows.course, waited, paused)
                    followed = stop
                if stop == start + to_look:
                    newest = rows.course.part(slice(stop - 1, stop))
                    self._look(engine, newest, self.pauses.places(signals))
                if self.draws.steps % LOOK_EVERY == 0:
                    self.pauses.diverged[:] = self.divergent()
                start = stop

    @property
    def _known_since(self) -> Ints:
        """The step from which on transitions are known to each group, int64[groups]."""
        return self.layout.since[self.layout.group_question]

    def _update(self, batch: Batch, step_size: Floats | None, paused: Ints) -> None:
        """Apply a batch, and put back the weights of the questions that pause."""
        engine = self.engine
        assert engine is not None
        self.skipped += (batch.drawn == 0).sum(axis=0)
        kept = engine.take(paused) if len(paused) else {}
        engine.learn(self.window.columns, batch, step_size)
        if len(paused):
            engine.put(paused, kept)

    def _look(self, engine: WeightEngine, course: Course, paused: Ints) -> None:
        """Watch the errors of the newest rows, except at places that pause or do not know them.

        The prediction for the next state of the newest row, which has this course, then waits for
        its return.
        """
        n, steps, resting = self.options.window, self.steps, paused
        count = min(self.watch.rows, len(self.window), n)
        ratios = self.draws.ratios[:, (steps - count + np.arange(count)) % n]
        if self.draws.latest > steps - count:
            new = self._known_since > steps - count
            resting = np.append(paused, np.flatnonzero(new[self.layout.group]))
        values = self.watch.look(self.window.columns, steps, engine, ratios, resting)
        if values is not None:
            self.outcomes.begin(steps, values[-1], course, self.pauses, paused)

    @property
    def updates(self) -> int:
        """The number of updates that have been due."""
        return max(self.steps - self.options.warm_up, 0) // self.options.update_every

    def divergent(self) -> NDArray[np.bool_]:
        """Find the places that have diverged, by their predictions for recent states, bool[G]."""
        return self.pauses.divergent(self._largest(), self.updates * self.options.batch_size)

    def _largest(self) -> Floats:
        """Return the largest absolute prediction for recent states at each place, [G]."""
        if self.engine is None or not len(self.window):
            return np.zeros(len(self.layout))
        recent = self.window.oldest_first[-LOOKED_AT:]
        return self.engine.largest(self.window.columns["x"][recent])

    def _endless(self) -> NDArray[np.bool_]:
        """Find the places whose continuation is 1 in the whole window, bool[G]."""
        recent = self.window.oldest_first[-self.options.window :]
        if len(recent) < FEWEST:
            return np.zeros(len(self.layout), np.bool_)
        least = self.window.columns["continuation"][recent].min(axis=0)
        return self.layout.scale * least[self.layout.source] == 1.0

    def summary(self) -> dict[str, NDArray[Any]]:
        """Return the numbers of a report: those of groups [groups], and those of places [G]."""
        draws, unknown = self.draws, np.full(self.layout.groups, np.nan)
        filled = bool(draws.place[SIZE])
        known = np.clip(draws.steps - self._known_since, 1, max(int(draws.place[SIZE]), 1))
        rupee, largest = self.watch.rupee(), self._largest()
        passed_on = self.updates * self.options.batch_size
        return {
            "skipped": self.skipped,
            "mean_ratio": draws.ratios.sum(axis=1) / known if filled else unknown,
            "effective_sample_size": draws.effective_sample_sizes if filled else unknown,
            "missing": self.pauses.missing(self.steps),
            "diverged": self.pauses.divergent(largest, passed_on),
            "outside": largest > 2.0 * self.pauses.largest_returns(passed_on, self.first_size),
            "endless": self._endless(),
            "ude": self.watch.ude(self._rounding()),
            **self.outcomes.summary(self.steps),
            **({} if rupee is None else {"rupee": rupee}),
        }

    def _rounding(self) -> Floats:
        """Return the size below which errors at each place are rounding errors, float64[G]."""
        share = np.sqrt(np.finfo(self.options.dtype).eps)
        return share * self.pauses.largest[self.layout.cumulant]

    def _step_sizes(self, rows: HordeRows) -> Floats | None:
        """Return the default step size from each row on in each group, float64[m, groups].

        Return None if the update has a step size.
        """
        options = self.options
        if not options.update.chooses_step_size:
            return None
        columns = rows.columns["x"], rows.columns["x_next"], rows.inputs, rows.p
        falling = default_step_sizes(
            options.update, options.correction, *columns,
            batch_size=options.batch_size, smallest=self.step_size,
        )  # fmt: skip
        self.step_size = falling[:, -1].copy()
        return np.where(np.isfinite(falling), falling, 0.0).T.copy()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays of the state."""
        groups: dict[str, dict[str, NDArray[Any]]] = {
            "own": {
                "since": self.layout.since.copy(),
                "skipped": self.skipped.copy(),
                "step_size": self.step_size.copy(),
                "chunk": np.array(self.steps_per_call),
                "left_out": np.array(self.left_out),
                "estimated": np.array(self.estimated),
                "outside": np.array([self.outside, self.uncounted]),
            },
            "pauses": self.pauses.arrays(),
            "draws": self.draws.arrays(),
            "watch": self.watch.arrays(),
            "outcomes": self.outcomes.arrays(),
            "window": self.window.checkpoint(),
            "courses": self.courses.arrays(),
            **{f"trace {g}": trace.checkpoint() for g, trace in enumerate(self.traces)},
        }
        if self.engine is not None:
            groups["engine"] = self.engine.take(np.arange(len(self.layout)))
            ((dtype, width),) = self.form
            groups["own"]["form"] = np.array([dtype.str, str(width)])
        return {f"{a}/{b}": array for a, named in groups.items() for b, array in named.items()}

    @classmethod
    def restored(
        cls, layout: Layout, options: HordeOptions, arrays: dict[str, NDArray[Any]]
    ) -> Core:
        """Make a core from the arrays of another with the same questions and options."""
        core = cls(Layout(layout.questions, options.correction, arrays["own/since"]), options)
        core.restore(arrays)
        return core

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays of another core with the same layout and options."""
        core_arrays = group(arrays, "own")
        if "form" in core_arrays:
            dtype, width = core_arrays["form"].tolist()
            self.start((np.dtype(dtype), int(width)))
            assert self.engine is not None
            self.engine.put(np.arange(len(self.layout)), group(arrays, "engine"))
            # Both may belong to the questions that the horde had at first.
            self.steps_per_call, self.window = (
                int(core_arrays["chunk"]),
                Window(int(arrays["window/ring"][0])),
            )
        self.window.restore(group(arrays, "window"))
        self.draws.restore(group(arrays, "draws"))
        self.pauses.restore(group(arrays, "pauses"))
        self.watch.restore(group(arrays, "watch"))
        self.outcomes.restore(group(arrays, "outcomes"))
        self.courses = Courses.restored(group(arrays, "courses"))
        for g, trace in enumerate(self.traces):
            trace.restore(group(arrays, f"trace {g}"))
        self.skipped[:], self.step_size[:] = core_arrays["skipped"], core_arrays["step_size"]
        self.left_out = int(core_arrays["left_out"])
        self.estimated = bool(core_arrays["estimated"])
        self.outside, self.uncounted = core_arrays["outside"].tolist()

    def gathered(self) -> Core:
        """Return a core of this process in the same state; here it is the core itself."""
        return self

    def __reduce__(self) -> Any:
        return type(self).restored, (self.layout, self.options, self.arrays())
