"""Policies, and the ratios between them.

A policy gives the probability (or density) of an action in a state, and draws actions. Data comes
from a behaviour mu, a question asks about a target pi, and all that off-policy learning needs to
know about the two is the importance ratio of each transition,

    rho = pi(a|s) / mu(a|s),

which :func:`ratio` computes: by division for discrete actions, in log space for densities, which
underflow long before their ratio does. Everything is vectorised over a batch of m states.
Questions (:mod:`gvf.question`) hold a target policy; samplers and learners only ever see ratios.
"""

from __future__ import annotations

import importlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Function = Callable[[Any], Any]

_SUM_TOLERANCE = 1e-8
_RECORDED_TOLERANCE = 1e-6  # a probability of 1, recorded in single precision, may exceed 1
_LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)


class Policy(ABC):
    """What every policy can do, over a batch of m states (an array [m, ...]).

    To write one, implement ``log_probability`` and ``sample``; for discrete actions derive from
    :class:`DiscretePolicy` instead.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> class Exponential(gvf.Policy):
        ...     def log_probability(self, states, actions):
        ...         return -np.asarray(actions)
        ...     def sample(self, states, *, rng):
        ...         return rng.exponential(size=len(states))
        >>> Exponential().probability(states=np.zeros(2), actions=np.log([2, 4]))
        array([0.5 , 0.25])
    """

    @abstractmethod
    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Log probability, or log density, of each action in its state: float64[m]."""

    @abstractmethod
    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[Any]:
        """One action for each state: [m], or [m, d] for actions of d dimensions."""

    def probability(self, states: Any, actions: Any) -> Floats:
        """Probability, or density, of each action in its state: float64[m]."""
        return np.exp(self.log_probability(states, actions))

    def __repr__(self) -> str:
        if not is_dataclass(self):
            return object.__repr__(self)
        # Mixture and FunctionPolicy have private discrete variants; show the name one calls.
        name = next(c.__name__ for c in type(self).__mro__ if not c.__name__.startswith("_"))
        return f"{name}({', '.join(describe(getattr(self, field.name)) for field in fields(self))})"


class DiscretePolicy(Policy):
    """A policy over the actions 0, ..., A-1, known by the probabilities of all of them.

    To write one, set ``actions`` and implement ``probabilities``.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> class Proportional(gvf.DiscretePolicy):
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
        """Probability of every action in each state: float64[m, A], rows sum to 1."""

    def probability(self, states: Any, actions: Any) -> Floats:
        """Probability of each action in its state: float64[m]."""
        return _pick(self.probabilities(states), actions)

    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Log probability of each action in its state: float64[m], -inf where it is 0."""
        return _log(self.probability(states, actions))

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[np.intp]:
        """One action for each state, int64[m]; an action of probability 0 is never drawn."""
        return _draw(_thresholds(self.probabilities(states)), rng)


class _SameEverywhere(DiscretePolicy):
    """The same probabilities in every state, so nothing is computed anew for a batch."""

    _row: Floats
    _row_thresholds: Floats

    def _settle(self, row: ArrayLike) -> None:
        (checked,) = _distributions([row], type(self).__name__)
        _set(self, _row=checked, _row_thresholds=_thresholds(checked))

    def probabilities(self, states: Any) -> Floats:
        return np.repeat(self._row[np.newaxis], _count(states), axis=0)

    def probability(self, states: Any, actions: Any) -> Floats:
        return self._row[_indices(actions, len(self._row), _count(states), "action")]

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[np.intp]:
        uniform = _generator(rng).random(_count(states))
        return self._row_thresholds.searchsorted(uniform, "right")


@dataclass(frozen=True, repr=False)
class Uniform(_SameEverywhere):
    """Every action with the same probability, 1/A.

    Args:
        actions: the number of actions, A.

    Example:
        >>> import gvf
        >>> gvf.Uniform(4).probability(states=[0, 0], actions=[1, 3])
        array([0.25, 0.25])
    """

    actions: int

    def __post_init__(self) -> None:
        _check_action(0, self.actions)
        self._settle(np.full(self.actions, 1 / self.actions))


@dataclass(frozen=True, repr=False, init=False)
class Fixed(_SameEverywhere):
    """The given probabilities, the same in every state.

    Args:
        probabilities: the probability of each action, [A].

    Example:
        >>> import gvf
        >>> policy = gvf.Fixed([0.1, 0.9])
        >>> policy
        Fixed((0.1, 0.9))
        >>> policy.probabilities(states=[0, 0])
        array([[0.1, 0.9],
               [0.1, 0.9]])
    """

    row: tuple[float, ...]

    def __init__(self, probabilities: ArrayLike) -> None:
        self._settle(probabilities)
        _set(self, row=tuple(self._row.tolist()), actions=len(self._row))


@dataclass(frozen=True, repr=False)
class Always(_SameEverywhere):
    """One action, always.

    Args:
        action: the action taken.
        actions: the number of actions, A.

    Example:
        >>> import gvf
        >>> gvf.Always(1, actions=3).probabilities(states=[0])
        array([[0., 1., 0.]])
    """

    action: int
    actions: int

    def __post_init__(self) -> None:
        _check_action(self.action, self.actions)
        self._settle(np.arange(self.actions) == self.action)


@dataclass(frozen=True, repr=False, init=False)
class Favour(_SameEverywhere):
    """One action with the given probability, the others sharing the rest evenly.

    Args:
        action: the favoured action (a low probability makes it the avoided one).
        probability: its probability.
        actions: the number of actions, A.

    Example:
        >>> import gvf
        >>> gvf.Favour(0, 0.5, actions=3).probabilities(states=[0])
        array([[0.5 , 0.25, 0.25]])
    """

    action: int
    share: float
    actions: int

    def __init__(self, action: int, probability: float, actions: int) -> None:
        _check_action(action, actions)
        if not 0 <= probability <= 1:
            raise ValueError(f"the probability of action {action} is {probability}, not in [0, 1]")
        _set(self, action=action, share=probability, actions=actions)
        row = np.full(actions, (1 - probability) / max(actions - 1, 1))
        row[action] = probability
        self._settle(row)


@dataclass(frozen=True, repr=False, init=False, eq=False)
class Table(DiscretePolicy):
    """Probabilities that depend on the state, where states are integers 0, ..., S-1.

    Args:
        probabilities: the probability of each action in each state, [S, A].

    Example:
        >>> import gvf
        >>> policy = gvf.Table([[0.1, 0.9], [1.0, 0.0]])
        >>> policy
        Table(2 states, 2 actions)
        >>> policy.probability(states=[0, 1, 1], actions=[1, 1, 0])
        array([0.9, 0. , 1. ])
    """

    rows: Floats

    def __init__(self, probabilities: ArrayLike) -> None:
        rows = _distributions(probabilities, "Table")
        rows.flags.writeable = False
        _set(self, rows=rows, actions=rows.shape[1])

    def probabilities(self, states: Any) -> Floats:
        """Probability of every action in each state: float64[m, A]."""
        return self.rows[self._indices(states)]

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[np.intp]:
        """One action for each state, int64[m]; an action of probability 0 is never drawn."""
        return _draw(self._row_thresholds[self._indices(states)], rng)

    def _indices(self, states: Any) -> NDArray[np.intp]:
        return _indices(states, len(self.rows), _count(states), "state")

    @cached_property
    def _row_thresholds(self) -> Floats:
        return _thresholds(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and np.array_equal(self.rows, other.rows)

    def __hash__(self) -> int:
        return hash((self.rows.shape, self.rows.tobytes()))

    def __repr__(self) -> str:
        return f"Table({len(self.rows)} states, {self.actions} actions)"


@dataclass(frozen=True, repr=False)
class Gaussian(Policy):
    """Normally distributed actions of one or more independent dimensions.

    The density is that of the action as drawn: where an environment clips actions, record them
    before clipping.

    Args:
        mean: a number (scalar actions, drawn as [m]), an array [d] (drawn as [m, d]), or a
            function of states that returns [m] or [m, d].
        sd: standard deviation, positive; given in the same ways.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> policy = gvf.Gaussian(mean=lambda states: 2 * states, sd=0.1)
        >>> policy.probability(states=np.array([0.0, 1.0]), actions=[0.1, 2.0]).round(3)
        array([2.42 , 3.989])
        >>> policy.sample(np.zeros(3), rng=np.random.default_rng(0)).shape
        (3,)
    """

    mean: ArrayLike | Function
    sd: ArrayLike | Function

    def __post_init__(self) -> None:
        for name in ("mean", "sd"):
            value = getattr(self, name)
            if not callable(value):
                # A number or a tuple of them, so that policies compare, hash and print.
                plain = np.asarray(value, np.float64).tolist()
                _set(self, **{name: tuple(plain) if isinstance(plain, list) else plain})
        if len(self._constants) == 2:
            self._parameters(states=())

    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Log density of each action, summed over its dimensions: float64[m].

        Actions are [m, d]; those of one dimension may also be [m].
        """
        mean, sd, _ = self._parameters(states)
        actions = np.asarray(actions, np.float64)
        count, dimensions = _count(states), max(mean.shape[1], sd.shape[1])
        flat = dimensions == 1 and actions.shape == (count,)
        if not flat and actions.shape != (count, dimensions):
            raise ValueError(
                f"actions have shape {actions.shape}, expected ({count}, {dimensions}): a row for "
                "each state, a column for each dimension of an action"
            )
        standard = (actions.reshape(count, dimensions) - mean) / sd
        return (-0.5 * standard * standard - np.log(sd) - _LOG_ROOT_TWO_PI).sum(axis=1)

    def sample(self, states: Any, *, rng: np.random.Generator) -> Floats:
        """One action for each state: [m] if mean and sd are scalar in each state, else [m, d]."""
        mean, sd, scalar = self._parameters(states)
        shape = _count(states), max(mean.shape[1], sd.shape[1])
        actions = mean + sd * _generator(rng).standard_normal(shape)
        return actions[:, 0] if scalar else actions

    @cached_property
    def _constants(self) -> dict[str, tuple[Floats, bool]]:
        names = [name for name in ("mean", "sd") if not callable(getattr(self, name))]
        return {name: _gaussian_parameter(name, getattr(self, name)) for name in names}

    def _parameters(self, states: Any) -> tuple[Floats, Floats, bool]:
        """Mean and sd, [m or 1, d or 1] each, and whether actions are scalars."""
        (mean, mean_scalar), (sd, sd_scalar) = (
            self._constants.get(name)
            or _gaussian_parameter(name, getattr(self, name)(states), (_count(states),))
            for name in ("mean", "sd")
        )
        if len({1, mean.shape[1], sd.shape[1]}) > 2:
            raise ValueError(f"mean has {mean.shape[1]} action dimensions, sd has {sd.shape[1]}")
        return mean, sd, mean_scalar and sd_scalar


