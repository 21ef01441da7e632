"""The diagnosis of a window: exact numbers are exact, and warnings and conditions can fail."""

import math
from itertools import product

import dumb
import numpy as np
import pytest
from own_corrections import Carried, Infinite, Large, Peak, SquareRoot, Unguarded
from scipy import stats

import gvf
from gvf.diagnosis.batch_law import law_of, self_normalised
from gvf.diagnosis.diagnose import diagnose_updates
from gvf.diagnosis.variance_comparison import separation
from gvf.diagnosis.window_updates import updates_of_array

EXACT = (
    gvf.corrections.IS(),
    gvf.corrections.BCIR(),
    gvf.corrections.IR(),
    gvf.corrections.VTrace(1.0),
    gvf.corrections.VTrace(0.3),
    gvf.corrections.NormIS(7.0),
    gvf.corrections.WISBuffer(),
    gvf.corrections.OnPolicy(),
    gvf.corrections.Interpolated(0.0),
    gvf.corrections.Interpolated(0.3),
    gvf.corrections.BCInterpolated(0.6),
    SquareRoot(),
)


def weigh(
    correction: gvf.corrections.Correction, rho: np.ndarray, window: np.ndarray
) -> np.ndarray:
    """The weights of a batch, by hand."""
    return (
        rho / rho.max() / len(rho) if correction == Peak() else dumb.weigh(correction, rho, window)
    )


def probabilities(correction: gvf.corrections.Correction, rho: np.ndarray) -> np.ndarray:
    """The probabilities of one draw, by hand."""
    return dumb.probabilities(SquareRoot() if correction == Peak() else correction, rho)


def enumerated(
    correction: gvf.corrections.Correction, rho: np.ndarray, updates: np.ndarray, k: int
):
    """Mean [d] and variance of a correction's update, over all k-tuples of slots."""
    p = probabilities(correction, rho)
    mean, square = np.zeros(updates.shape[1]), 0.0
    for batch in product(np.flatnonzero(p), repeat=k):
        slots = list(batch)
        w = weigh(correction, rho[slots], rho)
        x = np.sum([w[j] * updates[slot] for j, slot in enumerate(slots)], axis=0)
        mean += np.prod(p[slots]) * x
        square += np.prod(p[slots]) * (x @ x)
    return mean, square - mean @ mean


