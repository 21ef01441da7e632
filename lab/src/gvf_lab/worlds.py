"""Worlds with logs whose truth is known: Four Rooms, CartPole and Pendulum.

Experiments and benchmarks judge predictions in them.

Every world has a discount of .9, so that other libraries can ask the same question. In Four Rooms a
collision ends an episode, and true values are exact. In the others they are means of returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

import gvf
from gvf.common.arrays import Array, Floats
from gvf_lab.domain import TabularDomain, get
from gvf_lab.truth import exact_values

DISCOUNT = 0.9
LIMIT = 100
"""The largest number of steps of an episode."""


@dataclass(frozen=True, eq=False)
class World:
    """A world, a question, and its truth.

    Attributes:
        name: the name.
        make: a function that makes the environment.
        behaviour: the policy that acts in logs.
        question: the question.
        features: the features of linear learners.
        active: the number of active features, by which step sizes are divided.
        states: states as the behaviour visits them, [S, ...].
        squared_error: a function of predictions [S] that estimates their mean squared error.
        variance: the variance of the true values over these states.
        start: the true mean value of the states in which episodes begin.
        start_noise: the standard error of `start`; 0 if it is exact.
        truth: how the true values were found, in words.
        actions: the number of actions; None if they are real numbers.
        observe: a function that turns states into rows of numbers for networks, float32[m, d].
    """

    name: str
    make: Callable[[], gymnasium.Env[Any, Any]]
    behaviour: gvf.policies.Policy
    question: gvf.GVF
    features: gvf.features.FeatureMap
    active: int
    states: Array
    squared_error: Callable[[Floats], float]
    variance: float
    start: float
    start_noise: float
    truth: str
    actions: int | None
    observe: Callable[[Any], Any]

    def log(self, rows: int, seed: int) -> gvf.Log:
        """Record a log."""
        steps = gvf.collect(self.make(), self.behaviour, steps=rows, batch=rows, seed=seed)
        return gvf.read_log(next(iter(steps)).columns, quiet=True)

    def relative_error(self, predictions: Floats) -> float:
        """Return the root mean squared error as a share of the spread of true values."""
        return float(np.sqrt(max(self.squared_error(predictions), 0.0) / self.variance))


class UntilCollision(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Four Rooms, where a collision ends the episode."""

    def step(self, action: Any) -> Any:
        """Take a step."""
        state, reward, _, truncated, info = self.env.step(action)
        return state, reward, reward == 1, truncated, info


def four_rooms() -> World:
    """Make Four Rooms: how soon is a collision, if the agent mostly goes down?"""
    domain = get("four-rooms")
    assert isinstance(domain, TabularDomain)
    asked = domain.question("favoured-down")
    values = exact_values(domain.model, asked)
    stays = domain.model.reward[:, :, 0] == 0  # without a collision
    count = len(values)
    moves = np.zeros((count, count))
    for state, action in zip(*np.nonzero(stays), strict=True):
        moves[state, domain.model.next_state[state, action, 0]] += 0.25
    begin = np.bincount(domain.starts, minlength=count) / len(domain.starts)
    visits = np.linalg.solve(np.eye(count) - moves.T, begin)
    states = np.flatnonzero(visits > 1e-12)
    share, true = visits[states] / visits[states].sum(), values[states]
    return World(
        "Four Rooms",
        lambda: gymnasium.wrappers.TimeLimit(UntilCollision(domain.make()), LIMIT),
        gvf.policies.Uniform(4),
        gvf.GVF(asked.policy, "reward", DISCOUNT),
        gvf.features.OneHot(count),
        1,
        states,
        lambda given: float(share @ (given - true) ** 2),
        float(share @ (true - share @ true) ** 2),
        float(begin @ values),
        0.0,
        "exact",
        4,
        lambda states: np.eye(count, dtype=np.float32)[np.asarray(states, int).ravel()],
    )


def pushes(states: Any, away: float = 0.1) -> Floats:
    """Return the probabilities of pushing CartPole left and right, [m, 2].

    The push is to the side that the pole leans to, but for a probability of pushing away from it.
    """
    return np.where(states[:, 2:3] > 0, [away, 1 - away], [1 - away, away])


def leaning(away: float = 0.1) -> gvf.policies.Function:
    """Return the policy of these pushes."""
    return gvf.policies.Function(lambda states: pushes(states, away), actions=2)


def cartpole_tiles(tilings: int = 8) -> gvf.features.TileCoder:
    """Return features of CartPole's states, finer in the angle than in the place."""
    low, high = [-2.4, -2.5, -0.21, -2.5], [2.4, 2.5, 0.21, 2.5]
    return gvf.features.TileCoder(low, high, tiles=[2, 2, 6, 4], tilings=tilings)


def mean_squared_error(truth: gvf.HeldOutReturns) -> Callable[[Floats], float]:
    """Return the function from predictions of the states of returns to their squared error."""

    def error(given: Floats) -> float:
        estimate = truth.error(lambda _: given).mean_squared_value
        assert estimate is not None
        return estimate.value

    return error


def cartpole(states: int, rollouts: int) -> World:
    """Make CartPole: what is the reward of pushing to the side that the pole leans to?"""
    return _sampled(
        "CartPole",
        "CartPole-v1",
        gvf.policies.Fixed([0.4, 0.6]),
        leaning(),
        cartpole_tiles(),
        2,
        states,
        rollouts,
    )


def braking(states: Any) -> Any:
    """Return the mean torque of a policy that brakes."""
    return -0.2 * states[:, 2:3]


def pendulum(states: int, rollouts: int) -> World:
    """Make Pendulum: what is the reward of braking?"""
    low, high = [-1.0, -1.0, -8.0], [1.0, 1.0, 8.0]
    return _sampled(
        "Pendulum",
        "Pendulum-v1",
        gvf.policies.Gaussian((0.0,), (1.0,)),
        gvf.policies.Gaussian(braking, (0.5,)),
        gvf.features.TileCoder(low, high, tiles=[5, 5, 6], tilings=8),
        None,
        states,
        rollouts,
    )


def _sampled(
    name: str,
    environment: str,
    behaviour: gvf.policies.Policy,
    target: gvf.policies.Policy,
    features: gvf.features.TileCoder,
    actions: int | None,
    states: int,
    rollouts: int,
) -> World:
    """Make a world whose true values are means of returns, without the share 1e-3 that is left."""

    def make() -> gymnasium.Env[Any, Any]:
        return gymnasium.make(environment, max_episode_steps=LIMIT)

    question = gvf.GVF(target, "reward", DISCOUNT)

    def sample(length: int, count: int, times: int) -> gvf.HeldOutReturns:
        return gvf.held_out_returns(
            make(), question, behaviour=behaviour, states=count, rollouts=times,
            run_length=length, cutoff=1e-3, seed=length,
        )  # fmt: skip

    truth, starts = sample(5 * LIMIT, states, rollouts), sample(1, states * rollouts // 2, 1)

    noise = float(np.mean(truth.noise**2))
    start = starts.values
    return World(
        name,
        make,
        behaviour,
        question,
        features,
        features.tilings,
        truth.states,
        mean_squared_error(truth),
        float(truth.values.var(ddof=1)) - noise,
        float(start.mean()),
        float(start.std(ddof=1) / np.sqrt(len(start))),
        f"{rollouts} returns from each of {states} states",
        actions,
        lambda states: np.asarray(states, np.float32),
    )