@dataclass(frozen=True, repr=False, init=False)
class Mixture(Policy):
    """beta * first + (1 - beta) * second, of two discrete or two continuous policies.

    A mixture of discrete policies is a :class:`DiscretePolicy`.

    Args:
        first: followed with probability beta, chosen anew at every state.
        second: followed otherwise.
        beta: in [0, 1].

    Example:
        >>> import gvf
        >>> policy = gvf.Mixture(gvf.Always(0, actions=2), gvf.Uniform(2), beta=0.5)
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
        """Make the variant that is a DiscretePolicy, of two that are."""
        discrete = isinstance(first, DiscretePolicy) and isinstance(second, DiscretePolicy)
        return object.__new__(_DiscreteMixture if discrete else cls)

    def __init__(self, first: Policy, second: Policy, beta: float) -> None:
        if not (isinstance(first, Policy) and isinstance(second, Policy)):
            raise TypeError(f"a mixture is of two policies, not of {first!r} and {second!r}")
        if isinstance(first, DiscretePolicy) != isinstance(second, DiscretePolicy):
            raise TypeError(
                f"cannot mix {first!r} with {second!r}: one is discrete and one is not "
                "(a FunctionPolicy is discrete when it is given its number of actions)"
            )
        if not 0 <= beta <= 1:
            raise ValueError(f"beta must be in [0, 1], got {beta}")
        _set(self, first=first, second=second, beta=beta)

    def probability(self, states: Any, actions: Any) -> Floats:
        """Probability, or density, of each action in its state: float64[m]."""
        first = self.first.probability(states, actions)
        return self.beta * first + (1 - self.beta) * self.second.probability(states, actions)

    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Log probability, or log density, of each action in its state: float64[m]."""
        log_beta, log_rest = _log(np.array([self.beta, 1 - self.beta]))
        return np.logaddexp(
            log_beta + self.first.log_probability(states, actions),
            log_rest + self.second.log_probability(states, actions),
        )

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[Any]:
        """One action for each state, of a component drawn for that state: [m] or [m, d]."""
        chosen = _generator(rng).random(_count(states)) < self.beta
        first, second = (policy.sample(states, rng=rng) for policy in (self.first, self.second))
        if first.shape != second.shape:
            raise ValueError(
                f"the policies mixed draw actions of different shapes, {first.shape} and "
                f"{second.shape}"
            )
        return np.where(chosen.reshape(-1, *[1] * (first.ndim - 1)), first, second)


