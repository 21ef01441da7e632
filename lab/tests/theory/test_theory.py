"""The theorems: every row holds, and every row fails when the error that it names is planted."""

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import dumb
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from numba import njit
from own_corrections import Carried, Peak, SquareRoot, Unguarded

import gvf
from gvf.cli import main
from gvf.corrections import RATIO, Correction
from gvf.diagnosis.variance_comparison import separation
from gvf.window.draw_batches import Draws
from gvf.window.draw_batches import draw_batches as draw
from gvf_lab import theory
from gvf_lab.figure.style import METHODS, styles
from gvf_lab.report.exhibit import theory as shipped_theory
from gvf_lab.theory import Finding, FindingRow, chain, consistency, variance_lemma
from gvf_lab.theory.bias import expected_wis
from gvf_lab.theory.enumeration import draw_probabilities, enumerated_moments, predicted_moments
from gvf_lab.theory.finding import exactly, markdown_table, sampled
from gvf_lab.theory.simulation import SETTLING_STEPS

DOCUMENTED = Path(__file__).parents[3] / "docs" / "theory" / "table.markdown"
Planted = dict[str, Any]


# Errors that can be planted


def scaled(base: Correction, factor: float) -> Correction:
    """A correction whose weights are all wrong by a factor."""
    right, wrong = base.weigh, float(factor)

    @njit
    def weigh(inputs, p, means, parameters, out):
        right(inputs, p, means, parameters, out)
        for i in range(out.size):
            out[i] *= wrong

    return _with_weights(base, weigh)


def _with_weights(base: Correction, weigh: Any) -> Correction:
    label = base.label or type(base).__name__
    wrong: Any = type("Wrong", (type(base),), {"weigh": weigh, "label": label})
    return wrong(*astuple(base))


