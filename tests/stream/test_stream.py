"""Streams: every transition is one the dynamics made, none is missing, none comes from a reset."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Text, Tuple
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from ladders import MODES, Ladder, Shelf, assert_equal, gathered, ladders

from gvf.policies import Always, Favour, Fixed, Function, Gaussian, Mixture, Policy, Table, Uniform
from gvf.stream import Actor, Walk, collect


def received(env: Any) -> list[list[Any]]:
    """What each environment of a vector was told to do."""
    return [single.received for single in env.envs]


def assert_legal(columns):
    state, action, following = columns["state"], columns["action"], columns["next_state"]
    assert (following == state + np.stack([1 + action, 1 + 0 * action, 0 * action], axis=1)).all()
    assert (columns["reward"] == 10 * state[:, 0] + action).all()
    assert (columns["terminated"] == (following[:, 0] >= 6)).all()
    assert (columns["truncated"] == (following[:, 1] == 4)).all()
    assert (state[:, 1] < 4).all()
    assert (state[:, 0] < 6).all()


def test_single_environment_gives_every_transition_once_and_in_order():
    batches = list(collect(Ladder(), Uniform(2), 200, seed=0))
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
    batches = list(collect(env, Uniform(2), steps, seed=0))
    columns = gathered(batches)
    assert len(columns["state"]) == steps
    assert_legal(columns)
    made = sum(len(actions) for actions in received(env))
    assert steps <= made < steps + count
    assert max(len(batch) for batch in batches) <= count


@pytest.mark.parametrize("mode", MODES)
def test_vector_transitions_chain_within_each_environment(mode):
    env = ladders(1, mode)
    columns = gathered(collect(env, Uniform(2), 100, seed=3))
    ended = (columns["terminated"] | columns["truncated"])[:-1]
    follows = (columns["state"][1:] == columns["next_state"][:-1]).all(axis=1)
    assert (follows == ~ended).all()
    assert (columns["state"][1:][ended, 1] == 0).all()


def test_gymnasiums_own_vector_cart_poles_give_no_reset():
    env = gym.make_vec("CartPole-v1", num_envs=4, vectorization_mode="vector_entry_point")
    columns = gathered(collect(env, Uniform(2), 500, seed=0))
    position, velocity = columns["state"][:, 0], columns["state"][:, 1]
    assert len(position) == 500
    assert columns["terminated"].sum() > 10
    np.testing.assert_allclose(columns["next_state"][:, 0], position + 0.02 * velocity, atol=1e-6)


@pytest.mark.parametrize("make", [Ladder, *(lambda m=m: ladders(3, m) for m in MODES)])
def test_the_same_seed_gives_the_same_stream(make):
    def stream(seed):
        return gathered(collect(make(), Uniform(2), 40, seed=seed))

    assert_equal(stream(5), stream(5))
    assert (stream(5)["action"] != stream(6)["action"]).any()
    assert (stream(5)["state"] != stream(6)["state"]).any()
    assert (stream(None)["action"] != stream(None)["action"]).any()


def test_no_steps_give_no_batches():
    assert list(collect(Ladder(), Uniform(2), 0)) == []
    assert list(collect(ladders(2, AutoresetMode.NEXT_STEP), Uniform(2), 0)) == []
    with pytest.raises(ValueError, match="at least 0, got -1"):
        collect(Ladder(), Uniform(2), -1)


@pytest.mark.parametrize("size", [1, 4])
def test_changing_a_batch_does_not_change_the_stream(size):
    clean = gathered(collect(Ladder(), Uniform(2), 30, seed=0))
    row = 0
    for batch in collect(Ladder(), Uniform(2), 30, seed=0, batch=size):
        assert (batch.state == clean["state"][row : row + len(batch)]).all()
        row += len(batch)
        for column in batch.columns.values():
            column[...] = 0
    assert row == 30


def test_discrete_states_are_integers_and_discrete_actions_python_ints():
    env = Shelf(Discrete(2))
    policy = Table([[1.0, 0.0], [0.0, 1.0], [0.25, 0.75]])
    columns = gathered(collect(env, policy, 30, seed=0))
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
    columns = gathered(collect(env, policy, 50, seed=0))
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
    columns = gathered(collect(env, Gaussian(0.0, 1.0), 12, seed=0))
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
        next(collect(env, Broken(), 1))
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
        collect(env, policy, 10)


def test_the_wrappers_that_the_errors_name_do_help():
    shelf = Shelf(Discrete(2, start=1))
    env = gym.wrappers.TransformAction(shelf, lambda a: a + 1, Discrete(2))
    list(collect(env, Uniform(2), 20, seed=0))
    assert set(shelf.received) == {1, 2}
    named = gym.wrappers.TransformObservation(
        Shelf(Discrete(2)), lambda place: {"place": place}, Dict(place=Discrete(3))
    )
    columns = gathered(collect(gym.wrappers.FlattenObservation(named), Uniform(2), 3, seed=0))
    assert columns["state"].tolist() == np.eye(3).tolist()


def test_a_vector_environment_must_say_when_it_resets():
    env = ladders(2, AutoresetMode.NEXT_STEP)
    del env.metadata["autoreset_mode"]
    with pytest.raises(ValueError, match=r"does not say when it resets.*AutoresetMode"):
        collect(env, Uniform(2), 10)


def test_a_same_step_environment_must_give_the_last_observation():
    env = ladders(2, AutoresetMode.NEXT_STEP)
    env.metadata["autoreset_mode"] = AutoresetMode.SAME_STEP
    with pytest.raises(ValueError, match="no 'final_obs'"):
        list(collect(env, Uniform(2), 10))


def test_something_that_is_no_environment_or_no_policy_is_refused():
    with pytest.raises(TypeError, match=r"must be a gvf\.policies\.Policy, not 2"):
        collect(Ladder(), 2, 10)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Gymnasium environment, got 'CartPole-v1'"):
        collect("CartPole-v1", Uniform(2), 10)  # type: ignore[arg-type]


# Batches of a single environment


def softly(states):
    """Probabilities of two actions, from the first number of a state."""
    p = 1 / (1 + np.exp(-states[:, 0] / 3))
    return np.stack([p, 1 - p], axis=1)


CASES = {
    "integers": (Ladder, Function(softly, 2)),
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
    one_by_one = gathered(collect(make(), policy, 150, seed=9))
    for size, lengths in ((64, [64, 64, 22]), (50, [50, 50, 50]), (1000, [150])):
        batches = list(collect(make(), policy, 150, seed=9, batch=size))
        assert [len(batch) for batch in batches] == lengths
        assert_equal(gathered(batches), one_by_one)


def test_a_walk_takes_the_steps_of_a_stream():
    env, policy = Ladder(), Function(softly, 2)
    for_environment, for_actions = np.random.SeedSequence(9).spawn(2)
    walk, actor = Walk(env), Actor(policy, env.action_space)
    walk.start(int(for_environment.generate_state(1)[0] >> 1))
    rng, steps = np.random.default_rng(for_actions), []
    for _ in range(30):
        before = walk.state
        steps.append(walk.step(actor, rng))
        assert (before == steps[-1].state).all()
    assert_equal(gathered(steps), gathered(collect(Ladder(), policy, 30, seed=9)))


def test_a_batch_of_no_transitions_is_refused():
    with pytest.raises(ValueError, match="batch must be at least 1, got 0"):
        collect(Ladder(), Uniform(2), 10, batch=0)


def test_the_stream_acts_only_when_a_batch_is_asked_for():
    env = Ladder()
    stream = collect(env, Uniform(2), 100, seed=0, batch=8)
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
        for batch in collect(env, Uniform(2), 100, seed=0, batch=size):
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

    stream = collect(Shelf(Discrete(2)), Function(fails_at_two, 2), 9, batch=9)
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
        Function(counted, 2),
        Mixture(Function(counted, 2), Uniform(2), 0.9),
    ):
        calls.clear()
        list(collect(Ladder(), policy, 100, seed=0, batch=size))
        assert calls == [1] * 100


@pytest.mark.parametrize("mode", MODES)
def test_a_function_is_evaluated_once_for_each_step_of_a_vector(mode):
    calls = []

    def counted(states):
        calls.append(len(states))
        return softly(states)

    batches = list(collect(ladders(3, mode), Function(counted, 2), 99, seed=0))
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
    columns = gathered(collect(Ladder(), Function(drifting, 2), 100, seed=0, batch=size))
    p = np.array(drifting.given)
    expected = np.where(columns["action"] == 0, p, 1 - p)
    assert columns["behaviour_probability"].tolist() == expected.tolist()
    assert len(set(expected)) > 90


def test_a_changing_behaviour_of_a_vector_is_recorded_as_it_was_when_it_acted():
    drifting = Drifting()
    env = ladders(3, AutoresetMode.SAME_STEP)
    batches = list(collect(env, Function(drifting, 2), 99, seed=0))
    assert len(batches) == 33
    for p, batch in zip(drifting.given, batches, strict=True):
        expected = np.where(batch.action == 0, p, 1 - p)
        assert batch.behaviour_probability.tolist() == expected.tolist()


def test_a_behaviour_may_react_to_every_batch():
    weights = np.array([0.5, 0.5])
    policy = Function(lambda states: np.tile(weights, (len(states), 1)), 2)
    seen = []
    for batch in collect(Ladder(), policy, 50, seed=0):
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
        Function(lambda s: np.array([[0.1, 0.2, 0.7], [0.2, 0.3, 0.5]], "f4")[s % 2], 3),
        Mixture(Table([[0.1, 0.2, 0.7]] * 3), Favour(2, 0.7, 3), 0.3),
    ],
    ids=repr,
)
def test_the_record_is_what_the_policy_says_of_the_whole_stream_bit_for_bit(policy):
    for env in (Shelf(Discrete(3)), SyncVectorEnv([lambda: Shelf(Discrete(3))] * 4)):
        columns = gathered(collect(env, policy, 200, seed=0, batch=64))
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
    columns = gathered(collect(env, Reused(), 20, seed=0, batch=20))
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
    batches = list(collect(env, Uniform(2), 90, seed=0, batch=size))
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


class Pixels(gym.Env[Any, Any]):
    """A camera whose space says bytes, and whose pictures are something else."""

    action_space = Discrete(2)
    observation_space = Box(0, 255, (2,), np.uint8)

    def __init__(self, picture: Any) -> None:
        self.picture = picture

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.picture, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.picture, 0.0, False, False, {}


@pytest.mark.parametrize("picture", [[-1.0, 300.0], [0.5, 0.9], np.array([300, 2])])
def test_an_observation_that_its_space_cannot_hold_is_refused(picture: Any) -> None:
    with pytest.raises(ValueError, match="but its space holds uint8"):
        next(iter(collect(Pixels(picture), Uniform(2), steps=1)))


def test_whole_numbers_of_another_type_are_taken() -> None:
    for picture in ([3, 4], [3.0, 4.0], np.array([3, 4])):
        (batch,) = collect(Pixels(picture), Uniform(2), steps=1)
        assert batch.state.tolist() == [[3, 4]]
        assert batch.state.dtype == np.uint8
