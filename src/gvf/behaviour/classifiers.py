"""Models of a behaviour with discrete actions: smoothed counts, and logistic regression.

    counts      mu(a|s) = (n(s, a) + c m(a)) / (n(s) + c),    m(a) the share of a in all rows
    logistic    mu(a|s) = exp(x(s) . w_a) / sum_b exp(x(s) . w_b)

The weights w maximise the likelihood less half the sum of their squares, times a penalty.
:mod:`gvf.behaviour.other_models` has the classifiers of other libraries. A model is fitted to rows,
and the result is a :class:`gvf.policies.DiscretePolicy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gvf.behaviour.descent import minimise
from gvf.behaviour.state_basis import Basis, UserFeatures, transposed_times
from gvf.common.arrays import Array, Floats
from gvf.common.checks import is_number
from gvf.policies import DiscretePolicy, Policy

_MOST_PRECONDITIONED = 600
"""The largest number of features whose products are inverted."""


class Model(Protocol):
    """The interface of a model of a behaviour.

    A class of your own with these members can be given as ``model=``.

    Example:
        >>> import gvf
        >>> from gvf.behaviour import Model
        >>> class SameEverywhere:
        ...     name = "the same everywhere"
        ...     def estimate(self, states, actions, count, rng):
        ...         import numpy as np
        ...         return gvf.policies.Fixed(np.bincount(actions, minlength=count) / len(actions))
        >>> model: Model = SameEverywhere()
        >>> model.estimate([0, 0], [1, 1], 2, None)
        Fixed((0.0, 1.0))
    """

    @property
    def name(self) -> str:
        """A name for reports."""
        ...

    def estimate(
        self, states: Array, actions: Array, count: int | None, rng: np.random.Generator
    ) -> Policy:
        """Return the policy that chose the actions.

        Args:
            states: the states, [m, ...].
            actions: the actions, int64[m], or float64[m, d] if they are continuous.
            count: the number of actions; None if they are continuous.
            rng: the generator of whatever is random.
        """
        ...


@dataclass(frozen=True)
class Counts:
    """The smoothed frequency of each action in each state, for states that come again.

    Args:
        smoothing: the number of imagined visits to every state, c, with the mean frequencies.
        features: a function from states to integers [m] or [m, n] that tell states apart; by
            default the states themselves, which must be integers.

    Example:
        >>> import numpy as np
        >>> from gvf.behaviour import Counts
        >>> model = Counts(smoothing=1.0)
        >>> policy = model.estimate(np.array([0, 0, 0, 4]), np.array([1, 1, 0, 1]), 2, None)
        >>> policy.probabilities(np.array([0, 4, 9])).round(3)
        array([[0.312, 0.688],
               [0.125, 0.875],
               [0.25 , 0.75 ]])
    """

    smoothing: float = 1.0
    features: Any = None

    @property
    def name(self) -> str:
        """A name for reports."""
        return "counts"

    def __post_init__(self) -> None:
        if not is_number(self.smoothing) or self.smoothing < 0:
            raise ValueError(f"smoothing must be 0 or more, got {self.smoothing}")

    def estimate(
        self, states: Array, actions: Array, count: int | None, rng: np.random.Generator
    ) -> Policy:
        """Return the policy that chose the actions."""
        cells = _cells(self.features, states)
        known, cell = np.unique(cells, axis=0, return_inverse=True)
        assert count is not None
        visits = np.bincount(cell.ravel() * count + actions, minlength=len(known) * count)
        visits = visits.reshape(len(known), count).astype(np.float64)
        overall = visits.sum(axis=0) / visits.sum()
        rows = visits + self.smoothing * overall
        rows /= rows.sum(axis=1, keepdims=True)
        return CountsPolicy(known, np.concatenate([rows, overall[None]]), self.features)


@dataclass(frozen=True, eq=False, repr=False)
class CountsPolicy(DiscretePolicy):
    """The policy of :class:`Counts`.

    Args:
        known: the states seen, [S, n].
        rows: the probabilities in each of them, and in all others, [S + 1, A].
        features: as in :class:`Counts`.
    """

    known: NDArray[Any]
    rows: Floats
    features: Any = None

    @property
    def actions(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The number of actions, A."""
        return self.rows.shape[1]

    def probabilities(self, states: Any) -> Floats:
        """Return the probability of every action in each state: float64[m, A]."""
        cells = _cells(self.features, np.asarray(states))
        if cells.shape[1:] != self.known.shape[1:]:
            raise ValueError(
                f"states have {cells.shape[1]} numbers, and those of the log "
                f"have {self.known.shape[1]}"
            )
        joined = np.concatenate([self.known, cells])
        _, first, at = np.unique(joined, axis=0, return_index=True, return_inverse=True)
        # The known states are distinct and stand first, so they are the first of their kind.
        return self.rows[np.minimum(first[at.ravel()[len(self.known) :]], len(self.known))]

    def __repr__(self) -> str:
        return f"CountsPolicy({len(self.known)} states, {self.actions} actions)"


