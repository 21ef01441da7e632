"""A job: one of several independent pieces of work, known by its name and by what it depends on.

A result is a pure function of the job's key. So jobs can be done in any order, on any machine, and
a stored result can be recognised (:mod:`gvf.jobs.store`).
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
Stop = Callable[[], bool]
"""A function that is True once the work should stop."""


class Interrupted(Exception):  # noqa: N818 (it is no error)
    """The exception that ends a job that was told to stop; nothing of the job is kept."""


@dataclass(frozen=True)
class Job:
    """A piece of work.

    Attributes:
        name: its name, in messages and in the names of files.
        key: all that its result depends on, as JSON could hold it. It matters where results are
            stored.
        work: the arguments of whoever does it. They follow from the key, and tell no jobs apart.

    Example:
        >>> from gvf.jobs import Job
        >>> Job("half", {"log": "a3", "rows": 50}) == Job("half", {"log": "a3", "rows": 50})
        True
        >>> Job("half", {"log": "a3", "rows": 60}).digest
        'a4565810638cb7d7'
    """

    name: str
    key: Mapping[str, Any] = field(default_factory=dict, hash=False)
    work: Any = field(default=None, compare=False, repr=False)

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that depend only on the key."""
        text = json.dumps(self.key, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class JobResult(Generic[Value]):
    """The result of a job, and what it took.

    Attributes:
        job: the job.
        value: its result.
        seconds: the time that it took.
        cpu_seconds: the processor time of the thread that did it.
        host: the name of the machine that did it.
    """

    job: Job
    value: Value
    seconds: float
    cpu_seconds: float
    host: str


def perform(do: Callable[[Job, Stop], Value], job: Job, stop: Stop) -> JobResult[Value]:
    """Do a job; an exception gets a note with its name. Every place runs this function."""
    began, cpu = time.perf_counter(), time.thread_time()
    try:
        value = do(job, stop)
    except Exception as error:
        error.add_note(f"in job {job.name}")
        raise
    seconds, cpu_seconds = time.perf_counter() - began, time.thread_time() - cpu
    return JobResult(job, value, seconds, cpu_seconds, platform.node())
