"""Four rooms: moves up, right, down and left, with a reward of 1 on a collision with a wall."""

from typing import Any

import gymnasium
import numpy as np

import gvf

MAP = [
    ".....#.....",
    ".....#.....",
    "...........",
    ".....#.....",
    ".....#.....",
    "#.####.....",
    ".....###.##",
    ".....#.....",
    ".....#.....",
    "...........",
    ".....#.....",
]
MOVES = [(-1, 0), (0, 1), (1, 0), (0, -1)]
DOWN = 2
FREE = [11 * y + x for y, line in enumerate(MAP) for x, mark in enumerate(line) if mark == "."]
TARGET = gvf.policies.Favour(DOWN, 0.9, 4)
QUESTION = gvf.GVF(TARGET, "reward", lambda t: np.where(t.reward == 1, 0.0, 0.9))


SELDOM = [
    11 * y + x
    for y, x in [
        (5, 6), (3, 7), (5, 8), (2, 10), (1, 9), (5, 1), (7, 0), (4, 1), (10, 7), (0, 1), (9, 0),
        (0, 4), (3, 6), (9, 10), (1, 8), (5, 4), (8, 3), (2, 5), (3, 0), (2, 1), (6, 4), (2, 8),
        (4, 5), (9, 8), (1, 0),
    ]
]  # fmt: skip
"""States in which a behaviour may rarely go down."""


def after(state: int, action: int) -> tuple[int, float]:
    """The next state and the reward."""
    y, x = (place + move for place, move in zip(divmod(state, 11), MOVES[action], strict=True))
    inside = 0 <= y < 11 and 0 <= x < 11
    return (11 * y + x, 0.0) if inside and MAP[y][x] == "." else (state, 1.0)


class Rooms(gymnasium.Env[Any, Any]):
    """The rooms as an environment; episodes begin anywhere and never end."""

    observation_space = gymnasium.spaces.Discrete(121)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = FREE[int(len(FREE) * self.np_random.random())]
        return self.state, {}

    def step(self, action):
        self.state, reward = after(self.state, action)
        return self.state, reward, False, False, {}


def seldom_down(probability: float) -> gvf.policies.Table:
    """The uniform policy, but in 25 states the action down has a small probability."""
    rows = np.full((121, 4), 0.25)
    rows[SELDOM] = (1 - probability) / 3
    rows[SELDOM, DOWN] = probability
    return gvf.policies.Table(rows)


def values() -> np.ndarray:
    """The values of the question, float64[121]."""
    pi = TARGET.probabilities(np.arange(121))
    onward, reward = np.zeros((121, 121)), np.zeros(121)
    for state in FREE:
        for action in range(4):
            reached, hit = after(state, action)
            reward[state] += pi[state, action] * hit
            onward[state, reached] += pi[state, action] * 0.9 * (1 - hit)
    return np.linalg.solve(np.eye(121) - onward, reward)
