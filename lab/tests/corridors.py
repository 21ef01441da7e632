"""Gymnasium environments for domains, and how refusals are checked."""

import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import gvf
from gvf_lab.domain import GymnasiumDomain


def seeded(seed: int = 0) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed)


class Corridor(gym.Env[Any, Any]):
    """Walk left or right between 0 and 1 by a random step; the observation is a Dict.

    ``info`` has the distance to the right end, and an array.
    """

    def __init__(self, length: int = 20, key: str = "distance") -> None:
        self.observation_space = Dict(place=Box(0.0, 1.0, (2,)), side=Discrete(2))
        self.action_space = Discrete(2)
        self.length, self.key = length, key

    def told(self) -> tuple[dict[str, Any], dict[str, Any]]:
        place = np.array([self.x, 1 - self.x], np.float32)
        return {"place": place, "side": int(self.x > 0.5)}, {self.key: 1 - self.x}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.steps = 0.5, 0
        return self.told()

    def step(self, action):
        self.steps += 1
        self.x = float(np.clip(self.x + (2 * action - 1) * 0.1 * self.np_random.random(), 0, 1))
        observation, info = self.told()
        return observation, 1.0, self.steps == self.length, False, info


def on_the_right(states: Any) -> Any:
    return states["side"] == 1


def refuse(message: str, call: Any, *given: Any, error: type = ValueError, **named: Any) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        call(*given, **named)
    assert "\n" not in str(caught.value)


def lake(question: gvf.GVF, **more: Any) -> GymnasiumDomain:
    behaviours = {"uniform": gvf.policies.Uniform(4), "down": gvf.policies.Always(1, actions=4)}
    given: dict[str, Any] = {"arguments": {"max_episode_steps": 10_000}, "behaviours": behaviours}
    return GymnasiumDomain("FrozenLake-v1", questions={"q": question}, **(given | more))
