"""Traces: quantities that a correction carries along a stream of transitions.

An example is the follow-on trace of emphatic TD, ``F_t = gamma_t rho_{t-1} F_{t-1} + i_t``, where
gamma_t is the continuation into state t and i_t the interest in it
(:mod:`gvf.corrections.emphatic_corrections`). A trace is known when a transition arrives and never
changes, so it is one more input of the row, beside the ratio.

A trace needs the rows in the order of their stream. Each stream has its own trace, which begins
anew with each episode; :class:`gvf.links.Links` says which row follows which, and refuses rows that
do not follow. If a correction says ``looks_back = False``, every row begins anew, and rows may come
in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import boolean, float64, int64, types
from numpy.typing import ArrayLike, NDArray

from gvf.common.arrays import Floats
from gvf.common.compiled import call_float, compile_for, once
from gvf.corrections.correction import Correction
from gvf.links import Links
from gvf.sampling.prefix_sums import LARGEST_RATIO
from gvf.transition import Transitions

_CARRY, _RATIO, _CONTINUATION, _NUMBERS = range(4)
"""The numbers kept for a stream, those of its latest row."""


class TraceOverflowError(ValueError):
    """The error of a trace that is too large to draw or to weigh by."""


def _carry(trace, rows, parameters, numbers, out):
    """Write the trace of m rows in order; return the first that is too large, or -1."""
    stream, begins, ratio, continuation, interest = rows
    for i in range(ratio.size):
        row = numbers[stream[i]]
        carried = (row[_CARRY], row[_RATIO], row[_CONTINUATION])
        out[i] = call_float(trace, (*carried, interest[i], begins[i], parameters))
        if not abs(out[i]) * max(ratio[i], 1.0) <= LARGEST_RATIO:
            return i
        row[_CARRY], row[_RATIO], row[_CONTINUATION] = out[i], ratio[i], continuation[i]
    return -1


@once
def _loop() -> Any:
    f1 = float64[::1]
    rows = types.Tuple((int64[::1], boolean[::1], f1, f1, f1))
    return compile_for(_carry, int64(int64, rows, f1, float64[:, ::1], f1))


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
        need = f"{correction.name} carries a trace from each transition to the next"
        self._correction, self.links = correction, Links(need, correction.looks_back)
        self._numbers = np.zeros((0, _NUMBERS))

    def new_source(self, *, reset: bool) -> None:
        """Accept a next row that does not follow in each stream; with `reset`, none follows."""
        self.links.new_source(reset=reset)

    def leave_out(self, transitions: Transitions) -> None:
        """Let no row follow these transitions, which are all left out, in their streams."""
        if self._correction.trace is not None:
            self.links.of(transitions, np.ones(len(transitions), np.bool_))

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
        m = len(ratio)
        # A batch without columns, whose rows follow each other.
        batch = Transitions(row=np.empty(m)) if transitions is None else transitions
        stream, begins = self.links.of(batch, missing)
        new = len(self.links) - len(self._numbers)
        if new:
            self._numbers = np.concatenate([self._numbers, np.zeros((new, _NUMBERS))])
        inputs = np.empty((2, m))
        inputs[0] = ratio
        rows = (ratio, continuation, np.ones(m) if interest is None else interest)
        at = _loop()(
            self._correction.address("trace"),
            (stream, begins, *(np.ascontiguousarray(column, np.float64) for column in rows)),
            self._correction.parameters,
            self._numbers,
            inputs[1],
        )
        if at >= 0:
            raise TraceOverflowError(
                f"the trace of {self._correction.name} overflows at position {at}, since it "
                "multiplies ratios along the stream; choose a smaller decay, such as beta=0.5, or "
                "a behaviour closer to the target"
            )
        return inputs

    def places(self, transitions: Transitions) -> NDArray[np.int64]:
        """Return the number of each row's stream, int64[m]: 0, 1, ... in the order they came."""
        return self.links.streams(transitions)

    @contextmanager
    def undone(self, unless: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Restore the state if an error leaves this context, unless the function returns True."""
        memory, numbers = self.links.remembered(), self._numbers.copy()
        try:
            yield
        except Exception:
            if not unless():
                self.links.put_back(memory)
                self._numbers = numbers
            raise

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that make up the state, for :meth:`restore`."""
        links = self.links.state_dict()
        numbers = np.zeros((len(self.links), _NUMBERS))
        numbers[: len(self._numbers)] = self._numbers
        return links | {"memory": np.concatenate([numbers, links.pop("flags")], axis=1)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a checkpoint."""
        memory = np.array(arrays["memory"], np.float64)
        if memory.ndim != 2:
            raise ValueError(f"streams remember {memory.shape} numbers")
        flags = np.ascontiguousarray(memory[:, _NUMBERS:])
        self.links.load_state_dict({**arrays, "flags": flags})
        self._numbers = np.ascontiguousarray(memory[:, :_NUMBERS])


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
