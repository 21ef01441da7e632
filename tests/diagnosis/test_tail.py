"""Ratios and their tail."""

import math

import numpy as np
import pytest
from scipy import stats

import gvf
from gvf.ratios import pareto_shape, tail_index, trusted_up_to


def test_statistics_of_the_ratios_are_those_of_a_pocket_calculator():
    found = gvf.diagnose([0.0, 1.0, 3.0, 0.0], np.ones(4), batch_size=2)
    assert found.window == 4
    assert found.batch_size == 2
    assert found.mean_ratio == 1.0
    assert found.mean_ratio_error == pytest.approx(math.sqrt(6 / 3) / 2)
    assert found.effective_sample_size == pytest.approx(16 / 10)
    assert found.zero_ratios == 0.5
    assert (found.max_ratio, found.max_share) == (3.0, 0.75)


@pytest.mark.parametrize("k", [-0.4, 0.0, 0.3, 0.7, 1.2])
def test_the_shape_of_pareto_samples_is_found(k):
    m = 4000
    shapes = [
        pareto_shape(np.sort(stats.genpareto.rvs(k, scale=3.0, size=m, random_state=seed)))
        for seed in range(5)
    ]
    # The standard error of the best estimator is (1 + k) / sqrt(m), for k > -1/2.
    assert abs(np.mean(shapes) - k) < 4 * (1 + k) / math.sqrt(5 * m) + 10 * abs(0.5 - k) / m


def test_the_fit_is_close_to_the_likeliest_shape():
    for seed in range(5):
        sample = np.sort(stats.genpareto.rvs(0.5, size=1000, random_state=seed))
        likeliest = stats.genpareto.fit(sample, floc=0)[0]
        assert pareto_shape(sample) == pytest.approx(likeliest, abs=0.02)
        assert pareto_shape(1e5 * sample) == pytest.approx(pareto_shape(sample), rel=1e-9)


def test_short_tails_are_drawn_towards_one_half():
    x = np.sort(stats.genpareto.rvs(-0.3, size=30, random_state=0))
    thetas, likelihoods = [], []
    for j in range(1, 36):
        theta = 1 / x[-1] + (1 - math.sqrt(35 / (j - 0.5))) / (3 * x[7])
        k = sum(math.log(1 - theta * value) for value in x) / 30
        thetas.append(theta)
        # The density is (1/sigma) (1 - theta x)^(-1/k - 1), with sigma = -k / theta.
        likelihoods.append(
            sum(math.log(-theta / k) - (1 / k + 1) * math.log(1 - theta * value) for value in x)
        )
    weights = np.exp(np.array(likelihoods) - max(likelihoods))
    theta = sum(weights * thetas) / sum(weights)
    k = sum(math.log(1 - theta * value) for value in x) / 30
    assert k < -0.3
    assert pareto_shape(x) == pytest.approx((30 * k + 10 * 0.5) / 40, rel=1e-9)


def test_an_exponential_tail_on_the_grid_is_no_trouble():
    # Here a point of the grid is exactly 0, where the likelihood is 0/0.
    sample = np.array([1, 1, 1, 3, *[3.5] * 8, 5, 6, 7, 9], float)
    assert 30 + int(math.sqrt(len(sample))) == 34
    assert np.isfinite(pareto_shape(sample))


def test_the_tail_is_that_of_the_largest_ratios():
    rng = np.random.default_rng(0)
    rho = rng.permutation(rng.lognormal(-0.5, 1.0, 1000))
    ordered = np.sort(rho)
    size = math.ceil(3 * math.sqrt(1000))
    assert tail_index(rho) == pareto_shape(ordered[-size:] - ordered[-size - 1])
    assert tail_index(rho[:50]) == pareto_shape(np.sort(rho[:50])[-10:] - np.sort(rho[:50])[-11])


def test_bounded_ratios_have_no_tail_and_few_large_ones_tell_nothing():
    assert tail_index(np.repeat([0.1, 9.0], [900, 100])) == -math.inf
    assert tail_index(np.repeat([0.1, 9.0], [500, 500])) == -math.inf  # the tail is one value
    assert tail_index(np.ones(1000)) == -math.inf
    assert math.isnan(tail_index(np.repeat([0.1, 9.0], [996, 4])))
    assert math.isnan(tail_index(np.arange(20.0)))


def test_how_heavy_a_tail_may_be():
    assert trusted_up_to(100) == 0.5
    assert trusted_up_to(1000) == pytest.approx(2 / 3)
    assert trusted_up_to(15_000) == 0.7
    assert trusted_up_to(1) == 0.0
