"""Worlds in which emphatic importance resampling may fail.

Studies refer to them by names such as "experiments.emphatic.emphatic_worlds:rooms_table".
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gvf
import gvf_lab
from gvf.common.arrays import Floats
from gvf.features import ActiveTable, OneHot
from gvf_lab.domain import TabularDomain, get
from gvf_lab.domain.rooms import WAYS, active_states
from gvf_lab.domain.visits import long_run

HERE = f"{__name__}:"
"""The beginning of a reference to a world of this module."""
TASKS = {
    "collision": "Collision",
    "rooms": "Rooms",
    "high-variance-rooms": "High Variance Rooms",
}
"""The three tasks, by the names of their domains."""


def task(name: str) -> TabularDomain:
    """Return a tabular domain by its name or reference."""
    found = get(name)
    assert isinstance(found, TabularDomain)
    return found


def _table(name: str) -> Callable[[], TabularDomain]:
    """Return a function that makes a task with one feature for each state."""

    def make() -> TabularDomain:
        world = task(name)
        parts = {one.name: getattr(world, one.name) for one in fields(TabularDomain) if one.init}
        features = OneHot(len(world.cells))
        return TabularDomain(**parts | {"features": features, "initial_weights": np.zeros(0)})

    return make


collision_table, rooms_table, high_variance_rooms_table = map(_table, TASKS)
corridor_table = _table(f"{HERE}corridor_9")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Estimated(TabularDomain):
    """A task whose ratios come from a wrong estimate of the behaviour, another one in each run.

    Attributes:
        base: the name of the task.
        wrong: each probability is multiplied by a number in [1 - wrong, 1 + wrong], and those of a
            state are scaled to sum to 1.
        factors: these numbers, float64[S, A].
    """

    base: str
    wrong: float
    factors: Floats | None = None

    def for_run(self, run: int, seed: int) -> "Estimated":
        """Return the task with the features and the estimate of a run."""
        shape = self.model.probability.shape[:2]
        spread = np.random.default_rng([seed, run]).uniform(-1.0, 1.0, shape)
        features = task(self.base).for_run(run, seed).features
        return replace(self, features=features, factors=1.0 + self.wrong * spread)

    def ratios_along(
        self, question: str, mu: Floats, cell: NDArray[np.int64], action: NDArray[np.int64]
    ) -> Floats:
        """Compute the ratios of actions in cells [T] with the estimate in place of mu."""
        if self.factors is not None:
            mu = mu * self.factors
            mu /= mu.sum(axis=1, keepdims=True)
        return super().ratios_along(question, mu, cell, action)


WRONG = (0.0, 0.1, 0.3)
"""The errors of the estimated probabilities."""


def _estimated(name: str, wrong: float) -> Callable[[], TabularDomain]:
    def make() -> TabularDomain:
        world = task(name)
        parts: dict[str, Any] = {
            one.name: getattr(world, one.name) for one in fields(TabularDomain) if one.init
        }
        return Estimated(**parts, base=name, wrong=wrong)

    return make


collision_0, collision_10, collision_30 = (_estimated("collision", wrong) for wrong in WRONG)
rooms_0, rooms_10, rooms_30 = (_estimated("rooms", wrong) for wrong in WRONG)
walled_0, walled_10, walled_30 = (_estimated(f"{HERE}corridor_9", wrong) for wrong in WRONG)

LENGTH, FEATURES, ONES = 12, 6, 3
"""The number of states of the corridor, of its features, and of those that are 1 in a state."""
TARGET = (0.3, 0.7)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Corridor(TabularDomain):
    """A corridor without an end: at a wall a step leads nowhere. Features are drawn in each run."""

    def for_run(self, run: int, seed: int) -> "Corridor":
        """Return the corridor with the features of a run."""
        return replace(self, features=_features(run, seed))


def _features(run: int, seed: int) -> ActiveTable:
    numbers = np.tile(np.arange(FEATURES, dtype=np.int32), (LENGTH, 1))
    rows = np.random.default_rng([seed, run]).permuted(numbers, axis=1)[:, :ONES]
    return ActiveTable(np.sort(rows, axis=1), FEATURES)


def _corridor(continuation: float) -> Callable[[], TabularDomain]:
    """Return a function that makes the corridor with a continuation.

    The reward for arriving at the right end is 1. Its mean under the target is subtracted, so that
    values stay of the same size as the continuation tends to 1.
    """

    def make() -> TabularDomain:
        state = np.arange(LENGTH)
        following = np.stack([np.maximum(state - 1, 0), np.minimum(state + 1, LENGTH - 1)], axis=1)
        arrived = (following == LENGTH - 1).astype(np.float64)
        ones, never = np.ones((LENGTH, 2, 1)), np.zeros(LENGTH, bool)
        model = gvf_lab.Model(ones, following[:, :, None], arrived[:, :, None], never)
        share = long_run(model, state, np.tile(TARGET, (LENGTH, 1)))
        mean = share @ arrived @ np.array(TARGET)
        return Corridor(
            name=f"corridor {continuation:g}",
            behaviours={"uniform": gvf.policies.Uniform(2)},
            questions={"right": gvf.GVF(gvf.policies.Fixed(TARGET), "reward", continuation)},
            features=_features(0, 0),
            model=replace(model, reward=model.reward - mean),
            weighting="visits",
        )

    return make


corridor_9, corridor_99, corridor_999 = map(_corridor, (0.9, 0.99, 0.999))


@dataclass(frozen=True)
class Inside:
    """The continuation of a question of Rooms: gamma if it is active in the next state, else 0."""

    room: str
    hallway: str
    gamma: float

    def __call__(self, transitions: gvf.Transitions) -> Floats:
        """Compute the continuations, float64[m]."""
        active = active_states(self.room, self.hallway)
        return np.where(active[transitions["next_state"]], self.gamma, 0.0)


def _far_rooms(gamma: float) -> Callable[[], TabularDomain]:
    def make() -> TabularDomain:
        world = task("rooms")
        questions = {
            f"{room}-{hallway}": replace(
                world.question(f"{room}-{hallway}"), continuation=Inside(room, hallway, gamma)
            )
            for room, hallway in WAYS
        }
        return replace(world, questions=questions)

    return make


rooms_far_9, rooms_far_99, rooms_far_999 = map(_far_rooms, (0.9, 0.99, 0.999))


STATES, ACTIONS, OUTCOMES = 20, 3, 3


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RandomWorld(TabularDomain):
    """A world without episodes that is drawn anew in each run, with policies and features.

    Attributes:
        gamma: the continuation.
        kind: "near" for a target that is mostly the behaviour, "random" for one drawn apart from
            it, "deterministic" for one that always takes the same action in a state.
    """

    gamma: float
    kind: str

    def for_run(self, run: int, seed: int) -> "RandomWorld":
        """Return the world of a run."""
        return random_world(self.gamma, self.kind, (seed, run))


def random_world(gamma: float, kind: str, seeds: tuple[int, ...] = (0,)) -> RandomWorld:
    """Draw a world: moves, rewards, both policies, and six features, three of them 1."""
    rng, shape = np.random.default_rng(seeds), (STATES, ACTIONS, OUTCOMES)
    reward = np.broadcast_to(rng.normal(size=(STATES, 1, 1)), shape)
    moves = rng.dirichlet(np.ones(OUTCOMES), shape[:2])
    model = gvf_lab.Model(moves, rng.integers(STATES, size=shape), reward, np.zeros(STATES, bool))
    policies = rng.dirichlet(np.ones(ACTIONS), (2, STATES))
    mu = 0.8 * policies[0] + 0.2 / ACTIONS
    pi = {
        "near": 0.8 * mu + 0.2 * policies[1],
        "random": policies[1],
        "deterministic": np.eye(ACTIONS)[policies[1].argmax(axis=1)],
    }[kind]
    numbers = np.tile(np.arange(FEATURES, dtype=np.int32), (STATES, 1))
    rows = np.sort(rng.permuted(numbers, axis=1)[:, :ONES], axis=1)
    return RandomWorld(
        name=f"random world, {kind}, {gamma:g}",
        behaviours={"mu": gvf.policies.Table(mu)},
        questions={"pi": gvf.GVF(gvf.policies.Table(pi), "reward", gamma)},
        features=ActiveTable(rows, FEATURES),
        model=model,
        weighting="visits",
        gamma=gamma,
        kind=kind,
    )


near_9, random_9, deterministic_9, near_99, random_99, deterministic_99 = (
    partial(random_world, gamma, kind)
    for gamma in (0.9, 0.99)
    for kind in ("near", "random", "deterministic")
)
