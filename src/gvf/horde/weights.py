"""The weights of all questions: a matrix [size, Q] for each group, one question a column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays
from gvf.horde.layout import Ints, Layout


class Weights:
    """One array of weights, with a view [size, Q] for each group.

    Args:
        layout: the layout of the questions.
        size: the number of features.
        dtype: the type of the weights.
    """

    def __init__(self, layout: Layout, size: int, dtype: np.dtype[Any]) -> None:
        self._layout, self._size = layout, size
        self.flat = np.zeros(len(layout) * size, dtype)
        self.starts = layout.starts * size
        self.matrices = [
            self.flat[start:end].reshape(size, -1)
            for start, end in zip(self.starts[:-1], self.starts[1:], strict=True)
        ]

    def take(self, places: Any) -> dict[str, NDArray[Any]]:
        """Return copies of the weights at some places, [g, size]."""
        out = np.empty((len(places), self._size), self.flat.dtype)
        for matrix, of, columns in self._found(np.asarray(places)):
            out[of] = matrix[:, columns].T
        return {"weights": out}

    def put(self, places: Any, arrays: Arrays) -> None:
        """Replace the weights at some places by those that :meth:`take` returned."""
        for matrix, of, columns in self._found(np.asarray(places)):
            matrix[:, columns] = arrays["weights"][of].T

    def _found(self, places: Ints) -> list[tuple[Array, Ints, Ints]]:
        """Return the matrices of some places, with positions among the places, and columns."""
        group = self._layout.group[places]
        positions = [(g, np.flatnonzero(group == g)) for g in np.unique(group)]
        return [(self.matrices[g], of, places[of] - self._layout.starts[g]) for g, of in positions]
