"""RatioRing draws in proportion to its ratios, by chi-square, and its sums stay exact."""

import math

import numpy as np
import pytest
from oracles import RingOracle, p_value
from rings import DRAWS, LEVEL, filled, search

from gvf import RatioRing


def assert_exact(ring: RatioRing, oracle: RingOracle, tolerance: float) -> None:
    """The total is right, and each slot has its part of the mass, both up to tolerance * total."""
    total = oracle.total
    assert ring.total == pytest.approx(total, rel=tolerance)
    assert len(ring) == len(oracle.ratios)
    wanted, uniforms = [], []
    for slot, (begin, end) in oracle.intervals().items():
        if end - begin > 2 * tolerance * total:
            wanted += [slot, slot]
            uniforms += [begin / total + tolerance, end / total - tolerance]
    assert search(ring, uniforms) == wanted


def assert_all_reachable(ring: RatioRing, oracle: RingOracle) -> None:
    """The middle of each positive slot's part of the mass draws that slot."""
    total = oracle.total
    middles = {
        slot: (begin + end) / 2 / total
        for slot, (begin, end) in oracle.intervals().items()
        if end > begin
    }
    assert len(middles) == np.count_nonzero(oracle.ratios) > 0
    assert search(ring, list(middles.values())) == list(middles)


# --- Exactness, statistically --------------------------------------------------------------------


