"""Feature maps: from a batch of states to the features x(s) of a linear value v(s) = w . x(s).

A map has a ``size``, the number of weights. Called with states [m, ...] it returns either the
indices of the features that are 1, int32[m, a], if all others are 0 (:class:`OneHot`,
:class:`ActiveTable`, :class:`TileCoder`), or all features, float64[m, size] (:class:`Dense`). Tile
coding lays a grids over the state space, each displaced by a fraction of a tile. In each grid the
tile that contains the state is active, so the resolution is a times that of one grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import ArrayLike, NDArray

from gvf.common.checks import as_array, as_numbers, brief, whole
from gvf.common.errors import DataCode, DataError, place
from gvf.common.fields import as_states
from gvf.common.gymnasium import gym, is_space

__all__ = ["Dense", "FeatureMap", "OneHot", "TileCoder"]

_LARGEST = np.iinfo(np.int32).max


class FeatureMap(Protocol):
    """The interface of a feature map: ``size``, and a call with a batch of states.

    If it also has a method ``outside`` that counts the states outside its bounds, as
    :class:`TileCoder` has, reports tell of them.

    Example:
        >>> from gvf.features import FeatureMap, OneHot
        >>> def active(features: FeatureMap, states) -> int:
        ...     return features(states).shape[1]
        >>> active(OneHot(5), [0, 4])
        1
    """

    @property
    def size(self) -> int:
        """The number of features, which is the number of weights."""
        ...

    def __call__(self, states: Any, /) -> NDArray[Any]:
        """Return active indices int32[m, a], or dense features float64[m, size]."""
        ...


@dataclass(frozen=True, repr=False)
class OneHot:
    """One feature per state, for states that are integers 0 .. size-1 (the tabular case).

    Args:
        size: the number of states, or a ``Discrete`` space of Gymnasium.
        start: the first state, 0 by default.

    Example:
        >>> import gvf
        >>> gvf.features.OneHot(5)([3, 0])
        array([[3],
               [0]], dtype=int32)
        >>> from gymnasium.spaces import Discrete
        >>> gvf.features.OneHot(Discrete(5, start=1))
        OneHot(size=5, start=1)
    """

    size: int
    start: int = 0

    def __post_init__(self) -> None:
        space: Any = self.size
        if is_space(space):
            if not isinstance(space, gym.spaces.Discrete):
                raise TypeError(
                    f"OneHot is for states that are numbered, of a Discrete space, and this is "
                    f"{brief(space)}; use TileCoder or Dense"
                )
            object.__setattr__(self, "size", int(space.n))
            object.__setattr__(self, "start", int(space.start))
        _check_size(self.size)

    def constructor_arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor, for :mod:`gvf.common.describe`."""
        return {"size": self.size} | ({"start": self.start} if self.start else {})

    def __repr__(self) -> str:
        return f"OneHot(size={self.size}{f', start={self.start}' if self.start else ''})"

    def __call__(self, states: ArrayLike) -> NDArray[np.int32]:
        """Map states int[m] to indices int32[m, 1]."""
        values = _numbers(states, self.start, self.size, self)
        return (values - self.start if self.start else values).astype(np.int32)[:, None]


@dataclass(frozen=True, eq=False, repr=False)
class ActiveTable:
    """Binary features that a table lists, for states that are integers 0 .. S-1.

    Args:
        rows: the indices of the features that are 1 in each state, int[S, a].
        size: the number of features.

    Example:
        >>> from gvf.features import ActiveTable
        >>> import numpy as np
        >>> features = ActiveTable(np.array([[0, 1], [1, 2]]), size=3)
        >>> features
        ActiveTable(2 states, 2 of 3 features)
        >>> features([1, 0])
        array([[1, 2],
               [0, 1]], dtype=int32)
    """

    rows: NDArray[Any]
    size: int

    def __post_init__(self) -> None:
        _check_size(self.size)
        rows = np.asarray(features_of(np.asarray, self.size, self.rows), np.int32)
        object.__setattr__(self, "rows", _frozen(rows))

    def __call__(self, states: ArrayLike) -> NDArray[np.int32]:
        """Map states int[m] to indices int32[m, a]."""
        return self.rows[_numbers(states, 0, len(self.rows), self).astype(np.intp)]

    def __repr__(self) -> str:
        states, active = self.rows.shape
        return f"ActiveTable({states} states, {active} of {self.size} features)"


