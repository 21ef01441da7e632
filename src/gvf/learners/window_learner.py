"""The part that learners with a window share: one question answered from recent experience.

    transitions -> rows of the question (:mod:`gvf.rows`) -> rows of n steps, with masses
                -> buffer -> draw (slots), weigh (w) -> value function -> predictions

:class:`WindowLearner` ties the parts together: rows, n steps, a buffer with its correction, and a
value function. It works with any correction and any kind of value function. All state that changes
is kept in arrays, so that a learner can be saved and resumed bit for bit. :class:`gvf.Learner` has
linear values; :class:`gvf.neural.NeuralLearner` has a network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import brief
from gvf.corrections import Correction
from gvf.corrections.carried import Trace, TraceOverflowError
from gvf.learners.batches import LONGEST_BATCH
from gvf.learners.learner_options import LearnerOptions
from gvf.learners.learner_report import FEWEST, LearnerReport
from gvf.learners.one_question import OneQuestion
from gvf.learners.saved_state import group
from gvf.learners.training import WindowOfLog
from gvf.learners.update_loop import SKIPPED, STEPS, UPDATES, Learns, Schedule
from gvf.question import GVF
from gvf.rows import QuestionRows
from gvf.transition import Transitions, without_last_states
from gvf.window import Window
from gvf.window.buffer import Buffer, Rows
from gvf.window.frame_window import FrameWindow
from gvf.window.n_step import NSteps

_NEVER = 2**62
"""A warm-up that no learner reaches."""


class ValueFunction(Learns, Protocol):
    """The interface of a value function for a learner: linear values or a network."""

    def represent(self, transitions: Transitions) -> dict[str, NDArray[Any]]:
        """Return the columns to keep in the window, besides cumulant and continuation."""
        ...

    def observe(self, buffer: Buffer, rows: Rows, schedule: Schedule) -> None:
        """Insert rows into the buffer, and update whenever an update is due."""
        ...

    def repeat(self, buffer: Buffer, schedule: Schedule, times: int) -> None:
        """Draw, weigh and update so many times, without new rows."""
        ...

    def row_size(self, transitions: Transitions) -> int:
        """Return the size in bytes that the states of one transition take in the window."""
        ...

    def predict(self, states: Any) -> Floats:
        """Predict for a batch of states [m, ...]."""
        ...

    first_size: float
    """The size that predictions may have before anything is learned."""

    def predict_sample(self, window: Any) -> Floats:
        """Return predictions for states of the window, [m, lanes], for a report."""
        ...

    @property
    def were_set(self) -> bool:
        """True if weights were set, although there was no update."""
        ...

    @property
    def step_size(self) -> float | None:
        """The default step size in use; None before there is one, or if one was given."""
        ...

    @property
    def parts(self) -> dict[str, Any]:
        """The arguments of the learner that describe the value function."""
        ...

    @property
    def exported(self) -> dict[str, Any]:
        """The parts of the value function that predictions need."""
        ...

    def check(self, window: Window | FrameWindow) -> None:
        """Raise ValueError if the window does not fit the value function."""
        ...

    @property
    def rngs(self) -> tuple[np.random.Generator, ...]:
        """The random generators used while learning."""
        ...

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """Return copies of the arrays that change."""
        ...

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that :meth:`checkpoint` returned."""
        ...


