"""Fitting: several passes over a log, and where they were interrupted.

In the order of the log, and in a shuffled order, every pass sends all rows through the learner's
window. In the order ``"drawn"`` the whole log is the window. The first pass fills it without an
update. Each further pass only draws, for as many updates as its rows would have brought. So the
first update already draws from all rows, and policies and features are evaluated once.

A learner counts the rows that its latest ``fit`` has passed, also in its file. So a call that was
interrupted goes on at the next row, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gvf.common.checks import brief, check_choice
from gvf.common.gymnasium import is_environment
from gvf.learners import batches
from gvf.learners.callbacks import Calls
from gvf.transition import Transitions, as_transitions, ended_rows, is_transitions

Order = Literal["log", "shuffled", "drawn"]
LARGEST_WINDOW = 2**30
"""The size in bytes up to which a log becomes the window by default."""


class ReadsInEpochs(Protocol):
    """The interface of a log for a fit; :class:`gvf.Log` has it."""

    @property
    def in_memory(self) -> bool:
        """True if the transitions are kept in memory."""
        ...

    def __len__(self) -> int:
        """Return the number of transitions."""
        ...

    def __iter__(self) -> Iterator[Transitions]:
        """Yield batches in the order of the log."""
        ...

    def transitions(self) -> Transitions:
        """Return all transitions."""
        ...


class _Batch:
    """Transitions as a log in memory."""

    in_memory = True

    def __init__(self, batch: Transitions) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return len(self._batch)

    def __iter__(self) -> Iterator[Transitions]:
        return iter([self._batch])

    def transitions(self) -> Transitions:
        return self._batch


_LOG_MEMBERS = ("in_memory", "transitions", "__len__", "__iter__")


def as_log(log: Any) -> ReadsInEpochs:
    """Return a log, or transitions as one; a list has transitions, as of ``learn``.

    Raises:
        TypeError: if it is neither.
    """
    if is_transitions(log):
        return _Batch(as_transitions(log))
    if is_environment(log) or isinstance(log, Iterator):
        kind = "an environment" if is_environment(log) else "a stream"
        raise TypeError(f"fit takes a log, which it can read again; from {kind}, learn(...)")
    if not all(hasattr(log, name) for name in _LOG_MEMBERS):
        raise TypeError(
            f"fit takes a log, got {brief(log)}: gvf.read_log makes one of files, tables and lists "
            "of episodes; learn takes environments and streams"
        )
    return log


def check_stream(source: Any) -> None:
    """Raise TypeError if the source of ``learn`` is a log or a batch, which are no streams.

    Example:
        >>> import gvf
        >>> from gvf.learners.fitting import check_stream
        >>> walk = {"obs": [0, 1], "action": [1], "reward": [0.0], "terminated": True}
        >>> check_stream(gvf.read_log([walk], quiet=True))
        Traceback (most recent call last):
        TypeError: learn takes an environment or a stream of batches; a log goes to fit, once in
        its order with fit(log, order="log")
    """
    if isinstance(source, Transitions):
        raise TypeError(
            "learn takes an environment or a stream of batches; a batch goes to observe(batch), or "
            "as a log to fit(batch)"
        )
    if all(hasattr(source, name) for name in _LOG_MEMBERS):
        raise TypeError(
            "learn takes an environment or a stream of batches; a log goes to fit, once in its "
            'order with fit(log, order="log")'
        )


@dataclass(frozen=True)
class Passes:
    """The rows of the passes over a log, from any row on.

    Attributes:
        log: the log.
        order: the order of the rows in a pass.
        episodes: True to shuffle whole episodes, in which the order of rows stays.
        seed: the seed of shuffled orders; each pass has its own.
    """

    log: ReadsInEpochs
    order: Order
    episodes: bool
    seed: Any

    def __post_init__(self) -> None:
        if self.order == "shuffled" and not self.log.in_memory:
            raise ValueError(
                'order="shuffled" needs the log in memory: read it with in_memory=True, or fit '
                'with order="log", whose updates draw from the window at random'
            )

    def rows(self, number: int, skip: int) -> Iterator[Transitions]:
        """Yield the rows of a pass in batches, without those skipped at its start."""
        if self.order != "shuffled":
            return _without_first(self.log, skip)
        whole = self.log.transitions()
        order = self._shuffled(whole, np.random.SeedSequence(self.seed, spawn_key=(number,)))
        step = batches.LONGEST_BATCH
        return (whole[order[at : at + step]] for at in range(skip, len(order), step))

    def _shuffled(self, whole: Transitions, seed: np.random.SeedSequence) -> NDArray[np.int64]:
        rng = np.random.default_rng(seed)
        if not self.episodes:
            return rng.permutation(len(whole))
        first = episode_starts(whole)
        length = np.diff(first, append=len(whole))
        order = rng.permutation(len(first))
        first, length = first[order], length[order]
        before = np.cumsum(length) - length
        return np.repeat(first - before, length) + np.arange(len(whole))


def episode_starts(whole: Transitions) -> NDArray[np.int64]:
    """Return the first row of each episode, int64[E].

    Raises:
        ValueError: if rows of several streams may alternate.

    Example:
        >>> from gvf.learners.fitting import episode_starts
        >>> from gvf.transition import Transitions, as_transitions, ended_rows, is_transitions
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


