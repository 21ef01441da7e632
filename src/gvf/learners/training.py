"""Training: when a learner or a horde goes on, and where it was interrupted.

    source -> batches (:mod:`gvf.learners.batches`) -> pieces that end where a callback is due
           -> observe_batch, and so on until the steps are done, a callback stops, or Ctrl-C

Training knows no question and no window. Learners and hordes derive from :class:`Trained`, which
has the methods that they share, and bring the few that it asks for.

A stream or an environment is passed once (:meth:`Trained.learn`), a log once or more often
(:meth:`Trained.fit`). In the order of the log, and in a shuffled order, every pass sends all rows
through the learner's window. In the order ``"drawn"`` the whole log is the window. The first pass
fills it without an update. Each further pass only draws, for as many updates as its rows would have
brought. So the first update already draws from all rows, and policies and features are evaluated
once. A learner counts the rows that its latest ``fit`` has passed, also in its file. So a call that
was interrupted goes on at the next row, with the same bits.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, overload

import numpy as np

from gvf.common.checks import check_choice, whole
from gvf.common.errors import noted, positions_counted_from
from gvf.common.gymnasium import is_environment
from gvf.common.interrupts import postponed_interrupt
from gvf.common.progress import progress_of
from gvf.learners import batches, saved_state
from gvf.learners.batches import Order, Passes, ReadsInEpochs, as_log, check_stream
from gvf.learners.callbacks import Callbacks, Calls
from gvf.learners.states import States
from gvf.policies import Policy
from gvf.stream.collect import collect
from gvf.transition import Transitions, TransitionsLike, as_transitions, one_row

LARGEST_WINDOW = 2**30
"""The size in bytes up to which a log becomes the window by default."""
_TRANSITION = ("state", "action", "reward", "next_state", "terminated", "truncated")
"""The names of the arguments of a transition, in order."""
_ABSENT: Any = object()
"""The default of an argument that a batch does not have."""
Report = TypeVar("Report")
"""The type of a learner's report."""


class WindowOfLog(Protocol):
    """A learner that can keep a whole log as its window."""

    @property
    def rows_together(self) -> int:
        """The number of rows whose updates are drawn together."""
        ...

    def row_size(self, transitions: Transitions) -> int:
        """Return the size in bytes of a row of the window, from one transition."""
        ...

    def begin_window(self, rows: int) -> None:
        """Begin an empty window of so many rows."""
        ...

    def without_updates(self) -> AbstractContextManager[None]:
        """Make a context in which transitions are taken in without an update."""
        ...

    def update_as(self, passed: int, count: int) -> None:
        """Update as often as `count` rows behind `passed` others would."""
        ...


