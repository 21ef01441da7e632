"""Batches of transitions: how the sources of a learner are read, joined and cut.

A question takes hardly longer for a batch than for one transition, so single transitions are
joined; after Ctrl-C no more are awaited. Long batches are cut, because a learner is interrupted
only between batches, where its state is consistent.

A stream is read once (:func:`batches_of`), and a log in passes (:class:`Passes`), in its order or
in a shuffled one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gvf.common.checks import brief
from gvf.common.gymnasium import is_environment
from gvf.links import episode_starts
from gvf.transition import Transitions, as_transitions, check_item, is_transitions, together

JOINED_ROWS = 64
"""The number of single transitions joined into a batch, which hides the cost of a call. In an
environment, the behaviour acts for this many steps before the learner observes them."""
LONGEST_BATCH = 1024
"""The largest number of transitions in a batch, so that Ctrl-C takes effect soon."""
Order = Literal["log", "shuffled", "drawn"]


def batches_of(
    source: Iterable[Any],
    steps: int | None = None,
    act_steps: int | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[Transitions]:
    """Yield batches from an iterable of batches or mappings, at most `steps` transitions in all.

    Once `interrupted` is True, transitions that wait to be joined are yielded without others.
    """
    if isinstance(source, Mapping | str) or not isinstance(source, Iterable):
        raise TypeError(
            f"cannot learn from a {type(source).__name__}; give a Gymnasium environment, "
            "or an iterable of gvf.Transitions or of mappings; gvf.read_log reads files for fit"
        )
    joined = _grouped(
        _runs(source), act_steps or JOINED_ROWS, act_steps or LONGEST_BATCH, interrupted
    )
    return joined if steps is None else _first(joined, steps)


def _runs(source: Iterable[Any]) -> Iterator[Transitions | list[Mapping[str, Any]]]:
    for position, item in enumerate(source):
        check_item(item, position)
        yield item if isinstance(item, Transitions) else [item]


def _grouped(
    items: Iterable[Transitions | list[Mapping[str, Any]]],
    least: int,
    most: int,
    interrupted: Callable[[], bool],
) -> Iterator[Transitions]:
    """Join short items and cut long ones, so that a question evaluates many rows together."""
    waiting: list[Transitions | list[Mapping[str, Any]]] = []
    count = 0
    try:
        for item in items:
            if isinstance(item, Transitions) and len(item) > most:
                if waiting:
                    ready, waiting, count = waiting, [], 0
                    yield together(ready)
                yield from (item[start : start + most] for start in range(0, len(item), most))
                continue
            if waiting and isinstance(item, list) and isinstance(waiting[-1], list):
                waiting[-1].extend(item)
            else:
                waiting.append(item)
            count += len(item)
            if count >= least or interrupted():
                ready, waiting, count = waiting, [], 0
                yield together(ready)
    except (Exception, KeyboardInterrupt):  # the transitions before it are sound
        if waiting:
            yield together(waiting)
        raise
    if waiting:
        yield together(waiting)


def _first(parts: Iterable[Transitions], steps: int) -> Iterator[Transitions]:
    for batch in parts:
        yield batch[:steps]
        steps -= len(batch)
        if steps <= 0:
            return


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


class _BatchAsLog:
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
        return _BatchAsLog(as_transitions(log))
    if is_environment(log) or isinstance(log, Iterator):
        kind = "an environment" if is_environment(log) else "a stream"
        raise TypeError(f"fit takes a log, which it can read again; from {kind}, learn(...)")
    if not all(hasattr(log, name) for name in _LOG_MEMBERS):
        raise TypeError(
            f"fit takes a log, got {brief(log)}: gvf.read_log makes one of files, tables and lists "
            "of episodes; learn takes environments and streams"
        )
    return log


def check_stream(source: Any, info: Iterable[str] = ()) -> None:
    """Raise an error if ``learn`` cannot take a source that is no environment.

    A log or a batch is no stream, and a stream has no ``info`` from which to take values.

    Example:
        >>> import gvf
        >>> from gvf.learners.batches import check_stream
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
    if info:
        raise ValueError("info names values of an environment, and this source is none")


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
        step = LONGEST_BATCH
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


def _without_first(parts: Iterable[Transitions], skip: int) -> Iterator[Transitions]:
    for batch in parts:
        if skip < len(batch):
            yield batch[skip:] if skip else batch
        skip = max(skip - len(batch), 0)