@dataclass(frozen=True)
class Dense:
    """Real-valued features: the flattened state, or a function of it.

    The features may share memory with the states.

    Args:
        size: the number of features.
        function: a function from a batch of states [m, ...] to features [m, size]; by default each
            state is flattened. There is no constant feature unless the function adds one.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> states = np.array([[1.0, 2.0], [3.0, 4.0]])
        >>> gvf.features.Dense(2)(states)
        array([[1., 2.],
               [3., 4.]])
        >>> gvf.features.Dense(3, lambda s: np.column_stack([np.ones(len(s)), s]))(states)
        array([[1., 1., 2.],
               [1., 3., 4.]])
    """

    size: int
    function: Callable[[Any], ArrayLike] | None = None

    def __post_init__(self) -> None:
        _check_size(self.size)
        if self.function is not None and not callable(self.function):
            raise TypeError(f"function must be a function of states, not {brief(self.function)}")

    def __call__(self, states: Any) -> NDArray[np.float64]:
        """Map states [m, ...] to features float64[m, size]."""
        values = as_array(as_states(states), "the states")
        if values.ndim == 0:
            raise ValueError(f"states are a batch [m, ...], got the single number {values}")
        if self.function is None:
            _check_no_fields(values, "Dense without a function")
            source = "states, flattened,"
            output = values.reshape(len(values), math.prod(values.shape[1:]))  # -1 fails for none
        else:
            source = "the feature function"
            output = self.function(values)
        output = as_numbers(output, source)
        if output.shape != (len(values), self.size):
            raise ValueError(
                f"{source} gave shape {output.shape} for {len(values)} states; "
                f"Dense(size={self.size}) needs {(len(values), self.size)}"
            )
        features = np.asarray(output, np.float64)
        if not np.isfinite(features).all():
            row, column = np.argwhere(~np.isfinite(features))[0]
            raise _not_finite(row, column, features[row, column])
        return features


