"""The learner: one question answered from a window of experience.

    transitions -> question (ratio, cumulant, continuation) -> buffer -> draw (slots), weigh (w)
                -> value function -> predictions

:class:`WindowLearner` ties the parts together: a question, a buffer with its correction, and a
value function. Nothing in it knows a correction or a kind of value function by name. All that
changes is kept in arrays, so that a learner can be saved and resumed bit by bit. :class:`Learner`
is the one with linear values; :class:`gvf.neural.NeuralLearner` has a network.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gvf import stream, truth
from gvf.common import checkpoint, spec
from gvf.common.arrays import Floats
from gvf.common.checks import brief, whole
from gvf.common.gym import gym, is_environment
from gvf.correction import IR, Correction
from gvf.diagnosis import Diagnosis
from gvf.diagnosis.diagnose import SHOWN, diagnose_updates
from gvf.features import FeatureMap
from gvf.learner import source as sources
from gvf.learner.loop import SKIPPED, STEPS, UPDATES, Learns, Schedule
from gvf.learner.report import DIVERGED, LearnerReport, largest_return
from gvf.learner.update import Update
from gvf.learner.values import LinearValues
from gvf.policy import DiscretePolicy, Policy
from gvf.question import GVF, OnConflict, OnNaN, check_choice
from gvf.sampling.generator import native
from gvf.stream.info import info_columns
from gvf.transition import Transitions, as_row
from gvf.truth import ReturnError
from gvf.window import Window
from gvf.window.buffer import Buffer, Rows
from gvf.window.frames import FrameWindow


class ValueFunction(Learns, Protocol):
    """A value function, as a learner sees it: linear values or a network."""

    def represent(self, transitions: Transitions) -> dict[str, NDArray[Any]]:
        """The columns that the window keeps for it, beside cumulant and continuation."""
        ...

    def observe(self, buffer: Buffer, rows: Rows, schedule: Schedule) -> None:
        """Insert rows into the buffer, and update whenever it is time."""
        ...

    def predict(self, states: Any) -> Floats:
        """The predictions for a batch of states [m, ...]."""
        ...

    def largest(self, window: Any) -> Floats:
        """The largest prediction, in size, for states of the window in each lane, [lanes]."""
        ...

    @property
    def step_size(self) -> float | None:
        """The step size, where the value function has chosen it."""
        ...

    @property
    def parts(self) -> dict[str, Any]:
        """The arguments of the learner that it was made from."""
        ...

    @property
    def exported(self) -> dict[str, Any]:
        """What is needed to predict."""
        ...

    def check(self, window: Window | FrameWindow) -> None:
        """Refuse a window that it could not have filled."""
        ...

    @property
    def rngs(self) -> tuple[np.random.Generator, ...]:
        """The generators that it draws from while learning."""
        ...

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """The arrays that change."""
        ...

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take up what :meth:`checkpoint` gave."""
        ...


@dataclass(frozen=True)
class Options:
    """How a learner learns, whatever its value function is; see :class:`Learner`."""

    behaviour: Policy | None
    window: int | Window | FrameWindow
    batch_size: int
    every: int
    warm_up: int
    on_conflict: OnConflict
    on_nan: OnNaN

    def __post_init__(self) -> None:
        for name, least in (("batch_size", 1), ("every", 1), ("warm_up", 0)):
            whole(name, getattr(self, name), least)
        if not isinstance(self.window, Window | FrameWindow):
            whole("window", self.window, 1)
        check_choice("on_conflict", self.on_conflict, OnConflict)
        check_choice("on_nan", self.on_nan, OnNaN)
        if self.behaviour is not None and not isinstance(self.behaviour, Policy):
            raise TypeError(f"behaviour must be a gvf.Policy, got {brief(self.behaviour)}")


CUMULANT, CONTINUATION, UNKNOWN, MISSING = range(4)
"""Where a learner keeps what it has seen: the largest cumulant in size, the largest continuation,
the step up to which a ratio was not known, and how many transitions were left out for a NaN."""


