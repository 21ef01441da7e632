"""Driving: the behaviour, the question, recordings and rollouts, in the installed simulators."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, DependencyNotInstalled, ResetNeeded
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

import gvf
from gvf.racing import get, policy, rollouts, simulators
from gvf.racing.driving import Drive, driven, seeds
from gvf.racing.policy import Behaviour, Wander, towards_middle
from gvf.racing.recording import Recording, record
from gvf.racing.rollouts import EvaluationSet, evaluation, film, replay, target_return
from gvf.racing.simulators import make

BOX2D = all(importlib.util.find_spec(name) for name in ("Box2D", "pygame"))
needs_box2d = pytest.mark.skipif(
    not BOX2D, reason='CarRacing needs Box2D and pygame: pip install "gvf[racing]"'
)


INFORMATION = {
    "to_middle", "half_width", "lateral", "angle", "speed", "segment", "distance", "time",
    "steer_lock",
}  # fmt: skip
"""The keys of every info."""


class Flat:
    """A straight road without pictures to draw: the interface of the simulators, in a few lines."""

    def __init__(self, end: int = 10**9, wobble: float = 0.0) -> None:
        self.draw, self.end, self.wobble, self.resets = True, end, wobble, 0
        self.closed = False

    def reset(self, *, seed: int) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        self.seed, self.time, self.lateral, self.angle = seed, 0, 0.0, 0.0
        self.resets += 1
        return self._see()

    def step(self, action: NDArray[Any]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action.dtype == np.float32
        assert action.shape == (1,)
        self.time += 1
        self.angle -= 0.1 * float(np.clip(action[0], -1, 1))
        self.lateral -= 0.2 * math.sin(self.angle) + self.wobble * self.resets
        frame, info = self._see()
        return frame, 0.0, False, self.time >= self.end or abs(self.lateral) > 2, info

    def replay(self, actions: NDArray[np.float32]) -> None:
        drawing, self.draw = self.draw, False
        for action in actions:
            self.step(action)
        self.draw = drawing

    def close(self) -> None:
        self.closed = True

    def _see(self) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        frame = np.zeros((64, 128), np.uint8)
        if self.draw:
            frame[:] = np.random.default_rng(self.time).integers(0, 256, frame.shape)
        info = {"lateral": self.lateral, "angle": self.angle, "steer_lock": 0.4, "speed": 15.0}
        return frame, info | {"distance": 1.5 * self.time}


@pytest.fixture
def flat(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put the straight road in the place of TORCS."""

    def place(**options: Any) -> None:
        there = simulators.SIMULATORS["torcs"]
        here = dataclasses.replace(there, entry_point="flat_road:Flat", start=5, stretch=60)
        monkeypatch.setitem(simulators.SIMULATORS, "torcs", here)
        module = type(sys)("flat_road")
        vars(module)["made"] = made = []
        vars(module)["Flat"] = lambda **given: made.append(Flat(**options, **given)) or made[-1]
        monkeypatch.setitem(sys.modules, "flat_road", module)

    return place


def same(ours: gvf.Transitions, theirs: gvf.Transitions) -> bool:
    """Return True if two batches have the same columns, bit for bit."""
    return list(ours.columns) == list(theirs.columns) and all(
        column.dtype == theirs[name].dtype and np.array_equal(column, theirs[name])
        for name, column in ours.columns.items()
    )


def sketch(rows: int = 9, seed: int = 0) -> Recording:
    """Make a recording of random numbers, with two ends of episodes."""
    rng = np.random.default_rng(seed)
    return Recording(
        frames=rng.integers(0, 256, (rows + 3, 64, 128), np.uint8),
        first=np.r_[0:3, 4:7, 8 : rows + 2],
        action=rng.normal(size=rows),
        log_mu=rng.normal(size=rows),
        lateral=rng.normal(size=rows + 3),
        angle=rng.random(rows + 3, np.float32),
        speed=rng.random(rows + 3, np.float32),
        distance=rng.random(rows + 3, np.float32),
        settings={"simulator": "torcs", "seed": seed},
    )


