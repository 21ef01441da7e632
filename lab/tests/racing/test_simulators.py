"""The simulators themselves, those that there are."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, DependencyNotInstalled, ResetNeeded
from gymnasium.utils.env_checker import check_env
from roads import BOX2D, learned, same

import gvf
from gvf.common.distribution import how_to_install
from gvf_lab.racing import get, simulators
from gvf_lab.racing.driving import Drive, seeds
from gvf_lab.racing.driving_policies import Behaviour
from gvf_lab.racing.driving_rollouts import replay, target_return
from gvf_lab.racing.recording import record
from gvf_lab.racing.simulators import make

needs_box2d = pytest.mark.skipif(
    not BOX2D, reason='CarRacing needs Box2D and pygame: pip install "gvf[racing]"'
)


INFORMATION = {
    "to_middle", "half_width", "lateral", "angle", "speed", "segment", "distance", "time",
    "steer_lock",
}  # fmt: skip
"""The keys of every info."""


def test_an_unknown_simulator_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(ValueError, match="'gran-turismo'; known are 'torcs', 'car-racing'"):
        record("gran-turismo", 10)


@pytest.fixture(params=["torcs", "car-racing"])
def simulator(request: pytest.FixtureRequest) -> str:
    if request.param == "car-racing" and not BOX2D:
        pytest.skip('CarRacing needs Box2D and pygame: pip install "gvf[racing]"')
    if request.param == "torcs":
        try:
            make("torcs").close()
        except (ModuleNotFoundError, DependencyNotInstalled) as error:
            pytest.skip(str(error))
    return request.param


def test_the_behaviour_s_own_actions_lead_to_the_recorded_states(simulator: str) -> None:
    """A branch is taken after another one went astray, and is the same bit for bit."""
    recording = record(simulator, 60, seed=3)
    env = make(simulator)
    try:
        drive = Drive(env, simulator, seed=next(seeds(3)), draw=False)
        start = len(drive.actions)
        actions = drive.actions + recording.action.tolist()
        for step in (60, 0, 25, 59):
            frame, info = replay(env, drive.reset_seed, actions[: start + step], draw=True)
            assert info["lateral"] == recording.lateral[step]
            assert np.float32(info["angle"]) == recording.angle[step]
            assert np.float32(info["speed"]) == recording.speed[step]
            assert np.array_equal(frame, recording.frames[step])
            target_return(env, 0.0, rng=np.random.default_rng(step))
            env.draw = True
    finally:
        env.close()


def test_a_recording_can_be_made_again(simulator: str) -> None:
    assert record(simulator, 40, seed=2).hash == record(simulator, 40, seed=2).hash


def test_a_learner_can_learn_while_the_simulator_drives(simulator: str) -> None:
    recording = record(simulator, 90, seed=5)
    stream = get(simulator).stream(90, seed=5, batch=40)
    assert same(gvf.Transitions.concatenate(stream), recording.transitions())
    online = learned(get(simulator).stream(90, seed=5), 90)
    assert np.array_equal(online, learned([recording.transitions()], 90))


def test_a_domain_makes_its_environment(simulator: str) -> None:
    env = get(simulator).make(seconds=0.02)
    assert env.observation_space.shape == (64, 128)
    env.reset(seed=0)
    assert env.step(np.zeros(1, np.float32))[4]["time"] == 0.02
    env.close()


def test_the_behaviour_keeps_to_the_road_and_the_question_is_one(simulator: str) -> None:
    env = make(simulator)
    try:
        drive = Drive(env, simulator, seed=next(seeds(0)), draw=False)
        lateral, speed = [], []
        for _ in range(1000):
            assert not drive.step()[2]
            lateral.append(abs(drive.info["lateral"]))
            speed.append(drive.info["speed"])
    finally:
        env.close()
    assert max(lateral) < 1.1
    assert 0.05 < np.mean(np.array(lateral) < simulators.get(simulator).near) < 0.4
    assert 13 < min(speed) <= max(speed) < 17


def test_the_behaviour_uses_the_whole_road(simulator: str) -> None:
    env = make(simulator)
    env.draw = False
    _, info = env.reset(seed=0)
    behaviour, laterals = Behaviour(seed=0), []
    for _ in range(2000 if simulator == "torcs" else 500):
        action, _ = behaviour.act(info)
        *_, truncated, info = env.step([action])
        assert not truncated
        laterals.append(info["lateral"])
    env.close()
    assert np.abs(laterals).max() < 1
    assert min(laterals) < -0.5 < 0.5 < max(laterals)


def test_both_simulators_have_the_same_spaces_and_information(simulator: str) -> None:
    env = make(simulator)
    frame, info = env.reset(seed=0)
    assert (frame.shape, frame.dtype) == (simulators.FRAME, np.uint8)
    assert env.observation_space == gymnasium.spaces.Box(0, 255, (64, 128), np.uint8)
    assert env.action_space == gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    told = env.step([0.0])[4]
    columns = env.replay(np.zeros((3, 1)))
    assert {*info} == {*told} == {*columns} == INFORMATION
    for wrong in ([0.1, 0.2], 0.1):
        with pytest.raises(ValueError, match=r"shape \(1,\), got shape"):
            env.step(wrong)
    with pytest.raises(ValueError, match="finite number, got inf in row 1"):
        env.replay([[0.0], [np.inf]])
    env.close()


@needs_box2d
def test_car_racing_passes_the_checks_of_gymnasium() -> None:
    env = make("car-racing", render_mode="rgb_array")
    check_env(env, skip_render_check=True)
    assert env.render().shape == (256, 512, 3)
    env.close()


@needs_box2d
def test_car_racing_goes_left_when_steered_left() -> None:
    env = make("car-racing")
    env.draw = False
    for steer in (0.3, -0.3):
        _, info = env.reset(seed=0)
        assert info["time"] == 0
        for _ in range(15):
            env.step(np.zeros(1, np.float32))
        progress = 0.0
        for _ in range(6):
            frame, reward, _, _, info = env.step(np.array([steer], np.float32))
            assert not frame.any()
            progress += reward
        assert np.sign(info["lateral"]) == np.sign(info["to_middle"]) == np.sign(steer)
        assert np.sign(info["angle"]) == -np.sign(steer)
        assert info["lateral"] == info["to_middle"] / info["half_width"]
        assert info["time"] == pytest.approx(2.1)
        assert 0.8 * 6 * 1.5 < progress < 6 * 1.5 + 0.1


@needs_box2d
def test_car_racing_clips_steering_and_replays_as_it_steps() -> None:
    far, most = make("car-racing"), make("car-racing")
    far.draw = most.draw = False
    far.reset(seed=1)
    most.reset(seed=1)
    actions = np.array([[0.1]] * 12 + [[5.0], [-7.0], [0.0]], np.float32)
    columns = far.replay(actions)
    infos = [most.step(np.clip(action, -1, 1))[4] for action in actions]
    for name, column in columns.items():
        assert column.tolist() == [info[name] for info in infos]
    with pytest.raises(ValueError, match="steering must be a finite number"):
        far.step(np.array([np.nan], np.float32))


@needs_box2d
def test_car_racing_gives_up_a_car_that_is_far_away_or_stuck() -> None:
    env = make("car-racing")
    env.draw = False
    _, info = env.reset(seed=0)
    steps, truncated = 0, False
    while not truncated:
        _, _, terminated, truncated, info = env.step(np.array([0.2], np.float32))
        assert not terminated
        assert truncated == (abs(info["lateral"]) > 2)
        steps += 1
        assert steps < 200
    env.reset(seed=0)
    env._speed = 0.0
    ends = [env.step(np.zeros(1, np.float32))[3] for _ in range(31)]
    assert ends == [False] * 29 + [True] * 2


@needs_box2d
def test_car_racing_needs_no_screen() -> None:
    script = (
        "import warnings\n"
        "from gvf_lab.racing.car_racing import CarRacing\n"
        "env = CarRacing(); print(env.reset(seed=0)[0].std() > 0)\n"
    )
    there = {k: v for k, v in os.environ.items() if not k.startswith(("SDL", "DISPLAY", "WAYLAND"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], env=there, capture_output=True, text=True
    )
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *(
            ("seconds", wrong, "seconds must be a multiple of .02 from .02 to 2, got ")
            for wrong in (0.03, 0.0, 2.02, 100, math.nan, math.inf, "long")
        ),
        *(
            ("speed", wrong, "speed must be from 2 to 100 m/s, got ")
            for wrong in (1, 101, math.nan, "fast", None)
        ),
    ],
)
def test_both_simulators_refuse_what_makes_no_sense(
    name: str, value: Any, message: str, simulator: str
) -> None:
    with pytest.raises(ValueError, match=f"{message}{value!r}"):
        make(simulator, **{name: value})


def test_both_simulators_have_nothing_to_drive_before_a_reset_and_after_closing(
    simulator: str,
) -> None:
    env = make(simulator, render_mode="rgb_array")
    nothing = np.zeros((0, 1), np.float32)
    acts = (lambda: env.step([0.0]), env.render, lambda: env.replay(nothing))
    for act in acts:
        with pytest.raises(ResetNeeded, match=r"there is no car to drive: call reset\(\)"):
            act()
    env.reset(seed=0)
    for act in acts:
        act()
    env.close()
    env.close()
    for act in (*acts, env.reset):
        with pytest.raises(ClosedEnvironmentError, match="closed: make a new one"):
            act()


def test_both_simulators_say_that_nothing_is_rendered(simulator: str) -> None:
    env = make(simulator)
    with pytest.warns(UserWarning, match="nothing is rendered"):
        assert env.render() is None
    env.close()


def test_without_torcs_lockstep_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torcs_lockstep", None)
    for made in (partial(make, "torcs"), partial(gymnasium.make, "gvf/Torcs-v0")):
        with pytest.raises(ModuleNotFoundError, match=r"pip install \./torcs` .*CarRacing-v0"):
            made()


def test_without_box2d_the_error_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['Box2D'] = None\n"
        "from gvf_lab.racing.car_racing import CarRacing\n"
        "try:\n"
        "    CarRacing()\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert how_to_install("gvf-lab[racing]") in done.stdout, done.stderr