class WindowLearner:
    """A question, a buffer and a value function, tied together.

    Args:
        question: what to predict.
        correction: how to correct for the behaviour.
        values: the value function.
        options: the rest.
        rng: of the draws.
    """

    kind: ClassVar[str] = "learner"
    """What its checkpoints hold."""

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
        self.values = values
        self.schedule = Schedule(options.batch_size, options.every, options.warm_up, rng)

    @property
    def steps(self) -> int:
        """Transitions observed."""
        return int(self.schedule.counts[STEPS])

    @property
    def updates(self) -> int:
        """Updates done."""
        return int(self.schedule.counts[UPDATES])

    @property
    def skipped(self) -> int:
        """Updates left out, since the window had no mass."""
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
        """Take in one transition, and update when it is time.

        Further columns, ``behaviour_probability`` among them, go by keyword; the question's
        cumulant and continuation can use them. A behaviour that changes, for example one that looks
        at this learner's predictions, should give its probability here: only it knew it.
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
        """Take in a batch of transitions in order; the same as observing them one by one."""
        self._take_in(transitions, self.behaviour)

    def _take_in(self, transitions: Transitions, behaviour: Policy | None) -> None:
        missing = self.question.missing(transitions) if self.on_nan == "skip" else None
        if missing is None or not missing.any():
            self._take_in_whole(transitions, behaviour)
            return
        kept = np.flatnonzero(~missing)
        # What is carried along the stream cannot be carried over a gap.
        gaps = self.correction.trace is not None
        for rows in np.split(kept, np.flatnonzero(np.diff(kept) > 1) + 1) if gaps else [kept]:
            if gaps and len(rows) and rows[0] > 0:
                self.buffer.trace.restart()
            if len(rows):
                self._take_in_whole(transitions[rows], behaviour)
        if gaps and missing[-1]:
            self.buffer.trace.restart()
        self.seen[MISSING] += np.count_nonzero(missing)

    def _take_in_whole(self, transitions: Transitions, behaviour: Policy | None) -> None:
        """Take in transitions of which none is left out."""
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
            # Last, since it may draw numbers, and an observation that fails should change nothing.
            **self.values.represent(transitions),
        }
        with self.buffer.rows(columns, ratio, continuation, transitions) as rows:
            self.values.observe(self.buffer, rows, self.schedule)
        if len(transitions):
            seen = self.seen
            seen[CUMULANT] = max(seen[CUMULANT], cumulant.max(), -cumulant.min())
            seen[CONTINUATION] = max(seen[CONTINUATION], continuation.max())
            seen[UNKNOWN] = seen[UNKNOWN] if known else self.steps

    @staticmethod
    def _knows_behaviour(transitions: Transitions, behaviour: Policy | None) -> bool:
        recorded = {"behaviour_probability", "behaviour_log_probability"}
        return behaviour is not None or bool(recorded & transitions.columns.keys())

    @property
    def knows_ratios(self) -> bool:
        """Whether all ratios in the window are known: a learner that needs none may have none."""
        return self.steps - self.seen[UNKNOWN] >= len(self.window)

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

        Ctrl-C stops after the transitions in hand and loses nothing; calling again goes on.

        Args:
            source: a Gymnasium environment (single or vector), in which the behaviour then acts;
                or an iterable of :class:`Transitions` (batches) or of mappings (one transition).
            steps: how many transitions; needed for an environment, which never ends.
            seed: of the environment and the behaviour's actions.
            chunk: how many transitions are taken in together; what is learned does not depend on
                it. In an environment the behaviour acts for that many steps (by default 64) before
                the learner sees them, so one that looks at the learner's predictions needs 1 to
                see the latest.
            info: the names of values of the environment's ``info`` that functions of the question
                use as columns, as in :func:`gvf.transitions`. A cumulant that is such a name itself
                is asked for without this.
            progress: show a progress bar; by default when standard error is a terminal.
        """
        steps = None if steps is None else whole("steps", steps, 0)
        chunk = None if chunk is None else whole("chunk", chunk, 1)
        acting = is_environment(source)
        if acting:
            self.buffer.trace.restart()  # the environment is reset
            batches = self._act(source, steps, seed, chunk or sources.JOINED, info)
        else:
            if info:
                raise ValueError("info names values of an environment, and this source is none")
            batches = sources.batches(source, steps, chunk)
        # What a stream has recorded of the behaviour is all there is to know of it: asked again
        # later, a behaviour that changes would answer otherwise.
        behaviour = None if acting else self.behaviour
        with (
            sources.postponed_interrupt() as interrupted,
            sources.bar(progress, steps) as advance,
        ):
            taken = 0
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
        """The predictions for a batch of states [m, ...]: [m], or [m, lanes]."""
        return self.values.predict(states)

    def evaluate(self, env: gym.Env[Any, Any], **options: Any) -> ReturnError | list[ReturnError]:
        """Compare predictions with returns of the target policy, on states the behaviour visits.

        Needs no ground truth, only an environment in which the target policy may act.

        Args:
            env: a Gymnasium environment; not the one that is being learned from.
            **options: of :func:`gvf.held_out_returns`: ``states``, ``rollouts``, ``seed``, ...

        Returns:
            A :class:`gvf.ReturnError` with standard errors; with several step sizes, one for each.
        """
        options = {"behaviour": self.behaviour, **options}
        held_out = truth.held_out_returns(env, self.question, **options)
        predictions = self.predict(held_out.states)
        if predictions.ndim == 1:
            return held_out.error(lambda _: predictions)
        return [held_out.error(lambda _, p=p: p) for p in predictions.T]

    def report(self) -> LearnerReport:
        """Counts, statistics of the window's ratios, and which lanes have diverged."""
        none = float("nan")
        ratios = self.buffer.ratios if self.knows_ratios else np.zeros(0)
        passed_on = self.updates * self.schedule.batch_size
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
        """Write all that changes, and what the learner is made of, to one file.

        :meth:`load` takes it up in a learner that was made in the same way; :func:`gvf.load` makes
        the learner too, if all of its parts have names.
        """
        parts: dict[str, NDArray[Any]] = {}
        description = {name: spec.describe(part, parts) for name, part in self._parts().items()}
        rngs = [json.dumps(rng.bit_generator.state, default=_encoded) for rng in self._rngs]
        groups = {
            "values": self.values.checkpoint(),
            "window": self.window.checkpoint(),
            "buffer": self.buffer.checkpoint(),
            "own": {"counts": self.schedule.counts, "rng": np.array(rngs), "seen": self.seen},
        }
        arrays = {
            f"{group}/{name}": array
            for group, named in groups.items()
            for name, array in named.items()
        }
        checkpoint.write(path, self.kind, parts | arrays, description)

    def load(self, path: str | os.PathLike[str], *, same_functions: bool = False) -> Self:
        """Take up what :meth:`save` wrote, into a learner that was made with the same arguments.

        From there on the two learners do the same, bit for bit.

        Args:
            path: the file.
            same_functions: whether functions that cannot be compared (such as a lambda that uses
                a network) are taken to be the same.
        """
        description, arrays = checkpoint.read(path, self.kind)
        description = renewed(description)
        own = {name: spec.describe(part, {}) for name, part in self._parts().items()}
        different = spec.differences(
            *({"dict": [*map(list, parts.items())]} for parts in (description, own))
        )
        unknown = [line for line in different if "cannot be compared" in line]
        if same_functions:
            different = [line for line in different if line not in unknown]
        if different:
            lines = "\n".join(f"  {line}" for line in different)
            hint = "\nWhere you know that they are the same: load(path, same_functions=True)"
            raise ValueError(
                f"{os.fspath(path)} was saved by another learner:\n{lines}{hint if unknown else ''}"
            )
        with checkpoint.damage_named(path):
            self.restore(arrays)
        return self

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write only what predicts: a small file without the window, for :func:`load_predictor`."""
        parts: dict[str, NDArray[Any]] = {}
        named = {"question": repr(self.question), **self.values.exported}
        arrays = {name: part for name, part in named.items() if isinstance(part, np.ndarray)}
        description = {
            name: spec.describe(part, parts) for name, part in named.items() if name not in arrays
        }
        checkpoint.write(path, f"predictor of a {self.kind}", parts | arrays, description)

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take up the arrays of a checkpoint of the same kind of learner."""

        def group(name: str) -> dict[str, NDArray[Any]]:
            start = f"{name}/"
            return {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}

        self.values.restore(group("values"))
        self.window.restore(group("window"))
        if len(self.window):
            self.values.check(self.window)
        self.buffer.restore(group("buffer"))
        for rng, state in zip(self._rngs, arrays["own/rng"], strict=True):
            rng.bit_generator.state = json.loads(str(state), object_hook=_decoded)
        self.schedule.counts[:] = arrays["own/counts"]
        if "own/seen" in arrays:
            self.seen[:] = arrays["own/seen"]
        elif len(self.window):  # which older files do not say
            kept = {name: c[: len(self.window)] for name, c in self.window.columns.items()}
            self.seen[CUMULANT] = np.abs(kept["cumulant"]).max()
            self.seen[CONTINUATION] = kept["continuation"].max()
            unknown = not self.correction.needs_ratios and self.behaviour is None
            self.seen[UNKNOWN] = self.steps if unknown and (self.buffer.ratios == 1.0).all() else 0

    @property
    def _rngs(self) -> tuple[np.random.Generator, ...]:
        return self.schedule.rng, *self.values.rngs

    def _parts(self) -> dict[str, Any]:
        """The arguments that make a learner like this one, but for its seed."""
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
            "rng": type(self.schedule.rng.bit_generator).__name__,
        }

    def _shown(self) -> dict[str, Any]:
        """The arguments as they are now, for people."""
        return self._parts()

    def __repr__(self) -> str:
        made = {name: part for name, part in self._shown().items() if name != "rng"}
        parts = ", ".join(f"{name}={part!r}" for name, part in made.items())
        return f"{type(self).__name__}({parts})"


