"""The learner that uses each transition once, when it happens.

    transitions -> question (ratio, cumulant, continuation, interest) -> steps -> kernel -> weights

It takes neither a window nor a correction. What belongs to a stream, the traces, is kept apart for
each environment of a vector environment; the weights are shared. A trace begins anew with each
episode, and after a transition that was left out for a NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import brief
from gvf.corrections import IS
from gvf.corrections.carried import Trace
from gvf.features import FeatureMap
from gvf.learners.learner_options import (
    AnyKeywords,
    AnyOptions,
    documents_options,
    options_of,
)
from gvf.learners.learner_report import BaseReport
from gvf.learners.linear_values import LinearPrediction, check_features, represent
from gvf.learners.one_question import OneQuestion, check_question
from gvf.learners.saved_state import group
from gvf.online.algorithm import Algorithm
from gvf.online.counts import RatioCounts
from gvf.online.online_loop import Steps, Streams, run, start_streams
from gvf.policies import DiscretePolicy
from gvf.question import GVF
from gvf.rows import QuestionRows
from gvf.transition import Transitions, without_last_states
from gvf.window.buffer import check_like


@dataclass(frozen=True)
class OnlineReport(BaseReport):
    """The counts of an online learner and the statistics of all ratios so far.

    A lane has diverged if a weight is not finite, or if the prediction for one of the latest 64
    states is more than 1000 times the largest possible return, as in :class:`LearnerReport`.

    Attributes:
        steps: the number of transitions observed, each of them once.
        mean_ratio: the mean ratio. It should be near 1; if not, the behaviour's probabilities are
            probably wrong.
        max_ratio: the largest ratio.
        zero_ratios: the share of ratios that are exactly 0.
        effective_sample_size: (sum rho)^2 / sum rho^2, at most ``steps``.
        diverged: the numbers of the lanes that have diverged.
        largest_predictions: the largest absolute prediction for recent states, one per lane.
        largest_return: the largest possible return.
        outside_bounds, outside_returns, return_range, endless: as in :class:`LearnerReport`, where
            ``endless`` is about all transitions so far.
        missing: the number of transitions skipped because of a NaN, with ``on_nan="skip"``.
        estimated: True if a ratio was formed with an estimated probability of the behaviour.
        remedy: the advice for lanes that have diverged.

    Example:
        >>> import gvf
        >>> question = gvf.GVF(gvf.policies.Always(0, actions=2), "reward", 0.9)
        >>> learner = gvf.OnlineLearner(
        ...     question,
        ...     gvf.features.OneHot(3),
        ...     gvf.online.TDLambda(0.1),
        ...     behaviour=gvf.policies.Uniform(2),
        ... )
        >>> learner.observe(0, 1, 0.0, 1, False)
        >>> learner.report()
        OnlineReport(1 steps; mean ratio 0, max 0, 100 % zeros, effective sample size 0)
    """

    def __repr__(self) -> str:
        return f"OnlineReport({self._steps}; {self._ratios}{self._warnings})"


@dataclass(frozen=True)
class _Arrival(IS):
    """Importance sampling that carries the continuation into each state."""

    label = "an online algorithm"

    @staticmethod
    def trace(carry, ratio, continuation, interest, restart, parameters):
        """Return the continuation of the transition before; 0 where an episode begins."""
        return 0.0 if restart else continuation


@documents_options(AnyOptions)
class OnlineLearner(OneQuestion[OnlineReport]):
    """A learner with linear values that learns online, with traces, from each transition once.

    Args:
        question: the question to answer.
        features: the representation: :class:`OneHot`, :class:`TileCoder`, :class:`Dense`, or any
            object with ``size`` that maps states to features.
        algorithm: the algorithm of :mod:`gvf.online`, such as :class:`online.TDLambda`. With
            sequences of parameters, one copy of the weights learns with each, and predictions are
            [m, lanes].
        {options}

    Transitions must come in the order of their stream; those that do not are refused. The columns
    ``stream`` and ``episode`` tell environments and episodes apart.

    Example:
        >>> import gymnasium, gvf
        >>> env = gymnasium.make("FrozenLake-v1", is_slippery=False)
        >>> question = gvf.GVF(gvf.policies.Favour(2, 0.9, actions=4), "reward", 0.9)
        >>> learner = gvf.OnlineLearner(
        ...     question,
        ...     gvf.features.OneHot(16),
        ...     gvf.online.TDLambda(0.1, 0.9),
        ...     behaviour=gvf.policies.Uniform(4),
        ... )
        >>> report = learner.learn(env, steps=2000, seed=0)
        >>> report.steps
        2000
        >>> learner.predict([14]).shape
        (1,)
    """

    kind = "online learner"

    def __init__(
        self,
        question: GVF,
        features: FeatureMap,
        algorithm: Algorithm,
        **options: Unpack[AnyKeywords],
    ) -> None:
        check_question(question)
        check_features(features)
        if not isinstance(algorithm, Algorithm):
            raise TypeError(
                "algorithm must be one of gvf.online, such as gvf.online.TDLambda(0.1), got "
                f"{brief(algorithm)}"
            )
        if algorithm.needs_probabilities and not isinstance(question.policy, DiscretePolicy):
            raise ValueError(
                f"{type(algorithm).__name__} needs the probabilities of actions, and "
                f"{brief(question.policy)} may have densities; if actions are discrete, give their "
                "number, gvf.policies.Function(function, actions=n), or else use TDLambda or "
                "VTraceLambda"
            )
        super().__init__(
            question,
            options_of(AnyOptions, self, options),
            needs_ratio=True,
            needs_interest=algorithm.uses_interest,
            features=features,
        )
        self.features, self.algorithm = features, algorithm
        self.state = algorithm.start(features.size)
        self.streams = start_streams(algorithm, self.state, 0)
        self.trace = Trace(_Arrival())
        self.counts = RatioCounts()

    @property
    def steps(self) -> int:
        """The number of transitions observed."""
        return self.counts.steps

    @property
    def weights(self) -> Floats:
        """The weights: [rows], or [rows, lanes] with several lanes.

        They are the weights themselves, not a copy, except for :class:`online.LSTD`, which solves
        for them.
        """
        weights = self.algorithm.weights(self.state)
        return weights[:, 0] if self.algorithm.lanes is None else weights

    def leave_out(self, batch: Transitions) -> None:
        """Let no transition follow these, which are all left out, or those before in a stream."""
        self.trace.leave_out(batch)

    def new_source(self, *, reset: bool) -> None:
        """Accept a next transition that does not follow; with `reset`, none follows."""
        self.trace.new_source(reset=reset)

    def observe_rows(self, rows: QuestionRows) -> None:
        """Learn from rows in order; if it fails, nothing has changed."""
        transitions, origin = rows.origin.transitions, rows.origin
        probability = np.ones(len(transitions))
        if self.algorithm.needs_probabilities:
            policy = self.question.policy
            probability = policy.probability(transitions["state"], transitions["action"])
        x, x_next = represent(self.features, without_last_states(transitions))
        with self.trace.undone():
            carried = self.trace.inputs(
                rows.ratio, rows.continuation, origin.batch, missing=origin.left_out
            )
        place = self.trace.places(transitions)
        new = int(place.max()) + 1 - len(self.streams.before)
        if new > 0:
            more = start_streams(self.algorithm, self.state, new)
            self.streams = Streams(*map(np.concatenate, zip(self.streams, more, strict=True)))
        steps = Steps(
            x=x,
            x_next=x_next,
            cumulant=rows.cumulant,
            continuation=rows.continuation,
            into=np.ascontiguousarray(carried[1]),
            ratio=rows.ratio,
            probability=np.ascontiguousarray(probability, np.float64),
            interest=rows.interest,
            stream=place,
        )
        run(self.algorithm, self.state, self.streams, steps)
        self.counts.add(rows.ratio, rows.continuation, x)

    @property
    def _prediction(self) -> LinearPrediction:
        weights = np.ascontiguousarray(self.algorithm.weights(self.state))
        return LinearPrediction(self.features, None, self.algorithm.lanes is not None, weights)

    @property
    def has_learned(self) -> bool:
        """True if there was a transition, or if weights were set."""
        return self.steps > 0 or bool(self.state.weights.any())

    def values_of(self, states: Any) -> Floats:
        """Return the values of a batch of states without a NaN, [m] or [m, lanes]."""
        return self._prediction.predict(states)

    def exported(self) -> dict[str, Any]:
        """Return the parts that predictions need, and a text about the question."""
        return {"question": repr(self.question), **vars(self._prediction)}

    def report(self) -> OnlineReport:
        """Return counts, statistics of the ratios, and the lanes that have diverged."""
        weights = self.algorithm.weights(self.state)
        return OnlineReport(
            **self.counts.report(weights, self.totals.range(self.steps)),
            **self.totals.fields(self.features, self.steps),
            remedy=self.algorithm.remedy,
        )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that make a learner like this one."""
        return {
            "question": self.question,
            "features": self.features,
            "algorithm": self.algorithm,
            "behaviour": self.behaviour,
            "on_conflict": self.on_conflict,
            "on_nan": self.on_nan,
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "weights": self.state.weights.copy(),
            "memory": self.state.memory.copy(),
            **{f"streams/{name}": a.copy() for name, a in self.streams._asdict().items()},
            **{f"trace/{name}": array for name, array in self.trace.checkpoint().items()},
            **self.counts.state_dict(),
            "seen": self.totals.state_dict(),
        }

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        saved = group(arrays, "streams")
        streams = start_streams(self.algorithm, self.state, len(saved["before"]))
        state = {"weights": self.state.weights, "memory": self.state.memory}
        for arrays_of_file, arrays_here in ((saved, streams._asdict()), (arrays, state)):
            for name, array in arrays_here.items():
                check_like(name, arrays_of_file[name], array)
                array[...] = arrays_of_file[name]
        _check_lists(streams)
        self.trace.restore(group(arrays, "trace"))
        self.counts.load_state_dict(arrays, self.features.size)
        self.streams = streams
        self.totals.load_state_dict(arrays["seen"])


def _check_lists(streams: Streams) -> None:
    """Raise ValueError if a list of rows is not one, because compiled loops check nothing."""
    rows = streams.listed.shape[2]
    for at in np.ndindex(streams.listed.shape[:2]):
        count, flags = streams.counts[at][0], np.zeros(rows, np.int64)
        listed = streams.listed[at][: max(count, 0)]
        if 0 <= count <= rows and ((listed >= 0) & (listed < rows)).all():
            flags[listed] = 1
        if flags.sum() != count or not np.array_equal(flags, streams.is_listed[at]):
            raise ValueError(f"the {count} listed rows of stream {at[0]} are not a list of rows")
