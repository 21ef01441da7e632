"""Single decisions, as of a recommender or a trial: every row is an episode of one step that ends.

Nothing follows a decision, so such a log needs no next states or ends, and a continuation has no
effect. Columns of episodes and times are kept for those who join tables. Episodes must differ from
row to row, and the order of times means nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from gvf.common.arrays import Array, Arrays
from gvf.common.errors import OptionError, option
from gvf.log.column_meanings import Reading
from gvf.log.episode_ends import OWN, Bounds

Steps = Literal["sequence", "single"]


class Decisions:
    """One pass over a log of single decisions; in its place a sequence has a ``Scan``.

    Args:
        reading: the meanings of the columns.
        place: the place of a row, for messages.
    """

    def __init__(self, reading: Reading, place: Callable[[int], str]) -> None:
        self._reading, self._place = reading, place
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
                f"{self._place(row)}: episode {ids[row]!s} has a row before this one, and with ",
                option("steps", "single"),
                " every row is an episode of its own: leave that out if the rows of an episode "
                "follow each other, or read with ",
                option("episode", None),
                f" if column {name!r} is no episode",
            )
