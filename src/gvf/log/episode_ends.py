"""The episodes of a log: their rows, and why they ended.

An episode ends where ``terminated`` or ``truncated`` says so, or where the episode's name changes.
One pass over these columns finds all episodes and checks the log: the rows of an episode must be
together and in order. What the log does not say, the caller says: ``ends="terminated"`` or
``ends="truncated"`` is the meaning of all ends that the log leaves open.

A row is missing where a next state is not the state of the following row of the episode, where a
count of steps jumps, and, in a log without next states, where regular times have a hole
(:class:`gvf.log.episode_bounds.Spacing`). ``gaps`` says whether this is an error or cuts the
episode, or is left as it is.

If the log has no next states, that of a row is the state of the following row. The last row of an
episode that was cut has no next state then, and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Bools
from gvf.common.errors import OptionError, Words, option
from gvf.common.fields import as_column
from gvf.links import breaks
from gvf.log.column_meanings import Reading
from gvf.log.episode_bounds import OWN, Bounds, Ends, Gaps, Spacing

_STEPS = re.compile(r"t|.*step.*|frame_index", re.IGNORECASE)
"""Names of columns that count steps, so that a jump means missing rows."""


class Scan:
    """One pass over the columns that tell where episodes end.

    Args:
        reading: the meanings of the columns.
        ends: the meaning of ends that the log leaves open.
        row_text: the place of a row, in words.
        gaps: what is done where rows are missing.

    Raises:
        ValueError: if the columns cannot tell where or why episodes end.
    """

    def __init__(
        self, reading: Reading, ends: Ends | None, row_text: Callable[[int], str], gaps: Gaps
    ) -> None:
        self._reading, self._ends, self._row_text, self._gaps = reading, ends, row_text, gaps
        self._by_name = "episode" in reading
        self._by_time = "time" in reading and not self._by_name
        self._has_ids = self._by_name or "stream" in reading
        time = reading.parts["time"].columns[0] if "time" in reading else ""
        self._time, self._counts = time, _STEPS.fullmatch(time) is not None
        self._marks = [m for m in ("terminated", "truncated", "done") if m in reading]
        # An end that is not a time limit's is the task's, whether 'done' has both or not.
        self._explained = {"done", "truncated"} <= {*self._marks} and "terminated" not in reading
        self._compares = "next_state" in reading and gaps != "keep"
        self._spacing = Spacing() if time else None
        meanings = ["episode", "stream", "time", *self._marks]
        self.meanings = [*meanings, *(("state", "next_state") if self._compares else ())]
        """The meanings of the columns to scan."""
        self._check_ends()
        self._counted = False
        self._before: Arrays | None = None
        self._row = self._gap_count = 0
        self._start_time: Any = None
        self._lasts: list[NDArray[np.int64]] = []
        self._terminated: list[Bools] = []
        self._marked: list[Bools] = []
        self._ids: list[Array] = []
        self._own: list[Array] = []

    def _check_ends(self) -> None:
        """Raise an error if nothing says why, or where, episodes end."""
        if self._ends is not None or self._explained:
            return
        if "done" in self._reading:
            done = self._reading.parts["done"].columns[0]
            raise OptionError(
                f"column {done!r} does not say why an episode ended: if the task ended every "
                "episode, read with ",
                option("ends", "terminated"),
                "; if a time limit cut every episode, with ",
                option("ends", "truncated"),
                "; if both happen, give the columns terminated and truncated",
            )
        if "terminated" not in self._reading:
            columns = ", ".join(self._reading.columns(["episode", "time", "truncated"]))
            where = f"only {columns} tells where episodes end, not why"
            where = where if columns else "no column tells where episodes end"
            raise OptionError(
                f"{where}: if the task ended them, read with ",
                option("ends", "terminated"),
                "; if they were cut, or the log is one unbroken stream, with ",
                option("ends", "truncated"),
                "; if every row is a decision of its own, with ",
                option("steps", "single"),
                "; or name a column: ",
                option("terminated", ...),
            )

    def add(self, columns: Arrays) -> None:
        """Take in the next rows, with the columns of :attr:`meanings`, and of the log's ids."""
        if self._before is None:
            joined, first = columns, self._row
            self._start_time = columns["time"][0] if "time" in columns else None
            if self._has_ids:
                self._ids.append(self._name(columns)[:1])
            self._keep(columns, [0])
        else:
            joined = {
                name: np.concatenate([self._before[name], column])
                for name, column in columns.items()
            }
            first = self._row - 1
        count = len(next(iter(columns.values())))
        self._row += count
        self._before = {name: column[-1:] for name, column in columns.items()}
        before = {name: column[:-1] for name, column in joined.items()}
        after = {name: column[1:] for name, column in joined.items()}
        if len(next(iter(before.values()))):
            self._pairs(before, after, first)

    def _pairs(self, before: Arrays, after: Arrays, row: int) -> None:
        """Find the ends among pairs of rows that follow each other."""
        marked = self._marks_of(before)
        moved = np.zeros(len(marked), bool)
        if "stream" in before:
            moved = before["stream"] != after["stream"]
        over = marked | moved
        if self._by_name:
            over = self._name(before) != self._name(after)
            wrong = marked & ~over
            if wrong.any():
                at = int(wrong.argmax())
                name = next(m for m in self._marks if before[m][at])
                raise ValueError(
                    f"{self._row_text(row + at)}: {name} is set, but the episode "
                    f"{self._name(before)[at]!s} goes on in {self._row_text(row + at + 1)}"
                )
        if self._by_time:
            over = over | ((after["time"] < before["time"]) & (after["time"] == self._start_time))
        gap = np.zeros(len(over), bool)
        if self._time:
            gap |= self._gaps_in_time(before, after, ~over, row)
        if self._compares:
            gap |= self._gaps_in_states(before, after, ~over, row)
        at = np.flatnonzero(over | gap)
        self._note(before, at, row, stops=moved[at], gaps=gap[at])
        if self._has_ids:
            self._ids.append(self._name(after)[at])
        self._keep(after, at)

    def _keep(self, rows: Arrays, at: Any) -> None:
        """Keep the log's own names of the episodes that begin at some rows."""
        if OWN in rows:
            self._own.append(rows[OWN][at])

    def _marks_of(self, rows: Arrays) -> Bools:
        count = len(next(iter(rows.values())))
        marks = [rows[name] for name in self._marks]
        return np.array(np.any([np.zeros(count, bool), *marks], axis=0))

    def _name(self, rows: Arrays) -> Array:
        """Return the names of the rows' episodes; with streams, pairs of the two."""
        if "stream" not in rows:
            return rows["episode"]
        if "episode" not in rows:
            return rows["stream"]
        return as_column({name: rows[name] for name in ("stream", "episode")})

    def _gaps_in_time(self, before: Arrays, after: Arrays, inside: Bools, row: int) -> Bools:
        """Return True where a count jumps; raise an error if rows are not in order."""
        a, b = before["time"], after["time"]
        wrong = inside & ~(b > a)
        if wrong.any():
            at = int(wrong.argmax())
            disorder = (
                f"{self._row_text(row + at + 1)}: column {self._time!r} is {b[at]} after {a[at]}"
            )
            if not self._has_ids:
                raise OptionError(
                    f"{disorder}, and no column tells episodes apart: if rows of several patients, "
                    "machines or environments are mixed, name the column that tells them apart, ",
                    option("episode", ...),
                    ", and sort the table by it and by time; only if rows are in order, read with ",
                    option("time", None),
                )
            raise OptionError(
                f"{disorder} in the same episode: sort the table by episode and time first, or "
                "read with ",
                option("time", None),
                " if it is no time",
            )
        jumps = np.zeros(len(inside), bool)
        if self._gaps == "keep":
            return jumps
        if self._counts and a.dtype.kind in "iu":
            self._counted = True
            jumps = inside & (b - a != 1)
            if jumps.any():
                at = int(jumps.argmax())
                self._refuse_gap(
                    row + at + 1,
                    f"jumps from {a[at]} to {b[at]}, so rows are missing: read with ",
                    option("gaps", "cut"),
                    " to cut episodes there, or with ",
                    option("time", None),
                    " if it counts something else",
                )
        elif self._spacing is not None and a.dtype.kind in "iufM":
            at = np.flatnonzero(inside)
            self._spacing.add((b - a)[at], row + at)
        return jumps

    def _refuse_gap(self, row: int, *why: str | Words) -> None:
        """Raise an error where the time tells that rows are missing, if that is one."""
        if self._gaps == "error":
            raise OptionError(f"{self._row_text(row)}: column {self._time!r} ", *why)

    def _gaps_in_states(self, before: Arrays, after: Arrays, inside: Bools, row: int) -> Bools:
        """Return True where the next state is not the following state."""
        broken = breaks(before["next_state"], after["state"], inside)
        if broken.any() and self._gaps == "error":
            at = int(broken.argmax())
            episode = f" of episode {self._name(before)[at]!s}" if self._by_name else ""
            known = self._by_name or self._time or "stream" in before
            why = "" if known else ", not in order, or of several streams without a column"
            raise OptionError(
                f"{self._row_text(row + at)}{episode}: the next state is not the state of "
                f"{self._row_text(row + at + 1)}, and no column says that an episode ends: rows "
                f"are missing{why}: read with ",
                option("gaps", "cut"),
                " to cut episodes there, or with ",
                option("gaps", "keep"),
                " if none is missing",
            )
        return broken

    def _note(
        self, rows: Arrays, at: NDArray[np.intp], row: int, stops: Bools, gaps: Bools
    ) -> None:
        """Keep the ends at some rows, and why they ended; where a stream stops it is cut."""
        marked = self._marks_of(rows)[at]
        clear = marked | stops | gaps | (self._gaps == "cut")
        if not (clear.all() or self._ends or self._marks == ["terminated"]):
            raise OptionError(
                f"{self._row_text(row + int(at[~clear][0]))}: an episode ends here, and neither "
                "terminated nor truncated says so: are rows missing? Read with ",
                option("gaps", "cut"),
                " if they are, or with ",
                option("ends", "truncated"),
                " if it was cut",
            )
        nothing = np.zeros(len(at), bool)
        cut = rows["truncated"][at] if "truncated" in self._marks else nothing
        ended = rows["terminated"][at] if "terminated" in self._marks else nothing
        if self._explained:
            ended = rows["done"][at] & ~cut
        self._terminated.append(ended | (~cut & ~gaps & (self._ends == "terminated")))
        self._lasts.append(row + at)
        self._marked.append(marked)
        self._gap_count += int(gaps.sum())

    def finish(self, derived: bool) -> Bounds:
        """Return the episodes; with `derived` next states, those that were cut lose a row."""
        assert self._before is not None
        yes, no = np.array([True]), np.array([False])
        self._note(self._before, np.array([0]), self._row - 1, stops=yes, gaps=no)
        self._cut_at_holes()
        last, terminated = np.concatenate(self._lasts), np.concatenate(self._terminated)
        first = np.concatenate([[0], last[:-1] + 1])
        if self._has_ids:
            self._check_returns(np.concatenate(self._ids), first, np.concatenate(self._marked))
        last = last - (derived & ~terminated)
        whole = last >= first
        left_out = int((derived & ~terminated).sum())
        return Bounds(
            *(first[whole], last[whole], terminated[whole]),
            *(left_out, int((~whole).sum())),
            *(self._how(), self._why(), self._gap_count),
            np.concatenate(self._own)[whole] if self._own else None,
            "" if len(last) == self._row or self._gaps == "keep" else self._unseen(),
        )

    def _unseen(self) -> str:
        """Return why rows may be missing that nothing shows, in words; empty if none may."""
        is_regular = self._spacing is not None and self._spacing.is_regular
        if self._compares:
            holes = self._spacing.holes if self._spacing is not None else np.zeros(0, np.int64)
            count = len(np.setdiff1d(holes, np.concatenate(self._lasts)))
            places = f"{count:,} place{'s' if count > 1 else ''}"
            jumps = f"column {self._time!r} goes on by a multiple of its usual amount in {places}"
            return f"maybe some; {jumps}, though next states follow there" if count else ""
        if self._counted or is_regular:
            return ""
        times = "its times are irregular" if self._time else "has no times"
        return f"would not be seen, since the log has no next states, counts no steps, and {times}"

    def _cut_at_holes(self) -> None:
        """Cut episodes where regular times have a hole, or raise an error."""
        rows = np.zeros(0, np.int64) if self._spacing is None else self._spacing.holes
        if self._compares or not len(rows):
            return
        self._refuse_gap(
            int(rows[0]) + 1,
            "goes on by the same amount in nearly all rows, and by a multiple of it here: read "
            "with ",
            option("gaps", "cut"),
            " if rows are missing, or with ",
            option("gaps", "keep"),
            " if none is",
        )
        lasts = np.concatenate(self._lasts)
        order = np.argsort(np.concatenate([lasts, rows]))
        no = np.zeros(len(rows), bool)
        parts: list[tuple[list[Any], Array]] = [(self._terminated, no), (self._marked, no)]
        for names in filter(len, (self._ids, self._own)):
            parts.append((names, np.concatenate(names)[np.searchsorted(lasts, rows)]))
        for known, new in [*parts, (self._lasts, rows)]:
            known[:] = [np.concatenate([*known, new])[order]]
        self._gap_count += len(rows)

    def _check_returns(self, ids: Array, first: NDArray[np.int64], marked: Bools) -> None:
        """Raise an error if an episode returns after another one, unless it had ended."""
        order = np.argsort(ids, kind="stable")
        apart = np.diff(order) > 1  # otherwise a gap has cut an episode in two
        again = apart & (ids[order][1:] == ids[order][:-1]) & ~marked[order][:-1]
        if again.any():
            at = int(order[1:][again].min())
            raise ValueError(
                f"{self._row_text(int(first[at]))}: episode {ids[at]!s} goes on after another one: "
                "sort the table by stream, episode and time first, so that the rows of an episode "
                "are together"
            )

    def _how(self) -> str:
        names = self._reading.columns(["stream", "episode"])
        changes = [f"where {' or '.join(names)} changes"] if names else []
        if self._by_name:
            return changes[0]
        marks = self._reading.columns(["terminated", "truncated", "done"])
        ends = [f"by {' and '.join(marks)}"] if marks else []
        restarts = [f"where {self._time} begins again"] if self._by_time else []
        return ", ".join([*ends, *changes, *restarts]) or "the whole log is one"

    def _why(self) -> str:
        """Return the source of the ends' meaning, in words."""
        marks = " and ".join(self._reading.columns(["terminated", "truncated", "done"]))
        if self._explained:
            return f"{marks}; an end that is not truncated is the task's own"
        if self._ends is not None:
            reason = f'{self._ends}, as ends="{self._ends}" says'
            return (
                reason if not marks or "done" in self._reading else f"{marks}; others are {reason}"
            )
        return marks if "truncated" in self._reading else f"{marks}; others were cut"
