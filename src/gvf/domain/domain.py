"""What a domain is: an environment with the policies, questions and truth of an experiment.

Behaviours mu and questions (pi, C, gamma) go by name, and for any pair of them

    rho_max = max over reachable states s and actions a of pi(a|s) / mu(a|s)

is known. Policies tell states apart by their cell only (the state itself, in a table), so that each
is a table [cells, actions], which compiled loops can use. How values are found, and over which
states errors are averaged, differs: :mod:`gvf.domain.tabular` and
:mod:`gvf.domain.continuous_four_rooms`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.features import FeatureMap
from gvf.gym import gym
from gvf.policy import DiscretePolicy
from gvf.question import GVF
from gvf.truth import TrueValues

Floats = NDArray[np.float64]

PROTOCOLS = ("paper", "authors")
"""The paper's text with correct ground truth; or the settings of its authors' released code."""


@dataclass(frozen=True, eq=False, repr=False)
class Domain(ABC):
    """An environment, and what is asked in it.

    Attributes:
        name: as :func:`gvf.domain.get` knows it.
        protocol: "paper" or "authors".
        environment: the Gymnasium id.
        behaviours: policies that make data, by name.
        questions: what is predicted, by name.
        pairs: (question, behaviour), those that belong together.
        features: from states to what a linear value function is made of.
        initial_weights: float64[features.size], where learning starts.
        arguments: of the environment, for ``gymnasium.make``.

    Example:
        >>> from gvf.domain import get
        >>> get("four-rooms")
        Domain 'four-rooms' (protocol 'paper'), environment gvf/FourRooms-v0
          behaviours: uniform, random-state
          questions: down, favoured-down
          largest ratios: down/uniform 4, down/random-state 20,
            favoured-down/uniform 3.6, favoured-down/random-state 18
        >>> get("four-rooms").largest_ratio("down", "random-state")
        20.0
    """

    name: str
    protocol: str
    environment: str
    behaviours: dict[str, DiscretePolicy]
    questions: dict[str, GVF]
    pairs: tuple[tuple[str, str], ...]
    features: FeatureMap
    initial_weights: Floats
    arguments: dict[str, Any] = field(kw_only=True, default_factory=dict)

    def __post_init__(self) -> None:
        self.initial_weights.setflags(write=False)

    @property
    @abstractmethod
    def cells(self) -> NDArray[Any]:
        """A state in each of C cells, [C, ...], in the order of tables' rows."""

    @property
    @abstractmethod
    def reachable(self) -> NDArray[np.bool_]:
        """Which cells a transition can start in, bool[C]."""

    @abstractmethod
    def truth(self, question: str, behaviour: str | None = None) -> TrueValues:
        """True values of a question in the states over which errors are averaged."""

    def make(self, **options: Any) -> gym.Env[Any, Any]:
        """The environment; options such as ``render_mode`` go to ``gymnasium.make``."""
        return gym.make(self.environment, **(self.arguments | options))

    def behaviour(self, name: str) -> DiscretePolicy:
        """A behaviour by name."""
        return self.behaviours[known(name, self.behaviours, f"behaviour of {self.name}")]

    def question(self, name: str) -> GVF:
        """A question by name."""
        return self.questions[known(name, self.questions, f"question of {self.name}")]

    def target(self, question: str) -> DiscretePolicy:
        """The policy that a question is about."""
        policy = self.question(question).policy
        assert isinstance(policy, DiscretePolicy)
        return policy

    def table(self, policy: DiscretePolicy) -> Floats:
        """A policy that tells states apart by cell only, as float64[C, actions]."""
        return policy.probabilities(self.cells)

    def ratios(self, question: str, behaviour: str) -> Floats:
        """pi(a|s) / mu(a|s) as a table, float64[C, actions]."""
        return self.table(self.target(question)) / self.table(self.behaviour(behaviour))

    def largest_ratio(self, question: str, behaviour: str) -> float:
        """The largest ratio that a transition can have; every one of these pairs has a bound."""
        return float(self.ratios(question, behaviour)[self.reachable].max())

    def __repr__(self) -> str:
        ratios = [f"{q}/{b} {self.largest_ratio(q, b):.4g}" for q, b in self.pairs]
        lines = [", ".join(ratios[i : i + 2]) for i in range(0, len(ratios), 2)]
        return (
            f"Domain {self.name!r} (protocol {self.protocol!r}), environment {self.environment}\n"
            f"  behaviours: {', '.join(self.behaviours)}\n"
            f"  questions: {', '.join(self.questions)}\n"
            f"  largest ratios: {f',{chr(10)}    '.join(lines)}"
        )


def known(name: str, names: Iterable[str], kind: str) -> str:
    """The name itself, if it is one of those that are known."""
    if name in names:
        return name
    raise ValueError(f"unknown {kind}: {name!r}; known are {', '.join(map(repr, names))}")


def every_pair(questions: Iterable[str], behaviours: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Every question with every behaviour."""
    behaviours = list(behaviours)
    return tuple((question, behaviour) for question in questions for behaviour in behaviours)


def check_action(action: Any, names: tuple[str, ...]) -> int:
    """An action as an integer, if it is one of those named."""
    number = int(action) if isinstance(action, int | np.integer) else -1
    if 0 <= number < len(names):
        return number
    listed = ", ".join(f"{i} {name}" for i, name in enumerate(names))
    raise ValueError(f"action {action!r} is not one of {listed}")


def check_render_mode(render_mode: str | None, modes: Iterable[str]) -> str | None:
    """A render mode, if the environment has it."""
    return None if render_mode is None else known(render_mode, modes, "render_mode")
