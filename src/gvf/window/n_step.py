"""n-step transitions: n transitions of a stream, joined into one.

From S_t on, n transitions with ratios rho, cumulants C and continuations gamma become one with

    ratio           rho_t rho_{t+1} ... rho_{t+n-1}
    cumulant        C_{t+1} + gamma_{t+1} C_{t+2} + ... + gamma_{t+1} ... gamma_{t+n-1} C_{t+n}
    continuation    gamma_{t+1} gamma_{t+2} ... gamma_{t+n}
    next state      S_{t+n}.

The rest of the row, its trace included, is that of S_t. A row has fewer steps where the stream ends
or is cut: at the end of an episode, at a gap, at the end of a log. It then bootstraps from the last
state that is known. It also ends at a continuation of 0, because nothing after it belongs to the
return, and the ratios of later actions would only add noise. Every transition becomes exactly one
row, as soon as its last step is known. Rows go to the buffer, which draws and weighs them by the
product of ratios as it does others.

Transitions must come in the order of their streams. The column ``stream`` tells streams apart, and
``episode`` episodes. With ``episode``, transitions that return to an episode which another one
interrupted are refused. Without it, a transition that does not begin in the state where the one
before it ended is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Arrays, Bools, Floats
from gvf.common.checks import whole
from gvf.corrections import RATIO, Correction
from gvf.links import comparable, interrupted, numbered
from gvf.sampling.prefix_sums import LARGEST_RATIO
from gvf.transition import Transitions, ended_rows
from gvf.window.buffer import Rows

_Indices = NDArray[np.intp]


class NSteps:
    """Rows of n steps, for any number of streams, and the rows that still wait for their steps.

    Args:
        n: the number of steps, at least 1.
        correction: the correction, which computes the masses of joined rows.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.window.buffer import Rows
        >>> from gvf.window.n_step import NSteps
        >>> steps = NSteps(2, gvf.corrections.IR())
        >>> columns = {"x": np.arange(3), "x_next": np.arange(1, 4)}
        >>> columns |= {"cumulant": np.array([1.0, 2.0, 4.0]), "continuation": np.full(3, 0.5)}
        >>> rows = Rows(columns, np.array([[2.0, 3.0, 0.5]]), np.ones(3))
        >>> joined = steps.join(rows, gvf.Transitions(truncated=[False, False, False]))
        >>> joined.columns["x_next"], joined.columns["cumulant"], joined.inputs
        (array([2, 3]), array([2., 4.]), array([[6. , 1.5]]))
        >>> len(steps), steps.rest().columns["cumulant"]
        (1, array([4.]))
    """

    def __init__(self, n: int, correction: Correction) -> None:
        self.n, self._correction = whole("n_step", n, 1), correction
        self._waiting: dict[str, NDArray[Any]] = {}  # by column; empty, or [w, ...] each
        self._cut = False  # True if no later row follows those that wait

    def __len__(self) -> int:
        """Return the number of rows that wait."""
        return len(self._waiting["stream"]) if self._waiting else 0

    def cut(self) -> None:
        """Begin anew in every stream: the rows that wait get no more steps."""
        self._cut = True

    def new_source(self, *, reset: bool) -> None:
        """Accept a next row that does not follow in each stream; with `reset`, none follows."""
        if reset:
            self.cut()
        elif self._waiting:
            self._waiting["loose"] = np.ones(len(self), bool)

    def join(self, rows: Rows, transitions: Transitions, gaps: Sequence[int] = ()) -> Rows:
        """Return the rows that are complete after these, in the order of their completion.

        Args:
            rows: the next rows of their streams, one step each. Columns of the next state have
                "next" in their names.
            transitions: the rows as given. Their columns ``stream``, ``episode``, ``terminated``
                and ``truncated``, if present, determine which row follows which.
            gaps: rows before which something is missing, in order; m for a gap after the last row.

        Raises:
            ValueError: if a row does not follow the one before it in its stream, or if a product of
                ratios overflows. Nothing has changed then.
        """
        if self.n == 1:
            return rows
        count, batch_columns = len(rows), transitions.columns
        ended = (rows.columns["continuation"] == 0.0) | ended_rows(batch_columns, count)
        none = np.zeros(count, np.int64)
        if "episode" in batch_columns:
            stream, episode = batch_columns.get("stream", none), numbered(batch_columns["episode"])
            returning = interrupted(stream, episode, ended)
            if returning is not None:
                self._refuse(returning, "returns to an episode that another one interrupted")
        section = np.searchsorted(np.asarray(gaps, np.int64), np.arange(count), "right")
        new = {f"column/{name}": column for name, column in rows.columns.items()}
        new |= {"inputs": np.ascontiguousarray(rows.inputs.T)}
        new |= {
            "stream": batch_columns.get("stream", none),
            "episode": batch_columns.get("episode", none),
        }
        new |= {"ended": ended, "section": section + self._cut}
        new["state"], new["next_state"] = comparable(
            batch_columns.get("state"), batch_columns.get("next_state"), count
        )
        new["told"], new["loose"] = (
            np.full(count, "episode" in batch_columns),
            np.zeros(count, bool),
        )
        joined = self._complete(new, flush=False)
        self._cut = bool(gaps) and gaps[-1] == count
        return joined

    def rest(self) -> Rows:
        """Return the rows that wait, with the steps that they have; then none wait."""
        nothing = {name: column[:0] for name, column in self._waiting.items()}
        return self._complete(nothing, flush=True)

    def _complete(self, new: dict[str, NDArray[Any]], flush: bool) -> Rows:
        """Join what can be joined of the rows that wait and new ones, and keep the others."""
        held = self._waiting or {name: column[:0] for name, column in new.items()}
        if held["state"].shape[1] != new["state"].shape[1]:  # such as text of another length
            unknown = {name: new[name][:, :0] for name in ("state", "next_state")}
            held = held | {name: held[name][:, :0] for name in unknown}
            new = new | unknown
        every = {name: np.concatenate([held[name], column]) for name, column in new.items()}
        order = np.argsort(every["stream"], kind="stable")
        linked = _links(every, order)
        self._check_order(every, order, linked)
        first, last, waits = _spans(every, order, linked, self.n, flush)
        start, end = order[first], order[last]
        columns = {
            name.removeprefix("column/"): column[end if "next" in name else start]
            for name, column in every.items()
            if name.startswith("column/")
        }
        inputs = np.ascontiguousarray(every["inputs"][start].T)
        steps = (every["inputs"][:, RATIO], every["column/cumulant"], every["column/continuation"])
        ratio, columns["cumulant"], columns["continuation"] = _returns(*steps, order, first, last)
        if not (ratio <= LARGEST_RATIO).all():
            raise ValueError(
                f"a product of {self.n} ratios is above {LARGEST_RATIO:g}; take a smaller n_step"
            )
        inputs[RATIO] = ratio
        joined = Rows(columns, inputs, self._correction.masses(inputs))
        self._waiting = {name: column[waits] for name, column in every.items()}
        self._waiting["section"][:] = 0
        return joined

    def _check_order(self, every: Arrays, order: _Indices, linked: Bools) -> None:
        """Raise ValueError if a new row is linked to one that ended in another state."""
        asked = np.flatnonzero(linked & ~every["told"][order])
        before, after = order[asked], order[asked + 1]
        if not len(asked):
            return
        wrong = (every["next_state"][before] != every["state"][after]).any(axis=1)
        if wrong.any():
            at = int(after[wrong].min()) - len(self)
            self._refuse(at, "does not begin in the state where the one before it ended")

    def _refuse(self, at: int, why: str) -> NoReturn:
        raise ValueError(
            f"the transition at position {at} {why}, and n_step={self.n} joins transitions of a "
            "stream: give them in its order, with truncated=True in the last row of an unfinished "
            "episode, or add the columns 'stream' and 'episode'"
        )

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that make up the state, for :meth:`restore`."""
        return {**self._waiting, "cut": np.array(self._cut)}

    def restore(self, arrays: Arrays) -> None:
        """Restore a checkpoint."""
        self._waiting = {name: array for name, array in arrays.items() if name != "cut"}
        self._cut = bool(arrays["cut"])