# The behaviour and the question


def test_the_controller_steers_along_the_road_and_towards_its_goal() -> None:
    wander = Wander(gain=0.5, every=4, spread=0.6, seed=3)
    goals = np.random.default_rng(3).uniform(-0.6, 0.6, 3)
    for step in range(12):
        info = {"lateral": 0.1 * step - 0.5, "angle": 0.02 * step, "steer_lock": 0.4}
        expected = (info["angle"] - 0.5 * (info["lateral"] - goals[step // 4])) / 0.4
        assert wander.act(info) == pytest.approx(min(max(expected, -1), 1))
        assert wander.goal == goals[step // 4]


def test_the_controller_begins_again_after_a_reset() -> None:
    info = {"lateral": 0.1, "angle": 0.0, "steer_lock": 0.4}
    wander = Wander(every=3, seed=1)
    before = [wander.act(info) for _ in range(8)]
    wander.reset(1)
    assert [wander.act(info) for _ in range(8)] == before
    wander.reset(2)
    assert [wander.act(info) for _ in range(8)] != before


@pytest.mark.parametrize("wrong", [{"gain": 0}, {"spread": 1.0}, {"every": 0}])
def test_a_controller_that_makes_no_sense_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}={next(iter(wrong.values()))}"):
        Wander(**wrong)


def test_the_question_is_the_paper_s() -> None:
    question = towards_middle(near=0.1)
    assert question.policy == gvf.Gaussian(0.15, 0.0075)
    batch = gvf.Transitions(next_lateral=[-0.5, -0.1, -0.09, 0.0, 0.09, 0.1, 0.5])
    near = np.array([0, 0, 1, 1, 1, 0, 0])
    assert np.array_equal(question.cumulants(batch), near)
    assert np.array_equal(question.continuations(batch), 0.9 * (1 - near))
    assert repr(pickle.loads(pickle.dumps(question))) == repr(question)


def test_actions_are_drawn_around_the_controller_with_their_densities() -> None:
    rng = np.random.default_rng(0)
    pairs = np.array([policy.draw(0.3, rng=rng) for _ in range(4000)])
    # Four standard errors of the mean and of the standard deviation.
    assert abs(pairs[:, 0].mean() - 0.3) < 4 * 0.1 / math.sqrt(4000)
    assert abs(pairs[:, 0].std() - 0.1) < 4 * 0.1 / math.sqrt(8000)
    z = (pairs[:, 0] - 0.3) / 0.1
    assert np.allclose(pairs[:, 1], -(z**2) / 2 - math.log(0.1 * math.sqrt(2 * math.pi)))


def test_the_behaviour_is_its_controller_with_noise_of_its_own() -> None:
    info = {"lateral": 0.1, "angle": 0.0, "steer_lock": 0.4}
    behaviour, other = Behaviour(seed=3), Behaviour(np.random.SeedSequence(3))
    goals, noise = np.random.SeedSequence(3).generate_state(2).tolist()
    wander, rng = Wander(seed=goals), np.random.default_rng(noise)
    for _ in range(100):
        drawn = behaviour.act(info)
        assert drawn == other.act(info) == policy.draw(wander.act(info), rng=rng)
    assert Behaviour(seed=4).act(info) != Behaviour(seed=3).act(info)


def test_an_unknown_simulator_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(ValueError, match="'gran-turismo'; known are 'torcs', 'car-racing'"):
        record("gran-turismo", 10)


# Recordings


def test_a_recording_comes_back_from_its_file(tmp_path: Path) -> None:
    recording = sketch(1500)  # more than a piece of the file
    recording.save(tmp_path / "new" / "stream")
    again = Recording.load(tmp_path / "new" / "stream")
    for name in ("frames", "first", "action", "log_mu", "lateral", "angle", "speed", "distance"):
        ours, theirs = getattr(recording, name), getattr(again, name)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)
    assert again.settings == recording.settings
    assert again.hash == recording.hash
    assert os.listdir(tmp_path / "new") == ["stream"]


def test_the_hash_is_of_the_numbers_and_not_of_the_settings() -> None:
    recording = sketch()
    assert dataclasses.replace(recording, settings={}).hash == recording.hash
    for name in ("frames", "first", "action", "log_mu", "lateral", "angle", "speed", "distance"):
        changed = np.array(getattr(recording, name))
        changed[2] += 1
        assert dataclasses.replace(recording, **{name: changed}).hash != recording.hash


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    recording, path = sketch(), tmp_path / "stream"
    recording.save(path)
    other = dataclasses.replace(recording, action=recording.action + 1)
    vars(other)["hash"] = recording.hash
    other.save(path)
    with pytest.raises(ValueError, match=r"stream is damaged: .* make it again"):
        Recording.load(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"the recording in .*stream cannot be read"):
        Recording.load(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        Recording.load(tmp_path / "nothing")
    states = EvaluationSet(recording.frames, np.zeros(12), np.zeros(12), np.zeros(12), {})
    states.save(path)
    with pytest.raises(ValueError, match="but holds no recording of driving"):
        Recording.load(path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"first": [0, 1, 1]}, "first must increase"),
        ({"first": [0, 1, 4]}, "first must increase from 0 or more to at most 3"),
        ({"first": [-1, 1, 2]}, "first must increase"),
        ({"action": [0.0, 0.0]}, r"action has shape \(2,\) for 3 transitions"),
        ({"lateral": [0.0, 0.0]}, r"lateral has shape \(2,\) for 5 frames"),
        ({"frames": np.zeros((5, 64, 64), np.uint8)}, "frames must be uint8 of shape"),
        ({"frames": np.zeros((5, 64, 128))}, "got float64"),
    ],
)
def test_a_recording_that_does_not_fit_together_is_an_error(wrong: Any, message: str) -> None:
    right = {
        "frames": np.zeros((5, 64, 128), np.uint8), "first": [0, 1, 3], "settings": {},
        **dict.fromkeys(("action", "log_mu"), np.zeros(3)),
        **dict.fromkeys(("lateral", "angle", "speed", "distance"), np.zeros(5)),
    }  # fmt: skip
    Recording(**right)
    with pytest.raises(ValueError, match=message):
        Recording(**{**right, **wrong})


