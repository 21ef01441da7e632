"""Vectors in compiled code: each operation has the bits of NumPy's."""

import numpy as np
import pytest
from numba import njit

from gvf.common.vector import absolute, choose, load, root, store, zeros


@njit
def operate(zero, a, b, out, lane):
    x, y = load(zero, a, 1, lane), load(zero, b, 0, lane)
    store(out, 0, lane, x + y)
    store(out, 1, lane, x - y)
    store(out, 2, lane, x * y)
    store(out, 3, lane, x / y)
    store(out, 4, lane, 2.0 * x - 3.0)
    store(out, 5, lane, absolute(x))
    store(out, 6, lane, root(absolute(x)))
    store(out, 7, lane, choose(x, 0.5, y, -1.0))
    x += y
    x *= y
    store(out, 8, lane, x)


@njit
def wide(a, b, out, lane):
    operate(zeros(16), a, b, out, lane)


@njit
def narrow(a, b, out, lane):
    operate(zeros(8), a, b, out, lane)


@njit
def single(a, b, out, lane):
    operate(0.0, a, b, out, lane)


@pytest.mark.parametrize(("work", "width"), [(wide, 16), (narrow, 8), (single, 1)])
def test_operations_have_the_bits_of_numpy(work, width):
    rng, lane = np.random.default_rng(1), 5
    a, b, out = rng.normal(size=(2, 24)), rng.normal(size=24), np.full((9, 24), -7.0)
    a[1, lane] = np.inf
    work(a, b, out, lane)
    used = slice(lane, lane + width)
    x, y = a[1, used], b[used]
    expected = [x + y, x - y, x * y, x / y, 2.0 * x - 3.0, abs(x), np.sqrt(abs(x)),
                np.where(x < 0.5, y, -1.0), (x + y) * y]  # fmt: skip
    np.testing.assert_array_equal(out[:, used], expected)
    assert (np.delete(out, np.r_[used], axis=1) == -7.0).all()
