"""The learner with linear values, which most users want."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from gvf.common.arrays import Floats
from gvf.corrections import IR, Correction
from gvf.diagnosis import Diagnosis
from gvf.diagnosis.diagnose import DEFAULT_CORRECTIONS, diagnose_updates
from gvf.features import FeatureMap
from gvf.learners.learner_options import (
    LearnerKeywords,
    LearnerOptions,
    documents_options,
    options_of,
)
from gvf.learners.linear_values import LinearValues
from gvf.learners.one_question import check_question
from gvf.learners.window_learner import WindowLearner
from gvf.question import GVF
from gvf.sampling.random_streams import KNOWN_GENERATORS, native
from gvf.updates.update import Update
from gvf.window import Window
from gvf.window.frame_window import FrameWindow


@documents_options(LearnerOptions)
class Learner(WindowLearner):
    """A learner with linear values: it answers one question from off-policy transitions.

    Args:
        question: the question to answer.
        features: the representation: :class:`OneHot`, :class:`TileCoder`, :class:`Dense`, or any
            object with ``size`` that maps states to features.
        update: the learning rule: :class:`TD`, :class:`IncrementalTD`, :class:`WISTD`,
            :class:`Sarsa`, :class:`ExpectedSarsa`, :class:`TDC` or :class:`TDRC`. With a sequence
            of step sizes, one copy of the weights learns with each, and predictions are
            [m, lanes].
        correction: the correction for the behaviour: :class:`IR`, :class:`IS` and others.
        {options}

    Example:
        >>> import gymnasium, gvf
        >>> env = gymnasium.make("FrozenLake-v1", is_slippery=False)
        >>> question = gvf.GVF(gvf.policies.Favour(2, 0.9, actions=4), "reward", 0.9)
        >>> learner = gvf.Learner(
        ...     question,
        ...     gvf.features.OneHot(16),
        ...     gvf.updates.TD(1.0),
        ...     gvf.corrections.IR(),
        ...     behaviour=gvf.policies.Uniform(4),
        ...     seed=0,
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
        **options: Unpack[LearnerKeywords],
    ) -> None:
        check_question(question)
        chosen = options_of(LearnerOptions, self, options)
        if isinstance(chosen.window, FrameWindow):
            raise TypeError(
                "a linear learner keeps features, not frames: give a gvf.Window, or a number"
            )
        # An update draws actions from its own generator, so that results do not depend on how many
        # transitions are observed together.
        rng, action_rng = map(native, np.random.default_rng(chosen.seed).spawn(2))
        values = LinearValues(question.policy, features, update, action_rng)
        refreshes = isinstance(correction, Correction) and correction.refresh is not None
        if refreshes and update.lanes is not None:
            raise ValueError(
                f"the masses of {correction.name} follow the errors of one learner, and several "
                "step sizes share their draws; give one step size"
            )
        if update.action_values and chosen.n_step > 1:
            raise ValueError(
                f"n_step is for state values, and {type(update).__name__} learns action values; "
                "use TD, IncrementalTD, WISTD, TDC or TDRC"
            )
        # Last, because it takes the window.
        super().__init__(question, correction, values, chosen, rng, features)

    kind = "learner"

    @classmethod
    def made_from(cls, arguments: dict[str, Any]) -> Learner:
        """Make a learner from the arguments that a file describes, with the kind of generator."""
        generators = {kind.__name__: kind for kind in KNOWN_GENERATORS}
        parts = {name: part for name, part in arguments.items() if name != "rng"}
        return Learner(**parts, seed=np.random.Generator(generators[arguments["rng"]](0)))

    @property
    def features(self) -> FeatureMap:
        """The representation."""
        return self.values.features

    @property
    def update(self) -> Update:
        """The learning rule, with the default step size in use if none was given."""
        rule, step_size = self.values.update_rule, self.values.step_size
        return rule if step_size is None else replace(rule, step_size=step_size)

    def present_arguments(self) -> dict[str, Any]:
        """Return the arguments that ``repr`` shows, with their present values."""
        return super().present_arguments() | {"update": self.update}

    @property
    def weights(self) -> Floats:
        """The weights themselves, not a copy: [rows], or [rows, lanes] with several step sizes.

        Each row belongs to a feature. With action values, the rows of action a start at
        ``a * features.size``.
        """
        weights = self.values.state.weights
        return weights[:, 0] if self.update.lanes is None else weights

    def lane(self, number: int) -> Learner:
        """Return a copy with one of several step sizes, which goes on as this lane would.

        Example:
            >>> import gvf
            >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
            >>> both = gvf.Learner(
            ...     question,
            ...     gvf.features.OneHot(3),
            ...     gvf.updates.TD([0.1, 0.5]),
            ...     behaviour=gvf.policies.Uniform(2),
            ...     seed=0,
            ... )
            >>> both.observe(0, 1, 1.0, 2, False)
            >>> both.lane(1).update, both.lane(1).predict([0])
            (TD(step_size=0.5, optimiser=SGD()), array([0.5]))
        """
        rule, arrays = self.values.update_rule, self.state_dict()
        if rule.lanes is None:
            raise ValueError("this learner has one step size, and no lanes")
        if not 0 <= number < rule.lanes:
            raise IndexError(f"there are {rule.lanes} lanes, from 0; there is no lane {number}")
        fields = {name: getattr(rule, name) for name in rule.lane_fields}
        values_of_lane = {
            name: field_values[number]
            for name, field_values in fields.items()
            if isinstance(field_values, tuple)
        }
        learner = Learner.made_from(self.arguments() | {"update": replace(rule, **values_of_lane)})
        arrays.pop("fitted", None)
        for name in ("weights", "memory", "lanes"):
            arrays[f"values/{name}"] = arrays[f"values/{name}"][..., [number]]
        learner.load_state_dict(arrays)
        return learner

    def diagnose(
        self,
        *,
        batch_size: int | None = None,
        corrections: Sequence[Correction] | None = None,
        batches: int = 1000,
        rng: np.random.Generator | None = None,
    ) -> Diagnosis | list[Diagnosis | None]:
        """Recommend a correction for the window at the present weights; see :func:`gvf.diagnose`.

        The updates are those of TD, ``delta_i x_i``, including the correction term of gradient TD,
        before a step size or an optimiser. The learner and its random generators do not change. The
        call is cheap enough to repeat while learning.

        Args:
            batch_size: the number of transitions in a mini-batch, k; by default the learner's.
            corrections: as in :func:`gvf.diagnose`; by default those and the learner's own, unless
                its masses change. A correction with a trace must draw as the learner's own does.
            batches: as in :func:`gvf.diagnose`.
            rng: as in :func:`gvf.diagnose`.

        Returns:
            A :class:`gvf.Diagnosis`. With several step sizes, a list of one for each, with None for
            those that have diverged.

        Raises:
            ValueError: if the window is empty, if ratios are unknown or not needed, or if a learner
                with one step size has diverged (see :class:`gvf.LearnerReport`).
        """
        if not len(self.window):
            raise ValueError("the window is empty: observe some transitions first")
        if self.update.action_values:
            raise ValueError(
                f"{type(self.update).__name__} learns action values and needs no ratios: "
                "gvf.corrections.OnPolicy() is right, and there is nothing to diagnose"
            )
        if not self.knows_ratios:
            raise ValueError(
                "the ratios are not known: give the learner its behaviour, or transitions their "
                "behaviour_probability"
            )
        if corrections is None:
            own_correction = [self.correction] if self.correction.refresh is None else []
            corrections = list(dict.fromkeys([*DEFAULT_CORRECTIONS, *own_correction]))
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
                inputs,
                *updates,
                batch_size=k,
                corrections=corrections,
                batches=batches,
                rng=rng,
                estimated=report.estimated,
            )

        diagnoses = [diagnose_lane(lane) for lane in range(self.values.state.weights.shape[1])]
        if self.update.lanes is not None:
            return diagnoses
        if diagnoses[0] is None:
            raise ValueError(f"this learner has diverged: {report.divergence}")
        return diagnoses[0]