class TileCoder:
    """Tile coding of real states [m, d]: one active tile in each of ``tilings`` displaced grids.

    With z_j = (x_j - low_j) / (high_j - low_j) * tiles_j, the state lies in tile
    ``floor(z_j + offset[t, j])`` of tiling t along dimension j. Displaced grids need one more tile
    per dimension, so each tiling has prod_j (tiles_j + 1) tiles, numbered with the last dimension
    fastest, and a block of as many features. A call with states [m, d] returns indices
    int32[m, tilings], with column t in the block of tiling t. States outside the bounds are clipped
    to them, and reports of learners tell how many were; NaN is an error.

    Args:
        low: the lower bounds, [d].
        high: the upper bounds, [d].
        tiles: the number of tiles between the bounds: one number, or one for each dimension.
        tilings: the number of grids; each activates one feature.
        offsets: the displacement of each tiling in fractions of a tile, [tilings, d], each in
            [0, 1). By default tiling t is displaced by ((1, 3, 5, ...) * t mod tilings) / tilings,
            which spreads the grids evenly without favouring the diagonal.

    Example:
        >>> import gvf
        >>> coder = gvf.features.TileCoder([0.0, -1.0], [1.0, 1.0], tiles=2, tilings=4)
        >>> coder
        TileCoder(4 tilings of 2 x 2 tiles over [0, 1] x [-1, 1], size 36)
        >>> coder([[0.0, -1.0], [0.4, 0.9], [1.0, 1.0]])
        array([[ 0,  9, 18, 27],
               [ 1, 14, 23, 32],
               [ 8, 17, 26, 35]], dtype=int32)
    """

    def __init__(
        self,
        low: ArrayLike,
        high: ArrayLike,
        *,
        tiles: int | Sequence[int] = 8,
        tilings: int = 64,
        offsets: ArrayLike | None = None,
    ) -> None:
        self.low, self.high = _bounds(low, high)
        dimensions = len(self.low)
        counts = as_array(tiles, "tiles")
        if counts.shape not in [(), (dimensions,)] or counts.dtype.kind not in "iu":
            raise ValueError(
                f"tiles is an int or {dimensions} of them (one a dimension): {brief(tiles)}"
            )
        if (counts < 1).any():
            raise ValueError(f"every dimension needs at least 1 tile, got {tiles}")
        self.tiles = _frozen(np.broadcast_to(counts, dimensions).astype(np.int64))
        self.tilings = whole("tilings", tilings, 1)
        self.size = self.tilings * math.prod(int(n) + 1 for n in self.tiles)
        if self.size > _LARGEST:
            raise ValueError(
                f"{self.tilings} tilings of {_times(self.tiles)} tiles make {self.size} features, "
                f"more than {_LARGEST}; use fewer tiles, tilings or dimensions"
            )
        self.offsets = _offsets(offsets, self.tilings, dimensions)
        # The kernel reads the offsets of all tilings for one dimension at a time.
        self._columns = np.ascontiguousarray(self.offsets.T)
        self._width = self.high - self.low

    def constructor_arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor, for :mod:`gvf.common.describe`."""
        return {
            "low": self.low,
            "high": self.high,
            "tiles": self.tiles,
            "tilings": self.tilings,
            "offsets": self.offsets,
        }

    def __call__(self, states: ArrayLike) -> NDArray[np.int32]:
        """Map states [m, d] to active tiles int32[m, tilings]."""
        numbers: Any = states
        if type(states) is not np.ndarray or states.dtype.kind not in "fiub":
            numbers = as_numbers(as_states(states), "the states")
        _check_no_fields(numbers, "TileCoder")
        values = np.ascontiguousarray(numbers, np.float64)
        if numbers.ndim != 2 or values.shape[1] != len(self.low):
            raise ValueError(
                f"states must be a batch [m, {len(self.low)}], got shape {numbers.shape}"
            )
        out = np.empty((len(values), self.tilings), np.int32)
        bad = tile_code(values, self.low, self._width, self.tiles, self._columns, out)
        if bad >= 0:
            number = int(np.isnan(values[bad]).argmax())
            what = f"number {number} of the state"
            raise DataError(
                what, place(bad, " in row "), " is nan", code=DataCode.NOT_FINITE, column="state"
            )
        return out

    def outside(self, states: ArrayLike) -> int:
        """Count the states [m, d] outside the bounds, which are coded as the nearest inside.

        Example:
            >>> import gvf
            >>> gvf.features.TileCoder([0.0], [1.0]).outside([[0.5], [1.5], [-2.0]])
            2
        """
        if type(states) is not np.ndarray or states.dtype != np.float64:
            states = np.asarray(states, np.float64)
        return _count_outside(states, self.low, self.high)

    def __repr__(self) -> str:
        area = " x ".join(f"[{a:g}, {b:g}]" for a, b in zip(self.low, self.high, strict=True))
        return (
            f"TileCoder({self.tilings} tilings of {_times(self.tiles)} tiles over {area}, "
            f"size {self.size})"
        )


@njit(cache=True, nogil=True)
def tile_code_one(state, low, width, tiles, offsets, out):  # pragma: no cover (compiled)
    """Write the active tiles of one state [d] to out int32[tilings]; offsets are [d, tilings].

    Nothing is allocated or checked. NaN counts as the lower bound, so that out stays in range.
    """
    for t in range(out.size):
        out[t] = t
    for j in range(low.size):
        n = tiles[j]
        # Dividing by the width, not multiplying by its inverse, makes z exact at both bounds.
        z = (state[j] - low[j]) / width[j] * n
        z = min(z, float(n)) if z > 0.0 else 0.0
        for t in range(out.size):
            # z + offset may round up to n + 1 for an offset just below 1.
            cell = min(np.int32(z + offsets[j, t]), np.int32(n))
            out[t] = out[t] * np.int32(n + 1) + cell


@njit(cache=True, nogil=True)
def tile_code(states, low, width, tiles, offsets, out):  # pragma: no cover (compiled)
    """Tile-code states [m, d] into out int32[m, tilings]; return the first NaN row, or -1."""
    bad = -1
    for i in range(states.shape[0]):
        tile_code_one(states[i], low, width, tiles, offsets, out[i])
        for j in range(low.size):
            if bad < 0 and np.isnan(states[i, j]):
                bad = i
    return bad


def outside_bounds(features: object, states: Any) -> int | None:
    """Return the number of states outside the bounds of features; None if they have no bounds.

    Example:
        >>> import gvf
        >>> from gvf.features import outside_bounds
        >>> outside_bounds(gvf.features.TileCoder([0.0], [1.0]), [[0.5], [1.5]])
        1
        >>> outside_bounds(gvf.features.OneHot(2), [1])
    """
    count = getattr(features, "outside", None)
    return None if count is None else count(states)


@njit(cache=True, nogil=True)
def _count_outside(states, low, high):  # pragma: no cover (compiled)
    """Return the number of states [m, d] of which a number is outside its bounds."""
    count = 0
    for i in range(states.shape[0]):
        for j in range(low.size):
            if states[i, j] < low[j] or states[i, j] > high[j]:
                count += 1
                break
    return count


def features_of(features: Callable[[Any], Any], size: int, states: Any) -> NDArray[Any]:
    """Return checked features in the form that kernels take; kernels do not check indices."""
    x = np.asarray(features(states))
    alike = x.shape[:1] == np.shape(states)[:1]
    if x.dtype == np.int32 and x.ndim == 2 and alike and _are_indices(x, size):
        return np.ascontiguousarray(x)
    active = x.dtype.kind in "iu"
    if x.shape[:1] != np.shape(states)[:1] or x.ndim != 2 or not (active or x.shape[1] == size):
        raise ValueError(
            f"features must be indices int[m, active] or values float[m, {size}], "
            f"got {x.dtype}{list(x.shape)} for {len(states)} states"
        )
    if active and x.size and not (x.min() >= 0 and x.max() < size):
        raise ValueError(f"active features must be in [0, {size}), got {x.min()} to {x.max()}")
    if not active and np.isnan(x).any():
        row, column = np.argwhere(np.isnan(x))[0]
        raise _not_finite(row, column, x[row, column])
    return np.ascontiguousarray(x, np.int32 if active else np.float64)


@njit(cache=True, nogil=True)
def _are_indices(x, size):  # pragma: no cover (compiled)
    """Return True if all numbers [m, a] are in [0, size)."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if not 0 <= x[i, j] < size:
                return False
    return True