@njit
def _by_one_over_mean(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = 1.0 / (means[RATIO] * out.size) if means[RATIO] > 0.0 else 0.0


ONE_OVER_MEAN = _with_weights(gvf.corrections.BCIR(), _by_one_over_mean)


class WrongRatio(gvf.RatioRing):
    """The newest ratio is kept wrong in the eleventh digit."""

    def extend(self, ratios):
        return super().extend(np.vstack([ratios[:-1], ratios[-1:] * (1 + 1e-11)]))


class WrongMean(gvf.RatioRing):
    @property
    def mean(self):
        return super().mean * (1 + 2e-12)


class CountsTheOld(gvf.RatioRing):
    """The mean is over one slot too many."""

    @property
    def mean(self):
        return super().total / (len(self) + 1)


def one_longer(capacity: int, **options: Any) -> gvf.RatioRing:
    return gvf.RatioRing(capacity + 1, **options)


def draw_from(longer: int) -> Callable[..., Draws]:
    def drawn(correction: Correction, ratio: Any, *, window: int, **rest: Any) -> Draws:
        return draw(correction, ratio, window=window + longer, **rest)

    return drawn


def draw_uniformly(share: float) -> Callable[..., Draws]:
    """A share of the draws is not by mass."""

    def drawn(correction: Correction, ratio: Any, **options: Any) -> Draws:
        found, rng = draw(correction, ratio, **options), np.random.default_rng(9)
        shape = found.rows.shape
        rows = found.first[:, None] + rng.integers(found.last[0] - found.first[0], size=shape)
        return replace(found, rows=np.where(rng.random(shape) < share, rows, found.rows))

    return drawn


def draw_stratified(correction: Correction, ratio: Any, **options: Any) -> Draws:
    found, rng = draw(correction, ratio, **options), np.random.default_rng(3)
    if not found.p.size:
        return found
    k, n = found.rows.shape[1], found.last[0] - found.first[0]
    u = (np.arange(k) + rng.random(found.rows.shape)) / k
    if found.first[-1] == 0:
        sums = np.cumsum(found.p)
        return replace(found, rows=np.searchsorted(sums, u * sums[-1], side="right"))
    sums = np.cumsum(found.p[found.first[:, None] + np.arange(n)], axis=1)
    passed = sums[:, None, :] <= (u * sums[:, -1:])[:, :, None]
    return replace(found, rows=found.first[:, None] + passed.sum(axis=2))


def independent_stream(of, steps, *, seed, run):
    kinds = np.random.default_rng([seed, run]).choice(
        of.kind.size, SETTLING_STEPS + steps, p=of.kind
    )
    return of.ratio[kinds], of.update[kinds]


def all_scaled(factor: float) -> tuple[Correction, ...]:
    return tuple(scaled(c, factor) for c in variance_lemma.CORRECTIONS)


def four_scaled(factor: float) -> Planted:
    return {
        "bcir": scaled(gvf.corrections.BCIR(), factor),
        "importance_sampling": scaled(gvf.corrections.IS(), factor),
        "ir": scaled(gvf.corrections.IR(), factor),
        "wis": scaled(gvf.corrections.WISOptimal(), factor),
    }


def own_ratio(correction, ratio, continuation, ended, interest):
    """A trace that multiplies by the ratio of the row itself, not of the one before."""
    return _followed(ratio, ratio, np.append(0.0, continuation[:-1]), ended, interest)


def own_continuation(correction, ratio, continuation, ended, interest):
    """A trace that decays by the continuation after the row, not by that into its state."""
    return _followed(ratio, np.append(0.0, ratio[:-1]), continuation, ended, interest)


def without_trace(correction, ratio, continuation, ended, interest):
    return np.stack([ratio, np.ones_like(ratio)])


def _followed(ratio, by_ratio, decay, ended, interest):
    trace = interest.copy()
    for t in range(1, len(ratio)):
        if not ended[t - 1]:
            trace[t] += decay[t] * by_ratio[t] * trace[t - 1]
    return np.stack([ratio, trace])


def emphatic_scaled(factor: float) -> Planted:
    return {
        "ir": scaled(gvf.corrections.EmphaticIR(), factor),
        "bcir": scaled(gvf.corrections.EmphaticBCIR(), factor),
        "importance_sampling": scaled(gvf.corrections.EmphaticIS(), factor),
    }


EXACT, SMALL = 1 + 2e-12, 1 + 1e-2
BC, ALL_ONE = gvf.corrections.BCIR(), chain.Chain.of((0.5, 0.5), (0.5, 0.5))

PLANTED: list[tuple[str, Planted, set[int]]] = [
    ("theorem_3_1", {"ir": scaled(gvf.corrections.IR(), EXACT)}, {0}),
    ("theorem_3_1", {"ring": WrongRatio}, {0}),
    ("theorem_3_1", {"ring": one_longer}, {0}),
    ("theorem_3_1", {"wis": scaled(gvf.corrections.WISOptimal(), EXACT)}, {0, 1, 2}),
    ("theorem_3_1", {"wis": scaled(gvf.corrections.WISOptimal(), 1 + 1e-4)}, {0, 1, 2, 3, 4}),
    ("theorem_3_1", {"wis": scaled(gvf.corrections.WISOptimal(), 1 + 1e-6)}, {0, 1, 2, 4}),
    ("corollary_3_1_1", {"bcir": ONE_OVER_MEAN}, {0}),
    ("corollary_3_1_1", {"bcir": scaled(BC, EXACT), "ir": BC}, {0, 1}),
    ("corollary_3_1_1", {"ring": WrongMean}, {0}),
    ("corollary_3_1_1", {"ring": CountsTheOld}, {0}),
    ("proposition", {"draw": draw_uniformly(0.02)}, {0}),
    ("proposition", {"draw": draw_uniformly(0.06)}, {0, 1, 2}),
    ("theorem_3_2", {"bcir": scaled(BC, SMALL), "ir": scaled(gvf.corrections.IR(), SMALL)}, {0, 2}),
    ("theorem_3_2", {"bcir": scaled(BC, 1.05), "ir": BC}, {0, 1, 2, 3}),
    ("theorem_3_2", {"bcir": ONE_OVER_MEAN, "draw": draw_from(+1)}, {0, 1, 2}),
    ("theorem_3_2", {"draw": draw_from(-1)}, {2}),
    ("theorem_3_2", {"draw": draw_stratified}, {1}),
    ("theorem_3_2", {"stream": independent_stream}, {1, 2, 4}),
    ("lemma", {"measured": all_scaled(EXACT)}, {0, 1, 2}),
    ("lemma", {"measured": all_scaled(SMALL)}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 10}),
    ("lemma", {"measured": all_scaled(1.03)}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}),
    ("lemma", {"ring": WrongRatio}, {0, 1, 2}),
    ("lemma", {"draw": draw_stratified}, {4, 5, 7, 8}),
    ("theorem_3_3", {"bcir": scaled(BC, EXACT)}, {0, 1}),
    ("theorem_3_3", {"importance_sampling": scaled(gvf.corrections.IS(), EXACT)}, {0, 1}),
    ("theorem_3_3", {"ring": WrongRatio}, {0, 1}),
    ("theorem_3_3", {"bcir": scaled(BC, 1.02)}, {0, 1, 2}),
    ("theorem_3_3", {"bcir": scaled(BC, 0.95)}, {0, 1, 3}),
    ("theorem_3_3", {"bcir": scaled(BC, 3.0)}, {0, 1, 2, 4}),
    ("theorem_3_3", {"bcir": gvf.corrections.IS(), "importance_sampling": BC}, {0, 1, 2, 3}),
    ("theorem_3_4", {"bcir": scaled(BC, EXACT)}, {1, 2}),
    ("theorem_3_4", {"ring": WrongRatio}, {1, 2}),
    ("theorem_3_4", {"bcir": scaled(BC, 1.05)}, {0, 1, 2}),
    ("theorem_3_4", {"sizes": lambda ratios, squared: np.ones_like(ratios)}, {3}),
    ("total_variance", four_scaled(EXACT), {0, 1, 2}),
    ("total_variance", four_scaled(1.02), {0, 1, 2, 3, 4, 5, 6, 8}),
    ("total_variance", four_scaled(1.05), {0, 1, 2, 3, 4, 5, 6, 7, 8}),
    ("total_variance", {"draw": draw_stratified, "ring": WrongRatio}, {0, 1, 3, 5, 7, 8}),
    ("total_variance", {"chain": ALL_ONE}, {9}),
    ("emphatic_resampling", {"ir": scaled(gvf.corrections.EmphaticIR(), EXACT)}, {0, 5}),
    ("emphatic_resampling", {"ring": WrongRatio}, {0, 5}),
    (
        "emphatic_resampling",
        {"wis": scaled(gvf.corrections.EmphaticWISMinibatch(), 1 + 1e-4)},
        {1, 2},
    ),
    ("emphatic_resampling", {"wis": scaled(gvf.corrections.EmphaticWISMinibatch(), 1 + 1e-6)}, {2}),
    ("emphatic_resampling", {"draw": draw_uniformly(0.02)}, {3, 6}),
    ("emphatic_resampling", {"draw": draw_stratified}, {6}),
    ("emphatic_resampling", {"carried": own_ratio}, {0, 1, 2, 3, 5, 6}),
    ("emphatic_resampling", {"carried": own_continuation}, {0, 1, 2, 3, 5, 6}),
    ("emphatic_resampling", {"carried": without_trace}, {0, 1, 2, 3, 4, 5, 6}),
    ("emphatic_resampling", emphatic_scaled(1.02), {0, 5, 6}),
]
"""An experiment, what is planted in it, and which rows must fail: those that name it, and kin."""


