"""What a domain is: a world, the policies and questions of an experiment in it, and their truth.

A study needs no more of a world than :class:`Domain` has: named behaviours mu and questions
(pi, C, gamma), features, a walk of a policy as columns, and true values to compare with. To add a
world, subclass it, or use :class:`gvf.domain.GymnasiumDomain`, which does it all for any Gymnasium
environment. In ours, policies tell states apart by their cell only (:class:`CellDomain`), so that
walks and truths are compiled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.gym import gym
from gvf.common.names import known
from gvf.domain.trajectory import Trajectory
from gvf.features import FeatureMap
from gvf.policy import DiscretePolicy
from gvf.policy.base import set_frozen
from gvf.question import GVF
from gvf.truth import TrueValues

PROTOCOLS = ("paper", "authors")
"""The paper's text with correct ground truth; or the settings of its authors' released code."""


class Domain(ABC):
    """A world, and what is asked in it: all that a study needs to know.

    Attributes:
        name: for messages and files.
        behaviours: policies that make data, by name.
        questions: what is predicted, by name.
        pairs: (question, behaviour), those that belong together.
        features: from states to what a linear value function is made of.
        initial_weights: float64[features.size], where learning starts.

    ``walk`` and ``truth`` must be written. A domain may also have ``check``, which refuses pairs
    that cannot be learned; ``largest_ratio``, where ratios have a bound; ``make``, where there is
    an environment; and ``for_run``, where features or anything else are drawn anew for each run.

    Example:
        A world of one state, in which a coin is tossed; nothing but this is needed:

        >>> import gvf, numpy as np
        >>> from gvf.domain import Domain, Signals, Trajectory
        >>> class Coin(Domain):
        ...     name = "coin"
        ...     behaviours = {"fair": gvf.Uniform(2)}
        ...     questions = {"heads": gvf.GVF(gvf.Fixed([0.1, 0.9]), "reward", 0.0)}
        ...     pairs = (("heads", "fair"),)
        ...     features, initial_weights = gvf.OneHot(1), np.zeros(1)
        ...
        ...     def walk(self, policy, questions, steps, seed):
        ...         state, rng = np.zeros(steps, np.int64), np.random.default_rng(seed)
        ...         action, mu = policy.act(state, rng=rng)
        ...         t = gvf.Transitions(
        ...             state=state, action=action, reward=action, behaviour_probability=mu
        ...         )
        ...         signals = {q: Signals(*self.questions[q].evaluate(t)) for q in questions}
        ...         x = self.features(state)
        ...         return Trajectory(x, x, action, state, signals)
        ...
        ...     def truth(self, question, behaviour, *, states=1, seed=0):
        ...         return gvf.TrueValues(np.zeros(1, np.int64), np.array([0.9]), np.zeros(1))
        >>> Coin().walk(gvf.Uniform(2), ["heads"], 4, 0).signals["heads"].ratio
        array([1.8, 0.2, 0.2, 0.2])
    """

    name: str
    behaviours: Mapping[str, Any]
    questions: Mapping[str, GVF]
    pairs: tuple[tuple[str, str], ...]
    features: FeatureMap
    initial_weights: Floats
    repeats: ClassVar[bool] = False
    """Whether transitions repeat, and trajectories say which are alike (``Trajectory.kind``). Only
    then are methods affordable that need the whole window in every update."""
    generation: ClassVar[int] = 1
    """To be raised when the same study gives other numbers than before: it is part of a study's
    settings, so results of both do not mix."""

    @abstractmethod
    def walk(
        self,
        policy: Any,
        questions: Sequence[str],
        steps: int,
        seed: np.random.SeedSequence,
    ) -> Trajectory:
        """Let a policy act for some steps, and say what questions make of it.

        The policy is one of the behaviours, or the target of a question. The same arguments give
        the same trajectory, and the stream does not depend on which questions are asked.
        """

    @abstractmethod
    def truth(
        self, question: str, behaviour: str, *, states: int = 1000, seed: int = 0
    ) -> TrueValues:
        """True values of a question, in the states over which errors are averaged.

        Args:
            question: by name.
            behaviour: by name; where it goes may decide which states count, and how much.
            states: how many states count, where values are sampled.
            seed: of what is sampled.
        """

    def check(self, question: str, behaviour: str) -> None:  # noqa: B027 (may be left as it is)
        """Refuse a pair that cannot be learned, in one line; asked before anything is run.

        A domain that can tell refuses a behaviour that never does what the target may do, and a
        question whose returns never end.
        """

    def make(self, **options: Any) -> gym.Env[Any, Any]:
        """The environment, where there is one."""
        raise NotImplementedError(f"{self.name} has no Gymnasium environment")

    def largest_ratio(self, question: str, behaviour: str) -> float:
        """The largest ratio that a transition can have; inf where there is no bound."""
        return float("inf")

    def for_run(self, run: int, seed: int) -> Domain:
        """The domain as one run has it; by default the same in all runs.

        For domains in which something is drawn anew for each run, such as random features. All
        that runs must share stays: names, pairs, and the number of features.

        Args:
            run: the number of the run, from 0.
            seed: of the study. The same arguments must give the same domain.
        """
        return self

    def behaviour(self, name: str) -> Any:
        """A behaviour by name."""
        return self.behaviours[known(name, self.behaviours, f"behaviour of {self.name}")]

    def question(self, name: str) -> GVF:
        """A question by name."""
        return self.questions[known(name, self.questions, f"question of {self.name}")]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CellDomain(Domain):
    """A domain whose policies tell states apart by their cell only: the state itself, in a table.

    Each policy is a table [cells, actions], which compiled loops can use, and for any pair

        rho_max = max over reachable cells s and actions a of pi(a|s) / mu(a|s)

    is known. Where a question is not active its ratios are 0, and its target is not asked.

    Attributes:
        name: for messages and files.
        behaviours: policies that make data, by name.
        questions: what is predicted, by name.
        features: from states to what a linear value function is made of.
        pairs: (question, behaviour), those that belong together; by default all.
        initial_weights: float64[features.size], where learning starts; by default 0.
        protocol: "paper" or "authors", where they differ.
        environment: the Gymnasium id, where there is one.
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
    behaviours: Mapping[str, DiscretePolicy]
    questions: Mapping[str, GVF]
    features: FeatureMap
    pairs: tuple[tuple[str, str], ...] = ()
    initial_weights: Floats = field(default_factory=lambda: np.zeros(0))
    protocol: str = "paper"
    environment: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pairs = self.pairs or every_pair(self.questions, self.behaviours)
        weights = (
            self.initial_weights if self.initial_weights.size else np.zeros(self.features.size)
        )
        weights.setflags(write=False)
        set_frozen(self, pairs=pairs, initial_weights=weights)

    @property
    @abstractmethod
    def cells(self) -> NDArray[Any]:
        """A state in each of C cells, [C, ...], in the order of tables' rows."""

    @property
    @abstractmethod
    def reachable(self) -> NDArray[np.bool_]:
        """Which cells a transition can start in, bool[C]."""

    def make(self, **options: Any) -> gym.Env[Any, Any]:
        """The environment; options such as ``render_mode`` go to ``gymnasium.make``."""
        return gym.make(self.environment, **(self.arguments | options))

    def active_cells(self, question: str) -> NDArray[np.bool_]:
        """The cells in which a question is active, bool[C]; by default all."""
        self.question(question)
        return np.ones(len(self.cells), bool)

    def target(self, question: str) -> DiscretePolicy:
        """The policy that a question is about."""
        policy = self.question(question).policy
        assert isinstance(policy, DiscretePolicy)
        return policy

    def table(self, policy: DiscretePolicy) -> Floats:
        """A policy that tells states apart by cell only, as float64[C, actions]."""
        return policy.probabilities(self.cells)

    def target_table(self, question: str) -> Floats:
        """A question's target, float64[C, actions]; 0 where the question is not active."""
        active, policy = self.active_cells(question), self.target(question)
        if active.all():
            return self.table(policy)
        rows = np.zeros((len(active), policy.actions))
        if active.any():  # elsewhere the target need not make sense
            rows[active] = policy.probabilities(self.cells[active])
        return rows

    def ratios(self, question: str, behaviour: str) -> Floats:
        """pi(a|s) / mu(a|s) as a table, float64[C, actions].

        It is 0 where pi(a|s) is 0, and inf where mu(a|s) is 0 and pi(a|s) is not.
        """
        return _ratios(self.target_table(question), self.table(self.behaviour(behaviour)))

    def largest_ratio(self, question: str, behaviour: str) -> float:
        """The largest ratio that a transition can have; inf where the behaviour has no support."""
        return float(self.ratios(question, behaviour)[self.reachable].max())

    def check(self, question: str, behaviour: str) -> None:
        """Refuse a behaviour without support for the target, in a cell that can be reached.

        Only cells in which the question is active matter, and there must be one.
        """
        pi, mu = self.target_table(question), self.table(self.behaviour(behaviour))
        if not (self.active_cells(question) & self.reachable).any():
            raise ValueError(f"question {question!r} is active in no state that can be reached")
        missing = np.argwhere((pi > 0) & (mu == 0) & self.reachable[:, None])
        if missing.size:
            cell, action = missing[0]
            raise ValueError(
                f"behaviour {behaviour!r} never takes action {action} in state {self.cells[cell]}, "
                f"where the target of question {question!r} does with probability "
                f"{pi[cell, action]:.4g}: there is nothing to learn it from"
            )

    def ratios_along(
        self, question: str, mu: Floats, cell: NDArray[np.int64], action: NDArray[np.int64]
    ) -> Floats:
        """pi(a|s) / mu(a|s) of actions in cells [T], with mu as a table."""
        at = cell * mu.shape[1] + action  # one index is quicker than two
        return _ratios(self.target_table(question), mu).ravel().take(at)

    def __repr__(self) -> str:
        ratios = [f"{q}/{b} {self.largest_ratio(q, b):.4g}" for q, b in self.pairs]
        lines = [", ".join(ratios[i : i + 2]) for i in range(0, len(ratios), 2)]
        return (
            f"Domain {self.name!r} (protocol {self.protocol!r}), environment {self.environment}\n"
            f"  behaviours: {', '.join(self.behaviours)}\n"
            f"  questions: {', '.join(self.questions)}\n"
            f"  largest ratios: {f',{chr(10)}    '.join(lines)}"
        )


def _ratios(pi: Floats, mu: Floats) -> Floats:
    """Pi / mu of two tables; 0 wherever pi is 0, even if mu is 0 too."""
    with np.errstate(divide="ignore"):
        return np.divide(pi, mu, out=np.zeros_like(pi), where=pi > 0)


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
