"""Links between rows: the order of rows of several streams, and rows that none follows.

The column ``stream`` tells the environments of a vector environment apart, and ``episode`` their
episodes. A row is the last of its episode if it is terminated or truncated, if the next row of its
stream is of another episode, or if there is no next row. Any other row is followed by the next one
of its stream, which begins in its next state. If it does not, rows are missing or not in order.

:func:`in_order` is for a whole batch, and :class:`Links` for rows that come batch by batch.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numba import boolean, float64, int64, types, uint8, void
from numpy.typing import NDArray

from gvf.common.arrays import Array, Bools, Floats
from gvf.common.compiled import compile_for, once
from gvf.transition import Column, Transitions, ended_rows, nan_rows

_SAME = 1e-6
"""The relative difference up to which numbers are the same."""
_DECIMALS = 6
"""The largest number of decimals of numbers that are taken for rounded."""


def in_order(transitions: Transitions, *, refuse_gaps: bool = False) -> tuple[Transitions, Bools]:
    """Return transitions stream by stream, and True for rows that the next does not follow.

    Args:
        transitions: rows of one or several streams, each in its order.
        refuse_gaps: True to raise an error where the next row of an episode does not follow.

    Raises:
        ValueError: with `refuse_gaps`, if a row does not begin where the one before it in its
            stream ended, or returns to an episode that another one interrupted.

    Example:
        >>> import gvf
        >>> from gvf.links import in_order
        >>> rows = gvf.Transitions(state=[0, 5, 1, 6], next_state=[1, 6, 2, 7], stream=[0, 1, 0, 1])
        >>> ordered, last = in_order(rows)
        >>> ordered.state, last
        (array([0, 1, 5, 6]), array([False,  True, False,  True]))
    """
    order = stream_order(transitions)
    ordered = transitions[order]
    columns, m = ordered.columns, len(ordered)
    ended = ended_rows(columns, m)
    last = ended | (np.arange(m) == m - 1)
    for name in ("stream", "episode"):
        if name in columns:
            last[:-1] |= columns[name][1:] != columns[name][:-1]
    broken = np.zeros(m, bool)
    if {"state", "next_state"} <= columns.keys():
        broken[:-1] = breaks(columns["next_state"][:-1], columns["state"][1:], ~last[:-1])
    if refuse_gaps:
        at, why = None, "does not begin in the state where the one before it ended"
        if broken.any():
            at = int(broken.argmax()) + 1
        elif "episode" in columns:
            number = np.unique(columns["episode"], return_inverse=True)[1]
            at = interrupted(columns.get("stream", np.zeros(m)), number, ended)
            why = "returns to an episode that another one interrupted"
        if at is not None:
            raise ValueError(
                f"the transition at position {order[at]} {why}: give them in the order of their "
                "stream, with truncated=True in the last row of an unfinished episode; rows of "
                "several streams need the columns 'stream' and 'episode'"
            )
    return ordered, last | broken


def episode_starts(whole: Transitions) -> NDArray[np.int64]:
    """Return the first row of each episode, int64[E].

    Raises:
        ValueError: if rows of several streams may alternate.

    Example:
        >>> from gvf.links import episode_starts
        >>> from gvf.transition import Transitions
        >>> episode_starts(Transitions(state=[0, 1, 2], terminated=[False, True, False]))
        array([0, 2])
    """
    columns = whole.columns
    if "episode" in columns:
        begins = columns["episode"][1:] != columns["episode"][:-1]
    elif "stream" in columns:
        raise ValueError(
            "these transitions have streams and no column 'episode', so their episodes cannot be "
            "shuffled: gvf.read_log numbers them"
        )
    else:
        begins = np.zeros(max(len(whole) - 1, 0), bool)
    begins = begins | ended_rows(columns, len(whole))[:-1]
    return np.concatenate([[0], np.flatnonzero(begins) + 1])


def stream_order(transitions: Transitions) -> NDArray[np.intp]:
    """Return the order of rows in which streams come one after the other, [m]."""
    if "stream" not in transitions:
        return np.arange(len(transitions))
    return np.argsort(transitions["stream"], kind="stable")


def interrupted(stream: Array, episode: NDArray[np.int64], ended: Bools) -> int | None:
    """Find the first row that goes on with an episode which another one interrupted.

    Args:
        stream: the stream of each row, [m].
        episode: the number of each row's episode, [m].
        ended: True for rows that no other row goes on with, [m].
    """
    place = np.empty(len(stream), np.int64)
    place[np.argsort(stream, kind="stable")] = np.arange(len(stream))
    order = np.lexsort((place, episode, stream))
    before, after = order[:-1], order[1:]
    same = (stream[before] == stream[after]) & (episode[before] == episode[after])
    returning = after[same & ~ended[before] & (place[before] + 1 != place[after])]
    return int(returning.min()) if len(returning) else None


class LinkedRows(NamedTuple):
    """The streams of m rows, and which of them follow no other."""

    stream: NDArray[np.int64]
    """The number of each row's stream, int64[m]: 0, 1, ... in the order in which they came."""
    begins: Bools
    """True for rows that begin anew, bool[m]."""


