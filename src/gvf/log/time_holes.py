"""Holes in regular times.

Times are regular if they go on by the same amount in nearly all rows, and by a whole multiple of it
in the others: there rows are missing. Irregular times are normal, and tell of no missing row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array

MOST_HOLES = 0.1
"""The largest share of rows before a hole with which times are regular."""
_NEAR = 0.01
"""The largest distance of a time between two rows from a multiple of the unit, in units."""
_ENOUGH = 1_000_000
"""The number of rows from which on times are irregular for good."""


class Spacing:
    """The times between the rows of episodes, taken in a batch at a time.

    Example:
        >>> import numpy as np
        >>> from gvf.log.time_holes import Spacing
        >>> spacing = Spacing()
        >>> spacing.add(np.array([0.5] * 6 + [1.0] + [0.5] * 4), np.arange(11))
        >>> spacing.unit, spacing.holes
        (0.5, array([6]))
    """

    def __init__(self) -> None:
        self.unit: float | None = None
        """The usual time between two rows; for dates in the unit of their type."""
        self._rows, self._is_regular = 0, True
        self._holes: list[NDArray[np.int64]] = []

    def add(self, times: Array, rows: NDArray[np.int64]) -> None:
        """Take in the times from some rows to the next ones."""
        if not (self._is_regular and len(rows)):
            return
        numbers = times.astype(np.float64)
        self.unit = float(np.median(numbers)) if self.unit is None else self.unit
        multiples = numbers / self.unit
        nearest = np.round(multiples)
        self._rows += len(rows)
        self._holes.append(rows[nearest > 1])
        near = np.abs(multiples - nearest) <= _NEAR
        many = self._rows >= _ENOUGH and sum(map(len, self._holes)) > MOST_HOLES * self._rows
        if many or not near.all():
            self._is_regular, self._holes = False, []

    @property
    def is_regular(self) -> bool:
        """True if the times go on by the same amount in nearly all rows."""
        few = sum(map(len, self._holes)) <= MOST_HOLES * self._rows
        return self._is_regular and self._rows > 0 and few

    @property
    def holes(self) -> NDArray[np.int64]:
        """The rows after which rows are missing, ascending; none if times are irregular."""
        holes = np.concatenate([np.zeros(0, np.int64), *self._holes])
        return holes if self.is_regular else holes[:0]
