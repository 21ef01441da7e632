"""Rollouts of the racing car."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from roads import Flat, sketch

import gvf
from gvf_lab.racing import driving_policies as policy
from gvf_lab.racing import driving_rollouts as rollouts
from gvf_lab.racing.driving import Drive, seeds
from gvf_lab.racing.driving_rollouts import EvaluationSet, evaluation, film, target_return
from gvf_lab.racing.simulators import make


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
            gvf.policies.Gaussian(0.15, 0.0075).sample(
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
    monkeypatch.setattr(
        policy, "TARGET", gvf.policies.Gaussian(0.15, 0.3)
    )  # so that rollouts differ
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


def test_an_interrupt_ends_the_jobs_in_progress(
    flat: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    flat()
    interrupted, late = threading.Event(), []
    measure = rollouts.target_return

    def slow(*given: Any, **options: Any) -> float:
        time.sleep(0.005)
        if interrupted.is_set():
            late.append(1)
        return measure(*given, **options)

    def interrupt(done: int, total: int) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(rollouts, "target_return", slow)
    with pytest.raises(KeyboardInterrupt):
        evaluation("torcs", 8, 50, episodes=4, workers=2, progress=interrupt)
    # A job has 100 rollouts; each worker ends the one that it has begun, or just one more.
    assert len(late) <= 4
    assert all(env.closed for env in sys.modules["flat_road"].made)


def test_rollouts_from_nowhere_are_an_error(flat: Callable[..., None]) -> None:
    with pytest.raises(ValueError, match="at least 1, got 0, 5 and 15"):
        evaluation("torcs", 0)
    with pytest.raises(ValueError, match="2 episodes of torcs have at most 5000 states"):
        evaluation("torcs", 5001, episodes=2)
    with pytest.raises(ValueError, match="at least 1, got 300, 5 and 0"):
        film("torcs", every=0)
    with pytest.raises(ValueError, match=r"value has shape \(2,\) for 3 frames"):
        EvaluationSet(np.zeros((3, 64, 128), np.uint8), np.ones(2), np.ones(3), np.ones(3), {})
