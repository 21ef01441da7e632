"""Traces: quantities that a correction carries along a stream of transitions.

An example is the follow-on trace of emphatic TD, ``F_t = gamma_t rho_{t-1} F_{t-1} + i_t``, where
gamma_t is the continuation into state t and i_t its interest. A trace is known when a transition
arrives and never changes, so it is one more input of the row, beside the ratio. Each stream has its
own trace: the column ``stream`` tells the environments of a vector environment apart, and every
episode begins anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import boolean, float64, int64, types, void
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.compiled import call_float, compile_for, once
from gvf.correction import Correction
from gvf.transition import Transitions

_CARRY, _RATIO, _CONTINUATION, _RESTART, _NUMBERS = range(5)  # the numbers kept for a stream


def _carry(trace, place, columns, ended, episode, parameters, memory, episodes, out):
    """Write the trace of m rows in order; `place` is the row of `memory` of each row's stream."""
    ratio, continuation, interest = columns
    for i in range(ratio.size):
        row = memory[place[i]]
        restart = row[_RESTART] != 0.0 or episodes[place[i]] != episode[i]
        before = (row[_CARRY], row[_RATIO], row[_CONTINUATION])
        out[i] = call_float(trace, (*before, interest[i], restart, parameters))
        row[_CARRY], row[_RATIO], row[_CONTINUATION] = out[i], ratio[i], continuation[i]
        episodes[place[i]], row[_RESTART] = episode[i], 1.0 if ended[i] else 0.0


@once
def _loop() -> Any:
    f1, i1 = float64[::1], int64[::1]
    columns = types.UniTuple(f1, 3)
    signature = void(int64, i1, columns, boolean[::1], i1, f1, float64[:, ::1], i1, f1)
    return compile_for(_carry, signature)


class Trace:
    """The carried quantity of a correction, for any number of streams.

    Args:
        correction: the correction. If it has no ``trace``, its only inputs are the ratios.

    Example:
        >>> from dataclasses import dataclass
        >>> import gvf, numpy as np
        >>> from gvf.correction import RATIO, TRACE
        >>> from gvf.correction.trace import Trace
        >>> @dataclass(frozen=True)
        ... class FollowOn(gvf.Correction):
        ...     @staticmethod
        ...     def trace(carry, ratio, continuation, interest, restart, parameters):
        ...         return interest if restart else continuation * ratio * carry + interest
        ...
        ...     @staticmethod
        ...     def weigh(inputs, p, means, parameters, out):
        ...         out[:] = inputs[RATIO] * inputs[TRACE] / out.size
        >>> trace = Trace(FollowOn())
        >>> trace.inputs(np.array([2.0, 0.5, 1.0]), np.full(3, 0.5))
        array([[2. , 0.5, 1. ],
               [1. , 2. , 1.5]])
    """

    def __init__(self, correction: Correction) -> None:
        self._correction = correction
        self._places: dict[int, int] = {}
        self._memory = np.zeros((0, _NUMBERS))
        self._episodes = np.zeros(0, np.int64)

    def restart(self) -> None:
        """Begin anew in every stream: the next row of each follows no other."""
        self._memory[:, _RESTART] = 1.0

    def inputs(
        self,
        ratio: Floats,
        continuation: Floats,
        transitions: Transitions | None = None,
    ) -> Floats:
        """Compute the inputs [C, m] of rows that follow those of the calls before.

        Args:
            ratio: the ratio of each row, [m].
            continuation: the continuation of each row, [m].
            transitions: the rows themselves. Their columns ``stream``, ``episode``, ``terminated``
                and ``truncated``, if present, determine which row follows which. A column
                ``interest`` has the interest of each state; the default is 1.
        """
        if self._correction.trace is None:
            return np.ascontiguousarray(ratio)[None]
        m = len(ratio)
        columns: Mapping[str, Any] = {} if transitions is None else transitions.columns
        ended = np.zeros(m, np.bool_)
        for name in ("terminated", "truncated"):
            if name in columns:
                ended |= np.asarray(columns[name]).astype(bool)
        interest = np.array(columns.get("interest", np.ones(m)), np.float64)
        if interest.shape != (m,) or not (interest >= 0.0).all():
            raise ValueError("column 'interest' must have one number for each row, not negative")
        place = self._find(np.asarray(columns.get("stream", np.zeros(m, np.int64))))
        inputs = np.empty((2, m))
        inputs[0] = ratio
        _loop()(
            self._correction.address("trace"),
            place,
            (inputs[0], np.ascontiguousarray(continuation, np.float64), interest),
            ended,
            _numbered(np.asarray(columns.get("episode", np.zeros(m, np.int64)))),
            self._correction.parameters,
            self._memory,
            self._episodes,
            inputs[1],
        )
        return inputs

    def _find(self, streams: NDArray[Any]) -> NDArray[np.int64]:
        """Return the row of memory of each stream, and make a row for each new stream."""
        names, place = np.unique(streams, return_inverse=True)
        for name in names.tolist():
            if name not in self._places:
                self._places[name] = len(self._places)
                fresh = np.zeros((1, _NUMBERS))
                fresh[0, _RESTART] = 1.0
                self._memory = np.concatenate([self._memory, fresh])
                self._episodes = np.append(self._episodes, 0)
        rows = np.array([self._places[name] for name in names.tolist()], np.int64)
        return rows[place]

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that make up the state, for :meth:`restore`."""
        return {
            "streams": np.array([json.dumps(name) for name in self._places], np.str_),
            "memory": self._memory.copy(),
            "episodes": self._episodes.copy(),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a checkpoint."""
        places = {json.loads(name): i for i, name in enumerate(arrays["streams"].tolist())}
        memory, episodes = np.array(arrays["memory"]), np.array(arrays["episodes"], np.int64)
        if memory.shape != (len(places), _NUMBERS) or episodes.shape != (len(places),):
            raise ValueError(f"{len(places)} streams remember {memory.shape} numbers")
        self._places, self._memory, self._episodes = places, memory.astype(np.float64), episodes


def carried(
    correction: Correction,
    ratio: Floats,
    continuation: Floats,
    ended: NDArray[np.bool_] | None = None,
) -> Floats:
    """Compute the inputs [C, T] of a whole stream from its ratios and continuations [T].

    Args:
        correction: the correction.
        ratio: the ratio of each row.
        continuation: the continuation of each row.
        ended: True for rows that end an episode; by default those with continuation 0.
    """
    ends = Transitions(terminated=continuation == 0.0 if ended is None else ended)
    return Trace(correction).inputs(ratio, continuation, ends)


def _numbered(episodes: NDArray[Any]) -> NDArray[np.int64]:
    """Map names of episodes to whole numbers, the same number for the same name in every batch."""
    if episodes.dtype.kind in "biu":
        return np.ascontiguousarray(episodes, np.int64)
    names, which = np.unique(episodes.astype(np.str_), return_inverse=True)
    digests = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names.tolist()]
    return np.frombuffer(b"".join(digests), np.int64)[which]
