"""RatioRing against a deque of ratios: exactly, by chi-square, and after every operation.

Dyadic ratios (small multiples of a power of two) make every sum exact, so that the ring and the
oracle must agree to the slot. With other ratios sums are rounded; there the chi-square tests and
the edges of each slot's part of the mass must hold.
"""

import copy
import inspect
import math
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles import (
    LARGEST_UNIT,
    XOSHIRO_ZERO_THEN_LARGEST,
    Numbers,
    RingOracle,
    Xoshiro,
    stratify,
    zero_then_largest,
)
from rings import assert_same, filled, search, unchanged

from gvf import RatioRing

CAPACITIES = [1, 2, 3, 5, 17, 63, 64, 65, 100, 127, 128, 130, 200]
DYADIC = [0.0] * 6 + [2.0**-6, 0.25, 0.5, 1.0, 1.5, 3.0, 17.078125, 1000.0]


# --- The interface -------------------------------------------------------------------------------


def test_the_signatures_are_the_promised_ones():
    def shape(function):
        return [
            (name, str(parameter.kind.description), parameter.default)
            for name, parameter in inspect.signature(function).parameters.items()
        ]

    given, keyword = "positional or keyword", "keyword-only"
    no = inspect.Parameter.empty
    assert shape(RatioRing) == [
        ("capacity", given, no),
        ("questions", keyword, None),
        ("seed", keyword, None),
    ]
    ring = RatioRing(1)
    assert shape(ring.append) == [("ratio", given, no)]
    assert shape(ring.extend) == [("ratios", given, no)]
    assert shape(ring.append_and_sample) == [("ratio", given, no), ("k", given, no)]
    assert shape(ring.sample) == [
        ("k", given, no),
        ("rng", keyword, None),
        ("stratified", keyword, False),
        ("threads", keyword, 1),
    ]


def test_shapes_and_types_without_questions():
    ring = RatioRing(3)
    assert type(ring.append(1)) is int
    slots = ring.extend([2.0, 3.0, 4.0, 5.0])
    assert (slots.dtype, slots.tolist()) == (np.int64, [1, 2, 0, 1])
    for draws in (ring.sample(7), ring.sample(7, rng=np.random.default_rng()), ring.sample(7)):
        assert (draws.dtype, draws.shape) == (np.int64, (7,))
    slot, draws = ring.append_and_sample(6.0, 4)
    assert (type(slot), slot, draws.dtype, draws.shape) == (int, 2, np.int64, (4,))
    properties = (ring.total, ring.mean, ring.max, ring.effective_sample_size)
    assert all(type(value) is float for value in properties)
    assert properties == pytest.approx((15.0, 5.0, 6.0, 225 / 77), rel=1e-15)
    assert ring.ratios.tolist() == [4.0, 5.0, 6.0]
    assert len(ring) == 3


@pytest.mark.parametrize("questions", [1, 3])
def test_shapes_and_types_with_questions(questions):
    ring = RatioRing(2, questions=questions)
    ratios = np.array([[1.0, 0.5, 4.0], [2.0, 0.0, 4.0], [3.0, 1.0, 5.0]])[:, :questions]
    assert ring.extend(ratios[:2]).tolist() == [0, 1]
    assert ring.append(ratios[2]) == 0
    assert ring.extend(np.empty((0, questions))).tolist() == []
    draws = ring.sample(5)
    assert (draws.dtype, draws.shape) == (np.int64, (questions, 5))
    expected = {
        "total": [5.0, 1.0, 9.0],
        "mean": [2.5, 0.5, 4.5],
        "max": [3.0, 1.0, 5.0],
        "effective_sample_size": [25 / 13, 1.0, 81 / 41],
    }
    for name, values in expected.items():
        value = getattr(ring, name)
        assert value.shape == (questions,)
        np.testing.assert_allclose(value, values[:questions], rtol=1e-15)
    np.testing.assert_array_equal(ring.ratios, ratios[[2, 1]])