_RESTART, _LOOSE, _KNOWN, _LEFT, _FLAGS = range(5)
"""The flags of a stream: its next row begins anew; the first row of another source may come
next; the next state is known; an episode was left before its end."""
_GOOD, _COMES_BACK, _DOES_NOT_FOLLOW = range(3)  # the verdicts of the loop
REMEDY = (
    "give them in the order of the stream, with truncated=True in the last row of an unfinished "
    "episode; or add the columns 'stream' and 'episode'; or use a gvf.Learner whose correction has "
    "no trace, such as gvf.corrections.IR()"
)


def _follow(rows, states, by_episode, memory, begins, verdict):
    """Tell which of m rows in order begin anew, up to the first that is bad; `verdict` says it."""
    stream, ended, left_out, episode = rows
    before, after, kept = states
    flags, episodes, left = memory
    latest = np.full(flags.shape[0], -1)  # the row of each stream's latest transition
    for i in range(stream.size):
        s = stream[i]
        row = flags[s]
        if left_out[i]:
            row[_RESTART] = 1.0
            continue
        begin = row[_RESTART] != 0.0
        if row[_LOOSE] != 0.0:
            row[_LEFT] = 0.0
        if not begin and episodes[s] != episode[i]:
            if row[_LEFT] != 0.0 and left[s] == episode[i]:
                verdict[0], verdict[1] = _COMES_BACK, i
                return
            begin = True
            if row[_LOOSE] == 0.0:
                row[_LEFT], left[s] = 1.0, episodes[s]
        compared = before.shape[1] > 0 and (not by_episode or row[_LOOSE] != 0.0)
        if compared and not begin and row[_KNOWN] != 0.0:
            known = after[latest[s]] if latest[s] >= 0 else kept[s]
            for j in range(known.size):
                if known[j] != before[i, j]:
                    begin = True
                    break
            if begin and row[_LOOSE] == 0.0:
                verdict[0], verdict[1] = _DOES_NOT_FOLLOW, i
                return
        begins[i] = begin
        row[_RESTART], row[_LOOSE] = 1.0 if ended[i] else 0.0, 0.0
        row[_KNOWN] = 1.0 if before.shape[1] > 0 else 0.0
        episodes[s], latest[s] = episode[i], i
    for s in range(latest.size):
        if latest[s] >= 0:
            kept[s] = after[latest[s]]


@once
def _loop() -> Any:
    i1, b1, u2 = int64[::1], boolean[::1], uint8[:, ::1]
    rows, memory = types.Tuple((i1, b1, b1, i1)), types.Tuple((float64[:, ::1], i1, i1))
    return compile_for(_follow, void(rows, types.UniTuple(u2, 3), boolean, memory, b1, i1))


