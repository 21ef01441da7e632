"""Models of a behaviour that need nothing but NumPy: smoothed counts, and one Gaussian.

    counts      mu(a|s) = (n(s, a) + c m(a)) / (n(s) + c),    m(a) the share of a in all rows
    Gaussian    mu(a|s) = prod_j N(a_j; x(s) . w_j, sd_j(s)^2),    log sd_j(s) = x(s) . v_j

The features x bend in each dimension of the state (:mod:`gvf.behaviour.state_features`). A model is
fitted to rows, and the result is a :class:`gvf.policies.Policy`. :mod:`gvf.behaviour.classifiers`
has the models that need scikit-learn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gvf.behaviour.state_features import (
    ActiveFeatures,
    BentFeatures,
    UserFeatures,
    row_products,
    state_features,
    weighed_products,
)
from gvf.common.arrays import Array, Floats
from gvf.common.checks import check_choice, is_number
from gvf.policies import DiscretePolicy, Gaussian, Policy

Spread = Literal["linear", "constant"]
_NARROWEST = 1e-3
"""The least standard deviation, as a share of that of all actions: a density has no peaks of 0."""
_MOST_ROUNDS = 50
"""The largest number of rounds of a fit; some 5 are enough for most logs."""
_PRECISE = 1e-5
"""A fit ends where a round changes means and log standard deviations by less, in all rows."""
_MOST_FEATURES = 4000
"""The largest number of features of a Gaussian, which solves equations of so many unknowns."""


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
class Normals:
    """A normal distribution in each state: means and log standard deviations linear in features.

    Args:
        spread: "linear" if the logarithms of standard deviations are linear in the state,
            "constant" if standard deviations are the same everywhere.
        penalty: the penalty of large weights.
        features: a feature map, or a function from states to numbers [m, f]; by default those of
            :class:`gvf.behaviour.state_features.BentFeatures`, of which standard deviations use the
            linear ones.

    Example:
        >>> import numpy as np
        >>> from gvf.behaviour import Normals
        >>> rng = np.random.default_rng(0)
        >>> states = rng.normal(size=(2000, 1))
        >>> actions = 3 * states + 0.5 * rng.normal(size=(2000, 1))
        >>> policy = Normals().estimate(states, actions, None, rng)
        >>> policy
        NormalsPolicy(1 dimension)
        >>> bool(abs(policy.log_probability(states, actions).mean() - -0.726) < 0.05)
        True
    """

    spread: Spread = "linear"
    penalty: float = 1.0
    features: Any = None

    def __post_init__(self) -> None:
        check_choice("spread", self.spread, Spread)
        check_penalty(self.penalty)

    @property
    def name(self) -> str:
        """A name for reports."""
        return "Gaussian"

    def estimate(
        self, states: Array, actions: Array, count: int | None, rng: np.random.Generator
    ) -> Policy:
        """Return the policy that chose the actions."""
        features = state_features(self.features, states)
        centre, unit = actions.mean(axis=0), actions.std(axis=0)
        if not (unit > 1e-12 * np.maximum(1.0, np.abs(centre))).all():
            at = int(unit.argmin())
            raise ValueError(
                f"dimension {at} of the actions is always {centre[at]:g}, so it has no density: "
                "leave it out of the actions"
            )
        x = features(states)
        if x.shape[1] > _MOST_FEATURES:
            raise ValueError(
                f"a Gaussian is fitted with at most {_MOST_FEATURES} features, and these are "
                f"{x.shape[1] - 1}: choose a coarser feature map"
            )
        linear = features.linear if isinstance(features, BentFeatures) else x.shape[1]
        h = 1 if self.spread == "constant" else linear
        fits = [_fit(x, h, z, self.penalty) for z in ((actions - centre) / unit).T]
        mean, log_sd = (np.stack(weights, axis=1) for weights in zip(*fits, strict=True))
        return NormalsPolicy(features, mean, log_sd, centre, unit)


@dataclass(frozen=True, eq=False, repr=False)
class NormalsPolicy(Policy):
    """The policy of :class:`Normals`.

    Args:
        features: the features.
        mean: the weights of means, [f, D], in units of the actions' spread.
        log_sd: the weights of log standard deviations, [h, D], on the first h features.
        centre: the mean action, [D].
        unit: the standard deviation of all actions, [D].
        width: a factor of all standard deviations.
    """

    features: BentFeatures | UserFeatures
    mean: Floats
    log_sd: Floats
    centre: Floats
    unit: Floats
    width: float = 1.0

    def widened(self, width: float) -> NormalsPolicy:
        """Return the policy with all standard deviations times a factor."""
        return replace(self, width=self.width * width)

    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Return the log density of each action in its state: float64[m]."""
        return self._gaussian(states).log_probability(states, actions)

    def sample(self, states: Any, *, rng: np.random.Generator) -> Floats:
        """Draw one action for each state: [m, D]."""
        return self._gaussian(states).sample(states, rng=rng)

    def _gaussian(self, states: Any) -> Gaussian:
        """Return the policy in some states, with its means and standard deviations computed."""
        x = self.features(np.asarray(states))
        mean = self.centre + self.unit * (x @ self.mean)
        sd = self.width * self.unit * _standard_deviations(x, self.log_sd)
        return Gaussian(lambda _: mean, lambda _: sd)

    def __repr__(self) -> str:
        size = len(self.centre)
        return f"NormalsPolicy({size} dimension{'s' * (size > 1)})"


