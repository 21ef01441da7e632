"""Models of a behaviour with discrete actions that scikit-learn fits, and any model of the caller.

    logistic    mu(a|s) = exp(x(s) . w_a) / sum_b exp(x(s) . w_b)

The weights w maximise the likelihood less half the sum of their squares, times a penalty. The
policy is a few arrays, and is evaluated in NumPy: a file can hold it, and whoever reads it needs no
scikit-learn. Any object with ``fit(x, y)`` and ``predict_proba(x)`` is a classifier, from
scikit-learn or not; each fit begins with a fresh copy, so that no fold knows of another.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.behaviour.behaviour_models import check_penalty
from gvf.behaviour.state_features import (
    ActiveFeatures,
    BentFeatures,
    UserFeatures,
    state_features,
)
from gvf.common.arrays import Array, Floats
from gvf.common.checks import brief
from gvf.common.distribution import how_to_install
from gvf.common.fields import as_matrix
from gvf.policies import DiscretePolicy, Policy
from gvf.policies.discrete import softmax

_MOST_EXACT = 600
"""The largest number of weights whose curvature, a matrix, is inverted; many are found roughly."""


@dataclass(frozen=True)
class Logistic:
    """Multinomial logistic regression, fitted by scikit-learn (``gvf[sklearn]``).

    Args:
        penalty: the penalty of large weights; 0 for none.
        features: a feature map, or a function from states to numbers [m, f]; by default those of
            :class:`gvf.behaviour.state_features.BentFeatures`, which bend in each dimension.

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

    def __post_init__(self) -> None:
        check_penalty(self.penalty)

    @property
    def name(self) -> str:
        """A name for reports."""
        return "logistic regression"

    def estimate(
        self, states: Array, actions: Array, count: int | None, rng: np.random.Generator
    ) -> Policy:
        """Return the policy that chose the actions."""
        assert count is not None
        features = state_features(self.features, states)
        x, (taken, visits) = features(states), np.unique(actions, return_counts=True)
        weights = np.zeros((x.shape[1], len(taken)))
        if min(weights.shape) == 1:  # nothing to tell actions apart by, or one action
            weights[0] = np.log(visits / len(actions))
            return LogisticPolicy(features, weights, taken, count)
        exact = weights.size <= _MOST_EXACT
        regression = _scikit_learn("linear_model", "logistic").LogisticRegression(
            C=1.0 / max(self.penalty, 1e-8),
            solver="newton-cholesky" if exact else "newton-cg",
            tol=1e-4 if exact else 1e-3,
            max_iter=1000,
        )
        matrix = x.sparse() if isinstance(x, ActiveFeatures) else x
        regression.fit(matrix[:, 1:], actions)
        # Of two actions it has the weights of the second alone.
        weights[:, -len(regression.coef_) :] = np.column_stack(
            [regression.intercept_, regression.coef_]
        ).T
        return LogisticPolicy(features, weights, taken, count)


@dataclass(frozen=True, eq=False, repr=False)
class LogisticPolicy(DiscretePolicy):
    """The policy of :class:`Logistic`.

    Args:
        features: the features.
        weights: the weights of the actions that were taken, [f, taken].
        taken: these actions; all others have probability 0.
        actions: the number of actions, A.
    """

    features: BentFeatures | UserFeatures
    weights: Floats
    taken: NDArray[Any]
    actions: int

    def probabilities(self, states: Any) -> Floats:
        """Return the probability of every action in each state: float64[m, A]."""
        out = np.zeros((len(states), self.actions))
        out[:, self.taken] = softmax(self.features(np.asarray(states)) @ self.weights)
        return out

    def __repr__(self) -> str:
        return f"LogisticPolicy({self.weights.shape[0]} features, {self.actions} actions)"


@dataclass(frozen=True, eq=False)
class Classifier:
    """A classifier with ``fit`` and ``predict_proba``, such as those of scikit-learn.

    Args:
        estimator: the classifier; None for scikit-learn's gradient-boosted trees. It is copied for
            each fit.
        features: a function from states to numbers [m, f]; by default the flattened states.

    Example:
        >>> import numpy as np
        >>> from gvf.behaviour import Classifier
        >>> class SameEverywhere:
        ...     def fit(self, x, y):
        ...         self.classes_, counts = np.unique(y, return_counts=True)
        ...         self.shares = counts / len(y)
        ...     def predict_proba(self, x):
        ...         return np.tile(self.shares, (len(x), 1))
        >>> model = Classifier(SameEverywhere())
        >>> policy = model.estimate(np.zeros((4, 2)), np.array([0, 2, 2, 2]), 3, None)
        >>> policy.probabilities(np.zeros((1, 2)))
        array([[0.25, 0.  , 0.75]])
    """

    estimator: Any = None
    features: Any = None

    @property
    def name(self) -> str:
        """A name for reports."""
        return "gradient-boosted trees" if self.estimator is None else type(self.estimator).__name__

    def estimate(
        self, states: Array, actions: Array, count: int | None, rng: np.random.Generator
    ) -> Policy:
        """Return the policy that chose the actions."""
        assert count is not None
        taken = np.unique(actions)
        x = _numbers(self.features, states)
        fitted = trees() if self.estimator is None else _fresh(self.estimator)
        if hasattr(fitted, "get_params") and fitted.get_params().get("random_state", 0) is None:
            fitted.set_params(random_state=int(rng.integers(2**31)))
        if len(taken) > 1:
            fitted.fit(x, actions)
        return ClassifierPolicy(fitted, self.features, taken, count)