class _DiscreteMixture(Mixture, DiscretePolicy):
    first: DiscretePolicy
    second: DiscretePolicy

    def __init__(self, first: DiscretePolicy, second: DiscretePolicy, beta: float) -> None:
        super().__init__(first, second, beta)
        _check_same_actions(first, second)
        _set(self, actions=first.actions)

    def probabilities(self, states: Any) -> Floats:
        first = self.first.probabilities(states)
        return self.beta * first + (1 - self.beta) * self.second.probabilities(states)


@dataclass(frozen=True, repr=False, init=False)
class FunctionPolicy(Policy):
    """Whatever a function of the states says: a network, for instance.

    The function returns probabilities [m, A] (NumPy or torch), or a distribution with ``log_prob``
    and ``sample``, as in ``torch.distributions`` and Stable-Baselines3:
    ``FunctionPolicy(lambda states: Normal(network(torch.as_tensor(states)), 1.0))``.
    Single-precision probabilities are rescaled to sum to 1. Draws from a torch distribution are
    seeded by ``rng`` and leave torch's own random state as it was; a distribution that is not
    torch's draws in its own way, and ``rng`` has no say.

    Args:
        function: called with the batch of states as it is.
        actions: the number of actions; needed for the policy to be a :class:`DiscretePolicy`.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> def left_if_negative(states):
        ...     return np.where(states[:, :1] < 0, [0.9, 0.1], [0.1, 0.9])
        >>> policy = gvf.FunctionPolicy(left_if_negative, actions=2)
        >>> policy
        FunctionPolicy(left_if_negative, 2)
        >>> policy.probability(states=np.array([[-1.0], [1.0]]), actions=[0, 0])
        array([0.9, 0.1])
    """

    function: Function
    actions: int | None = None

    @overload
    def __new__(cls, function: Function, actions: int) -> _DiscreteFunctionPolicy: ...
    @overload
    def __new__(cls, function: Function, actions: None = None) -> FunctionPolicy: ...
    def __new__(cls, function: Any = None, actions: Any = None) -> FunctionPolicy:
        """Make the variant that is a DiscretePolicy, if the number of actions is known."""
        return object.__new__(cls if actions is None else _DiscreteFunctionPolicy)

    def __init__(self, function: Function, actions: int | None = None) -> None:
        if not callable(function):
            raise TypeError(f"function must be a function of the states, not {function!r}")
        if actions is not None:
            _check_action(0, actions)
        _set(self, function=function, actions=actions)

    def probability(self, states: Any, actions: Any) -> Floats:
        """Probability, or density, of each action in its state: float64[m]."""
        law = self.function(states)
        if hasattr(law, "log_prob"):
            return np.exp(_log_prob(law, actions, _count(states)).astype(np.float64))
        return _pick(self._table(law, states), actions)

    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Log probability, or log density, of each action in its state: float64[m]."""
        law = self.function(states)
        if hasattr(law, "log_prob"):
            return _log_prob(law, actions, _count(states)).astype(np.float64)
        return _log(_pick(self._table(law, states), actions))

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[Any]:
        """One action for each state: [m], or [m, d] for actions of d dimensions."""
        law = self.function(states)
        if hasattr(law, "log_prob"):
            return _sample(law, _generator(rng))
        return _draw(_thresholds(self._table(law, states)), rng)

    def _table(self, law: Any, states: Any) -> Floats:
        table = _distributions(law, describe(self.function))
        expected = (_count(states), self.actions or table.shape[1])
        if table.shape != expected:
            raise ValueError(
                f"{describe(self.function)} returned probabilities of shape {table.shape}, "
                f"expected {expected}: a row for each state, a column for each action"
            )
        return table


class _DiscreteFunctionPolicy(FunctionPolicy, DiscretePolicy):
    actions: int

    def probabilities(self, states: Any) -> Floats:
        law, count = self.function(states), _count(states)
        if hasattr(law, "log_prob"):
            logs = [_log_prob(law, np.full(count, a), count) for a in range(self.actions)]
            law = np.exp(np.stack(logs, axis=1))
        return self._table(law, states)


def ratio(
    target: Policy,
    states: Any,
    actions: Any,
    *,
    behaviour: Policy | None = None,
    behaviour_probability: ArrayLike | None = None,
    behaviour_log_probability: ArrayLike | None = None,
) -> Floats:
    """Importance ratios rho = pi(a|s) / mu(a|s) of m state-action pairs: float64[m], all finite.

    The behaviour mu is given in one of three ways: as a policy, or as the probabilities or log
    probabilities (densities, for continuous actions) recorded when the actions were chosen.

    Args:
        target: the policy asked about, pi.
        states: [m, ...].
        actions: [m] or [m, d].
        behaviour: the policy that chose the actions.
        behaviour_probability: mu(a|s), [m].
        behaviour_log_probability: log mu(a|s), [m]; better for densities, which underflow.

    Returns:
        The ratios; 0 wherever pi is 0.

    Raises:
        ValueError: if mu is 0 where pi is not, or a ratio is too large for a float64.

    Example:
        >>> import gvf
        >>> target, behaviour = gvf.Fixed([0.1, 0.9]), gvf.Uniform(2)
        >>> gvf.ratio(target, states=[0, 0], actions=[0, 1], behaviour=behaviour)
        array([0.2, 1.8])
        >>> gvf.ratio(target, states=[0, 0], actions=[0, 1], behaviour_probability=[0.9, 0.1])
        array([0.11111111, 9.        ])
    """
    ways = (behaviour, behaviour_probability, behaviour_log_probability)
    if sum(way is not None for way in ways) != 1:
        raise TypeError(
            "give the behaviour in exactly one way: behaviour=, behaviour_probability= or "
            "behaviour_log_probability="
        )
    if behaviour is not None and not isinstance(behaviour, Policy):
        raise TypeError(
            f"behaviour must be a policy, not {behaviour!r}; recorded probabilities go in "
            "behaviour_probability="
        )
    count, discrete = _count(states), isinstance(target, DiscretePolicy)
    if discrete and (isinstance(behaviour, DiscretePolicy) or behaviour_probability is not None):
        pi = target.probability(states, actions)
        if behaviour is not None:
            mu = behaviour.probability(states, actions)
        else:
            mu = _recorded(behaviour_probability, "behaviour_probability", count, 0.0, 1.0)
        rho, symbols = _quotient(pi, mu), ("pi", "mu")
    else:
        pi = target.log_probability(states, actions)
        if behaviour is not None:
            mu = behaviour.log_probability(states, actions)
        elif behaviour_probability is not None:
            mu = _log(_recorded(behaviour_probability, "behaviour_probability", count, 0.0, np.inf))
        else:
            most = 0.0 if discrete else np.inf
            name = "behaviour_log_probability"
            mu = _recorded(behaviour_log_probability, name, count, -np.inf, most)
        with np.errstate(over="ignore", invalid="ignore"):
            rho = np.where(pi == -np.inf, 0.0, np.exp(pi - mu))
        symbols = ("log pi", "log mu")
    if not np.isfinite(rho).all():
        at = int(np.isfinite(rho).argmin())
        where = f"transition {at} (action {np.asarray(actions)[at]})"
        raise ValueError(_no_ratio(where, float(pi[at]), float(mu[at]), symbols))
    return rho


def largest_ratio(target: DiscretePolicy, behaviour: DiscretePolicy, states: Any) -> float:
    """The largest ratio that any action can have in the given states.

    This is the constant that :class:`gvf.NormIS` divides by. For policies that are the same in
    every state, one state will do.

    Example:
        >>> import gvf
        >>> gvf.largest_ratio(gvf.Fixed([0.1, 0.9]), gvf.Fixed([0.9, 0.1]), states=[0])
        9.0
    """
    for policy in (target, behaviour):
        if not isinstance(policy, DiscretePolicy):
            raise TypeError(
                f"{policy!r} is not discrete, and ratios of densities may have no bound "
                "(a FunctionPolicy is discrete when it is given its number of actions)"
            )
    _check_same_actions(target, behaviour)
    if _count(states) == 0:
        raise ValueError("give at least one state")
    pi, mu = target.probabilities(states), behaviour.probabilities(states)
    rho = _quotient(pi, mu)
    row, action = divmod(int(rho.argmax()), target.actions)
    if not np.isfinite(rho[row, action]):
        where = f"state at position {row} (action {action})"
        raise ValueError(_no_ratio(where, pi[row, action], mu[row, action], ("pi", "mu")))
    return float(rho[row, action])


def describe(value: Any) -> str:
    """A value as a reader of a ``repr`` wants it: functions by name, without an address."""
    return getattr(value, "__qualname__", None) or repr(value) if callable(value) else repr(value)


def _set(instance: object, **values: Any) -> None:
    """Set attributes of a frozen instance, during its construction."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def _generator(rng: Any) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    raise TypeError(f"rng must be a numpy.random.Generator (np.random.default_rng(0)), not {rng!r}")


