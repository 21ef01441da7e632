"""SumTree against a list of weights by chi-square, and bad input.

Dyadic weights (small multiples of a power of two) make every sum exact, so that the tree and the
oracle must agree to the slot.
"""

import copy
import math
import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from oracles import Numbers, TreeOracle, p_value, stratify, zero_then_largest

from gvf import SumTree

LEVEL = 1e-5  # of each chi-square test: there are some 30 of them, their seeds are fixed
DRAWS = 1_000_000
CAPACITIES = [1, 2, 3, 5, 8, 17, 63, 64, 65, 100, 127, 128, 130, 200]
DYADIC = [0.0] * 6 + [2.0**-6, 0.25, 0.5, 1.0, 1.5, 3.0, 17.078125, 1000.0]
NOT_GENERATORS = [np.random.RandomState(0), 3, "seed", np.random.PCG64(0), np.random]


@contextmanager
def unchanged(tree: SumTree, rng: np.random.Generator | None = None) -> Iterator[None]:
    """The tree, its own generator and the given one are afterwards as they were before."""
    before, numbers = copy.deepcopy(tree), copy.deepcopy(rng)
    yield
    np.testing.assert_array_equal(tree._nodes, before._nodes, strict=True)
    assert tree._rng.bit_generator.state == before._rng.bit_generator.state
    if rng is not None and numbers is not None:
        assert rng.random() == numbers.random()


def search(tree: SumTree, uniforms: Any) -> list[int]:
    """Return the slots that the tree draws with the given uniform numbers."""
    return tree.sample(len(uniforms), rng=Numbers(uniforms)).tolist()


# --- Setting, looking, drawing -------------------------------------------------------------------


def test_weights_start_at_0_and_are_what_they_were_set_to():
    tree = SumTree(6)
    assert (len(tree), tree.total, tree[5]) == (6, 0.0, 0.0)
    tree.set(2, 0.5)
    tree.set(np.int32(5), np.float32(0.25))
    tree.set([0, 1], 3)  # one weight for both
    tree.set(np.array([1, 4], np.uint8), np.array([2, 7]))
    assert tree[[0, 1, 2, 3, 4, 5]].tolist() == [3.0, 2.0, 0.5, 0.0, 7.0, 0.25]
    assert tree.total == 12.75
    assert type(tree[2]) is float
    assert type(tree.total) is float


@pytest.mark.parametrize("count", [2, 7, 8, 9, 40])
def test_of_a_slot_named_twice_the_last_weight_stays(count):
    tree = SumTree(10)
    slots = [i * 3 % 4 for i in range(count)]
    tree.set(slots, np.arange(1.0, count + 1.0))
    expected = [0.0] * 10
    for i, slot in enumerate(slots):
        expected[slot] = i + 1.0
    assert tree[:].tolist() == expected
    assert tree.total == sum(expected)


def test_setting_no_slots_changes_nothing():
    tree = SumTree(3)
    tree.set(1, 2.0)
    with unchanged(tree):
        tree.set(np.array([], np.int64), np.array([]))
        tree.set([], [])