def feature_index(x, slot, j):
    """Return the index of the j-th feature listed for a slot."""
    raise NotImplementedError("for compiled functions only")


def feature_level(x, slot, j):
    """Return the value of the j-th feature listed for a slot."""
    raise NotImplementedError("for compiled functions only")


@overload(feature_index, jit_options={"forceinline": True})
def _feature_index(x, slot, j):
    if isinstance(x.dtype, types.Integer):
        return lambda x, slot, j: np.int64(x[slot, j])
    return lambda x, slot, j: j


@overload(feature_level, jit_options={"forceinline": True})
def _feature_level(x, slot, j):
    if isinstance(x.dtype, types.Integer):
        return lambda x, slot, j: 1.0
    return lambda x, slot, j: x[slot, j]


@njit(cache=True, nogil=True, forceinline=True)
def weight_row(x, slot, j, first):
    """Return the row of the j-th feature listed, in a block whose first row is ``first``.

    The row is unsigned, because Numba checks signed indices for negative values on every access.
    """
    return np.uint64(first + feature_index(x, slot, j))


def _numbers(states: ArrayLike, first: int, count: int, features: FeatureMap) -> NDArray[Any]:
    """Return states as an array of integers [m] from ``first`` on, or raise ValueError."""
    values = as_array(states, "the states")
    _check_no_fields(values, type(features).__name__)
    if values.ndim != 1 or (values.dtype.kind not in "iu" and values.size):
        raise ValueError(
            f"the states of {type(features).__name__} are a batch of integers [m], got "
            f"{values.dtype}{list(values.shape)}; for other states use TileCoder or Dense"
        )
    last = first + count - 1
    if values.size and (values.min() < first or values.max() > last):
        row = int(np.argmax((values < first) | (values > last)))
        raise DataError(
            f"state {values[row]}",
            place(row, " in row "),
            f" is outside {first} .. {last}; {features} needs more states, or the states a shift",
            column="state",
            value=values[row],
        )
    return values