@pytest.mark.parametrize(("start", "stop"), [(0, None), (0, 3), (3, 6), (2, 7), (8, 9), (4, 4)])
def test_transitions_are_frames_that_follow_each_other(start: int, stop: int | None) -> None:
    recording = sketch()
    batch = recording.transitions(start, stop)
    first = recording.first[start:stop]
    assert len(batch) == len(first)
    assert np.array_equal(batch.state, recording.frames[first])
    assert np.array_equal(batch.next_state, recording.frames[first + 1])
    assert np.array_equal(batch.action, recording.action[start:stop])
    assert np.array_equal(batch.behaviour_log_probability, recording.log_mu[start:stop])
    assert np.array_equal(batch.next_lateral, recording.lateral[first + 1])


def test_transitions_within_an_episode_are_not_copied() -> None:
    recording = sketch()
    assert np.shares_memory(recording.transitions(3, 6).state, recording.frames)
    assert np.shares_memory(recording.transitions(3, 6).next_state, recording.frames)


def test_recording_leaves_out_the_start_and_what_a_reset_does(flat: Callable[..., None]) -> None:
    flat(end=12)  # 5 steps of start, then 7 transitions
    told: list[tuple[int, int]] = []
    recording = record("torcs", 220, seed=4, progress=lambda *done: told.append(done))
    assert told == [(100, 220), (200, 220), (220, 220)]
    assert len(recording) == 220
    assert np.array_equal(recording.first, np.arange(220) + np.arange(220) // 7)
    # A frame of the straight road shows the time since the reset, from 5 to 12.
    for frame, distance in zip(recording.frames, recording.distance, strict=True):
        time = round(float(distance) / 1.5)
        assert np.array_equal(frame, np.random.default_rng(time).integers(0, 256, (64, 128)))
    assert recording.distance.min() == 1.5 * 5
    assert recording.distance.max() == 1.5 * 12


def test_recorded_densities_are_those_of_the_behaviour(flat: Callable[..., None]) -> None:
    flat()
    recording = record("torcs", 200, seed=5)
    drive = Drive(make("torcs"), "torcs", seed=next(seeds(5)))
    goals, _, reset = next(seeds(5)).generate_state(3).tolist()
    assert drive.reset_seed == reset
    assert [road.seed for road in sys.modules["flat_road"].made] == [reset, reset]
    wander, road = Wander(seed=goals), make("torcs")
    _, info = road.reset(seed=0)
    for action in drive.actions:  # of the start, without noise
        assert action == wander.act(info)
        info = road.step(np.array([action], np.float32))[4]
    for t in range(200):
        a_det = wander.act(drive.info)
        action, _, _ = drive.step()
        assert recording.action[t] == action
        expected = gvf.Gaussian(a_det, 0.1).log_probability([0], [action])[0]
        assert recording.log_mu[t] == pytest.approx(expected)


def test_recording_is_a_function_of_its_arguments(flat: Callable[..., None]) -> None:
    flat()
    assert record("torcs", 50, seed=1).hash == record("torcs", 50, seed=1).hash
    assert record("torcs", 50, seed=1).hash != record("torcs", 50, seed=2).hash


def test_driving_nowhere_is_an_error_before_anything_starts() -> None:
    for act in (record, driven):
        with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
            act("torcs", 0)
        with pytest.raises(ValueError, match="seed must be at least 0, got -1"):
            act("torcs", 1, seed=-1)


def test_a_car_that_never_gets_under_way_is_an_error(flat: Callable[..., None]) -> None:
    flat(end=3)
    with pytest.raises(RuntimeError, match="before the car was under way"):
        record("torcs", 10)


def test_learning_from_a_recording_needs_neither_gymnasium_nor_a_simulator(tmp_path: Path) -> None:
    sketch().save(tmp_path / "stream")
    script = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "from gvf.racing import get, policy, recording, rollouts\n"
        "import gvf.window.frames\n"
        "assert get('torcs').question('left').name == 'towards-middle'\n"
        f"stream = recording.Recording.load({str(tmp_path / 'stream')!r})\n"
        "print(len(policy.towards_middle().evaluate(stream.transitions()).ratio))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "9", done.stderr


# The domain: behaviours and questions by name, and streams for learners


def test_a_domain_has_its_environment_behaviour_and_question_by_name() -> None:
    for name, environment in (("torcs", "gvf/Torcs-v0"), ("car-racing", "gvf/CarRacing-v0")):
        domain = get(name)
        assert domain.environment == environment
        assert domain.target("left") == gvf.Gaussian(0.15, 0.0075)
        assert isinstance(domain.behaviour("wander", seed=0), Behaviour)
        assert repr(domain).startswith(f"RacingDomain '{name}', environment {environment}\n")
        with pytest.raises(ValueError, match=f"question of {name}: 'right'; known are 'left'"):
            domain.question("right")
        with pytest.raises(ValueError, match=f"behaviour of {name}: 'x'; known are 'wander'"):
            domain.behaviour("x")
    with pytest.raises(ValueError, match="'bicycle'; known are 'torcs', 'car-racing'"):
        get("bicycle")


@pytest.mark.parametrize(("steps", "batch"), [(100, 7), (64, 64), (5, 64), (3, 1)])
def test_a_stream_is_what_a_recording_holds(
    steps: int, batch: int, flat: Callable[..., None]
) -> None:
    flat(end=12)  # episodes of 7 transitions
    batches = list(get("torcs").stream(steps, seed=4, batch=batch))
    assert [len(piece) for piece in batches[:-1]] == [batch] * ((steps - 1) // batch)
    recording = record("torcs", steps, seed=4)
    assert same(gvf.Transitions.concatenate(batches), recording.transitions())


def test_a_stream_closes_its_simulator(flat: Callable[..., None]) -> None:
    flat()
    stream = get("torcs").stream(30, batch=10)
    made = sys.modules["flat_road"].made
    assert not made  # nothing starts before it is asked for
    assert len(list(islice(stream, 2))) == 2
    assert not made[0].closed
    del stream
    assert made[0].closed
    list(get("torcs").stream(30))
    assert made[1].closed

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as kept:  # with the frames in which it was raised
        record("torcs", 300, progress=stop)
    assert made[2].closed, kept


def test_a_stream_of_nothing_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        get("torcs").stream(0)
    with pytest.raises(ValueError, match="batch must be at least 1, got 0"):
        get("torcs").stream(10, batch=0)


def learned(source: Any, steps: int) -> NDArray[Any]:
    """Return the predictions of a tiny network that learned from a source of transitions."""
    torch = pytest.importorskip("torch")
    from gvf.neural import NeuralLearner

    class Tiny(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(64, 1)

        def forward(self, frames: Any) -> Any:
            return self.layer(frames[:, ::8, ::16].flatten(1) / 255)

    torch.manual_seed(0)
    question = get("torcs").question("left")
    network, optimiser = Tiny(), partial(torch.optim.Adam, lr=1e-3)
    learner = NeuralLearner(question, network, optimiser, window=gvf.FrameWindow(50), seed=0)
    frames = np.random.default_rng(0).integers(0, 256, (5, 64, 128), np.uint8)
    before = learner.predict(frames)
    report = learner.learn(source, steps=steps)
    assert report.updates > steps / 2
    after = learner.predict(frames)
    assert np.isfinite(after).all()
    assert not np.allclose(before, after)
    return after


def test_learning_online_is_learning_from_the_recording(flat: Callable[..., None]) -> None:
    flat(end=40)
    online = [learned(get("torcs").stream(120, seed=6, batch=batch), 100) for batch in (64, 9)]
    recorded = learned(record("torcs", 120, seed=6).transitions(), 100)
    for predictions in online:
        assert np.array_equal(predictions, recorded)


# Rollouts


def test_the_return_is_the_discount_at_the_first_step_near_the_middle() -> None:
    env = Flat()
    for lateral in (-0.9, -0.3, -0.05, 0.05, 0.3):
        env.reset(seed=0)
        env.lateral = lateral
        found = target_return(env, 0.1, rng=np.random.default_rng(1))
        env.reset(seed=0)
        env.lateral = lateral
        expected, steering = (
            0.0,
            gvf.Gaussian(0.15, 0.0075).sample(
                np.zeros(rollouts.LONGEST), rng=np.random.default_rng(1)
            ),
        )
        for t, action in enumerate(steering):
            _, _, _, truncated, info = env.step(np.array([action], np.float32))
            if abs(info["lateral"]) < 0.1:
                expected = 0.9**t
                break
            if truncated:
                break
        assert found == pytest.approx(expected)
        assert (found > 0) == (lateral < 0.1)


def test_a_rollout_in_which_the_car_is_lost_counts_as_nothing() -> None:
    for end, expected in ((5, 0.0), (6, 0.9**5), (7, 0.9**5)):
        env = Flat(end=end)
        env.reset(seed=0)
        env.lateral = -0.3
        assert target_return(env, 0.25, rng=np.random.default_rng(0)) == pytest.approx(expected)


def test_rollouts_stop_when_the_rest_hardly_counts() -> None:
    assert 0.9**rollouts.LONGEST < 1e-4 <= 0.9 ** (rollouts.LONGEST - 1)


def test_values_are_mean_returns_from_states_of_the_behaviour(flat: Callable[..., None]) -> None:
    flat()
    told: list[tuple[int, int]] = []
    states = evaluation(
        "torcs", 12, 3, seed=7, episodes=4, progress=lambda *done: told.append(done)
    )
    assert told == [(3, 12), (6, 12), (9, 12), (12, 12)]
    assert len(states) == 12
    # Steering left from the right leads to the middle, from the left it does not.
    assert (states.value[states.lateral < -0.1] > 0).all()
    assert (states.value[states.lateral > 0.15] == 0).all()
    assert set(states.settings) >= {"simulator", "states", "rollouts", "seed", "versions"}


def test_evaluation_does_not_depend_on_the_number_of_workers(
    flat: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    flat()
    monkeypatch.setattr(policy, "TARGET", gvf.Gaussian(0.15, 0.3))  # so that rollouts differ
    one, two, other = (
        evaluation("torcs", 10, 2, seed=seed, episodes=4, workers=workers)
        for seed, workers in ((1, 1), (1, 3), (2, 1))
    )
    assert one.hash == two.hash != other.hash
    assert (one.stderr > 0).any()
    assert one.value.min() >= 0


def test_an_evaluation_set_comes_back_from_its_file(
    flat: Callable[..., None], tmp_path: Path
) -> None:
    flat()
    states = evaluation("torcs", 10, 2)
    states.save(tmp_path / "states")
    again = EvaluationSet.load(tmp_path / "states")
    for name in ("frames", "value", "stderr", "lateral"):
        assert np.array_equal(getattr(again, name), getattr(states, name))
    assert again.settings == states.settings
    assert again.hash == states.hash
    sketch().save(tmp_path / "states")
    with pytest.raises(ValueError, match="but holds no evaluation set"):
        EvaluationSet.load(tmp_path / "states")


def test_a_film_is_in_the_order_of_the_drive(flat: Callable[..., None]) -> None:
    flat()
    shown = film("torcs", 40, 2, every=3, seed=3)
    assert len(shown) == 14
    drive = Drive(make("torcs"), "torcs", seed=next(seeds(3)).spawn(2)[0])
    for step in range(40):
        if step % 3 == 0:
            assert shown.lateral[step // 3] == drive.info["lateral"]
            assert np.array_equal(shown.frames[step // 3], drive.frame)
        drive.step()


def test_a_simulator_that_does_not_repeat_itself_is_found_out(flat: Callable[..., None]) -> None:
    flat(wobble=1e-9)
    with pytest.raises(RuntimeError, match="torcs is not deterministic: the same"):
        evaluation("torcs", 4, 2)


def test_rollouts_from_nowhere_are_an_error(flat: Callable[..., None]) -> None:
    with pytest.raises(ValueError, match="at least 1, got 0, 5 and 10"):
        evaluation("torcs", 0)
    with pytest.raises(ValueError, match="2 episodes of torcs have at most 4400 states"):
        evaluation("torcs", 4401, episodes=2)
    with pytest.raises(ValueError, match="at least 1, got 300, 5 and 0"):
        film("torcs", every=0)
    with pytest.raises(ValueError, match=r"value has shape \(2,\) for 3 frames"):
        EvaluationSet(np.zeros((3, 64, 128), np.uint8), np.ones(2), np.ones(3), np.ones(3), {})


# The simulators themselves


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
    """A replay leads to the recorded state, bit for bit, also after a rollout of the target."""
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
    assert np.array_equal(online, learned(recording.transitions(), 90))


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
        "from gvf.racing.car_racing import CarRacing\n"
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
        "from gvf.racing.car_racing import CarRacing\n"
        "try:\n"
        "    CarRacing()\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert 'pip install "gvf[racing]"' in done.stdout, done.stderr
