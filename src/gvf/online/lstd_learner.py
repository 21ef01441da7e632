"""The learner without a step size: least squares over all transitions so far.

    sum_i p_i w_i x_i (x_i - gamma_i x'_i)^T  w  =  sum_i p_i w_i c_i x_i

is what the mean update of TD(0) leads to, with any correction (p, w). The sums are kept, not the
transitions, so a log of any length needs one pass and the memory of its features squared
(:class:`gvf.online.least_squares.Equations`). :class:`gvf.online.LSTD` solves those of TD(lambda).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import brief, whole
from gvf.corrections import IS, Correction
from gvf.corrections.carried import Trace
from gvf.features import FeatureMap
from gvf.learners.base_learner import UNKNOWN, BaseLearner, group
from gvf.learners.learner_report import BaseReport
from gvf.learners.linear_values import LinearPrediction, check_features, represent
from gvf.online.counts import Seen
from gvf.online.least_squares import RIDGE, Equations, Solution, check_regulariser
from gvf.policies import Policy
from gvf.question import GVF, OnConflict, OnNaN
from gvf.rows import QuestionRows
from gvf.transition import without_last_states
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


class LSTDLearner(BaseLearner[LSTDReport]):
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
        behaviour: the policy that chooses the actions, if known. Otherwise transitions must have a
            column ``behaviour_probability`` or ``behaviour_log_probability``. A recorded
            probability takes precedence over the policy.
        regulariser: the number added to the diagonal of A, a sum over all transitions; None to add
            nothing, unless the equations are singular.
        max_features: the largest number of features that may occur.
        on_conflict: as in :class:`Learner`.
        on_nan: as in :class:`Learner`.

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
        behaviour: Policy | None = None,
        regulariser: float | None = None,
        max_features: int = 5000,
        on_conflict: OnConflict = "error",
        on_nan: OnNaN = "error",
    ) -> None:
        if not isinstance(question, GVF):
            raise TypeError(f"question must be a gvf.GVF, got {brief(question)}")
        check_features(features)
        if not isinstance(correction, Correction):
            raise TypeError(
                f"correction must be a gvf.corrections.Correction, got {brief(correction)}"
            )
        if regulariser is not None:
            check_regulariser(regulariser)
        super().__init__(
            question,
            behaviour,
            on_conflict,
            on_nan,
            needs_ratio=correction.needs_ratios,
            needs_interest=correction.trace is not None and question.interest is not None,
        )
        self.features, self.correction, self.regulariser = features, correction, regulariser
        self.equations = Equations(features.size, whole("max_features", max_features, 1))
        self._trace = Trace(correction)
        self._seen = Seen()
        self._solution: Solution | None = None

    @property
    def steps(self) -> int:
        """The number of transitions observed."""
        return self._seen.steps

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

    @property
    def trace(self) -> Trace:
        """The trace of the correction, which knows which transition follows which."""
        return self._trace

    @property
    def _keeps_order(self) -> bool:
        return self.correction.trace is not None and self.correction.looks_back

    def _observe(self, rows: QuestionRows) -> None:
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
        self._seen.add(ratio, continuation, x)

    @property
    def _prediction(self) -> LinearPrediction:
        return LinearPrediction(self.features, None, False, self.weights[:, None])

    @property
    def _has_learned(self) -> bool:
        return self.steps > 0

    def _values(self, states: Any) -> Floats:
        return self._prediction.predict(states)

    @property
    def _exported(self) -> dict[str, Any]:
        return {"question": repr(self.question), **vars(self._prediction)}

    def report(self) -> LSTDReport:
        """Return counts, statistics of the ratios, and what is known about the equations."""
        solution = self.solution
        fields = self._seen.report(solution.weights[:, None], self._range(self.steps)) | self._noted
        if self.seen[UNKNOWN]:
            names = ("mean_ratio", "max_ratio", "zero_ratios", "effective_sample_size")
            fields |= dict.fromkeys(names, float("nan"))
        return LSTDReport(
            **fields,
            features=solution.used,
            condition=solution.condition,
            is_singular=solution.is_singular,
            ridge=RIDGE if solution.is_singular and self.regulariser is None else 0.0,
            residual=solution.residual,
            remedy="give a regulariser, or a behaviour closer to the target",
        )

    def _parts(self) -> dict[str, Any]:
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
            **self._seen.checkpoint(),
            "seen": self.seen.copy(),
            **(self._solution.checkpoint() if self._solution else {}),
        }

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.equations.restore(group(arrays, "equations"))
        self.trace.restore(group(arrays, "trace"))
        self._seen.restore(arrays, self.features.size)
        self.seen[:] = arrays["seen"]
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