def _count(states: Any) -> int:
    try:
        return len(states)
    except TypeError:
        raise TypeError(
            f"states must be a batch, one row a state, not the single state {states!r}; "
            "give np.array([state])"
        ) from None


def _numpy(value: Any) -> NDArray[Any]:
    # A torch tensor may live on another device or carry a gradient; torch need not be imported.
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


def _log(probabilities: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def _check_action(action: Any, actions: Any) -> None:
    if not isinstance(actions, int | np.integer) or actions < 1:
        raise ValueError(f"actions, how many there are, must be a positive integer; got {actions}")
    if not isinstance(action, int | np.integer) or not 0 <= action < actions:
        raise ValueError(f"action {action} is not one of the actions 0 to {actions - 1}")


def _check_same_actions(first: DiscretePolicy, second: DiscretePolicy) -> None:
    if first.actions != second.actions:
        raise ValueError(
            f"{first!r} has {first.actions} actions, {second!r} has {second.actions}; "
            "they must have the same"
        )


def _distributions(values: Any, source: str) -> Floats:
    """A copy of rows of probabilities, float64[m, A], each checked to be a distribution."""
    array = _numpy(values)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"{source}: probabilities have shape {array.shape}, expected a row for each state and "
            "a column for each action"
        )
    rows = array.astype(np.float64)
    precision = float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0
    tolerance = max(_SUM_TOLERANCE, 16 * precision)
    with np.errstate(invalid="ignore"):
        sums = rows.sum(axis=1)
        good = (rows >= 0).all(axis=1) & (np.abs(sums - 1) <= tolerance)
    if not good.all():
        row = int(good.argmin())
        raise ValueError(
            f"{source}: the probabilities in row {row} are {rows[row]}, with sum {sums[row]}; "
            "they must not be negative or NaN, and must sum to 1"
        )
    return rows / sums[:, np.newaxis] if precision > _SUM_TOLERANCE else rows


