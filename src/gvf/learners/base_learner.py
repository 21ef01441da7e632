"""The part that all learners share: transitions in, predictions out, and files.

:class:`Observer` takes transitions from environments, logs and calls, and saves and restores.
:class:`BaseLearner` answers one question, and leaves out transitions with a NaN if asked to. How a
learner uses the transitions is up to its subclass:
:class:`gvf.learners.window_learner.WindowLearner` draws from a window of them, and
:class:`gvf.OnlineLearner` uses each once.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from gvf.common import checkpoint
from gvf.common.arrays import Arrays, Floats
from gvf.common.checks import brief, check_choice, whole
from gvf.common.describe import describe, differences
from gvf.common.fields import as_row
from gvf.common.gymnasium import gym, is_environment
from gvf.common.interrupts import postponed_interrupt
from gvf.common.progress import progress_of
from gvf.corrections.carried import Trace
from gvf.features import outside_bounds
from gvf.learners import batches
from gvf.learners.callbacks import Callbacks, Calls
from gvf.learners.fitting import Fit, Order, as_log, check_stream, chosen_order
from gvf.learners.learner_report import Range
from gvf.learners.states import States
from gvf.policies import DiscretePolicy, Policy
from gvf.question import GVF, OnConflict, OnNaN
from gvf.rows import QuestionRows, RowMaker
from gvf.stream.collect import collect
from gvf.stream.infos import info_columns
from gvf.transition import Transitions, TransitionsLike, as_transitions
from gvf.truth.held_out_returns import ReturnError, held_out_returns

HIGHEST, CONTINUATION, UNKNOWN, MISSING, ESTIMATED, LOWEST, OUTSIDE, UNCOUNTED = range(8)
"""Positions in ``BaseLearner.seen``: the largest cumulant (at least 0), the largest continuation,
the last step with an unknown ratio, the number of transitions skipped because of a NaN, 1 if a
ratio was estimated, the smallest cumulant (at most 0), the number of states outside the bounds of
the features, and the number of the first states that were not looked at for this."""


PREDICTOR = "predictor of a "
"""The beginning of the kinds of file that :meth:`Observer.export` writes."""
_TRANSITION = ("state", "action", "reward", "next_state", "terminated", "truncated")
"""The names of the arguments of a transition, in order."""
_ABSENT: Any = object()
"""The default of an argument that a batch does not have."""
Report = TypeVar("Report")
"""The type of a learner's report."""


def check_answers(behaviour: Policy | None, on_conflict: OnConflict, on_nan: OnNaN) -> None:
    """Raise an error if an option that all learners have is not one of its choices."""
    check_choice("on_conflict", on_conflict, OnConflict)
    check_choice("on_nan", on_nan, OnNaN)
    if behaviour is not None and not isinstance(behaviour, Policy):
        raise TypeError(f"behaviour must be a gvf.policies.Policy, got {brief(behaviour)}")


def _as_batch(columns: dict[str, Any]) -> Transitions:
    """Return the batch that is the only argument of ``observe``."""
    batch, *_, truncated = (columns[name] for name in _TRANSITION)
    missing = [name for name in _TRANSITION if columns[name] is _ABSENT]
    if len(missing) < 4 or truncated is not False or len(columns) > len(_TRANSITION):
        raise TypeError(f"a transition lacks {', '.join(missing)}; a batch comes alone")
    if isinstance(batch, Mapping):
        if np.ndim(batch.get("reward", 0.0)):
            raise TypeError("a mapping is one transition; of a table, gvf.Transitions(**table)")
        batch = [batch]
    return as_transitions(batch)