def _cells(features: Any, states: Array) -> NDArray[np.int64]:
    """Return what tells states apart, int64[m, n]."""
    cells = np.asarray(states if features is None else features(states))
    if cells.dtype.kind not in "biu":
        what = "features" if features is not None else "states"
        raise ValueError(
            f"counts need {what} that are integers, and these are {cells.dtype}: choose another "
            "model, or features=lambda states: ... that returns the number of a cell"
        )
    return cells.reshape(len(cells), -1).astype(np.int64)


@dataclass(frozen=True)
class Logistic:
    """Multinomial logistic regression, in NumPy alone.

    Args:
        penalty: the penalty of large weights; 0 for none.
        features: a feature map, or a function from states to numbers [m, f]; by default those of
            :class:`gvf.behaviour.state_basis.Basis`, which bend in each dimension.

    Example:
        >>> import numpy as np
        >>> from gvf.behaviour import Logistic
        >>> rng = np.random.default_rng(0)
        >>> states = rng.normal(size=(5000, 1))
        >>> right = 1 / (1 + np.exp(-2 * states[:, 0]))
        >>> actions = (rng.random(5000) < right).astype(int)
        >>> policy = Logistic().estimate(states, actions, 2, rng)
        >>> bool(np.abs(policy.probabilities(states)[:, 1] - right).mean() < 0.03)
        True
    """

    penalty: float = 1.0
    features: Any = None

    @property
    def name(self) -> str:
        """A name for reports."""
        return "logistic regression"

    def __post_init__(self) -> None:
        if not is_number(self.penalty) or self.penalty < 0:
            raise ValueError(f"penalty must be 0 or more, got {self.penalty}")

    def estimate(
        self, states: Array, actions: Array, count: int | None, rng: np.random.Generator
    ) -> Policy:
        """Return the policy that chose the actions."""
        assert count is not None
        taken = np.unique(actions)
        basis = (
            Basis.of(states) if self.features is None else UserFeatures.of(self.features, states)
        )
        x = basis(states)
        weights = _fit(x, np.searchsorted(taken, actions), len(taken), self.penalty)
        return LogisticPolicy(basis, weights, taken, count)


@dataclass(frozen=True, eq=False, repr=False)
class LogisticPolicy(DiscretePolicy):
    """The policy of :class:`Logistic`.

    Args:
        basis: the features.
        weights: the weights of the actions that were taken, [f, taken].
        taken: these actions; all others have probability 0.
        actions: the number of actions, A.
    """

    basis: Basis | UserFeatures
    weights: Floats
    taken: NDArray[Any]
    actions: int

    def probabilities(self, states: Any) -> Floats:
        """Return the probability of every action in each state: float64[m, A]."""
        out = np.zeros((len(states), self.actions))
        out[:, self.taken] = softmax(self.basis(np.asarray(states)) @ self.weights)
        return out

    def __repr__(self) -> str:
        return f"LogisticPolicy({self.weights.shape[0]} features, {self.actions} actions)"


def softmax(logits: Floats) -> Floats:
    """Return the probabilities of logits [m, A].

    Example:
        >>> import numpy as np
        >>> from gvf.behaviour.classifiers import softmax
        >>> softmax(np.log([[1.0, 3.0], [3.0, 1.0]]) + 900)
        array([[0.25, 0.75],
               [0.75, 0.25]])
    """
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _fit(x: Any, labels: NDArray[Any], classes: int, penalty: float) -> Floats:
    """Return the weights [f, classes] that maximise the penalised likelihood."""
    m, f = x.shape
    rows, ridge = np.arange(m), np.full((f, 1), penalty / m)
    ridge[0] = 1e-8  # the constant is free, up to what all classes share
    scale = preconditioner(x, ridge[:, 0]) if f <= _MOST_PRECONDITIONED else None

    def loss(point: Floats) -> tuple[float, Floats]:
        free = point.reshape(f, classes)
        weights = free if scale is None else scale @ free
        p = softmax(x @ weights)
        value = -np.log(np.maximum(p[rows, labels], 1e-300)).mean()
        value += 0.5 * float((ridge * weights * weights).sum())
        p[rows, labels] -= 1.0
        slope = transposed_times(x, p) / m + ridge * weights
        return float(value), (slope if scale is None else scale.T @ slope).ravel()

    weights = minimise(loss, np.zeros(f * classes)).reshape(f, classes)
    return weights if scale is None else scale @ weights


def preconditioner(x: Any, ridge: Floats) -> Floats | None:
    """Return a matrix P [f, f] so that the features times P are nearly uncorrelated.

    Steps in the coordinates of P are as if all features had the same curvature. None for features
    that are few among many.
    """
    if not isinstance(x, np.ndarray):
        return None
    values, vectors = np.linalg.eigh(0.25 * (x.T @ x) / len(x) + np.diag(ridge))
    return vectors / np.sqrt(np.maximum(values, 1e-8))