@dataclass(frozen=True, eq=False, repr=False)
class ClassifierPolicy(DiscretePolicy):
    """The policy of :class:`Classifier`.

    Args:
        fitted: the classifier; it is not asked if only one action was taken.
        features: as in :class:`Classifier`.
        taken: the actions that were taken.
        actions: the number of actions, A.
    """

    fitted: Any
    features: Any
    taken: NDArray[Any]
    actions: int

    def probabilities(self, states: Any) -> Floats:
        """Return the probability of every action in each state: float64[m, A]."""
        out = np.zeros((len(states), self.actions))
        if len(self.taken) == 1 or not len(states):
            out[:, self.taken[0]] = 1.0
            return out
        probabilities = np.asarray(
            self.fitted.predict_proba(_numbers(self.features, states)), np.float64
        )
        classes = np.asarray(getattr(self.fitted, "classes_", self.taken)).astype(int)
        if probabilities.shape != (len(states), len(classes)) or not (probabilities >= 0).all():
            raise ValueError(
                f"predict_proba of {brief(self.fitted)} must return probabilities "
                f"{(len(states), len(classes))}, got {probabilities.shape}"
            )
        out[:, classes] = probabilities / probabilities.sum(axis=1, keepdims=True)
        return out

    def __repr__(self) -> str:
        return f"ClassifierPolicy({type(self.fitted).__name__}, {self.actions} actions)"


def trees() -> Any:
    """Return scikit-learn's gradient-boosted trees, which stop when held-out rows get worse."""
    return _scikit_learn("ensemble", "sklearn").HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=300, early_stopping=True, l2_regularization=1.0
    )


@dataclass(frozen=True)
class FromFunction:
    """A function from states and actions to the policy that chose them."""

    function: Callable[[Any, Any], Policy]

    @property
    def name(self) -> str:
        """A name for reports."""
        return getattr(self.function, "__name__", "a function").replace("<lambda>", "a function")

    def estimate(
        self, states: Array, actions: Array, count: int | None, rng: np.random.Generator
    ) -> Policy:
        """Return the policy that chose the actions."""
        policy = self.function(states, actions)
        if not isinstance(policy, Policy):
            raise TypeError(
                f"model must return a gvf.policies.Policy, and returned {brief(policy)}"
            )
        return policy


def as_model(model: Any, features: Any) -> Any:
    """Return a model of a classifier or a function."""
    if isinstance(model, type):
        raise TypeError(f"model is the class {model.__name__}; give an object: {model.__name__}()")
    if hasattr(model, "estimate"):
        return model
    if hasattr(model, "fit") and hasattr(model, "predict_proba"):
        return Classifier(model, features)
    if callable(model):
        function: Any = model
        return FromFunction(function)
    raise TypeError(
        'model must be "counts", "logistic", "sklearn", "gaussian", a classifier with fit and '
        "predict_proba, or a function from states and actions to a gvf.policies.Policy; got "
        f"{brief(model)}"
    )


def _fresh(estimator: Any) -> Any:
    """Return an unfitted copy, as scikit-learn's clone does."""
    if hasattr(estimator, "get_params"):
        try:
            return import_module("sklearn.base").clone(estimator)
        except ImportError:
            pass
    return copy.deepcopy(estimator)


def _numbers(features: Any, states: Any) -> Any:
    """Return the inputs of a classifier, float64[m, f]."""
    if features is None:
        return as_matrix(states)
    x = state_features(features, states)(states)
    return (x.sparse().toarray() if isinstance(x, ActiveFeatures) else x)[:, 1:]


def _scikit_learn(module: str, model: str) -> Any:
    """Return a module of scikit-learn."""
    try:
        return import_module(f"sklearn.{module}")
    except ImportError:
        raise ImportError(
            f"model={model!r} needs scikit-learn, which is not installed; "
            f"{how_to_install('gvf[sklearn]')}"
        ) from None
