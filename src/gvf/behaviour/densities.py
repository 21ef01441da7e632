"""Models of a behaviour with continuous actions: mixtures of normal distributions, and one of them.

    mu(a|s) = sum_k g_k(s) prod_j N(a_j; x(s) . m_kj, sd_kj(s)^2),    g(s) = softmax(x(s) . v)

Means and the logarithms of the shares are linear in the features x, which bend in each dimension of
the state (:mod:`gvf.behaviour.state_basis`). Standard deviations are constant, or log-linear in the
state. One component is a Gaussian policy. All weights maximise the penalised likelihood together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from gvf.behaviour.classifiers import preconditioner, softmax
from gvf.behaviour.descent import minimise
from gvf.behaviour.state_basis import ActiveFeatures, Basis, UserFeatures, transposed_times
from gvf.common.arrays import Array, Floats
from gvf.common.checks import check_choice, is_number, whole
from gvf.policies import Policy
from gvf.policies.action_checks import batch_size, generator
from gvf.policies.policy import thresholds

Spread = Literal["linear", "constant"]
_LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)
_NARROWEST = 1e-3
"""The least standard deviation, as a share of that of all actions: a density has no peaks of 0."""


@dataclass(frozen=True)
class Normals:
    """A mixture of normal distributions; with one component, a Gaussian policy.

    Args:
        components: the number of normal distributions.
        spread: "linear" if the logarithms of standard deviations are linear in the state,
            "constant" if standard deviations are the same everywhere.
        penalty: the penalty of large weights.
        features: a feature map, or a function from states to numbers [m, f]; by default those of
            :class:`gvf.behaviour.state_basis.Basis`.

    Example:
        >>> import numpy as np
        >>> from gvf.behaviour import Normals
        >>> rng = np.random.default_rng(0)
        >>> states = rng.normal(size=(2000, 1))
        >>> actions = 3 * states + 0.5 * rng.normal(size=(2000, 1))
        >>> policy = Normals().estimate(states, actions, None, rng)
        >>> policy
        NormalsPolicy(1 component, 1 dimension)
        >>> bool(abs(policy.log_probability(states, actions).mean() - -0.726) < 0.05)
        True
    """

    components: int = 1
    spread: Spread = "linear"
    penalty: float = 1.0
    features: Any = None

    def __post_init__(self) -> None:
        whole("components", self.components, 1)
        check_choice("spread", self.spread, Spread)
        if not is_number(self.penalty) or self.penalty < 0:
            raise ValueError(f"penalty must be 0 or more, got {self.penalty}")

    @property
    def name(self) -> str:
        """A name for reports."""
        return "Gaussian" if self.components == 1 else f"mixture of {self.components} Gaussians"

    def estimate(
        self, states: Array, actions: Array, count: int | None, rng: np.random.Generator
    ) -> Policy:
        """Return the policy that chose the actions."""
        basis = (
            Basis.of(states) if self.features is None else UserFeatures.of(self.features, states)
        )
        centre, unit = actions.mean(axis=0), actions.std(axis=0)
        if not (unit > 1e-12 * np.maximum(1.0, np.abs(centre))).all():
            at = int(unit.argmin())
            raise ValueError(
                f"dimension {at} of the actions is always {centre[at]:g}, so it has no density: "
                "leave it out of the actions"
            )
        x = basis(states)
        weights = _fit(x, self._linear(basis), (actions - centre) / unit, self, rng)
        return NormalsPolicy(basis, *weights, centre, unit, self.spread)

    def _linear(self, basis: Basis | UserFeatures) -> int | None:
        """Return the number of the first features that standard deviations use; None for all."""
        if self.spread == "constant":
            return 1
        return basis.linear if isinstance(basis, Basis) else None


class _Weights(NamedTuple):
    """The weights of a mixture: means and log standard deviations are [f, K, D]."""

    gate: Floats
    """The weights of the logarithms of shares, [f, K]."""
    mean: Floats
    spread: Floats


@dataclass(frozen=True, eq=False, repr=False)
class NormalsPolicy(Policy):
    """The policy of :class:`Normals`.

    Args:
        basis: the features.
        gate: the weights of the components' shares, [f, K].
        mean: the weights of their means, [f, K, D], in units of the actions' spread.
        log_sd: the weights of their log standard deviations, [h, K, D], on the first h features.
        centre: the mean action, [D].
        unit: the standard deviation of all actions, [D].
        spread: as in :class:`Normals`.
        width: a factor of all standard deviations.
    """

    basis: Basis | UserFeatures
    gate: Floats
    mean: Floats
    log_sd: Floats
    centre: Floats
    unit: Floats
    spread: Spread
    width: float = 1.0

    def widened(self, width: float) -> NormalsPolicy:
        """Return the policy with all standard deviations times a factor."""
        return replace(self, width=self.width * width)

    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Return the log density of each action in its state: float64[m]."""
        values = np.asarray(actions, np.float64)
        size = len(self.centre)
        if values.shape[1:] not in ((size,), ()) or values.ndim == 1 < size:
            raise ValueError(
                f"actions have shape {values.shape}, expected ({batch_size(states)}, {size})"
            )
        z = (values.reshape(len(values), -1) - self.centre) / self.unit
        joint, _, _ = _parts(*self._law(states), z)
        return _log_sum(joint) - np.log(self.unit).sum()

    def sample(self, states: Any, *, rng: np.random.Generator) -> Floats:
        """Draw one action for each state: [m, D]."""
        shares, mean, sd = self._law(states)
        rows = np.arange(len(mean))
        uniform = generator(rng).random((len(mean), 1))
        chosen = (thresholds(softmax(shares)) > uniform).argmax(axis=1)
        noise = rng.standard_normal(mean.shape[::2])
        return self.centre + self.unit * (mean[rows, chosen] + sd[rows, chosen] * noise)

    def _law(self, states: Any) -> tuple[Floats, Floats, Floats]:
        """Return log shares [m, K], means and standard deviations [m, K, D] of the states."""
        x = self.basis(np.asarray(states))
        shares, mean, sd = _law(x, _Weights(self.gate, self.mean, self.log_sd))
        return shares, mean, self.width * sd

    def __repr__(self) -> str:
        sizes = (self.gate.shape[1], "component"), (len(self.centre), "dimension")
        texts = [f"{n} {what}{'s' * (n > 1)}" for n, what in sizes]
        return f"NormalsPolicy({', '.join(texts)})"


