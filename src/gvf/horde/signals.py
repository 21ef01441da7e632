"""Transitions as the rows that a horde learns from. All functions of the user are called here.

    transitions -> distinct parts (P ratios, C cumulants, Z continuations), features, course
                -> rows with the inputs and masses of each group, and their pieces

A shard (:mod:`gvf.horde.shard`) takes the rows in. If there are several shards, transitions are
still evaluated once. A batch is evaluated as a whole before any of its rows is learned from.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Floats
from gvf.common.checks import as_array
from gvf.corrections import Correction
from gvf.corrections.carried import Trace
from gvf.features import FeatureMap, features_of, outside_bounds
from gvf.horde.course import Course, Courses
from gvf.horde.cuts import TOGETHER, Piece, pieces
from gvf.horde.evaluator import Evaluator
from gvf.horde.layout import Layout
from gvf.horde.pauses import SignalHistory
from gvf.learners.linear_values import represent
from gvf.learners.saved_state import group
from gvf.policies import Policy, Uniform
from gvf.question import GVF, OnConflict, OnNaN, unusable
from gvf.rows import Origin
from gvf.transition import Transitions, without_last_states
from gvf.updates.default_step_size import squared_lengths

Form = tuple[str, ...]
"""The type and the width of what the window keeps of a state."""


class ManyRows(NamedTuple):
    """The numbers of m transitions for all questions.

    Attributes:
        columns: the columns of the window: x, x_next, cumulant [m, C], continuation [m, 1 + Z].
        inputs: the correction's inputs of each group, float64[inputs, groups, m].
        p: the masses of each group, float64[groups, m].
        lengths: the squared length of the features of each row, float64[m], or the number of active
            ones; None unless a default step size needs it.
        course: the course of events.
        largest: the largest absolute value of each signal so far, float64[C + 1 + Z].
        pieces: the pieces in which the rows are learned from.
    """

    columns: dict[str, Array]
    inputs: Floats
    p: Floats
    lengths: Floats | None
    course: Course
    largest: Floats
    pieces: tuple[Piece, ...] = ()

    def part(self, rows: slice) -> ManyRows:
        """Return some of the rows."""
        return self._replace(
            columns={name: column[rows] for name, column in self.columns.items()},
            inputs=self.inputs[:, :, rows],
            p=self.p[:, rows],
            lengths=None if self.lengths is None else self.lengths[rows],
            course=self.course.part(rows),
        )


class LearnsFromRows(Protocol):
    """The interface of a shard, or of several, for those who pass on rows."""

    steps_per_call: int
    """The largest number of rows in a piece."""

    @property
    def steps(self) -> int:
        """The number of transitions learned from."""
        ...

    def begin(self, x: Array) -> None:
        """Begin with the form of the first states, if there were none before."""
        ...

    def learn(self, rows: ManyRows) -> None:
        """Learn from rows, piece by piece."""
        ...


class RepresentsStates(Protocol):
    """The interface of a representation: what the window keeps of states."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of weights and features."""
        ...

    @property
    def has_bounds(self) -> bool:
        """True if states may be outside the bounds of features."""
        ...

    def of_states(self, states: Any) -> Array:
        """Return what is kept of states [m, ...], as predictions need it."""
        ...

    def of_transitions(self, transitions: Transitions, form: Form | None) -> tuple[Array, Array]:
        """Return what is kept of states and of next states; raise ValueError for another form."""
        ...

    def form(self, x: Array) -> Form:
        """Return the form of what is kept."""
        ...

    def width(self, form: Form) -> int:
        """Return how many numbers are kept of a state."""
        ...

    def outside(self, states: Array) -> int | None:
        """Return the number of states outside the bounds of features, None if they have none."""
        ...


@dataclass(frozen=True)
class FeaturesOfStates:
    """The representation by features, which do not learn."""

    features: FeatureMap
    dtype: np.dtype[Any]

    @property
    def has_bounds(self) -> bool:
        """True if states may be outside the bounds of the features."""
        return hasattr(self.features, "outside")

    def of_states(self, states: Any) -> Array:
        """Return the features of states."""
        return features_of(self.features, self.features.size, as_array(states, "the states"))

    def of_transitions(self, transitions: Transitions, form: Form | None) -> tuple[Array, Array]:
        """Return the features of states and of next states."""
        forms = [] if form is None else [(np.dtype(form[0]), int(form[1]))]
        return represent(self.features, transitions, forms)

    def form(self, x: Array) -> Form:
        """Return the type and the width of features."""
        return x.dtype.str, str(x.shape[1])

    def width(self, form: Form) -> int:
        """Return how many numbers a state has: its features, or the active ones."""
        return int(form[1])

    def outside(self, states: Array) -> int | None:
        """Return the number of states outside the bounds of features, None if they have none."""
        return outside_bounds(self.features, states)