class Trained(ABC, Generic[Report]):
    """An object that learns from transitions: of environments, of logs, and of single calls."""

    kind: ClassVar[str]
    """The kind of object that its files hold."""
    passes: ClassVar[int | None] = None
    """The number of passes over a log that matter, if further ones change nothing."""
    behaviour: Policy | None
    """The policy that chooses the actions, if known."""
    states: States
    """The form of the states, and the response to a NaN."""
    fitted: int = 0
    """The number of rows that the latest call of ``fit`` has passed, over all of its passes."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in vars(cls):
            saved_state.KINDS[cls.kind] = cls

    @classmethod
    def made_from(cls, arguments: dict[str, Any]) -> Self:
        """Make a learner from the arguments that a file describes."""
        return cls(**arguments)

    @abstractmethod
    def report(self) -> Report:
        """Return counts, statistics of the ratios, and the lanes that have diverged."""

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Return the arguments that make a learner like this one, except the seed."""

    @abstractmethod
    def exported(self) -> dict[str, Any]:
        """Return the parts that predictions need, and a text about the question."""

    @abstractmethod
    def _arrays(self) -> dict[str, Any]:
        """Return copies of the arrays of all parts."""

    @abstractmethod
    def _restore(self, arrays: dict[str, Any]) -> None:
        """Restore the arrays that :meth:`_arrays` returned."""

    @abstractmethod
    def observe_batch(self, batch: Transitions, behaviour: Policy | None) -> None:
        """Observe transitions that this behaviour chose, or that carry its probabilities."""

    @abstractmethod
    def new_source(self, *, reset: bool) -> None:
        """Accept a next transition that does not follow; with `reset`, none follows."""

    @abstractmethod
    def named_columns(self, info: Iterable[str]) -> tuple[str, ...]:
        """Return the names of values of ``info`` that are needed, with these."""

    def end_source(self) -> None:
        """Learn from what still waits at the end of a source; by default nothing does."""

    def observe_row(self, columns: dict[str, Any]) -> None:
        """Observe one transition, with one value a column."""
        self.observe_batch(one_row(columns), self.behaviour)

    @property
    def keeps_order(self) -> bool:
        """True if the rows of an episode must come in order, so that only episodes are shuffled."""
        return True

    @property
    def as_window(self) -> WindowOfLog | str:
        """The learner, if a whole log can be its window; else the reason why not."""
        return f"a {type(self).__name__} does not make the whole log its window"

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
            self.observe_batch(_as_batch(columns), self.behaviour)
        else:
            self.observe_row(columns)

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
        if not acting:
            check_stream(source, info)
        with postponed_interrupt() as interrupted, self.states.quiet():
            self.new_source(reset=acting)  # an environment is reset
            if acting:
                stream = self._act(source, steps, seed, act_steps or batches.JOINED_ROWS, info)
            else:
                stream = batches.batches_of(source, steps, act_steps, interrupted)
            taken, calls, stopped = 0, Calls(callbacks, self), False
            with progress_of("learning", steps, show=progress) as advance:
                for batch in stream:
                    for piece in calls.pieces(batch, taken):
                        with positions_counted_from(taken, "the source"):
                            self.observe_batch(piece, behaviour)
                        taken += len(piece)
                        advance(len(piece))
                        stopped = stopped or calls.after(taken)
                    if stopped or interrupted():
                        break
                else:
                    self.end_source()
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
            self.fitted = 0
        with postponed_interrupt() as interrupted, self.states.quiet():
            if order == "drawn" and not self.fitted:
                fit.begin_window(len(log))
            due = max(fit.total - self.fitted, 0)
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
        named = self.named_columns(info)
        acted = collect(env, self.behaviour, steps, seed=seed, batch=act_steps, info=named)
        return batches.batches_of(acted, act_steps=act_steps)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the learner's state and a description of its arguments to one file.

        :meth:`load` restores the state into a learner made with the same arguments.
        :func:`gvf.load` also makes the learner, if all of its parts can be imported by name.
        """
        saved_state.save(self, path)

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
        saved_state.load_into(self, path, same_functions)
        return self

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the parts that predict, without the window; :func:`gvf.load` reads them."""
        saved_state.export(self, path, {"on_nan": self.states.on_nan, **self.states.arrays()})

    def state_dict(self) -> dict[str, Any]:
        """Return copies of all arrays of the state, for :meth:`load_state_dict`."""
        fitted = {"fitted": np.array(self.fitted)} if self.fitted else {}
        return {**self._arrays(), **self.states.arrays(), **fitted}

    def load_state_dict(self, arrays: Mapping[str, Any]) -> None:
        """Restore the state of a learner of the same kind, or change nothing."""
        before, parts = self._arrays(), dict(arrays)
        fitted, states = int(parts.pop("fitted", 0)), States(self.states.on_nan)
        states.restore(parts)
        try:
            self._restore(parts)
        except BaseException:
            self._restore(before)
            raise
        self.fitted, self.states = fitted, states

    def present_arguments(self) -> dict[str, Any]:
        """Return the arguments that ``repr`` shows, with their present values."""
        return self.arguments()

    def __repr__(self) -> str:
        shown = {name: part for name, part in self.present_arguments().items() if name != "rng"}
        parts = ", ".join(f"{name}={part!r}" for name, part in shown.items())
        return f"{type(self).__name__}({parts})"


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