def log_normal(count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.lognormal(0.0, 1.0, count)


def heavy_tailed(count: int, rng: np.random.Generator) -> np.ndarray:
    """A Pareto tail (exponent .8) from 1e-2 on, cut at 1e3; half of it exact zeros."""
    tail = 1e-2 * rng.random(count) ** (-1 / 0.8)
    return np.minimum(tail, 1e3) * (rng.random(count) < 0.5)


def mostly_zero(count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.lognormal(0.0, 1.0, count) * (rng.random(count) < 0.01)


KINDS = [log_normal, heavy_tailed, mostly_zero]
LAPS = [0.63, *(laps + 0.37 for laps in range(1, 11))]  # the first one is not wrapped


def own_stream(ring: RatioRing) -> np.ndarray:
    return np.concatenate([ring.sample(1000) for _ in range(DRAWS // 1000)])


def generator(ring: RatioRing) -> np.ndarray:
    return ring.sample(DRAWS, rng=np.random.default_rng(3))


def stratified(ring: RatioRing) -> np.ndarray:
    """The counts' variance is at most that of independent draws: the test is on the safe side."""
    return np.concatenate([ring.sample(1000, stratified=True) for _ in range(DRAWS // 1000)])


@pytest.mark.parametrize("laps", LAPS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [own_stream, generator, stratified])
def test_slots_are_drawn_in_proportion_to_their_ratios(way, kind, laps):
    capacity = 1003
    ratios = kind(int(laps * capacity), np.random.default_rng([1, int(100 * laps)]))
    ring, oracle = filled(capacity, ratios, seed=int(100 * laps))
    draws = way(ring)
    assert len(draws) == DRAWS
    weights = oracle.by_slot
    assert p_value(np.bincount(draws, minlength=len(weights)), weights) > LEVEL


@pytest.mark.parametrize("laps", [0.63, 1.37, 4.37, 10.37])
@pytest.mark.parametrize("own", [True, False])
def test_each_question_draws_in_proportion_to_its_own_ratios(own, laps):
    capacity, rng = 1003, np.random.default_rng(int(100 * laps))
    ratios = np.stack([kind(int(laps * capacity), rng) for kind in [*KINDS, *KINDS]], axis=1)
    ring = RatioRing(capacity, questions=6, seed=1)
    ring.extend(ratios)
    draws = ring.sample(DRAWS, rng=None if own else rng, threads=2)
    for g, drawn in enumerate(draws):
        oracle = filled(capacity, ratios[:, g])[1]
        assert p_value(np.bincount(drawn, minlength=len(ring)), oracle.by_slot) > LEVEL


def independent_pairs(draws: np.ndarray, lag: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of draws `lag` apart in their rows, each draw in one pair at most."""
    blocks = draws[:, : draws.shape[1] // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
    return blocks[:, 0].ravel(), blocks[:, 1].ravel()


def assert_independent(first: np.ndarray, second: np.ndarray, ratios: np.ndarray) -> None:
    counts = np.zeros((len(ratios), len(ratios)))
    np.add.at(counts, (first, second), 1)
    assert p_value(counts.ravel(), np.outer(ratios, ratios).ravel()) > LEVEL


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("lag", [1, 2, 4, 15, 16, 32])
def test_draws_within_a_batch_are_independent(lag, own):
    ring, _ = filled(11, np.random.default_rng(0).lognormal(0.0, 1.0, 26), seed=2)
    rng = None if own else np.random.default_rng(1)
    draws = np.stack([ring.sample(64, rng=rng) for _ in range(2 * DRAWS // 64)])
    assert_independent(*independent_pairs(draws, lag), ring.ratios)


def test_draws_of_one_batch_and_the_next_are_independent():
    ring, _ = filled(11, np.random.default_rng(0).lognormal(0.0, 1.0, 26), seed=2)
    draws = np.stack([ring.sample(16) for _ in range(DRAWS // 8)])
    assert_independent(draws[::2].ravel(), draws[1::2].ravel(), ring.ratios)


def test_draws_for_one_question_and_another_are_independent():
    ring = RatioRing(11, questions=5, seed=3)
    ratios = np.random.default_rng(0).lognormal(0.0, 1.0, 26)
    ring.extend(np.repeat(ratios[:, None], 5, axis=1))
    draws = ring.sample(DRAWS)
    for g, h in [(0, 1), (1, 2), (0, 4), (3, 4)]:
        assert_independent(draws[g], draws[h], ring.ratios[:, 0])


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("questions", [None, 2])
@pytest.mark.parametrize("k", [1, 2, 7, 16, 100])
def test_stratified_draw_j_lies_in_the_jth_part_of_the_mass(k, questions, own):
    capacity, rng = 130, np.random.default_rng(k)
    ratios = rng.lognormal(0.0, 2.0, (300, questions or 1))
    ring = RatioRing(capacity, questions=questions, seed=k)
    ring.extend(ratios if questions else ratios[:, 0])
    for _ in range(50):
        batch = ring.sample(k, rng=None if own else rng, stratified=True).reshape(-1, k)
        for g, draws in enumerate(batch):
            oracle = filled(capacity, ratios[:, g])[1]
            parts, total = oracle.intervals(), oracle.total
            for j, slot in enumerate(draws.tolist()):
                begin, end = parts[slot]
                assert begin < ((j + 1) / k + 1e-12) * total
                assert end > (j / k - 1e-12) * total


# --- Exactness, numerically ----------------------------------------------------------------------


@pytest.mark.parametrize("inserts", [1_000_000, pytest.param(100_000_000, marks=pytest.mark.slow)])
def test_after_many_inserts_the_total_is_exact_and_every_positive_slot_reachable(inserts):
    capacity, rng = 15_000, np.random.default_rng(0)
    ring, oracle = RatioRing(capacity), RingOracle(capacity)
    chunk, ratios = 500_000, np.empty(0)
    for start in range(0, inserts, chunk):
        ratios = 10.0 ** rng.uniform(-3.0, 3.0, chunk)
        ratios[rng.random(chunk) < 0.1] = 0.0
        slots = ring.extend(ratios)
        assert slots[-1] == (start + chunk - 1) % capacity
        assert ring.total == pytest.approx(math.fsum(ratios[-capacity:]), rel=1e-12, abs=0.0)
    oracle.inserted = inserts - capacity
    oracle.extend(ratios[-capacity:].tolist())
    for _ in range(7):  # through the whole of a lap
        assert ring.total == pytest.approx(oracle.total, rel=1e-12, abs=0.0)
        assert_all_reachable(ring, oracle)
        assert_exact(ring, oracle, 1e-12)
        more = 10.0 ** rng.uniform(-3.0, 3.0, capacity // 6)
        assert ring.extend(more).tolist() == oracle.extend(more.tolist())


@pytest.mark.parametrize("capacity", [3, 64, 100, 130])
@pytest.mark.parametrize("gap", [None, 1, 7, 64])
def test_an_enormous_ratio_that_has_left_leaves_the_rest_exact(capacity, gap):
    rng = np.random.default_rng(capacity)
    for position in range(capacity):
        first = capacity + capacity // 3 + position
        spikes = {first} if gap is None else {first, first + gap}
        ring, oracle = RatioRing(capacity), RingOracle(capacity)
        gone = max(spikes) + capacity  # the step that evicts the last of them
        ratios = rng.lognormal(0.0, 1.0, gone + capacity + 1)
        ratios[list(spikes)] = 1e15
        for step, ratio in enumerate(ratios.tolist()):
            assert ring.append(ratio) == oracle.append(ratio)
            assert math.isclose(ring.total, oracle.total, rel_tol=1e-12)
            if step in (gone, gone + 1, gone + capacity // 2, gone + capacity):
                assert_exact(ring, oracle, 1e-9)
                assert_all_reachable(ring, oracle)


@pytest.mark.parametrize("capacity", [64, 100, 130])
@pytest.mark.parametrize("period", [64, 97, 130])
@pytest.mark.parametrize("exponents", [(0, 12), (12, 0), (-6, 6), (6, -6)])
def test_geometric_sequences_spanning_1e12_stay_exact(capacity, period, exponents):
    start, stop = exponents
    ratios = np.tile(np.logspace(start, stop, period), 4 * capacity // period + 2).tolist()
    ring, oracle = RatioRing(capacity), RingOracle(capacity)
    for step, ratio in enumerate(ratios):
        assert ring.append(ratio) == oracle.append(ratio)
        assert math.isclose(ring.total, oracle.total, rel_tol=1e-12)
        if step % 5 == 0:
            assert_exact(ring, oracle, 1e-13)
            assert_all_reachable(ring, oracle)
