"""Links between rows: the order of rows of several streams, and rows that none follows.

The column ``stream`` tells the environments of a vector environment apart, and ``episode`` their
episodes. A row is the last of its episode if it is terminated or truncated, if the next row of its
stream is of another episode, or if there is no next row. Any other row is followed by the next one
of its stream, which begins in its next state. If it does not, rows are missing or not in order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Bools, Floats
from gvf.transition import Transitions, ended_rows

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
