"""Errors against returns of streams that are cut: the choice of rows must not depend on returns."""

import numpy as np
import pytest

import gvf
from gvf.horde.horde_returns import returns_along, room_of

STATES, GAMMA = 4, 0.9
HAZARD = np.array([0.01, 0.02, 0.03, 0.1])
"""The chance that an episode terminates in each state."""
REWARD = np.array([1.0, 1.0, 1.0, 0.0])


def world(steps, seed, *, limit=None, chance=0.0, stream=None):
    """A walk among four states that ends by chance, and is truncated at a limit or by chance."""
    rng = np.random.default_rng(seed)
    state = rng.integers(STATES, size=steps)
    next_state = rng.integers(STATES, size=steps)
    terminated = rng.random(steps) < HAZARD[state]
    truncated, age = np.zeros(steps, bool), 0
    for t in range(steps):
        age += 1
        truncated[t] = not terminated[t] and (age == limit or rng.random() < chance)
        if terminated[t] or truncated[t]:
            age = 0
        elif t + 1 < steps:
            state[t + 1] = next_state[t]
            terminated[t + 1] = rng.random() < HAZARD[state[t + 1]]
    columns = {} if stream is None else {"stream": np.full(steps, stream)}
    return gvf.Transitions(
        state=state,
        action=np.zeros(steps, int),
        reward=REWARD[state],
        next_state=next_state,
        terminated=terminated,
        truncated=truncated,
        behaviour_probability=np.ones(steps),
        **columns,
    )


def values(gamma):
    """The exact values: v = r + gamma (1 - h) mean(v)."""
    on = gamma * (1 - HAZARD)
    mean = REWARD.mean() / (1 - on.mean())
    return REWARD + on * mean


def exact_horde(gamma=GAMMA, cumulant="reward"):
    """A horde that predicts the exact values."""
    question = gvf.GVF(gvf.policies.Uniform(1), cumulant, gamma, name="q")
    horde = gvf.Horde([question], gvf.features.OneHot(STATES), gvf.updates.TD(0.1), seed=0)
    horde.observe(0, 0, 1.0, 1, False, behaviour_probability=1.0, broken=1.0)
    engine = horde._shard.weights
    assert engine is not None
    engine.put([0], {"weights": values(gamma)[None]})
    np.testing.assert_allclose(horde.predict(np.arange(STATES))[:, 0], values(gamma))
    return horde


def bias(horde, streams, **options):
    """The mean bias over many streams and its standard error, with the errors themselves."""
    errors = [horde.stream_error(data, **options) for data in streams]
    found = np.array([error.bias[0] for error in errors if error.returns[0]])
    return found.mean(), found.std(ddof=1) / np.sqrt(len(found)), errors


CUT = {
    "a time limit": lambda seed: world(3_000, seed, limit=60),
    "the end of the data": lambda seed: world(90, seed),
    "several short streams": lambda seed: gvf.Transitions.concatenate(
        [world(80, 100 * seed + i, stream=i) for i in range(4)]
    ),
    "missing rows": lambda seed: world(2_000, seed)[np.arange(2_000) % 80 < 75],
}


@pytest.mark.parametrize("cut", CUT)
def test_exact_values_are_not_called_biased(cut):
    """Within three standard errors; without the rule the bias is more than ten of them."""
    streams = [CUT[cut](seed) for seed in range(150)]
    mean, error, errors = bias(exact_horde(), streams)
    assert abs(mean) < 3 * error
    assert error < 0.1
    assert not any(one.cut.any() for one in errors)
    assert all(one.too_near.all() for one in errors)
    assert not errors[0].warnings


def test_a_sensor_that_fails_biases_nothing():
    def some(seed):
        data = world(2_000, seed)
        broken = np.where(np.arange(2_000) % 100 == 99, np.nan, data.reward)
        return gvf.Transitions(**data.columns, broken=broken)

    mean, error, errors = bias(exact_horde(cumulant="broken"), [some(s) for s in range(150)])
    assert abs(mean) < 3 * error
    assert not any(one.cut.any() for one in errors)


def test_without_discounting_the_longest_episode_is_the_horizon():
    """Episodes are far from the limit, so no return is cut, and rows near the end are left out."""
    streams = [world(600, seed) for seed in range(200)]
    mean, error, errors = bias(exact_horde(1.0), streams)
    assert abs(mean) < 3 * error
    assert np.mean([one.cut[0] for one in errors]) < 3


def test_returns_that_are_cut_nevertheless_are_told_of():
    """Where any row may be cut, no rule helps, and the errors say so."""
    error = exact_horde().stream_error(world(5_000, 0, chance=0.05), rows=5_000)
    (warning,) = error.warnings
    assert (warning.problem, warning.questions) == (gvf.learners.Problem.CUT, ("q",))
    assert warning.value == error.cut[0] / (error.cut[0] + error.returns[0])
    assert 0.2 < warning.value < 0.9
    assert error.bias[0] > 0.3
    assert "of the returns of 1 question were cut" in repr(error)
    short = exact_horde().stream_error(world(5_000, 0, limit=20), rows=5_000)
    assert [one.problem for one in short.warnings] == [gvf.learners.Problem.CUT]


def test_rows_are_chosen_by_their_distance_to_a_cut():
    data = world(500, 3, limit=60)
    question = gvf.GVF(gvf.policies.Uniform(1), "reward", GAMMA, name="q")
    returns, chosen = returns_along([question], data, np.arange(500), 0.01)
    age, horizon = 0, 44  # .9^44 < .01 < .9^43
    for t in range(500):
        expected = 500 - t >= horizon and 60 - age >= horizon
        assert chosen[t, 0] == expected
        assert np.isfinite(returns[t, 0]) or not expected
        age = 0 if data.terminated[t] or data.truncated[t] else age + 1


def rooms(ends_by, lengths, **columns):
    """The room of rows in episodes of these lengths that end by "t", truncation, or otherwise."""
    last = np.zeros(sum(lengths), bool)
    last[np.cumsum(lengths) - 1] = True
    how = np.repeat(list(ends_by), lengths)
    truncated, alive = last & (how == "t"), ~(last & (how == "x"))
    data = gvf.Transitions(state=np.zeros(len(last)), truncated=truncated, **columns)
    return room_of(data, last, alive)


def test_the_room_is_that_up_to_the_time_limit_if_there_is_one():
    room, breaks = rooms("txt", [3, 1, 2])
    assert room.tolist() == [3, 2, 1, 3, 3, 2]
    assert np.flatnonzero(breaks).tolist() == [5]
    # An episode was longer than those that were truncated, so there is no limit.
    assert np.isinf(rooms("tx", [3, 4])[0]).all()
    # The data end in the fourth row of an episode; they break there and nowhere else.
    room, breaks = rooms("to", [4, 4])
    assert room.tolist() == [4, 3, 2, 1, 4, 3, 2, 1]
    assert np.flatnonzero(breaks).tolist() == [7]
    room, breaks = rooms("xox", [1, 2, 1])
    assert np.isinf(room).all()
    assert np.flatnonzero(breaks).tolist() == [2, 3]
    # A stream is over with its last row, however that row ends its episode.
    _, breaks = rooms("xxtx", [1, 2, 1, 1], stream=np.array([0, 0, 0, 1, 2]))
    assert np.flatnonzero(breaks).tolist() == [2, 3, 4]
