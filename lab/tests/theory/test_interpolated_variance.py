"""Between IS and IR: the variance given the window."""

from itertools import product

import numpy as np
import pytest

from gvf.corrections import IS, BCInterpolated, Interpolated


def windows(count, n, rng):
    """Ratios [n], some alike and none 0, and updates [n, 3]."""
    for _ in range(count):
        yield rng.lognormal(sigma=1.2, size=n), rng.normal(size=(n, 3))


def enumerated(correction, rho, delta, k):
    """Mean and variance (the trace) of the update over all n^k batches, as the library weighs."""
    p, means = correction.masses(rho), correction.means(rho)
    p = p / p.sum()
    mean, second = np.zeros(delta.shape[1]), 0.0
    for batch in product(range(len(rho)), repeat=k):
        slots = list(batch)
        step = correction.weights(rho[slots], means=means) @ delta[slots]
        chance = p[slots].prod()
        mean, second = mean + chance * step, second + chance * step @ step
    return mean, second - mean @ mean


def lemma(beta, rho, delta, k):
    """V = (mean of rho^beta * mean of rho^(2 - beta) g - |mean of rho Delta|^2) / k."""
    g, center = (delta**2).sum(axis=1), (rho[:, None] * delta).mean(axis=0)
    return ((rho**beta).mean() * (rho ** (2 - beta) * g).mean() - center @ center) / k


@pytest.mark.parametrize("beta", [0.0, 0.25, 0.6, 1.0])
def test_the_variance_lemma_holds_for_every_beta(beta):
    rng = np.random.default_rng(1)
    for rho, delta in windows(20, 5, rng):
        mean, variance = enumerated(BCInterpolated(beta), rho, delta, 2)
        np.testing.assert_allclose(mean, (rho[:, None] * delta).mean(axis=0), rtol=1e-9)
        assert variance == pytest.approx(lemma(beta, rho, delta, 2), rel=1e-9)
        plain, less = enumerated(Interpolated(beta), rho, delta, 2)
        mass = (rho**beta).mean()
        np.testing.assert_allclose(mass * plain, mean, rtol=1e-9)
        assert mass**2 * less == pytest.approx(variance, rel=1e-9)


def sizes(delta, g):
    """The same directions, with squared lengths g."""
    return delta * np.sqrt(g / (delta**2).sum(axis=1))[:, None]


BETAS = np.linspace(0.0, 1.0, 11)


def variances(rho, delta):
    """V(beta) of the bias-corrected one for all BETAS, from one draw: enumerated."""
    return np.array([enumerated(BCInterpolated(beta), rho, delta, 1)[1] for beta in BETAS])


def test_where_updates_do_not_depend_on_ratios_resampling_has_the_least_variance():
    """Product designs, where every ratio comes with every g: V falls all the way to beta = 1."""
    rng = np.random.default_rng(2)
    for _ in range(100):
        ratios, g = rng.lognormal(sigma=1.2, size=4), rng.lognormal(size=3)
        v = variances(np.repeat(ratios, 3), sizes(rng.normal(size=(12, 3)), np.tile(g, 4)))
        assert (np.diff(v) < 0).all()


def test_the_variance_can_only_have_its_minimum_inside_where_updates_fall_with_the_ratio():
    """Below 1 exactly if Cov_w(log rho, g) < 0, above 0 exactly if Cov(log rho, rho^2 g) > 0."""
    rng = np.random.default_rng(3)
    found = {"at 0": 0, "inside": 0, "at 1": 0}
    for power in (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0):
        for rho, delta in windows(40, 6, rng):
            g = rng.lognormal(sigma=0.5, size=6) / rho**power
            v = variances(rho, sizes(delta, g))
            assert (np.diff(np.sign(np.diff(v))) >= 0).all()  # it falls, then it rises
            small = 1e-5
            slope = [lemma(b + small, rho, sizes(delta, g), 1) - lemma(b, rho, sizes(delta, g), 1)
                     for b in (0.0, 1.0 - small)]  # fmt: skip
            w = rho / rho.sum()
            at_one = (w * np.log(rho) * g).sum() - (w * np.log(rho)).sum() * (w * g).sum()
            at_zero = np.cov(np.log(rho), rho**2 * g)[0, 1]
            assert (at_one < 0) == (slope[1] > 0)
            assert (at_zero > 0) == (slope[0] < 0)
            found["inside" if at_one < 0 < at_zero else "at 1" if at_one >= 0 else "at 0"] += 1
    assert min(found.values()) > 10


@pytest.mark.parametrize("power", [0.0, 0.4, 1.0, 2.0])
def test_where_updates_fall_as_a_power_of_the_ratio_the_best_beta_is_known(power):
    """With g = rho^-a the minimum is at beta = 1 - a/2: there p is proportional to rho sqrt(g)."""
    rng = np.random.default_rng(4)
    best = 1 - power / 2
    for rho, delta in windows(50, 6, rng):
        v = variances(rho, sizes(delta, rho**-power))
        assert BETAS[int(np.argmin(v))] == pytest.approx(best)


def test_with_zero_ratios_any_resampling_varies_less_than_reweighting():
    """As beta falls to 0, V tends to less than that of IS: zeros are never drawn."""
    rng = np.random.default_rng(5)
    for rho, delta in windows(50, 6, rng):
        rho[:2] = 0.0
        small = enumerated(BCInterpolated(1e-9), rho, delta, 1)[1]
        reweighting = enumerated(IS(), rho, delta, 1)[1]
        second = (rho**2 * (delta**2).sum(axis=1)).mean()
        assert reweighting - small == pytest.approx(second * 2 / 6, rel=1e-6)


def test_where_no_step_may_overshoot_resampling_makes_the_most_of_it():
    """With the step size as large as the largest weight allows, the mean step grows with beta."""
    rng = np.random.default_rng(6)
    for rho, delta in windows(50, 6, rng):
        speed = []
        for beta in BETAS:
            for correction in (Interpolated(beta), BCInterpolated(beta)):
                largest = correction.weights(rho, means=correction.means(rho)).max()
                mean, _ = enumerated(correction, rho, delta, 1)
                speed.append(np.linalg.norm(mean) / (largest * len(rho)))
        plain, corrected = np.array(speed).reshape(-1, 2).T
        np.testing.assert_allclose(plain, corrected, rtol=1e-9)
        assert (np.diff(plain) > 0).all()
        share = rho.mean() / ((rho**0.3).mean() * rho.max() ** 0.7)
        assert plain[3] / plain[-1] == pytest.approx(share, rel=1e-9)


def test_at_the_true_values_of_the_chain_the_best_beta_is_zero_or_a_half():
    """Two actions: pi delta is the same for both, so rho |delta| is in proportion to 1 / mu."""
    for mu, best in ((0.5, 0.0), (0.9, 0.5), (0.99, 0.5)):
        behaviour = np.array([mu, 1 - mu])
        target = np.array([1 - mu, mu]) if mu > 0.5 else np.array([0.1, 0.9])
        rho, delta = target / behaviour, np.array([1.0, -1.0]) / target
        beta = np.linspace(0, 1, 101)
        second = [(behaviour @ rho**b) * (behaviour @ (rho ** (2 - b) * delta**2)) for b in beta]
        assert beta[int(np.argmin(second))] == pytest.approx(best)
