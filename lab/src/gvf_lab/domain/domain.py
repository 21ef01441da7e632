"""The base of domains: a world with the policies, questions and true values of an experiment.

A study needs only what :class:`Domain` has: named behaviours mu and questions (pi, C, gamma),
features, a walk of a policy as columns, and true values to compare with. To add a world, subclass
it, or use :class:`gvf_lab.domain.GymnasiumDomain`, which works for any Gymnasium environment. In
our own domains policies depend only on the cell of a state (:class:`CellDomain`), so walks and
truths are compiled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gvf import GVF
from gvf.common.arrays import Array, Floats
from gvf.common.checks import set_frozen
from gvf.common.gymnasium import gym
from gvf.common.part_names import known
from gvf.features import FeatureMap
from gvf.policies import DiscretePolicy
from gvf_lab.truth import TrueValues


class Protocol(StrEnum):
    """The two ways in which a study of the paper is run."""

    PAPER = "paper"
    """The settings of the paper's text, with correct true values."""
    AUTHORS = "authors"
    """The settings and the defects of the authors' released code."""


PROTOCOLS = tuple(protocol.value for protocol in Protocol)
"""The names of both protocols, as users write them."""


@dataclass(frozen=True, eq=False)
class Signals:
    """The ratios, cumulants, continuations and interests of one question for T transitions.

    Attributes:
        ratio: the ratio pi(a|s) / mu(a|s), float64[T]; 0 if the question is not active.
        cumulant: the cumulant, float64[T].
        continuation: the continuation, float64[T].
        interest: the interest in the state, float64[T]; None if it is always 1.
        active: True if the question is active in the state, bool[T]; None if it always is. Other
            transitions are not learned from.
        probability: the target's probability of the action, float64[T]; None if it is not known.
            Only some online algorithms use it.
    """

    ratio: NDArray[np.float64]
    cumulant: NDArray[np.float64]
    continuation: NDArray[np.float64]
    interest: NDArray[np.float64] | None = None
    active: NDArray[np.bool_] | None = None
    probability: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A stream of T transitions, with the signals of questions, as columns for learning loops.

    The stream of a run is made once and kept whole, so that all methods learn from the same one.
    Row t is the t-th transition, and the window at time t is the rows before it.

    Attributes:
        x: features of the states, int32[T, a] or float64[T, size].
        x_next: features of the next states.
        action: the actions, int64[T] or float64[T, d].
        next_state: the next states, [T, ...].
        signals: the signals of every question that was asked, by name.
        kind: a number for each kind of transition, int64[T], the same for equal transitions; None
            if transitions hardly ever repeat.
        ended: True if an episode ends, by itself or by a limit, bool[T], so that traces begin anew;
            None if episodes end exactly when a question's continuation is 0.
    """

    x: Array
    x_next: Array
    action: Array
    next_state: Array
    signals: Mapping[str, Signals]
    kind: Array | None = None
    ended: NDArray[np.bool_] | None = None

    def check(self, question: str, size: int) -> None:
        """Raise ValueError for columns that a compiled loop, which checks nothing, cannot read.

        Args:
            question: the name of a question that was asked.
            size: the number of features.
        """
        steps, asked = len(self.action), self.signals[question]
        for name in ("x", "x_next"):
            x = getattr(self, name)
            if x.ndim != 2 or x.dtype not in (np.int32, np.float64) or len(x) != steps:
                raise ValueError(
                    f"{name} of a trajectory must be int32[{steps}, a] or float64[{steps}, {size}],"
                    f" got {x.dtype}{list(x.shape)}"
                )
            if x.dtype == np.int32 and x.size and not 0 <= x.min() <= x.max() < size:
                raise ValueError(f"{name} of a trajectory has indices outside 0 .. {size - 1}")
            if x.dtype == np.float64 and (x.shape[1] != size or not np.isfinite(x).all()):
                raise ValueError(f"{name} of a trajectory must be [{steps}, {size}] and finite")
        for name in ("ratio", "cumulant", "continuation", "interest"):
            column = getattr(asked, name)
            if name == "interest" and column is None:
                continue
            if column.shape != (steps,) or column.dtype != np.float64:
                raise ValueError(
                    f"{name} of question {question!r} must be float64[{steps}], got "
                    f"{column.dtype}{list(column.shape)}"
                )
            if not np.isfinite(column).all():
                at = int(np.isfinite(column).argmin())
                raise ValueError(f"{name} of question {question!r} is {column[at]} in row {at}")
        if (asked.ratio < 0).any():
            raise ValueError(f"a ratio of question {question!r} is negative")
        if asked.interest is not None and (asked.interest < 0).any():
            raise ValueError(f"an interest of question {question!r} is negative")
        for name in ("kind", "ended"):
            column = getattr(self, name)
            if column is not None and column.shape != (steps,):
                raise ValueError(f"{name} of a trajectory must be [{steps}], got {column.shape}")


class Domain(ABC):
    """A world with its behaviours and questions: all that a study needs.

    Attributes:
        name: the name for messages and files.
        behaviours: the policies that make data, by name.
        questions: the questions, by name.
        pairs: the pairs (question, behaviour) that belong together.
        features: the feature map of a linear value function.
        initial_weights: the weights at which learning starts, float64[features.size].

    A subclass must define ``walk`` and ``truth``. It may also define ``check``, which rejects pairs
    that cannot be learned; ``largest_ratio``, if ratios have a bound; ``make``, if there is an
    environment; and ``for_run``, if features or anything else are drawn anew for each run.

    Example:
        A world of one state, in which a coin is tossed; nothing but this is needed:

        >>> import gvf, numpy as np
        >>> from gvf_lab.domain import Domain, Signals, Trajectory
        >>> class Coin(Domain):
        ...     name = "coin"
        ...     behaviours = {"fair": gvf.policies.Uniform(2)}
        ...     questions = {"heads": gvf.GVF(gvf.policies.Fixed([0.1, 0.9]), "reward", 0.0)}
        ...     pairs = (("heads", "fair"),)
        ...     features, initial_weights = gvf.features.OneHot(1), np.zeros(1)
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
        ...         return gvf_lab.TrueValues(np.zeros(1, np.int64), np.array([0.9]), np.zeros(1))
        >>> Coin().walk(gvf.policies.Uniform(2), ["heads"], 4, 0).signals["heads"].ratio
        array([1.8, 0.2, 0.2, 0.2])
    """

    name: str
    behaviours: Mapping[str, Any]
    questions: Mapping[str, GVF]
    pairs: tuple[tuple[str, str], ...]
    features: FeatureMap
    initial_weights: Floats
    repeats: ClassVar[bool] = False
    """True if transitions repeat, and trajectories say which are equal (``Trajectory.kind``).
    Methods that need the whole window in every update are affordable only then."""
    generation: ClassVar[int] = 1
    """The version of the domain's numbers. Raise it when the same study gives other numbers; it is
    part of a study's settings, so old and new results do not mix."""

    @abstractmethod
    def walk(
        self,
        policy: Any,
        questions: Sequence[str],
        steps: int,
        seed: np.random.SeedSequence,
    ) -> Trajectory:
        """Let a policy act for some steps, and return the stream with the questions' signals.

        The policy is one of the behaviours, or the target of a question. The same arguments give
        the same trajectory, and the stream does not depend on the questions.
        """

    @abstractmethod
    def truth(
        self, question: str, behaviour: str, *, states: int = 1000, seed: int = 0
    ) -> TrueValues:
        """Return the true values of a question in the states over which errors are averaged.

        Args:
            question: the question's name.
            behaviour: the behaviour's name; its visits may determine the states and their weights.
            states: the number of states, if values are sampled.
            seed: the seed, if values are sampled.
        """

    def check(self, question: str, behaviour: str) -> None:  # noqa: B027 (optional)
        """Raise ValueError, with a message of one line, if a pair cannot be learned.

        A study calls this before it runs. Reasons are a behaviour that never takes an action of the
        target, and a question whose returns never end.
        """

    def make(self, **options: Any) -> gym.Env[Any, Any]:
        """Make the environment, if there is one."""
        raise NotImplementedError(f"{self.name} has no Gymnasium environment")

    def largest_ratio(self, question: str, behaviour: str) -> float:
        """Return the largest ratio that a transition can have; inf if there is no bound."""
        return float("inf")

    def for_run(self, run: int, seed: int) -> Domain:
        """Return the domain for one run; by default the same in all runs.

        Override this if something, such as random features, is drawn anew for each run. All runs
        must have the same names, pairs and number of features.

        Args:
            run: the number of the run, from 0.
            seed: the study's seed. The same arguments must give the same domain.
        """
        return self

    def behaviour(self, name: str) -> Any:
        """Return the behaviour of this name."""
        return self.behaviours[known(name, self.behaviours, f"behaviour of {self.name}")]

    def question(self, name: str) -> GVF:
        """Return the question of this name."""
        return self.questions[known(name, self.questions, f"question of {self.name}")]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CellDomain(Domain):
    """A domain whose policies depend only on the cell of a state; in a table a state is a cell.

    Each policy is a table [cells, actions], which compiled loops can use, and for any pair

        rho_max = max over reachable cells s and actions a of pi(a|s) / mu(a|s)

    is known. In cells where a question is not active, its ratios are 0 and its target is not used.

    Attributes:
        name: the name for messages and files.
        behaviours: the policies that make data, by name.
        questions: the questions, by name.
        features: the feature map of a linear value function.
        pairs: the pairs (question, behaviour) that belong together; by default all.
        initial_weights: the weights at which learning starts, float64[features.size]; by default 0.
        protocol: "paper" or "authors", if they differ.
        environment: the Gymnasium id, if there is an environment.
        arguments: the environment's arguments for ``gymnasium.make``.

    Example:
        >>> from gvf_lab.domain import get
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
        """True for cells in which a transition can start, bool[C]."""

    def make(self, **options: Any) -> gym.Env[Any, Any]:
        """Make the environment; options such as ``render_mode`` go to ``gymnasium.make``."""
        return gym.make(self.environment, **(self.arguments | options))

    def active_cells(self, question: str) -> NDArray[np.bool_]:
        """Return True for cells in which a question is active, bool[C]; by default all."""
        self.question(question)
        return np.ones(len(self.cells), bool)

    def target(self, question: str) -> DiscretePolicy:
        """Return the target policy of a question."""
        policy = self.question(question).policy
        assert isinstance(policy, DiscretePolicy)
        return policy

    def table(self, policy: DiscretePolicy) -> Floats:
        """Return a policy that depends only on the cell as a table, float64[C, actions]."""
        return policy.probabilities(self.cells)

    def target_table(self, question: str) -> Floats:
        """Return a question's target, float64[C, actions]; 0 in cells where it is not active."""
        active, policy = self.active_cells(question), self.target(question)
        if active.all():
            return self.table(policy)
        rows = np.zeros((len(active), policy.actions))
        if active.any():  # in other cells the target may be undefined
            rows[active] = policy.probabilities(self.cells[active])
        return rows

    def ratios(self, question: str, behaviour: str) -> Floats:
        """Compute the table of pi(a|s) / mu(a|s), float64[C, actions].

        An entry is 0 if pi(a|s) is 0, and inf if mu(a|s) is 0 and pi(a|s) is not.
        """
        return _ratios(self.target_table(question), self.table(self.behaviour(behaviour)))

    def largest_ratio(self, question: str, behaviour: str) -> float:
        """Return the largest ratio that a transition can have; inf without support."""
        return float(self.ratios(question, behaviour)[self.reachable].max())

    def check(self, question: str, behaviour: str) -> None:
        """Raise ValueError if the behaviour lacks support for the target in a reachable cell.

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
        """Compute pi(a|s) / mu(a|s) of actions in cells [T], with mu as a table."""
        at = cell * mu.shape[1] + action  # one index is faster than two
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
    """Divide two tables, pi / mu; the ratio is 0 if pi is 0, even if mu is 0 too."""
    with np.errstate(divide="ignore"):
        return np.divide(pi, mu, out=np.zeros_like(pi), where=pi > 0)


def every_pair(questions: Iterable[str], behaviours: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return all pairs of a question and a behaviour."""
    behaviours = list(behaviours)
    return tuple((question, behaviour) for question in questions for behaviour in behaviours)


def check_action(action: Any, names: tuple[str, ...]) -> int:
    """Return an action as an integer, or raise if it is not one of those named."""
    number = int(action) if isinstance(action, int | np.integer) else -1
    if 0 <= number < len(names):
        return number
    listed = ", ".join(f"{i} {name}" for i, name in enumerate(names))
    raise ValueError(f"action {action!r} is not one of {listed}")


def check_render_mode(render_mode: str | None, modes: Iterable[str]) -> str | None:
    """Return a render mode, or raise if the environment does not have it."""
    return None if render_mode is None else known(render_mode, modes, "render_mode")
