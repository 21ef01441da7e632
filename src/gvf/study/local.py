"""Threads of this process: the compiled loops release the interpreter's lock.

Workers take the next task when they are free. They are daemons, told to stop by an event which the
loops look at every fifth of a second or so: an interrupt waits for them a moment, never longer.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Iterable
from queue import Empty, SimpleQueue

from gvf.study.base import Interrupted, Task
from gvf.study.engine import Result, perform

PATIENCE = 1.0
"""Seconds that stopping waits for tasks in flight."""


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def results(tasks: Iterable[Task], workers: int | None = None) -> Generator[Result, None, None]:
    """Do tasks on threads and give their results as they come.

    Closing the iterator, or an exception such as an interrupt while waiting, stops the workers and
    drops what they are at.

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
                except Exception as error:
                    error.add_note(f"in task {task.name}")
                    raise
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
    try:
        while working:
            try:
                result = done.get(timeout=0.2)
            except Empty:
                continue
            if result is None:
                working -= 1
            elif isinstance(result, BaseException):
                raise result
            else:
                yield result
    finally:
        stop.set()
        deadline = time.monotonic() + PATIENCE
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
