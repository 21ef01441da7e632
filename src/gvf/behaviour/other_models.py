"""Models of a behaviour from other libraries: classifiers of scikit-learn, networks of torch.

Any object with ``fit(x, y)`` and ``predict_proba(x)`` is a classifier, from scikit-learn or not.
Any torch module that returns logits [m, A] is a network. Each fit begins with a fresh copy, so that
no fold knows of another.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.behaviour.classifiers import softmax
from gvf.behaviour.state_basis import ActiveFeatures, Basis, UserFeatures, flat
from gvf.common.arrays import Array, Floats
from gvf.common.checks import brief
from gvf.common.distribution import how_to_install
from gvf.policies import DiscretePolicy, Policy

_WIDTH, _EPOCHS, _PATIENCE, _BATCH = 64, 50, 4, 256


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
    try:
        ensemble: Any = import_module("sklearn.ensemble")
    except ImportError:
        raise ImportError(_missing("sklearn", "scikit-learn")) from None
    return ensemble.HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=300, early_stopping=True, l2_regularization=1.0
    )


@dataclass(frozen=True, eq=False)
class Network:
    """A network of torch that returns the logits of actions, trained by Adam.

    A tenth of the rows is held out to stop the training where these get worse.

    Args:
        module: the network, from states (or features) [m, ...] to logits [m, A]. It is copied for
            each fit. None for a network with two hidden layers of 64.
        features: a function from states to numbers [m, f]. By default a module takes the states as
            they are, and the network of ours in units of their standard deviation.
        step_size: the step size of Adam.
    """

    module: Any = None
    features: Any = None
    step_size: float = 1e-3

    @property
    def name(self) -> str:
        """A name for reports."""
        return "network"

    def estimate(
        self, states: Array, actions: Array, count: int | None, rng: np.random.Generator
    ) -> Policy:
        """Return the policy that chose the actions."""
        torch = _torch()
        assert count is not None
        take: Any = self.features
        if take is None and self.module is None:
            take = _linear(Basis.of(states))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**63)))
            inputs = _tensor(torch, take, states)
            ours = self.module is None
            network = _mlp(torch, inputs.shape[1], count) if ours else copy.deepcopy(self.module)
            _train(torch, network, inputs, torch.as_tensor(actions), self.step_size, rng)
        return NetworkPolicy(network, take, count)


@dataclass(frozen=True, eq=False, repr=False)
class NetworkPolicy(DiscretePolicy):
    """The policy of :class:`Network`.

    Args:
        network: the trained network.
        take: the function from states to its inputs; None for the states themselves.
        actions: the number of actions, A.
    """

    network: Any
    take: Any
    actions: int

    def probabilities(self, states: Any) -> Floats:
        """Return the probability of every action in each state: float64[m, A]."""
        torch = _torch()
        with torch.no_grad():
            logits = self.network(_tensor(torch, self.take, states)).double().numpy()
        if logits.shape != (len(states), self.actions):
            raise ValueError(
                f"the network must return logits {(len(states), self.actions)}, one for each "
                f"action, got {logits.shape}"
            )
        return softmax(logits)

    def __repr__(self) -> str:
        return f"NetworkPolicy({type(self.network).__name__}, {self.actions} actions)"


def _train(
    torch: Any, network: Any, x: Any, y: Any, step_size: float, rng: np.random.Generator
) -> None:
    """Train a network until held-out rows get worse, and keep the best weights."""
    order = rng.permutation(len(x))
    held_out, rest = np.split(order, [max(len(x) // 10, 1)])
    loss, optimiser = torch.nn.CrossEntropyLoss(), torch.optim.Adam(network.parameters(), step_size)
    best, kept, waited = np.inf, None, 0
    for _ in range(_EPOCHS):
        network.train()
        for rows in np.array_split(rng.permutation(rest), max(len(rest) // _BATCH, 1)):
            optimiser.zero_grad()
            loss(network(x[rows]), y[rows]).backward()
            optimiser.step()
        network.eval()
        with torch.no_grad():
            error = float(loss(network(x[held_out]), y[held_out]))
        if error < best:
            best, kept, waited = error, copy.deepcopy(network.state_dict()), 0
        else:
            waited += 1
            if waited == _PATIENCE:
                break
    if kept is not None:
        network.load_state_dict(kept)


def _mlp(torch: Any, size: int, count: int) -> Any:
    nn = torch.nn
    return nn.Sequential(
        *(nn.Linear(size, _WIDTH), nn.Tanh(), nn.Linear(_WIDTH, _WIDTH), nn.Tanh()),
        nn.Linear(_WIDTH, count),
    )


@dataclass(frozen=True)
class _linear:  # noqa: N801 (a function that can be pickled)
    """The linear features of a basis."""

    basis: Basis

    def __call__(self, states: Any) -> Floats:
        return self.basis(states)[:, : self.basis.linear]


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
    """Return a model of a classifier, a network or a function."""
    if isinstance(model, type):
        raise TypeError(f"model is the class {model.__name__}; give an object: {model.__name__}()")
    if hasattr(model, "estimate"):
        return model
    if hasattr(model, "fit") and hasattr(model, "predict_proba"):
        return Classifier(model, features)
    if any(base.__module__.partition(".")[0] == "torch" for base in type(model).__mro__):
        return Network(model, features)
    if callable(model):
        function: Any = model
        return FromFunction(function)
    raise TypeError(
        'model must be "counts", "logistic", "sklearn", "torch", "gaussian", "mixture", a '
        "classifier with fit and predict_proba, a torch module, or a function from states and "
        f"actions to a gvf.policies.Policy; got {brief(model)}"
    )


def _fresh(estimator: Any) -> Any:
    """Return an unfitted copy, as scikit-learn's clone does."""
    if hasattr(estimator, "get_params"):
        try:
            return import_module("sklearn.base").clone(estimator)
        except ImportError:
            pass
    return copy.deepcopy(estimator)


def _numbers(features: Any, states: Any) -> Floats:
    """Return the inputs of a classifier, float64[m, f]."""
    if features is None:
        return flat(states)
    x = UserFeatures.of(features, states)(states)
    if isinstance(x, ActiveFeatures):
        dense = np.zeros((len(states), x.size))
        dense[np.arange(len(states))[:, None], x.indices] = 1.0
        return dense
    return x[:, 1:]


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError:
        raise ImportError(_missing("torch", "PyTorch")) from None


def _tensor(torch: Any, take: Any, states: Any) -> Any:
    x = np.asarray(states if take is None else take(states))
    return torch.as_tensor(np.ascontiguousarray(x, np.float32))


def _missing(model: str, package: str) -> str:
    return f"model={model!r} needs {package}, which is not installed; " + how_to_install(
        f"gvf[{model}]"
    )