def _links(every: Arrays, order: _Indices) -> Bools:
    """Return True for rows in `order` whose next step is the next row, bool[T]."""
    linked = ~every["ended"][order]
    for name in ("stream", "episode", "section"):
        column = every[name][order]
        linked[:-1] &= column[1:] == column[:-1]
    # Another source may go on where the one before it ended, or not.
    loose = every["loose"][order]
    changes = np.flatnonzero(loose[:-1] & ~loose[1:])
    before, after = every["next_state"][order[changes]], every["state"][order[changes + 1]]
    linked[changes] &= (before == after).all(axis=1)
    linked[-1:] = False
    return linked


def _spans(
    every: Arrays, order: _Indices, linked: Bools, n: int, flush: bool
) -> tuple[_Indices, _Indices, _Indices]:
    """Find the steps of the rows that are complete, or of all if `flush`.

    Returns:
        The places in `order` of the first and the last step of each such row, in the order of
        their completion; and the rows that wait.
    """
    rows, place = len(order), np.arange(len(order))
    ends = np.flatnonzero(~linked)
    end = ends[np.searchsorted(ends, place)]  # the last row that can be reached from each
    last = np.minimum(place + n - 1, end)
    # A row is complete once the row of its last step is there. If its stream is cut before, it is
    # complete once a later row shows that: the next of its stream, or one after the gap.
    stream, section = every["stream"][order], every["section"]
    after = np.minimum(end + 1, rows - 1)
    next_row = np.where((after > end) & (stream[after] == stream), order[after], rows)
    last_known = np.minimum(next_row, np.searchsorted(section, section[order], "right"))
    full = (place + n - 1 <= end) | every["ended"][order[last]]
    complete = np.where(full, order[last], last_known)
    ready = np.lexsort((order, complete))
    if not flush:
        ready = ready[complete[ready] < rows]
    waits = np.ones(rows, bool)
    waits[order[ready]] = False
    return ready, last[ready], np.flatnonzero(waits)


def _returns(
    ratios: Floats,
    cumulants: Floats,
    continuations: Floats,
    order: _Indices,
    first: _Indices,
    last: _Indices,
) -> tuple[Floats, Floats, Floats]:
    """Compute ratio, cumulant and continuation of joined rows; indices as in :func:`_spans`."""
    count = len(first)
    ratio, cumulant, continuation = np.ones(count), np.zeros(count), np.ones(count)
    for step in range(int((last - first).max(initial=-1)) + 1):
        has, row = first + step <= last, order[np.minimum(first + step, last)]
        with np.errstate(over="ignore"):
            ratio *= np.where(has, ratios[row], 1.0)
        cumulant += np.where(has, continuation * cumulants[row], 0.0)
        continuation *= np.where(has, continuations[row], 1.0)
    return ratio, cumulant, continuation
