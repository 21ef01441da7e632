"""Streams: every transition is one the dynamics made, none is missing, none comes from a reset."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    MultiBinary,
    MultiDiscrete,
    Sequence,
    Text,
    Tuple,
)
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import gvf
from gvf.policy import (
    Always,
    Favour,
    Fixed,
    FunctionPolicy,
    Gaussian,
    Mixture,
    Policy,
    Table,
    Uniform,
)
from gvf.stream import Actor, Walk, transitions
from gvf.stream.info import STANDARD, Info, info_columns
from gvf.stream.observation import Observations

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
    """Return the actions that each environment of a vector received."""
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
        assert np.array_equal(one[name], other[name])


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


@pytest.mark.parametrize("size", [1, 4])
def test_changing_a_batch_does_not_change_the_stream(size):
    clean = gathered(transitions(Ladder(), Uniform(2), 30, seed=0))
    row = 0
    for batch in transitions(Ladder(), Uniform(2), 30, seed=0, batch=size):
        assert (batch.state == clean["state"][row : row + len(batch)]).all()
        row += len(batch)
        for column in batch.columns.values():
            column[...] = 0
    assert row == 30


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
        (Shelf(Discrete(2), Tuple([Discrete(2)])), Uniform(2), "FlattenObservation"),
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


# Batches of a single environment


def softly(states):
    """Probabilities of two actions, from the first number of a state."""
    p = 1 / (1 + np.exp(-states[:, 0] / 3))
    return np.stack([p, 1 - p], axis=1)


CASES = {
    "integers": (Ladder, FunctionPolicy(softly, 2)),
    "numbers": (lambda: Shelf(Discrete(2)), Table([[0.5, 0.5], [0.0, 1.0], [0.25, 0.75]])),
    "flat actions": (lambda: Shelf(Box(-1, 1, (1,))), Gaussian(0.0, 1.0)),
    "wide actions": (lambda: Shelf(Box(-1, 1, (2,), np.float64)), Gaussian([0.1, 0.2], 1.0)),
    "a scalar action": (lambda: Shelf(Box(-1, 1, ())), Gaussian(0.0, 1.0)),
    "cart pole": (lambda: gym.make("CartPole-v1"), Mixture(Favour(1, 0.8, 2), Uniform(2), 0.5)),
    "frozen lake": (lambda: gym.make("FrozenLake-v1"), Fixed([0.1, 0.2, 0.3, 0.4])),
    "pendulum": (lambda: gym.make("Pendulum-v1"), Gaussian(lambda s: s[:, :1], 0.5)),
}


@pytest.mark.parametrize(("make", "policy"), CASES.values(), ids=CASES)
def test_larger_batches_hold_the_same_transitions(make, policy):
    one_by_one = gathered(transitions(make(), policy, 150, seed=9))
    for size, lengths in ((64, [64, 64, 22]), (50, [50, 50, 50]), (1000, [150])):
        batches = list(transitions(make(), policy, 150, seed=9, batch=size))
        assert [len(batch) for batch in batches] == lengths
        assert_equal(gathered(batches), one_by_one)


def test_a_walk_takes_the_steps_of_a_stream():
    env, policy = Ladder(), FunctionPolicy(softly, 2)
    for_environment, for_actions = np.random.SeedSequence(9).spawn(2)
    walk, actor = Walk(env), Actor(policy, env.action_space)
    walk.start(int(for_environment.generate_state(1)[0] >> 1))
    rng, steps = np.random.default_rng(for_actions), []
    for _ in range(30):
        before = walk.state
        steps.append(walk.step(actor, rng))
        assert (before == steps[-1].state).all()
    assert_equal(gathered(steps), gathered(transitions(Ladder(), policy, 30, seed=9)))


def test_a_batch_of_no_transitions_is_refused():
    with pytest.raises(ValueError, match="batch must be at least 1, got 0"):
        transitions(Ladder(), Uniform(2), 10, batch=0)


def test_the_stream_acts_only_when_a_batch_is_asked_for():
    env = Ladder()
    stream = transitions(env, Uniform(2), 100, seed=0, batch=8)
    assert env.received == []
    next(stream)
    assert len(env.received) == 8
    next(stream)
    assert len(env.received) == 16


class Fragile(Ladder):
    """Fails at the twelfth step, or at the third reset."""

    def __init__(self, at_reset=False):
        super().__init__()
        self.at_reset = at_reset

    def reset(self, *, seed=None, options=None):
        if self.at_reset and self.episode == 2:
            raise RuntimeError("no way back")
        return super().reset(seed=seed, options=options)

    def step(self, action):
        if not self.at_reset and len(self.received) == 11:
            raise RuntimeError("broken rung")
        return super().step(action)


@pytest.mark.parametrize("size", [1, 4, 11, 64])
@pytest.mark.parametrize("at_reset", [False, True])
def test_an_error_comes_after_the_transitions_before_it(at_reset, size):
    env, seen, message = Fragile(at_reset), [], ""
    try:
        for batch in transitions(env, Uniform(2), 100, seed=0, batch=size):
            seen.append(batch)
    except RuntimeError as error:
        message = str(error)
    assert message == ("no way back" if at_reset else "broken rung")
    columns = gathered(seen)
    assert len(columns["state"]) == len(env.received)
    assert_legal(columns)
    assert max(len(batch) for batch in seen) <= size


def test_an_error_of_the_policy_comes_after_the_transitions_before_it():
    def fails_at_two(states):
        if states[0] == 2:
            raise RuntimeError("unknown place")
        return np.full((len(states), 2), 0.5)

    stream = transitions(Shelf(Discrete(2)), FunctionPolicy(fails_at_two, 2), 9, batch=9)
    assert next(stream).state.tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="unknown place"):
        next(stream)


# The behaviour at the time of the action


@pytest.mark.parametrize("size", [1, 64])
def test_a_function_is_evaluated_once_for_each_transition(size):
    calls = []

    def counted(states):
        calls.append(len(states))
        return softly(states)

    for policy in (
        FunctionPolicy(counted, 2),
        Mixture(FunctionPolicy(counted, 2), Uniform(2), 0.9),
    ):
        calls.clear()
        list(transitions(Ladder(), policy, 100, seed=0, batch=size))
        assert calls == [1] * 100


@pytest.mark.parametrize("mode", MODES)
def test_a_function_is_evaluated_once_for_each_step_of_a_vector(mode):
    calls = []

    def counted(states):
        calls.append(len(states))
        return softly(states)

    batches = list(transitions(ladders(3, mode), FunctionPolicy(counted, 2), 99, seed=0))
    lengths = [len(batch) for batch in batches]
    assert calls[:-1] == lengths[:-1]
    assert len(calls) == len(lengths)


class Drifting:
    """Probabilities that change with every evaluation, and are remembered."""

    def __init__(self):
        self.given = []

    def __call__(self, states):
        p = 0.1 + 0.8 * (0.618 * len(self.given) % 1)
        self.given.append(p)
        return np.tile([p, 1 - p], (len(states), 1))


@pytest.mark.parametrize("size", [1, 64])
def test_a_changing_behaviour_is_recorded_as_it_was_when_it_acted(size):
    drifting = Drifting()
    columns = gathered(transitions(Ladder(), FunctionPolicy(drifting, 2), 100, seed=0, batch=size))
    p = np.array(drifting.given)
    expected = np.where(columns["action"] == 0, p, 1 - p)
    assert columns["behaviour_probability"].tolist() == expected.tolist()
    assert len(set(expected)) > 90


def test_a_changing_behaviour_of_a_vector_is_recorded_as_it_was_when_it_acted():
    drifting = Drifting()
    env = ladders(3, AutoresetMode.SAME_STEP)
    batches = list(transitions(env, FunctionPolicy(drifting, 2), 99, seed=0))
    assert len(batches) == 33
    for p, batch in zip(drifting.given, batches, strict=True):
        expected = np.where(batch.action == 0, p, 1 - p)
        assert batch.behaviour_probability.tolist() == expected.tolist()


def test_a_behaviour_may_react_to_every_batch():
    weights = np.array([0.5, 0.5])
    policy = FunctionPolicy(lambda states: np.tile(weights, (len(states), 1)), 2)
    seen = []
    for batch in transitions(Ladder(), policy, 50, seed=0):
        assert batch.behaviour_probability[0] == weights[batch.action[0]]
        seen.append(batch.action[0])
        weights[:] = 1 / (len(seen) + 2), 1 - 1 / (len(seen) + 2)
    assert len(seen) == 50


@pytest.mark.parametrize(
    "policy",
    [
        Uniform(3),
        Fixed([0.15, 0.0, 0.85]),
        Always(1, 3),
        Favour(2, 0.7, 3),
        Table([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [1 / 3, 1 / 3, 1 / 3]]),
        FunctionPolicy(lambda s: np.array([[0.1, 0.2, 0.7], [0.2, 0.3, 0.5]], "f4")[s % 2], 3),
        Mixture(Table([[0.1, 0.2, 0.7]] * 3), Favour(2, 0.7, 3), 0.3),
    ],
    ids=repr,
)
def test_the_record_is_what_the_policy_says_of_the_whole_stream_bit_for_bit(policy):
    for env in (Shelf(Discrete(3)), SyncVectorEnv([lambda: Shelf(Discrete(3))] * 4)):
        columns = gathered(transitions(env, policy, 200, seed=0, batch=64))
        again = policy.probability(columns["state"], columns["action"])
        assert columns["behaviour_probability"].tolist() == again.tolist()


class Reused(Policy):
    """Gives out its own buffer, as a careless policy may."""

    def __init__(self):
        self.buffer = np.zeros(1)

    def log_probability(self, states, actions):
        return -np.asarray(actions)

    def sample(self, states, *, rng):
        self.buffer[:] = rng.random()
        return self.buffer


def test_actions_are_copied_out_of_the_buffer_of_a_policy():
    env = Shelf(Box(0, 1, (), np.float64))
    columns = gathered(transitions(env, Reused(), 20, seed=0, batch=20))
    assert columns["action"].tolist() == [float(action) for action in env.received]
    assert len(set(env.received)) == 20


# Which environment of a vector


class Numbered(gym.Env[Any, Any]):
    """Observes its own number, and how many steps it has made; episodes differ in length."""

    observation_space = Box(0, 1000, (2,), np.int64)
    action_space: gym.Space[Any] = Discrete(2)

    def __init__(self, number):
        self.number, self.steps = number, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.array([self.number, self.steps]), {}

    def step(self, action):
        self.steps += 1
        ended = self.steps % (self.number + 2) == 0
        return np.array([self.number, self.steps]), 0.0, ended, False, {}


@pytest.mark.parametrize("size", [1, 64])
@pytest.mark.parametrize("mode", MODES)
def test_a_vector_environment_says_which_environment_a_transition_is_from(mode, size):
    makers = [lambda n=n: Numbered(n) for n in range(4)]
    env = SyncVectorEnv(makers, autoreset_mode=mode)
    batches = list(transitions(env, Uniform(2), 90, seed=0, batch=size))
    assert list(batches[0].columns)[-1] == "stream"
    lengths = {len(batch) for batch in batches[:-1]}
    assert max(lengths) == 4
    assert (min(lengths) < 4) == (mode is AutoresetMode.NEXT_STEP)
    columns = gathered(batches)
    assert columns["stream"].dtype == np.int64
    assert columns["stream"].tolist() == columns["state"][:, 0].tolist()
    for number in range(4):
        own = columns["state"][columns["stream"] == number]
        assert own[:, 1].tolist() == list(range(len(own)))


# Dict observations


class Rover(gym.Env[Any, Any]):
    """A ladder whose observation is a Dict with all kinds of arrays in it, and that tells more.

    As in Ladder, a transition can be checked from its observations. ``info`` has the rung after
    the step and a pair of numbers; a reset has other values under the same names.
    """

    observation_space = Dict(
        place=Box(-10, 10_000, (2,), np.int64),  # rung, step
        flag=MultiBinary(3),
        inner=Dict(episode=Discrete(10_000), picture=Box(0, 255, (2, 3), np.uint8)),
        level=Box(-10.0, 100.0, (), np.float64),
        pair=MultiDiscrete([9, 9]),
    )
    action_space: gym.Space[Any] = Discrete(2)

    def __init__(self) -> None:
        self.rung = self.time = self.episode = 0

    def observation(self):
        return {
            "place": np.array([self.rung, self.time]),
            "flag": np.array([self.rung % 2, 1, 0], np.int8),
            "inner": {
                "episode": np.int64(self.episode),
                "picture": np.full((2, 3), self.rung % 256, np.uint8),
            },
            "level": np.array(self.rung / 4),
            "pair": np.array([self.time, 1]),
        }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.rung, self.time = -int(self.np_random.integers(4)), 0
        self.episode += 1
        return self.observation(), {"rung": -99, "both": np.array([-99.0, -99.0]), "flag": True}

    def step(self, action):
        self.rung += 1 + int(action)
        self.time += 1
        info = {"rung": self.rung, "both": np.array([self.rung, action], np.float32)}
        info["flag"] = np.bool_(self.rung % 2)
        over = self.rung >= 6
        return self.observation(), float(action), over, self.time == 4, info


def climbs(states):
    """Probabilities of two actions, from the fields of a state."""
    p = 1 / (2 + np.abs(states["place"][:, 0]) + states["inner"]["picture"][:, 0, 0] % 2)
    return np.stack([p, 1 - p], axis=1)


def assert_rover(columns):
    state, after, action = columns["state"], columns["next_state"], columns["action"]
    for states in (state, after):
        rung, time = states["place"].T
        assert states["place"].dtype == np.int64
        assert (states["flag"] == np.stack([rung % 2, 1 + 0 * rung, 0 * rung], 1)).all()
        assert (states["inner"]["picture"] == (rung % 256)[:, None, None]).all()
        assert states["inner"]["picture"].dtype == np.uint8
        assert (states["level"] == rung / 4).all()
        assert (states["pair"] == np.stack([time, 1 + 0 * time], 1)).all()
    assert (after["place"] == state["place"] + np.stack([1 + action, 1 + 0 * action], 1)).all()
    assert (after["inner"]["episode"] == state["inner"]["episode"]).all()
    assert (columns["terminated"] == (after["place"][:, 0] >= 6)).all()
    assert (columns["truncated"] == (after["place"][:, 1] == 4)).all()
    assert columns["terminated"].any()
    expected = FunctionPolicy(climbs, 2).probability(state, action)
    assert (columns["behaviour_probability"] == expected).all()


@pytest.mark.parametrize("size", [1, 7, 200])
def test_a_dict_observation_is_a_structured_array(size):
    batches = list(transitions(Rover(), FunctionPolicy(climbs, 2), 100, seed=0, batch=size))
    assert batches[0].state.shape == (min(size, 100),)
    assert batches[0].state["place"].shape == (min(size, 100), 2)
    assert batches[0].state["level"].shape == (min(size, 100),)
    assert_rover(gathered(batches))


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_dict_observations_of_a_vector_are_structured_arrays(mode, copy):
    env = SyncVectorEnv([Rover] * 3, copy=copy, autoreset_mode=mode)
    columns = gathered(transitions(env, FunctionPolicy(climbs, 2), 150, seed=0))
    assert_rover(columns)
    assert columns["state"].dtype == Observations(Rover.observation_space).dtype


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_dict_observations_and_info_of_other_processes(mode):
    env = AsyncVectorEnv([Rover] * 2, autoreset_mode=mode)
    try:
        columns = gathered(
            transitions(env, FunctionPolicy(climbs, 2), 60, seed=0, info=["rung", "both"])
        )
    finally:
        env.close()
    assert_rover(columns)
    assert_told(columns)


class Natively(gym.vector.VectorEnv[Any, Any, Any]):
    """Two counters that are a vector by themselves, and give their last observations as arrays."""

    num_envs = 2
    single_observation_space: gym.Space[Any] = Dict(count=Discrete(9))
    single_action_space: gym.Space[Any] = Discrete(2)

    def __init__(self) -> None:
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.count = np.zeros(2, np.int64)

    def reset(self, *, seed=None, options=None):
        self.count[:] = 0, 2
        return {"count": self.count}, {}

    def step(self, actions):
        self.count += 1
        over, last = self.count == 4, self.count.copy()
        self.count[over] = 0
        info: dict[str, Any] = {"double": np.where(over, -1, 2 * last)}
        if over.any():
            info |= {"final_obs": {"count": last}, "final_info": {"double": 2 * last}}
        return {"count": self.count}, np.zeros(2), over, np.zeros(2, bool), info


def test_a_native_vector_may_give_its_last_observations_and_info_as_arrays():
    columns = gathered(transitions(Natively(), Uniform(2), 40, seed=0, info=["double"]))
    assert (columns["next_state"]["count"] == columns["state"]["count"] + 1).all()
    assert (columns["terminated"] == (columns["next_state"]["count"] == 4)).all()
    assert columns["double"].tolist() == (2.0 * columns["next_state"]["count"]).tolist()


@pytest.mark.parametrize(
    "space", [Text(3), Sequence(Discrete(2)), Graph(Discrete(2), None), Tuple([Discrete(2)])]
)
def test_other_spaces_in_a_dict_are_an_error_that_names_the_key(space):
    nested = Dict(good=Discrete(2), inner=Dict(strange=space))
    with pytest.raises(ValueError, match=r"'inner'\['strange'\] is .*no array; wrap") as told:
        transitions(Shelf(Discrete(2), nested), Uniform(2), 1)
    assert "TransformObservation" in str(told.value)
    assert "FilterObservation" in str(told.value)
    with pytest.raises(ValueError, match=r"'strange' is .*no array; wrap"):
        transitions(Shelf(Discrete(2), Dict(strange=space)), Uniform(2), 1)


def test_a_dict_without_keys_or_with_keys_that_are_no_text_is_refused():
    with pytest.raises(ValueError, match="Dict without keys"):
        Observations(Dict())
    with pytest.raises(ValueError, match="'s 'a' is a Dict without keys"):
        Observations(Dict(a=Dict()))
    for key in (7, ""):
        strange: Any = {key: Discrete(2)}
        with pytest.raises(ValueError, match=f"has the key {key!r}, and the name of a field must"):
            Observations(Dict(strange))


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        ({"a": np.zeros(2)}, "lacks 'b', a key of its space; it has: a"),
        ({"a": np.zeros(3), "b": {"c": 0}}, r"'a' has shape \(3,\); by its space .* \(2,\)"),
        ({"a": 0.0, "b": {"c": 0}}, r"'a' has shape \(\); by its space it should be \(2,\)"),
        ({"a": np.zeros(2), "b": {"c": [1, 2]}}, r"'b'\['c'\] has shape \(2,\)"),
        ({"a": np.zeros(2), "b": 3}, "'s 'b' is a int, and its space is a Dict with the keys c"),
        (np.zeros(2), "observation is a ndarray, and its space is a Dict with the keys a, b"),
    ],
)
def test_observations_that_do_not_fit_their_space_are_an_error(observation, message):
    observations = Observations(Dict(a=Box(-1, 1, (2,)), b=Dict(c=Discrete(2))))
    with pytest.raises(ValueError, match=message):
        observations.one(observation)


def test_fields_are_aligned_as_compiled_code_and_torch_want_them():
    dtype = Observations(Dict(a=MultiBinary(3), b=Dict(c=Box(0, 1, (2,), np.float64)))).dtype
    states = np.zeros(3, dtype)
    assert states["b"]["c"].flags.aligned
    assert states.strides[0] % 8 == 0


@pytest.mark.parametrize("make", [Rover, lambda: SyncVectorEnv([Rover] * 3)])
def test_a_learner_learns_from_the_fields_of_a_dict(make, tmp_path):
    question = gvf.GVF(Favour(1, 0.7, 2), "reward", 0.9)

    def learner():
        return gvf.Learner(question, features, gvf.TD(0.05), behaviour=Uniform(2), seed=0)

    features = gvf.Dense(3, fields)
    first, second = learner(), learner()
    first.learn(make(), 200, seed=0)
    batches = list(transitions(make(), Uniform(2), 200, seed=0))
    for batch in batches:
        second.observe_many(batch)
    assert first.weights.tolist() == second.weights.tolist()
    assert np.abs(first.weights).min() > 0

    first.save(tmp_path / "learner")
    again = gvf.load(tmp_path / "learner", trust=[__name__])
    for one in (first, again):
        one.learn(make(), 100, seed=1)
    assert first.weights.tolist() == again.weights.tolist()
    states = batches[-1].state
    assert again.predict(states).tolist() == first.predict(states).tolist()
    assert first.predict(states).shape == (len(states),)


def fields(states):
    """Features from three fields."""
    rung = states["place"][:, 0]
    return np.stack([np.ones(len(states)), rung / 9, states["flag"][:, 0]], axis=1)


def test_a_learner_observes_dicts_in_a_loop_of_ones_own():
    question = gvf.GVF(Favour(1, 0.7, 2), "reward", 0.9)
    learners = [
        gvf.Learner(question, gvf.Dense(3, fields), gvf.TD(0.05), behaviour=Uniform(2), seed=0)
        for _ in range(3)
    ]
    env, rows = Rover(), []
    state, _ = env.reset(seed=0)
    for action in [0, 1, 0]:
        after, reward, terminated, truncated, _ = env.step(action)
        rows.append(
            {
                "state": state,
                "action": action,
                "reward": reward,
                "next_state": after,
                "terminated": terminated,
                "truncated": truncated,
            }
        )
        learners[0].observe(**rows[-1])
        state = after
    learners[1].learn(rows)
    space = Observations(env.observation_space)
    for row in rows:
        row["state"], row["next_state"] = (
            space.one(row[name])[0] for name in ("state", "next_state")
        )
    learners[2].learn(rows)
    for learner in learners[1:]:
        assert learner.weights.tolist() == learners[0].weights.tolist()
    batch = {"place": [[3, 1]], "flag": [[1, 1, 0]]}
    assert learners[0].predict(batch).shape == (1,)


def test_what_takes_no_fields_says_so():
    states = Observations(Rover.observation_space).one(Rover().observation())
    maps = (gvf.OneHot(3), gvf.Dense(3), gvf.TileCoder([0.0], [1.0]))
    for features, what in zip(maps, ("OneHot", "Dense without", "TileCoder"), strict=True):
        with pytest.raises(ValueError, match=rf"{what}.* the fields place, flag, .*gvf\.Dense"):
            features(states)
    torch, neural = pytest.importorskip("torch"), pytest.importorskip("gvf.neural")
    learner = neural.NeuralLearner(
        gvf.GVF(Uniform(2)), torch.nn.Linear(3, 1), torch.optim.SGD, behaviour=Uniform(2)
    )
    with pytest.raises(ValueError, match=r"a network takes arrays, .*FlattenObservation"):
        learner.learn(Rover(), 10)
    with pytest.raises(ValueError, match=r"a network takes arrays, .*FlattenObservation"):
        learner.predict(states)


# Values of info


def assert_told(columns):
    """The values are those of the step, not of a reset: there they are -99."""
    rung = columns["next_state"]["place"][:, 0]
    assert columns["rung"].dtype == columns["both"].dtype == np.float64
    assert columns["rung"].tolist() == rung.tolist()
    assert columns["both"].tolist() == np.stack([rung, columns["action"]], 1).tolist()


@pytest.mark.parametrize("size", [1, 7, 200])
def test_values_of_info_are_columns(size):
    batches = list(
        transitions(Rover(), Uniform(2), 100, seed=0, batch=size, info=["rung", "both", "flag"])
    )
    columns = gathered(batches)
    assert list(columns)[-3:] == ["rung", "both", "flag"]
    assert_told(columns)
    assert columns["flag"].tolist() == (columns["rung"] % 2).tolist()


@pytest.mark.parametrize("mode", MODES)
def test_values_of_info_of_a_vector_are_those_of_the_step_and_not_of_a_reset(mode):
    env = SyncVectorEnv([Rover] * 3, autoreset_mode=mode)
    columns = gathered(
        transitions(env, Uniform(2), 200, seed=0, info=("rung", "both", "flag", "rung"))
    )
    assert list(columns)[-4:] == ["stream", "rung", "both", "flag"]
    assert_told(columns)
    assert columns["flag"].tolist() == (columns["rung"] % 2).tolist()
    assert (columns["terminated"] | columns["truncated"]).sum() > 20


def test_a_stream_with_info_is_the_same_stream():
    plain = gathered(transitions(Rover(), Uniform(2), 50, seed=0))
    told = gathered(transitions(Rover(), Uniform(2), 50, seed=0, info=["rung"]))
    del told["rung"]
    assert_equal(plain, told)


class Tells(gym.Env[Any, Any]):
    """Gives the infos that it was made with, one a step; episodes of 3 steps."""

    observation_space: gym.Space[Any] = Discrete(100)
    action_space: gym.Space[Any] = Discrete(2)

    def __init__(self, *infos: dict[str, Any]) -> None:
        self.infos, self.time = infos, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.time % 100, {"x": -99.0}

    def step(self, action):
        info = self.infos[self.time % len(self.infos)]
        self.time += 1
        return self.time % 100, 0.0, self.time % 3 == 0, False, info


BAD_INFOS = {
    "missing": (
        [{"x": 1.0}, {"x": 2.0}, {"y": 1, "z": 2}],
        r"has no 'x' at step 2 \(from 0\).*; it has: y, z",
    ),
    "empty": ([{"x": 1.0}, {}], r"has no 'x' at step 1 \(from 0\).*; it has: nothing"),
    "text": ([{"x": 1.0}, {"x": "far"}], r"info\['x'\] is .*'far'.* at step 1 .* neither a number"),
    "none": ([{"x": None}], r"info\['x'\] is None at step 0 .* neither a number"),
    "mapping": ([{"x": {"a": 1}}], r"info\['x'\] is .*at step 0 "),
    "ragged": ([{"x": [[1], [1, 2]]}], r"info\['x'\] is \[\[1\], \[1, 2\]\] at step 0 .* neither"),
    "shape": (
        [{"x": np.zeros(2)}, {"x": np.zeros(3)}],
        r"info\['x'\] has shape \(3,\) at step 1 \(from 0\), and had \(2,\) before",
    ),
    "list": (
        [{"x": [0, 1]}, {"x": [0]}],
        r"info\['x'\] has shape \(1,\) at step 1 \(from 0\), and had \(2,\) before",
    ),
}


@pytest.mark.parametrize(("infos", "message"), BAD_INFOS.values(), ids=BAD_INFOS)
def test_a_bad_value_of_info_is_an_error_after_the_transitions_before_it(infos, message):
    seen = []
    with pytest.raises(ValueError, match=message):
        seen.extend(iter(transitions(Tells(*infos), Uniform(2), 9, seed=0, info=["x"])))
    seen = []
    stream = transitions(Tells(*infos), Uniform(2), 9, seed=0, batch=9, info=["x"])
    good = len(infos) - 1
    if good:
        assert len(next(stream)) == good
    with pytest.raises(ValueError, match=message):
        next(stream)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("infos", "message"),
    [case for name, case in BAD_INFOS.items() if name not in ("text", "shape")],
    ids=[name for name in BAD_INFOS if name not in ("text", "shape")],
)
def test_a_bad_value_of_info_in_a_vector_is_an_error(infos, message, mode):
    good = {"x": infos[0]["x"]}
    makers = [lambda: Tells(good), lambda: Tells(*infos)]
    env = SyncVectorEnv(makers, autoreset_mode=mode)
    with pytest.raises(ValueError, match=message):
        list(transitions(env, Uniform(2), 18, seed=0, info=["x"]))


def test_a_value_missing_at_the_end_of_an_episode_is_not_that_of_the_reset():
    makers = [lambda: Tells({"x": 1.0}), lambda: Tells({"x": 1.0}, {"x": 1.0}, {"y": 2})]
    env = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    message = r"info\['final_info'\] has no 'x' at step 2 \(from 0\) in environment 1; it has: y"
    with pytest.raises(ValueError, match=message):
        list(transitions(env, Uniform(2), 18, seed=0, info=["x"]))


def test_a_native_vector_must_tell_a_value_for_each_environment():
    info, rows = Info(["x"]), np.arange(2)
    assert info.many({"x": np.array([1, 2])}, rows)["x"].tolist() == [1.0, 2.0]
    for bad in (3.0, np.zeros(1)):
        with pytest.raises(ValueError, match=r"at step 1 .* should have one value for each"):
            info.many({"x": bad}, rows)


@pytest.mark.parametrize("name", STANDARD)
def test_a_value_of_info_cannot_take_the_place_of_a_standard_column(name):
    for env in (Ladder(), ladders(2, AutoresetMode.NEXT_STEP)):
        with pytest.raises(ValueError, match=f"info={name!r} would take the place of the column"):
            transitions(env, Uniform(2), 10, info=[name])


@pytest.mark.parametrize("names", ["rung", [3], [None]])
def test_info_must_be_names(names):
    with pytest.raises(TypeError, match=r"info must name values, as in info=\(\"distance\",\)"):
        transitions(Rover(), Uniform(2), 10, info=names)


def test_values_are_copied_out_of_the_buffer_of_an_environment():
    class Careless(Tells):
        buffer = np.zeros(2)

        def step(self, action):
            self.buffer += 1
            self.infos = ({"x": self.buffer},)
            return super().step(action)

    for size in (1, 20):
        Careless.buffer = np.zeros(2)
        columns = gathered(transitions(Careless(), Uniform(2), 20, batch=size, info=["x"]))
        assert columns["x"].tolist() == [[n, n] for n in range(1, 21)]
    buffer = np.zeros(2)
    kept = Info(["x"]).one({"x": buffer})
    buffer[:] = 1
    assert kept["x"].tolist() == [0.0, 0.0]


def test_steps_count_from_the_start_of_a_walk():
    walk = Walk(Tells({"x": 1.0}, {"x": 1.0}, {"x": 1.0}, {"x": 1.0}, {}), ["x"])
    actor, rng = Actor(Uniform(2), walk.env.action_space), np.random.default_rng(0)
    walk.start(0)
    for _ in range(3):
        walk.step(actor, rng)
    walk.start(0)
    walk.step(actor, rng)
    with pytest.raises(ValueError, match="at step 1"):
        walk.step(actor, rng)


def test_the_values_that_a_question_names_are_found():
    assert info_columns(gvf.GVF(Uniform(2), "reward")) == ()
    assert info_columns(gvf.GVF(Uniform(2), "rung")) == ("rung",)
    assert info_columns(gvf.GVF(Uniform(2), lambda t: t.rung)) == ()
    assert info_columns(gvf.GVF(Uniform(2), "rung"), ["both", "rung"]) == ("rung", "both")
    for name in STANDARD:
        assert info_columns(gvf.GVF(Uniform(2), name)) == ()


@pytest.mark.parametrize("make", [Rover, lambda: SyncVectorEnv([Rover] * 3)])
def test_a_learner_asks_for_the_values_that_its_question_names(make):
    def learner(cumulant):
        question = gvf.GVF(Favour(1, 0.7, 2), cumulant, 0.9)
        features = gvf.Dense(3, fields)
        return gvf.Learner(question, features, gvf.TD(0.05), behaviour=Uniform(2), seed=0)

    named, function, same = (
        learner(c) for c in ("rung", lambda t: t.rung, lambda t: t.next_state["place"][:, 0])
    )
    named.learn(make(), 100, seed=0)
    function.learn(make(), 100, seed=0, info=["rung"])
    same.learn(make(), 100, seed=0)
    assert named.weights.tolist() == function.weights.tolist() == same.weights.tolist()
    with pytest.raises(ValueError, match=r"info has no 'rang' at step 0 .*; it has: rung, both"):
        learner("rang").learn(make(), 100, seed=0)
    with pytest.raises(ValueError, match="info names values of an environment"):
        named.learn([], info=["rung"])
