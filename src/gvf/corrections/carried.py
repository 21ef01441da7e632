"""Traces: quantities that a correction carries along a stream of transitions.

An example is the follow-on trace of emphatic TD, ``F_t = gamma_t rho_{t-1} F_{t-1} + i_t``, where
gamma_t is the continuation into state t and i_t the interest in it
(:mod:`gvf.corrections.emphatic_corrections`). A trace is known when a transition arrives and never
changes, so it is one more input of the row, beside the ratio.

A trace needs the rows in the order of their stream. Each stream has its own trace: the column
``stream`` tells the environments of a vector environment apart. A row begins anew if the one before
it ended an episode (``terminated`` or ``truncated``), or if its ``episode`` is another one. Any
other row must follow the one before it, and is refused if it does not:

- with a column ``episode``, if it returns to an episode that was left for another one before its
  end: the latest one, or any that was left in the same batch;
- without it, if its state is not the next state of the row before.

If a correction says ``looks_back = False``, every row begins anew, and rows may come in any order.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
from numba import boolean, float64, int64, types, uint8, void
from numpy.typing import ArrayLike, NDArray

from gvf.common.arrays import Floats
from gvf.common.compiled import call_float, compile_for, once
from gvf.corrections.correction import Correction
from gvf.links import interrupted
from gvf.sampling.prefix_sums import LARGEST_RATIO
from gvf.transition import Column, Transitions, ended_rows, nan_rows

# The numbers kept for a stream. The last three are flags: the first row of another source may come
# next; the next state is known; an episode was left before its end.
_CARRY, _RATIO, _CONTINUATION, _RESTART, _LOOSE, _KNOWN, _LEFT, _NUMBERS = range(8)
_GOOD, _COMES_BACK, _DOES_NOT_FOLLOW, _TOO_LARGE = range(4)  # the verdicts of the loop
_REMEDY = (
    "give them in the order of the stream, with truncated=True in the last row of an unfinished "
    "episode; or add the columns 'stream' and 'episode'; or use a gvf.Learner whose correction has "
    "no trace, such as gvf.corrections.IR()"
)


class TraceOverflowError(ValueError):
    """The error of a trace that is too large to draw or to weigh by."""


def _carry(trace, rows, states, by_episode, parameters, memory, out, verdict):
    """Write the trace of m rows in order, up to the first that is bad; `verdict` says which."""
    place, ratio, continuation, interest, ended, missing, episode = rows
    before, after, kept = states
    numbers, episodes, left = memory
    latest = np.full(numbers.shape[0], -1)  # the row of each stream's latest transition
    for i in range(ratio.size):
        s = place[i]
        row = numbers[s]
        if missing[i]:
            row[_RESTART] = 1.0
            continue
        restart = row[_RESTART] != 0.0
        if row[_LOOSE] != 0.0:
            row[_LEFT] = 0.0
        if not restart and episodes[s] != episode[i]:
            if row[_LEFT] != 0.0 and left[s] == episode[i]:
                verdict[0], verdict[1] = _COMES_BACK, i
                return
            restart = True
            if row[_LOOSE] == 0.0:
                row[_LEFT], left[s] = 1.0, episodes[s]
        compared = before.shape[1] > 0 and (not by_episode or row[_LOOSE] != 0.0)
        if compared and not restart and row[_KNOWN] != 0.0:
            known = after[latest[s]] if latest[s] >= 0 else kept[s]
            for j in range(known.size):
                if known[j] != before[i, j]:
                    restart = True
                    break
            if restart and row[_LOOSE] == 0.0:
                verdict[0], verdict[1] = _DOES_NOT_FOLLOW, i
                return
        carried = (row[_CARRY], row[_RATIO], row[_CONTINUATION])
        out[i] = call_float(trace, (*carried, interest[i], restart, parameters))
        if not abs(out[i]) * max(ratio[i], 1.0) <= LARGEST_RATIO:
            verdict[0], verdict[1] = _TOO_LARGE, i
            return
        row[_CARRY], row[_RATIO], row[_CONTINUATION] = out[i], ratio[i], continuation[i]
        row[_RESTART], row[_LOOSE] = 1.0 if ended[i] else 0.0, 0.0
        row[_KNOWN] = 1.0 if before.shape[1] > 0 else 0.0
        episodes[s], latest[s] = episode[i], i
    for s in range(latest.size):
        if latest[s] >= 0:
            kept[s] = after[latest[s]]


@once
def _loop() -> Any:
    f1, f2, i1, b1, u2 = float64[::1], float64[:, ::1], int64[::1], boolean[::1], uint8[:, ::1]
    rows = types.Tuple((i1, f1, f1, f1, b1, b1, i1))
    states, memory = types.UniTuple(u2, 3), types.Tuple((f2, i1, i1))
    return compile_for(_carry, void(int64, rows, states, boolean, f1, memory, f1, i1))


class Trace:
    """The carried quantity of a correction, for any number of streams.

    Args:
        correction: the correction. If it has no ``trace``, its only inputs are the ratios.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.corrections.carried import Trace
        >>> trace = Trace(gvf.corrections.EmphaticIR())
        >>> trace.inputs(np.array([2.0, 0.5, 1.0]), np.full(3, 0.5))
        array([[2. , 0.5, 1. ],
               [1. , 2. , 1.5]])
    """

    def __init__(self, correction: Correction) -> None:
        self._correction = correction
        self._places: dict[int, int] = {}
        self._numbers = np.zeros((0, _NUMBERS))
        self._episodes, self._left = np.zeros((2, 0), np.int64)
        self._after = np.zeros((0, 0), np.uint8)  # the next state of each stream's latest row

    def new_source(self, *, reset: bool) -> None:
        """Accept a next row that does not follow in each stream; with `reset`, none follows."""
        self._numbers[:, _RESTART if reset else _LOOSE] = 1.0

    def leave_out(self, transitions: Transitions) -> None:
        """Let no row follow these transitions, which are all left out, in their streams."""
        missing = np.ones(len(transitions), np.bool_)
        self.inputs(np.empty(0), np.empty(0), transitions, missing=missing)

    def inputs(
        self,
        ratio: Floats,
        continuation: Floats,
        transitions: Transitions | None = None,
        *,
        interest: Floats | None = None,
        missing: NDArray[np.bool_] | None = None,
    ) -> Floats:
        """Compute the inputs [C, m] of rows that follow those of the calls before.

        Args:
            ratio: the ratio of each row, [m].
            continuation: the continuation of each row, [m].
            transitions: the rows themselves. Their columns ``stream``, ``episode``, ``state``,
                ``next_state``, ``terminated`` and ``truncated``, if present, determine which row
                follows which. By default each row follows the one before.
            interest: the interest in the state of each row, [m]; 1 by default.
            missing: True for transitions that are not among the m rows, but between them. The row
                after one begins anew.

        Raises:
            ValueError: if a row does not follow the one before it in its stream. The state of the
                trace is then undefined, until :meth:`restore`.
            TraceOverflowError: likewise, if the trace or its product with the ratio is above 1e290.
        """
        if self._correction.trace is None:
            return np.ascontiguousarray(ratio)[None]
        present = None if missing is None else ~missing
        m = len(ratio) if missing is None else len(missing)
        columns: Mapping[str, Column] = {} if transitions is None else transitions.columns
        ended = ended_rows(columns, m)
        if not self._correction.looks_back:
            ended[:] = True  # the trace begins anew in every row
        nowhere = np.zeros(m, np.int64)
        episode = numbered(columns["episode"]) if "episode" in columns else nowhere
        place = self._places_of(columns, nowhere)
        cut = ended if missing is None else ended | missing
        returning = interrupted(place, episode, cut) if "episode" in columns else None
        if returning is not None:
            self._refuse(_COMES_BACK, _among(present, returning))
        before, after = comparable(columns.get("state"), columns.get("next_state"), m)
        if self._after.shape[1] != after.shape[1]:
            self._after = np.zeros((len(self._numbers), after.shape[1]), np.uint8)
            self._numbers[:, _KNOWN] = 0.0
        out, verdict = np.empty(m), np.array([_GOOD, 0])
        _loop()(
            self._correction.address("trace"),
            (
                place,
                _spread(ratio, present, m),
                _spread(continuation, present, m),
                np.ones(m) if interest is None else _spread(interest, present, m),
                ended,
                np.zeros(m, np.bool_) if missing is None else missing,
                episode,
            ),
            (before, after, self._after),
            "episode" in columns,
            self._correction.parameters,
            (self._numbers, self._episodes, self._left),
            out,
            verdict,
        )
        if verdict[0] != _GOOD:
            self._refuse(int(verdict[0]), _among(present, int(verdict[1])))
        inputs = np.empty((2, len(ratio)))
        inputs[0], inputs[1] = ratio, out if present is None else out[present]
        return inputs

    def _refuse(self, verdict: int, at: int) -> NoReturn:
        name = self._correction.name
        if verdict == _TOO_LARGE:
            raise TraceOverflowError(
                f"the trace of {name} overflows at position {at}, since it multiplies ratios along "
                "the stream; choose a smaller decay, such as beta=0.5, or a behaviour closer to "
                "the target"
            )
        why = (
            "returns to an episode that another one interrupted"
            if verdict == _COMES_BACK
            else "does not begin in the state where the one before it ended"
        )
        raise ValueError(
            f"the transition at position {at} {why}, and {name} carries a trace from each "
            f"transition to the next: {_REMEDY}"
        )

    def places(self, transitions: Transitions) -> NDArray[np.int64]:
        """Return the number of each row's stream, int64[m]: 0, 1, ... in the order they came."""
        return self._places_of(transitions.columns, np.zeros(len(transitions), np.int64))

    def _places_of(
        self, columns: Mapping[str, Column], nowhere: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        return self._find(columns["stream"]) if "stream" in columns else self._find_one(nowhere)

    def _find_one(self, nowhere: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of memory of the only stream, 0, for each of m rows."""
        if 0 not in self._places:
            return self._find(nowhere)
        return np.full_like(nowhere, self._places[0]) if self._places[0] else nowhere

    def _find(self, streams: NDArray[Any]) -> NDArray[np.int64]:
        """Return the row of memory of each stream, and make a row for each new stream."""
        if nan_rows(streams).any():
            at = int(nan_rows(streams).argmax())
            raise ValueError(f"column 'stream' is nan at position {at}; every row needs a stream")
        names, place = np.unique(streams, return_inverse=True)
        for name in names.tolist():
            if name not in self._places:
                self._places[name] = len(self._places)
        self._resize(len(self._places))
        rows = np.array([self._places[name] for name in names.tolist()], np.int64)
        return rows[place]

    def _resize(self, streams: int) -> None:
        """Make room for new streams, whose first row begins anew."""
        new = streams - len(self._numbers)
        if new:
            fresh = np.zeros((new, _NUMBERS))
            fresh[:, _RESTART] = 1.0
            self._numbers = np.concatenate([self._numbers, fresh])
            self._episodes, self._left = np.pad([self._episodes, self._left], ((0, 0), (0, new)))
            self._after = np.pad(self._after, ((0, new), (0, 0)))

    @contextmanager
    def undone(self, unless: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Restore the state if an error leaves this context, unless the function returns True."""
        places = dict(self._places)
        arrays = [a.copy() for a in (self._numbers, self._episodes, self._left, self._after)]
        try:
            yield
        except Exception:
            if not unless():
                self._places = places
                self._numbers, self._episodes, self._left, self._after = arrays
            raise

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that make up the state, for :meth:`restore`."""
        return {
            "streams": np.array([json.dumps(name) for name in self._places], np.str_),
            "memory": self._numbers.copy(),
            "episodes": self._episodes.copy(),
            "left": self._left.copy(),
            "after": self._after.copy(),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a checkpoint."""
        places = {json.loads(name): i for i, name in enumerate(arrays["streams"].tolist())}
        memory, after = arrays["memory"], arrays["after"]
        episodes, left = arrays["episodes"], arrays["left"]
        count = len(places)
        if memory.shape != (count, _NUMBERS) or {len(episodes), len(left), len(after)} != {count}:
            raise ValueError(f"{count} streams remember {memory.shape} numbers")
        self._places, self._numbers = places, np.array(memory, np.float64)
        self._after = np.array(after, np.uint8)
        self._episodes, self._left = np.array([episodes, left], np.int64)


def carried(
    correction: Correction,
    ratio: ArrayLike,
    continuation: ArrayLike,
    ended: NDArray[np.bool_] | None = None,
    interest: Floats | None = None,
) -> Floats:
    """Compute the inputs [C, T] of a whole stream from its ratios and continuations [T].

    Args:
        correction: the correction.
        ratio: the ratio of each row.
        continuation: the continuation of each row.
        ended: True for rows that end an episode; by default those with continuation 0.
        interest: the interest in the state of each row; 1 by default.
    """
    ratio, continuation = np.asarray(ratio, np.float64), np.asarray(continuation, np.float64)
    ends = Transitions(terminated=continuation == 0.0 if ended is None else ended)
    return Trace(correction).inputs(ratio, continuation, ends, interest=interest)


def _among(present: NDArray[np.bool_] | None, at: int) -> int:
    """Return the position of a row among those that are present."""
    return at if present is None else int(present[:at].sum())


def _spread(values: Floats, present: NDArray[np.bool_] | None, m: int) -> Floats:
    """Return the values of m rows, 0 in rows that are missing."""
    if present is None:
        return np.ascontiguousarray(values, np.float64)
    spread = np.zeros(m)
    spread[present] = values
    return spread


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