def test_an_empty_ring_has_total_0_mean_and_max_nan_and_effective_size_0():
    ring = RatioRing(3)
    assert (ring.total, ring.effective_sample_size, len(ring)) == (0.0, 0.0, 0)
    assert math.isnan(ring.mean)
    assert math.isnan(ring.max)
    many = RatioRing(3, questions=2)
    assert len(many) == 0
    np.testing.assert_array_equal(many.total, [0.0, 0.0])
    np.testing.assert_array_equal(many.effective_sample_size, [0.0, 0.0])
    np.testing.assert_array_equal(many.mean, [np.nan, np.nan])
    np.testing.assert_array_equal(many.max, [np.nan, np.nan])


def test_the_mean_is_over_the_filled_slots_and_zeros_count():
    ring = RatioRing(10)
    ring.extend([3.0, 0.0, 0.0])
    assert (ring.mean, ring.total, ring.max, ring.effective_sample_size) == (1.0, 3.0, 3.0, 1.0)
    ring = RatioRing(2)
    ring.extend([0.0, 0.0])
    assert (ring.mean, ring.total, ring.max, ring.effective_sample_size) == (0.0, 0.0, 0.0, 0.0)


def test_a_ring_of_capacity_1_holds_the_last_ratio():
    ring = RatioRing(1)
    for ratio in (0.3, 1e15, 0.0, 0.7):
        assert ring.append(ratio) == 0
        assert (len(ring), ring.total, ring.max) == (1, ratio, ratio)
    assert ring.append_and_sample(0.1, 3)[1].tolist() == [0, 0, 0]
    assert ring.extend([0.0, 0.0, 0.2]).tolist() == [0, 0, 0]
    assert ring.sample(2).tolist() == [0, 0]


def test_the_effective_sample_size_neither_overflows_nor_vanishes():
    for scale in (1e-300, 1e-200, 1e200, 1e285):
        ring = RatioRing(4)
        ring.extend(np.array([1.0, 1.0, 0.0, 2.0]) * scale)
        assert ring.effective_sample_size == pytest.approx(16 / 6, rel=1e-14)


# --- Draws against the oracle --------------------------------------------------------------------


def periodic_ratios(n: int, seed: int) -> np.ndarray:
    """n dyadic ratios, some of them 0, whose sum is 1024: so is that of any n in a circle."""
    cuts = np.random.default_rng(seed).choice(np.arange(1, 2 * n) * 2**19, n - 1)
    return np.diff(np.sort(cuts), prepend=0, append=2**20 * n) / 2**10 / n


@pytest.mark.parametrize("capacity", [1, 2, 4, 16, 32, 64, 128, 256])
def test_draws_are_exact_at_and_just_below_every_edge(capacity):
    ratios = periodic_ratios(capacity, seed=capacity)
    ring, oracle = filled(capacity, ratios)
    turning_points = {0, 1, 31, 32, 62, 63, 64, 65, 126, 127, 128, 129, 191, 192, 255}
    for step in range(2 * capacity):
        if step % capacity in turning_points:
            assert ring.total == 1024.0
            edges = np.array([begin for begin, _ in oracle.intervals().values()])
            below = edges[edges > 0.0] - 2.0**-20
            uniforms = np.concatenate([edges, below, [1024.0 - 2.0**-20]]) / 1024.0
            assert search(ring, uniforms) == oracle.draw(uniforms)
        ratio = float(ratios[step % capacity])
        assert ring.append(ratio) == oracle.append(ratio)


@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("laps", [0.6, 1.0, 1.4, 3.7])
def test_draws_of_any_number_walk_from_the_oldest_ratio_to_the_newest(capacity, laps):
    rng = np.random.default_rng([capacity, int(10 * laps)])
    ring, oracle = filled(capacity, rng.choice(DYADIC, math.ceil(laps * capacity)))
    for either in (ring, oracle):
        either.append(0.5)  # so that there is mass
    for k in (1, 2, 15, 16, 17, 31, 32, 33, 64, 65, 100):  # many searches advance together
        uniforms = np.random.default_rng(k).random(k)
        assert ring.sample(k, rng=np.random.default_rng(k)).tolist() == oracle.draw(uniforms)
        assert ring.sample(k).tolist() == oracle.draw(oracle.stream.random(k))


class OtherBits(np.random.PCG64):
    """A bit generator that is not NumPy's own."""