def _standard_deviations(x: Floats | ActiveFeatures, log_sd: Floats) -> Floats:
    """Return standard deviations, [m] or [m, D], in units of the actions' spread."""
    return np.exp(np.clip(_first(x, len(log_sd)) @ log_sd, math.log(_NARROWEST), 20.0))


def _first(x: Floats | ActiveFeatures, h: int) -> Floats | ActiveFeatures:
    """Return the first h features; the first of all is the constant."""
    if isinstance(x, ActiveFeatures):
        return x if h == x.size else ActiveFeatures(x.columns[:, :h], h)
    return x[:, :h]


def _fit(x: Floats | ActiveFeatures, h: int, z: Floats, penalty: float) -> tuple[Floats, Floats]:
    """Return the weights of the mean [f], and of the log standard deviation [h], of actions z [m].

    In turns, the mean is fitted by ridge regression with weights 1 / sd^2, and the spread to what
    errors would be if each row were left out, (z - x . w) / (1 - leverage): with many features the
    errors themselves are too small.
    """
    mean, log_sd, before = np.zeros(x.shape[1]), np.zeros(h), np.full(len(z), np.inf)
    for _ in range(_MOST_ROUNDS):
        precision = _standard_deviations(x, log_sd) ** -2.0
        products, sums = weighed_products(x, precision, z)
        inverse = np.linalg.inv(products + np.diag(_ridge(len(mean), penalty, precision)))
        mean = inverse @ sums
        fitted, leverage = x @ mean, precision * row_products(x, inverse)
        errors = (z - fitted) / np.maximum(1.0 - leverage, 1e-3)
        log_sd = _fit_spread(_first(x, h), errors**2, log_sd, penalty)
        if np.abs(fitted - before).max() < _PRECISE:
            break
        before = fitted
    return mean, log_sd


def _fit_spread(
    x: Floats | ActiveFeatures, squares: Floats, log_sd: Floats, penalty: float
) -> Floats:
    """Return the weights of log standard deviations that suit squared errors, beginning with some.

    With r = squares / sd^2 each step is a ridge regression of (r - 1) / (r + 1) with weights r + 1.
    The loss of a row has the curvature 2 r. With the mean of that and 2, its expectation, no step
    goes twice as far as it should.
    """
    for _ in range(_MOST_ROUNDS):
        r = squares * _standard_deviations(x, log_sd) ** -2.0
        ridge = _ridge(len(log_sd), penalty, r + 1.0)
        products, sums = weighed_products(x, r + 1.0, (r - 1.0) / (r + 1.0))
        step = np.linalg.solve(products + np.diag(ridge), sums - ridge * log_sd)
        longest = float(np.abs(x @ step).max())
        log_sd = log_sd + step / max(longest, 1.0)
        if longest < _PRECISE:
            break
    return log_sd


def _ridge(size: int, penalty: float, weights: Floats) -> Floats:
    """Return the penalty of each weight: of the constant the least, which solves what is singular.

    Even without a penalty, copies of a feature then share a weight.
    """
    least = 1e-8 * float(weights.sum())
    ridge = np.full(size, max(penalty, least))
    ridge[0] = least
    return ridge


def check_penalty(penalty: Any) -> None:
    """Raise ValueError unless a penalty is 0 or more."""
    if not is_number(penalty) or penalty < 0:
        raise ValueError(f"penalty must be 0 or more, got {penalty}")