def _indices(values: Any, size: int, count: int, kind: str) -> NDArray[np.intp]:
    """Actions or states as integers in [0, size), checked."""
    array = np.asarray(values)
    if array.shape != (count,):
        raise ValueError(f"{kind}s have shape {array.shape}, expected ({count},): one per state")
    if array.dtype.kind not in "iu":
        with np.errstate(invalid="ignore"):
            whole = array.astype(np.int64)
        if (whole != array).any():
            at = int((whole != array).argmax())
            raise ValueError(f"{kind} {array[at]} at position {at} is not an integer")
        array = whole
    good = (array >= 0) & (array < size)
    if not good.all():
        at = int(good.argmin())
        raise ValueError(f"{kind} {array[at]} at position {at} is not one of 0 to {size - 1}")
    return array.astype(np.intp, copy=False)


def _pick(table: Floats, actions: Any) -> Floats:
    return table[np.arange(len(table)), _indices(actions, table.shape[1], len(table), "action")]


def _thresholds(probabilities: Floats) -> Floats:
    """Running sums [..., A]: the first one greater than a uniform number is the action drawn."""
    sums = probabilities.cumsum(axis=-1)
    # Rounding may leave the total below the number drawn. The first sum to reach the total is
    # that of an action with positive probability, so the remainder is given to that one.
    sums[sums >= sums[..., -1:]] = np.inf
    return sums