@pytest.mark.parametrize("questions", [None, 1])
@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize(
    "bits",
    [
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.MT19937,
        np.random.Philox,
        np.random.SFC64,
        OtherBits,
    ],
)
def test_draws_take_one_number_each_from_any_generator_and_leave_it_there(
    bits, stratified, questions
):
    rng, twin = np.random.Generator(bits(3)), np.random.Generator(bits(3))
    oracle = filled(65, np.random.default_rng(0).choice(DYADIC, 150))[1]
    ring = RatioRing(65, questions=questions)
    ratios = np.array([0.0] * 85 + list(oracle.ratios))
    ring.extend(ratios if questions is None else ratios[:, None])
    for k in (1, 3, 17, 700):
        assert rng.integers(10) == twin.integers(10)  # which may leave half a number over
        uniforms = twin.random(k)
        draws = ring.sample(k, rng=rng, stratified=stratified).ravel().tolist()
        assert draws == oracle.draw(stratify(uniforms, k) if stratified else uniforms)
        assert rng.random() == twin.random()


@pytest.mark.parametrize("capacity", [3, 64, 65, 130, 1000])
@pytest.mark.parametrize("laps", [0.7, 1.3, 2.6])
def test_each_draw_lies_in_its_slot_s_part_of_the_mass(capacity, laps):
    rng = np.random.default_rng([capacity, int(10 * laps)])
    count = math.ceil(laps * capacity)
    ratios = rng.lognormal(0.0, 3.0, count) * (rng.random(count) < 0.7)
    ring, oracle = filled(capacity, [*ratios, 0.1])
    uniforms = np.random.default_rng(5).random(20_000)
    draws = ring.sample(20_000, rng=np.random.default_rng(5))
    assert ring.ratios[draws].min() > 0.0
    parts, total = oracle.intervals(), oracle.total
    begins, ends = np.array([parts[slot] for slot in draws.tolist()]).T
    assert np.all(uniforms * total >= begins - 1e-12 * total)
    assert np.all(uniforms * total <= ends + 1e-12 * total)


def draw_with_numbers(ring: RatioRing, stratified: bool) -> list[int]:
    rng = Numbers([0.0, LARGEST_UNIT])
    return ring.sample(2, rng=rng, stratified=stratified).tolist()


def draw_with_a_generator(ring: RatioRing, stratified: bool) -> list[int]:
    return ring.sample(2, rng=zero_then_largest(), stratified=stratified).tolist()


def draw_with_the_own_stream(ring: RatioRing, stratified: bool) -> list[int]:
    arrays = ring.checkpoint()
    arrays["streams"] = np.array([XOSHIRO_ZERO_THEN_LARGEST], np.uint64)
    ring.restore(arrays)
    return ring.sample(2, stratified=stratified).tolist()


FIRST_AND_LAST = [draw_with_numbers, draw_with_a_generator, draw_with_the_own_stream]


@pytest.mark.parametrize("draw", FIRST_AND_LAST)
@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1 / 3, 1e-300, 1e280])
@pytest.mark.parametrize("zeros", [(0, 0), (3, 0), (0, 3), (70, 70)])
def test_the_smallest_and_the_largest_number_draw_the_first_and_last_positive_slot(
    zeros, scale, stratified, draw
):
    before, after = zeros
    window = np.array([0.0] * before + [0.1, 0.7, 0.0, 1.3] + [0.0] * after) * scale
    n = len(window)
    first, last = before, before + 3
    for head in range(n):  # where the window starts in the ring
        # What leaves is of another size, and not dyadic.
        leaving = np.random.default_rng(head).lognormal(0.0, 2.0, head) * scale
        ring = RatioRing(n)
        ring.extend([*leaving, *window])
        assert draw(ring, stratified) == [(head + first) % n, (head + last) % n]


@pytest.mark.parametrize("draw", FIRST_AND_LAST)
def test_a_trailing_zero_is_not_drawn_when_rounding_puts_the_target_at_the_very_end(draw):
    # In the old segment the base (.25 + 3u) and its mass add up to one bit more than its end, since
    # both roundings are ties; and (1 + (1 - u)) / 2 rounds up to 1, so x is the whole total.
    u = 2.0**-53
    ring = RatioRing(4)
    ring.extend([0.25 + 3 * u, 0.125 + u, 1.375 - 2 * u, 0.0, 0.0])
    assert draw(ring, stratified=True) == [1, 2]