@pytest.mark.parametrize(("name", "planted", "failing"), PLANTED)
def test_a_planted_error_is_found(name: str, planted: Planted, failing: set[int]) -> None:
    finding = getattr(theory, name)(**planted)
    assert {i for i, row in enumerate(finding.rows) if not row.holds} == failing


@pytest.fixture(scope="module")
def verified() -> list[Finding]:
    return list(theory.verify())


def test_every_row_holds(verified: list[Finding]) -> None:
    assert [row.claim for finding in verified for row in finding.rows if not row.holds] == []


def test_the_shipped_outcome_is_that_of_these_rows(verified: list[Finding]) -> None:
    shipped = shipped_theory()["findings"]
    assert {name: (one["result"], one["title"]) for name, one in shipped.items()} == {
        finding.slug: (finding.result, finding.title) for finding in verified
    }
    for finding in verified:
        told = shipped[finding.slug]["rows"]
        assert [row["claim"] for row in told] == [row.claim for row in finding.rows]
        assert [row["holds"] for row in told] == [row.holds for row in finding.rows]


def test_every_row_has_been_seen_to_fail(verified: list[Finding]) -> None:
    experiments = dict.fromkeys(name for name, _, _ in PLANTED)
    for name, finding in zip(experiments, verified, strict=True):
        failed = set().union(*(failing for other, _, failing in PLANTED if other == name))
        assert failed == set(range(len(finding.rows))), finding.result


