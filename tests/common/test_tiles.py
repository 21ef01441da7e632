"""Products in compiled loops: against NumPy's, in all shapes, and next to other numbers."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from gvf.common.tiles import BYTES, MOST, add_product, aligned, lanes_of, prefetch

DTYPES = [np.float32, np.float64]


@njit
def product(out, left, right, shape):
    add_product(out, left, right, shape[0], shape[1], shape[2])


def padded(matrix, more=0):
    """A matrix with rows of whole vectors and some columns more, which are NaN."""
    lanes = lanes_of(matrix.dtype)
    width = -(-matrix.shape[1] // lanes) * lanes + more
    out = np.full((len(matrix), width), np.nan, matrix.dtype)
    out[:, : matrix.shape[1]] = matrix
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_all_shapes_are_those_of_numpy(dtype, transposed):
    rng, lanes = np.random.default_rng(0), lanes_of(dtype)
    for rows in (1, 2, MOST - 1, MOST, MOST + 1, 3 * MOST + 2):
        for columns in (1, lanes, lanes + 1, 2 * lanes, 3 * lanes, 3 * lanes + 1, 7 * lanes - 1):
            for depth in (0, 1, 2, 17):
                a, b = rng.normal(size=(rows, depth)), rng.normal(size=(depth, columns))
                c = rng.normal(size=(rows, columns))
                a, b, c = (part.astype(dtype) for part in (a, b, c))
                right = a @ b + c
                out, b = padded(c, more=5), padded(b, more=3)
                factor = np.ascontiguousarray(a.T if transposed else a)
                strides = (1, rows) if transposed else (depth, 1)
                flat = out.ravel()
                product(
                    (flat, 0, out.shape[1]),
                    (factor.ravel(), 0, *strides),
                    (b.ravel(), 0, b.shape[1]),
                    (rows, columns, depth),
                )
                found = flat.reshape(out.shape)
                close = {"rtol": 0, "atol": 64 * np.finfo(dtype).eps}
                np.testing.assert_allclose(found[:, :columns], right, **close)
                assert np.isnan(found[:, -5:]).all()  # nothing beyond whole vectors changes


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_does_not_depend_on_its_neighbours(dtype):
    rng, lanes = np.random.default_rng(1), lanes_of(dtype)
    rows, columns, depth = 2 * MOST + 3, 5 * lanes, 100
    a, b = rng.normal(size=(rows, depth)).astype(dtype), rng.normal(size=(depth, columns))
    b = b.astype(dtype)
    whole = np.zeros((rows, columns), dtype)
    product(
        (whole.ravel(), 0, columns),
        (a.ravel(), 0, depth, 1),
        (b.ravel(), 0, columns),
        (rows, columns, depth),
    )
    for i in range(rows):
        for j in range(0, columns, lanes):
            one = np.zeros(lanes, dtype)
            product(
                (one, 0, 0), (a.ravel(), i * depth, 0, 1), (b.ravel(), j, columns), (1, 1, depth)
            )
            np.testing.assert_array_equal(one, whole[i, j : j + lanes])


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_are_added_up_in_order(dtype):
    """A large number cancels; what was added before it is lost, and what follows is kept."""
    large = 1 / np.finfo(dtype).eps * 4
    left = np.array([1, large, -large, 1], dtype)
    right = padded(np.ones((4, 1), dtype))
    out = np.zeros(right.shape[1], dtype)
    product((out, 0, 0), (left, 0, 0, 1), (right.ravel(), 0, right.shape[1]), (1, 1, 4))
    assert out[0] == 1.0


def test_arrays_begin_where_vectors_are_read_fastest():
    for dtype in DTYPES:
        for count in (1, 7, 1000):
            array = aligned(count, dtype)
            assert (len(array), array.dtype, array.ctypes.data % BYTES) == (count, dtype, 0)


def test_numbers_are_fetched_without_change():
    @njit
    def fetch(array):
        for i in range(len(array)):
            prefetch(array, i)

    array = np.arange(5.0)
    fetch(array)
    np.testing.assert_array_equal(array, np.arange(5.0))


@pytest.mark.parametrize(
    ("features", "vector"), [("", "16 4"), ("+avx2", "32 4"), ("+avx2,+avx512f", "64 8")]
)
def test_vectors_are_those_of_the_machine_that_numba_compiles_for(features, vector):
    """Its name and features are in the key of Numba's cache, which machines may share."""
    words = "from gvf.common import tiles; print(tiles.BYTES, tiles.MOST)"
    chosen = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": features}
    run = subprocess.run(
        [sys.executable, "-c", words],
        env={**os.environ, **chosen},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == vector.split()


def test_cached_functions_of_several_programs_fit_together(tmp_path):
    """Each of two cached functions has products with one to three vectors, made by another run."""
    module = tmp_path / "cached.py"
    module.write_text(
        """
import sys
import numpy as np
from numba import njit
from gvf.common.tiles import add_product, lanes_of
if "late" in sys.argv:  # compile another first, so that Numba counts functions differently
    njit(lambda x: x + 1)(1)
@njit(cache=True)
def first(out, left, right, shape):
    add_product(out, left, right, shape[0], shape[1], shape[2])
@njit(cache=True)
def second(out, left, right, shape):
    add_product(out, left, right, shape[0], shape[1], shape[2])
for name in sys.argv[1].split(","):
    lanes = lanes_of(np.float64)
    for vectors in (1, 2, 3):
        width = vectors * lanes
        out, b = np.zeros((9, width)), np.arange(4.0 * width).reshape(4, width)
        a = np.arange(36.0).reshape(9, 4)
        left, right = (a.ravel(), 0, 4, 1), (b.ravel(), 0, width)
        globals()[name]((out.ravel(), 0, width), left, right, (9, width, 4))
        np.testing.assert_array_equal(out, a @ b)
""",
        "utf-8",
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for words in (["first"], ["second", "late"], ["first,second"]):
        subprocess.run([sys.executable, str(module), *words], check=True, env=environment)
