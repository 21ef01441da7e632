"""Ratios of policies."""

import numpy as np
import pytest
import scipy.stats
from own_policies import LEVEL, TABLE, FakeNormal

from gvf.policies import (
    Always,
    Favour,
    Fixed,
    Function,
    Gaussian,
    Mixture,
    Table,
    Uniform,
    largest_ratio,
    ratio,
)


def test_ratios_of_discrete_policies_are_plain_quotients():
    target, behaviour = Fixed([0.1, 0.9]), Fixed([0.9, 0.1])
    states, actions = np.zeros(3, int), np.array([0, 1, 1])
    expected = [0.1 / 0.9, 0.9 / 0.1, 0.9 / 0.1]
    assert ratio(target, states, actions, behaviour=behaviour).tolist() == expected
    recorded = [0.9, 0.1, 0.1]
    assert ratio(target, states, actions, behaviour_probability=recorded).tolist() == expected
    logs = ratio(target, states, actions, behaviour_log_probability=np.log(recorded))
    np.testing.assert_allclose(logs, expected, rtol=1e-14)


def test_ratios_of_densities_survive_when_the_densities_underflow():
    target, behaviour = Gaussian(0.0, 0.01), Gaussian(0.001, 0.01)
    states, actions = np.zeros(2), np.array([0.5, -0.5])
    assert target.probability(states, actions).tolist() == [0, 0]
    assert behaviour.probability(states, actions).tolist() == [0, 0]
    # log pi - log mu = ((a - .001)^2 - a^2) / (2 * .01^2)
    expected = np.exp((-2 * 0.001 * actions + 1e-6) / (2 * 1e-4))
    np.testing.assert_allclose(ratio(target, states, actions, behaviour=behaviour), expected)
    recorded = behaviour.log_probability(states, actions)
    result = ratio(target, states, actions, behaviour_log_probability=recorded)
    np.testing.assert_allclose(result, expected)


def test_ratios_of_a_narrow_target_and_a_wide_behaviour_reach_a_thousand():
    target, behaviour = Gaussian(0.15, 0.0075), Gaussian(-0.2, 0.1)
    rho = ratio(target, [0.0], [0.15], behaviour=behaviour)
    expected = 0.1 / 0.0075 * np.exp(0.5 * 3.5**2)
    assert expected > 1e3
    np.testing.assert_allclose(rho, [expected], rtol=1e-13)
    density = behaviour.probability([0.0], [0.15])
    rho = ratio(target, [0.0], [0.15], behaviour_probability=density)
    np.testing.assert_allclose(rho, [expected], rtol=1e-13)


@pytest.mark.parametrize(
    ("target", "behaviour"),
    [
        (Favour(0, 0.9, 3), Uniform(3)),
        (Table(TABLE), Mixture(Uniform(3), Table(TABLE), 0.2)),
        (Gaussian(0.2, 0.5), Gaussian(0.0, 1.0)),
        (Gaussian([0.2, -0.2], 0.7), Mixture(Gaussian([0.0, 0.0], 1), Gaussian([1, 0], 1), 0.5)),
        (Function(lambda s: FakeNormal(0.3 + 0 * s)), Gaussian(0.0, 1.5)),
    ],
    ids=["favour", "table", "gaussian", "wide gaussian", "function"],
)
def test_the_mean_ratio_under_the_behaviour_is_one(target, behaviour):
    draws = 200_000
    rng = np.random.default_rng(7)
    states = rng.integers(4, size=draws)
    actions = behaviour.sample(states, rng=rng)
    rho = ratio(target, states, actions, behaviour=behaviour)
    standard_error = rho.std() / np.sqrt(draws)
    assert standard_error < 0.01
    assert abs(rho.mean() - 1) < scipy.stats.norm.isf(LEVEL / 2) * standard_error


def test_a_ratio_is_zero_where_the_target_is_even_if_the_behaviour_is_too():
    target, behaviour = Fixed([1.0, 0.0]), Fixed([1.0, 0.0])
    assert ratio(target, [0, 0], [0, 1], behaviour=behaviour).tolist() == [1, 0]
    rho = ratio(target, [0, 0], [0, 1], behaviour_log_probability=[0.0, -np.inf])
    assert rho.tolist() == [1, 0]


