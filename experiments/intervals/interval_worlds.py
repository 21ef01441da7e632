"""Small logs of four worlds whose true values are known, many episodes side by side.

The chain and Four Rooms are the tables of outcomes of :mod:`gvf_lab.domain`, and their values come
from dynamic programming. CartPole has the equations of motion of Gymnasium's environment, and its
values come from returns of the target. Clicks are single decisions with a rare reward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import gvf
import gvf_lab.domain
from gvf_lab.worlds import leaning, pushes

Array = np.ndarray[Any, Any]
NAMES = (
    "episode",
    "state",
    "action",
    "reward",
    "next_state",
    "terminated",
    "truncated",
    "behaviour_probability",
)
FAR = np.pi / 15
"""The angle of the pole at which an episode of CartPole ends, 12 degrees."""


@dataclass(frozen=True)
class World:
    """A world with a behaviour and a question.

    Attributes:
        question: the question.
        features: the representation.
        log: a function of a number of episodes and a generator that returns a log.
        states: the states whose predictions are judged.
        values: their true values.
        limits: the values that learning tends to with endless logs.
    """

    question: gvf.GVF
    features: Any
    log: Callable[[int, np.random.Generator], gvf.Log]
    states: Array
    values: Array
    limits: Array


def in_episodes(
    start: Array,
    step: Callable[[Array], tuple[Array, ...]],
    longest: int,
    shift: Array | None = None,
) -> gvf.Log:
    """Return the log of episodes from their first states; `step` gives what follows states.

    The rewards of an episode are shifted by its own number [episodes], if there is a shift.
    """
    state, alive, parts = start.copy(), np.arange(len(start)), []
    for t in range(longest):
        now = state[alive]
        action, reward, following, over, mu = step(now)
        reward = reward if shift is None else reward + shift[alive]
        cut = np.full(len(alive), t == longest - 1) & ~over
        parts.append((alive, now, action, reward, following, over, cut, mu))
        state[alive] = following
        alive = alive[~over]
        if not len(alive):
            break
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return gvf.read_log(dict(zip(NAMES, (c[order] for c in columns), strict=True)), quiet=True)


def tabular(name: str, question: str, behaviour: str, longest: int, hidden: bool = False) -> World:
    """Return a world of gvf_lab.domain; with `hidden`, every episode has rewards of its own."""
    domain: Any = gvf_lab.domain.get(name)
    model, mu = domain.model, domain.table(domain.behaviour(behaviour))
    thresholds = np.cumsum(mu, axis=1)[:, :-1]

    def log(episodes: int, rng: np.random.Generator) -> gvf.Log:
        def step(now: Array) -> tuple[Array, ...]:
            action = (rng.random(len(now))[:, None] >= thresholds[now]).sum(axis=1)
            following = model.next_state[now, action, 0]
            reward, over = model.reward[now, action, 0], model.terminal[following]
            return action, reward, following, over, mu[now, action]

        shift = rng.normal(size=episodes) if hidden else None
        return in_episodes(rng.choice(domain.starts, episodes), step, longest, shift)

    truth = domain.truth(question)
    inner = ~model.terminal[truth.states]
    values = truth.values[inner]
    asked = domain.question(question)
    return World(asked, domain.features, log, truth.states[inner], values, values)


def moved(state: Array, action: Array) -> Array:
    """Return the states of CartPole a fiftieth of a second later."""
    x, v, angle, turn = state.T
    force, cos, sin = np.where(action == 1, 10.0, -10.0), np.cos(angle), np.sin(angle)
    pull = (force + 0.05 * turn**2 * sin) / 1.1
    spin = (9.8 * sin - cos * pull) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    push = pull - 0.05 * spin * cos / 1.1
    return np.stack([x + 0.02 * v, v + 0.02 * push, angle + 0.02 * turn, turn + 0.02 * spin], 1)


def fallen(state: Array) -> Array:
    """Return True where an episode of CartPole is over."""
    return (np.abs(state[:, 0]) > 2.4) | (np.abs(state[:, 2]) > FAR)


def cart_log(episodes: int, rng: np.random.Generator) -> gvf.Log:
    """Return a log of CartPole, pushed at random, in episodes of at most 40 steps."""

    def step(now: Array) -> tuple[Array, ...]:
        action = (rng.random(len(now)) < 0.5).astype(int)
        following = moved(now, action)
        half = np.full(len(now), 0.5)
        return action, np.ones(len(now)), following, fallen(following), half

    return in_episodes(rng.uniform(-0.05, 0.05, (episodes, 4)), step, 40)


def cart_values(states: Array, rollouts: int, rng: np.random.Generator) -> Array:
    """Return the mean return of the target from each state."""
    state = np.repeat(states, rollouts, axis=0)
    alive, found = np.arange(len(state)), np.zeros(len(state))
    for t in range(150):  # 0.9^150 is 1e-7
        found[alive] += 0.9**t
        now = state[alive]
        right = rng.random(len(now)) < pushes(now)[:, 1]
        state[alive] = moved(now, right)
        alive = alive[~fallen(state[alive])]
    return found.reshape(len(states), rollouts).mean(axis=1)


def cart() -> World:
    """Return CartPole with tile coding, and 60 states of a long log."""
    rng = np.random.default_rng(0)
    question = gvf.GVF(leaning(), "reward", 0.9)
    features = gvf.features.TileCoder(
        low=[-2.4, -2.5, -FAR, -2.5], high=[2.4, 2.5, FAR, 2.5], tiles=[1, 1, 6, 4], tilings=4
    )
    steps = cart_log(10_000, rng).transitions()
    states = steps.state[rng.choice(len(steps), 60, replace=False)]
    solver = gvf.LSTDLearner(question, features, gvf.corrections.IR())
    solver.observe(steps)
    limits = solver.predict(states)
    return World(question, features, cart_log, states, cart_values(states, 2000, rng), limits)


def clicks(rate: float) -> World:
    """Return single decisions: five actions at random, a reward of 1 with a probability of `rate`.

    The target takes one of the actions with the probability 0.6, so ratios are 3 and 0.5.
    """
    actions = 5
    question = gvf.GVF(gvf.policies.Favour(0, 0.6, actions), "reward", 0.0)

    def log(episodes: int, rng: np.random.Generator) -> gvf.Log:
        def step(now: Array) -> tuple[Array, ...]:
            action, over = rng.integers(actions, size=len(now)), np.ones(len(now), bool)
            reward = (rng.random(len(now)) < rate).astype(float)
            return action, reward, now, over, np.full(len(now), 1 / actions)

        return in_episodes(np.zeros(episodes, int), step, 1)

    values = np.array([rate])
    return World(question, gvf.features.OneHot(1), log, np.zeros(1, int), values, values)


@cache
def world(name: str) -> World:
    """Return a world by its name.

    They are chain, chain-hard, rooms, stream, hidden, cart, and clicks-0.01 for any
    rate of clicks.
    """
    if name.startswith("clicks"):
        return clicks(float(name.partition("-")[2]))
    if name == "hidden":
        return tabular("markov-chain", "easy", "easy", 100, hidden=True)
    if name.startswith("chain"):
        pair = name.partition("-")[2] or "easy"
        return tabular("markov-chain", pair, pair, 100)
    if name in ("rooms", "stream"):
        longest = 50 if name == "rooms" else 2500
        return tabular("four-rooms", "favoured-down", "uniform", longest)
    return cart()
