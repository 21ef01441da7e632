"""The learner: one question answered from a window of experience.

    transitions -> question (ratio, cumulant, continuation) -> window -> draw (slots, weights)
                -> update -> predictions

Nothing here knows a correction, an update or a representation by name; it only ties them together,
counts, and keeps all that changes in arrays, so that a learner can be saved and resumed bit by bit.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Self

import numpy as np

from gvf import stream, truth
from gvf.correction import IR, Correction
from gvf.features import FeatureMap
from gvf.gym import gym, is_environment
from gvf.learner import feed
from gvf.learner.linear import Array, Experience, values
from gvf.learner.update import Update
from gvf.policy import DiscretePolicy, Policy
from gvf.question import GVF
from gvf.sampling import RatioRing, uniform_slots
from gvf.transition import Transitions
from gvf.window import Window, save_arrays


@dataclass(frozen=True)
class Report:
    """What a learner has done, and what its window looks like now.

    Attributes:
        steps: transitions observed.
        updates: updates done.
        skipped: updates left out since no ratio in the window was above 0.
        window: transitions in the window.
        mean_ratio: over the window; should be near 1, else the behaviour's probabilities are wrong.
        max_ratio: over the window.
        zero_ratios: share of ratios that are exactly 0.
        effective_sample_size: (sum rho)^2 / sum rho^2, of at most ``window``.
        diverged: the lanes with a weight that is not finite, as a tuple of numbers.

    Example:
        >>> import gvf
        >>> question = gvf.GVF(gvf.Always(0, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(question, gvf.OneHot(3), gvf.TD(0.1), behaviour=gvf.Uniform(2))
        >>> learner.observe(0, 1, 0.0, 1, False)
        >>> learner.report()
        Report(1 steps, 0 updates, 1 skipped; window 1, mean ratio 0, max 0, 100 % zeros, \
effective sample size 0)
    """

    steps: int
    updates: int
    skipped: int
    window: int
    mean_ratio: float
    max_ratio: float
    zero_ratios: float
    effective_sample_size: float
    diverged: tuple[int, ...]

    def __repr__(self) -> str:
        diverged = f"; DIVERGED in lanes {list(self.diverged)}" if self.diverged else ""
        return (
            f"Report({self.steps} steps, {self.updates} updates, {self.skipped} skipped; "
            f"window {self.window}, mean ratio {self.mean_ratio:.3g}, max {self.max_ratio:.3g}, "
            f"{100 * self.zero_ratios:.0f} % zeros, "
            f"effective sample size {self.effective_sample_size:.4g}{diverged})"
        )


class Learner:
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
            ``behaviour_probability`` or ``behaviour_log_probability``.
        window: how many recent transitions to keep, n.
        batch_size: how many to draw for an update, k.
        every: steps between updates.
        warm_up: steps before the first of these intervals begins.
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

    def __init__(
        self,
        question: GVF,
        features: FeatureMap,
        update: Update,
        correction: Correction = IR(),  # noqa: B008 (frozen)
        *,
        behaviour: Policy | None = None,
        window: int = 15_000,
        batch_size: int = 16,
        every: int = 1,
        warm_up: int = 0,
        seed: Any = None,
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
            ("update", update, Update),
            ("correction", correction, Correction),
        ):
            if not isinstance(value, kind):
                raise TypeError(f"{name} must be a gvf.{kind.__name__}, got {value!r}")
        if not callable(features) or not hasattr(features, "size"):
            raise TypeError(
                f"features must be a feature map such as gvf.OneHot(5), got {features!r}"
            )
        if behaviour is not None and not isinstance(behaviour, Policy):
            raise TypeError(f"behaviour must be a gvf.Policy, got {behaviour!r}")
        policies = [p for p in (question.policy, behaviour) if isinstance(p, DiscretePolicy)]
        if len({p.actions for p in policies}) > 1:
            raise ValueError(
                f"target and behaviour differ in their number of actions: {policies[0].actions} "
                f"and {policies[1].actions}"
            )
        if update.action_values and not isinstance(question.policy, DiscretePolicy):
            raise ValueError(
                f"{type(update).__name__} learns a value for every action, and {question.policy!r} "
                "has no finite number of them; use TD, TDC or TDRC"
            )
        self.question, self.features = question, features
        self.update, self.correction, self.behaviour = update, correction, behaviour
        self.batch_size, self.every, self.warm_up = batch_size, every, warm_up
        self.steps = self.updates = self.skipped = 0
        self.window = Window(window)
        self._ring = RatioRing(window)
        # Next actions have a stream of their own, so that it does not matter how many transitions
        # come at a time.
        self._rng, self._action_rng = np.random.default_rng(seed).spawn(2)
        policy = question.policy
        self._blocks = policy.actions if isinstance(policy, DiscretePolicy) else 1
        if not update.action_values:
            self._blocks = 1
        self._ones = np.ones((window, 1))
        self._state = update.start(features.size * self._blocks)
        self._statistics = np.array([np.nan, correction.parameter])

    @property
    def weights(self) -> Array:
        """The weights themselves, not a copy: [rows], or [rows, lanes] with several step sizes.

        A row is a feature; with action values, action a has the rows from ``a * features.size`` on.
        """
        weights = self._state.weights
        return weights[:, 0] if self.update.lanes is None else weights

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

    def predict(self, states: Any) -> Array:
        """The predictions for a batch of states [m, ...]: [m], or [m, lanes]."""
        states = np.asarray(states)
        x = self._features(states)
        out = np.empty((len(x), self._state.weights.shape[1]))
        share = self._shares(states) if self.update.action_values else np.ones((len(x), 1))
        values(self._state.weights, x, share, out)
        return out[:, 0] if self.update.lanes is None else out

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
        if self.update.lanes is None:
            return held_out.error(self.predict)
        predictions = self.predict(held_out.states)
        return [held_out.error(lambda _, p=p: p) for p in predictions.T]

    def report(self) -> Report:
        """Counts, statistics of the window's ratios, and which lanes have diverged."""
        ratios = self._ring.ratios
        finite = np.isfinite(self._state.weights).all(axis=0)
        return Report(
            steps=self.steps,
            updates=self.updates,
            skipped=self.skipped,
            window=len(self.window),
            mean_ratio=self._ring.mean,
            max_ratio=self._ring.max,
            zero_ratios=float(np.mean(ratios == 0.0)) if len(ratios) else float("nan"),
            effective_sample_size=self._ring.effective_sample_size,
            diverged=tuple(np.flatnonzero(~finite).tolist()),
        )

    def diagnose(
        self,
        *,
        batch_size: int | None = None,
        clips: Sequence[float] = (1.0,),
        batches: int = 1000,
        rng: np.random.Generator | None = None,
    ) -> Any:
        """Which correction suits the window at the present weights, and can it be trusted?

        The updates are those of TD, ``delta_i x_i``, with the second part of gradient TD, before a
        step size or an optimiser. Nothing changes, the learner's own draws included, and it is
        cheap enough to be called now and then while learning.

        Args:
            batch_size: the k of a mini-batch; by default the learner's own.
            clips: as in :func:`gvf.diagnose`.
            batches: as in :func:`gvf.diagnose`.
            rng: as in :func:`gvf.diagnose`.

        Returns:
            A :class:`gvf.Diagnosis`; with several step sizes, a list of one for each, with None for
            those that have diverged.
        """
        # Not above, since it knows our updates.
        from gvf.diagnosis.diagnose import Diagnosis, diagnose_updates
        from gvf.diagnosis.updates import updates_of_learner

        size = len(self.window)
        if not size:
            raise ValueError("the window is empty: observe some transitions first")
        kept = self.window.columns
        ratios = kept["ratio"][:size]
        if self.update.action_values:
            raise ValueError(
                f"{type(self.update).__name__} learns action values and needs no ratios: "
                "gvf.OnPolicy() is right, and there is nothing to diagnose"
            )
        if not self.correction.needs_ratios and self.behaviour is None and (ratios == 1.0).all():
            raise ValueError(
                "the ratios are not known: give the learner its behaviour, or transitions their "
                "behaviour_probability"
            )
        experience = Experience(*(column[:size] for column in self._experience(kept)))
        k = self.batch_size if batch_size is None else batch_size

        def diagnose_lane(lane: int) -> Diagnosis | None:
            updates = updates_of_learner(self.update, self._state, experience, lane)
            if updates is None:
                return None
            return diagnose_updates(
                ratios, *updates, batch_size=k, clips=clips, batches=batches, rng=rng
            )

        found = [diagnose_lane(lane) for lane in range(self._state.weights.shape[1])]
        if self.update.lanes is not None:
            return found
        if found[0] is None:
            raise ValueError("this learner has diverged; choose a smaller step size")
        return found[0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that changes to one file (NumPy's .npz form), for :meth:`load`."""
        save_arrays(
            path,
            {
                "configuration": np.array(self._configuration()),
                "counts": np.array([self.steps, self.updates, self.skipped]),
                "rng": np.array([json.dumps(rng.bit_generator.state) for rng in self._rngs]),
                **{f"state/{name}": array for name, array in self._state._asdict().items()},
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
        for name, array in part("state/").items():
            getattr(self._state, name)[...] = array
        for rng, state in zip(self._rngs, arrays["rng"], strict=True):
            rng.bit_generator.state = json.loads(str(state))
        self.steps, self.updates, self.skipped = arrays["counts"].tolist()
        return self

    def __repr__(self) -> str:
        return f"Learner({self._configuration()})"

    @property
    def _rngs(self) -> tuple[np.random.Generator, np.random.Generator]:
        return self._rng, self._action_rng

    def _configuration(self) -> str:
        """What two learners must share to exchange checkpoints."""
        return (
            f"question={_without_addresses(self.question)}, "
            f"behaviour={_without_addresses(self.behaviour)}, "
            f"features={_without_addresses(self.features)}, update={self.update!r}, "
            f"correction={self.correction!r}, window={self.window.capacity}, "
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
        columns = {
            "x": self._features(transitions["state"]),
            "x_next": self._features(transitions["next_state"]),
            "cumulant": question.cumulants(transitions),
            "continuation": question.continuations(transitions),
            "ratio": ratio,
        }
        if self.update.action_values:
            policy, next_state = self.question.policy, transitions["next_state"]
            columns["share"] = np.eye(self._blocks)[transitions["action"]]
            if self.update.next_action == "sampled":
                next_action = policy.sample(next_state, rng=self._action_rng)
                columns["share_next"] = np.eye(self._blocks)[next_action]
            else:
                columns["share_next"] = self._shares(next_state)
        return columns

    def _features(self, states: Any) -> Array:
        """Features in the form that kernels take; they do not check indices themselves."""
        x, size = np.asarray(self.features(states)), self.features.size
        active = x.dtype.kind in "iu"
        if x.shape[:1] != np.shape(states)[:1] or x.ndim != 2 or not (active or x.shape[1] == size):
            raise ValueError(
                f"features must be indices int[m, active] or values float[m, {size}], "
                f"got {x.dtype}{list(x.shape)} for {len(states)} states"
            )
        if active and x.size and not (x.min() >= 0 and x.max() < size):
            raise ValueError(f"active features must be in [0, {size}), got {x.min()} to {x.max()}")
        return np.ascontiguousarray(x, np.int32 if active else np.float64)

    def _shares(self, states: Any) -> Array:
        assert isinstance(self.question.policy, DiscretePolicy)
        return self.question.policy.probabilities(states)

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
        kept = self.window.columns
        rho = kept["ratio"].take(slots)
        w = np.empty(len(slots))
        self._statistics[0] = mean
        self.correction.kernel(rho, self._statistics, w)
        self.update.apply(self._state, self._experience(kept), slots, w)
        self.updates += 1

    def _experience(self, kept: dict[str, Array]) -> Experience:
        """The window's columns [capacity, ...] as updates read them."""
        return Experience(
            kept["x"],
            kept.get("share", self._ones),
            kept["x_next"],
            kept.get("share_next", self._ones),
            kept["cumulant"],
            kept["continuation"],
        )

    def _batches(self, source: Any, steps: int | None, seed: int | None) -> Iterable[Transitions]:
        if not is_environment(source):
            return feed.batches(source, steps)
        if self.behaviour is None:
            raise ValueError(
                "to act in an environment the learner needs a behaviour policy: "
                "Learner(..., behaviour=gvf.Uniform(4))"
            )
        if steps is None:
            raise ValueError("say how many steps to learn from the environment: steps=10_000")
        return feed.batches(stream.transitions(source, self.behaviour, steps, seed=seed))


def _without_addresses(value: object) -> str:
    """What an object shows of itself, the same in every process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