def test_support_violations_name_the_transition_the_action_and_both_probabilities():
    target, behaviour = Fixed([0.25, 0.75]), Always(0, 2)
    with pytest.raises(ValueError, match=r"transition 2 \(action 1\): pi = 0.75, mu = 0.0.*never"):
        ratio(target, [0, 0, 0], [0, 0, 1], behaviour=behaviour)
    with pytest.raises(ValueError, match=r"transition 1 \(action 1\): pi = 0.75, mu = 0.0"):
        ratio(target, [0, 0], [0, 1], behaviour_probability=[0.5, 0.0])
    with pytest.raises(ValueError, match=r"transition 0 \(action 0.5\).*log mu = -inf.*never"):
        ratio(Gaussian(0.0, 1.0), [0], [0.5], behaviour_log_probability=[-np.inf])


def test_ratios_that_overflow_or_are_not_numbers_are_errors():
    with pytest.raises(ValueError, match=r"transition 1 \(action 1\).*1e-310; their ratio is too"):
        ratio(Fixed([0.5, 0.5]), [0, 0], [0, 1], behaviour_probability=[0.5, 1e-310])
    with pytest.raises(ValueError, match=r"transition 0 .*log mu = -1248.* too large"):
        ratio(Gaussian(5.0, 0.1), [0], [5.0], behaviour=Gaussian(0.0, 0.1))
    with pytest.raises(ValueError, match=r"transition 1 \(action nan\).*no ratio"):
        ratio(Gaussian(0.0, 1.0), [0, 0], [0.0, np.nan], behaviour=Gaussian(0.0, 1.0))


@pytest.mark.parametrize("bad", [-0.1, np.nan, 1.5, np.inf])
def test_recorded_probabilities_out_of_range_are_named(bad):
    with pytest.raises(ValueError, match=f"behaviour_probability at position 1 is {bad}"):
        ratio(Uniform(2), [0, 0], [0, 1], behaviour_probability=[0.5, bad])


@pytest.mark.parametrize("bad", [0.1, np.nan, np.inf])
def test_recorded_log_probabilities_out_of_range_are_named(bad):
    with pytest.raises(ValueError, match=f"behaviour_log_probability at position 1 is {bad}"):
        ratio(Uniform(2), [0, 0], [0, 1], behaviour_log_probability=[-0.5, bad])


def test_recorded_densities_may_exceed_one_and_recorded_ones_may_be_rounded_up():
    rho = ratio(Gaussian(0.0, 0.1), [0], [0.0], behaviour_probability=[3.0])
    np.testing.assert_allclose(rho, scipy.stats.norm.pdf(0, 0, 0.1) / 3)
    above = np.nextafter(np.float32(1), np.float32(2))
    assert ratio(Always(0, 1), [0], [0], behaviour_probability=[above])[0] == pytest.approx(1)


def test_the_behaviour_is_given_in_exactly_one_way():
    with pytest.raises(TypeError, match="exactly one way"):
        ratio(Uniform(2), [0], [0])
    with pytest.raises(TypeError, match="exactly one way"):
        ratio(Uniform(2), [0], [0], behaviour=Uniform(2), behaviour_probability=[0.5])
    with pytest.raises(TypeError, match=r"behaviour must be a policy.*behaviour_probability="):
        ratio(Uniform(2), [0], [0], behaviour=[0.5])  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"behaviour_probability has shape \(2,\), expected \(1,\)"
    ):
        ratio(Uniform(2), [0], [0], behaviour_probability=[0.5, 0.5])


def test_largest_ratio_is_the_largest_over_states_and_actions():
    behaviour = Table([[0.2, 0.3, 0.5], [0.5, 0.25, 0.25], [0.6, 0.2, 0.2], [0.98, 0.01, 0.01]])
    target = Table(TABLE)
    expected = max(TABLE[s][a] / behaviour.rows[s, a] for s in range(3) for a in range(3))
    assert largest_ratio(target, behaviour, [0, 1, 2]) == expected
    assert largest_ratio(target, behaviour, [0, 1, 2, 3]) == (1 / 3) / 0.01
    assert largest_ratio(Fixed([0.1, 0.9]), Fixed([0.9, 0.1]), [0]) == 9.0
    with_zeros = largest_ratio(Always(0, 2), Always(0, 2), [0])
    assert with_zeros == 1.0


def test_largest_ratio_names_what_has_no_ratio():
    with pytest.raises(ValueError, match=r"position 1 \(action 0\): pi = 0.1, mu = 0.0.*never"):
        largest_ratio(Fixed([0.1, 0.9]), Table([[0.5, 0.5], [0.0, 1.0]]), [0, 1])
    with pytest.raises(TypeError, match="not discrete"):
        largest_ratio(Gaussian(0.0, 1.0), Uniform(2), [0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"has 2 actions, .* has 3"):
        largest_ratio(Uniform(2), Uniform(3), [0])
    with pytest.raises(ValueError, match="at least one state"):
        largest_ratio(Uniform(2), Uniform(2), [])