def renewed(description: dict[str, Any]) -> dict[str, Any]:
    """A description that an earlier gvf wrote, in the words of today."""
    update = description.get("update")
    if isinstance(update, dict) and update.get("class") in ("gvf:TDC", "gvf:TDRC"):
        words = {"ratio": "secondary"}
        arguments = {words.get(name, name): v for name, v in update["arguments"].items()}
        description = {**description, "update": {**update, "arguments": arguments}}
    return {**description, "on_nan": description.get("on_nan", "error")}


def _encoded(array: Any) -> dict[str, Any]:
    """An array in the state of a generator, for JSON."""
    return {"dtype": array.dtype.str, "numbers": array.tolist()}


def _decoded(node: dict[str, Any]) -> Any:
    return np.array(node["numbers"], node["dtype"]) if node.keys() == {"dtype", "numbers"} else node


class Learner(WindowLearner):
    """Learns the answer to one question from transitions that another policy made.

    Args:
        question: what to predict.
        features: the representation: :class:`OneHot`, :class:`TileCoder`, :class:`Dense`, or any
            object with ``size`` that maps states to features.
        update: how to learn: :class:`TD`, :class:`IncrementalTD`, :class:`WISTD`, :class:`Sarsa`,
            :class:`ExpectedSarsa`, :class:`TDC`, :class:`TDRC`. With a sequence of step sizes, one
            copy of the weights learns for each, and predictions are [m, lanes].
        correction: how to correct for the behaviour: :class:`IR` and its neighbours.
        behaviour: the policy that chooses the actions, if it is known; otherwise transitions bring
            ``behaviour_probability`` or ``behaviour_log_probability``. Where they bring it, that is
            used.
        window: how many recent transitions to keep, n; or an empty :class:`Window` to fill.
        batch_size: how many to draw for an update, k.
        every: steps between updates.
        warm_up: steps before the first of these intervals begins.
        on_conflict: what to do where transitions bring a probability that ``behaviour`` does not
            give: ``"error"``, or use the one that is ``"recorded"`` or the ``"behaviour"``'s.
        on_nan: what to do where a state, an action, a recorded probability, a cumulant or a
            continuation is NaN, as from a sensor that failed: ``"error"``, which says where it is,
            or ``"skip"`` the transition, which the report counts.
        seed: of the draws; anything that :func:`numpy.random.default_rng` takes.

    Example:
        >>> import gymnasium, gvf
        >>> env = gymnasium.make("FrozenLake-v1", is_slippery=False)
        >>> question = gvf.GVF(gvf.Favour(2, 0.9, actions=4), "reward", 0.9)
        >>> learner = gvf.Learner(
        ...     question, gvf.OneHot(16), gvf.TD(1.0), gvf.IR(), behaviour=gvf.Uniform(4), seed=0
        ... )
        >>> report = learner.learn(env, steps=2000, seed=0)
        >>> report.updates
        2000
        >>> learner.predict([14]).shape
        (1,)
    """

    values: LinearValues  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        question: GVF,
        features: FeatureMap,
        update: Update,
        correction: Correction = IR(),  # noqa: B008 (frozen)
        *,
        behaviour: Policy | None = None,
        window: int | Window = 15_000,
        batch_size: int = 16,
        every: int = 1,
        warm_up: int = 0,
        on_conflict: OnConflict = "error",
        on_nan: OnNaN = "error",
        seed: Any = None,
    ) -> None:
        if not isinstance(question, GVF):
            raise TypeError(f"question must be a gvf.GVF, got {brief(question)}")
        if isinstance(window, FrameWindow):
            raise TypeError(
                "a linear learner keeps features, not frames: give a gvf.Window, or a number"
            )
        options = Options(behaviour, window, batch_size, every, warm_up, on_conflict, on_nan)
        # Actions that an update draws have a stream of their own, so that it does not matter how
        # many transitions come at a time.
        rng, action_rng = map(native, np.random.default_rng(seed).spawn(2))
        values = LinearValues(question.policy, features, update, action_rng)
        super().__init__(question, correction, values, options, rng)
        if self.correction.refresh is not None and update.lanes is not None:
            raise ValueError(
                f"the masses of {correction.name} follow the errors of one learner, and several "
                "step sizes share their draws; give one step size"
            )

    @property
    def features(self) -> FeatureMap:
        """The representation."""
        return self.values.features

    @property
    def update(self) -> Update:
        """How the weights change; with the default step size in use, where none was given."""
        rule, step_size = self.values.update_rule, self.values.step_size
        return rule if step_size is None else replace(rule, step_size=step_size)

    def _shown(self) -> dict[str, Any]:
        return self._parts() | {"update": self.update}

    @property
    def weights(self) -> Floats:
        """The weights themselves, not a copy: [rows], or [rows, lanes] with several step sizes.

        A row is a feature; with action values, action a has the rows from ``a * features.size`` on.
        """
        weights = self.values.state.weights
        return weights[:, 0] if self.update.lanes is None else weights

    def diagnose(
        self,
        *,
        batch_size: int | None = None,
        corrections: Sequence[Correction] | None = None,
        batches: int = 1000,
        rng: np.random.Generator | None = None,
    ) -> Diagnosis | list[Diagnosis | None]:
        """Which correction suits the window at the present weights, and can it be trusted?

        The updates are those of TD, ``delta_i x_i``, with the second part of gradient TD, before a
        step size or an optimiser. Nothing changes, the learner's own draws included, and it is
        cheap enough to be called now and then while learning.

        Args:
            batch_size: the k of a mini-batch; by default the learner's own.
            corrections: as in :func:`gvf.diagnose`; by default those, and the learner's own. What a
                correction carries along the stream is only known for the learner's own.
            batches: as in :func:`gvf.diagnose`.
            rng: as in :func:`gvf.diagnose`.

        Returns:
            A :class:`gvf.Diagnosis`; with several step sizes, a list of one for each, with None for
            those that have diverged.

        Raises:
            ValueError: if a learner with one step size has diverged; see
                :class:`gvf.LearnerReport`.
        """
        if not len(self.window):
            raise ValueError("the window is empty: observe some transitions first")
        if self.update.action_values:
            raise ValueError(
                f"{type(self.update).__name__} learns action values and needs no ratios: "
                "gvf.OnPolicy() is right, and there is nothing to diagnose"
            )
        if not self.knows_ratios:
            raise ValueError(
                "the ratios are not known: give the learner its behaviour, or transitions their "
                "behaviour_probability"
            )
        if corrections is None:
            corrections = list(dict.fromkeys([*SHOWN, self.correction]))
        for other in corrections:
            if other.trace is not None and other.draw != self.correction.draw:
                raise ValueError(
                    f"{other.name} carries something along the stream that this learner, with "
                    f"{self.correction.name}, has not carried; diagnose a learner that uses it"
                )
        report, inputs = self.report(), self.buffer.inputs.copy()
        k = self.schedule.batch_size if batch_size is None else batch_size

        def diagnose_lane(lane: int) -> Diagnosis | None:
            if lane in report.diverged:
                return None
            assert isinstance(self.window, Window)
            updates = self.values.updates(self.window, lane)
            return diagnose_updates(
                inputs, *updates, batch_size=k, corrections=corrections, batches=batches, rng=rng
            )

        found = [diagnose_lane(lane) for lane in range(self.values.state.weights.shape[1])]
        if self.update.lanes is not None:
            return found
        if found[0] is None:
            raise ValueError(f"this learner has diverged: {report.divergence}")
        return found[0]