def chosen_order(order: Order | None, log: ReadsInEpochs, learner: Trained[Any]) -> Order:
    """Return the order of a fit, by default ``"drawn"`` if the log can be the learner's window.

    Raises:
        ValueError: if the order is not for the learner.
    """
    window = learner.as_window
    if order is None:
        if isinstance(window, str) or not log.in_memory:
            return "log"
        size = window.row_size(next(iter(log))[:1]) * len(log)
        return "drawn" if size <= LARGEST_WINDOW else "log"
    check_choice("order", order, Order)
    if order == "drawn" and isinstance(window, str):
        raise ValueError(f'{window}, so order="drawn" is not for it; take order="log"')
    return order


class Fit:
    """One call of ``fit``.

    Args:
        learner: the learner.
        log: the log.
        order: the order of the rows in a pass.
        epochs: the number of passes that bring updates.
        seed: the seed of shuffled orders.
        calls: the callbacks.
    """

    def __init__(
        self,
        learner: Trained[Any],
        log: ReadsInEpochs,
        order: Order,
        epochs: int,
        seed: Any,
        calls: Calls,
    ) -> None:
        self._learner, self._calls, self._rows = learner, calls, len(log)
        window = learner.as_window
        self._window = None if order != "drawn" or isinstance(window, str) else window
        self._stopped = False
        entropy = np.random.SeedSequence(seed).entropy
        self._passes = Passes(log, order, learner.keeps_order, entropy)
        self.total = self._rows * (epochs + (self._window is not None))
        """The number of rows in all passes."""

    def run(self, interrupted: Callable[[], bool], advance: Callable[[int], object]) -> None:
        """Go on behind the rows that the learner has passed, to the end or an interruption."""
        learner, rows = self._learner, self._rows
        if self._window is not None and learner.fitted < rows:
            with self._window.without_updates():
                self._take(0, interrupted, advance)
        while learner.fitted < self.total and not (interrupted() or self._stopped):
            if self._window is not None:
                self._draw(self._window, interrupted, advance)
            else:
                self._take(learner.fitted // rows, interrupted, advance)

    def _take(
        self, number: int, interrupted: Callable[[], bool], advance: Callable[[int], object]
    ) -> None:
        """Take in the rows of a pass, behind those that the learner has passed."""
        learner, skip = self._learner, self._learner.fitted - number * self._rows
        if not skip:
            # As in `learn`, the first rows may go on where those before ended.
            learner.new_source(reset=number > 0)
        for batch in batches.batches_of(self._passes.rows(number, skip)):
            pieces = (
                [batch] if self._window is not None else self._calls.pieces(batch, learner.fitted)
            )
            for piece in pieces:
                with self._placed(learner.fitted - number * self._rows):
                    learner.observe_batch(piece, learner.behaviour)
                learner.fitted += len(piece)
                if learner.fitted % self._rows == 0:
                    learner.end_source()
                advance(len(piece))
                self._stopped = self._window is None and self._calls.after(learner.fitted)
                if self._stopped or interrupted():
                    return

    def _draw(
        self,
        window: WindowOfLog,
        interrupted: Callable[[], bool],
        advance: Callable[[int], object],
    ) -> None:
        """Update as often as the rows of the remaining passes would."""
        learner = self._learner
        while (left := self.total - learner.fitted) and not (interrupted() or self._stopped):
            passed = learner.fitted - self._rows  # the window was filled without updates
            count = self._calls.wait(passed, min(window.rows_together, left))
            window.update_as(passed, count)
            learner.fitted += count
            advance(count)
            self._stopped = self._calls.after(passed + count)

    def begin_window(self, rows: int) -> None:
        """Begin an empty window of so many rows, if the log becomes the window."""
        if self._window is not None:
            self._window.begin_window(rows)

    def _placed(self, rows: int) -> AbstractContextManager[None]:
        """Make a context whose errors tell where in the log their positions are."""
        if self._passes.order == "shuffled":
            return noted('Positions are in shuffled rows; order="log" tells the place in the log.')
        return positions_counted_from(rows, "the log")
