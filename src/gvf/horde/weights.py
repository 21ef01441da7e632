"""The weights of all questions: a matrix [size, lanes] for each block, one question a column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays
from gvf.horde.group_draws import GroupDraws
from gvf.horde.layout import Ints


class WithDrawnRows(ABC):
    """The part that all engines share whose rows are drawn for them, and not by them."""

    def follow(self, draws: GroupDraws, kept: int) -> bool:
        """Return False: the rows are drawn already."""
        return False

    @abstractmethod
    def predict(self, x: Array, /) -> Array:
        """Return the values of features [m, ...] at all places, [m, G]."""

    def largest(self, x: Array) -> Array:
        """Return the largest absolute value of features [m, ...] at each place, [G]."""
        return np.abs(self.predict(x)).max(axis=0)


class Weights(WithDrawnRows):
    """One array of weights, with a view [size, lanes] for each block of neighbouring places.

    Args:
        starts: the first place of each block, and the number of places, int64[blocks + 1].
        size: the number of features.
        dtype: the type of the weights.
    """

    def __init__(self, starts: Ints, size: int, dtype: np.dtype[Any]) -> None:
        self.starts, self.size = starts, size
        self.flat = np.zeros(int(starts[-1]) * size, dtype)
        self.matrices = [
            self.flat[first * size : last * size].reshape(size, -1)
            for first, last in pairwise(starts.tolist())
        ]

    def take(self, places: Any) -> dict[str, NDArray[Any]]:
        """Return copies of the weights at some places, [g, size]."""
        out = np.empty((len(places), self.size), self.flat.dtype)
        for matrix, of, columns in self._rows_of(np.asarray(places)):
            out[of] = matrix[:, columns].T
        return {"weights": out}

    def put(self, places: Any, arrays: Arrays) -> None:
        """Replace the weights at some places by those that :meth:`take` returned."""
        for matrix, of, columns in self._rows_of(np.asarray(places)):
            matrix[:, columns] = arrays["weights"][of].T

    def _rows_of(self, places: Ints) -> list[tuple[Array, Ints, Ints]]:
        """Return the matrices of some places, with positions among the places, and columns."""
        block = np.searchsorted(self.starts, places, side="right") - 1
        positions = [(b, np.flatnonzero(block == b)) for b in np.unique(block)]
        return [(self.matrices[b], of, places[of] - self.starts[b]) for b, of in positions]
