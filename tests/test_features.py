"""Feature maps against references written the obvious way."""

import math
from fractions import Fraction

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from gvf.features import ActiveTable, Dense, OneHot, TileCoder, tile_code, tile_code_one


def reference_tiles(state, low, high, tiles, offsets):
    """One index a tiling, in exact rational arithmetic, one tile at a time."""
    indices = []
    for t, displacement in enumerate(offsets):
        index, cells = 0, 1
        for x, a, b, n, offset in zip(state, low, high, tiles, displacement, strict=True):
            x = min(max(x, a), b)
            z = (Fraction(x) - Fraction(a)) / (Fraction(b) - Fraction(a)) * n
            index = index * (n + 1) + math.floor(z + Fraction(offset))
            cells *= n + 1
        indices.append(t * cells + index)
    return indices


# Multiples of 1/64 with widths that are powers of 2: the coder's own arithmetic is then exact,
# and the reference decides every edge of every tile.
dyadic = st.integers(-512, 512).map(lambda i: i / 64)


@st.composite
def coders_and_states(draw):
    dimensions = draw(st.integers(1, 4))
    tilings = draw(st.integers(1, 9))
    low = [draw(dyadic) for _ in range(dimensions)]
    high = [a + 2.0 ** draw(st.integers(-2, 4)) for a in low]
    tiles = [draw(st.integers(1, 6)) for _ in range(dimensions)]
    offset = st.integers(0, 63).map(lambda i: i / 64)
    offsets = [[draw(offset) for _ in range(dimensions)] for _ in range(tilings)]
    bounds = zip(low, high, strict=True)
    coordinate = st.tuples(*(st.one_of(dyadic, st.sampled_from(pair)) for pair in bounds))
    states = draw(st.lists(coordinate, min_size=1, max_size=6))
    return low, high, tiles, tilings, offsets, states


@settings(deadline=None)  # the first call compiles
@given(coders_and_states())
def test_tile_coder_equals_the_rational_reference(case):
    low, high, tiles, tilings, offsets, states = case
    coder = TileCoder(low, high, tiles=tiles, tilings=tilings, offsets=offsets)
    expected = [reference_tiles(state, low, high, tiles, offsets) for state in states]
    actual = coder(states)
    assert actual.dtype == np.int32
    assert actual.tolist() == expected


def test_default_offsets_are_odd_multiples_of_the_tiling_number():
    expected = [[t % 64 / 64, 3 * t % 64 / 64, 5 * t % 64 / 64] for t in range(64)]
    assert TileCoder([0] * 3, [1] * 3).offsets.tolist() == expected


def test_sixty_four_tilings_of_eight_by_eight_have_5184_features():
    coder = TileCoder([0, 0], [11, 11])
    assert coder.size == 5184
    states = np.random.default_rng(0).uniform(0, 11, (1000, 2))
    active = coder(states)
    assert active.shape == (1000, 64)
    assert (active // 81 == np.arange(64)).all()
    scaled = states / 11 * 8
    for t in range(64):
        row, column = np.floor(scaled + np.array([t, 3 * t]) % 64 / 64).astype(int).T
        assert (active[:, t] == 81 * t + 9 * row + column).all()


@pytest.mark.parametrize("high", [0.1, 0.7, 11.0, 1e-300, 1e300])
@pytest.mark.parametrize("tiles", [1, 3, 8, 49])
def test_exact_bounds_get_the_first_and_last_tile(high, tiles):
    offsets = [[0.0], [np.nextafter(1.0, 0.0)]]
    coder = TileCoder([0.0], [high], tiles=tiles, tilings=2, offsets=offsets)
    last = 2 * tiles + 1
    assert coder([[0.0], [high]]).tolist() == [[0, tiles + 1], [tiles, last]]


def test_states_beyond_the_bounds_are_clipped():
    coder = TileCoder([-1.0, 0.0], [1.0, 5.0], tiles=[2, 3], tilings=7)
    outside = [[-9.0, 99.0], [np.inf, -np.inf], [0.3, 5.1]]
    inside = [[-1.0, 5.0], [1.0, 0.0], [0.3, 5.0]]
    assert (coder(outside) == coder(inside)).all()


def test_tile_coder_takes_any_memory_layout_and_no_states():
    coder = TileCoder([0, 0], [1, 1], tilings=8)
    states = np.random.default_rng(1).random((10, 4), np.float32)
    assert (coder(states[::2, ::2]) == coder(states[::2, ::2].astype(np.float64).copy())).all()
    assert coder(np.empty((0, 2))).shape == (0, 8)


def test_tile_kernels_can_be_called_from_compiled_code():
    coder = TileCoder([0, 0], [1, 1], tilings=8)
    width = coder.high - coder.low
    offsets = np.ascontiguousarray(coder.offsets.T)

    @njit
    def loop(states, low, width, tiles, offsets, out):
        for i in range(len(states) - 1):
            tile_code_one(states[i], low, width, tiles, offsets, out[i])
        tile_code(states[-1:], low, width, tiles, offsets, out[-1:])

    states = np.random.default_rng(2).random((5, 2))
    out = np.empty((5, 8), np.int32)
    loop(states, coder.low, width, coder.tiles, offsets, out)
    assert (out == coder(states)).all()


def test_nan_state_is_an_error_that_names_the_row():
    states = np.zeros((5, 2))
    states[3, 1] = np.nan
    with pytest.raises(ValueError, match="number 1 of the state in row 3 is nan"):
        TileCoder([0, 0], [1, 1])(states)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(low=[0, 0], high=[1, np.inf]), r"dimension 1 has bounds \[0, inf\]"),
        (dict(low=[0, 1], high=[1, 1]), r"dimension 1 has bounds \[1, 1\]"),
        (dict(low=[-1e308], high=[1e308]), "must be finite"),
        (dict(low=[np.nan], high=[1]), "must be finite"),
        (dict(low=0, high=1), "one number a dimension"),
        (dict(low=[0, 0], high=[1]), "one number a dimension"),
        (dict(low=[0], high=[1], tiles=0), "at least 1 tile"),
        (dict(low=[0], high=[1], tiles=[2, 3]), "an int or 1 of them"),
        (dict(low=[0], high=[1], tiles=2.5), "an int or 1 of them"),
        (dict(low=[0], high=[1], tilings=0), "tilings must be at least 1, got 0"),
        (dict(low=[0] * 10, high=[1] * 10, tiles=8), "use fewer tiles"),
        (dict(low=[0], high=[1], tilings=2, offsets=[[0.0]]), r"\(2, 1\); got \(1, 1\)"),
        (dict(low=[0], high=[1], tilings=2, offsets=[[0.0], [1.0]]), "tiling 1, dimension 0 is 1"),
        (dict(low=[0], high=[1], tilings=1, offsets=[[np.nan]]), "is nan, not in"),
    ],
)
def test_tile_coder_refuses_arguments_that_make_no_grid(arguments, message):
    low, high = arguments.pop("low"), arguments.pop("high")
    with pytest.raises(ValueError, match=message):
        TileCoder(low, high, **arguments)


