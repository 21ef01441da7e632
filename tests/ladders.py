"""Environments whose every step can be checked, and streams of them in one piece."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

MODES = list(AutoresetMode)


class Ladder(gym.Env[Any, Any]):
    """Climb 1 or 2 rungs a step; the observation is (rung, step, episode).

    Rung 6 terminates, the fourth step truncates. Every transition can be checked from its
    observations, and a reset, at rung 0 or below, can never be taken for a step. The environment
    gives out its own buffer unless told otherwise, as a careless one may.
    """

    observation_space = Box(-10, 10_000, (3,), np.int64)
    action_space: gym.Space[Any] = Discrete(2)

    def __init__(self, copies: bool = False) -> None:
        self.buffer = np.zeros(3, np.int64)
        self.copies = copies
        self.received: list[Any] = []
        self.episode = 0

    def observation(self):
        return self.buffer.copy() if self.copies else self.buffer

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.buffer[:] = -self.np_random.integers(4), 0, self.episode
        self.episode += 1
        return self.observation(), {}

    def step(self, action):
        self.received.append(action)
        reward = 10.0 * self.buffer[0] + action
        self.buffer += 1 + action, 1, 0
        return self.observation(), reward, bool(self.buffer[0] >= 6), bool(self.buffer[1] == 4), {}


def ladders(count, mode, copy=False):
    # Resetting in the same step overwrites the last observation of an environment that gives out
    # its buffer, before any caller can look.
    copies = mode is AutoresetMode.SAME_STEP
    return SyncVectorEnv([lambda: Ladder(copies)] * count, copy=copy, autoreset_mode=mode)


def gathered(batches):
    """Columns of all transitions, after the stream has ended: an alias would show by then."""
    batches = list(batches)
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0].columns}


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].dtype == other[name].dtype
        assert np.array_equal(one[name], other[name])


class Shelf(gym.Env[Any, Any]):
    """Observations 0, 1, 2 in turn, for ever; remembers what it was told to do."""

    observation_space: gym.Space[Any] = Discrete(3)

    def __init__(self, action_space, observation_space=None) -> None:
        self.action_space = action_space
        self.observation_space = observation_space or self.observation_space
        self.place = 0
        self.received: list[Any] = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.place, {}

    def step(self, action):
        self.received.append(action)
        self.place = (self.place + 1) % 3
        return self.place, 0, False, False, {}


class Rover(gym.Env[Any, Any]):
    """A ladder whose observation is a Dict with all kinds of arrays in it, and that tells more.

    As in Ladder, a transition can be checked from its observations. ``info`` has the rung after
    the step and a pair of numbers; a reset has other values under the same names.
    """

    observation_space = Dict(
        place=Box(-10, 10_000, (2,), np.int64),  # rung, step
        flag=MultiBinary(3),
        inner=Dict(episode=Discrete(10_000), picture=Box(0, 255, (2, 3), np.uint8)),
        level=Box(-10.0, 100.0, (), np.float64),
        pair=MultiDiscrete([9, 9]),
    )
    action_space: gym.Space[Any] = Discrete(2)

    def __init__(self) -> None:
        self.rung = self.time = self.episode = 0

    def observation(self):
        return {
            "place": np.array([self.rung, self.time]),
            "flag": np.array([self.rung % 2, 1, 0], np.int8),
            "inner": {
                "episode": np.int64(self.episode),
                "picture": np.full((2, 3), self.rung % 256, np.uint8),
            },
            "level": np.array(self.rung / 4),
            "pair": np.array([self.time, 1]),
        }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.rung, self.time = -int(self.np_random.integers(4)), 0
        self.episode += 1
        return self.observation(), {"rung": -99, "both": np.array([-99.0, -99.0]), "flag": True}

    def step(self, action):
        self.rung += 1 + int(action)
        self.time += 1
        info = {"rung": self.rung, "both": np.array([self.rung, action], np.float32)}
        info["flag"] = np.bool_(self.rung % 2)
        over = self.rung >= 6
        return self.observation(), float(action), over, self.time == 4, info


def climbs(states):
    """Probabilities of two actions, from the fields of a state."""
    p = 1 / (2 + np.abs(states["place"][:, 0]) + states["inner"]["picture"][:, 0, 0] % 2)
    return np.stack([p, 1 - p], axis=1)


def fields(states):
    """Features from three fields."""
    rung = states["place"][:, 0]
    return np.stack([np.ones(len(states)), rung / 9, states["flag"][:, 0]], axis=1)


def assert_told(columns):
    """The values are those of the step, not of a reset: there they are -99."""
    rung = columns["next_state"]["place"][:, 0]
    assert columns["rung"].dtype == columns["both"].dtype == np.float64
    assert columns["rung"].tolist() == rung.tolist()
    assert columns["both"].tolist() == np.stack([rung, columns["action"]], 1).tolist()
