"""Work on threads of this process: items in, results out, in any order.

Compiled loops release the interpreter's lock, so threads are enough. Each worker takes the next
item when it is free. Workers are daemon threads. An event tells them to stop, and the work itself
looks at it now and then, so an interrupt never waits long.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Iterable
from queue import Empty, SimpleQueue
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Stop = Callable[[], bool]
"""A function that is True once the work should stop."""


class Interrupted(Exception):  # noqa: N818 (it is no error)
    """The exception that ends a task that was told to stop; nothing of the task is kept."""


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def on_threads(
    do: Callable[[Item, Stop], Result],
    items: Iterable[Item],
    workers: int | None = None,
    patience: float = 5.0,
) -> Generator[Result, None, None]:
    """Do items on threads and yield their results as they come.

    Closing the iterator, or an exception such as an interrupt, stops the workers and drops
    unfinished items. If one fails, the results of finished ones come before its exception.

    Args:
        do: the work on an item. It calls its second argument now and then, and raises
            :class:`Interrupted` once that is True.
        items: the items.
        workers: the number of threads; by default one for each processor.
        patience: the seconds that workers have to stop; a second interrupt leaves at once.

    Example:
        >>> from gvf.jobs.threads import on_threads
        >>> sorted(on_threads(lambda item, stop: item**2, [3, 1, 2], workers=2))
        [1, 4, 9]
    """
    todo, lock = iter(items), threading.Lock()
    stop = threading.Event()
    done: SimpleQueue[tuple[Result] | BaseException | None] = SimpleQueue()

    def work() -> None:
        try:
            while not stop.is_set():
                with lock:
                    item = next(todo, stop)
                if item is stop:
                    break
                try:
                    done.put((do(item, stop.is_set),))  # pyright: ignore[reportArgumentType]
                except Interrupted:
                    break
        except BaseException as error:
            done.put(error)
        finally:
            done.put(None)

    threads = [
        threading.Thread(target=work, daemon=True, name=f"gvf-worker-{i}")
        for i in range(workers or processors())
    ]
    for thread in threads:
        thread.start()
    working = len(threads)

    def end() -> None:
        stop.set()
        deadline = time.monotonic() + patience
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    try:
        while working:
            try:
                result = done.get(timeout=0.2)
            except Empty:
                continue
            if result is None:
                working -= 1
            elif isinstance(result, BaseException):
                end()
                while not done.empty():
                    if isinstance(finished := done.get(), tuple):
                        yield finished[0]
                raise result
            else:
                yield result[0]
    finally:
        end()