def _law(x: Any, weights: _Weights) -> tuple[Floats, Floats, Floats]:
    m, (h, count, size) = x.shape[0], weights.spread.shape
    first = x if isinstance(x, ActiveFeatures) and h == x.shape[1] else _first(x, h)
    mean = (x @ weights.mean.reshape(-1, count * size)).reshape(m, count, size)
    logs = (first @ weights.spread.reshape(-1, count * size)).reshape(m, count, size)
    return x @ weights.gate, mean, _NARROWEST + np.exp(np.clip(logs, -20.0, 20.0))


def _first(x: Any, h: int) -> Any:
    if isinstance(x, ActiveFeatures):
        assert h == 1
        return np.ones((x.shape[0], 1))
    return x[:, :h]


def _parts(shares: Floats, mean: Floats, sd: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
    """Return log joint densities [m, K], errors in standard deviations, and log shares."""
    shares = shares - _log_sum(shares)[:, None]
    errors = (z[:, None] - mean) / sd
    logs = -0.5 * errors * errors - np.log(sd) - _LOG_ROOT_TWO_PI
    return shares + logs.sum(axis=2), errors, shares


def _log_sum(logs: Floats) -> Floats:
    top = logs.max(axis=1)
    return top + np.log(np.exp(logs - top[:, None]).sum(axis=1))


def _fit(
    x: Any, linear: int | None, z: Floats, model: Normals, rng: np.random.Generator
) -> _Weights:
    """Return the weights that maximise the penalised likelihood of standardised actions [m, D]."""
    (m, f), size, count = x.shape, z.shape[1], model.components
    h = f if linear is None else linear
    ridge = np.full(f, model.penalty / m)
    ridge[0] = 1e-8
    # Ridge regression starts the means, and the spread of its errors starts the rest.
    scale = preconditioner(x, ridge)
    first = x if h == f else _first(x, h)
    narrow = preconditioner(first, ridge[:h])
    shapes = (f, count), (f, count, size), (h, count, size)
    cuts = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
    scales = scale, scale, narrow

    def unpacked(point: Floats) -> _Weights:
        parts = zip(np.split(point, cuts), shapes, scales, strict=True)
        return _Weights(
            *(
                (part.reshape(s[0], -1) if p is None else p @ part.reshape(s[0], -1)).reshape(s)
                for part, s, p in parts
            )
        )

    def loss(point: Floats) -> tuple[float, Floats]:
        weights = unpacked(point)
        shares, mean, sd = _law(x, weights)
        joint, errors, logs = _parts(shares, mean, sd, z)
        total = _log_sum(joint)
        value = -total.mean()
        belongs = np.exp(joint - total[:, None])[:, :, None]
        by_logs = belongs * (1.0 - errors * errors) * (sd - _NARROWEST) / sd
        slopes = (
            transposed_times(x, (np.exp(logs)[:, :, None] - belongs)[:, :, 0]),
            transposed_times(x, (-belongs * errors / sd).reshape(m, -1)),
            transposed_times(first, by_logs.reshape(m, -1)),
        )
        parts = []
        for weight, slope, p in zip(weights, slopes, scales, strict=True):
            matrix = weight.reshape(len(weight), -1)
            lost = ridge[: len(matrix), None]
            value += 0.5 * float((lost * matrix * matrix).sum())
            slope = slope / m + lost * matrix
            parts.append((slope if p is None else p.T @ slope).ravel())
        return float(value), np.concatenate(parts)

    start = _start(x, z, count, ridge, shapes, rng)
    inverse: list[Any] = [
        weight.reshape(len(weight), -1)
        if p is None
        else np.linalg.solve(p, weight.reshape(len(p), -1))
        for weight, p in zip(start, scales, strict=True)
    ]
    point = np.concatenate([part.ravel() for part in inverse])
    return unpacked(minimise(loss, np.asarray(point, np.float64)))


def _start(
    x: Any, z: Floats, count: int, ridge: Floats, shapes: Any, rng: np.random.Generator
) -> _Weights:
    """Return weights to begin with: one regression, whose errors are divided among components."""
    weights = _Weights(*(np.zeros(shape) for shape in shapes))
    errors = z
    if isinstance(x, np.ndarray):
        fitted = np.linalg.solve(x.T @ x / len(x) + np.diag(ridge), x.T @ z / len(x))
        errors = z - x @ fitted
        weights.mean[...] = fitted[:, None]
    centres, nearest = errors[rng.choice(len(errors), count, replace=False)], np.zeros(len(z), int)
    for _ in range(20):
        nearest = ((errors[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        for k in np.unique(nearest):
            centres[k] = errors[nearest == k].mean(axis=0)
    weights.mean[0] += centres
    weights.spread[0] = np.log(np.maximum((errors - centres[nearest]).std(axis=0), 0.05))
    return weights