class Observer(ABC, Generic[Report]):
    """An object that learns from transitions: of environments, of logs, and of single calls."""

    kind: ClassVar[str]
    """The kind of object that its checkpoints hold."""
    passes: ClassVar[int | None] = None
    """The number of passes over a log that matter, if further ones change nothing."""
    behaviour: Policy | None
    _states: States
    """The form of the states, and the response to a NaN."""
    _fitted: int = 0
    """The number of rows that the latest call of ``fit`` has passed, over all of its passes."""
    _rows_together: int = batches.LONGEST_BATCH
    """The number of rows whose updates are drawn together."""

    @abstractmethod
    def report(self) -> Report:
        """Return counts, statistics of the ratios, and the lanes that have diverged."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays of the state."""

    @abstractmethod
    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that :meth:`_arrays` returned."""

    @abstractmethod
    def _parts(self) -> dict[str, Any]:
        """Return the arguments that make a learner like this one, except the seed."""

    @property
    @abstractmethod
    def _exported(self) -> dict[str, Any]:
        """The parts that predictions need, and a text about the question."""

    @abstractmethod
    def _take_in(self, transitions: Transitions, behaviour: Policy | None) -> None:
        """Observe transitions that this behaviour chose, or that carry its probabilities."""

    @abstractmethod
    def _begin_anew(self) -> None:
        """Let no transition follow those before."""

    @abstractmethod
    def _change_source(self) -> None:
        """Accept a next transition that does not follow those before."""

    @abstractmethod
    def _named_columns(self, info: Iterable[str]) -> tuple[str, ...]:
        """Return the names of values of ``info`` that are needed, with these."""

    def _end_source(self) -> None:
        """Learn from what still waits at the end of a source, if anything does."""

    @property
    def _keeps_order(self) -> bool:
        """True if the rows of an episode must come in order, so that only episodes are shuffled."""
        return True

    @property
    def _why_not_drawn(self) -> str:
        """The reason why a log cannot be the window; empty if it can."""
        return f"a {type(self).__name__} does not make the whole log its window"

    def _row_size(self, transitions: Transitions) -> int:
        """Return the size in bytes of a row of the window, from one transition."""
        raise NotImplementedError

    def _keep(self, rows: int) -> None:
        """Begin an empty window of so many rows."""
        raise NotImplementedError

    def _without_updates(self) -> AbstractContextManager[None]:
        """Make a context in which transitions are taken in without an update."""
        raise NotImplementedError

    def _draw(self, passed: int, count: int) -> None:
        """Update as often as `count` rows behind `passed` others would."""
        raise NotImplementedError

    @overload
    def observe(self, batch: TransitionsLike | Mapping[str, Any], /) -> None: ...

    @overload
    def observe(
        self,
        state: Any,
        action: Any,
        reward: float,
        next_state: Any,
        terminated: bool,
        truncated: bool = False,
        **more: Any,
    ) -> None: ...

    def observe(
        self,
        state: Any,
        action: Any = _ABSENT,
        reward: Any = _ABSENT,
        next_state: Any = _ABSENT,
        terminated: Any = _ABSENT,
        truncated: Any = False,
        **more: Any,
    ) -> None:
        """Observe one transition or a batch, and update whenever an update is due.

        - ``observe(state, action, reward, next_state, terminated, truncated)`` takes one
          transition. Further columns, such as ``behaviour_probability``, are given by keyword; the
          question's cumulant and continuation can use them. If the behaviour changes over time, for
          example because it uses this learner's predictions, give the probability with which it
          chose the action: it cannot be computed later.
        - ``observe(batch)`` takes :class:`gvf.Transitions`, or a list of them and of mappings (one
          transition each), in order, with the same result as one by one. A single mapping is one
          transition.
        """
        columns = {
            "state": state,
            "action": action,
            "reward": reward,
            "next_state": next_state,
            "terminated": terminated,
            "truncated": truncated,
            **more,
        }
        # `in` would compare arrays.
        if terminated is _ABSENT or next_state is _ABSENT or reward is _ABSENT or action is _ABSENT:
            self._take_in(_as_batch(columns), self.behaviour)
            return
        try:
            # A call for each value would take longer.
            rows = {
                key: as_row(v) if isinstance(v, dict) else np.asarray(v)[None]
                for key, v in columns.items()
            }
        except ValueError:
            rows = {key: as_row(v, f"{key!r}") for key, v in columns.items()}
        self._take_in(Transitions(**rows), self.behaviour)

    def learn(
        self,
        source: Any,
        steps: int | None = None,
        *,
        seed: int | None = None,
        act_steps: int | None = None,
        info: Iterable[str] = (),
        callbacks: Callbacks = (),
        progress: bool | None = None,
    ) -> Report:
        """Learn from a Gymnasium environment, or from a stream: an iterable of transitions.

        A log has :meth:`fit`, which can pass over it more than once.

        Ctrl-C stops after the current transition or batch of the source (in an environment, after
        the current ``act_steps``) without loss; call again to continue. A second Ctrl-C stops at
        once, even if the source waits for data. With ``n_step``, transitions that still wait for
        further steps are learned from at the end of the source, with the steps that they have.

        Args:
            source: a Gymnasium environment (single or vector) in which the behaviour acts, or an
                iterable of :class:`Transitions` (batches) or of mappings (one transition each).
            steps: the number of transitions; required for an environment.
            seed: the seed of the environment and of the behaviour's actions.
            act_steps: the number of steps that the behaviour acts, or the stream brings, before the
                learner observes them (64 by default). The result does not depend on it, unless the
                behaviour depends on the learner: one that uses the latest predictions needs
                ``act_steps=1``.
            info: names of entries of the environment's ``info`` that functions of the question use
                as columns, as in :func:`gvf.collect`. If the cumulant is such a name, it is
                included automatically.
            callbacks: :class:`gvf.Callback`, or several of them. If one returns True, learning
                stops after the current batch of the source.
            progress: False to show none. By default it is a bar in a terminal, and elsewhere a
                line now and then. True adds a line at the end there.

        Returns:
            The same as :meth:`report`.
        """
        steps = None if steps is None else whole("steps", steps, 0)
        act_steps = None if act_steps is None else whole("act_steps", act_steps, 1)
        acting = is_environment(source)
        # The stream recorded the behaviour's probabilities. They are not computed again, since a
        # behaviour that has changed since would give others.
        behaviour = None if acting else self.behaviour
        with postponed_interrupt() as interrupted, self._states.quiet():
            if acting:
                self._begin_anew()  # the environment is reset
                stream = self._act(source, steps, seed, act_steps or batches.JOINED_ROWS, info)
            else:
                check_stream(source)
                if info:
                    raise ValueError("info names values of an environment, and this source is none")
                self._change_source()
                stream = batches.batches_of(source, steps, act_steps, interrupted)
            taken, calls, stopped = 0, Calls(callbacks, self), False
            with progress_of("learning", steps, show=progress) as advance:
                for batch in stream:
                    for piece in calls.pieces(batch, taken):
                        try:
                            self._take_in(piece, behaviour)
                        except ValueError as error:
                            error.add_note(
                                f"Positions count from transition {taken} of the source."
                            )
                            raise
                        taken += len(piece)
                        advance(len(piece))
                        stopped = stopped or calls.after(taken)
                    if stopped or interrupted():
                        break
                else:
                    self._end_source()
        return self.report()

    def fit(
        self,
        log: Any,
        *,
        epochs: int = 1,
        order: Order | None = None,
        seed: int | None = None,
        resume: bool = False,
        callbacks: Callbacks = (),
        progress: bool | None = None,
    ) -> Report:
        """Learn from a log, in one or more passes over it.

        - With ``order="drawn"`` the whole log is the window. All of its rows enter before the first
          update, and every update draws from all of them. An epoch has as many updates as the rows
          of the log would bring.
        - With ``order="log"`` rows pass through the learner's window as they were recorded. One
          epoch is the same as ``learn(batches)`` of these rows, bit for bit. The log may be larger
          than memory.
        - With ``order="shuffled"`` they pass through the window in a random order, another one in
          each epoch. If something is carried from row to row (``n_step``, emphatic corrections,
          traces), whole episodes are shuffled, and their rows stay in order.

        Every epoch begins anew: nothing is carried from the last row to the first.

        Ctrl-C stops soon, without loss. To go on, give the same arguments and ``resume=True``: the
        result is that of a call without interruption, bit for bit. This also holds for a learner
        that was saved in between.

        Args:
            log: a :class:`gvf.Log`, or :class:`Transitions`.
            epochs: the number of passes.
            order: as above. By default it is ``"drawn"`` if learner and log allow it: the log is in
                memory, the learner has a window of rows (hordes and online learners do not), and
                the window takes at most 1 GiB. Otherwise it is ``"log"``.
            seed: the seed of the shuffled orders.
            resume: True to go on with the latest call of ``fit``, if it was interrupted. With more
                epochs than it had, further ones are added.
            callbacks: :class:`gvf.Callback`, or several of them. If one returns True, learning
                stops there.
            progress: False to show none. By default it is a bar in a terminal, and elsewhere a
                line now and then. True adds a line at the end there.

        Returns:
            The same as :meth:`report`.
        """
        log, epochs = as_log(log), whole("epochs", epochs, 1)
        if not len(log):
            raise ValueError("the log has no transitions")
        order = chosen_order(order, log, self)
        if resume and order == "shuffled" and seed is None:
            raise ValueError("to resume in a shuffled order, give the seed of the first call")
        epochs = epochs if self.passes is None else min(epochs, self.passes)
        fit = Fit(self, log, order, epochs, seed, Calls(callbacks, self))
        if not resume:
            self._fitted = 0
        with postponed_interrupt() as interrupted, self._states.quiet():
            if order == "drawn" and not self._fitted:
                self._keep(len(log))
            due = max(fit.total - self._fitted, 0)
            with progress_of("learning", due, show=progress) as advance:
                fit.run(interrupted, advance)
        return self.report()

    def _act(
        self, env: Any, steps: int | None, seed: int | None, act_steps: int, info: Iterable[str]
    ) -> Iterable[Transitions]:
        if self.behaviour is None:
            raise ValueError(
                "to act in an environment the learner needs a behaviour policy: "
                f"{type(self).__name__}(..., behaviour=gvf.policies.Uniform(4))"
            )
        if steps is None:
            raise ValueError("say how many steps to learn from the environment: steps=10_000")
        named = self._named_columns(info)
        acted = collect(env, self.behaviour, steps, seed=seed, batch=act_steps, info=named)
        return batches.batches_of(acted, act_steps=act_steps)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the learner's state and a description of its arguments to one file.

        :meth:`load` restores the state into a learner made with the same arguments.
        :func:`gvf.load` also makes the learner, if all of its parts can be imported by name.
        """
        parts: dict[str, NDArray[Any]] = {}
        description = {name: describe(part, parts) for name, part in self._parts().items()}
        checkpoint.write(path, self.kind, parts | self.checkpoint(), description)

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
        description_here = {name: describe(part, {}) for name, part in self._parts().items()}
        different = differences(
            *({"dict": [*map(list, parts.items())]} for parts in (description, description_here))
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
        """Write the parts that predict, without the window; :func:`gvf.load` reads them."""
        parts: dict[str, NDArray[Any]] = {}
        named = {**self._exported, "on_nan": self._states.on_nan, **self._states.arrays()}
        arrays = {name: part for name, part in named.items() if isinstance(part, np.ndarray)}
        description = {
            name: describe(part, parts) for name, part in named.items() if name not in arrays
        }
        checkpoint.write(path, f"{PREDICTOR}{self.kind}", parts | arrays, description)

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays of the state, for :meth:`restore`."""
        fitted = {"fitted": np.array(self._fitted)} if self._fitted else {}
        return {**self._arrays(), **self._states.arrays(), **fitted}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays of a checkpoint of the same kind of learner, or change nothing."""
        before, arrays = self._arrays(), dict(arrays)
        fitted, states = int(arrays.pop("fitted", 0)), States(self._states.on_nan)
        states.restore(arrays)
        try:
            self._restore(arrays)
        except BaseException:
            self._restore(before)
            raise
        self._fitted, self._states = fitted, states

    def _present_arguments(self) -> dict[str, Any]:
        """Return the arguments that ``repr`` shows, with their present values."""
        return self._parts()

    def __repr__(self) -> str:
        arguments = {
            name: part for name, part in self._present_arguments().items() if name != "rng"
        }
        parts = ", ".join(f"{name}={part!r}" for name, part in arguments.items())
        return f"{type(self).__name__}({parts})"


class BaseLearner(Observer[Report]):
    """A learner that answers one question.

    Args:
        question: the question to answer.
        behaviour: the policy that chooses the actions, if known.
        on_conflict: as in :class:`gvf.Learner`.
        on_nan: as in :class:`gvf.Learner`.
        needs_ratio: False if unknown ratios may count as 1.
        needs_interest: True if the interest of the question matters.
    """

    kind = "learner"

    def __init__(
        self,
        question: GVF,
        behaviour: Policy | None,
        on_conflict: OnConflict,
        on_nan: OnNaN,
        *,
        needs_ratio: bool,
        needs_interest: bool,
    ) -> None:
        check_answers(behaviour, on_conflict, on_nan)
        policies = [p for p in (question.policy, behaviour) if isinstance(p, DiscretePolicy)]
        if len({p.actions for p in policies}) > 1:
            raise ValueError(
                f"target and behaviour differ in their number of actions: {policies[0].actions} "
                f"and {policies[1].actions}"
            )
        self.question, self.behaviour = question, behaviour
        self.on_conflict: OnConflict = on_conflict
        self.on_nan: OnNaN = on_nan
        self._maker = RowMaker(question, on_conflict, on_nan, needs_ratio, needs_interest)
        self._states = States(on_nan)
        self.seen = np.zeros(8)

    def predict(self, states: Any) -> Floats:
        """Predict for a batch of states [m, ...]: [m], or [m, lanes] with several lanes.

        Instead of a batch it takes one ``Dict`` observation, or a list of them. The prediction for
        a state with a NaN is NaN, if the learner leaves out such transitions. Before the first
        update there is one :class:`gvf.NotLearnedWarning`.
        """
        predictions = self._predict(states)
        if not self._states.is_settled:
            self._states.settle(predictions, self._has_learned, type(self).__name__, self.steps)
        return predictions

    def _predict(self, states: Any) -> Floats:
        return self._states.predict(self._values, states)

    @abstractmethod
    def _values(self, states: Any) -> Floats:
        """Return the values of a batch of states, [m] or [m, lanes]."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """The number of transitions observed."""

    @property
    @abstractmethod
    def _has_learned(self) -> bool:
        """True if there was an update, or if weights were set."""

    @property
    @abstractmethod
    def trace(self) -> Trace:
        """The trace that knows which transition follows which."""

    @abstractmethod
    def _observe(self, rows: QuestionRows) -> None:
        """Observe rows, at least one."""

    def _take_in(self, transitions: Transitions, behaviour: Policy | None) -> None:
        if not len(transitions):
            return
        rows = self._maker.many(transitions, behaviour)
        if rows.origin.left_out is None:
            self._observe(rows)
            self._note_rows(rows)
            return
        with rows.origin.positions_explained():
            if len(rows.ratio):
                self._observe(rows)
                self._note_rows(rows)
            else:
                self._leave_out(transitions)
        self.seen[MISSING] += rows.origin.left_out_count

    def _begin_anew(self) -> None:
        self.trace.restart()

    def _change_source(self) -> None:
        self.trace.change_source()

    def _named_columns(self, info: Iterable[str]) -> tuple[str, ...]:
        return info_columns(self.question, info)

    def _leave_out(self, transitions: Transitions) -> None:
        """Let no transition follow these, which are all left out, or those before in a stream."""
        missing = np.ones(len(transitions), np.bool_)
        self.trace.inputs(np.empty(0), np.empty(0), transitions, missing=missing)

    def _note_rows(self, rows: QuestionRows) -> None:
        """Keep what the report says of all transitions so far."""
        self._note(rows.cumulant, rows.continuation)
        origin = rows.origin
        if self._maker.needs_ratio or origin.is_known:
            if origin.has_estimates:
                self.seen[ESTIMATED] = 1.0
        else:
            self.seen[UNKNOWN] = self.steps
        self._note_states(origin.transitions)

    def _note(self, cumulant: Floats, continuation: Floats) -> None:
        """Keep the range of cumulants and continuations, from which that of returns follows."""
        seen = self.seen
        if len(cumulant) == 1:  # reductions would take longer than the update
            low = high = cumulant[0]
            longest = continuation[0]
        else:
            low, high, longest = cumulant.min(), cumulant.max(), continuation.max()
        if low < seen[LOWEST]:
            seen[LOWEST] = low
        if high > seen[HIGHEST]:
            seen[HIGHEST] = high
        if longest > seen[CONTINUATION]:
            seen[CONTINUATION] = longest

    def _note_states(self, transitions: Transitions) -> None:
        """Remember the form of the states, and count those outside the bounds of the features."""
        states = transitions.columns["state"]
        if not self._states.is_noted:
            self._states.note(states)
        features = getattr(self, "features", None)  # a network has none
        if outside := outside_bounds(features, states):
            self.seen[OUTSIDE] += outside

    def _range(self, passed_on: int) -> Range:
        """Return the signals seen, from which the range of returns follows."""
        low, high, continuation = self.seen[[LOWEST, HIGHEST, CONTINUATION]].tolist()
        return Range(low, high, continuation, passed_on)

    @property
    def _noted(self) -> dict[str, Any]:
        """The fields of a report that ``seen`` has."""
        outside, uncounted = self.seen[[OUTSIDE, UNCOUNTED]].tolist()
        has_bounds = hasattr(getattr(self, "features", None), "outside")
        counted = self.steps - uncounted
        return {
            "missing": int(self.seen[MISSING]),
            "estimated": bool(self.seen[ESTIMATED]),
            "outside_bounds": outside / counted if has_bounds and counted else None,
        }

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
        held_out = held_out_returns(env, self.question, **options)
        predictions = self._predict(held_out.states)
        if predictions.ndim == 1:
            return held_out.error(lambda _: predictions)
        return [held_out.error(lambda _, p=p: p) for p in predictions.T]


def group(arrays: Arrays, name: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a checkpoint whose names begin with ``name/``; the keys lack it."""
    start = f"{name}/"
    return {k.removeprefix(start): array for k, array in arrays.items() if k.startswith(start)}
