"""The local engine: threads of this process, since compiled loops release the interpreter's lock.

Each worker takes the next task when it is free. Workers are daemon threads. An event tells them to
stop; the loops check it about every 0.2 seconds, so an interrupt never waits long. A study says how
long its tasks may take to stop.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Iterable
from queue import Empty, SimpleQueue

from gvf.study.base import BaseStudy, Interrupted, Task
from gvf.study.engine import Result, perform


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def results(
    tasks: Iterable[Task], workers: int | None = None, patience: float = BaseStudy.patience
) -> Generator[Result, None, None]:
    """Do tasks on threads and yield their results as they come.

    Closing the iterator, or an exception such as an interrupt, stops the workers and drops
    unfinished tasks. Workers have `patience` seconds to stop; a second interrupt leaves at once. If
    a task fails, the results of finished tasks come before its exception.

    Example:
        >>> from gvf.study import Study
        >>> from gvf.study.local import results
        >>> study = Study("mine", "markov-chain", ("IR",), (0.5, 1), updates=20, runs=2)
        >>> sorted(result.task.run for result in results(study.tasks(), workers=2))
        [0, 0, 0, 1, 1, 1]
    """
    todo, lock = iter(tasks), threading.Lock()
    stop = threading.Event()
    done: SimpleQueue[Result | BaseException | None] = SimpleQueue()

    def work() -> None:
        try:
            while not stop.is_set():
                with lock:
                    task = next(todo, None)
                if task is None:
                    break
                try:
                    done.put(perform(task, stop.is_set))
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
                    if isinstance(finished := done.get(), Result):
                        yield finished
                raise result
            else:
                yield result
    finally:
        end()