def _without_first(batches: Iterable[Transitions], skip: int) -> Iterator[Transitions]:
    for batch in batches:
        if skip < len(batch):
            yield batch[skip:] if skip else batch
        skip = max(skip - len(batch), 0)


def chosen_order(order: Order | None, log: ReadsInEpochs, learner: Any) -> Order:
    """Return the order of a fit, by default ``"drawn"`` if the log can be the learner's window.

    Raises:
        ValueError: if the order is not for the learner.
    """
    reason = learner._why_not_drawn
    if order is None:
        if reason or not log.in_memory:
            return "log"
        size = learner._row_size(next(iter(log))[:1]) * len(log)
        return "drawn" if size <= LARGEST_WINDOW else "log"
    check_choice("order", order, Order)
    if order == "drawn" and reason:
        raise ValueError(f'{reason}, so order="drawn" is not for it; take order="log"')
    return order


class Fit:
    """One call of ``fit``.

    Args:
        learner: the learner, an :class:`gvf.learners.base_learner.Observer`.
        log: the log.
        order: the order of the rows in a pass.
        epochs: the number of passes that bring updates.
        seed: the seed of shuffled orders.
        calls: the callbacks.
    """

    def __init__(
        self, learner: Any, log: ReadsInEpochs, order: Order, epochs: int, seed: Any, calls: Calls
    ) -> None:
        self._learner, self._calls, self._rows = learner, calls, len(log)
        self._filling, self._stopped = order == "drawn", False
        entropy = np.random.SeedSequence(seed).entropy
        self._passes = Passes(log, order, learner._keeps_order, entropy)
        self.total = self._rows * (epochs + self._filling)
        """The number of rows in all passes."""

    def run(self, interrupted: Callable[[], bool], advance: Callable[[int], object]) -> None:
        """Go on behind the rows that the learner has passed, to the end or an interruption."""
        learner, rows = self._learner, self._rows
        if self._filling and learner._fitted < rows:
            with learner._without_updates():
                self._take(0, interrupted, advance)
        while learner._fitted < self.total and not (interrupted() or self._stopped):
            if self._filling:
                self._draw(interrupted, advance)
            else:
                self._take(learner._fitted // rows, interrupted, advance)

    def _take(
        self, number: int, interrupted: Callable[[], bool], advance: Callable[[int], object]
    ) -> None:
        """Take in the rows of a pass, behind those that the learner has passed."""
        learner, skip = self._learner, self._learner._fitted - number * self._rows
        if not skip:
            # As in `learn`, the first rows may go on where those before ended.
            learner._begin_anew() if number else learner._change_source()
        for batch in batches.batches_of(self._passes.rows(number, skip)):
            pieces = [batch] if self._filling else self._calls.pieces(batch, learner._fitted)
            for piece in pieces:
                try:
                    learner._take_in(piece, learner.behaviour)
                except ValueError as error:
                    error.add_note(self._place(learner._fitted - number * self._rows))
                    raise
                learner._fitted += len(piece)
                if learner._fitted % self._rows == 0:
                    learner._end_source()
                advance(len(piece))
                self._stopped = not self._filling and self._calls.after(learner._fitted)
                if self._stopped or interrupted():
                    return

    def _draw(self, interrupted: Callable[[], bool], advance: Callable[[int], object]) -> None:
        """Update as often as the rows of the remaining passes would."""
        learner = self._learner
        while (left := self.total - learner._fitted) and not (interrupted() or self._stopped):
            passed = learner._fitted - self._rows  # the window was filled without updates
            count = self._calls.wait(passed, min(learner._rows_together, left))
            learner._draw(passed, count)
            learner._fitted += count
            advance(count)
            self._stopped = self._calls.after(passed + count)

    def _place(self, rows: int) -> str:
        if self._passes.order == "shuffled":
            return 'Positions are in shuffled rows; order="log" tells the place in the log.'
        return f"Positions count from transition {rows} of the log."
