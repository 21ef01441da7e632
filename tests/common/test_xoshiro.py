"""The compiled stream of random numbers, and sums to the last digit."""

import math

import numpy as np
import pytest
from oracles import LARGEST_UNIT, Xoshiro, p_value
from rings import DRAWS, LEVEL

from gvf import RatioRing
from gvf.sampling import xoshiro


def test_xoshiro_gives_the_published_numbers():
    # The first outputs of xoshiro256+ from the state 1, 2, 3, 4.
    published = [5, 211106232532999, 211106635186183, 9223759065350669058, 9250833439874351877]
    stream = Xoshiro([1, 2, 3, 4])
    assert [stream.next_bits() for _ in range(5)] == published
    numbers, state = np.empty(5), np.array([1, 2, 3, 4], np.uint64)
    xoshiro.fill(state, numbers)
    assert numbers.tolist() == [(bits >> 11) / 2**53 for bits in published]
    assert state.tolist() == stream.state


def test_xoshiro_equals_its_oracle_and_stays_below_1():
    state = xoshiro.streams(1, 0)[0]
    oracle = Xoshiro(state)
    assert [xoshiro.uniform(state) for _ in range(1000)] == oracle.random(1000)
    all_ones = np.array([2**64 - 1, 1, 2, 0], np.uint64)
    assert xoshiro.uniform(all_ones) == LARGEST_UNIT
    assert xoshiro.uniform(np.array([0, 1, 2, 0], np.uint64)) == 0.0


def test_streams_are_rows_that_do_not_depend_on_their_number():
    five = xoshiro.streams(5, [1, 2])
    assert (five.shape, five.dtype) == ((5, 4), np.uint64)
    np.testing.assert_array_equal(five[:2], xoshiro.streams(2, np.random.SeedSequence([1, 2])))
    assert len({tuple(row) for row in five.tolist()}) == 5
    assert np.any(five != xoshiro.streams(5, [1, 3]))


def test_xoshiro_is_uniform_in_every_digit():
    numbers = np.empty(DRAWS)
    xoshiro.fill(xoshiro.streams(1, 5)[0], numbers)
    assert numbers.min() >= 0.0
    assert numbers.max() < 1.0
    for shift in (1, 2**10, 2**20, 2**40):  # high bits and low
        cells = (numbers * shift % 1.0 * 100).astype(int)
        assert p_value(np.bincount(cells, minlength=100), np.ones(100)) > LEVEL


def test_a_million_tenths_add_up_to_the_last_digit():
    ratios = np.full(1_000_000, 0.1)
    assert abs(np.cumsum(ratios)[-1] / math.fsum(ratios) - 1) > 1e-12  # as a plain sum does not
    ring = RatioRing(len(ratios))
    ring.extend(ratios)
    assert ring.total == pytest.approx(math.fsum(ratios), rel=2e-16, abs=0.0)
