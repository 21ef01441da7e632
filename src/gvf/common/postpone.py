"""Ctrl-C that waits until work in progress is complete."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def postponed_interrupt() -> Iterator[Callable[[], bool]]:
    """Postpone Ctrl-C to the end of this context; give a function that is True once it came.

    A second Ctrl-C is raised at once, since the first has no effect while a source waits for data.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    heard: list[int] = []

    def hear(number: int, frame: object) -> None:
        if heard:
            raise KeyboardInterrupt
        heard.append(number)

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield lambda: bool(heard)
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt
