"""The weights of all questions, changed by drawn rows: their interface, and what two forms share.

:mod:`gvf.horde.dense_weights` has many steps as a few matrix products,
:mod:`gvf.horde.active_weights` has compiled loops over active features, and
:mod:`gvf.horde.stepwise_weights` takes any update. :mod:`gvf.horde.cuda_weights` is for a GPU, and
:mod:`gvf.neural.heads` has the heads of a network. :mod:`gvf.horde.choose_weights` chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Bools, Floats
from gvf.horde.group_draws import DrawnRows, GroupDraws
from gvf.horde.layout import Ints


class Weights(Protocol):
    """The interface of weights. A place is a position in the layout's order."""

    def apply(self, columns: Arrays, drawn: DrawnRows, step_size: Floats | None) -> None:
        """Apply U updates at all places.

        Args:
            columns: the columns of the rows: x, x_next, cumulant [n, C], continuation [n, 1 + Z].
            drawn: the drawn rows and their weights.
            step_size: the step size of each update and group, [U, groups]; None if it is constant.
        """
        ...

    def predict(self, x: Array, /) -> Floats:
        """Return the values of features [m, ...] at all places, [m, G]."""
        ...

    def take(self, places: Any) -> dict[str, NDArray[Any]]:
        """Return copies of the weights, and whatever else changes, at some places [g, ...]."""
        ...

    def put(self, places: Any, arrays: Arrays) -> None:
        """Replace what belongs to some places by what :meth:`take` returned."""
        ...

    def learn(
        self,
        columns: Arrays,
        drawn: DrawnRows,
        step_size: Floats | None,
        paused: Ints,
        limits: Callable[[], Floats],
    ) -> Bools | None:
        """Apply U updates, which change nothing at the places that pause.

        Args:
            columns: as in :meth:`apply`.
            drawn: likewise.
            step_size: likewise.
            paused: the places that pause.
            limits: a function that returns the largest possible return at each place, [G].

        Returns:
            The places that have diverged, bool[G]; None if the weights do not watch for that.
        """
        before = self.take(paused) if len(paused) else None
        self.apply(columns, drawn, step_size)
        if before is not None:
            self.put(paused, before)

    def largest(self, x: Array) -> Floats:
        """Return the largest absolute value of features [m, ...] at each place, [G]."""
        return np.abs(self.predict(x)).max(axis=0)

    def mirror_masses(self, draws: GroupDraws, window_rows: int) -> bool:
        """Copy the masses of all rows, if these weights search them; return True if they do.

        Args:
            draws: the draws, before rows are inserted.
            window_rows: the number of rows in the columns.
        """
        return False

    def see(self, x: Array) -> None:
        """Look at the first states, if the form of the weights depends on them."""
        return


class WeightBlocks(Weights):
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
