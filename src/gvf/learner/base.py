"""What all learners have in common, whatever their value function is.

Take in transitions, let the question evaluate them, keep them in a window, and every so many steps
draw slots and weigh them as a correction says. How drawn and weighed transitions change a value
function is left to :class:`gvf.Learner` (linear) and :class:`gvf.neural.NeuralLearner`. All that
changes can be written as arrays, so that a learner can be saved and resumed bit by bit.
"""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from operator import index
from typing import Any, Self

import numpy as np

from gvf import stream, truth
from gvf.correction import Correction
from gvf.frames import FrameWindow
from gvf.gym import gym, is_environment
from gvf.learner import feed
from gvf.learner.linear import Array
from gvf.learner.report import Report
from gvf.policy import DiscretePolicy, Policy
from gvf.question import GVF
from gvf.sampling import RatioRing, uniform_slots
from gvf.transition import Transitions
from gvf.window import Window, save_arrays


class WindowLearner(ABC):
    """A learner without its value function: feeding, counting, drawing, reporting, saving."""

    def __init__(
        self,
        question: GVF,
        correction: Correction,
        *,
        behaviour: Policy | None,
        window: int | Window | FrameWindow,
        batch_size: int,
        every: int,
        warm_up: int,
        seed: Any,
    ) -> None:
        for name, value, least in (
            ("batch_size", batch_size, 1),
            ("every", every, 1),
            ("warm_up", warm_up, 0),
        ):
            if index(value) < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        for name, value, kind in (
            ("question", question, GVF),
            ("correction", correction, Correction),
        ):
            if not isinstance(value, kind):
                raise TypeError(f"{name} must be a gvf.{kind.__name__}, got {value!r}")
        if behaviour is not None and not isinstance(behaviour, Policy):
            raise TypeError(f"behaviour must be a gvf.Policy, got {behaviour!r}")
        policies = [p for p in (question.policy, behaviour) if isinstance(p, DiscretePolicy)]
        if len({p.actions for p in policies}) > 1:
            raise ValueError(
                f"target and behaviour differ in their number of actions: {policies[0].actions} "
                f"and {policies[1].actions}"
            )
        self.question, self.correction, self.behaviour = question, correction, behaviour
        self.batch_size, self.every, self.warm_up = batch_size, every, warm_up
        self.steps = self.updates = self.skipped = 0
        self.window = window if isinstance(window, Window | FrameWindow) else Window(window)
        if len(self.window):
            raise ValueError(
                f"the learner fills its window itself; this one is not empty: {window}"
            )
        self._ring = RatioRing(self.window.capacity)
        # What is drawn for transitions has a stream of its own, so that it does not matter how many
        # of them come at a time.
        self._rng, self._action_rng = np.random.default_rng(seed).spawn(2)
        self._statistics = np.array([np.nan, correction.parameter])

    @abstractmethod
    def _represent(self, transitions: Transitions) -> dict[str, Array]:
        """The columns that the window keeps beside cumulant, continuation and ratio."""

    @abstractmethod
    def _update(self, slots: Array, w: Array) -> None:
        """Change the value function by the transitions in slots [k], with weights w [k]."""

    @abstractmethod
    def _diverged(self) -> tuple[int, ...]:
        """The lanes with a weight that is not finite."""

    @abstractmethod
    def _own_configuration(self) -> str:
        """What two learners of this kind must share to exchange checkpoints."""

    @abstractmethod
    def _checkpoint(self) -> dict[str, Array]:
        """The arrays of the value function."""

    @abstractmethod
    def _restore(self, arrays: dict[str, Array]) -> None:
        """Take up what ``_checkpoint`` gave."""

    @abstractmethod
    def predict(self, states: Any) -> Array:
        """The predictions for a batch of states [m, ...]."""

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
        cumulant and continuation can use them.
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
        self.observe_many(Transitions(**{key: np.asarray(v)[None] for key, v in named.items()}))

    def observe_many(self, transitions: Transitions) -> None:
        """Take in a batch of transitions in order; the same as observing them one by one."""
        columns = self._columns(transitions)
        start, total = 0, len(transitions)
        while start < total:
            stop = min(start + self._steps_to_update(), total)
            self._insert({name: column[start:stop] for name, column in columns.items()})
            if self.steps > self.warm_up and (self.steps - self.warm_up) % self.every == 0:
                self._learn_once()
            start = stop

    def learn(
        self,
        source: Any,
        steps: int | None = None,
        *,
        seed: int | None = None,
        progress: bool | None = None,
    ) -> Report:
        """Learn from a Gymnasium environment, or from an iterable of transitions.

        Ctrl-C stops after the transitions in hand and loses nothing; calling again goes on.

        Args:
            source: a Gymnasium environment (single or vector), in which the behaviour then acts;
                or an iterable of :class:`Transitions` (batches) or of mappings (one transition).
            steps: how many transitions; needed for an environment, which never ends.
            seed: of the environment and the behaviour's actions.
            progress: show a progress bar; by default when standard error is a terminal.
        """
        batches = self._batches(source, steps, seed)
        with feed.postponed_interrupt() as interrupted, feed.bar(progress, steps) as advance:
            taken = 0
            for batch in batches:
                try:
                    self.observe_many(batch)
                except ValueError as error:
                    error.add_note(f"Positions count from transition {taken} of the source.")
                    raise
                taken += len(batch)
                advance(len(batch))
                if interrupted():
                    break
        return self.report()

    def evaluate(self, env: gym.Env[Any, Any], **options: Any) -> Any:
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

    def report(self) -> Report:
        """Counts, statistics of the window's ratios, and which lanes have diverged."""
        ratios = self._ring.ratios
        return Report(
            steps=self.steps,
            updates=self.updates,
            skipped=self.skipped,
            window=len(self.window),
            mean_ratio=self._ring.mean,
            max_ratio=self._ring.max,
            zero_ratios=float(np.mean(ratios == 0.0)) if len(ratios) else float("nan"),
            effective_sample_size=self._ring.effective_sample_size,
            diverged=self._diverged(),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that changes to one file (NumPy's .npz form), for :meth:`load`."""
        save_arrays(
            path,
            {
                "configuration": np.array(self._configuration()),
                "counts": np.array([self.steps, self.updates, self.skipped]),
                "rng": np.array([json.dumps(rng.bit_generator.state) for rng in self._rngs]),
                **{f"state/{name}": array for name, array in self._checkpoint().items()},
                **{f"window/{name}": array for name, array in self.window.checkpoint().items()},
                **{f"ring/{name}": array for name, array in self._ring.checkpoint().items()},
            },
        )

    def load(self, path: str | os.PathLike[str]) -> Self:
        """Take up what :meth:`save` wrote, into a learner that was made with the same arguments.

        From there on the two learners do the same, bit for bit. The question's functions are not in
        the file, so the new learner brings them.
        """
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        saved, own = str(arrays["configuration"]), self._configuration()
        if saved != own:
            raise ValueError(
                f"{os.fspath(path)} was saved by another learner.\nThere: {saved}\nHere:  {own}"
            )

        def part(prefix: str) -> dict[str, Array]:
            return {
                key.removeprefix(prefix): value
                for key, value in arrays.items()
                if key.startswith(prefix)
            }

        self.window.restore(part("window/"))
        self._ring.restore(part("ring/"))
        self._restore(part("state/"))
        for rng, state in zip(self._rngs, arrays["rng"], strict=True):
            rng.bit_generator.state = json.loads(str(state))
        self.steps, self.updates, self.skipped = arrays["counts"].tolist()
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._configuration()})"

    @property
    def _rngs(self) -> tuple[np.random.Generator, np.random.Generator]:
        return self._rng, self._action_rng

    def _configuration(self) -> str:
        """What two learners must share to exchange checkpoints."""
        size = self.window.capacity
        window = f"FrameWindow({size})" if isinstance(self.window, FrameWindow) else size
        return (
            f"question={without_addresses(self.question)}, "
            f"behaviour={without_addresses(self.behaviour)}, {self._own_configuration()}, "
            f"correction={self.correction!r}, window={window}, "
            f"batch_size={self.batch_size}, every={self.every}, warm_up={self.warm_up}, "
            f"rng={type(self._rng.bit_generator).__name__}"
        )

    def _columns(self, transitions: Transitions) -> dict[str, Array]:
        """The columns that the window keeps, from a batch of transitions."""
        question = self.question
        recorded = {"behaviour_probability", "behaviour_log_probability"}
        known = self.behaviour is not None or recorded & transitions.columns.keys()
        if self.correction.needs_ratios or known:
            ratio = question.ratios(transitions, behaviour=self.behaviour)
        else:
            ratio = np.ones(len(transitions))
        evaluated = {
            "cumulant": question.cumulants(transitions),
            "continuation": question.continuations(transitions),
            "ratio": ratio,
        }
        # Last, since it may draw numbers, and an observation that fails should change nothing.
        return {**self._represent(transitions), **evaluated}

    def _steps_to_update(self) -> int:
        done = self.steps - self.warm_up
        return self.every - done if done < 0 else self.every - done % self.every

    def _insert(self, columns: dict[str, Array]) -> None:
        self.window.extend(**columns)
        self._ring.extend(columns["ratio"])
        self.steps += len(columns["ratio"])

    def _learn_once(self) -> None:
        """Draw, weigh and update once."""
        mean = self._ring.mean
        if self.correction.draw != "uniform" and mean == 0.0:
            self.skipped += 1
            return
        size = len(self.window)
        if self.correction.draw == "ratio":
            slots = self._ring.sample(self.batch_size, rng=self._rng)
        elif self.correction.draw == "uniform":
            slots = uniform_slots(size, self.batch_size, rng=self._rng)
        else:
            slots = self.window.oldest_first
        rho = self.window.columns["ratio"].take(slots)
        w = np.empty(len(slots))
        self._statistics[0] = mean
        self.correction.kernel(rho, self._statistics, w)
        self._update(slots, w)
        self.updates += 1

    def _batches(self, source: Any, steps: int | None, seed: int | None) -> Iterable[Transitions]:
        if not is_environment(source):
            return feed.batches(source, steps)
        if self.behaviour is None:
            raise ValueError(
                "to act in an environment the learner needs a behaviour policy: "
                f"{type(self).__name__}(..., behaviour=gvf.Uniform(4))"
            )
        if steps is None:
            raise ValueError("say how many steps to learn from the environment: steps=10_000")
        return feed.batches(stream.transitions(source, self.behaviour, steps, seed=seed))


def without_addresses(value: object) -> str:
    """What an object shows of itself, the same in every process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
