"""Returns against exact expectations over all trajectories, and against slow sums."""

import numpy as np
import pytest
from judging_worlds import CONTINUATION, MU, PI, STATES, question, trajectories, values

from gvf.judging.off_policy_returns import (
    beyond_cut,
    mean_weights,
    recursive_returns,
    weighted_returns,
)

rng = np.random.default_rng(1)
BASELINES = {
    "none": np.zeros(STATES + 2),
    "wrong": rng.normal(size=STATES + 2),
    "right": values(),
}


def returned(episode, baseline, after=None, advantage=None):
    """The recursive return of every state of an episode, with the baseline after a cut."""
    ratio, cumulant, continuation, _ = question.evaluate(episode)
    last = np.arange(len(episode)) == len(episode) - 1
    at_end = (baseline if after is None else after)[episode.next_state]
    b = baseline[episode.state]
    control = 0.0 * ratio
    if advantage is not None:
        control = (PI * advantage).sum(axis=1)[episode.state]
        control -= ratio * advantage[episode.state, episode.action]
    return recursive_returns(ratio, cumulant, continuation, b, last, at_end, control)


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("start", range(STATES))
def test_returns_are_unbiased_from_every_state_with_any_baseline(name, start):
    listed = list(trajectories(start))
    assert sum(chance for chance, _ in listed) == pytest.approx(1.0)
    mean = sum(chance * returned(one, BASELINES[name])[0] for chance, one in listed)
    assert mean == pytest.approx(values()[start], abs=1e-12)


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("start", range(STATES))
def test_returns_are_unbiased_with_any_advantage(name, start):
    advantage, mean = rng.normal(size=(STATES, 2)), 0.0
    for chance, one in trajectories(start):
        mean += chance * returned(one, BASELINES[name], advantage=advantage)[0]
    assert mean == pytest.approx(values()[start], abs=1e-12)


def test_recursive_returns_are_those_of_slow_sums():
    ratio, cumulant, continuation, last, after = episodes(30)
    baseline, control = rng.normal(size=(2, len(ratio)))
    found = recursive_returns(ratio, cumulant, continuation, baseline, last, after, control)
    for t in range(len(ratio)):
        total, weight, at = baseline[t], 1.0, t
        while True:
            beyond = after[at] if last[at] else baseline[at + 1]
            delta = cumulant[at] + continuation[at] * beyond - baseline[at]
            total += weight * (ratio[at] * delta + control[at])
            weight *= ratio[at] * continuation[at]
            if last[at]:
                break
            at += 1
        assert found[t] == pytest.approx(total, abs=1e-10)


@pytest.mark.parametrize("start", [0, 1])
def test_a_cut_is_right_with_the_right_baseline_and_its_bias_is_as_stated(start):
    wrong, right = BASELINES["wrong"], BASELINES["right"]
    error = bias = 0.0
    for chance, one in trajectories(start, layers=2):
        assert not one.terminated.any()
        ratio, _, continuation, _ = question.evaluate(one)
        last = np.array([False, True])
        mean = returned(one, right)[0]
        error += chance * (returned(one, wrong)[0] - values()[start])
        share = beyond_cut(ratio, continuation, last, last)[0]
        bias += chance * share * (wrong - right)[one.next_state[-1]]
        assert np.isfinite(mean)
    assert error == pytest.approx(bias, abs=1e-12)
    assert abs(bias) > 0.01
    exact = sum(chance * returned(one, right)[0] for chance, one in trajectories(start, layers=2))
    assert exact == pytest.approx(values()[start], abs=1e-12)


def test_differences_of_scores_are_those_of_true_errors():
    first, second = rng.normal(size=(2, STATES + 2))
    v = values()
    for baseline in BASELINES.values():
        measured = true = 0.0
        for start in (0, 1):
            for chance, one in trajectories(start):
                target, state = returned(one, baseline), one.state
                square = (first[state] - target) ** 2 - (second[state] - target) ** 2
                exact = (first - v)[state] ** 2 - (second - v)[state] ** 2
                measured += chance * square.sum()
                true += chance * exact.sum()
        assert measured == pytest.approx(true, abs=1e-10)