def _not_finite(row: int, column: int, value: Any) -> DataError:
    """Return the error of a feature that is NaN or infinite."""
    return DataError(
        f"feature {column}",
        place(row, " of row "),
        f" is {value}",
        code=DataCode.NOT_FINITE,
        column="state",
        value=value,
    )


def _check_no_fields(states: NDArray[Any], what: str) -> None:
    names = states.dtype.names
    if names is not None:
        raise ValueError(
            f"{what} takes arrays, and these states have the fields {', '.join(names)}; choose "
            f'among them in a function: gvf.features.Dense(size, lambda s: s["{names[0]}"])'
        )


def _check_size(size: int) -> None:
    if whole("size", size, 1) > _LARGEST:
        raise ValueError(f"size must be in 1 .. {_LARGEST}, got {size}")


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _times(tiles: NDArray[np.int64]) -> str:
    return " x ".join(str(n) for n in tiles)


def _bounds(low: ArrayLike, high: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    lows, highs = (np.array(as_array(b, "a bound"), np.float64) for b in (low, high))
    if lows.ndim != 1 or lows.shape != highs.shape or not lows.size:
        raise ValueError(
            f"low and high must be one number a dimension, [d]; got shapes {lows.shape} and "
            f"{highs.shape}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        bad = ~np.isfinite(highs - lows) | (lows >= highs)
    if bad.any():
        j = int(np.argmax(bad))
        raise ValueError(
            f"dimension {j} has bounds [{lows[j]:g}, {highs[j]:g}]; they must be finite, "
            "low below high (choose bounds that the state rarely leaves)"
        )
    return _frozen(lows), _frozen(highs)


def _offsets(offsets: ArrayLike | None, tilings: int, dimensions: int) -> NDArray[np.float64]:
    if offsets is None:
        displacement = np.arange(tilings)[:, None] * (2 * np.arange(dimensions) + 1)
        return _frozen(displacement % tilings / tilings)
    numbers = np.array(offsets, np.float64)
    if numbers.shape != (tilings, dimensions):
        raise ValueError(
            f"offsets must have one row a tiling and one column a dimension, "
            f"{(tilings, dimensions)}; got {numbers.shape}"
        )
    bad = ~((numbers >= 0) & (numbers < 1))
    if bad.any():
        t, j = np.argwhere(bad)[0]
        raise ValueError(f"offset of tiling {t}, dimension {j} is {numbers[t, j]}, not in [0, 1)")
    return _frozen(numbers)


def __dir__() -> list[str]:
    """List the public names, imported tools left out."""
    return __all__
