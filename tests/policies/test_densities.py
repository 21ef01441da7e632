"""Gaussian policies and mixtures of them."""

import numpy as np
import pytest
import scipy.stats
from own_policies import LEVEL

from gvf.policies import Gaussian, Mixture


def test_gaussian_log_density_is_that_of_scipy_for_every_way_of_giving_mean_and_sd():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(6, 2))
    flat, wide = rng.normal(size=6), rng.normal(size=(6, 2))
    norm = scipy.stats.norm.logpdf
    cases = [
        (Gaussian(0.3, 1.7), flat, norm(flat, 0.3, 1.7)),
        (Gaussian(0.3, 1.7), flat[:, None], norm(flat, 0.3, 1.7)),
        (Gaussian([0.3], 1.7), flat[:, None], norm(flat, 0.3, 1.7)),
        (Gaussian(np.array([0.3, -1.0]), 0.2), wide, norm(wide, [0.3, -1.0], 0.2).sum(1)),
        (Gaussian(0.1, [0.5, 2.0]), wide, norm(wide, 0.1, [0.5, 2.0]).sum(1)),
        (Gaussian(lambda s: s[:, 0], 0.2), flat, norm(flat, states[:, 0], 0.2)),
        (Gaussian(lambda s: 2 * s, [0.5, 2.0]), wide, norm(wide, 2 * states, [0.5, 2]).sum(1)),
        (
            Gaussian(lambda s: s, lambda s: np.exp(s[:, 0])),
            wide,
            norm(wide, states, np.exp(states[:, :1])).sum(1),
        ),
    ]
    for policy, actions, expected in cases:
        result = policy.log_probability(states, actions)
        assert result.shape == (6,)
        np.testing.assert_allclose(result, expected, rtol=1e-12)
        np.testing.assert_allclose(policy.probability(states, actions), np.exp(expected))


@pytest.mark.parametrize(
    ("policy", "shape"),
    [
        (Gaussian(0.5, 0.1), (4,)),
        (Gaussian([0.5], 0.1), (4, 1)),
        (Gaussian([0.5, 1.5, 2.5], 0.1), (4, 3)),
        (Gaussian(0.5, [0.1, 0.2]), (4, 2)),
        (Gaussian(lambda s: s[:, 0], 0.1), (4,)),
        (Gaussian(lambda s: s, 0.1), (4, 2)),
        (Mixture(Gaussian([0.5, 1.0], 0.1), Gaussian([0.0, 0.0], 0.1), 0.5), (4, 2)),
    ],
    ids=["scalar", "one", "three", "sd", "function", "wide function", "mixture"],
)
def test_gaussian_draws_have_the_shape_of_mean_and_sd(policy, shape):
    actions = policy.sample(np.ones((4, 2)), rng=np.random.default_rng(0))
    assert actions.shape == shape
    assert policy.log_probability(np.ones((4, 2)), actions).shape == (4,)


def test_gaussian_draws_follow_the_density():
    states = np.repeat([[-1.0], [2.0]], 20_000, axis=0)
    policy = Gaussian(lambda s: 3 * s[:, 0], lambda s: np.abs(s[:, 0]))
    actions = policy.sample(states, rng=np.random.default_rng(1))
    for state, half in ((-1.0, actions[:20_000]), (2.0, actions[20_000:])):
        test = scipy.stats.kstest(half, scipy.stats.norm(3 * state, abs(state)).cdf)
        assert test.pvalue > LEVEL


def test_mixture_of_gaussians_draws_from_its_density():
    policy = Mixture(Gaussian(-1.0, 0.5), Gaussian(2.0, 1.0), 0.3)
    actions = policy.sample(np.zeros(50_000), rng=np.random.default_rng(2))

    def cdf(x):
        return 0.3 * scipy.stats.norm.cdf(x, -1, 0.5) + 0.7 * scipy.stats.norm.cdf(x, 2, 1)

    assert scipy.stats.kstest(actions, cdf).pvalue > LEVEL
    grid = np.linspace(-3, 4, 20)
    expected = 0.3 * scipy.stats.norm.pdf(grid, -1, 0.5) + 0.7 * scipy.stats.norm.pdf(grid, 2, 1)
    np.testing.assert_allclose(policy.probability(grid, grid), expected)
    np.testing.assert_allclose(policy.log_probability(grid, grid), np.log(expected))


def test_mixture_of_densities_that_underflow_keeps_its_logarithm():
    policy = Mixture(Gaussian(0.0, 1e-3), Gaussian(0.1, 1e-3), 0.5)
    first, second = scipy.stats.norm.logpdf(5.0, [0.0, 0.1], 1e-3)
    assert np.exp(second) == 0
    expected = np.log(0.5) + np.logaddexp(first, second)
    np.testing.assert_allclose(policy.log_probability([0], [5.0]), [expected], rtol=1e-14)
    certain = Mixture(Gaussian(0.0, 1.0), Gaussian(9.0, 1.0), 1.0)
    assert certain.log_probability([0], [0.5]) == Gaussian(0.0, 1.0).log_probability([0], [0.5])