def test_the_smallest_numbers_there_are_can_be_drawn():
    tiny = 5e-324
    ring = RatioRing(3)
    ring.extend([1.0, 0.0, tiny, 0.0, 0.0])  # tiny is the only mass left, in the old segment
    assert ring.total == tiny
    assert set(ring.sample(100).tolist()) == {2}


# --- A million operations ------------------------------------------------------------------------


class Pair:
    """A ring and its oracle that go through the same operations and must agree."""

    def __init__(self, capacity: int, seed: int) -> None:
        self.ring, self.oracle = filled(capacity, [], seed)
        self.rng, self.twin = np.random.default_rng(seed), np.random.default_rng(seed)
        self.saved = self.ring.checkpoint(), copy.deepcopy(self.oracle)
        self.chance = random.Random(seed)

    def ratio(self) -> float:
        return self.chance.choice(DYADIC)

    def append(self) -> None:
        ratio = self.ratio()
        assert self.ring.append(ratio) == self.oracle.append(ratio)

    def extend(self) -> None:
        longest = self.chance.choice([3, 20, 5 * self.oracle.capacity // 2])
        ratios = [self.ratio() for _ in range(self.chance.randint(0, longest))]
        assert self.ring.extend(ratios).tolist() == self.oracle.extend(ratios)

    def extend_by_zeros(self) -> None:
        zeros = [0.0] * self.chance.randint(1, self.oracle.capacity + 1)
        assert self.ring.extend(zeros).tolist() == self.oracle.extend(zeros)

    def sample(self) -> None:
        k, stratified = self.chance.choice([1, 1, 2, 3, 18]), self.chance.random() < 0.3
        rng, twin = self.chance.choice([(self.rng, self.twin), (None, self.oracle.stream)])
        if not self.oracle.has_mass:
            with unchanged(self.ring, None), pytest.raises(ValueError, match="cannot draw"):
                self.ring.sample(k, rng=rng, stratified=stratified)
            return
        uniforms = twin.random(k)
        expected = self.oracle.draw(stratify(uniforms, k) if stratified else uniforms)
        assert self.ring.sample(k, rng=rng, stratified=stratified).tolist() == expected

    def append_and_sample(self) -> None:
        ratio, k = self.ratio(), self.chance.choice([1, 2, 17])
        later = list(self.oracle.ratios)[-self.oracle.capacity + 1 :]
        if ratio == 0.0 and (self.oracle.capacity == 1 or not any(later)):
            with unchanged(self.ring), pytest.raises(ValueError, match="cannot draw"):
                self.ring.append_and_sample(ratio, k)
            return
        slot, draws = self.ring.append_and_sample(ratio, k)
        assert slot == self.oracle.append(ratio)
        assert draws.tolist() == self.oracle.draw(self.oracle.stream.random(k))

    def look(self) -> None:
        ring, oracle = self.ring, self.oracle
        assert len(ring) == len(oracle.ratios)
        assert ring.total == oracle.total
        assert ring.ratios.tolist() == oracle.by_slot
        size = ring.effective_sample_size
        assert size == pytest.approx(oracle.effective_sample_size, rel=1e-12, abs=0.0)
        if oracle.ratios:
            assert ring.mean == oracle.total / len(oracle.ratios)
            assert ring.max == max(oracle.ratios)
        else:
            assert math.isnan(ring.mean)
            assert math.isnan(ring.max)

    def fail(self) -> None:
        bad = self.chance.choice([-1.0, math.nan, math.inf, -math.inf])
        ratios = [self.ratio() for _ in range(5)]
        ratios[self.chance.randrange(5)] = bad
        call: Callable[[], Any] = self.chance.choice(
            [
                lambda: self.ring.append(bad),
                lambda: self.ring.extend(ratios),
                lambda: self.ring.append_and_sample(bad, 2),
                lambda: self.ring.append_and_sample(1.0, 0),
                lambda: self.ring.sample(0, rng=self.rng),
                lambda: self.ring.sample(2, rng=self.rng, threads=0),
            ]
        )
        with unchanged(self.ring), pytest.raises(ValueError, match=r"-1|nan|inf|got 0"):
            call()

    def checkpoint(self) -> None:
        self.saved = self.ring.checkpoint(), copy.deepcopy(self.oracle)

    def restore(self) -> None:
        arrays, self.oracle = self.saved[0], copy.deepcopy(self.saved[1])
        self.ring = RatioRing(self.oracle.capacity)
        self.ring.restore(arrays)


OPERATIONS = (
    [Pair.append] * 60
    + [Pair.sample] * 30
    + [Pair.append_and_sample] * 15
    + [Pair.extend] * 6
    + [Pair.look] * 5
    + [Pair.fail] * 4
    + [Pair.extend_by_zeros, Pair.checkpoint, Pair.restore]
)


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_a_million_mixed_operations_agree_with_the_oracle(capacity):
    pair = Pair(capacity, seed=capacity)
    operations = random.Random(capacity).choices(OPERATIONS, k=1_000_000 // len(CAPACITIES) + 1)
    for operation in operations:
        operation(pair)
    pair.look()


def test_mixed_operations_with_questions_agree_with_an_oracle_each():
    questions, capacity, chance = 3, 65, random.Random(0)
    ring = RatioRing(capacity, questions=questions, seed=7)
    states = np.random.SeedSequence(7).generate_state(4 * questions, np.uint64).reshape(-1, 4)
    oracles = [RingOracle(capacity) for _ in range(questions)]
    for oracle, state in zip(oracles, states, strict=True):
        oracle.stream = Xoshiro(state)
    for step in range(5000):
        m = chance.choice([1, 1, 1, 2, 50, 150])
        ratios = [[chance.choice(DYADIC) for _ in range(questions)] for _ in range(m)]
        if step % 50 == 0:  # one question runs out of mass
            ratios = [[0.0 if g == step % questions else 1.0 for g in range(questions)]] * capacity
        slots = ring.extend(ratios).tolist()
        for g, oracle in enumerate(oracles):
            assert oracle.extend(row[g] for row in ratios) == slots
        np.testing.assert_array_equal(ring.total, [oracle.total for oracle in oracles])
        if not all(oracle.has_mass for oracle in oracles):
            with unchanged(ring), pytest.raises(ValueError, match="cannot draw"):
                ring.sample(1)
            continue
        k, stratified, own = chance.choice([1, 2, 17]), chance.random() < 0.3, chance.random() < 0.5
        rng = None if own else np.random.default_rng(step)
        numbers = np.random.default_rng(step).random((questions, k))
        draws = ring.sample(k, rng=rng, stratified=stratified)
        for oracle, row, drawn in zip(oracles, numbers, draws, strict=True):
            uniforms = oracle.stream.random(k) if own else row
            expected = oracle.draw(stratify(uniforms, k) if stratified else uniforms)
            assert drawn.tolist() == expected


# --- One way or another, the same ----------------------------------------------------------------


@pytest.mark.parametrize("questions", [None, 3])
@pytest.mark.parametrize("capacity", [1, 5, 64, 65, 130])
def test_extend_equals_repeated_append_bit_for_bit(capacity, questions):
    rng = np.random.default_rng(capacity)
    at_once = RatioRing(capacity, questions=questions, seed=0)
    one_by_one = RatioRing(capacity, questions=questions, seed=0)
    for m in (0, 1, capacity // 2, capacity - 1, capacity, capacity + 1, 3 * capacity + 7, 2):
        shape = m if questions is None else (m, questions)
        ratios = rng.lognormal(0.0, 5.0, shape) * (rng.random(shape) < 0.6)
        slots = at_once.extend(ratios)
        assert (slots.dtype, slots.shape) == (np.int64, (m,))
        assert slots.tolist() == [one_by_one.append(ratio) for ratio in ratios]
        assert_same(at_once.checkpoint(), one_by_one.checkpoint())


def test_extend_takes_any_sequence_or_layout_of_numbers():
    ratios = np.random.default_rng(0).random((20, 3))
    reference = RatioRing(7, questions=3, seed=0)
    reference.extend(ratios)
    for same in (ratios.tolist(), np.asfortranarray(ratios), np.repeat(ratios, 2, axis=0)[::2]):
        ring = RatioRing(7, questions=3, seed=0)
        ring.extend(same)
        assert_same(ring.checkpoint(), reference.checkpoint())
    ring = RatioRing(7)
    ring.extend(np.array([1, 0, 2], np.int8))
    assert (ring.append(np.float32(0.5)), ring.append(np.array(0.25)), ring.total) == (3, 4, 3.75)


def test_append_and_sample_equals_append_then_sample_bit_for_bit():
    fused, apart = RatioRing(65, seed=4), RatioRing(65, seed=4)
    for ratio in np.random.default_rng(0).lognormal(0.0, 2.0, 200):
        slot, draws = fused.append_and_sample(ratio, 5)
        assert slot == apart.append(ratio)
        assert draws.tolist() == apart.sample(5).tolist()
        assert_same(fused.checkpoint(), apart.checkpoint())


@pytest.mark.parametrize("questions", [None, 1, 5])
@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("k", [1, 5, 1000])
def test_draws_do_not_depend_on_the_number_of_threads(k, own, stratified, questions):
    def draws(threads):
        ring = RatioRing(300, questions=questions, seed=6)
        ring.extend(np.random.default_rng(0).random((700, questions) if questions else 700))
        rng = None if own else np.random.default_rng(1)
        batches = [
            ring.sample(k, rng=rng, stratified=stratified, threads=threads) for _ in range(3)
        ]
        return np.stack(batches), ring.checkpoint()

    alone, state = draws(1)
    for threads in (2, 3, 7):
        together, same_state = draws(threads)
        np.testing.assert_array_equal(together, alone, strict=True)
        assert_same(same_state, state)


@pytest.mark.parametrize("stratified", [False, True])
def test_a_question_s_draws_do_not_depend_on_how_many_others_there_are(stratified):
    ratios = np.random.default_rng(0).lognormal(0.0, 2.0, (150, 7))

    def draws(questions):
        ring = RatioRing(65, questions=questions, seed=9)
        ring.extend(ratios[:, 0] if questions is None else ratios[:, :questions])
        return [ring.sample(20, stratified=stratified) for _ in range(3)]

    for seven, three, one in zip(draws(7), draws(3), draws(None), strict=True):
        np.testing.assert_array_equal(seven[:3], three)
        np.testing.assert_array_equal(seven[0], one)
        assert len({tuple(row) for row in seven}) == 7  # but each has a stream of its own


def test_the_seed_determines_the_draws():
    def draws(seed):
        ring = RatioRing(100, seed=seed)
        ring.extend(np.ones(100))
        return tuple(ring.sample(20).tolist())

    assert draws(1) == draws(1) == draws(np.random.SeedSequence(1))
    assert len({draws(1), draws(2), draws([1, 2]), draws(None), draws(None)}) == 5


@pytest.mark.parametrize("questions", [None, 3])
def test_a_restored_ring_goes_on_as_the_original_would(questions):
    rng = np.random.default_rng(0)
    ratios = rng.lognormal(0.0, 2.0, (300, questions or 1))
    ratios = ratios if questions else ratios[:, 0]
    ring = RatioRing(65, questions=questions, seed=1)
    ring.extend(ratios[:100])
    ring.sample(3)
    arrays = ring.checkpoint()
    taken = copy.deepcopy(arrays)
    restored = RatioRing(65, questions=questions, seed=2)
    restored.extend(ratios[200:])
    restored.restore(arrays)
    for _ in range(2):
        for batch in (ratios[100:101], ratios[100:200]):
            np.testing.assert_array_equal(ring.extend(batch), restored.extend(batch))
            np.testing.assert_array_equal(ring.sample(7), restored.sample(7))
        assert_same(ring.checkpoint(), restored.checkpoint())
    assert_same(arrays, taken)  # a checkpoint is a copy, and nobody writes into it


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda ring: pickle.loads(pickle.dumps(ring))])
def test_a_copied_ring_does_the_same_as_the_original(clone):
    ring = RatioRing(5, seed=0)
    ring.extend([1.0, 2.0, 4.0])
    twin = clone(ring)
    other = RatioRing(5, seed=0)
    other.extend([1.0, 2.0, 4.0])
    assert twin.append(8.0) == other.append(8.0) == 3
    assert (len(twin), twin.total, twin.max) == (4, 15.0, 8.0)
    assert twin.sample(20).tolist() == other.sample(20).tolist()
    assert_same(twin.checkpoint(), other.checkpoint())
