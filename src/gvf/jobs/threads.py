"""Jobs on threads of this process, as compiled loops release the interpreter's lock.

Each worker takes the next item when it is free. Workers are daemon threads. An event tells them to
stop. The work looks at it now and then, so an interrupt never waits long; what learns from a log or
a stream looks at it by itself (:func:`gvf.common.interrupts.postponed_interrupt`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from gvf.common.interrupts import interrupted_by
from gvf.jobs.job import Interrupted, Job, JobResult, Stop, Value, perform

Item = TypeVar("Item")
Result = TypeVar("Result")


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def never() -> bool:
    """Return False: nothing stops the work."""
    return False


@dataclass(frozen=True)
class Threads:
    """Threads of this process, as the place where jobs are done.

    Attributes:
        workers: the number of threads; by default one for each processor.
        patience: the seconds that jobs in progress have to stop; a second interrupt leaves at once.
    """

    workers: int | None = None
    patience: float = 5.0

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {self.workers}")

    def results(
        self,
        do: Callable[[Job, Stop], Value],
        jobs: Iterable[Job],
        interrupted: Stop = never,
        references: Iterable[str] = (),
    ) -> Generator[JobResult[Value], None, None]:
        """Do jobs and yield their results as they come; see :func:`gvf.jobs.do_jobs`."""
        one = partial(_perform, do)
        yield from on_threads(one, jobs, self.workers, self.patience, interrupted)


def _perform(do: Callable[[Job, Stop], Value], job: Job, stop: Stop) -> JobResult[Value]:
    return perform(do, job, stop)


def on_threads(
    do: Callable[[Item, Stop], Result],
    items: Iterable[Item],
    workers: int | None = None,
    patience: float = 5.0,
    interrupted: Stop = never,
) -> Generator[Result, None, None]:
    """Do items on threads and yield their results as they come.

    Closing the iterator, or an exception such as an interrupt, stops the workers and drops
    unfinished items. If an item fails, or `interrupted` is True, the results of finished ones still
    come before the exception or the end.

    Args:
        do: the work on an item. It calls its second argument now and then, and raises
            :class:`Interrupted` once that is True.
        items: the items.
        workers: the number of threads; by default one for each processor.
        patience: the seconds that workers have to stop; a second interrupt leaves at once.
        interrupted: a function that is True once the work should end.

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
                    item: Any = next(todo, stop)
                if item is stop:
                    break
                try:
                    with interrupted_by(stop.is_set):
                        result = do(item, stop.is_set)
                except (Interrupted, KeyboardInterrupt):
                    if stop.is_set():
                        break
                    raise
                done.put((result,))
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
    working, failure = len(threads), None

    def end() -> None:
        stop.set()
        deadline = time.monotonic() + patience
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    try:
        while working and failure is None and not interrupted():
            try:
                result = done.get(timeout=0.2)
            except Empty:
                continue
            if result is None:
                working -= 1
            elif isinstance(result, BaseException):
                failure = result
            else:
                yield result[0]
        end()
        while not done.empty():
            if isinstance(result := done.get(), tuple):
                yield result[0]
        if failure is not None:
            raise failure
    finally:
        end()
