"""The base classes of policies, and the functions that discrete policies share.

A policy pi gives the probability, or density, pi(a|s) of an action in a state, and draws actions.
A policy over the actions 0, ..., A-1 is given by their probabilities, and a draw is

    the first action a with pi(0|s) + ... + pi(a|s) > u,    u uniform in [0, 1).

The other modules of this package hold the policies themselves; the checks are in
:mod:`gvf.policies.action_checks`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import brief
from gvf.common.fields import as_states
from gvf.policies.action_checks import generator, indices

FunctionOfStates = Callable[[Any], Any]
"""A function of a batch of states."""


class Choice(NamedTuple):
    """The distribution of a policy's actions in m given states, evaluated once.

    Neither function evaluates the policy again.
    """

    sample: Callable[[np.random.Generator], NDArray[Any]]
    """A function that draws one action for each state, as :meth:`Policy.sample` does."""
    likelihood: Callable[[Any], Floats]
    """A function from one action for each state to their likelihoods, as in :meth:`Policy.act`."""


class Policy(ABC):
    """The base class of policies; methods take a batch of m states (an array [m, ...]).

    Instead of a batch they take one ``Dict`` observation, or a list of them. Functions of states
    then get a structured array [m].

    To write a policy, implement ``log_probability`` and ``sample``. For discrete actions derive
    from :class:`DiscretePolicy` instead.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> class Exponential(gvf.policies.Policy):
        ...     def log_probability(self, states, actions):
        ...         return -np.asarray(actions)
        ...     def sample(self, states, *, rng):
        ...         return rng.exponential(size=len(states))
        >>> Exponential().probability(states=np.zeros(2), actions=np.log([2, 4]))
        array([0.5 , 0.25])
    """

    is_estimated: ClassVar[bool] = False
    """True for a policy that was estimated from a log; reports then say so of its ratios."""

    @abstractmethod
    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Return the log probability, or log density, of each action in its state: float64[m]."""

    @abstractmethod
    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw one action for each state: [m], or [m, d] for actions of d dimensions."""

    def probability(self, states: Any, actions: Any) -> Floats:
        """Return the probability, or density, of each action in its state: float64[m]."""
        return np.exp(self.log_probability(states, actions))

    def act(self, states: Any, *, rng: np.random.Generator) -> tuple[NDArray[Any], Floats]:
        """Draw one action for each state, and return it with its likelihood.

        The actions are those that ``sample`` draws from the same ``rng``. A policy that depends on
        the states, such as a network, is evaluated once, so the likelihood is that of the
        evaluation which chose the action. A subclass with its own ``sample`` method is evaluated
        twice, unless it also has its own ``act`` method.

        Returns:
            The actions, [m] or [m, d], and their likelihoods, float64[m]: probabilities for a
            :class:`DiscretePolicy`, log probabilities or log densities for other policies.

        Example:
            >>> import gvf
            >>> import numpy as np
            >>> policy = gvf.policies.Fixed([0.1, 0.9])
            >>> policy.act(np.zeros(3), rng=np.random.default_rng(2))
            (array([1, 1, 1]), array([0.9, 0.9, 0.9]))
        """
        choice = self._choice(as_states(states))
        actions = choice.sample(rng)
        return actions, choice.likelihood(actions)

    def _choice(self, states: Any) -> Choice:
        rate = self.probability if isinstance(self, DiscretePolicy) else self.log_probability
        return Choice(
            lambda rng: np.asarray(self.sample(states, rng=rng)),
            lambda actions: rate(states, actions),
        )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A class that overrides one of these methods must not inherit a shortcut that bypasses it.
        methods = vars(cls).keys()
        if methods & {"sample", "probability", "log_probability"}:
            for shortcut in {"act", "_choice"} - methods:
                setattr(cls, shortcut, getattr(Policy, shortcut))

    def __repr__(self) -> str:
        if not is_dataclass(self):
            return object.__repr__(self)
        # Mixture and Function have private discrete variants: show the public name.
        name = next(c.__name__ for c in type(self).__mro__ if not c.__name__.startswith("_"))
        return f"{name}({', '.join(describe(getattr(self, field.name)) for field in fields(self))})"


class DiscretePolicy(Policy):
    """A policy over the actions 0, ..., A-1, given by the probabilities of all actions.

    To write a discrete policy, set ``actions`` and implement ``probabilities``.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> class Proportional(gvf.policies.DiscretePolicy):
        ...     actions = 2
        ...     def probabilities(self, states):
        ...         return states / states.sum(axis=1, keepdims=True)
        >>> Proportional().probability(np.array([[1.0, 3.0], [2.0, 2.0]]), [1, 1])
        array([0.75, 0.5 ])
    """

    actions: int
    """The number of actions, A."""

    @abstractmethod
    def probabilities(self, states: Any) -> Floats:
        """Return the probability of every action in each state: float64[m, A], rows sum to 1."""

    def probability(self, states: Any, actions: Any) -> Floats:
        """Return the probability of each action in its state: float64[m]."""
        return pick(self.probabilities(as_states(states)), actions)

    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Return the log probability of each action in its state: float64[m], -inf for 0."""
        return log(self.probability(states, actions))

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw one action for each state, int64[m]; never one of probability 0."""
        return draw(thresholds(self.probabilities(as_states(states))), rng)

    def _choice(self, states: Any) -> Choice:
        table = self.probabilities(states)
        return Choice(
            lambda rng: draw(thresholds(table), rng),
            lambda actions: table[np.arange(len(table)), actions],
        )


def pick(table: Floats, actions: Any) -> Floats:
    """Return the probability of each row's action, [m], from a table of all actions, [m, A]."""
    return table[np.arange(len(table)), indices(actions, table.shape[1], len(table), "action")]


def thresholds(probabilities: Floats) -> Floats:
    """Return running sums [..., A]; the first sum above a uniform number gives the action."""
    sums = probabilities.cumsum(axis=-1)
    # Rounding may leave the total below the number drawn. The first sum that reaches the total
    # belongs to an action of positive probability, so that action gets the remainder.
    sums[sums >= sums[..., -1:]] = np.inf
    return sums


def draw(sums: Floats, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw one action for each row of thresholds, [m, A]: int64[m]."""
    uniform = generator(rng).random((len(sums), 1))
    return (sums > uniform).argmax(axis=1)


def log(probabilities: Floats) -> Floats:
    """Return logarithms, with -inf for 0 and no warning."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def check_same_actions(first: DiscretePolicy, second: DiscretePolicy) -> None:
    """Raise ValueError if two policies differ in their number of actions."""
    if first.actions != second.actions:
        raise ValueError(
            f"{brief(first)} has {first.actions} actions, {brief(second)} has {second.actions}; "
            "they must have the same"
        )


def describe(value: Any) -> str:
    """Return the ``repr`` of a value; a function is given by its name, without an address."""
    return getattr(value, "__qualname__", None) or repr(value) if callable(value) else repr(value)
