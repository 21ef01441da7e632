"""Driving: the behaviour and the question."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import gvf
from gvf_lab.racing import driving_policies as policy
from gvf_lab.racing.driving_policies import Behaviour, Wander, towards_middle


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
    assert question.policy == gvf.policies.Gaussian(0.15, 0.0075)
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