class Links:
    """The links of rows that come batch by batch: it remembers the latest row of each stream.

    A row begins anew if the one before it ended an episode (``terminated`` or ``truncated``), or if
    its ``episode`` is another one. Any other row must follow the one before it, and is refused if
    it does not:

    - with a column ``episode``, if it returns to an episode that was left for another one before
      its end: the latest one, or any that was left in the same batch;
    - without it, if its state is not the next state of the row before.

    Args:
        need: the reason why rows must follow each other, for messages.
        looks_back: False if every row begins anew, and rows may come in any order.

    Example:
        >>> import gvf
        >>> from gvf.links import Links
        >>> links = Links("each state has a memory of the one before")
        >>> rows = gvf.Transitions(state=[0, 5, 1], next_state=[1, 6, 2], stream=[0, 1, 0])
        >>> links.of(rows).stream, links.of(gvf.Transitions(state=[6], next_state=[7], stream=[1]))
        (array([0, 1, 0]), LinkedRows(stream=array([1]), begins=array([False])))
        >>> links.of(gvf.Transitions(state=[4], next_state=[3], stream=[1]))
        Traceback (most recent call last):
        ValueError: the transition at position 0 does not begin in the state where the one before it
        ended, and each state has a memory of the one before: give them in the order of the stream,
        with truncated=True in the last row of an unfinished episode; or add the columns 'stream'
        and 'episode'; or use a gvf.Learner whose correction has no trace, such as
        gvf.corrections.IR()
    """

    def __init__(self, need: str, looks_back: bool = True) -> None:
        self._need, self._looks_back = need, looks_back
        self._places: dict[int, int] = {}
        self._flags = np.zeros((0, _FLAGS))
        self._episodes, self._left = np.zeros((2, 0), np.int64)
        self._after = np.zeros((0, 0), np.uint8)  # the next state of each stream's latest row

    def __len__(self) -> int:
        """Return the number of streams."""
        return len(self._places)

    def new_source(self, *, reset: bool) -> None:
        """Accept a next row that does not follow in each stream; with `reset`, none follows."""
        self._flags[:, _RESTART if reset else _LOOSE] = 1.0

    def of(self, batch: Transitions, left_out: Bools | None = None) -> LinkedRows:
        """Link rows to those of the calls before, and to each other.

        Args:
            batch: the rows as they came. Their columns ``stream``, ``episode``, ``state``,
                ``next_state``, ``terminated`` and ``truncated``, if present, determine which row
                follows which. By default each row follows the one before.
            left_out: True for rows of the batch that are not linked. The row after one begins anew.

        Returns:
            The links of the m rows that are not left out.

        Raises:
            ValueError: if a row does not follow the one before it in its stream. What is remembered
                is then undefined, until :meth:`put_back`.
        """
        columns, count, stream = batch.columns, len(batch), self.streams(batch)
        ended = ended_rows(columns, count)
        if not self._looks_back:
            ended[:] = True
        nowhere = np.zeros(count, np.int64)
        episode = numbered(columns["episode"]) if "episode" in columns else nowhere
        cut = ended if left_out is None else ended | left_out
        returning = interrupted(stream, episode, cut) if "episode" in columns else None
        if returning is not None:
            self._refuse(_COMES_BACK, _among(left_out, returning))
        before, after = comparable(columns.get("state"), columns.get("next_state"), count)
        if self._after.shape[1] != after.shape[1]:
            self._after = np.zeros((len(self._flags), after.shape[1]), np.uint8)
            self._flags[:, _KNOWN] = 0.0
        begins, verdict = np.empty(count, np.bool_), np.array([_GOOD, 0])
        _loop()(
            (
                stream,
                ended,
                np.zeros(count, np.bool_) if left_out is None else left_out,
                episode,
            ),
            (before, after, self._after),
            "episode" in columns,
            (self._flags, self._episodes, self._left),
            begins,
            verdict,
        )
        if verdict[0] != _GOOD:
            self._refuse(int(verdict[0]), _among(left_out, int(verdict[1])))
        if left_out is None:
            return LinkedRows(stream, begins)
        return LinkedRows(stream[~left_out], begins[~left_out])

    def _refuse(self, verdict: int, at: int) -> NoReturn:
        why = (
            "returns to an episode that another one interrupted"
            if verdict == _COMES_BACK
            else "does not begin in the state where the one before it ended"
        )
        raise ValueError(f"the transition at position {at} {why}, and {self._need}: {REMEDY}")

    def streams(self, batch: Transitions) -> NDArray[np.int64]:
        """Return the number of each row's stream, int64[m]: 0, 1, ... in the order they came."""
        if "stream" in batch:
            return self._find(batch["stream"])
        nowhere = np.zeros(len(batch), np.int64)
        if 0 not in self._places:
            return self._find(nowhere)
        return np.full_like(nowhere, self._places[0]) if self._places[0] else nowhere

    def _find(self, streams: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of each stream, and make room for new streams."""
        if nan_rows(streams).any():
            at = int(nan_rows(streams).argmax())
            raise ValueError(f"column 'stream' is nan at position {at}; every row needs a stream")
        names, place = np.unique(streams, return_inverse=True)
        for name in names.tolist():
            if name not in self._places:
                self._places[name] = len(self._places)
        new = len(self._places) - len(self._flags)
        if new:
            fresh = np.zeros((new, _FLAGS))
            fresh[:, _RESTART] = 1.0
            self._flags = np.concatenate([self._flags, fresh])
            self._episodes, self._left = np.pad([self._episodes, self._left], ((0, 0), (0, new)))
            self._after = np.pad(self._after, ((0, new), (0, 0)))
        return np.array([self._places[name] for name in names.tolist()], np.int64)[place]

    def remembered(self) -> tuple[dict[int, int], list[Array]]:
        """Return a copy of what is remembered, for :meth:`put_back`."""
        arrays = (self._flags, self._episodes, self._left, self._after)
        return dict(self._places), [array.copy() for array in arrays]

    def put_back(self, memory: tuple[dict[int, int], list[Array]]) -> None:
        """Remember what :meth:`remembered` returned, and nothing since."""
        self._places, (self._flags, self._episodes, self._left, self._after) = memory

    def state_dict(self) -> dict[str, Array]:
        """Return copies of the arrays of the state."""
        return {
            "streams": np.array([json.dumps(name) for name in self._places], np.str_),
            "flags": self._flags.copy(),
            "episodes": self._episodes.copy(),
            "left": self._left.copy(),
            "after": self._after.copy(),
        }

    def load_state_dict(self, arrays: Mapping[str, Array]) -> None:
        """Restore a state."""
        places = {json.loads(name): i for i, name in enumerate(arrays["streams"].tolist())}
        flags, after = arrays["flags"], arrays["after"]
        episodes, left, count = arrays["episodes"], arrays["left"], len(places)
        if flags.shape != (count, _FLAGS) or {len(episodes), len(left), len(after)} != {count}:
            raise ValueError(f"{count} streams remember {flags.shape} flags")
        self._places, self._flags = places, np.array(flags, np.float64)
        self._after = np.array(after, np.uint8)
        self._episodes, self._left = np.array([episodes, left], np.int64)


def _among(left_out: Bools | None, at: int) -> int:
    """Return the position of a row among those that are not left out."""
    return at if left_out is None else int((~left_out[:at]).sum())


def numbered(episodes: NDArray[Any]) -> NDArray[np.int64]:
    """Map names of episodes to whole numbers, the same number for the same name in every batch."""
    if episodes.dtype.kind in "biu":
        return np.ascontiguousarray(episodes, np.int64)
    names, which = np.unique(episodes.astype(np.str_), return_inverse=True)
    digests = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names.tolist()]
    return np.frombuffer(b"".join(digests), np.int64)[which]


def comparable(
    state: Column | None, following: Column | None, m: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return states and next states as bytes [m, b] that are equal for equal states.

    If states are not given or cannot be compared, b is 0.
    """
    if state is not None and following is not None:
        state_bytes, following_bytes = _as_bytes(state), _as_bytes(following)
        if state_bytes.shape == following_bytes.shape:
            return state_bytes, following_bytes
    return np.zeros((m, 0), np.uint8), np.zeros((m, 0), np.uint8)


def _as_bytes(column: Column) -> NDArray[np.uint8]:
    """Return the rows of a column as bytes [m, b]; none if rows cannot be compared.

    Numbers are rounded to float32, because logs often have states in both precisions.
    """
    if column.dtype.names is not None:
        fields = [_as_bytes(column[name]) for name in column.dtype.names]
        return np.ascontiguousarray(np.concatenate(fields, axis=1))
    if column.dtype.kind in "biu" and column.dtype != np.uint8:
        column = column.astype(np.float32)
    elif column.dtype.kind == "f":
        with np.errstate(over="ignore"):
            column = column.astype(np.float32) + np.float32(0.0)  # -0.0 becomes 0.0
    elif column.dtype.hasobject or column.dtype.kind == "V":
        return np.zeros((len(column), 0), np.uint8)
    flat = np.ascontiguousarray(column).reshape(len(column), math.prod(column.shape[1:]))
    return flat.view(np.uint8)


def breaks(next_state: Array, state: Array, inside: Bools) -> Bools:
    """Return True for rows whose next state cannot be the state of the row after them, bool[m].

    Numbers may differ by the rounding of their columns. They are not compared where one is not
    finite, nor are states of different forms.

    Args:
        next_state: the next states of the rows, [m, ...].
        state: the states of the rows after them, [m, ...].
        inside: True for the rows that are compared, bool[m]; in the others nothing breaks.

    Example:
        >>> import numpy as np
        >>> from gvf.links import breaks
        >>> exact, rounded = np.array([0.123, 0.24, 0.5, np.nan]), np.array([0.12, 0.24, 0.9, 0.7])
        >>> breaks(exact, rounded, np.ones(4, bool))
        array([False, False,  True, False])
    """
    alike = next_state.shape == state.shape and next_state.dtype.names == state.dtype.names
    if not (alike and inside.any()):
        return np.zeros(len(inside), bool)
    if state.dtype.names is not None:
        fields = [breaks(next_state[name], state[name], inside) for name in state.dtype.names]
        return np.array(np.any(fields, axis=0))
    a, b = (column.reshape(len(column), -1) for column in (next_state, state))
    differs = inside & (a != b).any(axis=1)
    if differs.any() and {*"biuf"} >= {a.dtype.kind, b.dtype.kind} >= {"f"}:
        units = _unit(a), _unit(b)
        rounding = np.where(units[0] == units[1], 0.0, 0.5 * (units[0] + units[1]))
        some, other = (column[differs].astype(np.float64) for column in (a, b))
        near = np.isclose(some, other, rtol=_precision(a, b), atol=1e-9)
        near |= ~np.isfinite(some) | ~np.isfinite(other)
        near |= np.abs(some - other) <= (1.0 + _SAME) * rounding
        differs[differs] = ~near.all(axis=1)
    return differs


def _precision(*columns: Array) -> float:
    """Return the relative difference of numbers that are the same in the types of their columns."""
    return max(_SAME, *(4.0 * np.finfo(c.dtype).eps for c in columns if c.dtype.kind == "f"))


def _unit(column: Array) -> Floats:
    """Return the unit to which the numbers of each dimension are rounded, [d]; 0 for none."""
    column, unit = column.astype(np.float64), np.zeros(column.shape[1])
    for decimals in range(_DECIMALS, -1, -1):
        rounded = np.isclose(
            np.round(column, decimals), column, rtol=_SAME, atol=0.0, equal_nan=True
        )
        unit[rounded.all(axis=0)] = 10.0**-decimals
    return unit