def windows(count: int, n: int = 4, d: int = 3):
    """Small windows, with zeros among the ratios and a mean that is not 1."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        rho = rng.lognormal(0.0, 1.5, n) * (rng.random(n) < 0.8)
        yield rho + (rho.sum() == 0), rng.normal(size=(n, d)) * rng.lognormal(size=(n, 1))


def plug_in_bias(rho: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """The bias of WIS-Optimal over windows, to first order, [d]."""
    w = rho / rho.sum()
    return -(w**2) @ (updates - w @ updates)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_means_and_variances_are_those_of_all_mini_batches(k):
    for rho, updates in windows(6):
        found = gvf.diagnose(rho, updates, batch_size=k, corrections=EXACT, batches=2)
        reweighted, _ = enumerated(gvf.corrections.IS(), rho, updates, k)
        assert list(found.moments) == [correction.name for correction in EXACT]
        for correction, moments in zip(EXACT, found.moments.values(), strict=True):
            mean, variance = enumerated(correction, rho, updates, k)
            assert moments.correction == correction
            assert moments.variance.value == pytest.approx(variance, rel=1e-10, abs=1e-13)
            assert moments.length == pytest.approx(np.linalg.norm(mean), rel=1e-12)
            assert moments.variance.standard_error == 0.0
            if correction in (
                gvf.corrections.IR(),
                gvf.corrections.WISBuffer(),
                gvf.corrections.OnPolicy(),
            ):
                off = mean - rho @ updates / rho.sum() + plug_in_bias(rho, updates)
            else:
                off = mean - reweighted
            assert moments.bias == pytest.approx(np.linalg.norm(off), abs=1e-12)
            p = probabilities(correction, rho)
            assert moments.effective_sample_size == pytest.approx(1 / (p @ p))


def test_what_has_no_bias_given_the_window_has_none_to_the_last_digit():
    between = (gvf.corrections.BCInterpolated(beta) for beta in (0.0, 0.35, 0.5, 1.0))
    unbiased = [gvf.corrections.IS(), gvf.corrections.BCIR(), Unguarded(), *between]
    for rho, updates in windows(50, n=200, d=20):
        found = gvf.diagnose(7.7 * rho, updates, corrections=unbiased).moments
        assert [moments.bias for moments in found.values()] == [0.0] * len(unbiased)


def test_the_whole_window_has_no_variance():
    for rho, updates in windows(6):
        both = gvf.diagnose(
            rho, updates, corrections=[gvf.corrections.WISOptimal(), gvf.corrections.IR()]
        ).moments
        whole, drawn = both.values()
        assert (whole.variance.value, whole.variance.standard_error) == (0.0, 0.0)
        assert whole.length == pytest.approx(np.linalg.norm(rho @ updates / rho.sum()), rel=1e-12)
        assert whole.bias == pytest.approx(drawn.bias, rel=1e-12)
        assert whole.effective_sample_size == len(rho)


@pytest.mark.parametrize(
    "correction", [gvf.corrections.WISMinibatch(), Peak()], ids=lambda c: c.name
)
def test_weights_that_depend_on_the_batch_are_found_out_and_simulated(correction):
    # Six windows, three numbers each, 4.5 standard errors: false alarms in 1 of 10,000 seeds.
    for seed, (rho, updates) in enumerate(windows(6)):
        rng = np.random.default_rng(seed)
        found = gvf.diagnose(
            rho, updates, batch_size=3, corrections=[correction], batches=20_000, rng=rng
        )
        moments = found.moments[correction.name]
        mean, variance = enumerated(correction, rho, updates, 3)
        off = mean - rho @ updates / rho.sum() + plug_in_bias(rho, updates)
        noise = math.sqrt(variance / 20_000)
        assert 0.0 < moments.variance.standard_error < 0.06 * variance
        assert abs(moments.variance.value - variance) < 4.5 * moments.variance.standard_error
        assert abs(moments.length - np.linalg.norm(mean)) < 4.5 * noise
        assert abs(moments.bias - np.linalg.norm(off)) < 4.5 * noise


def test_a_simulated_mean_is_not_longer_for_being_simulated():
    rho, updates = next(windows(1, n=30))
    found = gvf.diagnose(rho, updates, batch_size=2, batches=200, rng=np.random.default_rng(7))
    found = found.moments["WIS-Minibatch"]
    slots = np.random.default_rng(7).integers(30, size=(200, 2))
    x = np.array(
        [weigh(gvf.corrections.WISMinibatch(), rho[batch], rho) @ updates[batch] for batch in slots]
    )
    mean, variance = x.mean(axis=0), x.var(axis=0, ddof=1).sum()
    assert found.variance.value == pytest.approx(variance)
    assert found.length == pytest.approx(math.sqrt(mean @ mean - variance / 200))
    off = mean - rho @ updates / rho.sum() + plug_in_bias(rho, updates)
    assert off @ off > 1.5 * variance / 200
    assert found.bias == pytest.approx(math.sqrt(off @ off - variance / 200))


@pytest.mark.parametrize("n", [30, 15_000])
@pytest.mark.parametrize("odd", [0.0, 1e-6, 0.999, 50.0])
def test_one_odd_ratio_among_equal_ones_shows_that_weights_depend_on_the_batch(n, odd):
    rho = np.where(np.arange(n) == n // 2, odd, 1.0)[None, None]
    assert not law_of(gvf.corrections.WISMinibatch(), rho, 16).exact
    assert law_of(Peak(), rho, 16).exact == (odd == 0.0)  # which is never drawn
    for correction in EXACT:
        assert law_of(correction, rho, 16).exact
    # Where nothing varies, and in batches of one, there is nothing to simulate.
    assert law_of(gvf.corrections.WISMinibatch(), np.ones((1, 1, n)), 16).exact
    assert law_of(gvf.corrections.WISMinibatch(), rho, 1).exact


@pytest.mark.parametrize("k", [1, 2, 16, 100])
def test_corrections_are_found_to_be_self_normalised_or_not(k):
    for correction in (
        gvf.corrections.IR(),
        gvf.corrections.OnPolicy(),
        gvf.corrections.WISBuffer(),
        gvf.corrections.WISOptimal(),
    ):
        assert self_normalised(correction, k), correction
    assert self_normalised(gvf.corrections.WISMinibatch(), k)
    assert self_normalised(Peak(), k)
    others = [
        gvf.corrections.IS(),
        gvf.corrections.BCIR(),
        gvf.corrections.NormIS(9.0),
        gvf.corrections.Interpolated(0.9),
        SquareRoot(),
    ]
    for correction in (*others, *(gvf.corrections.VTrace(clip) for clip in (0.01, 1.0, 50.0))):
        assert not self_normalised(correction, k), correction


def test_simulated_corrections_do_not_depend_on_what_is_beside_them():
    rho, updates = next(windows(1, n=50))
    alone = gvf.diagnose(rho, updates, corrections=[gvf.corrections.WISMinibatch()]).moments
    beside = gvf.diagnose(
        rho, updates, corrections=[Peak(), gvf.corrections.WISMinibatch()]
    ).moments
    assert alone["WIS-Minibatch"] == beside["WIS-Minibatch"]
    assert alone["WIS-Minibatch"] == gvf.diagnose(rho, updates).moments["WIS-Minibatch"]


def test_comparison_and_advice_do_not_need_is_among_the_corrections():
    rho, updates = next(windows(1, n=50))
    default, other = gvf.diagnose(rho, updates), gvf.diagnose(rho, updates, corrections=[Peak()])
    assert list(other.moments) == ["Peak"]
    assert other.comparison == default.comparison
    assert default.comparison.reweighted == default.moments["IS"]
    assert default.comparison.resampled == default.moments["BC-IR"]
    assert (other.recommendation, other.reason) == (default.recommendation, default.reason)


def test_a_carried_quantity_comes_as_a_second_input():
    rho, updates = next(windows(1, n=9))
    carried = np.random.default_rng(0).lognormal(size=9)
    found = diagnose_updates(
        np.stack([rho, carried]),
        *updates_of_array(updates),
        batch_size=2,
        corrections=[gvf.corrections.IR(), Carried()],
        batches=2,
        rng=None,
    )
    p, r = rho * carried / (rho @ carried), rho.mean()
    x = ((rho @ carried) / 9 / carried)[:, None] * updates
    mean = p @ x
    np.testing.assert_allclose(mean, rho @ updates / 9)
    variance = p @ np.sum((x - mean) ** 2, axis=1) / 2
    assert found.moments["Carried"].variance.value == pytest.approx(variance)
    assert found.moments["Carried"].length == pytest.approx(r * found.moments["IR"].length)
    assert found.moments["Carried"].bias == 0.0
    assert found.moments["Carried"].effective_sample_size == pytest.approx(1 / (p @ p))
    with pytest.raises(ValueError, match="Carried carries a quantity along the stream"):
        gvf.diagnose(rho, updates, corrections=[gvf.corrections.IR(), Carried()])


def test_a_window_from_which_a_correction_draws_nothing_has_the_update_zero():
    rho, updates = next(windows(1))
    assert rho.max() < 9.0
    found = gvf.diagnose(rho, updates, corrections=[Large(), gvf.corrections.IS()]).moments
    nothing = found["Large"]
    assert (nothing.variance.value, nothing.length, nothing.effective_sample_size) == (
        0.0,
        0.0,
        0.0,
    )
    assert nothing.bias > 0.0


def test_ratios_may_be_enormous_and_clips_are_exact_all_the_same():
    rho, updates = next(windows(1, n=12))
    corrections = [
        gvf.corrections.IR(),
        gvf.corrections.VTrace(1.0),
        gvf.corrections.BCIR(),
        gvf.corrections.Interpolated(1.0),
    ]
    diagnosis = gvf.diagnose(1e285 * rho, updates, corrections=corrections)
    assert diagnosis.recommendation == gvf.corrections.IR()
    assert "overflows" in diagnosis.reason
    found = diagnosis.moments
    for correction in corrections[:2]:
        clipped = (
            np.where(rho > 0.0, 1e285, 0.0) if correction == gvf.corrections.VTrace(1.0) else rho
        )
        expected = gvf.diagnose(clipped, updates, corrections=[correction]).moments
        assert found[correction.name].variance.value == pytest.approx(
            expected[correction.name].variance.value
        )
        assert found[correction.name].length == pytest.approx(expected[correction.name].length)
    assert found["BC-IR"].length == pytest.approx(1e285 * rho.mean() * found["IR"].length)
    assert found["BC-IR"].bias == 0.0
    assert found["Interpolated(1.0)"].variance.value == pytest.approx(found["IR"].variance.value)


def test_the_error_of_a_simulated_variance_is_what_other_seeds_make_of_it():
    rho, updates = next(windows(1, n=30))
    found = [
        gvf.diagnose(rho, updates, batches=400, rng=np.random.default_rng(seed)).moments
        for seed in range(100)
    ]
    variances = [moments["WIS-Minibatch"].variance.value for moments in found]
    errors = [moments["WIS-Minibatch"].variance.standard_error for moments in found]
    # The sd of 100 values is within 30 % of the true one, with 4 standard errors to spare.
    assert np.std(variances) == pytest.approx(np.mean(errors), rel=0.3)


OWN_DRAWS = (
    gvf.corrections.IS(),
    gvf.corrections.BCIR(),
    gvf.corrections.IR(),
    gvf.corrections.VTrace(1.0),
    gvf.corrections.WISMinibatch(),
    gvf.corrections.BCInterpolated(0.5),
    SquareRoot(),
    Peak(),
)


@pytest.mark.parametrize("correction", OWN_DRAWS, ids=lambda correction: correction.name)
def test_variances_are_what_the_librarys_own_draws_give(correction):
    n, k, batches = 300, 16, 4000
    rng = np.random.default_rng(1)
    rho, updates = rng.lognormal(-0.5, 1.0, n), rng.normal(size=(n, 2)) + 0.5
    found = gvf.diagnose(rho, updates, batch_size=k, corrections=[correction], batches=4000)
    found = found.moments[correction.name]
    ring, means, uniform = gvf.RatioRing(n), correction.means(rho), correction.draw.uniform
    ring.extend(correction.masses(rho))
    sums = np.empty((batches, 2))
    for b in range(batches):
        slots = rng.integers(n, size=k) if uniform else ring.sample(k, rng=rng)
        sums[b] = correction.weights(rho[slots], means) @ updates[slots]
    distances = np.sum((sums - sums.mean(axis=0)) ** 2, axis=1)
    error = math.hypot(distances.std() / math.sqrt(batches), found.variance.standard_error)
    assert abs(distances.mean() - found.variance.value) < 4.5 * error


def test_updates_may_be_one_number_each():
    rng = np.random.default_rng(0)
    rho, updates = rng.random(20), rng.normal(size=20)
    assert gvf.diagnose(rho, updates) == gvf.diagnose(rho, updates[:, None])


def test_the_same_window_gives_the_same_record():
    rho, updates = next(windows(1, n=50))
    assert gvf.diagnose(rho, updates) == gvf.diagnose(rho, updates)
    other = gvf.diagnose(rho, updates, rng=np.random.default_rng(5))
    assert other.moments["WIS-Minibatch"] != gvf.diagnose(rho, updates).moments["WIS-Minibatch"]
    assert other.moments["IR"] == gvf.diagnose(rho, updates).moments["IR"]


# Bias of IR over windows


def outcomes():
    """Three kinds of transitions: how often of 20, ratio (mean 1), update."""
    counts = np.array([10, 6, 4])
    rho = np.array([0.4, 1.0, 2.5])
    return counts, rho, np.array([[1.0, 0.3], [-0.5, 1.0], [2.0, -1.0]])


def test_the_plug_in_bias_is_the_covariance_of_ratios_and_updates_under_the_target():
    counts, rho, updates = outcomes()
    assert counts @ rho / 20 == 1.0
    pi = counts * rho / 20
    covariance = (pi * rho) @ updates - (pi @ rho) * (pi @ updates)
    for copies in (1, 50):
        every = np.repeat(np.arange(3), copies * counts)
        found = gvf.diagnose(rho[every], updates[every])
        assert found.moments["IR"].bias == pytest.approx(
            np.linalg.norm(covariance) / (20 * copies), rel=1e-10
        )


def test_bias_and_chance_over_windows_are_as_enumeration_has_them():
    counts, rho, updates = outcomes()
    p, pi, n = counts / 20, counts * rho / 20, 100
    mean, square, total = np.zeros(2), 0.0, 0.0
    for a in range(n + 1):
        for b in range(n + 1 - a):
            seen = np.array([a, b, n - a - b])
            chance = stats.multinomial.pmf(seen, n, p)
            expected = (seen * rho) @ updates / (seen @ rho)
            total, mean = total + chance, mean + chance * expected
            square += chance * (expected @ expected)
    bias = np.linalg.norm(mean - pi @ updates)
    every = np.repeat(np.arange(3), n // 20 * counts)
    found = gvf.diagnose(rho[every], updates[every])
    assert total == pytest.approx(1.0)
    # To first order in 1/n, with n = 100.
    assert found.moments["IR"].bias == pytest.approx(bias, rel=0.05)
    assert found.bias_windows == pytest.approx((square - mean @ mean) / bias**2, rel=0.1)


def test_the_bias_never_outweighs_chance_before_as_many_windows_as_the_effective_size():
    for rho, updates in windows(200, n=12):
        found = gvf.diagnose(rho, updates, batches=2)
        assert found.bias_windows >= found.effective_sample_size * (1 - 1e-9)


def test_ratios_that_do_not_vary_over_the_targets_support_leave_no_bias():
    rng = np.random.default_rng(0)
    found = gvf.diagnose(np.where(rng.random(100) < 0.3, 4.0, 0.0), rng.normal(size=(100, 2)))
    assert found.moments["IR"].bias == pytest.approx(0.0, abs=1e-15)
    assert found.bias_windows == math.inf


# IS against BC-IR


def test_the_difference_is_that_of_the_variances():
    for rho, updates in windows(20, n=8):
        found = gvf.diagnose(rho, updates, batch_size=3, batches=2)
        comparison, g = found.comparison, np.sum(updates**2, axis=1)
        difference = found.moments["IS"].variance.value - found.moments["BC-IR"].variance.value
        assert comparison.difference == pytest.approx(difference, rel=1e-9, abs=1e-12)
        assert comparison.difference == pytest.approx(np.cov(rho, rho * g, bias=True)[0, 1] / 3)
        assert comparison.spread == pytest.approx(np.mean((rho - rho.mean()) ** 2 * g) / 3)
        assert comparison.dependence == pytest.approx(
            rho.mean() * np.cov(rho, g, bias=True)[0, 1] / 3
        )
        assert comparison.correlation == pytest.approx(np.corrcoef(rho, g)[0, 1])


def product_design():
    """Every ratio with every update once: lengths say nothing of ratios, squares included."""
    pairs = list(product([0.0, 0.3, 0.9, 2.8], [[0.1, 0.2], [1.0, -1.0], [0.0, 3.0]]))
    return np.array([rho for rho, _ in pairs]), np.array([update for _, update in pairs])


def test_on_a_product_design_theorem_3_4_holds_with_equality():
    rho, updates = product_design()
    comparison = gvf.diagnose(rho, updates, batch_size=5).comparison
    c = np.mean(np.sum(updates**2, axis=1))
    assert comparison.theorem_3_4
    assert comparison.dependence == pytest.approx(0.0, abs=1e-15)
    assert comparison.difference == pytest.approx(c * rho.var() / 5, rel=1e-12)


def test_the_condition_of_theorem_3_4_is_found_broken():
    rho, updates = product_design()
    comparison = gvf.diagnose(rho, updates / (1 + rho[:, None])).comparison
    assert not comparison.theorem_3_4
    assert comparison.correlation < -0.2
    assert comparison.dependence < 0.0
    assert comparison.chance == pytest.approx(1 / math.sqrt(11))


def test_chance_is_how_the_correlation_varies_when_pairs_are_shuffled():
    rng = np.random.default_rng(0)
    rho, g = rng.lognormal(size=40), rng.lognormal(size=40)
    correlations = [np.corrcoef(rho, rng.permutation(g))[0, 1] for _ in range(4000)]
    chance = gvf.diagnose(rho, np.sqrt(g), batches=2).comparison.chance
    assert chance == pytest.approx(np.std(correlations), rel=0.06)


def test_the_condition_of_theorem_3_3_is_found_to_hold_and_to_fail():
    rho = np.array([0.2, 0.6, 0.9, 1.4, 1.9])  # mean 1
    lengths = np.sqrt(np.array([0.9, 0.8, 0.5, 1.1, 1.5]) / rho)  # rho g below 1, then above
    held = gvf.diagnose(rho, lengths).comparison
    assert held.theorem_3_3
    assert held.exceptions == 0.0
    assert 0.9 < held.c < 1.1
    assert held.difference > 0.0
    lengths[0] *= 1.2  # one small ratio with a long update
    broken = gvf.diagnose(rho, lengths).comparison
    assert not broken.theorem_3_3
    assert broken.exceptions == 1 / 5
    assert broken.difference > 0.0  # the condition is not needed
    reversed_ = gvf.diagnose(rho, 1 / rho).comparison
    assert not reversed_.theorem_3_3
    assert reversed_.difference < 0.0


def test_exceptions_to_theorem_3_3_are_the_fewest_over_all_constants():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(300):
        n = int(rng.integers(2, 7))
        rho = rng.choice([0.0, 0.5, 1.0, 1.0, 4.0], n)
        g = rng.choice([0.0, 0.5, 1.0, 2.0], n)
        if not rho.any() or np.ptp(rho) == 0:
            continue
        mean = rho.mean()
        exceptions, c = separation(rho, mean, g)

        def wrong(c):
            below = rho < mean  # noqa: B023
            return np.sum(below & (rho * g >= c)) + np.sum(~below & (rho * g <= c))  # noqa: B023

        assert c > 0.0
        assert exceptions == wrong(c) / n
        assert exceptions == min(wrong(c) for c in np.arange(0.125, 20, 0.25)) / n
        if exceptions == 0.0:
            held += 1
            assert gvf.diagnose(rho, np.sqrt(g), batches=2).comparison.difference > 0.0
    assert held > 20


# Warnings and the recommendation


def mentions(found: gvf.Diagnosis, text: str) -> bool:
    return any(text in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("target", "behaviour"),
    [([0.1, 0.9], [0.5, 0.5]), ([0.1, 0.9], [0.9, 0.1]), ([0.01, 0.99], [0.99, 0.01])],
    ids=["easy", "hard", "hardest"],
)
def test_a_wrong_behaviour_is_found_by_the_mean_ratio_and_a_right_one_is_not(target, behaviour):
    rng, n = np.random.default_rng(0), 15_000
    policy, alarms, found = gvf.policies.Fixed(behaviour), 0, 0
    wrong = np.array(behaviour) ** 0.8 / np.sum(np.array(behaviour) ** 0.8)
    wrong = np.array([0.65, 0.35]) if behaviour[0] == 0.5 else wrong
    for _ in range(40):
        actions = policy.sample(np.zeros(n), rng=rng)
        right = (np.array(target) / behaviour)[actions]
        alarms += mentions(gvf.diagnose(right, np.ones(n), batches=2), "mean ratio")
        biased = gvf.diagnose((np.array(target) / wrong)[actions], np.ones(n), batches=2)
        found += mentions(biased, "check the behaviour's probabilities")
    assert alarms == 0  # 4 standard errors are 1 in 16,000 for normal means
    assert found == 40


def test_a_mean_ratio_that_may_miss_large_ones_is_doubted_with_more_care():
    rho = np.repeat([0.01, 99.0], [999, 1])  # 10 of the large ones are to be expected
    found = gvf.diagnose(rho, np.ones(1000))
    assert mentions(found, "misses rare large ratios")
    assert not mentions(found, "check the behaviour's")
    assert mentions(gvf.diagnose(np.full(50, 0.5), np.ones(50)), "mean ratio is 0.5, not 1")
    assert not mentions(gvf.diagnose(np.full(50, 1.0), np.ones(50)), "mean ratio")
    assert not mentions(gvf.diagnose([0.5], [1.0]), "mean ratio")  # no standard error


def test_a_heavy_tail_is_told_and_ir_recommended():
    rng = np.random.default_rng(0)
    rho = rng.pareto(1.05, 5000) / 20
    found = gvf.diagnose(rho, rng.normal(size=(5000, 3)))
    assert found.k_hat > found.k_threshold
    assert mentions(found, "heavy tail")
    assert found.recommendation == gvf.corrections.IR()
    assert "cannot be trusted" in found.reason
    light = gvf.diagnose(rng.random(5000) * 2, rng.normal(size=(5000, 3)))
    assert light.k_hat < 0.0
    assert light.warnings == ()


def test_a_small_effective_size_and_empty_batches_are_told():
    rng = np.random.default_rng(0)
    rho = np.where(np.arange(2000) < 20, 100.0, 0.0)
    found = gvf.diagnose(rho, rng.normal(size=(2000, 3)), batch_size=16)
    assert mentions(found, "worth 20 transitions")
    assert mentions(found, "holds 5 % of the mass")
    assert mentions(found, "85 % of uniform mini-batches")
    assert not mentions(gvf.diagnose(rho, rng.normal(size=2000), batch_size=500), "mini-batches")


def test_every_recommendation_has_its_window():
    rng, n = np.random.default_rng(0), 4000
    rho = np.where(rng.random(n) < 0.1, 9.0, 1 / 9)
    unrelated = rng.normal(size=(n, 3))

    def advice(rho, updates):
        found = gvf.diagnose(rho, updates, batches=2)
        assert found.reason.endswith(".")
        return found.recommendation, found.reason

    assert advice(rho, unrelated)[0] == gvf.corrections.IR()
    # IS must win by more than it could lose, n over the effective size, here about 8.
    correction, reason = advice(rho, unrelated / rho[:, None] ** 2)
    assert correction == gvf.corrections.IS()
    assert "the shorter is the update" in reason
    correction, reason = advice(rho, unrelated / rho[:, None] ** 0.75)
    assert correction == gvf.corrections.IR()
    assert "4.5 times the variance of IS at the present weights, but 7.9 times less" in reason
    # The mean of three times 0.1 is 0.10000000000000002.
    for equal in (np.full(n, 1.0), np.full(3, 0.1)):
        correction, reason = advice(equal, unrelated[: len(equal)])
        assert correction == gvf.corrections.IS()
        assert "All ratios are the same" in reason
    correction, reason = advice(rng.uniform(0.9, 1.1, n), unrelated)
    assert correction == gvf.corrections.IS()
    assert "mild" in reason
    correction, reason = advice(rho, np.zeros((n, 3)))
    assert correction == gvf.corrections.IR()
    assert "diagnose again" in reason
    correction, reason = advice(rho, unrelated / np.sqrt(rho)[:, None])
    assert correction == gvf.corrections.IR()
    assert "the variance of IS" in reason
    # A small window in which updates go with ratios: IR is biased, and soon that shows.
    few = np.repeat([0.5, 3.0], [16, 4])
    correction, reason = advice(few, few + 0.1 * rng.normal(size=20))
    assert correction == gvf.corrections.BCIR()
    assert "windows" in reason


def test_updates_as_long_as_one_over_their_ratios_leave_is_no_variance_at_all():
    rho = np.array([0.5, 1.0, 1.5])
    found = gvf.diagnose(rho, 1 / rho)
    assert found.moments["IS"].variance.value == pytest.approx(0.0, abs=1e-15)
    assert found.recommendation == gvf.corrections.IS()


# Bad input


@pytest.mark.parametrize(
    ("rho", "updates", "options", "message"),
    [
        ([1.0, 2.0], np.ones((3, 2)), {}, "updates has 3 rows, but the window has 2 ratios"),
        ([], np.ones((0, 2)), {}, "the window is empty"),
        ([0.0, 0.0], np.ones((2, 2)), {}, "all 2 ratios in the window are 0"),
        ([1.0, math.nan], np.ones((2, 2)), {}, "got nan at position 1"),
        ([1.0, -0.5], np.ones((2, 2)), {}, "got -0.5 at position 1"),
        ([math.inf, 1.0], np.ones((2, 2)), {}, "got inf at position 0"),
        ([[1.0, 2.0]], np.ones((1, 2)), {}, r"ratios must be \[n\]"),
        ([1.0, 2.0], [[1.0, 1.0], [1.0, math.nan]], {}, "got nan in row 1, column 1"),
        ([1.0, 2.0], [1.0, math.inf], {}, "got inf in row 1, column 0"),
        ([1.0, 2.0], [1e200, 1.0], {}, "update in row 0 is too long"),
        ([1.0, 2.0], np.ones((2, 1, 1)), {}, r"updates must be \[n, d\]"),
        ([1.0, 2.0], [1.0, 1.0], {"batch_size": 0}, "must be at least 1, got 0"),
        ([1.0, 2.0], [1.0, 1.0], {"batch_size": -3}, "must be at least 1, got -3"),
        ([1.0, 2.0], [1.0, 1.0], {"batches": 1}, "must be at least 2, got 1"),
        ([1.0, 2.0], [1.0, 1.0], {"corrections": []}, "corrections is empty"),
        (
            [1.0, 2.0],
            [1.0, 1.0],
            {
                "corrections": [
                    gvf.corrections.NormIS(2.0),
                    gvf.corrections.IR(),
                    gvf.corrections.NormIS(3.0),
                ]
            },
            "corrections has 2 of the name NormIS; names must differ",
        ),
        (
            [1.0, 2.0],
            [1.0, 1.0],
            {"corrections": [Infinite()]},
            "Infinite gives the weight inf to a row whose ratio is 1.0",
        ),
    ],
)
def test_bad_input_gets_a_clear_error(rho, updates, options, message):
    with pytest.raises(ValueError, match=message):
        gvf.diagnose(rho, updates, **options)


def test_what_is_of_the_wrong_kind_is_named():
    window = [1.0, 2.0], [1.0, 1.0]
    with pytest.raises(TypeError, match="rng must be a numpy"):
        gvf.diagnose(*window, rng=0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(
        TypeError, match=r"corrections must be like gvf.corrections.IR\(\), got 'IR'"
    ):
        gvf.diagnose(*window, corrections=["IR"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"got IR\(\); put it in a list"):
        gvf.diagnose(*window, corrections=gvf.corrections.IR())  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError):
        gvf.diagnose(*window, batch_size=2.5)  # pyright: ignore[reportArgumentType]


EMPHATIC = {
    gvf.corrections.EmphaticIR(): gvf.corrections.IR(),
    gvf.corrections.EmphaticBCIR(): gvf.corrections.BCIR(),
    gvf.corrections.EmphaticIS(): gvf.corrections.IS(),
    gvf.corrections.EmphaticWISMinibatch(): gvf.corrections.WISMinibatch(),
}


def test_emphatic_corrections_are_the_plain_ones_with_rho_f():
    rng = np.random.default_rng(3)
    rho, trace, updates = rng.lognormal(size=500), rng.lognormal(size=500), rng.normal(size=500)
    found = gvf.diagnose(np.stack([rho, trace]), updates, corrections=EMPHATIC)
    plain = gvf.diagnose(rho * trace, updates, corrections=EMPHATIC.values())
    assert found.emphatic_sample_size == pytest.approx(plain.effective_sample_size)
    for emphatic, other in EMPHATIC.items():
        one, two = found.moments[emphatic.name], plain.moments[other.name]
        for name in ("value", "standard_error"):
            variances = [getattr(moments.variance, name) for moments in (one, two)]
            assert variances[0] == pytest.approx(variances[1], abs=1e-12), name
        for name in ("length", "bias", "effective_sample_size"):
            assert getattr(one, name) == pytest.approx(getattr(two, name), abs=1e-12), name


def test_the_sizes_of_rho_and_of_rho_f_are_shown_side_by_side():
    rho, trace = np.array([1.0, 3.0]).repeat(50), np.append(np.ones(99), 1000.0)
    both = gvf.diagnose(
        [rho, trace], np.ones(100), corrections=[gvf.corrections.IR(), gvf.corrections.EmphaticIR()]
    )
    assert "effective sample size: 80 (80 %), of rho F: 1.14 (1.1 %)" in repr(both)
    assert any("Weighted by rho F, the window is worth 1.14" in text for text in both.warnings)
    assert "the advice is about the others" in repr(both)
    alone = gvf.diagnose([rho, trace], np.ones(100), corrections=[gvf.corrections.IR()])
    assert math.isnan(alone.emphatic_sample_size)
    assert "rho F" not in repr(alone)
    with pytest.raises(ValueError, match=r"carries .* give ratios and traces, \[2, n\], or use"):
        gvf.diagnose(rho, np.ones(100), corrections=[gvf.corrections.EmphaticIR()])
    with pytest.raises(ValueError, match="products of ratios and traces must be finite, and not"):
        gvf.diagnose([rho, 0 * trace], np.ones(100), corrections=[gvf.corrections.EmphaticIR()])
