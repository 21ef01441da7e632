"""Predictions of a horde against held-out returns."""

import gymnasium
import numpy as np
import pytest
from many_learners import asked, stream

import gvf
from gvf.horde.horde_returns import returns_along, score
from gvf.links import in_order

POLICIES = {name: gvf.policies.Favour(a, 0.7, actions=4) for a, name in enumerate("LDR")}
LAKE = gvf.question_grid(
    POLICIES,
    {"reward": "reward", "where": lambda t: t.next_state / 16},
    {"0.5": 0.5, "0.9": 0.9, "row": lambda t: np.where(t.next_state < 8, 0.9, 0.2)},
)


def lake():
    return gymnasium.make("FrozenLake-v1", max_episode_steps=10_000)


def learned(steps=3_000):
    horde = gvf.Horde(
        LAKE,
        gvf.features.OneHot(16),
        gvf.updates.TD(0.5),
        behaviour=gvf.policies.Uniform(4),
        seed=0,
    )
    horde.learn(lake(), steps=steps, seed=0)
    return horde


def explained(predictions, returns):
    """The variance explained and its jackknife standard error."""
    whole = 1 - np.mean((predictions - returns) ** 2) / np.var(returns)
    n = len(returns)
    each = [
        1 - np.mean((np.delete(predictions - returns, i)) ** 2) / np.var(np.delete(returns, i))
        for i in range(n)
    ]
    without = np.array(each)
    return whole, np.sqrt((n - 1) / n * np.sum((without - np.mean(without)) ** 2))


def test_a_rollout_serves_all_questions_of_its_policy():
    horde = learned()
    found = horde.return_error(lake(), states=60, seed=3)
    assert found.names == horde.names
    for i, question in enumerate(horde.questions):
        held_out = gvf.held_out_returns(
            lake(), question, behaviour=gvf.policies.Uniform(4), states=60, seed=3
        )
        predictions, returns = horde.predict(held_out.states)[:, i], held_out.returns[:, 0]
        error = held_out.error(lambda _, p=predictions: p)
        assert found.root_mean_square[i] == pytest.approx(error.root_mean_square.value, rel=1e-4)
        assert found.bias[i] == pytest.approx(error.bias.value, abs=1e-5)
        assert found.returns[i] == 60
        if returns.std() > 0:
            whole = 1 - np.mean((predictions - returns) ** 2) / returns.var()
            assert found.variance_explained[i] == pytest.approx(whole, rel=1e-3, abs=1e-3)


def test_means_of_several_rollouts_are_compared():
    horde, name = learned(500), LAKE[0].name
    one = horde.return_error(lake(), [name], states=20, rollouts=4, seed=1)
    held_out = gvf.held_out_returns(
        lake(), LAKE[0], behaviour=gvf.policies.Uniform(4), states=20, rollouts=4, seed=1
    )
    error = held_out.error(lambda states: horde.predict(states, name))
    assert one.names == (name,)
    assert one.root_mean_square[0] == pytest.approx(error.root_mean_square.value, rel=1e-4)


def test_the_score_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    returns = rng.normal(size=(200, 4))
    predictions = returns + rng.normal(size=(200, 4)) * [0.1, 0.5, 1.0, 2.0]
    returns[5:9, 2] = np.nan
    found = score(list("abcd"), predictions, returns)
    for i in range(4):
        there = np.isfinite(returns[:, i])
        whole, error = explained(predictions[there, i], returns[there, i])
        assert found.variance_explained[i] == pytest.approx(whole, rel=1e-12)
        assert found.standard_error[i] == pytest.approx(error, rel=0.05)
    assert found.returns.tolist() == [200, 200, 196, 200]
    assert found.cut.tolist() == [0, 0, 4, 0]
    assert list(found.best(2)) == ["a", "b"]
    assert list(found.worst(1)) == ["d"]
    assert "median" in repr(found)
    assert "(d) to 0.99 (a)" in repr(found)


def test_blocks_widen_the_standard_error_of_dependent_rows():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(200):
        slow = np.repeat(rng.normal(size=(50, 1)), 20, axis=0)
        noise = np.repeat(rng.normal(size=(50, 1)), 20, axis=0)
        found.append(score(["a"], slow + 0.5 * noise, slow, 20))
    spread = np.std([one.variance_explained[0] for one in found])
    told = np.mean([one.standard_error[0] for one in found])
    assert told == pytest.approx(spread, rel=0.25)


def test_returns_that_do_not_vary_and_predictions_that_are_not_finite():
    # The mean of three times 0.1 is not 0.1.
    returns = np.array([[0.1, 1.0, 2.0], [0.1, 2.0, 1.0], [0.1, 3.0, 3.0]])
    predictions = np.array([[0.0, np.inf, 2.0], [0.0, 1.0, 1.0], [0.0, 1.0, 3.0]])
    found = score(list("abc"), predictions, returns)
    np.testing.assert_array_equal(found.variance_explained, [np.nan, -np.inf, 1.0])
    assert list(found.worst()) == ["b", "c"]
    assert "1 with returns that do not vary" in repr(found)


