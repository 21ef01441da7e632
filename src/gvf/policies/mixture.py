"""Mixtures of two policies.

A mixture follows one policy with probability beta and another otherwise, chosen anew in each state:

    pi(a|s) = beta pi_1(a|s) + (1 - beta) pi_2(a|s).

The two policies are both discrete or both continuous. A small share of
:class:`gvf.policies.Uniform` in a behaviour gives every action a positive probability, so that all
ratios exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import brief, set_frozen
from gvf.policies.action_checks import batch_size, generator, indices
from gvf.policies.policy import Choice, DiscretePolicy, Policy, check_same_actions, log


@dataclass(frozen=True, repr=False, init=False)
class Mixture(Policy):
    """The mixture beta * first + (1 - beta) * second of two discrete or two continuous policies.

    A mixture of discrete policies is a :class:`DiscretePolicy`.

    Args:
        first: the policy followed with probability beta, chosen anew in every state.
        second: the policy followed otherwise.
        beta: the probability of ``first``, in [0, 1].

    Example:
        >>> import gvf
        >>> policy = gvf.policies.Mixture(
        ...     gvf.policies.Always(0, actions=2), gvf.policies.Uniform(2), beta=0.5
        ... )
        >>> policy
        Mixture(Always(0, 2), Uniform(2), 0.5)
        >>> policy.probabilities(states=[0])
        array([[0.75, 0.25]])
    """

    first: Policy
    second: Policy
    beta: float

    @overload
    def __new__(
        cls, first: DiscretePolicy, second: DiscretePolicy, beta: float
    ) -> _DiscreteMixture: ...
    @overload
    def __new__(cls, first: Policy, second: Policy, beta: float) -> Mixture: ...
    def __new__(cls, first: Any = None, second: Any = None, beta: Any = None) -> Mixture:
        """Make a DiscretePolicy if both policies are discrete."""
        # Copying and unpickling give no arguments; there cls is the variant already.
        discrete = isinstance(first, DiscretePolicy) and isinstance(second, DiscretePolicy)
        return object.__new__(_DiscreteMixture if discrete else cls)

    # Written out, because type checkers ignore __new__ if the dataclass generates __init__.
    def __init__(self, first: Policy, second: Policy, beta: float) -> None:
        if not (isinstance(first, Policy) and isinstance(second, Policy)):
            raise TypeError(
                f"a mixture is of two policies, not of {brief(first)} and {brief(second)}"
            )
        if isinstance(first, DiscretePolicy) != isinstance(second, DiscretePolicy):
            raise TypeError(
                f"cannot mix {brief(first)} with {brief(second)}: one is discrete and one is not "
                "(a Function is discrete when it is given its number of actions)"
            )
        if not (isinstance(beta, int | float | np.number) and 0 <= beta <= 1):
            raise ValueError(f"beta must be in [0, 1], got {brief(beta)}")
        set_frozen(self, first=first, second=second, beta=beta)

    def probability(self, states: Any, actions: Any) -> Floats:
        """Return the probability, or density, of each action in its state: float64[m]."""
        first = self.first.probability(states, actions)
        return self._mean(first, self.second.probability(states, actions))

    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Return the log probability, or log density, of each action in its state: float64[m]."""
        first = self.first.log_probability(states, actions)
        return self._log_mean(first, self.second.log_probability(states, actions))

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw one action for each state, from a component drawn for that state: [m] or [m, d]."""
        return self._draw(self.first._choice(states), self.second._choice(states), states, rng)

    def _choice(self, states: Any) -> Choice:
        first, second = self.first._choice(states), self.second._choice(states)

        def likelihood(actions: Any) -> Floats:
            if not isinstance(self, DiscretePolicy):
                return self._log_mean(first.likelihood(actions), second.likelihood(actions))
            # An action of one policy is looked up in the other, which does not check it.
            actions = indices(actions, self.actions, batch_size(states), "action")
            return self._mean(first.likelihood(actions), second.likelihood(actions))

        return Choice(lambda rng: self._draw(first, second, states, rng), likelihood)

    def _draw(
        self, first: Choice, second: Choice, states: Any, rng: np.random.Generator
    ) -> NDArray[Any]:
        chosen = generator(rng).random(batch_size(states)) < self.beta
        actions, other_actions = first.sample(rng), second.sample(rng)
        if actions.shape != other_actions.shape:
            raise ValueError(
                f"the policies mixed draw actions of different shapes, {actions.shape} and "
                f"{other_actions.shape}"
            )
        return np.where(chosen.reshape(-1, *[1] * (actions.ndim - 1)), actions, other_actions)

    def _mean(self, first: Floats, second: Floats) -> Floats:
        return self.beta * first + (1 - self.beta) * second

    def _log_mean(self, first: Floats, second: Floats) -> Floats:
        log_beta, log_rest = log(np.array([self.beta, 1 - self.beta]))
        return np.logaddexp(log_beta + first, log_rest + second)


class _DiscreteMixture(Mixture, DiscretePolicy):
    first: DiscretePolicy
    second: DiscretePolicy

    def __init__(self, first: DiscretePolicy, second: DiscretePolicy, beta: float) -> None:
        super().__init__(first, second, beta)
        check_same_actions(first, second)
        set_frozen(self, actions=first.actions)

    def probabilities(self, states: Any) -> Floats:
        return self._mean(self.first.probabilities(states), self.second.probabilities(states))
