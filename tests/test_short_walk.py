"""The ways from a step of an environment to a changed weight, and through `gvf learn`, stay short.

The rule by which files and turns back are counted stands in :mod:`walks`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import gymnasium as gym
import pytest
from chain_logs import QUESTION, walks, write
from walks import Walk, walk_of

import gvf
from gvf.cli import main

# What is reached; a walk that becomes shorter lowers its number.
LEARNER_FILES, LEARNER_TURNS = 14, 4
HORDE_FILES, HORDE_TURNS = 24, 19
COMMAND_FILES, COMMAND_TURNS = 91, 206


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


def walk_of_horde() -> Walk:
    """From the first step of the environment to the first changed weight of two questions."""
    env = gym.make("FrozenLake-v1", is_slippery=False)
    target = gvf.policies.Favour(2, 0.9, actions=4)
    near = gvf.GVF(target, lambda t: 1.0 + t.reward, 0.5, name="near")
    far = gvf.GVF(target, lambda t: 1.0 + t.reward, 0.9, name="far")

    def horde() -> Any:
        return gvf.Horde(
            [near, far],
            gvf.features.OneHot(16),
            gvf.updates.TD(0.5),
            gvf.corrections.IR(),
            behaviour=gvf.policies.Uniform(4),
            seed=0,
        )

    horde().learn(env, steps=64, seed=0, progress=False)
    new = horde()
    new.learn(env, steps=1, seed=0, progress=False)
    before = new.weights("far").copy()
    return walk_of(
        lambda: new.learn(env, steps=64, seed=1, act_steps=1, progress=False),
        begins=is_step_of_environment,
        is_done=lambda: bool((new.weights("far") != before).any()),
    )


def walk_of_command() -> Walk:
    """From the arguments of `gvf learn` to its files and its last line, for a log of a chain."""
    write(Path("log.parquet"), walks())
    Path("asked.toml").write_text(QUESTION)
    arguments = ["learn", "log.parquet", "asked.toml", "--workers", "1", "--out"]
    assert main([*arguments, "first"]) == 0
    return walk_of(
        lambda: main([*arguments, "second"]),
        begins=lambda frame: frame.f_code.co_qualname == "_learn",
        left_out=("common/", "answers/templates/"),
    )


def test_a_step_of_an_environment_becomes_a_changed_weight_by_a_short_way() -> None:
    """Targets: 14 files and 3 turns back."""
    walk = walk_of_learner()
    assert len(walk.files) <= LEARNER_FILES, walk
    assert len(walk.turns) <= LEARNER_TURNS, walk
    assert walk.functions[0][0].startswith("stream/")


def test_a_step_of_an_environment_changes_the_weights_of_a_horde_by_a_short_way() -> None:
    """A horde also cuts its stream, checks its returns and pauses questions."""
    walk = walk_of_horde()
    assert len(walk.files) <= HORDE_FILES, walk
    assert len(walk.turns) <= HORDE_TURNS, walk
    assert walk.functions[0][0].startswith("stream/")


@pytest.mark.usefixtures("own_folder")
def test_a_log_and_a_question_become_an_answer_by_a_short_way() -> None:
    """The command learns, compares, finds intervals, diagnoses and draws; no template counts."""
    walk = walk_of_command()
    assert len(walk.files) <= COMMAND_FILES, walk
    assert len(walk.turns) <= COMMAND_TURNS, walk
    assert any(file == "answers/write_answer.py" for file in walk.files)


NEAR = """
from threading import Thread

from far import Box, back, door

def way():
    _private()
    Box().open()
    near()
    thread = Thread(target=in_thread)
    thread.start()
    thread.join()
    near()

def _private():
    return [door() for _ in range(2)]

def near():
    back()

def in_thread():
    pass
"""
FAR = """
from common.tool import tool
from outside import Shop

class Box:
    def __init__(self):
        self.size = 1

    def open(self):
        tool()
        return Shop().sell()

def back():
    pass

def door():
    pass
"""
OUTSIDE = """
class Shop:
    def sell(self):
        return inner()

def inner():
    pass
"""


def test_a_walk_of_known_length_is_counted_exactly(
    own_modules: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = tmp_path / "house"
    (house / "common").mkdir(parents=True)
    (house / "near.py").write_text(NEAR)
    (house / "far.py").write_text(FAR)
    (house / "common" / "tool.py").write_text(
        "def tool():\n    from outside import inner\n    inner()\n"
    )
    (tmp_path / "outside.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(str(house))
    near = import_module("near")
    both: dict[str, Any] = {"house": f"{house}/", "next_door": f"{tmp_path}/"}
    walk = walk_of(near.way, **both)
    assert walk.functions == [
        ("near.py", "way"),
        ("far.py", "door"),
        ("far.py", "Box.open"),
        ("near.py", "near"),
        ("far.py", "back"),
        ("near.py", "in_thread"),
    ]
    assert walk.files == ["near.py", "far.py"]
    assert walk.turns == [("near.py", "near"), ("far.py", "back"), ("near.py", "in_thread")]
    assert walk.doors == [("outside.py", "Shop", "far.py")]
    every = walk_of(near.way, **both, with_private=True, left_out=()).functions
    assert {name for _, name in every} >= {"_private", "Box.__init__", "tool"}
    part = walk_of(
        near.way,
        **both,
        begins=lambda frame: frame.f_code.co_name == "near",
        is_done=lambda: True,
    )
    assert part.functions == [("near.py", "near"), ("far.py", "back")]
    assert part.doors == []
