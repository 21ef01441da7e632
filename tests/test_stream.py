"""Streams: every transition is one the dynamics made, none is missing, none comes from a reset."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Text
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gvf.policy import Gaussian, Policy, Table, Uniform
from gvf.stream import transitions

MODES = list(AutoresetMode)


class Ladder(gym.Env[Any, Any]):
    """Climb 1 or 2 rungs a step; the observation is (rung, step, episode).

    Rung 6 terminates, the fourth step truncates. Every transition can be checked from its
    observations, and a reset, at rung 0 or below, can never be taken for a step. The environment
    gives out its own buffer unless told otherwise, as a careless one may.
    """

    observation_space = Box(-10, 10_000, (3,), np.int64)
    action_space: gym.Space[Any] = Discrete(2)

    def __init__(self, copies: bool = False) -> None:
        self.buffer = np.zeros(3, np.int64)
        self.copies = copies
        self.received: list[Any] = []
        self.episode = 0

    def observation(self):
        return self.buffer.copy() if self.copies else self.buffer

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.buffer[:] = -self.np_random.integers(4), 0, self.episode
        self.episode += 1
        return self.observation(), {}

    def step(self, action):
        self.received.append(action)
        reward = 10.0 * self.buffer[0] + action
        self.buffer += 1 + action, 1, 0
        return self.observation(), reward, bool(self.buffer[0] >= 6), bool(self.buffer[1] == 4), {}


def ladders(count, mode, copy=False):
    # Resetting in the same step overwrites the last observation of an environment that gives out
    # its buffer, before any caller can look.
    copies = mode is AutoresetMode.SAME_STEP
    return SyncVectorEnv([lambda: Ladder(copies)] * count, copy=copy, autoreset_mode=mode)


def received(env: Any) -> list[list[Any]]:
    """What each environment of a vector was told to do."""
    return [single.received for single in env.envs]


def gathered(batches):
    """Columns of all transitions, after the stream has ended: an alias would show by then."""
    batches = list(batches)
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0].columns}


def assert_legal(columns):
    state, action, following = columns["state"], columns["action"], columns["next_state"]
    assert (following == state + np.stack([1 + action, 1 + 0 * action, 0 * action], axis=1)).all()
    assert (columns["reward"] == 10 * state[:, 0] + action).all()
    assert (columns["terminated"] == (following[:, 0] >= 6)).all()
    assert (columns["truncated"] == (following[:, 1] == 4)).all()
    assert (state[:, 1] < 4).all()
    assert (state[:, 0] < 6).all()


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].dtype == other[name].dtype
        assert (one[name] == other[name]).all()


def test_single_environment_gives_every_transition_once_and_in_order():
    batches = list(transitions(Ladder(), Uniform(2), 200, seed=0))
    assert [len(batch) for batch in batches] == [1] * 200
    columns = gathered(batches)
    assert_legal(columns)
    assert list(columns) == [
        "state",
        "action",
        "reward",
        "next_state",
        "terminated",
        "truncated",
        "behaviour_probability",
    ]
    assert (columns["behaviour_probability"] == 0.5).all()
    ended = (columns["terminated"] | columns["truncated"])[:-1]
    follows = (columns["state"][1:] == columns["next_state"][:-1]).all(axis=1)
    assert (follows == ~ended).all()
    assert columns["terminated"].any()
    assert (columns["truncated"] & ~columns["terminated"]).any()


@pytest.mark.parametrize("steps", [1, 5, 100])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_vector_environment_gives_every_transition_once_and_no_reset(mode, copy, count, steps):
    env = ladders(count, mode, copy)
    batches = list(transitions(env, Uniform(2), steps, seed=0))
    columns = gathered(batches)
    assert len(columns["state"]) == steps
    assert_legal(columns)
    made = sum(len(actions) for actions in received(env))
    assert steps <= made < steps + count
    assert max(len(batch) for batch in batches) <= count


@pytest.mark.parametrize("mode", MODES)
def test_vector_transitions_chain_within_each_environment(mode):
    env = ladders(1, mode)
    columns = gathered(transitions(env, Uniform(2), 100, seed=3))
    ended = (columns["terminated"] | columns["truncated"])[:-1]
    follows = (columns["state"][1:] == columns["next_state"][:-1]).all(axis=1)
    assert (follows == ~ended).all()
    assert (columns["state"][1:][ended, 1] == 0).all()


def test_gymnasiums_own_vector_cart_poles_give_no_reset():
    env = gym.make_vec("CartPole-v1", num_envs=4, vectorization_mode="vector_entry_point")
    columns = gathered(transitions(env, Uniform(2), 500, seed=0))
    position, velocity = columns["state"][:, 0], columns["state"][:, 1]
    assert len(position) == 500
    assert columns["terminated"].sum() > 10
    np.testing.assert_allclose(columns["next_state"][:, 0], position + 0.02 * velocity, atol=1e-6)


@pytest.mark.parametrize("make", [Ladder, *(lambda m=m: ladders(3, m) for m in MODES)])
def test_the_same_seed_gives_the_same_stream(make):
    def stream(seed):
        return gathered(transitions(make(), Uniform(2), 40, seed=seed))

    assert_equal(stream(5), stream(5))
    assert (stream(5)["action"] != stream(6)["action"]).any()
    assert (stream(5)["state"] != stream(6)["state"]).any()
    assert (stream(None)["action"] != stream(None)["action"]).any()


def test_no_steps_give_no_batches():
    assert list(transitions(Ladder(), Uniform(2), 0)) == []
    assert list(transitions(ladders(2, AutoresetMode.NEXT_STEP), Uniform(2), 0)) == []
    with pytest.raises(ValueError, match="at least 0, got -1"):
        transitions(Ladder(), Uniform(2), -1)


def test_changing_a_batch_does_not_change_the_stream():
    clean = gathered(transitions(Ladder(), Uniform(2), 30, seed=0))
    for row, batch in enumerate(transitions(Ladder(), Uniform(2), 30, seed=0)):
        assert (batch.state == clean["state"][row]).all()
        for column in batch.columns.values():
            column[...] = 0


class Shelf(gym.Env[Any, Any]):
    """Observations 0, 1, 2 in turn, for ever; remembers what it was told to do."""

    observation_space: gym.Space[Any] = Discrete(3)

    def __init__(self, action_space, observation_space=None) -> None:
        self.action_space = action_space
        self.observation_space = observation_space or self.observation_space
        self.place = 0
        self.received: list[Any] = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.place, {}

    def step(self, action):
        self.received.append(action)
        self.place = (self.place + 1) % 3
        return self.place, 0, False, False, {}


def test_discrete_states_are_integers_and_discrete_actions_python_ints():
    env = Shelf(Discrete(2))
    policy = Table([[1.0, 0.0], [0.0, 1.0], [0.25, 0.75]])
    columns = gathered(transitions(env, policy, 30, seed=0))
    assert columns["state"].tolist() == [0, 1, 2] * 10
    assert columns["next_state"].tolist() == [1, 2, 0] * 10
    assert columns["reward"].dtype == np.float64
    assert all(type(action) is int for action in env.received)
    assert env.received == columns["action"].tolist()
    expected = policy.probability(columns["state"], columns["action"])
    assert (columns["behaviour_probability"] == expected).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_actions_beyond_a_box_are_executed_clipped_and_recorded_as_drawn(dtype):
    env = Shelf(Box(np.array([-1, 0], dtype), np.array([1, 0.5], dtype), dtype=dtype))
    policy = Gaussian([0.9, 0.1], [1.0, 1.0])
    columns = gathered(transitions(env, policy, 50, seed=0))
    for executed, drawn in zip(env.received, columns["action"], strict=True):
        assert executed.dtype == dtype
        assert env.action_space.contains(executed)
        assert (executed == np.clip(drawn, [-1, 0], [1, 0.5]).astype(dtype)).all()
    assert np.abs(columns["action"]).max() > 1
    assert "behaviour_probability" not in columns
    expected = policy.log_probability(columns["state"], columns["action"])
    assert (columns["behaviour_log_probability"] == expected).all()


def test_vector_box_actions_have_the_shape_of_the_space():
    env = SyncVectorEnv([lambda: Shelf(Box(1.0, 2.0, (1,)))] * 3)
    columns = gathered(transitions(env, Gaussian(0.0, 1.0), 12, seed=0))
    executed = np.array(received(env))
    assert executed.shape == (3, 4, 1)
    assert (executed.ravel(order="F") == np.clip(columns["action"], 1, 2).astype("f4")).all()


class Broken(Policy):
    """Gives three numbers an action."""

    def log_probability(self, states, actions):
        return np.zeros(len(states))

    def sample(self, states, *, rng):
        return rng.random((len(states), 3))


def test_a_continuous_action_of_the_wrong_size_is_an_error_before_the_first_step():
    env = Shelf(Box(-1, 1, (2,)))
    with pytest.raises(ValueError, match=r"gave actions of shape \(3,\).*takes Box"):
        next(transitions(env, Broken(), 1))
    assert env.received == []


@pytest.mark.parametrize(
    ("env", "policy", "message"),
    [
        (
            Shelf(Discrete(2)),
            Uniform(4),
            r"gives 4 actions; the environment takes Discrete\(2\)",
        ),
        (Shelf(Discrete(2)), Gaussian(0.0, 1.0), r"not discrete, but .* Discrete\(2\)"),
        (Shelf(Discrete(2, start=1)), Uniform(2), r"begin at 1.*TransformAction"),
        (Shelf(Box(-1, 1, (1,))), Uniform(2), "2 discrete actions; the environment takes Box"),
        (Shelf(Box(0, 9, (1,), np.int64)), Gaussian(0.0, 1.0), "real-valued actions; the"),
        (Shelf(MultiDiscrete([2, 2])), Uniform(4), "neither Discrete nor Box.*ActionWrapper"),
        (Shelf(Discrete(2), Dict(a=Discrete(2))), Uniform(2), "FlattenObservation"),
        (Shelf(Discrete(2), Text(3)), Uniform(2), "TransformObservation"),
        (SyncVectorEnv([lambda: Shelf(Discrete(2))]), Uniform(3), r"takes Discrete\(2\)"),
        (SyncVectorEnv([lambda: Shelf(Discrete(2), Text(3))]), Uniform(2), "TransformObservation"),
    ],
)
def test_spaces_that_do_not_fit_are_an_error_at_the_call(env, policy, message):
    with pytest.raises(ValueError, match=message):
        transitions(env, policy, 10)


def test_the_wrappers_that_the_errors_name_do_help():
    shelf = Shelf(Discrete(2, start=1))
    env = gym.wrappers.TransformAction(shelf, lambda a: a + 1, Discrete(2))
    list(transitions(env, Uniform(2), 20, seed=0))
    assert set(shelf.received) == {1, 2}
    named = gym.wrappers.TransformObservation(
        Shelf(Discrete(2)), lambda place: {"place": place}, Dict(place=Discrete(3))
    )
    columns = gathered(transitions(gym.wrappers.FlattenObservation(named), Uniform(2), 3, seed=0))
    assert columns["state"].tolist() == np.eye(3).tolist()


def test_a_vector_environment_must_say_when_it_resets():
    env = ladders(2, AutoresetMode.NEXT_STEP)
    del env.metadata["autoreset_mode"]
    with pytest.raises(ValueError, match=r"does not say when it resets.*AutoresetMode"):
        transitions(env, Uniform(2), 10)


def test_a_same_step_environment_must_give_the_last_observation():
    env = ladders(2, AutoresetMode.NEXT_STEP)
    env.metadata["autoreset_mode"] = AutoresetMode.SAME_STEP
    with pytest.raises(ValueError, match="no 'final_obs'"):
        list(transitions(env, Uniform(2), 10))


def test_something_that_is_no_environment_or_no_policy_is_refused():
    with pytest.raises(TypeError, match=r"must be a gvf\.Policy, not 2"):
        transitions(Ladder(), 2, 10)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Gymnasium environment, got 'CartPole-v1'"):
        transitions("CartPole-v1", Uniform(2), 10)  # type: ignore[arg-type]
