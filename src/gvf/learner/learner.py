"""The learner: one question answered from a window of experience.

    transitions -> question (ratio, cumulant, continuation) -> window -> draw (slots, weights)
                -> update -> predictions

Nothing here knows a correction, an update or a representation by name; it only ties them together,
counts, and keeps all that changes in arrays, so that a learner can be saved and resumed bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gvf.correction import IR, Correction
from gvf.features import FeatureMap
from gvf.learner.base import WindowLearner, without_addresses
from gvf.learner.linear import Array, Experience, values
from gvf.learner.update import Update
from gvf.policy import DiscretePolicy, Policy
from gvf.question import GVF
from gvf.transition import Transitions


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
        super().__init__(
            question,
            correction,
            behaviour=behaviour,
            window=window,
            batch_size=batch_size,
            every=every,
            warm_up=warm_up,
            seed=seed,
        )
        if not isinstance(update, Update):
            raise TypeError(f"update must be a gvf.Update, got {update!r}")
        if not callable(features) or not hasattr(features, "size"):
            raise TypeError(
                f"features must be a feature map such as gvf.OneHot(5), got {features!r}"
            )
        if update.action_values and not isinstance(question.policy, DiscretePolicy):
            raise ValueError(
                f"{type(update).__name__} learns a value for every action, and {question.policy!r} "
                "has no finite number of them; use TD, TDC or TDRC"
            )
        self.features, self.update = features, update
        policy = question.policy
        self._blocks = policy.actions if isinstance(policy, DiscretePolicy) else 1
        if not update.action_values:
            self._blocks = 1
        self._ones = np.ones((window, 1))
        self._state = update.start(features.size * self._blocks)

    @property
    def weights(self) -> Array:
        """The weights themselves, not a copy: [rows], or [rows, lanes] with several step sizes.

        A row is a feature; with action values, action a has the rows from ``a * features.size`` on.
        """
        weights = self._state.weights
        return weights[:, 0] if self.update.lanes is None else weights

    def predict(self, states: Any) -> Array:
        """The predictions for a batch of states [m, ...]: [m], or [m, lanes]."""
        states = np.asarray(states)
        x = self._features(states)
        out = np.empty((len(x), self._state.weights.shape[1]))
        share = self._shares(states) if self.update.action_values else np.ones((len(x), 1))
        values(self._state.weights, x, share, out)
        return out[:, 0] if self.update.lanes is None else out

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

    def _represent(self, transitions: Transitions) -> dict[str, Array]:
        columns = {
            "x": self._features(transitions["state"]),
            "x_next": self._features(transitions["next_state"]),
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

    def _update(self, slots: Array, w: Array) -> None:
        self.update.apply(self._state, self._experience(self.window.columns), slots, w)

    def _diverged(self) -> tuple[int, ...]:
        finite = np.isfinite(self._state.weights).all(axis=0)
        return tuple(np.flatnonzero(~finite).tolist())

    def _own_configuration(self) -> str:
        return f"features={without_addresses(self.features)}, update={self.update!r}"

    def _checkpoint(self) -> dict[str, Array]:
        return self._state._asdict()

    def _restore(self, arrays: dict[str, Array]) -> None:
        for name, array in arrays.items():
            getattr(self._state, name)[...] = array