def test_corrections_of_ones_own_can_be_put_to_the_test() -> None:
    own = SquareRoot(), Unguarded()
    finding = theory.lemma(corrections=own)
    assert [row.claim for row in finding.rows if not row.holds] == []
    assert "E[update | B] is E[IS | B]: Unguarded" in [row.claim for row in finding.rows]
    assert len(finding.rows) == 6
    wrong = theory.lemma(corrections=own, measured=(scaled(own[0], EXACT), own[1]))
    assert [row.holds for row in wrong.rows] == [False, False, True, True, True, True]
    with pytest.raises(ValueError, match="Peak weighs by batch"):
        theory.lemma(corrections=(Peak(),))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 41))
def test_every_row_holds_whatever_the_seed(seed: int) -> None:
    for finding in theory.verify(seed=seed):
        assert all(row.holds for row in finding.rows), finding.rows


# The calculations behind the rows


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_a_ring_draws_each_transition_with_the_probability_of_its_ratio(rng) -> None:
    ratios = rng.lognormal(0.0, 2.0, (40, 9)) * (rng.random((40, 9)) > 0.3)
    ratios[:, 5] = 0.7
    for capacity in (1, 4, 5, 9):
        kept = ratios[:, -capacity:]
        kept = kept + 1e-3 * (kept.sum(axis=1, keepdims=True) == 0)
        streamed = np.hstack([ratios[:, :-capacity], kept])
        p, mean = draw_probabilities(streamed, capacity)
        np.testing.assert_allclose(mean, kept.mean(axis=1), rtol=1e-14)
        assert (p[:, :-capacity] == 0.0).all()
        expected = kept / kept.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(p[:, -capacity:], expected, rtol=0, atol=1e-14)
        assert (p[:, -capacity:][kept == 0.0] == 0.0).all()


ENUMERATED = (
    gvf.corrections.IS(),
    gvf.corrections.BCIR(),
    gvf.corrections.IR(),
    gvf.corrections.VTrace(0.8),
    gvf.corrections.WISMinibatch(),
    gvf.corrections.WISOptimal(),
    gvf.corrections.Interpolated(0.3),
    gvf.corrections.BCInterpolated(0.7),
    SquareRoot(),
)


@pytest.mark.parametrize("correction", ENUMERATED, ids=lambda correction: correction.name)
def test_moments_are_sums_over_all_batches(correction: Correction, rng) -> None:
    ratios, updates = rng.lognormal(size=(5, 3)), rng.normal(size=(5, 3, 2))
    ratios[2], ratios[3, 1] = 0.0, 0.0
    found = enumerated_moments(correction, ratios, updates, k=3)
    for window in range(5):
        rho, mean, second = ratios[window], np.zeros(2), 0.0
        p = dumb.probabilities(correction, rho)
        every = itertools.product(range(3), repeat=3)
        for batch in [(0, 1, 2)] if correction == gvf.corrections.WISOptimal() else every:
            slots = list(batch)
            x = dumb.weigh(correction, rho[slots], rho) @ updates[window, slots]
            mean, second = mean + p[slots].prod() * x, second + p[slots].prod() * (x @ x)
        np.testing.assert_allclose(found.mean[window], mean, atol=1e-13)
        assert found.variance[window] == pytest.approx(second - mean @ mean, abs=1e-13)


