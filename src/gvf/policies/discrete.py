"""Policies over finitely many actions, with constant probabilities.

Most ignore the state, and are a single row of probabilities p[A],

    pi(a|s) = p[a]:    1/A (Uniform), any p (Fixed), one action (Always), mostly one (Favour);

:class:`Table` has a row for each of S states, pi(a|s) = p[s, a]. In :mod:`gvf.policies.function`
the probabilities are computed from the state instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import brief, set_frozen
from gvf.policies.action_checks import batch_size, check_action, distributions, generator, indices
from gvf.policies.policy import Choice, DiscretePolicy, draw, thresholds


class _SameEverywhere(DiscretePolicy):
    """A policy with the same probabilities in every state, computed once."""

    _row: Floats
    _row_thresholds: Floats

    def _settle(self, row: ArrayLike) -> None:
        (checked,) = distributions([row], type(self).__name__)
        set_frozen(self, _row=checked, _row_thresholds=thresholds(checked))

    def probabilities(self, states: Any) -> Floats:
        return np.repeat(self._row[np.newaxis], batch_size(states), axis=0)

    def probability(self, states: Any, actions: Any) -> Floats:
        return self._row[indices(actions, len(self._row), batch_size(states), "action")]

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[np.intp]:
        uniform = generator(rng).random(batch_size(states))
        return self._row_thresholds.searchsorted(uniform, "right")

    def act(self, states: Any, *, rng: np.random.Generator) -> tuple[NDArray[np.intp], Floats]:
        actions = self.sample(states, rng=rng)
        return actions, self._row[actions]

    def _choice(self, states: Any) -> Choice:
        return Choice(lambda rng: self.sample(states, rng=rng), self._row.__getitem__)


@dataclass(frozen=True, repr=False)
class Uniform(_SameEverywhere):
    """The policy that takes every action with the same probability, 1/A.

    Args:
        actions: the number of actions, A.

    Example:
        >>> import gvf
        >>> gvf.policies.Uniform(4).probability(states=[0, 0], actions=[1, 3])
        array([0.25, 0.25])
    """

    actions: int

    def __post_init__(self) -> None:
        check_action(0, self.actions)
        self._settle(np.full(self.actions, 1 / self.actions))


@dataclass(frozen=True, repr=False, init=False)
class Fixed(_SameEverywhere):
    """A policy with given probabilities, the same in every state.

    Args:
        probabilities: the probability of each action, [A].

    Example:
        >>> import gvf
        >>> policy = gvf.policies.Fixed([0.1, 0.9])
        >>> policy
        Fixed((0.1, 0.9))
        >>> policy.probabilities(states=[0, 0])
        array([[0.1, 0.9],
               [0.1, 0.9]])
    """

    row: tuple[float, ...]  # `probabilities` is a method

    def __init__(self, probabilities: ArrayLike) -> None:
        self._settle(probabilities)
        set_frozen(self, row=tuple(self._row.tolist()), actions=len(self._row))

    def constructor_arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor, for :mod:`gvf.common.describe`."""
        return {"probabilities": self.row}


@dataclass(frozen=True, repr=False)
class Always(_SameEverywhere):
    """The policy that always takes one action.

    Args:
        action: the action taken.
        actions: the number of actions, A.

    Example:
        >>> import gvf
        >>> gvf.policies.Always(1, actions=3).probabilities(states=[0])
        array([[0., 1., 0.]])
    """

    action: int
    actions: int

    def __post_init__(self) -> None:
        check_action(self.action, self.actions)
        self._settle(np.arange(self.actions) == self.action)


@dataclass(frozen=True, repr=False, init=False)
class Favour(_SameEverywhere):
    """The policy that takes one action with a given probability, and the others equally often.

    Args:
        action: the favoured action; with a low probability it is avoided instead.
        probability: the probability of ``action``.
        actions: the number of actions, A.

    Example:
        >>> import gvf
        >>> gvf.policies.Favour(0, 0.5, actions=3).probabilities(states=[0])
        array([[0.5 , 0.25, 0.25]])
    """

    action: int
    share: float  # `probability` is a method
    actions: int

    def __init__(self, action: int, probability: float, actions: int) -> None:
        check_action(action, actions)
        if not (isinstance(probability, int | float | np.number) and 0 <= probability <= 1):
            raise ValueError(
                f"the probability of action {action} is {brief(probability)}, not in [0, 1]"
            )
        set_frozen(self, action=action, share=probability, actions=actions)
        row = np.full(actions, (1 - probability) / max(actions - 1, 1))
        row[action] = probability
        self._settle(row)

    def constructor_arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor, for :mod:`gvf.common.describe`."""
        return {"action": self.action, "probability": self.share, "actions": self.actions}


@dataclass(frozen=True, repr=False, init=False, eq=False)
class Table(DiscretePolicy):
    """A policy given by a table, for states that are integers 0, ..., S-1.

    Args:
        probabilities: the probability of each action in each state, [S, A].

    Example:
        >>> import gvf
        >>> policy = gvf.policies.Table([[0.1, 0.9], [1.0, 0.0]])
        >>> policy
        Table(2 states, 2 actions)
        >>> policy.probability(states=[0, 1, 1], actions=[1, 1, 0])
        array([0.9, 0. , 1. ])
    """

    rows: Floats

    def __init__(self, probabilities: ArrayLike) -> None:
        rows = distributions(probabilities, "Table")
        rows.flags.writeable = False
        set_frozen(self, rows=rows, actions=rows.shape[1])

    def constructor_arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor, for :mod:`gvf.common.describe`."""
        return {"probabilities": self.rows}

    def probabilities(self, states: Any) -> Floats:
        """Return the probability of every action in each state: float64[m, A]."""
        return self.rows[self._indices(states)]

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw one action for each state, int64[m]; never one of probability 0."""
        return draw(self._row_thresholds[self._indices(states)], rng)

    def _choice(self, states: Any) -> Choice:
        rows = self._indices(states)
        return Choice(
            lambda rng: draw(self._row_thresholds[rows], rng),
            lambda actions: self.rows[rows, actions],
        )

    def _indices(self, states: Any) -> NDArray[np.intp]:
        return indices(states, len(self.rows), batch_size(states), "state")

    @cached_property
    def _row_thresholds(self) -> Floats:
        return thresholds(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and np.array_equal(self.rows, other.rows)

    def __hash__(self) -> int:
        return hash((self.rows.shape, self.rows.tobytes()))

    def __repr__(self) -> str:
        return f"Table({len(self.rows)} states, {self.actions} actions)"


def softmax(logits: Floats) -> Floats:
    """Return the probabilities of logits [m, A].

    Example:
        >>> import numpy as np
        >>> from gvf.policies.discrete import softmax
        >>> softmax(np.log([[1.0, 3.0], [3.0, 1.0]]) + 900)
        array([[0.25, 0.75],
               [0.75, 0.25]])
    """
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