@dataclass(frozen=True, kw_only=True)
class SignalOptions:
    """The arguments of a horde that say how transitions are evaluated."""

    states: RepresentsStates
    correction: Correction
    window: int
    on_conflict: OnConflict
    on_nan: OnNaN
    needs_lengths: bool


class Signals:
    """The part of a horde that evaluates transitions, and what it has to remember for that.

    Args:
        layout: the layout of the questions.
        options: the arguments of the horde.

    Attributes:
        traces: the carried quantity of each group, if the correction has one.
        courses: the ends of all streams so far.
        history: the signals so far.
        form: the form of the states; None before the first ones.
        left_out: the number of transitions left out because of a NaN.
        estimated: True once a ratio was formed with an estimated probability.
        outside: the number of states outside the bounds of the features.
    """

    def __init__(self, layout: Layout, options: SignalOptions) -> None:
        self.layout, self.options = layout, options
        carries = options.correction.trace is not None
        self.traces = [Trace(options.correction) for _ in range(layout.groups * carries)]
        self.courses = Courses()
        self.history = SignalHistory.new(layout, options.window)
        self.form: Form | None = None
        self.left_out, self.estimated, self.outside = 0, False, 0
        self._evaluator = Evaluator(layout)
        # A question without end, whose continuation tells where episodes terminate.
        self.endless = GVF(Uniform(1), "reward", 1.0)

    def row_size(self, width: int) -> int:
        """Return the number of bytes that a row with so wide features needs until it is learned."""
        layout = self.layout
        width = width if self.form is None else self.options.states.width(self.form)
        signals = len(layout.cumulants) + len(layout.signals)
        groups = layout.groups * (2 + self.options.correction.rows)
        return 8 * (groups + len(layout.policies) + signals + 2 * width)

    def pass_on(self, batch: Transitions, behaviour: Policy | None, shard: LearnsFromRows) -> None:
        """Evaluate transitions, and let a shard learn from them.

        If this fails before any row was learned from, nothing has changed.

        Args:
            batch: the transitions.
            behaviour: the policy that chose the actions; None if the transitions have to tell.
            shard: the shard, or several as one.
        """
        missing = unusable(batch) if self.options.on_nan == "skip" else None
        origin = Origin.of(batch, missing, behaviour, self.options.on_conflict)
        if origin.left_out is None:
            self._pass_on(origin, behaviour, shard)
            return
        with origin.positions_explained():
            if len(origin.transitions):
                self._pass_on(origin, behaviour, shard)
            else:
                for trace in self.traces:
                    trace.leave_out(batch)
        self.left_out += origin.left_out_count

    def _pass_on(self, origin: Origin, behaviour: Policy | None, shard: LearnsFromRows) -> None:
        """Pass on the transitions of a batch that are not left out."""
        steps, options, transitions = shard.steps, self.options, origin.transitions
        ratios = self._ratios(origin, behaviour)
        cumulant = self._evaluator.cumulants(transitions)
        alive = self.endless.continuations(transitions) > 0.0
        continuation = self._evaluator.continuations(transitions, alive)
        x, x_next = options.states.of_transitions(without_last_states(transitions), self.form)
        with ExitStack() as stack:
            for trace in self.traces:
                stack.enter_context(trace.undone(unless=lambda: shard.steps > steps))
            inputs = self._inputs(ratios, continuation, origin)
            p = options.correction.masses(inputs.reshape(len(inputs), -1)).reshape(ratios.shape)
            columns = {"x": x, "x_next": x_next, "cumulant": cumulant, "continuation": continuation}
            columns = {name: self.rounded(column) for name, column in columns.items()}
            lengths = squared_lengths(x, x_next) if options.needs_lengths else None
            course, courses = self.courses.follow(transitions)
            self.begin(x, shard)
            rows = ManyRows(columns, inputs, p, lengths, course, self.history.largest)
            try:
                self._learn(rows, shard)
            finally:
                if shard.steps > steps:  # also after an interrupt that came too late to stop it
                    self.courses = courses
                    self.outside += options.states.outside(transitions["state"]) or 0
        self.estimated |= origin.has_estimates

    def _learn(self, rows: ManyRows, shard: LearnsFromRows) -> None:
        """Let a shard learn from rows, some at a time and in pieces."""
        m = rows.p.shape[1]
        for start in range(0, m, TOGETHER):
            part = rows if m <= TOGETHER else rows.part(slice(start, start + TOGETHER))
            steps, count = shard.steps, part.p.shape[1]
            history, segments = self.history.after(
                steps, self.options.window, part.columns["cumulant"], part.columns["continuation"]
            )
            cut = tuple(pieces(steps, count, shard.steps_per_call, segments))
            try:
                shard.learn(part._replace(largest=history.largest, pieces=cut))
            finally:
                if shard.steps > steps:
                    self.history = history

    def begin(self, x: Array, shard: LearnsFromRows) -> None:
        """Remember the form of the first states, and let a shard begin with it."""
        if self.form is None:
            shard.begin(x)
            self.form = self.options.states.form(x)

    def rounded(self, column: Array) -> Array:
        """Return a column in the precision of the weights; active features stay as they are."""
        dtype = self.options.states.dtype
        if column.dtype == dtype or column.dtype.kind != "f":
            return column
        with np.errstate(over="ignore"):  # of a signal, whose questions pause then
            return column.astype(dtype)

    def outside_bounds(self, steps: int) -> float | None:
        """Return the share of so many states that was outside the bounds, None without bounds."""
        return self.outside / steps if self.options.states.has_bounds and steps else None

    def _ratios(self, origin: Origin, behaviour: Policy | None) -> Floats:
        """Return the ratios of all groups, float64[groups, m]; 1 if none are needed or known."""
        if not self.options.correction.needs_ratios and not origin.is_known:
            return np.ones((self.layout.groups, len(origin.transitions)))
        options = self.options
        ratios = self._evaluator.ratios(origin.transitions, behaviour, options.on_conflict)
        return ratios[self.layout.group_policy]

    def _inputs(self, ratios: Floats, continuation: Floats, origin: Origin) -> Floats:
        """Return the correction's inputs of all groups, float64[inputs, groups, m]."""
        if not self.traces:
            return ratios[None]
        layout, inputs = self.layout, np.empty((2, *ratios.shape))
        for g, trace in enumerate(self.traces):
            question, place = layout.questions[layout.group_question[g]], layout.starts[g]
            interest = None
            if question.interest is not None:
                interest = question.interests(origin.transitions)
            inputs[:, g] = trace.inputs(
                ratios[g],
                layout.scale[place] * continuation[:, layout.source[place]],
                origin.batch,
                interest=interest,
                missing=origin.left_out,
            )
        return inputs

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return copies of the arrays of the state."""
        named = {
            "since": self.layout.since.copy(),
            "left_out": np.array(self.left_out),
            "estimated": np.array(self.estimated),
            "outside": np.array(self.outside),
            "last": self.history.last.copy(),
            "largest": self.history.largest.copy(),
            **({} if self.form is None else {"form": np.array(self.form)}),
            **{f"courses/{name}": a for name, a in self.courses.state_dict().items()},
        }
        for g, trace in enumerate(self.traces):
            named |= {f"trace {g}/{name}": array for name, array in trace.checkpoint().items()}
        return named

    def load_state_dict(self, arrays: Arrays) -> None:
        """Restore the arrays that :meth:`state_dict` returned."""
        self.left_out, self.estimated = int(arrays["left_out"]), bool(arrays["estimated"])
        self.outside = int(arrays["outside"])
        self.history = SignalHistory(np.array(arrays["last"]), np.array(arrays["largest"]))
        self.form = tuple(arrays["form"].tolist()) if "form" in arrays else None
        self.courses = Courses.restored(group(arrays, "courses"))
        for g, trace in enumerate(self.traces):
            trace.restore(group(arrays, f"trace {g}"))

    @classmethod
    def restored(cls, layout: Layout, options: SignalOptions, arrays: Arrays) -> Self:
        """Make one with the state of another with the same questions and options."""
        signals = cls(Layout(layout.questions, options.correction, arrays["since"]), options)
        signals.load_state_dict(arrays)
        return signals

    def __reduce__(self) -> Any:
        return type(self).restored, (self.layout, self.options, self.state_dict())