@pytest.mark.parametrize("correction", [*ENUMERATED, Unguarded()], ids=lambda c: c.name)
def test_the_lemma_predicts_what_enumeration_finds(correction: Correction, rng) -> None:
    ratios, updates = rng.lognormal(size=(20, 4)), rng.normal(size=(20, 4, 2))
    ratios[2], ratios[3, 1], ratios[4, -1] = 0.0, 0.0, 0.0
    if correction == gvf.corrections.WISMinibatch():
        with pytest.raises(ValueError, match="WIS-Minibatch weighs by batch"):
            predicted_moments(correction, ratios, updates, k=2)
        return
    found = enumerated_moments(correction, ratios, updates, k=2)
    mean, variance = predicted_moments(correction, ratios, updates, k=2)
    np.testing.assert_allclose(mean, found.mean, atol=1e-14)
    np.testing.assert_allclose(variance, found.variance, atol=1e-13)
    assert (variance == 0.0).all() == (correction == gvf.corrections.WISOptimal())


def test_windows_without_mass_have_the_update_zero() -> None:
    for correction in (gvf.corrections.IR(), gvf.corrections.IS(), gvf.corrections.WISOptimal()):
        found = enumerated_moments(correction, np.zeros((2, 3)), np.ones((2, 3, 1)))
        predicted = predicted_moments(correction, np.zeros((2, 3)), np.ones((2, 3, 1)))
        for mean, variance in ((found.mean, found.variance), predicted):
            assert (mean == 0.0).all()
            assert (variance == 0.0).all()


def test_a_carried_quantity_may_be_in_the_mass(rng) -> None:
    inputs, updates = rng.lognormal(size=(2, 7, 4)), rng.normal(size=(7, 4, 2))
    found = enumerated_moments(Carried(), inputs, updates, k=2)
    reweighted = enumerated_moments(gvf.corrections.IS(), inputs[0], updates, k=2)
    np.testing.assert_allclose(found.mean, reweighted.mean, atol=1e-14)
    assert (np.abs(found.variance - reweighted.variance) > 1e-3).all()


def test_the_lemma_is_the_variance_of_one_draw_over_k(rng) -> None:
    ratios, updates, k = rng.lognormal(size=5), rng.normal(size=(5, 2)), 7

    def variance(p, x):
        mean = p @ x
        return p @ ((x - mean) ** 2).sum(axis=1) / k

    uniform, by_ratio, r = np.full(5, 0.2), ratios / ratios.sum(), ratios.mean()
    clipped = np.minimum(ratios, 0.9)[:, None] * updates
    for correction, p, x in (
        (gvf.corrections.IS(), uniform, ratios[:, None] * updates),
        (gvf.corrections.BCIR(), by_ratio, r * updates),
        (gvf.corrections.IR(), by_ratio, updates),
        (gvf.corrections.VTrace(0.9), uniform, clipped),
    ):
        found = predicted_moments(correction, ratios[None], updates[None], k)
        np.testing.assert_allclose(found.variance[0], variance(p, x), rtol=1e-13)
        np.testing.assert_allclose(found.mean[0], p @ x, rtol=1e-13)
    no_mass = np.zeros((1, 4)), np.ones((1, 4, 2))
    found = predicted_moments(gvf.corrections.IR(), *no_mass, k)
    assert found.variance == 0.0
    assert (found.mean == 0.0).all()


def test_no_exceptions_mean_that_some_constant_meets_the_condition(rng) -> None:
    """Theorem 3.3: rho g < c where rho < r, and rho g > c where rho >= r, for some c > 0."""
    seen = set()
    for _ in range(300):
        ratios = rng.integers(0, 4, 4) * 0.7
        squares = rng.integers(1, 4, 4).astype(float) ** 2
        product, below = ratios * squares, ratios < ratios.mean()
        candidates = np.unique(product)
        candidates = np.concatenate([(candidates[1:] + candidates[:-1]) / 2, candidates / 2 + 1e-3])
        met = any(
            (product[below] < c).all() and (product[~below] > c).all()
            for c in candidates
            if c > 0.0
        )
        if ratios.any():
            assert (separation(ratios, ratios.mean(), squares)[0] == 0.0) == met
            seen.add(met)
    assert seen == {True, False}


