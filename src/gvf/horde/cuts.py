"""The edges at which a horde cuts a batch. Nothing below cuts again.

    batch  ->  the rows that are checked before any of them is learned from: as memory allows
           ->  the rows that go to a shard together: at most :data:`TOGETHER`
           ->  pieces: the rows of one call

A *piece* ends where a signal begins or ceases to be missing, where the watch looks at errors, and
after so many steps as a call may have. It has no influence on the answers beyond rounding. How many
of the steps of a call the weights join into one product is another number, and theirs
(:mod:`gvf.horde.dense_weights`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from gvf.horde.layout import Ints
from gvf.horde.watch import EVERY

ROOM = 1 << 26
"""The number of bytes of ratios, signals and features that are computed before rows are learned."""
TOGETHER = 256
"""The largest number of rows that go to a shard together."""


class Piece(NamedTuple):
    """Rows that are inserted, and then learned from, in one call."""

    rows: slice
    """The rows."""
    missing: Ints
    """The signals that are missing in them."""
    returns: slice | None
    """The rows that the returns of earlier predictions go on with after this piece, if any do."""
    looks: bool
    """True if the watch looks at the newest rows after this piece."""


def checked_together(count: int, row_size: Callable[[], int]) -> Iterable[slice]:
    """Return the rows of a batch that are checked together.

    Args:
        count: the number of rows in the batch.
        row_size: a function that returns the number of bytes that a row needs until it is learned
            from.
    """
    most = TOGETHER if count <= TOGETHER else max(ROOM // row_size(), TOGETHER)
    return (slice(start, min(start + most, count)) for start in range(0, count, most))


def pieces(
    steps: int, count: int, steps_per_call: int, segments: Sequence[tuple[int, Ints]]
) -> Iterator[Piece]:
    """Yield the pieces of the next rows of a stream.

    Args:
        steps: the number of transitions observed before.
        count: the number of rows.
        steps_per_call: the largest number of rows in a piece.
        segments: the rows at which other signals are missing, 0 the first, with these signals.

    Example:
        >>> from gvf.horde.cuts import pieces
        >>> for piece in pieces(60, 12, 3, [(0, []), (8, [2])]):
        ...     print(piece.rows.start, piece.rows.stop, piece.missing, piece.looks)
        0 3 [] False
        3 4 [] True
        4 7 [] False
        7 8 [] False
        8 11 [2] False
        11 12 [2] False
    """
    begins = [row for row, _ in segments]
    for (_, missing), (start, end) in zip(segments, pairwise([*begins, count]), strict=True):
        while start < end:
            stop = min(end, start + EVERY - (steps + start) % EVERY)
            for first in range(start, stop, steps_per_call):
                last = min(first + steps_per_call, stop)
                goes_on = slice(start, stop) if last == stop else None
                looks = last == stop and (steps + stop) % EVERY == 0
                yield Piece(slice(first, last), missing, goes_on, looks)
            start = stop
