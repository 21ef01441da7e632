"""Banks of policies: many policies whose likelihoods one function returns as [m, P]."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.policies.policy import Policy


class Bank(Mapping[str, Policy]):
    """Many policies that are evaluated together, for example the heads of a network.

    To write a bank, set ``names`` and implement ``log_probabilities``. ``bank[name]`` is a policy.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> class Turns(gvf.policies.Bank):
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

    bank: Bank
    index: int

    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Return the log probability, or log density, of each action in its state: float64[m]."""
        return self.bank.log_probabilities(states, actions)[:, self.index]

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[Any]:
        """Raise an error: a bank gives likelihoods, and draws no actions."""
        raise NotImplementedError("a policy of a Bank draws no actions")

    def __repr__(self) -> str:
        return f"{type(self.bank).__name__}()[{self.bank.names[self.index]!r}]"