@pytest.mark.parametrize("states", [[0.5, 0.5], [[0.5]], 0.5, [[[0.5, 0.5]]]])
def test_tile_coder_wants_a_batch(states):
    with pytest.raises(ValueError, match=r"a batch \[m, 2\]"):
        TileCoder([0, 0], [1, 1])(states)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_one_hot_gives_the_state_as_its_index(dtype):
    indices = OneHot(200)(np.array([3, 199, 0], dtype))
    assert indices.dtype == np.int32
    assert indices.tolist() == [[3], [199], [0]]
    assert OneHot(3)([]).shape == (0, 1)


@pytest.mark.parametrize("states", [[0, 1, 5, 2], [0, 1, -1]])
def test_one_hot_names_the_state_out_of_range(states):
    with pytest.raises(ValueError, match=rf"state {states[2]} in row 2 is outside 0 .. 4"):
        OneHot(5)(states)


@pytest.mark.parametrize("states", [3, [[1]], [0.0, 1.0], [True]])
def test_one_hot_wants_a_batch_of_integers(states):
    with pytest.raises(ValueError, match=r"batch of integers \[m\]"):
        OneHot(5)(states)


def test_dense_flattens_states_or_applies_the_function():
    states = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    assert Dense(6)(states).tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert Dense(6)(states).dtype == np.float64
    assert Dense(2, lambda s: s[:, 0] ** 2)(states).tolist() == [[0, 1], [36, 49]]
    assert Dense(1)([1, 2]).tolist() == [[1.0], [2.0]]


def test_dense_refuses_wrong_shapes_and_values_that_are_not_finite():
    with pytest.raises(ValueError, match=r"flattened, gave shape \(2, 3\) .* needs \(2, 4\)"):
        Dense(4)(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"feature function gave shape \(2,\)"):
        Dense(1, lambda s: s[:, 0])(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="feature 0 of row 1 is inf"):
        Dense(2)([[0.0, 1.0], [np.inf, 0.0]])
    with pytest.raises(ValueError, match="a batch"):
        Dense(1)(3.0)


@pytest.mark.parametrize("kind", [OneHot, Dense])
@pytest.mark.parametrize("size", [0, -1, 2**31])
def test_sizes_must_be_positive_and_fit_an_index(kind, size):
    with pytest.raises(ValueError, match=f"got {size}"):
        kind(size)


def test_one_hot_takes_a_space_of_gymnasium_with_its_first_state():
    features = OneHot(Discrete(4, start=3))  # pyright: ignore[reportArgumentType]
    assert (features.size, repr(features)) == (4, "OneHot(size=4, start=3)")
    np.testing.assert_array_equal(features([3, 6]), [[0], [3]])
    with pytest.raises(ValueError, match=r"state 2 in row 1 is outside 3 \.\. 6"):
        features([3, 2])
    assert OneHot(Discrete(16)) == OneHot(16)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"numbered, .* and this is Box.*use TileCoder or Dense"):
        OneHot(Box(-1.0, 1.0, (2,)))  # pyright: ignore[reportArgumentType]


def test_a_table_lists_the_features_that_are_one():
    features = ActiveTable(np.array([[0, 4], [1, 2], [4, 3]]), 5)
    assert features([2, 0]).tolist() == [[4, 3], [0, 4]]
    assert features([2, 0]).dtype == np.int32
    assert features([]).shape == (0, 2)
    with pytest.raises(ValueError, match=r"state -1 in row 1 is outside 0 .. 2; ActiveTable\(3 st"):
        features([0, -1])
    with pytest.raises(
        ValueError, match=r"the states of ActiveTable are a batch of integers \[m\]"
    ):
        features([[0.5]])
    with pytest.raises(ValueError, match=r"active features must be in \[0, 4\), got 0 to 4"):
        ActiveTable(np.array([[0, 4]]), 4)
