"""The learner without a step size: least squares over all transitions so far.

    sum_i p_i w_i x_i (x_i - gamma_i x'_i)^T  w  =  sum_i p_i w_i c_i x_i

is what the mean update of TD(0) leads to, with any correction (p, w). The sums are kept, not the
transitions, so a log of any length needs one pass and the memory of its features squared
(:class:`gvf.online.least_squares.Equations`). :class:`gvf.online.LSTD` solves those of TD(lambda).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import brief, whole
from gvf.corrections import IS, Correction
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
from gvf.online.counts import RatioCounts
from gvf.online.least_squares import RIDGE, Equations, Solution, check_regulariser
from gvf.question import GVF
from gvf.rows import QuestionRows
from gvf.transition import Transitions, without_last_states
from gvf.updates.linear_kernels import Experience

_UNSOLVED = 1e-3
"""A residual above which a report says that the equations are not solved."""


@dataclass(frozen=True, kw_only=True)
class LSTDReport(BaseReport):
    """The counts of a :class:`LSTDLearner`, the statistics of all ratios, and the equations.

    Attributes:
        steps: the number of transitions observed.
        features: the number of features that occurred with a share above 0, and so have a weight.
        condition: an estimate of the condition number of the equations, each feature scaled by how
            often it occurred. About log10(condition) of 16 digits are lost.
        is_singular: True if the transitions do not determine all weights.
        ridge: the share of each feature's own weight in the sums that was added to the diagonal of
            A for this reason; 0 if none.
        residual: the length of A w - b as a share of that of b, scaled in the same way; about 0 if
            there is a solution.
        mean_ratio: the mean ratio. It should be near 1; if not, the behaviour's probabilities are
            probably wrong.
        max_ratio: the largest ratio.
        zero_ratios: the share of ratios that are exactly 0.
        effective_sample_size: (sum rho)^2 / sum rho^2, at most ``steps``.
        diverged: (0,) if the solution is useless, as in :class:`LearnerReport`; else empty.
        largest_predictions: the largest absolute prediction for the latest 64 states.
        largest_return: the largest possible return.
        outside_bounds, outside_returns, return_range, endless: as in :class:`LearnerReport`, where
            ``endless`` is about all transitions so far.
        missing: the number of transitions skipped because of a NaN, with ``on_nan="skip"``.
        remedy: the advice if the solution is useless.

    Example:
        >>> import gvf
        >>> question = gvf.GVF(gvf.policies.Always(0, actions=2), "reward", 0.9)
        >>> learner = gvf.LSTDLearner(
        ...     question, gvf.features.OneHot(3), behaviour=gvf.policies.Uniform(2)
        ... )
        >>> learner.observe(0, 0, 1.0, 1, True)
        >>> learner.report()
        LSTDReport(1 steps, 1 features, condition 1; mean ratio 2, max 2, 0 % zeros, \
effective sample size 1)
    """

    features: int
    condition: float
    is_singular: bool
    ridge: float
    residual: float

    def __repr__(self) -> str:
        text = f"{self.features} features, condition {self.condition:.2g}"
        if self.is_singular:
            text += ", SINGULAR: the transitions do not determine all weights"
            text += f", so a ridge of {self.ridge:g} was added" if self.ridge else ""
        if not self.residual <= _UNSOLVED:
            text += f"; residual {self.residual:.2g}: the equations have no good solution"
        return f"LSTDReport({self._steps}, {text}; {self._ratios}{self._warnings})"


@documents_options(AnyOptions)
class LSTDLearner(OneQuestion[LSTDReport]):
    """A learner by least squares: it needs no step size, and takes in each transition once.

    It solves for the weights to which the mean update of :class:`TD` leads. Use it if the features
    that occur are at most a few thousand: its memory is their square, and a solution takes their
    cube. It solves when it is asked for predictions. If the transitions do not determine all
    weights, as with most tile coders, it adds a ridge of 1e-9 of each feature's own share, which
    picks one of the solutions, and its report says so.

    Args:
        question: the question to answer.
        features: the representation: :class:`OneHot`, :class:`TileCoder`, :class:`Dense`, or any
            object with ``size`` that maps states to features.
        correction: the correction for the behaviour. Those that only reduce the variance of
            updates, as :class:`IR` does, have the same solution as :class:`IS`. Emphatic ones and
            :class:`VTrace` have their own.
        regulariser: the number added to the diagonal of A, a sum over all transitions; None to add
            nothing, unless the equations are singular.
        max_features: the largest number of features that may occur.
        {options}

    Example:
        >>> import gymnasium, gvf
        >>> env = gymnasium.make("FrozenLake-v1", is_slippery=False)
        >>> question = gvf.GVF(gvf.policies.Favour(2, 0.9, actions=4), "reward", 0.9)
        >>> learner = gvf.LSTDLearner(
        ...     question, gvf.features.OneHot(16), behaviour=gvf.policies.Uniform(4)
        ... )
        >>> learner.learn(env, steps=5000, seed=0).is_singular
        False
        >>> learner.predict([14]).round(2)
        array([0.96])
    """

    kind = "LSTD learner"
    passes = 1

    def __init__(
        self,
        question: GVF,
        features: FeatureMap,
        correction: Correction = IS(),  # noqa: B008 (frozen)
        *,
        regulariser: float | None = None,
        max_features: int = 5000,
        **options: Unpack[AnyKeywords],
    ) -> None:
        check_question(question)
        check_features(features)
        if not isinstance(correction, Correction):
            raise TypeError(
                f"correction must be a gvf.corrections.Correction, got {brief(correction)}"
            )
        if regulariser is not None:
            check_regulariser(regulariser)
        super().__init__(
            question,
            options_of(AnyOptions, self, options),
            needs_ratio=correction.needs_ratios,
            needs_interest=correction.trace is not None and question.interest is not None,
            features=features,
        )
        self.features, self.correction, self.regulariser = features, correction, regulariser
        self.equations = Equations(features.size, whole("max_features", max_features, 1))
        self.trace = Trace(correction)
        self.counts = RatioCounts()
        self._solution: Solution | None = None

    @property
    def steps(self) -> int:
        """The number of transitions observed."""
        return self.counts.steps

    @property
    def solution(self) -> Solution:
        """The solution of the equations so far."""
        if self._solution is None:
            self._solution = self.equations.solve(self.regulariser)
        return self._solution

    @property
    def weights(self) -> Floats:
        """The weights, [size]; 0 for features that did not occur."""
        return self.solution.weights

    def leave_out(self, batch: Transitions) -> None:
        """Let no transition follow these, which are all left out, or those before in a stream."""
        self.trace.leave_out(batch)

    def new_source(self, *, reset: bool) -> None:
        """Accept a next transition that does not follow; with `reset`, none follows."""
        self.trace.new_source(reset=reset)

    @property
    def keeps_order(self) -> bool:
        """True if the correction carries something from row to row."""
        return self.correction.trace is not None and self.correction.looks_back

    def observe_rows(self, rows: QuestionRows) -> None:
        """Add rows to the equations; if it fails, nothing has changed."""
        ratio, cumulant, continuation, interest, origin = rows
        x, x_next = represent(self.features, without_last_states(origin.transitions))
        with self.trace.undone():
            inputs = self.trace.inputs(
                ratio, continuation, origin.batch, interest=interest, missing=origin.left_out
            )
            block = np.ones((len(x), 1))  # state values have one block of weights
            experience = Experience(x, block, x_next, block, cumulant, continuation)
            self.equations.add(experience, shares(self.correction, inputs))
        self._solution = None
        self.counts.add(ratio, continuation, x)

    @property
    def _prediction(self) -> LinearPrediction:
        return LinearPrediction(self.features, None, False, self.weights[:, None])

    @property
    def has_learned(self) -> bool:
        """True if there was a transition."""
        return self.steps > 0

    def values_of(self, states: Any) -> Floats:
        """Return the values of a batch of states without a NaN, [m]."""
        return self._prediction.predict(states)

    def exported(self) -> dict[str, Any]:
        """Return the parts that predictions need, and a text about the question."""
        return {"question": repr(self.question), **vars(self._prediction)}

    def report(self) -> LSTDReport:
        """Return counts, statistics of the ratios, and what is known about the equations."""
        solution = self.solution
        signals = self.totals.range(self.steps)
        fields = self.counts.report(solution.weights[:, None], signals)
        if self.totals.last_unknown:
            names = ("mean_ratio", "max_ratio", "zero_ratios", "effective_sample_size")
            fields |= dict.fromkeys(names, float("nan"))
        return LSTDReport(
            **fields,
            **self.totals.fields(self.features, self.steps),
            features=solution.used,
            condition=solution.condition,
            is_singular=solution.is_singular,
            ridge=RIDGE if solution.is_singular and self.regulariser is None else 0.0,
            residual=solution.residual,
            remedy="give a regulariser, or a behaviour closer to the target",
        )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that make a learner like this one."""
        return {
            "question": self.question,
            "features": self.features,
            "correction": self.correction,
            "behaviour": self.behaviour,
            "regulariser": self.regulariser,
            "max_features": self.equations.most,
            "on_conflict": self.on_conflict,
            "on_nan": self.on_nan,
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        equations, trace = self.equations.checkpoint(), self.trace.checkpoint()
        return {
            **{f"equations/{name}": array for name, array in equations.items()},
            **{f"trace/{name}": array for name, array in trace.items()},
            **self.counts.state_dict(),
            "seen": self.totals.state_dict(),
            **(self._solution.checkpoint() if self._solution else {}),
        }

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.equations.restore(group(arrays, "equations"))
        self.trace.restore(group(arrays, "trace"))
        self.counts.load_state_dict(arrays, self.features.size)
        self.totals.load_state_dict(arrays["seen"])
        self._solution = Solution.restored(arrays)


def shares(correction: Correction, inputs: Floats) -> Floats:
    """Return p w of rows, as shares of that of a row whose inputs are 1, float64[m].

    The weight of a row may depend on its batch by a factor that all rows of the batch have in
    common. So each row is weighed in a batch with the row of inputs 1.

    Args:
        correction: the correction.
        inputs: the inputs of the rows, [C, m].

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.online.lstd_learner import shares
        >>> ratios = np.array([[0.0, 0.5, 3.0]])
        >>> shares(gvf.corrections.IR(), ratios), shares(gvf.corrections.VTrace(2.0), ratios)
        (array([0. , 0.5, 3. ]), array([0. , 0.5, 2. ]))
    """
    m = inputs.shape[1]
    every = np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1)
    p = correction.masses(every)
    pairs = np.column_stack([np.arange(m), np.full(m, m)])
    w = correction.weigh_rows(every, p, pairs, np.ones((m, len(inputs) + 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(p[:m] > 0.0, p[:m] * w[:, 0] / (p[m] * w[:, 1]), 0.0)
    if not np.isfinite(share).all():
        at = int(np.isfinite(share).argmin())
        raise ValueError(
            f"the weight of {correction.name} at position {at} is {w[at, 0]:g}, beside "
            f"{w[at, 1]:g} for a row of ratio 1, so their shares cannot be told"
        )
    return share
