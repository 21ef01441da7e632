"""The part that learners with a window share: one question answered from recent experience.

    transitions -> question (ratio, cumulant, continuation) -> buffer -> draw (slots), weigh (w)
                -> value function -> predictions

:class:`WindowLearner` ties the parts together: a question, a buffer with its correction, and a
value function. It works with any correction and any kind of value function. All state that changes
is kept in arrays, so that a learner can be saved and resumed bit for bit. :class:`gvf.Learner` has
linear values; :class:`gvf.neural.NeuralLearner` has a network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import brief, whole
from gvf.corrections import Correction
from gvf.corrections.carried import Trace, TraceOverflowError
from gvf.learners.base_learner import (
    UNKNOWN,
    BaseLearner,
    check_answers,
    group,
)
from gvf.learners.batches import LONGEST_BATCH
from gvf.learners.learner_report import FEWEST, LearnerReport
from gvf.learners.update_loop import SKIPPED, STEPS, UPDATES, Learns, Schedule
from gvf.policies import Policy
from gvf.question import GVF, OnConflict, OnNaN
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


@dataclass(frozen=True)
class LearnerOptions:
    """The options common to all value functions; see :class:`Learner`."""

    behaviour: Policy | None
    window: int | Window | FrameWindow
    batch_size: int
    update_every: int
    warm_up: int
    on_conflict: OnConflict
    on_nan: OnNaN
    n_step: int

    def __post_init__(self) -> None:
        for name, least in (("batch_size", 1), ("update_every", 1), ("warm_up", 0), ("n_step", 1)):
            whole(name, getattr(self, name), least)
        if not isinstance(self.window, Window | FrameWindow):
            whole("window", self.window, 1)
        check_answers(self.behaviour, self.on_conflict, self.on_nan)


class WindowLearner(BaseLearner[LearnerReport]):
    """A question, a buffer and a value function, tied together.

    Args:
        question: the question to answer.
        correction: the correction for the behaviour.
        values: the value function.
        options: the remaining options.
        rng: the generator of the draws.
    """

    def __init__(
        self,
        question: GVF,
        correction: Correction,
        values: ValueFunction,
        options: LearnerOptions,
        rng: np.random.Generator,
    ) -> None:
        if not isinstance(correction, Correction):
            raise TypeError(
                f"correction must be a gvf.corrections.Correction, got {brief(correction)}"
            )
        super().__init__(
            question,
            options.behaviour,
            options.on_conflict,
            options.on_nan,
            needs_ratio=correction.needs_ratios,
            needs_interest=correction.trace is not None and question.interest is not None,
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

    def _observe(self, rows: QuestionRows) -> None:
        transitions, missing = rows.origin.transitions, rows.origin.left_out
        gaps = [] if missing is None else np.unique(np.cumsum(~missing)[missing]).tolist()
        columns = {
            "cumulant": rows.cumulant,
            "continuation": rows.continuation,
            # Last, because it may draw numbers, and an observation that fails must change nothing.
            **self.values.represent(without_last_states(transitions)),
        }
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

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self.n_steps.cut()  # the rows that wait get no more steps

    def _change_source(self) -> None:
        super()._change_source()
        self.n_steps.change_source()

    def _leave_out(self, transitions: Transitions) -> None:
        super()._leave_out(transitions)
        self.n_steps.cut()

    def _end_source(self) -> None:
        if len(self.n_steps):
            self._insert(self.n_steps.rest())

    @property
    def _keeps_order(self) -> bool:
        correction = self.correction
        return self.n_steps.n > 1 or (correction.trace is not None and correction.looks_back)

    @property
    def _why_not_drawn(self) -> str:
        return "a gvf.FrameWindow keeps its size" if isinstance(self.window, FrameWindow) else ""

    def _row_size(self, transitions: Transitions) -> int:
        return self.values.row_size(transitions) + 8 * (3 + self.correction.rows)

    def _keep(self, rows: int) -> None:
        self.window = Window(rows)
        self.buffer = Buffer(self.window, self.correction)
        self.n_steps = NSteps(self.n_steps.n, self.correction)

    @contextmanager
    def _without_updates(self) -> Iterator[None]:
        schedule = self.schedule
        self.schedule = replace(schedule, warm_up=_NEVER)
        try:
            yield
        finally:
            self.schedule = schedule

    @property
    def _rows_together(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Few, if every update takes in the whole window, so that Ctrl-C takes effect soon."""
        return self.schedule.update_every if self.correction.draw.whole else LONGEST_BATCH

    def _draw(self, passed: int, count: int) -> None:
        update_every = self.schedule.update_every
        self.values.repeat(
            self.buffer, self.schedule, (passed + count) // update_every - passed // update_every
        )

    @property
    def knows_ratios(self) -> bool:
        """True if all ratios in the window are known; a correction without ratios needs none."""
        return self.schedule.counts[STEPS] - self.seen[UNKNOWN] >= len(self.window)

    @property
    def _has_learned(self) -> bool:
        return self.updates > 0 or self.values.were_set

    def _values(self, states: Any) -> Floats:
        return self.values.predict(states)

    @property
    def _exported(self) -> dict[str, Any]:
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
            **self._range(passed_on).findings(predictions, self.values.first_size),
            **self._noted,
        )

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays of the state."""
        rngs = [json.dumps(rng.bit_generator.state, default=_encoded) for rng in self._rngs]
        counts, seen = self.schedule.counts.copy(), self.seen.copy()
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
        if capacity != self.window.capacity and not self._why_not_drawn:
            self._keep(capacity)
        self.values.restore(group(arrays, "values"))
        self.window.restore(group(arrays, "window"))
        if len(self.window):
            self.values.check(self.window)
        self.buffer.restore(group(arrays, "buffer"))
        self.n_steps.restore(group(arrays, "n_step"))
        for rng, state in zip(self._rngs, arrays["own/rng"], strict=True):
            rng.bit_generator.state = json.loads(str(state), object_hook=_decoded)
        self.schedule.counts[:] = arrays["own/counts"]
        self.seen[:] = arrays["own/seen"]

    @property
    def _rngs(self) -> tuple[np.random.Generator, ...]:
        return self.schedule.rng, *self.values.rngs

    def _present_arguments(self) -> dict[str, Any]:
        frames = isinstance(self.window, FrameWindow)
        return self._parts() | ({} if frames else {"window": self.window.capacity})

    def _parts(self) -> dict[str, Any]:
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