def _draw(thresholds: Floats, rng: np.random.Generator) -> NDArray[np.intp]:
    uniform = _generator(rng).random((len(thresholds), 1))
    return (thresholds > uniform).argmax(axis=1)


def _recorded(values: Any, name: str, count: int, least: float, most: float) -> Floats:
    """A recorded column of probabilities, or of their logarithms, float64[m], checked."""
    array = np.asarray(_numpy(values), np.float64)
    if array.shape != (count,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({count},)")
    good = (array >= least) & (array <= most + _RECORDED_TOLERANCE) & (array < np.inf)
    if not good.all():
        at = int(good.argmin())
        limits = f"in [{least}, {most}]" if most < np.inf else f"at least {least}, and finite"
        raise ValueError(f"{name} at position {at} is {array[at]}; it must be {limits}")
    return array


def _gaussian_parameter(name: str, value: Any, batch: tuple[int, ...] = ()) -> tuple[Floats, bool]:
    """A mean or sd as checked rows [m or 1, d], and whether it is a scalar in each state.

    ``batch`` is (m,) for what a function returned, () for a constant.
    """
    array = np.asarray(_numpy(value), np.float64)
    if array.shape[: len(batch)] != batch or array.ndim > len(batch) + 1:
        raise ValueError(
            f"{name} has shape {array.shape}, expected {batch} for scalar actions, or "
            f"({', '.join(map(str, (*batch, 'd')))}) for actions of d dimensions"
        )
    rows = array.reshape(len(array) if batch else 1, -1)
    good = (rows > 0) & (rows < np.inf) if name == "sd" else np.isfinite(rows)
    if not good.all():
        row, column = np.argwhere(~good)[0]
        raise ValueError(
            f"{name} is {rows[row, column]}{f' in the state at position {row}' if batch else ''}; "
            f"it must be {'positive and ' if name == 'sd' else ''}finite"
        )
    return rows, array.shape == batch


def _quotient(pi: Floats, mu: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(pi == 0, 0.0, pi / mu)


def _no_ratio(where: str, pi: float, mu: float, symbols: tuple[str, str]) -> str:
    values = f"{where}: {symbols[0]} = {pi}, {symbols[1]} = {mu}"
    if math.isnan(pi) or math.isnan(mu) or pi == np.inf:
        return f"{values}; no ratio can be formed of these"
    if mu == (0.0 if symbols[1] == "mu" else -np.inf):
        return (
            f"{values}; the behaviour never takes this action but the target does, and no ratio "
            "corrects for that. Give the behaviour that chose the actions, or ask about a policy "
            "that takes only actions the behaviour also takes"
        )
    return f"{values}; their ratio is too large for a float64. Is the behaviour the right one?"


def _torch_of(distribution: Any) -> Any:
    """The torch module if the distribution wants tensors, else None."""
    homes = {base.__module__.partition(".")[0] for base in type(distribution).__mro__}
    return importlib.import_module("torch") if homes & {"torch", "stable_baselines3"} else None


def _tensors(torch: Any, part: Any) -> Iterator[Any]:
    """The tensors a distribution is made of; the first one tells its device and precision."""
    if isinstance(part, torch.Tensor):
        yield part
    elif isinstance(part, list) or hasattr(part, "log_prob"):
        for inner in part if isinstance(part, list) else vars(part).values():
            yield from _tensors(torch, inner)


def _log_prob(distribution: Any, actions: Any, count: int) -> NDArray[Any]:
    """Log probabilities [m] in the distribution's own precision."""
    array, torch = np.array(actions, order="C"), _torch_of(distribution)
    native: Any = array
    if torch is not None:
        like = next(_tensors(torch, distribution), torch.empty(0))
        # Integers stay integers: they are classes. Some densities insist on one floating type.
        dtype = like.dtype if array.dtype.kind == "f" else None
        native = torch.tensor(array, dtype=dtype, device=like.device)
    logs = _numpy(distribution.log_prob(native))
    if len(array) != count or logs.shape not in ((count,), array.shape):
        raise ValueError(
            f"log_prob returned shape {logs.shape} for actions of shape {array.shape} in {count} "
            f"states, expected ({count},), or one number for each dimension of each action"
        )
    return logs.sum(axis=tuple(range(1, logs.ndim)))


def _sample(distribution: Any, rng: np.random.Generator) -> NDArray[Any]:
    torch = _torch_of(distribution)
    if torch is None:
        return _numpy(distribution.sample())
    device = next(_tensors(torch, distribution), torch.empty(0)).device
    cuda = device.type == "cuda"
    # Torch distributions draw from a global stream: borrow it, seeded by ours, and put it back.
    with torch.random.fork_rng(devices=[device] if cuda else []):
        stream = torch.cuda.default_generators[device.index] if cuda else torch.default_generator
        stream.manual_seed(int(rng.integers(2**63)))
        return _numpy(distribution.sample())
