"""The part that all learners share: one question answered from a window of experience.

    transitions -> question (ratio, cumulant, continuation) -> buffer -> draw (slots), weigh (w)
                -> value function -> predictions

:class:`WindowLearner` ties the parts together: a question, a buffer with its correction, and a
value function. It works with any correction and any kind of value function. All state that changes
is kept in arrays, so that a learner can be saved and resumed bit for bit. :class:`gvf.Learner` has
linear values; :class:`gvf.neural.NeuralLearner` has a network.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gvf import stream, truth
from gvf.common import checkpoint, spec
from gvf.common.arrays import Floats
from gvf.common.checks import brief, check_choice, whole
from gvf.common.gym import gym, is_environment
from gvf.correction import Correction
from gvf.learner import source as sources
from gvf.learner.loop import SKIPPED, STEPS, UPDATES, Learns, Schedule
from gvf.learner.report import DIVERGED, LearnerReport, largest_return
from gvf.policy import DiscretePolicy, Policy
from gvf.question import GVF, OnConflict, OnNaN
from gvf.stream.info import info_columns
from gvf.transition import Transitions, as_row, without_last_states
from gvf.truth import ReturnError
from gvf.window import Window
from gvf.window.buffer import Buffer, Rows
from gvf.window.frames import FrameWindow
from gvf.window.n_step import NSteps


class ValueFunction(Learns, Protocol):
    """The interface of a value function for a learner: linear values or a network."""

    def represent(self, transitions: Transitions) -> dict[str, NDArray[Any]]:
        """Return the columns to keep in the window, besides cumulant and continuation."""
        ...

    def observe(self, buffer: Buffer, rows: Rows, schedule: Schedule) -> None:
        """Insert rows into the buffer, and update whenever an update is due."""
        ...

    def predict(self, states: Any) -> Floats:
        """Predict for a batch of states [m, ...]."""
        ...

    def largest(self, window: Any) -> Floats:
        """Return the largest absolute prediction for states of the window in each lane, [lanes]."""
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
class Options:
    """The options common to all value functions; see :class:`Learner`."""

    behaviour: Policy | None
    window: int | Window | FrameWindow
    batch_size: int
    every: int
    warm_up: int
    on_conflict: OnConflict
    on_nan: OnNaN
    n_step: int

    def __post_init__(self) -> None:
        for name, least in (("batch_size", 1), ("every", 1), ("warm_up", 0), ("n_step", 1)):
            whole(name, getattr(self, name), least)
        if not isinstance(self.window, Window | FrameWindow):
            whole("window", self.window, 1)
        check_choice("on_conflict", self.on_conflict, OnConflict)
        check_choice("on_nan", self.on_nan, OnNaN)
        if self.behaviour is not None and not isinstance(self.behaviour, Policy):
            raise TypeError(f"behaviour must be a gvf.Policy, got {brief(self.behaviour)}")


CUMULANT, CONTINUATION, UNKNOWN, MISSING = range(4)
"""Positions in ``WindowLearner.seen``: the largest absolute cumulant, the largest continuation, the
last step with an unknown ratio, and the number of transitions skipped because of a NaN."""


class WindowLearner:
    """A question, a buffer and a value function, tied together.

    Args:
        question: the question to answer.
        correction: the correction for the behaviour.
        values: the value function.
        options: the remaining options.
        rng: the generator of the draws.
    """

    kind: ClassVar[str] = "learner"
    """The kind of object that its checkpoints hold."""

    def __init__(
        self,
        question: GVF,
        correction: Correction,
        values: ValueFunction,
        options: Options,
        rng: np.random.Generator,
    ) -> None:
        if not isinstance(correction, Correction):
            raise TypeError(f"correction must be a gvf.Correction, got {brief(correction)}")
        behaviour, window = options.behaviour, options.window
        policies = [p for p in (question.policy, behaviour) if isinstance(p, DiscretePolicy)]
        if len({p.actions for p in policies}) > 1:
            raise ValueError(
                f"target and behaviour differ in their number of actions: {policies[0].actions} "
                f"and {policies[1].actions}"
            )
        self.question, self.correction, self.behaviour = question, correction, behaviour
        self.on_conflict: OnConflict = options.on_conflict
        self.on_nan: OnNaN = options.on_nan
        self.seen = np.zeros(4)
        self.window = window if isinstance(window, Window | FrameWindow) else Window(window)
        self.buffer = Buffer(self.window, correction)
        self.n_steps = NSteps(options.n_step, correction)
        self.values = values
        self.schedule = Schedule(options.batch_size, options.every, options.warm_up, rng)

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

    def observe(
        self,
        state: Any,
        action: Any,
        reward: float,
        next_state: Any,
        terminated: bool,
        truncated: bool = False,
        **more: Any,
    ) -> None:
        """Observe one transition, and update if an update is due.

        Further columns, such as ``behaviour_probability``, are given by keyword; the question's
        cumulant and continuation can use them. If the behaviour changes over time, for example
        because it uses this learner's predictions, give the probability with which it chose the
        action: it cannot be computed later.
        """
        named = {
            "state": state,
            "action": action,
            "reward": reward,
            "next_state": next_state,
            "terminated": terminated,
            "truncated": truncated,
            **more,
        }
        rows = {
            key: as_row(v) if isinstance(v, dict) else np.asarray(v)[None]
            for key, v in named.items()
        }
        self.observe_many(Transitions(**rows))

    def observe_many(self, transitions: Transitions) -> None:
        """Observe a batch of transitions in order, with the same result as one by one."""
        self._take_in(transitions, self.behaviour)

    def _take_in(self, transitions: Transitions, behaviour: Policy | None) -> None:
        if not len(transitions):
            return
        missing = self.question.missing(transitions) if self.on_nan == "skip" else None
        if missing is None or not missing.any():
            self._take_in_whole(transitions, behaviour)
            return
        kept, left_out = np.flatnonzero(~missing), np.flatnonzero(missing)
        if len(kept):
            gaps = np.unique(np.searchsorted(kept, left_out)).tolist()
            try:
                self._take_in_whole(transitions[kept], behaviour, gaps)
            except ValueError as error:
                rows = np.array2string(left_out, separator=", ", threshold=8)
                error.add_note(f"Positions do not count the rows left out for a NaN, {rows}.")
                raise
        else:
            self._begin_anew()
        self.seen[MISSING] += len(left_out)

    def _take_in_whole(
        self, transitions: Transitions, behaviour: Policy | None, gaps: Sequence[int] = ()
    ) -> None:
        """Observe transitions without skipping any; no trace is carried over `gaps`."""
        known = self.correction.needs_ratios or self._knows_behaviour(transitions, behaviour)
        ratio = np.ones(len(transitions))
        if known:
            ratio = self.question.ratios(
                transitions, behaviour=behaviour, on_conflict=self.on_conflict
            )
        cumulant = self.question.cumulants(transitions)
        continuation = self.question.continuations(transitions)
        columns = {
            "cumulant": cumulant,
            "continuation": continuation,
            # Last, because it may draw numbers, and an observation that fails must change nothing.
            **self.values.represent(without_last_states(transitions)),
        }
        waiting, inserted = self.n_steps.checkpoint(), int(self.schedule.counts[STEPS])
        try:
            with self.buffer.rows(columns, ratio, continuation, transitions, gaps) as rows:
                self._insert(self.n_steps.join(rows, transitions, gaps))
        except Exception:
            if self.schedule.counts[STEPS] == inserted:
                self.n_steps.restore(waiting)
            raise
        seen = self.seen
        if len(transitions) == 1:  # reductions would take longer than the update
            seen[CUMULANT] = max(seen[CUMULANT], abs(cumulant[0]))
            seen[CONTINUATION] = max(seen[CONTINUATION], continuation[0])
        else:
            seen[CUMULANT] = max(seen[CUMULANT], cumulant.max(), -cumulant.min())
            seen[CONTINUATION] = max(seen[CONTINUATION], continuation.max())
        seen[UNKNOWN] = seen[UNKNOWN] if known else self.steps

    def _insert(self, rows: Rows) -> None:
        """Insert rows and update when due; there may be none, as long as all rows wait."""
        if len(rows):
            self.values.observe(self.buffer, rows, self.schedule)

    def _begin_anew(self) -> None:
        """Let no row follow those before: traces restart, and rows that wait get no more steps."""
        self.buffer.trace.restart()
        self.n_steps.cut()

    @staticmethod
    def _knows_behaviour(transitions: Transitions, behaviour: Policy | None) -> bool:
        recorded = {"behaviour_probability", "behaviour_log_probability"}
        return behaviour is not None or bool(recorded & transitions.columns.keys())

    @property
    def knows_ratios(self) -> bool:
        """True if all ratios in the window are known; a correction without ratios needs none."""
        return self.schedule.counts[STEPS] - self.seen[UNKNOWN] >= len(self.window)

    def learn(
        self,
        source: Any,
        steps: int | None = None,
        *,
        seed: int | None = None,
        chunk: int | None = None,
        info: Iterable[str] = (),
        progress: bool | None = None,
    ) -> LearnerReport:
        """Learn from a Gymnasium environment, or from an iterable of transitions.

        Ctrl-C stops after the current transition or batch of the source (in an environment, after
        the current ``chunk``) without loss; call again to continue. A second Ctrl-C stops at once,
        even if the source waits for data. With ``n_step``, transitions that still wait for further
        steps are learned from at the end of the source, with the steps that they have.

        Args:
            source: a Gymnasium environment (single or vector) in which the behaviour acts, or an
                iterable of :class:`Transitions` (batches) or of mappings (one transition each).
            steps: the number of transitions; required for an environment.
            seed: the seed of the environment and of the behaviour's actions.
            chunk: the number of transitions observed together. The result does not depend on it,
                unless the behaviour depends on the learner: in an environment the behaviour acts
                for ``chunk`` steps (64 by default) before the learner observes them. A behaviour
                that uses the latest predictions needs ``chunk=1``.
            info: names of entries of the environment's ``info`` that functions of the question use
                as columns, as in :func:`gvf.transitions`. If the cumulant is such a name, it is
                included automatically.
            progress: True to show a progress bar; by default only if standard error is a terminal.

        Returns:
            The same as :meth:`report`.
        """
        steps = None if steps is None else whole("steps", steps, 0)
        chunk = None if chunk is None else whole("chunk", chunk, 1)
        acting = is_environment(source)
        # The stream recorded the behaviour's probabilities. They are not computed again, since a
        # behaviour that has changed since would give others.
        behaviour = None if acting else self.behaviour
        with sources.postponed_interrupt() as interrupted:
            if acting:
                self._begin_anew()  # the environment is reset
                batches = self._act(source, steps, seed, chunk or sources.JOINED_ROWS, info)
            else:
                if info:
                    raise ValueError("info names values of an environment, and this source is none")
                batches = sources.batches(source, steps, chunk, interrupted)
            taken = 0
            with sources.bar(progress, steps) as advance:
                for batch in batches:
                    try:
                        self._take_in(batch, behaviour)
                    except ValueError as error:
                        error.add_note(f"Positions count from transition {taken} of the source.")
                        raise
                    taken += len(batch)
                    advance(len(batch))
                    if interrupted():
                        break
                else:
                    if len(self.n_steps):
                        self._insert(self.n_steps.rest())
        return self.report()

    def _act(
        self, env: Any, steps: int | None, seed: int | None, chunk: int, info: Iterable[str]
    ) -> Iterable[Transitions]:
        if self.behaviour is None:
            raise ValueError(
                "to act in an environment the learner needs a behaviour policy: "
                f"{type(self).__name__}(..., behaviour=gvf.Uniform(4))"
            )
        if steps is None:
            raise ValueError("say how many steps to learn from the environment: steps=10_000")
        named = info_columns(self.question, info)
        acted = stream.transitions(env, self.behaviour, steps, seed=seed, batch=chunk, info=named)
        return sources.batches(acted, chunk=chunk)

    def predict(self, states: Any) -> Floats:
        """Predict for a batch of states [m, ...]: [m], or [m, lanes] with several step sizes."""
        return self.values.predict(states)

    def return_error(
        self, env: gym.Env[Any, Any], **options: Any
    ) -> ReturnError | list[ReturnError]:
        """Compare predictions with returns of the target policy, in states the behaviour visits.

        No ground truth is needed, only an environment in which the target policy can act.

        Args:
            env: a Gymnasium environment other than the one being learned from.
            **options: options of :func:`gvf.held_out_returns`: ``states``, ``rollouts``, ``seed``
                and others.

        Returns:
            A :class:`gvf.ReturnError` with standard errors; with several step sizes, a list of
            one for each.
        """
        options = {"behaviour": self.behaviour, **options}
        held_out = truth.held_out_returns(env, self.question, **options)
        predictions = self.predict(held_out.states)
        if predictions.ndim == 1:
            return held_out.error(lambda _: predictions)
        return [held_out.error(lambda _, p=p: p) for p in predictions.T]

    def report(self) -> LearnerReport:
        """Return counts, statistics of the window's ratios, and the lanes that have diverged."""
        none = float("nan")
        ratios = self.buffer.ratios if self.knows_ratios else np.zeros(0)
        passed_on = self.updates * self.schedule.batch_size * self.n_steps.n
        cumulant, continuation = self.seen[[CUMULANT, CONTINUATION]].tolist()
        limit = largest_return(cumulant, continuation, passed_on)
        largest = self.values.largest(self.window) if len(self.window) else np.zeros(0)
        return LearnerReport(
            steps=self.steps,
            updates=self.updates,
            skipped=self.skipped,
            window=len(self.window),
            mean_ratio=self.buffer.mean_ratio if self.knows_ratios else none,
            max_ratio=float(ratios.max()) if len(ratios) else none,
            zero_ratios=float(np.mean(ratios == 0.0)) if len(ratios) else none,
            effective_sample_size=self.buffer.effective_sample_size if self.knows_ratios else none,
            diverged=tuple(np.flatnonzero(~(largest <= DIVERGED * limit)).tolist()),
            largest_predictions=tuple(largest.tolist()),
            largest_return=limit,
            step_size=self.values.step_size,
            missing=int(self.seen[MISSING]),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the learner's state and a description of its arguments to one file.

        :meth:`load` restores the state into a learner made with the same arguments.
        :func:`gvf.load` also makes the learner, if all of its parts can be imported by name.
        """
        parts: dict[str, NDArray[Any]] = {}
        description = {name: spec.describe(part, parts) for name, part in self._parts().items()}
        checkpoint.write(path, self.kind, parts | self._arrays(), description)

    def load(self, path: str | os.PathLike[str], *, same_functions: bool = False) -> Self:
        """Restore the state that :meth:`save` wrote; the arguments must have been the same.

        From then on both learners do the same, bit for bit.

        Args:
            path: the file.
            same_functions: True to accept functions that cannot be compared (such as a lambda that
                uses a network) as equal.

        Returns:
            The learner itself.

        Raises:
            ValueError: if the file was saved by a learner with other arguments.
        """
        description, arrays = checkpoint.read(path, self.kind)
        description = renewed(description)
        own = {name: spec.describe(part, {}) for name, part in self._parts().items()}
        different = spec.differences(
            *({"dict": [*map(list, parts.items())]} for parts in (description, own))
        )
        if same_functions:
            different = [difference for difference in different if difference.is_known]
        if different:
            unknown = not all(difference.is_known for difference in different)
            lines = "\n".join(f"  {difference.text}" for difference in different)
            hint = "\nWhere you know that they are the same: load(path, same_functions=True)"
            raise ValueError(
                f"{os.fspath(path)} was saved by another learner:\n{lines}{hint if unknown else ''}"
            )
        with checkpoint.damage_named(path):
            self.restore(arrays)
        return self

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the parts that predict, without the window; :func:`load_predictor` reads them."""
        parts: dict[str, NDArray[Any]] = {}
        named = {"question": repr(self.question), **self.values.exported}
        arrays = {name: part for name, part in named.items() if isinstance(part, np.ndarray)}
        description = {
            name: spec.describe(part, parts) for name, part in named.items() if name not in arrays
        }
        checkpoint.write(path, f"predictor of a {self.kind}", parts | arrays, description)

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays of a checkpoint of the same kind of learner, or change nothing."""
        before = self._arrays()
        try:
            self._restore(arrays)
        except BaseException:
            self._restore(before)
            raise

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
        def group(name: str) -> dict[str, NDArray[Any]]:
            start = f"{name}/"
            return {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}

        self.values.restore(group("values"))
        self.window.restore(group("window"))
        if len(self.window):
            self.values.check(self.window)
        self.buffer.restore(group("buffer"))
        if "n_step/cut" in arrays:  # older files do not have it
            self.n_steps.restore(group("n_step"))
        for rng, state in zip(self._rngs, arrays["own/rng"], strict=True):
            rng.bit_generator.state = json.loads(str(state), object_hook=_decoded)
        self.schedule.counts[:] = arrays["own/counts"]
        if "own/seen" in arrays:
            self.seen[:] = arrays["own/seen"]
        elif len(self.window):  # older files do not have it
            kept = {name: c[: len(self.window)] for name, c in self.window.columns.items()}
            self.seen[CUMULANT] = np.abs(kept["cumulant"]).max()
            self.seen[CONTINUATION] = kept["continuation"].max()
            unknown = not self.correction.needs_ratios and self.behaviour is None
            self.seen[UNKNOWN] = self.steps if unknown and (self.buffer.ratios == 1.0).all() else 0

    @property
    def _rngs(self) -> tuple[np.random.Generator, ...]:
        return self.schedule.rng, *self.values.rngs

    def _parts(self) -> dict[str, Any]:
        """Return the arguments that make a learner like this one, except the seed."""
        frames = isinstance(self.window, FrameWindow)
        return {
            "question": self.question,
            **self.values.parts,
            "correction": self.correction,
            "behaviour": self.behaviour,
            "window": f"{self.window.capacity} frames" if frames else self.window.capacity,
            "batch_size": self.schedule.batch_size,
            "every": self.schedule.every,
            "warm_up": self.schedule.warm_up,
            "on_conflict": self.on_conflict,
            "on_nan": self.on_nan,
            "n_step": self.n_steps.n,
            "rng": type(self.schedule.rng.bit_generator).__name__,
        }

    def _shown(self) -> dict[str, Any]:
        """Return the arguments that ``repr`` shows, with their present values."""
        return self._parts()

    def __repr__(self) -> str:
        made = {name: part for name, part in self._shown().items() if name != "rng"}
        parts = ", ".join(f"{name}={part!r}" for name, part in made.items())
        return f"{type(self).__name__}({parts})"


def renewed(description: dict[str, Any]) -> dict[str, Any]:
    """Return a description by an earlier gvf with the argument names of this version."""
    update = description.get("update")
    if isinstance(update, dict) and update.get("class") in ("gvf:TDC", "gvf:TDRC"):
        words = {"ratio": "secondary"}
        arguments = {words.get(name, name): v for name, v in update["arguments"].items()}
        description = {**description, "update": {**update, "arguments": arguments}}
    return {"on_nan": "error", "n_step": 1, **description}


def _encoded(array: Any) -> dict[str, Any]:
    """Encode an array in the state of a generator for JSON."""
    return {"dtype": array.dtype.str, "numbers": array.tolist()}


def _decoded(node: dict[str, Any]) -> Any:
    return np.array(node["numbers"], node["dtype"]) if node.keys() == {"dtype", "numbers"} else node
