"""Many questions from few parts: policies, cumulants and continuations in all combinations.

A question names its parts one by one, and a :class:`gvf.Horde` evaluates each distinct part once.
Parts that are computed together come from a bank: :class:`Columns` are cumulants (or continuations)
that one function returns as [m, many]. A :class:`PolicyBank` has many policies whose likelihoods
one function returns as [m, P]. Both are mappings from names to parts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import as_numbers, brief, whole
from gvf.common.fields import flattened
from gvf.policy import Policy
from gvf.policy.base import describe
from gvf.question import GVF, Signal
from gvf.transition import Transitions


@dataclass(frozen=True)
class Column:
    """One column of numbers [m, many] that belong to transitions; a cumulant or a continuation.

    Args:
        source: the name of a column of the transitions, [m, many], or a function of m transitions
            that returns [m, many].
        index: the position among the many.

    Example:
        >>> import gvf
        >>> batch = gvf.Transitions(next_state=[[1.0, 2.0], [3.0, 4.0]])
        >>> gvf.Columns("next_state", 2)["1"](batch)
        array([2., 4.])
    """

    source: str | Signal
    index: int

    def __call__(self, transitions: Transitions) -> NDArray[Any]:
        """Return the numbers of m transitions, [m]."""
        return numbers_of(self.source, transitions)[:, self.index]

    def __repr__(self) -> str:
        return f"{describe(self.source)}[{self.index}]"


def numbers_of(source: str | Signal, transitions: Transitions) -> NDArray[Any]:
    """Return the numbers [m, many] of a source of columns."""
    values = transitions[source] if isinstance(source, str) else source(transitions)
    numbers = as_numbers(values, describe(source))
    if numbers.dtype.names is not None and numbers.ndim == 1:
        numbers = flattened(numbers)
    if numbers.ndim != 2 or len(numbers) != len(transitions):
        raise ValueError(
            f"columns {describe(source)} have shape {numbers.shape} for {len(transitions)} "
            f"transitions, expected ({len(transitions)}, many)"
        )
    return numbers


class Columns(Mapping[str, Column]):
    """Named columns of numbers [m, many], for the cumulants of :func:`gvf.questions`.

    Args:
        source: the name of a column of the transitions with several numbers a row, such as
            ``"next_state"``, or a function of m transitions that returns [m, many]. Of a structured
            array, as of Dict observations, these are the numbers of all fields, field by field.
        names: the names of the columns in order, or their number; they are then named "0", "1", ...

    Example:
        >>> import gvf
        >>> sensors = gvf.Columns("next_state", ["distance", "bump"])
        >>> sensors["bump"]
        'next_state'[1]
    """

    def __init__(self, source: str | Signal, names: Iterable[str] | int) -> None:
        if not isinstance(source, str) and not callable(source):
            raise TypeError(
                "the source of columns is the name of a column or a function of transitions, not "
                f"{brief(source)}"
            )
        listed = (
            [cast(str, name) for name in names]
            if isinstance(names, Iterable)
            else list(map(str, range(whole("names, if a number,", names, 1))))
        )
        self._columns = {name: Column(source, i) for i, name in enumerate(listed)}
        if len(self._columns) < len(listed):
            raise ValueError("two columns have the same name")

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class PolicyBank(Mapping[str, Policy]):
    """Many policies that are evaluated together, for example the heads of a network.

    To write a bank, set ``names`` and implement ``log_probabilities``. ``bank[name]`` is a policy.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> class Turns(gvf.PolicyBank):
        ...     names = ("left", "right")
        ...     def log_probabilities(self, states, actions):
        ...         right = np.where(actions == 1, 0.9, 0.1)
        ...         return np.log(np.column_stack([1 - right, right]))
        >>> Turns()["right"].probability(np.zeros(2), np.array([0, 1]))
        array([0.1, 0.9])
    """

    names: tuple[str, ...]

    @abstractmethod
    def log_probabilities(self, states: Any, actions: Any) -> Floats:
        """Return the log probability, or log density, of each action by each policy: [m, P]."""

    def __getitem__(self, name: str) -> Policy:
        if name not in self.names:
            raise KeyError(name)
        return Member(self, self.names.index(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


@dataclass(frozen=True, repr=False)
class Member(Policy):
    """One policy of a bank."""

    bank: PolicyBank
    index: int

    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Return the log probability, or log density, of each action in its state: float64[m]."""
        return self.bank.log_probabilities(states, actions)[:, self.index]

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[Any]:
        """Raise an error: a bank gives likelihoods, and draws no actions."""
        raise NotImplementedError("a policy of a gvf.PolicyBank draws no actions")

    def __repr__(self) -> str:
        return f"{type(self.bank).__name__}()[{self.bank.names[self.index]!r}]"


def questions(
    policies: Mapping[str, Policy],
    cumulants: Mapping[str, str | Signal],
    continuations: Iterable[float | Signal] | Mapping[str, float | Signal],
) -> list[GVF]:
    """Return the questions of all combinations, named "policy, cumulant, continuation".

    Args:
        policies: the target policies by name, or a :class:`gvf.PolicyBank`.
        cumulants: the cumulants by name, or :class:`gvf.Columns`.
        continuations: the continuations, numbers or functions, with or without names.

    Example:
        >>> import gvf
        >>> asked = gvf.questions(
        ...     {"left": gvf.Always(0, actions=2), "right": gvf.Always(1, actions=2)},
        ...     gvf.Columns("next_state", ["distance", "bump"]),
        ...     [0.0, 0.9],
        ... )
        >>> len(asked), asked[3].name
        (8, 'left, bump, 0.9')
    """
    for what, given in (("policies", policies), ("cumulants", cumulants)):
        if not isinstance(given, Mapping):
            raise TypeError(f"{what} must be a mapping from names, got {brief(given)}")
    if not isinstance(continuations, Mapping):
        if not isinstance(continuations, Iterable) or isinstance(continuations, str):
            raise TypeError(f"continuations must be a list, got {brief(continuations)}")
        listed = list(continuations)
        continuations = {describe(c) if callable(c) else f"{c}": c for c in listed}
        if len(continuations) < len(listed):
            raise ValueError("two continuations have the same name: give them as a mapping")
    return [
        GVF(policy, cumulant, continuation, name=f"{who}, {signal}, {horizon}")
        for who, policy in policies.items()
        for signal, cumulant in cumulants.items()
        for horizon, continuation in continuations.items()
    ]
