"""The way from a source of transitions to a learner: batches, Ctrl-C, a progress bar.

A question looks at a batch in the time that it takes to look at one transition, so single ones are
joined, and long ones are cut. A learner is interrupted between two batches only, when all of its
parts agree.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gvf.common.progress import progress_bar
from gvf.transition import Transitions, joined

JOINED = 64
"""Single transitions are joined to so many, which hides the cost of a call. In an environment, the
behaviour acts for so many steps before the learner sees them."""
CUT = 1024
"""Long batches are cut to so many transitions, so that Ctrl-C is heard soon."""


def batches(
    source: Iterable[Any], steps: int | None = None, chunk: int | None = None
) -> Iterator[Transitions]:
    """Batches from an iterable of batches or mappings, at most `steps` transitions in all."""
    source = [source] if isinstance(source, Transitions) else source
    if isinstance(source, Mapping | str) or not isinstance(source, Iterable):
        raise TypeError(
            f"cannot learn from a {type(source).__name__}; give a Gymnasium environment, "
            "gvf.Transitions, or an iterable of these or of mappings"
        )
    joined = _grouped(_runs(source), chunk or JOINED, chunk or CUT)
    return joined if steps is None else _first(joined, steps)


def _runs(source: Iterable[Any]) -> Iterator[Transitions | list[Mapping[str, Any]]]:
    for position, item in enumerate(source):
        if isinstance(item, Transitions | Mapping):
            yield item if isinstance(item, Transitions) else [item]
        else:
            raise TypeError(
                f"item {position} is a {type(item).__name__}; give gvf.Transitions (a batch) or "
                "mappings (one transition): {'state': ..., 'action': ..., 'reward': ..., "
                "'next_state': ..., 'terminated': ..., 'behaviour_probability': ...}"
            )


def _grouped(
    items: Iterable[Transitions | list[Mapping[str, Any]]], least: int, most: int
) -> Iterator[Transitions]:
    """Join what is short and cut what is long, so that a question looks at many rows together."""
    waiting: list[Transitions | list[Mapping[str, Any]]] = []
    count = 0
    for item in items:
        if isinstance(item, Transitions) and len(item) > most:
            if waiting:
                yield _joined(waiting)
                waiting, count = [], 0
            yield from (item[start : start + most] for start in range(0, len(item), most))
            continue
        if waiting and isinstance(item, list) and isinstance(waiting[-1], list):
            waiting[-1].extend(item)
        else:
            waiting.append(item)
        count += len(item)
        if count >= least:
            yield _joined(waiting)
            waiting, count = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(items: list[Transitions | list[Mapping[str, Any]]]) -> Transitions:
    return Transitions.concatenate(
        [item if isinstance(item, Transitions) else _from_mappings(item) for item in items]
    )


def _from_mappings(rows: list[Mapping[str, Any]]) -> Transitions:
    """One batch from mappings with the same keys, column by column."""
    names = rows[0].keys()
    for row in rows:
        if row.keys() != names:
            raise ValueError(
                f"all transitions must have the same columns; some have {', '.join(names)}, "
                f"others {', '.join(row)}"
            )
    return Transitions(**{name: joined([row[name] for row in rows]) for name in names})


def _first(batches: Iterable[Transitions], steps: int) -> Iterator[Transitions]:
    for batch in batches:
        yield batch[:steps]
        steps -= len(batch)
        if steps <= 0:
            return


@contextmanager
def postponed_interrupt() -> Iterator[Callable[[], bool]]:
    """Hear Ctrl-C between batches only; raise KeyboardInterrupt at the end if there was one."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        yield lambda: bool(heard)
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


@contextmanager
def bar(progress: bool | None, total: int | None) -> Iterator[Callable[[int], object]]:
    """A progress bar, by default if standard error is a terminal; gives what advances it."""
    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda rows: None
        return
    with progress_bar() as shown:
        task = shown.add_task("learning", total=total)
        yield lambda rows: shown.advance(task, rows)