@pytest.mark.parametrize("n", [1, 2, 4])
def test_multinomial_windows_are_all_windows(n: int, rng) -> None:
    mu, update = np.array([0.5, 0.3, 0.2]), rng.normal(size=(3, 2))
    rho = np.array([0.2, 0.0, 4.5])
    expected = np.zeros(2)
    for window in itertools.product(range(3), repeat=n):
        kinds = list(window)
        if rho[kinds].sum() > 0:
            expected += mu[kinds].prod() * (rho[kinds] @ update[kinds]) / rho[kinds].sum()
    np.testing.assert_allclose(expected_wis(mu, rho, update, n), expected, atol=1e-14)


@pytest.mark.parametrize("of", [chain.EASY_CHAIN, chain.HARD_CHAIN, chain.DETERMINISTIC_CHAIN])
def test_windows_of_the_chain_follow_each_other(of: chain.Chain) -> None:
    """One step of a stationary stream leads to a stationary stream, and lags are enumerated."""
    kinds, probability = of.windows(4)
    assert probability.sum() == pytest.approx(1.0, abs=1e-13)
    for position in range(4):
        counted = np.bincount(kinds[:, position], probability, len(of.kind))
        np.testing.assert_allclose(counted, of.kind, atol=1e-14)
    y = of.ratio[:, None] * of.update - of.expected_update
    for lag, covariance in enumerate(of.covariances(4)):
        products = (y[kinds[:, 0]] * y[kinds[:, lag]]).sum(axis=1)
        assert probability @ products == pytest.approx(covariance, abs=1e-13)
    # Without restarts no state but a neighbour follows.
    state, after = kinds[:, 0] // 2, kinds[:, 1] // 2
    moved = state + np.where(kinds[:, 0] % 2, 1, -1)
    inside = (moved > 0) & (moved < 9)
    assert (after[inside] == moved[inside]).all()


def test_the_updates_of_the_chain_are_those_of_td() -> None:
    of = chain.EASY_CHAIN
    domain = chain.DOMAIN
    value = 2.0 - 2.0 * np.arange(10) / 9
    for state, action in itertools.product(range(1, 9), range(2)):
        after = state + (1 if action else -1)
        ended = after in (0, 9)
        error = float(after == 9) + (0.0 if ended else 0.9 * value[after]) - value[state]
        np.testing.assert_allclose(of.update[2 * state + action], [error, error * state / 9])
    assert of.ratio[:2] == pytest.approx(domain.ratios("easy", "easy")[0])


def test_the_variance_of_an_average_is_near_its_limit_where_it_is_measured() -> None:
    """The row compares T = 500 with T to infinity: less than .2 standard errors apart."""
    blocks = consistency.RUNS * consistency.STEPS // consistency.BLOCK
    covariances = chain.EASY_CHAIN.covariances(1000)
    limit = covariances[0] + 2 * covariances[1:].sum()
    near = consistency.scaled_variance(covariances, consistency.BLOCK)
    # The trace over two components has a relative standard error of 1 to 1.4 / sqrt(blocks).
    with_draws = 0.195
    assert 0 < abs(near - limit) < 0.2 * with_draws / math.sqrt(blocks)
    # T = 1: the variance of one window's mean, enumerated.
    kinds, probability = chain.EASY_CHAIN.windows(consistency.WINDOW)
    means = (chain.EASY_CHAIN.ratio[kinds][:, :, None] * chain.EASY_CHAIN.update[kinds]).mean(
        axis=1
    )
    centred = means - chain.EASY_CHAIN.expected_update
    one = float(probability @ (centred**2).sum(axis=1))
    assert consistency.scaled_variance(covariances, 1) == pytest.approx(one, abs=1e-13)


