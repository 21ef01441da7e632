"""Episodes of a log as numbers of rows, and two plain ways to tell where they begin and end.

Of *single decisions*, as of a recommender or a trial, every row is an episode of one step that
ends (:class:`Decisions`). Nothing follows a decision, so such a log needs no next states or ends,
and a continuation has no effect. Columns of episodes and times are kept for those who join tables.
Episodes must differ from row to row, and the order of times means nothing.

*Times* are regular if they go on by the same amount in nearly all rows, and by a whole multiple of
it in the others: there rows are missing (:class:`Spacing`). Irregular times are normal, and tell of
no missing row. All else that tells where an episode ends is in :mod:`gvf.log.episode_ends`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Bools
from gvf.common.errors import OptionError, option
from gvf.log.column_meanings import Reading

Steps = Literal["sequence", "single"]
Ends = Literal["terminated", "truncated"]
Gaps = Literal["error", "cut", "keep"]
"""The ways to take missing rows: raise an error, cut the episode, or let it go on."""
OWN = "own ids"
"""The key under which a scan takes in the columns in which the log names its episodes."""

MOST_HOLES = 0.1
"""The largest share of rows before a hole with which times are regular."""
_NEAR = 0.01
"""The largest distance of a time between two rows from a multiple of the unit, in units."""
_ENOUGH = 1_000_000
"""The number of rows from which on times are irregular for good."""


@dataclass(frozen=True)
class Bounds:
    """The episodes of a log, E of them.

    Args:
        first: the first row of each episode, int64[E].
        last: the last row of each episode that is a transition, int64[E].
        terminated: True for episodes that the task ended, bool[E].
        left_out: the number of rows that are no transitions, since their next state is unknown.
        lost: the number of episodes that had no other row, and so are not among the E.
        how: the way in which episodes were found, in words.
        why: the source of the ends' meaning, in words.
        gaps: the number of places where rows are missing, and the episode was cut.
        ids: the log's own names of the episodes, a field for each column, [E]; None without any.
        unseen: why rows may be missing that nothing shows, in words; empty if they would be seen.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    terminated: Bools
    left_out: int
    lost: int
    how: str
    why: str
    gaps: int = 0
    ids: Array | None = None
    unseen: str = ""

    def __len__(self) -> int:
        return len(self.first)


class Decisions:
    """One pass over a log of single decisions; in its place a sequence has a ``Scan``.

    Args:
        reading: the meanings of the columns.
        row_text: the place of a row, in words.
    """

    def __init__(self, reading: Reading, row_text: Callable[[int], str]) -> None:
        self._reading, self._row_text = reading, row_text
        self.meanings = ["episode"] if "episode" in reading else []
        """The meanings of the columns to scan."""
        self._count = 0
        self._ids: list[Array] = []
        self._own: list[Array] = []

    def add(self, columns: Arrays) -> None:
        """Take in the next rows, with the columns of :attr:`meanings`, and of the log's ids."""
        self._count += len(next(iter(columns.values())))
        if self.meanings:
            self._ids.append(columns["episode"])
        if OWN in columns:
            self._own.append(columns[OWN])

    def finish(self, derived: bool) -> Bounds:
        """Return the episodes, one for each row.

        Raises:
            ValueError: if two rows have the same episode.
        """
        if self._ids:
            self._check(np.concatenate(self._ids))
        rows = np.arange(self._count)
        ends = np.ones(self._count, bool)
        ids = np.concatenate(self._own) if self._own else None
        words = ("every row is one", "every row ends its episode")
        return Bounds(rows, rows, ends, 0, 0, *words, ids=ids)

    def _check(self, ids: Array) -> None:
        order = np.argsort(ids, kind="stable")
        again = ids[order][1:] == ids[order][:-1]
        if again.any():
            row = int(order[1:][again].min())
            (name,) = self._reading.parts["episode"].columns[:1]
            raise OptionError(
                f"{self._row_text(row)}: episode {ids[row]!s} has a row before this one, and with ",
                option("steps", "single"),
                " every row is an episode of its own: leave that out if the rows of an episode "
                "follow each other, or read with ",
                option("episode", None),
                f" if column {name!r} is no episode",
            )


class Spacing:
    """The times between the rows of episodes, taken in a batch at a time.

    Example:
        >>> import numpy as np
        >>> from gvf.log.episode_bounds import Spacing
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
