"""Simple versions of the fast structures, with which the tests compare them."""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import scipy.stats

LARGEST_UNIT = 1.0 - 2.0**-53  # the largest number that a Generator's random() can return


class Xoshiro:
    """xoshiro256+ in Python's integers: a stream is four numbers of 64 bits."""

    def __init__(self, state: Iterable[Any]) -> None:
        self.state = [int(word) for word in state]

    def next_bits(self) -> int:
        s0, s1, s2, s3 = self.state
        result = (s0 + s3) % 2**64
        t = (s1 << 17) % 2**64
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= t
        s3 = ((s3 << 45) | (s3 >> 19)) % 2**64
        self.state = [s0, s1, s2, s3]
        return result

    def random(self, k: int) -> list[float]:
        """Return the next k numbers in [0, 1), from the upper 53 bits of each."""
        return [(self.next_bits() >> 11) / 2**53 for _ in range(k)]


def scan(weights: Sequence[float], uniforms: Iterable[float]) -> list[int]:
    """Return the position at `u * total` for each u; at the end of the mass, the last positive."""
    total = math.fsum(weights)
    positions = []
    for u in uniforms:
        x, mass, position = u * total, 0.0, -1
        for i, weight in enumerate(weights):
            if weight > 0.0:
                mass += weight
                position = i
                if x < mass:
                    break
        positions.append(position)
    return positions


class RingOracle:
    """The n most recent ratios in a deque. A draw scans them from the oldest to the newest."""

    def __init__(self, capacity: int, *, seed: int = 0) -> None:
        self.capacity = capacity
        self.ratios: deque[float] = deque(maxlen=capacity)
        self.inserted = 0
        self.stream = Xoshiro(np.random.SeedSequence(seed).generate_state(4, np.uint64))

    def append(self, ratio: float) -> int:
        self.ratios.append(ratio)
        self.inserted += 1
        return (self.inserted - 1) % self.capacity

    def extend(self, ratios: Iterable[float]) -> list[int]:
        return [self.append(ratio) for ratio in ratios]

    @property
    def slots(self) -> list[int]:
        """The filled slots, oldest first."""
        oldest = self.inserted - len(self.ratios)
        return [(oldest + age) % self.capacity for age in range(len(self.ratios))]

    @property
    def by_slot(self) -> list[float]:
        """The ratios in slot order."""
        return [ratio for _, ratio in sorted(zip(self.slots, self.ratios, strict=True))]

    @property
    def total(self) -> float:
        return math.fsum(self.ratios)

    @property
    def has_mass(self) -> bool:
        return any(self.ratios)

    @property
    def effective_sample_size(self) -> float:
        if not self.has_mass:
            return 0.0
        return self.total**2 / math.fsum(ratio * ratio for ratio in self.ratios)

    def draw(self, uniforms: Iterable[float]) -> list[int]:
        oldest = self.inserted - len(self.ratios)
        return [(oldest + age) % self.capacity for age in scan(self.ratios, uniforms)]

    def intervals(self) -> dict[int, tuple[float, float]]:
        """Return the two ends of each slot's part of the mass."""
        sums = accumulate(map(Fraction, self.ratios), initial=Fraction(0))  # exact
        edges = [float(edge) for edge in sums]
        return dict(zip(self.slots, pairwise(edges), strict=True))


class TreeOracle:
    """A list of weights. A draw scans them from slot 0 on."""

    def __init__(self, capacity: int) -> None:
        self.weights = [0.0] * capacity

    @property
    def total(self) -> float:
        return math.fsum(self.weights)

    def set(self, slots: Iterable[int], weights: Iterable[float]) -> None:
        for slot, weight in zip(slots, weights, strict=True):
            self.weights[slot] = weight

    def draw(self, uniforms: Iterable[float]) -> list[int]:
        return scan(self.weights, uniforms)


def stratify(uniforms: Iterable[float], k: int) -> list[float]:
    """Move the j-th number into the j-th of k equal parts of [0, 1]."""
    return [(j + u) / k for j, u in enumerate(uniforms)]


def p_value(counts: Any, weights: Any) -> float:
    """Compute the p value of Pearson's chi-square test that counts are proportional to weights.

    Cells with fewer than 10 expected counts are merged, because the test's theory needs as many. A
    cell without weight must have no counts.
    """
    counts, weights = np.asarray(counts, float), np.asarray(weights, float)
    assert counts.shape == weights.shape
    assert not counts[weights == 0.0].any()
    expected = counts.sum() * weights / math.fsum(weights)
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    rare = np.searchsorted(expected, 10.0)
    while 0 < rare < len(expected) and expected[:rare].sum() < 10.0:
        rare += 1
    if rare:
        counts = np.append(counts[:rare].sum(), counts[rare:])
        expected = np.append(expected[:rare].sum(), expected[rare:])
    if len(counts) == 1:
        return 1.0
    return float(scipy.stats.chisquare(counts, expected * (counts.sum() / expected.sum())).pvalue)


class Numbers(np.random.Generator):
    """A Generator whose `random` returns the numbers that it was made with, to test any draw."""

    def __init__(self, numbers: Any) -> None:
        super().__init__(np.random.PCG64(0))
        self.numbers = np.array(numbers, float)

    def random(self, *args: Any, **kwargs: Any) -> Any:
        size, _, out = (*args, None, None, None)[:3]
        out = kwargs.get("out", out)
        if out is None:
            return self.numbers.reshape(size).copy()
        out[...] = self.numbers
        return out


def zero_then_largest() -> np.random.Generator:
    """Make a real Generator whose first two numbers are 0 and LARGEST_UNIT.

    SFC64's state is four words a, b, c, counter. The first output is a + b + counter, and from
    a = b = counter = 0 the second one is 9 c + 1 (modulo 2^64).
    """
    bit_generator = np.random.SFC64()
    state: Any = bit_generator.state
    c = (2**64 - 2) * pow(9, -1, 2**64) % 2**64
    state["state"]["state"] = np.array([0, 0, c, 0], np.uint64)
    bit_generator.state = state
    return np.random.Generator(bit_generator)


XOSHIRO_ZERO_THEN_LARGEST = [2**64 - 1, 1, 5, 1]
"""The state of a stream whose first two numbers are also 0 and LARGEST_UNIT."""