def test_squared_td_errors_prefer_wrong_values_here():
    # The reason for all this: the true values have larger squared TD errors than others.
    v = values()

    def td_error(w):
        total = 0.0
        for start in (0, 1):
            for chance, one in trajectories(start):
                _, cumulant, continuation, _ = question.evaluate(one)
                delta = cumulant + continuation * w[one.next_state] - w[one.state]
                total += chance * (delta**2).sum()
        return total

    assert td_error(0.8 * v) < td_error(v) or td_error(1.2 * v) < td_error(v)


def episodes(count, longest=7):
    """Random rows of episodes: ratio, cumulant, continuation, last, after."""
    lengths = rng.integers(1, longest, count)
    n = lengths.sum()
    last = np.zeros(n, bool)
    last[np.cumsum(lengths) - 1] = True
    ratio = rng.choice([0.0, 0.3, 1.1, 2.7], n)
    continuation = np.where(rng.random(n) < 0.1, 0.0, rng.uniform(0.4, 1.0, n))
    continuation[last] *= rng.random(last.sum()) < 0.5
    return ratio, rng.normal(size=n), continuation, last, rng.normal(size=n)


def slow_weighted(ratio, cumulant, continuation, last, after):
    n = len(ratio)
    rows, weights = [], []  # of each state: the times of its future, and W at every lag
    for t in range(n):
        end = t + int(np.argmax(last[t:]))
        stop = next((k for k in range(t, end + 1) if continuation[k] == 0.0), end)
        rows.append(range(t, stop + 1))
        weights.append(np.cumprod(ratio[t : stop + 1]))
    longest = max(map(len, rows))
    mean = [np.mean([w[min(k, len(w) - 1)] for w in weights]) for k in range(longest)]
    out = np.zeros(n)
    for t in range(n):
        discount, share, at = 1.0, 0.0, t
        for k, at in enumerate(rows[t]):
            share = weights[t][k] / mean[k] if mean[k] > 0 else 0.0
            out[t] += share * discount * cumulant[at]
            discount *= continuation[at]
        out[t] += share * discount * after[at] if last[at] else 0.0
    return out


def test_weighted_returns_are_those_of_slow_sums():
    given = episodes(30)
    np.testing.assert_allclose(weighted_returns(*given), slow_weighted(*given), atol=1e-12)


def test_weighted_returns_are_plain_returns_without_ratios():
    ratio, cumulant, continuation, last, after = episodes(30)
    ones = np.ones(len(ratio))
    plain = recursive_returns(ones, cumulant, continuation, 0 * ones, last, after)
    found = weighted_returns(ones, cumulant, continuation, last, after)
    np.testing.assert_allclose(found, plain, atol=1e-12)


def test_weights_of_equal_lengths_need_no_scale():
    n = 12
    cumulant, half = rng.normal(size=n), np.full(n, 0.5)
    single = np.ones(n, bool)  # episodes of one step
    for scale in (0.1, 1.0, 30.0):
        found = weighted_returns(np.full(n, scale), cumulant, half, single, 0 * half)
        np.testing.assert_allclose(found, cumulant)


def test_mean_weights_count_discounts():
    ratio, _, continuation, last, _ = episodes(20)
    ones = np.ones(len(ratio))
    weights, discounts = mean_weights(ratio, continuation, last)
    assert (weights[ratio == 0.0] == 0.0).all()
    np.testing.assert_allclose(mean_weights(ones, continuation, last), [discounts, discounts])
    assert discounts[last] == pytest.approx(1.0)


def test_ratios_that_overflow_do_not_reach_back_over_a_zero():
    ratio = np.array([2.0, 0.0, 1e200, 1e200, 1e200])
    ones, last = np.ones(5), np.arange(5) == 4
    with np.errstate(over="ignore"):
        found = recursive_returns(ratio, ones, ones, 0.5 * ones, last, 0 * ones)
    assert found[:2].tolist() == [0.5 + 2 * (1 + 0.5 - 0.5), 0.5]
    assert np.isinf(found[2])


def test_the_world_is_off_policy():
    assert (np.abs(PI - MU).max(axis=1) > 0.1).sum() >= 3
    assert CONTINUATION.std() > 0.1