def dumb_returns(question, data, cutoff):
    """Returns forwards, row by row."""
    cumulant, gamma, out = question.cumulants(data), question.continuations(data), []
    for t in range(len(data)):
        total, product = 0.0, 1.0
        for i in range(t, len(data)):
            total += product * cumulant[i]
            product *= gamma[i]
            follows = i + 1 < len(data) and (data.next_state[i] == data.state[i + 1]).all()
            if product <= cutoff * 1e-6 or data.truncated[i] or not follows:
                break
        out.append(total if product <= cutoff else np.nan)
    return np.array(out)


def test_returns_along_a_stream_are_those_row_by_row():
    data, questions = stream(300, states=0, ends=0.05), asked()
    rows = np.arange(0, 300, 3)
    found, _ = returns_along(questions, data, rows, 0.01)
    for i, question in enumerate(questions):
        expected = dumb_returns(question, data, 0.01)[rows]
        np.testing.assert_allclose(found[:, i], expected, rtol=1e-6, atol=1e-7)
    assert np.isnan(found).any()


def test_a_sensor_that_fails_cuts_the_returns_before_it():
    data = stream(100, states=0, ends=0.0)
    weak = data.reward.copy()
    weak[60] = np.nan
    data = gvf.Transitions(**data.columns, weak=weak)
    question = gvf.GVF(gvf.policies.Uniform(3), "weak", 0.5, name="q")
    found = returns_along([question], data, np.arange(100), 0.01)[0][:, 0]
    assert np.flatnonzero(np.isnan(found)).tolist() == [*range(54, 61), *range(94, 100)]


def test_streams_of_several_environments_are_taken_apart():
    data = stream(50, states=0, ends=0.0)
    other = stream(50, states=0, ends=0.0, seed=5)
    other["state"][0] = data.next_state[-1]  # as if it followed
    both = {
        name: np.stack([column, other[name]], axis=1).reshape(100, *column.shape[1:])
        for name, column in data.columns.items()
    }
    mixed = gvf.Transitions(**both, stream=np.tile([0, 1], 50))
    ordered, ends = in_order(mixed)
    np.testing.assert_array_equal(ordered.state[:50], data.state)
    assert np.flatnonzero(ends).tolist() == [49, 99]


def acted(policy, steps, seed):
    return gvf.Transitions.concatenate(gvf.collect(lake(), policy, steps, seed=seed))


def test_a_recorded_stream_of_a_target_is_compared():
    horde, data = learned(20_000), acted(POLICIES["D"], 4_000, 1)
    found = horde.stream_error(data, rows=400)
    assert found.names == tuple(name for name in horde.names if name.startswith("D"))
    i = found.names.index("D, where, 0.5")
    some = np.unique(np.linspace(0, 3_999, 400).astype(int))
    returns = dumb_returns(horde.questions[horde.names.index(found.names[i])], data, 0.01)[some]
    there = np.isfinite(returns)
    whole, _ = explained(horde.predict(data.state[some], found.names[i])[there], returns[there])
    assert found.variance_explained[i] == pytest.approx(whole, rel=1e-5)
    assert found.variance_explained[i] > 0.5
    assert found.standard_error[i] < 0.1
    # Many questions are compared a slice at a time.
    by_name = horde.stream_error(data, [found.names[i]], rows=400)
    assert by_name.variance_explained[0] == found.variance_explained[i]


def test_the_policy_that_acted_must_be_known(monkeypatch):
    horde, data = learned(100), acted(POLICIES["D"], 50, 1)
    with pytest.raises(ValueError, match=r"'L, reward, 0.5' is about .* did not act"):
        horde.stream_error(data, "L, reward, 0.5")
    with pytest.raises(ValueError, match="no question is about the policy that acted"):
        horde.stream_error(acted(gvf.policies.Uniform(4), 50, 1))
    unknown = gvf.Transitions(
        **{n: c for n, c in data.columns.items() if not n.startswith("behaviour")}
    )
    with pytest.raises(ValueError, match="do not tell which policy acted"):
        horde.stream_error(unknown)
    assert horde.stream_error(unknown, "D, where, 0.5").names == ("D, where, 0.5",)
    with pytest.raises(ValueError, match="there are no transitions"):
        horde.stream_error(data[:0])
    whole = horde.stream_error(data)
    monkeypatch.setattr("gvf.horde.horde_returns._QUESTIONS", 2)
    sliced = horde.stream_error(data)
    assert sliced.names == whole.names
    np.testing.assert_array_equal(sliced.variance_explained, whole.variance_explained)


def test_a_rollout_without_end_is_named():
    endless = gvf.GVF(gvf.policies.Uniform(4), "reward", lambda t: np.ones(len(t)), name="endless")
    horde = gvf.Horde(
        [endless],
        gvf.features.OneHot(16),
        gvf.updates.TD(0.5),
        behaviour=gvf.policies.Uniform(4),
        seed=0,
    )
    with pytest.raises(ValueError, match="of 'endless' is still 1"):
        horde.return_error(lake(), states=30, longest=2, seed=0)
