"""Worlds with logs whose truth is known."""

import numpy as np
import pytest

import gvf
from gvf_lab import worlds


def test_a_policy_pushes_to_where_the_pole_leans() -> None:
    states = np.array([[0.0, 0.0, 0.1, 0.0], [0.0, 0.0, -0.1, 0.0]])
    assert worlds.pushes(states).tolist() == [[0.1, 0.9], [0.9, 0.1]]
    right = worlds.leaning(0.25).probability(states, np.array([1, 1]))
    assert right.tolist() == [0.75, 0.25]


def test_true_values_have_no_error_and_others_have_theirs() -> None:
    world = worlds.four_rooms()
    asked = gvf.LSTDLearner(world.question, world.features)
    asked.observe(world.log(20_000, 0).transitions())
    assert world.relative_error(asked.predict(world.states)) < 0.3
    assert world.relative_error(np.full(len(world.states), world.start)) > 0.9
    assert world.squared_error(np.zeros(len(world.states))) > world.variance


@pytest.mark.parametrize("make", [worlds.cartpole, worlds.pendulum])
def test_sampled_truth_is_judged_without_its_noise(make) -> None:
    world = make(30, 4)
    mean = np.full(len(world.states), world.start)
    assert 0 < world.start_noise < abs(world.start)
    assert world.squared_error(mean) > 0
    log = world.log(200, 0)
    assert len(log) == 200
    assert world.features(world.states).shape[0] == 30
