"""The way from a step of an environment to a changed weight stays short.

The rule by which files and turns back are counted stands in :mod:`walks`.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

import gymnasium as gym
from walks import Walk, walk_of

import gvf

LEARNER_FILES, LEARNER_TURNS = 14, 4


def is_step_of_environment(frame: FrameType) -> bool:
    return frame.f_code.co_name == "step" and "toy_text" in frame.f_code.co_filename


def walk_of_learner() -> Walk:
    """From the first step of the environment to the first changed weight."""
    env = gym.make("FrozenLake-v1", is_slippery=False)
    question = gvf.GVF(gvf.policies.Favour(2, 0.9, actions=4), lambda t: 1.0 + t.reward, 0.9)

    def learner() -> Any:
        return gvf.Learner(
            question,
            gvf.features.OneHot(16),
            gvf.updates.TD(0.5),
            gvf.corrections.IR(),
            behaviour=gvf.policies.Uniform(4),
            seed=0,
        )

    learner().learn(env, steps=64, seed=0, progress=False)
    new = learner()
    new.learn(env, steps=1, seed=0, progress=False)
    before = new.weights.copy()
    return walk_of(
        lambda: new.learn(env, steps=64, seed=1, act_steps=1, progress=False),
        begins=is_step_of_environment,
        is_done=lambda: bool((new.weights != before).any()),
    )


def test_a_step_of_an_environment_becomes_a_changed_weight_by_a_short_way() -> None:
    walk = walk_of_learner()
    assert len(walk.files) <= LEARNER_FILES, walk
    assert len(walk.turns) <= LEARNER_TURNS, walk
    assert walk.functions[0][0].startswith("stream/")
