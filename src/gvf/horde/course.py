"""The course of events: which row follows which in a stream, and how long its episode may still be.

A row follows the one before it in its stream if that one did not end its episode, and if its state
is the next state of that one. Any other row begins anew. Streams are told apart by the column
``stream``.

An episode that reaches the time limit is truncated. The limit is that of the longest truncated
episode so far, unless another episode was longer: then truncation is no time limit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gvf.common.arrays import Arrays, Bools, Floats
from gvf.horde.layout import Ints
from gvf.links import comparable, numbered
from gvf.transition import Transitions

_TRUNCATED, _LONGEST = range(2)


class Course(NamedTuple):
    """The course of events of m rows.

    Attributes:
        stream: a number of the stream of each row, int64[m].
        begins: True for rows that follow no other, bool[m].
        room: the number of rows that may follow in the episode, float64[m]: 0 after its last row,
            and infinite if no time limit is known.
        limit: the time limit, float64[m]; infinite if none is known.
    """

    stream: Ints
    begins: Bools
    room: Floats
    limit: Floats

    def part(self, rows: slice) -> Course:
        """Return the course of some of the rows."""
        return Course(self.stream[rows], self.begins[rows], self.room[rows], self.limit[rows])


class Courses:
    """The memory of all streams: the age of each episode, and the latest next state."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}  # of the numbers of streams
        self._ages = np.zeros(0, np.int64)  # the rows of the episode so far; 0 if it is over
        self._after = np.zeros((0, 0), np.uint8)
        self._lengths = np.zeros(2, np.int64)  # of the longest episodes: truncated, and any

    def follow(self, transitions: Transitions) -> tuple[Course, Courses]:
        """Return the course of rows in order, and what is known after them; nothing changes."""
        m, columns = len(transitions), transitions.columns
        before, after = comparable(columns.get("state"), columns.get("next_state"), m)
        stream, place = np.zeros((2, m), np.int64)
        new, names = Courses(), [0]
        new._places, new._lengths = dict(self._places), self._lengths.copy()
        if "stream" in columns:
            stream = numbered(columns["stream"])
            some, place = np.unique(stream, return_inverse=True)
            names = some.tolist()
        of_name = [new._places.setdefault(name, len(new._places)) for name in names]
        place = np.array(of_name, np.int64)[place]
        new._ages = np.zeros(len(new._places), np.int64)
        new._after = np.zeros((len(new._places), after.shape[1]), np.uint8)
        if self._after.shape[1] == after.shape[1]:  # else nothing is known of these states
            new._ages[: len(self._ages)] = self._ages
            new._after[: len(self._after)] = self._after
        none = np.zeros(m, np.bool_)
        ends = [np.asarray(columns.get(n, none), np.bool_) for n in ("terminated", "truncated")]
        course = Course(stream, np.empty(m, np.bool_), np.empty(m), np.empty(m))
        streams = new._ages, new._after, new._lengths
        _follow((place, before, after, *ends), streams, (course.begins, course.room, course.limit))
        return course, new

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return copies of the arrays that change."""
        return {
            "streams": np.array(list(self._places), np.int64),
            "ages": self._ages.copy(),
            "after": self._after.copy(),
            "lengths": self._lengths.copy(),
        }

    @classmethod
    def restored(cls, arrays: Arrays) -> Courses:
        """Make it from the arrays that :meth:`state_dict` returned; a worker on Ray has none."""
        new = cls()
        if arrays:
            new._places = {name: i for i, name in enumerate(arrays["streams"].tolist())}
            new._ages, new._after = np.array(arrays["ages"]), np.array(arrays["after"])
            new._lengths = np.array(arrays["lengths"])
        return new


@njit(cache=True, nogil=True)
def _follow(rows, streams, course):
    """Write the course of rows, and change what is known of their streams."""
    place, before, after, terminated, truncated = rows
    ages, kept, lengths = streams
    begins, room, limit = course
    for i in range(place.size):
        s = place[i]
        for j in range(before.shape[1]):
            if kept[s, j] != before[i, j]:
                ages[s] = 0
                break
        begins[i] = ages[s] == 0
        ages[s] += 1
        lengths[_LONGEST] = max(lengths[_LONGEST], ages[s])
        if truncated[i]:
            lengths[_TRUNCATED] = max(lengths[_TRUNCATED], ages[s])
        limited = lengths[_TRUNCATED] > 0 and lengths[_LONGEST] == lengths[_TRUNCATED]
        limit[i] = lengths[_TRUNCATED] if limited else np.inf
        ended = terminated[i] or truncated[i]
        room[i] = 0.0 if ended else limit[i] - ages[s]
        if ended:
            ages[s] = 0
        kept[s] = after[i]
