"""Recordings of drives."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from roads import Flat, same, sketch

import gvf
from gvf_lab.racing import simulators
from gvf_lab.racing.driving import Drive, behaviour_steps, seeds
from gvf_lab.racing.driving_policies import Wander
from gvf_lab.racing.driving_rollouts import EvaluationSet, evaluation, film
from gvf_lab.racing.recording import Recording, record
from gvf_lab.racing.simulators import make


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
        expected = gvf.policies.Gaussian(a_det, 0.1).log_probability([0], [action])[0]
        assert recording.log_mu[t] == pytest.approx(expected)


def test_recording_is_a_function_of_its_arguments(flat: Callable[..., None]) -> None:
    flat()
    assert record("torcs", 50, seed=1).hash == record("torcs", 50, seed=1).hash
    assert record("torcs", 50, seed=1).hash != record("torcs", 50, seed=2).hash


def test_driving_nowhere_is_an_error_before_anything_starts() -> None:
    for act in (record, behaviour_steps):
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
        "from gvf_lab.racing import driving_policies, driving_rollouts, get, recording\n"
        "import gvf.window.frame_window\n"
        "assert get('torcs').question('left').name == 'towards-middle'\n"
        f"stream = recording.Recording.load({str(tmp_path / 'stream')!r})\n"
        "print(len(driving_policies.towards_middle().evaluate(stream.transitions()).ratio))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "9", done.stderr


def test_episodes_take_turns_on_the_tracks(
    flat: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    flat()
    taken: list[str] = []
    there = dataclasses.replace(simulators.get("torcs"), tracks=("a", "b"), episode=7)
    monkeypatch.setitem(simulators.SIMULATORS, "torcs", there)

    class Road(Flat):
        def __init__(self, track: str) -> None:
            super().__init__()
            self.track = track

        def reset(self, *, seed: int) -> Any:
            taken.append(self.track)
            return super().reset(seed=seed)

    monkeypatch.setattr(sys.modules["flat_road"], "Flat", Road)
    assert len(record("torcs", 20, seed=4)) == 20
    assert taken == ["a", "b", "a"]
    taken.clear()
    # A track that is named is the only one.
    record("torcs", 20, seed=4, track="c")
    assert taken == ["c"] * 3
    taken.clear()
    evaluation("torcs", 5, 1, seed=4, episodes=5, workers=1)
    assert list(dict.fromkeys(taken)) == ["a", "b"]
    assert taken.count("a") > taken.count("b") > 0  # three episodes and two
    taken.clear()
    film("torcs", 9, 1, seed=4, workers=1)
    assert {*taken} == {"a"}


def test_parts_are_joined_in_order() -> None:
    parts = [sketch(9, seed) for seed in range(3)]
    whole = Recording.join(parts)
    assert same(
        whole.transitions(), gvf.Transitions.concatenate([part.transitions() for part in parts])
    )
    assert len(whole.frames) == sum(len(part.frames) for part in parts)
    assert [part["seed"] for part in whole.settings["parts"]] == [0, 1, 2]
