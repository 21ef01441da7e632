"""Fixed points of linear prediction: the weights at which the expected update is 0.

Linear TD methods do not converge to the values v that the features X represent best, but to
weights that depend on how states are weighed. In a table, with the target's moves

    P(s, s') = sum_a pi(a|s) sum_outcomes p gamma,    r(s) = sum_a pi(a|s) sum_outcomes p C,

and the behaviour's share d(s) of visits to each state, the weights w of TD(lambda) solve

    Z^T (r + P X w - X w) = 0,    Z = (I - lambda P^T)^-1 diag(m) X,    m = d.

Emphatic TD(lambda) has the same equation with the emphasis

    m = lambda d + (1 - lambda) f,    f = d + Q^T f,

where f is d times the mean of the follow-on trace. Q is P, or, in emphatic TD(lambda, beta), the
same with beta instead of gamma wherever gamma is not 0. The gradient methods GTD, GTD2, HTD and
TDC share TD's fixed point. The values themselves are in :mod:`gvf_lab.truth.exact_values`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gvf import GVF
from gvf.common.arrays import Floats
from gvf.policies import DiscretePolicy
from gvf_lab.truth.exact_values import Model
from gvf_lab.truth.true_values import TrueValues

_SINGULAR = 1e-12
"""The share of the largest singular value below which one counts as 0."""
_RESIDUAL = 1e-8
"""The largest relative residual of equations that have a solution."""


@dataclass(frozen=True, eq=False, repr=False)
class FixedPoint:
    """The fixed point of a linear prediction method.

    Attributes:
        weights: the weights w, float64[n]; those of least norm if several predict the same.
        values: the predictions X w in all states, float64[S].
        matrix: the matrix A of the expected update, which is proportional to b - A w,
            float64[n, n]. The expected updates converge for small step sizes if all eigenvalues
            have positive real parts.
        emphasis: the weight m of every state in the expected update, float64[S].

    Example:
        >>> from gvf_lab.domain import get
        >>> chain = get("markov-chain")
        >>> point = chain.fixed_point("hard", "hard")
        >>> point
        FixedPoint(10 weights, values from 0 to 0.9774)
        >>> point.error(chain.truth("hard")) < 1e-12  # a table represents all values
        True
    """

    weights: Floats
    values: Floats
    matrix: Floats
    emphasis: Floats

    def error(self, truth: TrueValues) -> float:
        """Compute the root mean square error in the states of the truth, with their weights."""
        return truth.root_mean_square_error(self.values[truth.states])

    def __repr__(self) -> str:
        return (
            f"FixedPoint({len(self.weights)} weights, values from {self.values.min():.4g} to "
            f"{self.values.max():.4g})"
        )


def fixed_point(
    model: Model,
    question: GVF,
    features: ArrayLike,
    visits: ArrayLike,
    *,
    trace_decay: float = 0.0,
    emphatic: bool = False,
    beta: float | None = None,
) -> FixedPoint:
    """Compute the fixed point of TD(lambda) or emphatic TD(lambda) in a tabular environment.

    With ``trace_decay=1`` the two are the same: the projection, which is the best that the features
    can represent, since it has the least mean square error over the visits. In states where all
    probabilities of the target are 0, nothing is learned.

    Args:
        model: the table of outcomes.
        question: the question; its policy must be discrete, with the model's actions.
        features: the features X of every state, float64[S, n].
        visits: the behaviour's share of visits to every state, float64[S], as from
            :meth:`gvf_lab.domain.TabularDomain.visits`. For an interest that is not 1 everywhere,
            give the product of visits and interest.
        trace_decay: lambda, in [0, 1].
        emphatic: True for emphatic TD.
        beta: the decay of the follow-on trace, in [0, 1]; by default the continuation.

    Raises:
        ValueError: if there is no fixed point, or if the follow-on trace has no finite mean.

    Example:
        Collision, where emphatic TD(0) has a much smaller error than TD(0):

        >>> import gvf, gvf_lab
        >>> from gvf_lab.domain import get
        >>> import numpy as np
        >>> collision = get("collision")
        >>> x = np.zeros((9, 6))
        >>> np.put_along_axis(x, collision.features(np.arange(9)), 1.0, axis=1)
        >>> visits, truth = collision.visits("turning"), collision.truth("wall", "turning")
        >>> for emphatic in (False, True):
        ...     point = gvf_lab.fixed_point(
        ...         collision.model, collision.question("wall"), x, visits, emphatic=emphatic
        ...     )
        ...     print(f"{point.error(truth):.4f}")
        0.5277
        0.1822
    """
    policy, (states, actions, _) = question.policy, model.probability.shape
    if not isinstance(policy, DiscretePolicy) or policy.actions != actions:
        raise ValueError(f"{policy} is not a discrete policy over the {actions} actions of {model}")
    for name, number in (("trace_decay", trace_decay), ("beta", beta)):
        if number is not None and not 0 <= number <= 1:
            raise ValueError(f"{name} must be in [0, 1], got {number}")
    if beta is not None and not emphatic:
        raise ValueError("beta is the decay of the follow-on trace: it needs emphatic=True")
    x, d = np.asarray(features, np.float64), np.asarray(visits, np.float64)
    if x.ndim != 2 or len(x) != states or d.shape != (states,):
        raise ValueError(
            f"features and visits have shapes {x.shape} and {d.shape}, expected ({states}, n) and "
            f"({states},)"
        )
    pi = policy.probabilities(np.arange(states)) * ~model.terminal[:, None]
    chance = pi[:, :, None] * model.probability
    cumulant, continuation = model.signals(question)
    moves = _matrix(model, chance * continuation)
    emphasis = d
    if emphatic:
        decayed = moves if beta is None else _matrix(model, chance * beta * (continuation > 0))
        follow_on = _solve(
            np.eye(states) - decayed.T, d, f"the follow-on trace of {question} has no finite mean"
        )
        emphasis = trace_decay * d + (1 - trace_decay) * follow_on
    traces = _solve(
        np.eye(states) - trace_decay * moves.T,
        emphasis[:, None] * x,
        f"the traces of {question} have no finite mean",
    )
    matrix = traces.T @ ((np.diag(pi.sum(axis=1)) - moves) @ x)
    right = traces.T @ (chance * cumulant).sum(axis=(1, 2))
    weights = _solve(matrix, right, f"there is no fixed point of {question} with these features")
    return FixedPoint(weights, x @ weights, matrix, emphasis)


def _matrix(model: Model, mass: Floats) -> Floats:
    """Sum the masses [S, A, B] of outcomes by state and next state, float64[S, S]."""
    states = len(model.terminal)
    matrix = np.zeros((states, states))
    state = np.broadcast_to(np.arange(states)[:, None, None], mass.shape)
    np.add.at(matrix, (state, model.next_state), mass)
    return matrix


def _solve(matrix: Floats, right: Floats, problem: str) -> Floats:
    """Return the solution of least norm, or raise ValueError if there is none."""
    solution = np.asarray(np.linalg.lstsq(matrix, right, rcond=_SINGULAR)[0], np.float64)
    scale = np.abs(right).max() + np.abs(matrix).max() * np.abs(solution).max()
    if np.abs(matrix @ solution - right).max() > _RESIDUAL * scale:
        raise ValueError(problem)
    return solution
