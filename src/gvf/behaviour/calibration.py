"""Calibration: one number that makes estimated probabilities less, or more, extreme.

    discrete      p(a|s) proportional to p(a|s)^(1/T)         (Guo et al. 2017)
    continuous    all standard deviations times T

T maximises the likelihood of rows that the model has not seen. A model that is too sure of itself
has T > 1 there. First each probability is mixed with the uniform one, as if each of the A actions
had been seen once more among the n rows: no ratio then divides by 0, and none exceeds n + A.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gvf.behaviour.behaviour_models import NormalsPolicy
from gvf.common.arrays import Array, Floats
from gvf.common.checks import brief
from gvf.policies import DiscretePolicy, Policy
from gvf.policies.action_checks import distributions
from gvf.policies.discrete import softmax

MOST = 20.0
"""The largest temperature; its inverse is the smallest."""


@dataclass(frozen=True, eq=False, repr=False)
class EstimatedPolicy(Policy):
    """An estimated policy with a density.

    Args:
        policy: the policy of a model, calibrated.
    """

    policy: Policy
    is_estimated: ClassVar[bool] = True

    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Return the log density of each action in its state: float64[m]."""
        return self.policy.log_probability(states, actions)

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw one action for each state: [m] or [m, d]."""
        return self.policy.sample(states, rng=rng)


@dataclass(frozen=True, eq=False, repr=False)
class EstimatedDiscretePolicy(DiscretePolicy):
    """An estimated policy with discrete actions.

    Args:
        policy: the policy of a model.
        rows: the number of rows it was fitted to.
        temperature: the temperature.

    Example:
        >>> import gvf
        >>> from gvf.behaviour.calibration import EstimatedDiscretePolicy
        >>> policy = EstimatedDiscretePolicy(
        ...     gvf.policies.Always(0, actions=2), rows=98, temperature=2.0
        ... )
        >>> policy.probabilities([0]).round(3)
        array([[0.909, 0.091]])
    """

    policy: DiscretePolicy
    rows: int
    temperature: float = 1.0
    is_estimated: ClassVar[bool] = True

    @property
    def actions(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The number of actions, A."""
        return self.policy.actions

    def probabilities(self, states: Any) -> Floats:
        """Return the probability of every action in each state: float64[m, A]."""
        mixture = mixed(self.policy.probabilities(states), self.rows)
        return mixture if self.temperature == 1.0 else softmax(np.log(mixture) / self.temperature)


def mixed(probabilities: Floats, rows: int) -> Floats:
    """Return probabilities [m, A] as if each action had been seen once more among n rows."""
    count = probabilities.shape[1]
    return (rows * probabilities + 1.0) / (rows + count)


def estimated(policy: Policy, count: int | None, rows: int, temperature: float = 1.0) -> Policy:
    """Wrap the policy of a model, so that it is known as an estimate.

    Raises:
        TypeError: if the model gave a density for discrete actions, or the other way round.
    """
    if count is None:
        if isinstance(policy, DiscretePolicy):
            raise TypeError(f"the actions are continuous, and the model gave {brief(policy)}")
        is_normal = isinstance(policy, NormalsPolicy)
        return EstimatedPolicy(policy.widened(temperature) if is_normal else policy)
    if not isinstance(policy, DiscretePolicy) or policy.actions != count:
        raise TypeError(
            f"the model must give a policy over {count} actions, and gave {brief(policy)}"
        )
    return EstimatedDiscretePolicy(policy, rows, temperature)


def temperature(policy: Policy, rows: int, states: Array, actions: Array) -> float:
    """Return the temperature that suits rows which a policy has not seen.

    Args:
        policy: the policy of a model.
        rows: the number of rows it was fitted to.
        states: the states of other rows, [m, ...].
        actions: the actions there.
    """
    if isinstance(policy, DiscretePolicy):
        probabilities = distributions(policy.probabilities(states), brief(policy))
        logs, at = np.log(mixed(probabilities, rows)), np.arange(len(actions))

        def loss(log_t: float) -> float:
            scaled = logs * math.exp(-log_t)
            top = scaled.max(axis=1)
            total = top + np.log(np.exp(scaled - top[:, None]).sum(axis=1))
            return float((total - scaled[at, actions]).mean())

        return math.exp(_least(loss))
    if isinstance(policy, NormalsPolicy):

        def surprise(log_t: float) -> float:
            widened = policy.widened(math.exp(log_t))
            return -float(widened.log_probability(states, actions).mean())

        return math.exp(_least(surprise))
    return 1.0  # of a density that is not ours


def _least(function: Callable[[float], float]) -> float:
    """Return the minimum of a function with one valley in [-log MOST, log MOST]."""
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    low, high = -math.log(MOST), math.log(MOST)
    a, b = high - golden * (high - low), low + golden * (high - low)
    at_a, at_b = function(a), function(b)
    while high - low > 1e-4:
        if at_a < at_b:
            high, b, at_b = b, a, at_a
            a = high - golden * (high - low)
            at_a = function(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + golden * (high - low)
            at_b = function(b)
    return (low + high) / 2.0