@pytest.mark.parametrize(
    ("relation", "measured", "holds"),
    [
        ("=", 1.1, True), ("=", 0.8, False), ("=", math.nan, False), ("=", math.inf, False),
        ("!=", 1.2, True), ("!=", 1.05, False), ("!=", math.nan, False),
        (">=", 0.95, True), (">=", 0.85, False), (">=", math.nan, False),
        (">", 1.2, True), (">", 1.05, False), (">", math.nan, False),
        ("<", 0.8, True), ("<", 0.95, False), ("<", math.nan, False),
    ],
)  # fmt: skip
def test_a_row_holds_within_its_tolerance(relation: Any, measured: float, holds: bool) -> None:
    assert FindingRow("", 1.0, measured, 0.1 + 1e-15, "", "", relation).holds == holds


def test_a_row_shows_the_worst_of_many_numbers() -> None:
    row = exactly("", [1.0, 2.0, 3.0], [1.0, 2.0 + 3e-12, 3.0 - 4e-12], "")
    assert (row.predicted, row.holds) == (3.0, False)
    row = exactly("", [1.0, 2.0], [1.0 + 3e-12, 2.0], "", scale=[4.0, 0.1])
    assert (row.tolerance, row.holds) == (4e-12, True)
    row = sampled("", [0.0, 0.0], [0.3, 0.2], [0.1, 0.01], "")
    assert (row.measured, row.tolerance, row.holds) == (0.2, 0.05, False)
    assert not sampled("", [0.0, 0.0], [math.nan, 0.0], 0.1, "").holds


# Pictures and the table


def test_pictures_and_table_are_written(
    verified: list[Finding],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(theory, "verify", lambda *, seed: iter(verified))
    folder = tmp_path / "new" / "pictures"
    assert main(["verify", "--plots", str(folder)]) == 0
    assert str(folder) in capsys.readouterr().out
    assert {path.stem for path in folder.glob("*.png")} == {f.slug for f in verified}
    assert all(path.stat().st_size > 10_000 for path in folder.glob("*.png"))
    text = (folder / "table.markdown").read_text(encoding="utf-8")
    assert len({line.replace(r"\|", "").count("|") for line in text.splitlines()}) == 1


def test_pictures_draw_methods_in_the_colours_of_reports(verified: list[Finding]) -> None:
    axes = {}
    for finding in verified:
        figure = Figure()
        finding.picture(figure)
        axes[finding.result] = figure.axes
    drawn = {line.get_label(): line.get_color() for line in axes["Theorem 3.2"][0].lines}
    drawn["IR, hard"] = axes["Corollary 3.1.1"][0].lines[1].get_color()
    for name, label in (("IR", "IR"), ("BC-IR", "BC-IR"), ("IR", "IR, hard")):
        assert drawn[label] == METHODS[name].colour
    for result in ("Total variance", "Variance lemma"):
        (axis,) = axes[result]
        names = [tick.get_text().replace("\n", "") for tick in axis.get_xticklabels()]
        looks = styles(names)
        for name, bar in zip(names, axis.patches, strict=False):
            assert to_hex(bar.get_facecolor()) == looks[name].colour


def test_worlds_and_updates_know_nothing_of_rows() -> None:
    folder = Path(theory.__file__).parent
    for name in ("chain", "corridor", "enumeration", "simulation"):
        text = (folder / f"{name}.py").read_text(encoding="utf-8")
        below = {"chain", "corridor", "enumeration", "simulation"}
        assert set(re.findall(r"gvf_lab\.theory\.(\w+)", text)) <= below, name


def test_the_documented_table_is_that_of_the_command(verified: list[Finding]) -> None:
    """Claims and what they detect; numbers may differ in their last digits elsewhere."""

    def words(text: str) -> list[tuple[str, str]]:
        lines = (line.replace(r"\|", "/").split("|") for line in text.splitlines())
        return [(cells[1].strip(), cells[-2].strip()) for cells in lines]

    documented = DOCUMENTED.read_text(encoding="utf-8")
    assert words(documented) == words(markdown_table(verified))
    pictures = {path.stem for path in DOCUMENTED.parent.glob("*.png")}
    assert pictures == {finding.slug for finding in verified}