def test_what_a_tree_returns_is_a_copy():
    tree = SumTree(3)
    tree.set([0, 1, 2], [1.0, 2.0, 3.0])
    tree[:][:] = 9.0
    tree[[1]][:] = 9.0
    assert (tree[:].tolist(), tree.total) == ([1.0, 2.0, 3.0], 6.0)


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_draws_walk_from_slot_0_on(capacity):
    tree, oracle = SumTree(capacity, seed=5), TreeOracle(capacity)
    own = np.random.default_rng(5)
    weights = np.random.default_rng(capacity).choice(DYADIC, capacity)
    weights[capacity // 2] = 0.5  # so that there is mass
    tree.set(np.arange(capacity), weights)
    oracle.set(range(capacity), weights.tolist())
    for k in (1, 2, 15, 16, 17, 31, 32, 33, 64, 65, 100):  # many searches advance together
        uniforms = np.random.default_rng(k).random(k)
        draws = tree.sample(k, rng=np.random.default_rng(k))
        assert (draws.dtype, draws.shape) == (np.int64, (k,))
        assert draws.tolist() == oracle.draw(uniforms)
        draws = tree.sample(k, rng=np.random.default_rng(k), stratified=True)
        assert draws.tolist() == oracle.draw(stratify(uniforms, k))
        assert tree.sample(k).tolist() == oracle.draw(own.random(k))


@pytest.mark.parametrize("capacity", [1, 2, 3, 64, 65, 100, 130])
def test_draws_are_exact_at_and_just_below_every_edge(capacity):
    tree, oracle = SumTree(capacity), TreeOracle(capacity)
    units = np.random.default_rng(capacity).choice([0, 0, 1, 5, 2**10], capacity)
    units[-1] = 2**17 - units[:-1].sum()  # a total that divides without rounding
    weights = (units / 2**7).tolist()
    tree.set(range(capacity), weights)
    oracle.set(range(capacity), weights)
    assert tree.total == 1024.0
    edges = np.cumsum([0.0, *weights])
    below = edges[edges > 0.0] - 2.0**-20
    uniforms = np.concatenate([edges[edges < 1024.0], below]) / 1024.0
    assert search(tree, uniforms) == oracle.draw(uniforms)


@pytest.mark.parametrize("scale", [1.0, 1 / 3, 1e-300, 1e280])
@pytest.mark.parametrize("zeros", [(0, 0), (3, 0), (0, 3), (70, 70), (5, 123)])
def test_the_smallest_and_the_largest_number_draw_the_first_and_last_positive_slot(zeros, scale):
    before, after = zeros
    weights = np.array([0.0] * before + [0.1, 0.7, 0.0, 1.3] + [0.0] * after) * scale
    tree = SumTree(len(weights))
    tree.set(range(len(weights)), weights)
    for stratified in (False, True):
        draws = tree.sample(2, rng=zero_then_largest(), stratified=stratified)
        assert draws.tolist() == [before, before + 3]


# --- A million operations ------------------------------------------------------------------------


class Pair:
    """A tree and its oracle that go through the same operations and must agree."""

    def __init__(self, capacity: int, seed: int) -> None:
        self.capacity = capacity
        self.tree, self.oracle = SumTree(capacity, seed=seed), TreeOracle(capacity)
        self.own = np.random.default_rng(seed)
        self.rng, self.twin = np.random.default_rng(seed + 1), np.random.default_rng(seed + 1)
        self.chance = random.Random(seed)

    def slot(self) -> int:
        return self.chance.randrange(self.capacity)

    def weight(self) -> float:
        return self.chance.choice(DYADIC)

    def set_one(self) -> None:
        slot, weight = self.slot(), self.weight()
        self.tree.set(slot, weight)
        self.oracle.set([slot], [weight])

    def set_many(self) -> None:
        slots = [self.slot() for _ in range(self.chance.choice([1, 2, 7, 8, 9, 50]))]
        weights = [self.weight() for _ in slots]
        self.tree.set(slots, weights)
        self.oracle.set(slots, weights)

    def set_all_to_zero(self) -> None:
        self.tree.set(range(self.capacity), 0.0)
        self.oracle = TreeOracle(self.capacity)

    def sample(self) -> None:
        k, stratified = self.chance.choice([1, 1, 2, 3, 18]), self.chance.random() < 0.3
        rng, twin = self.chance.choice([(self.rng, self.twin), (None, self.own)])
        if not any(self.oracle.weights):
            with unchanged(self.tree), pytest.raises(ValueError, match="cannot draw"):
                self.tree.sample(k, rng=rng, stratified=stratified)
            return
        uniforms = twin.random(k).tolist()
        expected = self.oracle.draw(stratify(uniforms, k) if stratified else uniforms)
        assert self.tree.sample(k, rng=rng, stratified=stratified).tolist() == expected

    def look(self) -> None:
        slot = self.slot()
        assert self.tree.total == self.oracle.total
        assert self.tree[slot] == self.oracle.weights[slot]
        assert self.tree[:].tolist() == self.oracle.weights

    def fail(self) -> None:
        slots, weights = [self.slot() for _ in range(9)], [self.weight() for _ in range(9)]
        call: Callable[[], Any] = self.chance.choice(
            [
                lambda: self.tree.set([*slots, self.capacity], [*weights, 1.0]),
                lambda: self.tree.set([-1, *slots], [1.0, *weights]),
                lambda: self.tree.set([*slots, 0], [*weights, math.nan]),
                lambda: self.tree.set([*slots, 0], [*weights, -1.0]),
                lambda: self.tree.set(slots[0], math.inf),
                lambda: self.tree.sample(0, rng=self.rng),
            ]
        )
        with unchanged(self.tree), pytest.raises((ValueError, IndexError)):
            call()


OPERATIONS = (
    [Pair.set_one] * 50
    + [Pair.sample] * 30
    + [Pair.set_many] * 12
    + [Pair.look] * 5
    + [Pair.fail]
    + [Pair.set_all_to_zero]
)


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_a_million_mixed_operations_agree_with_the_oracle(capacity):
    pair = Pair(capacity, seed=capacity)
    operations = random.Random(capacity).choices(OPERATIONS, k=1_000_000 // len(CAPACITIES) + 1)
    for operation in operations:
        operation(pair)
    pair.look()


# --- Exactness -----------------------------------------------------------------------------------


def log_normal(count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.lognormal(0.0, 1.0, count)


def heavy_tailed(count: int, rng: np.random.Generator) -> np.ndarray:
    """A Pareto tail (exponent .8) from 1e-2 on, cut at 1e3; half of it exact zeros."""
    tail = 1e-2 * rng.random(count) ** (-1 / 0.8)
    return np.minimum(tail, 1e3) * (rng.random(count) < 0.5)


def mostly_zero(count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.lognormal(0.0, 1.0, count) * (rng.random(count) < 0.01)


def own_generator(tree: SumTree) -> np.ndarray:
    return np.concatenate([tree.sample(1000) for _ in range(DRAWS // 1000)])


def generator(tree: SumTree) -> np.ndarray:
    return tree.sample(DRAWS, rng=np.random.default_rng(3))


def stratified(tree: SumTree) -> np.ndarray:
    """The counts' variance is at most that of independent draws: the test is on the safe side."""
    return np.concatenate([tree.sample(1000, stratified=True) for _ in range(DRAWS // 1000)])


@pytest.mark.parametrize("changes", [0, 1, 5])
@pytest.mark.parametrize("kind", [log_normal, heavy_tailed, mostly_zero])
@pytest.mark.parametrize("way", [own_generator, generator, stratified])
def test_slots_are_drawn_in_proportion_to_their_weights(way, kind, changes):
    capacity, rng = 1003, np.random.default_rng(changes)
    tree, weights = SumTree(capacity, seed=changes), kind(capacity, rng)
    tree.set(np.arange(capacity), weights)
    for _ in range(changes):
        slots = rng.choice(capacity, capacity // 2, replace=False)
        weights[slots] = kind(slots.size, rng)
        for part in np.array_split(slots, 100):
            tree.set(part, weights[part])
    assert p_value(np.bincount(way(tree), minlength=capacity), weights) > LEVEL


@pytest.mark.parametrize("lag", [1, 15, 16])
def test_draws_within_a_batch_are_independent(lag):
    tree, weights = SumTree(11, seed=1), np.random.default_rng(0).lognormal(0.0, 1.0, 11)
    tree.set(range(11), weights)
    draws = np.stack([tree.sample(32) for _ in range(DRAWS // 16)])
    first = draws[:, : 32 // (2 * lag) * 2 * lag].reshape(-1, 2, lag)[:, 0].ravel()
    second = draws[:, : 32 // (2 * lag) * 2 * lag].reshape(-1, 2, lag)[:, 1].ravel()
    counts = np.zeros((11, 11))
    np.add.at(counts, (first, second), 1)
    assert p_value(counts.ravel(), np.outer(weights, weights).ravel()) > LEVEL


@pytest.mark.parametrize("at_once", [1, 300])
def test_errors_do_not_accumulate_over_many_changes(at_once):
    capacity, rng = 300, np.random.default_rng(0)
    tree, weights = SumTree(capacity), np.zeros(capacity)
    for _ in range(3000):
        slots = rng.choice(capacity, at_once, replace=False)
        weights[slots] = 10.0 ** rng.uniform(-3.0, 3.0, at_once)
        weights[slots[rng.random(at_once) < 0.1]] = 1e15  # which is replaced sooner or later
        tree.set(slots, weights[slots])
    for slot in np.flatnonzero(weights == 1e15):
        weights[slot] = 0.5
        tree.set(slot, 0.5)
    total = math.fsum(weights)
    assert tree.total == pytest.approx(total, rel=1e-13)
    ends = np.array([math.fsum(weights[: slot + 1]) for slot in range(capacity)])
    positive = np.flatnonzero(weights)
    middles = (ends - weights / 2)[positive] / total
    assert search(tree, middles) == positive.tolist()


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda tree: pickle.loads(pickle.dumps(tree))])
def test_a_copied_tree_does_the_same_as_the_original(clone):
    tree = SumTree(5, seed=0)
    tree.set([0, 1], [1.0, 2.0])
    twin = clone(tree)
    tree.set(4, 0.5)
    twin.set(4, 0.5)
    assert (twin.total, twin[:].tolist()) == (3.5, [1.0, 2.0, 0.0, 0.0, 0.5])
    assert twin.sample(50).tolist() == tree.sample(50).tolist()


# --- Bad input -----------------------------------------------------------------------------------


def some_tree() -> SumTree:
    tree = SumTree(5, seed=0)
    tree.set([0, 3], [1.0, 0.3])
    return tree


@pytest.mark.parametrize("bad", [-1.0, -1e-300, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("position", [0, 1, 8])
def test_a_bad_weight_and_its_position_are_named(bad, position):
    tree, weights = some_tree(), np.full(9, 0.7)
    weights[position] = bad
    with unchanged(tree), pytest.raises(ValueError, match=f"got {bad} at position {position}$"):
        tree.set([0, 1, 2, 3, 4, 0, 1, 2, 3], weights)
    with unchanged(tree), pytest.raises(ValueError, match=f"got {bad}"):
        tree.set(2, bad)


@pytest.mark.parametrize("bad", [-1, 5, 7, 2**40])
@pytest.mark.parametrize("position", [0, 1, 8])
def test_a_slot_that_is_not_there_and_its_position_are_named(bad, position):
    tree, slots = some_tree(), [0, 1, 2, 3, 4, 0, 1, 2, 3]
    slots[position] = bad
    with unchanged(tree), pytest.raises(IndexError, match=f"slot {bad} at position {position} "):
        tree.set(slots, 0.5)


@pytest.mark.parametrize("slots", [1.0, [0.0, 1.0], [True, False], "1", None])
def test_slots_that_are_no_whole_numbers_are_a_type_error(slots):
    tree = some_tree()
    with unchanged(tree), pytest.raises(TypeError, match="slots must be integers"):
        tree.set(slots, 0.5)


def test_slots_and_weights_of_different_lengths_are_refused():
    tree = some_tree()
    with unchanged(tree), pytest.raises(ValueError, match=r"\(3,\).*\(2,\)"):
        tree.set([0, 1], [1.0, 2.0, 3.0])


def test_reading_a_slot_that_is_not_there_is_an_index_error():
    with pytest.raises(IndexError):
        some_tree()[5]  # though the tree has room for it


@pytest.mark.parametrize("k", [0, -3])
def test_k_below_1_is_named(k):
    tree, rng = some_tree(), np.random.default_rng(0)
    for source in (rng, None):
        with unchanged(tree, source), pytest.raises(ValueError, match=f"at least 1, got {k}"):
            tree.sample(k, rng=source)


@pytest.mark.parametrize("rng", NOT_GENERATORS)
def test_an_rng_that_is_no_generator_is_named(rng):
    tree = some_tree()
    with (
        unchanged(tree),
        pytest.raises(TypeError, match=r"a numpy\.random\.Generator, got"),
    ):
        tree.sample(3, rng=rng)


def test_drawing_where_there_is_nothing_to_draw_says_so():
    tree, rng = some_tree(), np.random.default_rng(0)
    tree.set([0, 3], 0.0)
    for source in (rng, None):
        with unchanged(tree, source), pytest.raises(ValueError, match="all 5 weights are 0"):
            tree.sample(3, rng=source)


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_below_1_is_named(capacity):
    with pytest.raises(ValueError, match=f"capacity must be at least 1, got {capacity}"):
        SumTree(capacity)
