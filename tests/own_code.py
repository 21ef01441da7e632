"""Modules that a user might have, and what the library says about bad ones."""

import importlib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples" / "studies"
ENVIRONMENT = """
import gymnasium

class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return int(action), REWARD, False, False, {}
"""
CORRECTION = """
from dataclasses import dataclass

import gvf

@dataclass(frozen=True)
class Mine(gvf.corrections.Correction):
    @staticmethod
    def weigh(inputs, p, means, parameters, out):
        out[:] = {weight} * inputs[0] / out.size
"""
CHAIN = {"domain": "markov-chain", "step_sizes": (0.5,), "updates": 10, "runs": 1}


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    importlib.invalidate_caches()
    return path


def told_by(function, *given) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (looked at below)
        function(*given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def registering(module: str) -> str:
    return f"import gymnasium\ngymnasium.register('Own-v0', '{module}:Env', max_episode_steps=50)\n"