class WindowLearner(OneQuestion[LearnerReport]):
    """A question, a buffer and a value function, tied together.

    Args:
        question: the question to answer.
        correction: the correction for the behaviour.
        values: the value function.
        options: the options of all learners with a window.
        rng: the generator of the draws.
        features: the features; None if there are none.
    """

    def __init__(
        self,
        question: GVF,
        correction: Correction,
        values: ValueFunction,
        options: LearnerOptions,
        rng: np.random.Generator,
        features: Any = None,
    ) -> None:
        if not isinstance(correction, Correction):
            raise TypeError(
                f"correction must be a gvf.corrections.Correction, got {brief(correction)}"
            )
        super().__init__(
            question,
            options,
            needs_ratio=correction.needs_ratios,
            needs_interest=correction.trace is not None and question.interest is not None,
            features=features,
        )
        self.correction, window = correction, options.window
        self.window = window if isinstance(window, Window | FrameWindow) else Window(window)
        self._capacity = self.window.capacity  # as given; `fit` may keep a whole log
        self.buffer = Buffer(self.window, correction)
        self.n_steps = NSteps(options.n_step, correction)
        self.values = values
        self.schedule = Schedule(options.batch_size, options.update_every, options.warm_up, rng)

    @property
    def steps(self) -> int:
        """The number of transitions observed."""
        return int(self.schedule.counts[STEPS]) + len(self.n_steps)

    @property
    def updates(self) -> int:
        """The number of updates done."""
        return int(self.schedule.counts[UPDATES])

    @property
    def skipped(self) -> int:
        """The number of updates skipped because the window had no mass."""
        return int(self.schedule.counts[SKIPPED])

    @property
    def trace(self) -> Trace:
        """The trace of the correction, which knows which transition follows which."""
        return self.buffer.trace

    def observe_rows(self, rows: QuestionRows) -> None:
        """Insert rows, at least one, and update when due; if it fails, nothing has changed."""
        transitions, missing = rows.origin.transitions, rows.origin.left_out
        columns = {
            "cumulant": rows.cumulant,
            "continuation": rows.continuation,
            # Last, because it may draw numbers, and an observation that fails must change nothing.
            **self.values.represent(without_last_states(transitions)),
        }
        if self.n_steps.n == 1 and self.correction.trace is None:  # no row depends on another
            plain_rows = self.buffer.plain_rows(columns, rows.ratio)
            self.values.observe(self.buffer, plain_rows, self.schedule)
            return
        gaps = [] if missing is None else np.unique(np.cumsum(~missing)[missing]).tolist()
        waiting, inserted = self.n_steps.checkpoint(), int(self.schedule.counts[STEPS])
        try:
            with self.buffer.rows(
                columns,
                rows.ratio,
                rows.continuation,
                rows.origin.batch,
                interest=rows.interest,
                missing=missing,
            ) as window_rows:
                self._insert(self.n_steps.join(window_rows, transitions, gaps))
        except Exception as error:
            if self.schedule.counts[STEPS] == inserted:
                self.n_steps.restore(waiting)
            if isinstance(error, TraceOverflowError):
                raise TraceOverflowError(f"{self.question}: {error}") from None
            raise

    def _insert(self, rows: Rows) -> None:
        """Insert rows and update when due; there may be none, as long as all rows wait."""
        if len(rows):
            self.values.observe(self.buffer, rows, self.schedule)

    def leave_out(self, batch: Transitions) -> None:
        """Let no transition follow these, which are all left out, or those before in a stream."""
        self.trace.leave_out(batch)
        self.n_steps.cut()

    def new_source(self, *, reset: bool) -> None:
        """Accept a next transition that does not follow; with `reset`, none follows."""
        self.trace.new_source(reset=reset)
        self.n_steps.new_source(reset=reset)

    def end_source(self) -> None:
        """Learn from the rows that wait, with the steps that they have."""
        if len(self.n_steps):
            self._insert(self.n_steps.rest())

    @property
    def keeps_order(self) -> bool:
        """True if something is carried from row to row."""
        correction = self.correction
        return self.n_steps.n > 1 or (correction.trace is not None and correction.looks_back)

    @property
    def as_window(self) -> WindowOfLog | str:
        """The learner, unless its window has frames."""
        return "a gvf.FrameWindow keeps its size" if isinstance(self.window, FrameWindow) else self

    def row_size(self, transitions: Transitions) -> int:
        """Return the size in bytes of a row of the window, from one transition."""
        return self.values.row_size(transitions) + 8 * (3 + self.correction.rows)

    def begin_window(self, rows: int) -> None:
        """Begin an empty window of so many rows."""
        self.window = Window(rows)
        self.buffer = Buffer(self.window, self.correction)
        self.n_steps = NSteps(self.n_steps.n, self.correction)

    @contextmanager
    def without_updates(self) -> Iterator[None]:
        """Make a context in which transitions are taken in without an update."""
        schedule = self.schedule
        self.schedule = replace(schedule, warm_up=_NEVER)
        try:
            yield
        finally:
            self.schedule = schedule

    @property
    def rows_together(self) -> int:
        """Few, if every update takes in the whole window, so that Ctrl-C takes effect soon."""
        return self.schedule.update_every if self.correction.draw.whole else LONGEST_BATCH

    def update_as(self, passed: int, count: int) -> None:
        """Update as often as `count` rows behind `passed` others would."""
        update_every = self.schedule.update_every
        self.values.repeat(
            self.buffer, self.schedule, (passed + count) // update_every - passed // update_every
        )

    @property
    def knows_ratios(self) -> bool:
        """True if all ratios in the window are known; a correction without ratios needs none."""
        return self.schedule.counts[STEPS] - self.totals.last_unknown >= len(self.window)

    @property
    def has_learned(self) -> bool:
        """True if there was an update, or if weights were set."""
        return self.updates > 0 or self.values.were_set

    def values_of(self, states: Any) -> Floats:
        """Return the values of a batch of states without a NaN, [m] or [m, lanes]."""
        return self.values.predict(states)

    def exported(self) -> dict[str, Any]:
        """Return the parts that predictions need, and a text about the question."""
        return {"question": repr(self.question), **self.values.exported}

    def report(self) -> LearnerReport:
        """Return counts, statistics of the window's ratios, and the lanes that have diverged."""
        none = float("nan")
        ratios = self.buffer.ratios if self.knows_ratios else np.zeros(0)
        passed_on = self.updates * self.schedule.batch_size * self.n_steps.n
        n = len(self.window)
        predictions = self.values.predict_sample(self.window) if n else np.zeros((0, 0))
        return LearnerReport(
            steps=self.steps,
            updates=self.updates,
            skipped=self.skipped,
            window=n,
            mean_ratio=self.buffer.mean_ratio if self.knows_ratios else none,
            max_ratio=float(ratios.max()) if len(ratios) else none,
            zero_ratios=float(np.mean(ratios == 0.0)) if len(ratios) else none,
            effective_sample_size=self.buffer.effective_sample_size if self.knows_ratios else none,
            step_size=self.values.step_size,
            endless=n >= FEWEST and bool((self.window.columns["continuation"][:n] == 1.0).all()),
            **self.totals.range(passed_on).findings(predictions, self.values.first_size),
            **self.totals.fields(self._bounded, self.steps),
        )

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays of the state."""
        rngs = [json.dumps(rng.bit_generator.state, default=_encoded) for rng in self._rngs]
        counts, seen = self.schedule.counts.copy(), self.totals.state_dict()
        groups = {
            "values": self.values.checkpoint(),
            "window": self.window.checkpoint(),
            "buffer": self.buffer.checkpoint(),
            "n_step": self.n_steps.checkpoint(),
            "own": {"counts": counts, "rng": np.array(rngs), "seen": seen},
        }
        return {
            f"{group}/{name}": array
            for group, named in groups.items()
            for name, array in named.items()
        }

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        capacity = int(arrays["window/ring"][0])
        if capacity != self.window.capacity and not isinstance(self.window, FrameWindow):
            self.begin_window(capacity)
        self.values.restore(group(arrays, "values"))
        self.window.restore(group(arrays, "window"))
        if len(self.window):
            self.values.check(self.window)
        self.buffer.restore(group(arrays, "buffer"))
        self.n_steps.restore(group(arrays, "n_step"))
        for rng, state in zip(self._rngs, arrays["own/rng"], strict=True):
            rng.bit_generator.state = json.loads(str(state), object_hook=_decoded)
        self.schedule.counts[:] = arrays["own/counts"]
        self.totals.load_state_dict(arrays["own/seen"])

    @property
    def _rngs(self) -> tuple[np.random.Generator, ...]:
        return self.schedule.rng, *self.values.rngs

    def present_arguments(self) -> dict[str, Any]:
        """Return the arguments that ``repr`` shows, with their present values."""
        frames = isinstance(self.window, FrameWindow)
        return self.arguments() | ({} if frames else {"window": self.window.capacity})

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that make a learner like this one, except the seed."""
        frames = isinstance(self.window, FrameWindow)
        return {
            "question": self.question,
            **self.values.parts,
            "correction": self.correction,
            "behaviour": self.behaviour,
            "window": f"{self._capacity} frames" if frames else self._capacity,
            "batch_size": self.schedule.batch_size,
            "update_every": self.schedule.update_every,
            "warm_up": self.schedule.warm_up,
            "on_conflict": self.on_conflict,
            "on_nan": self.on_nan,
            "n_step": self.n_steps.n,
            "rng": type(self.schedule.rng.bit_generator).__name__,
        }


def _encoded(array: Any) -> dict[str, Any]:
    """Encode an array in the state of a generator for JSON."""
    return {"dtype": array.dtype.str, "numbers": array.tolist()}


def _decoded(node: dict[str, Any]) -> Any:
    return np.array(node["numbers"], node["dtype"]) if node.keys() == {"dtype", "numbers"} else node
