"""What stands between a source of transitions and a learner: batches, Ctrl-C, a progress bar.

A question looks at a batch in the time that it takes to look at one transition, so single ones are
joined. A learner is interrupted between two batches only, when all of its parts agree.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from gvf.transition import Transitions

_CHUNK = 64  # transitions that are joined: enough to hide the cost of a call


def batches(source: Iterable[Any], steps: int | None = None) -> Iterator[Transitions]:
    """Batches from an iterable of batches or mappings, at most `steps` transitions in all."""
    source = [source] if isinstance(source, Transitions) else source
    joined = _grouped(_as_batch(item, i) for i, item in enumerate(source))
    return joined if steps is None else _first(joined, steps)


def _as_batch(item: Any, position: int) -> Transitions:
    if isinstance(item, Transitions):
        return item
    if isinstance(item, Mapping):
        return Transitions(**{name: np.asarray(value)[None] for name, value in item.items()})
    raise TypeError(
        f"item {position} is a {type(item).__name__}; give gvf.Transitions (a batch) or mappings "
        "(one transition): {'state': ..., 'action': ..., 'reward': ..., 'next_state': ..., "
        "'terminated': ..., 'behaviour_probability': ...}"
    )


def _grouped(batches: Iterable[Transitions]) -> Iterator[Transitions]:
    """Join small batches, so that a question looks at many transitions together."""
    waiting: list[Transitions] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += len(batch)
        if rows >= _CHUNK:
            yield Transitions.concatenate(waiting)
            waiting, rows = [], 0
    if waiting:
        yield Transitions.concatenate(waiting)


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
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:3], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("learning", total=total)
        yield lambda rows: bar.advance(task, rows)
