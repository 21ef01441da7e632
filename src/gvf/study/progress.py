"""How far a run is, and how long the rest takes: a bar where someone is watching, else plain lines.

A task walks, which takes the same time at every gap, and updates, as often as 1 / gap says:

    seconds = a + b / gap,

with a and b fitted to the median time at each gap (medians, since the first task of a process also
compiles), of tasks that were done, or of a short probe.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from gvf.study.base import Task
from gvf.study.store import Store

EVERY = 10.0
"""Seconds between plain lines."""


class Progress(Protocol):
    """Told of every task that is done."""

    def __call__(self, task: Task, seconds: float) -> None:
        """This task is done and took so much processor time."""


class Account:
    """What is done and what is left, in tasks and in time."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks, self.done = len(tasks), 0
        self._left, self._finished = Counter(map(gap_of, tasks)), Counter[int]()
        self._costs, self._began = Costs(), time.perf_counter()

    def add(self, task: Task, seconds: float) -> None:
        """One more is done."""
        self.done += 1
        self._left[gap_of(task)] -= 1
        self._finished[gap_of(task)] += 1
        self._costs.add(gap_of(task), seconds)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._began

    @property
    def remaining(self) -> float:
        """Seconds that the rest will take, at the speed so far."""
        left, done = (self._costs.total(counts) for counts in (self._left, self._finished))
        return self.elapsed * left / done if done else float("inf")

    @property
    def rate(self) -> str:
        """Tasks in a second, or in a minute, or in an hour."""
        speed = self.done / max(self.elapsed, 1e-9)
        for unit, length in (("s", 1), ("min", 60)):
            if speed * length >= 1:
                return f"{speed * length:.3g} tasks/{unit}"
        return f"{speed * 3600:.2g} tasks/h"


@contextmanager
def progress(tasks: Sequence[Task], title: str) -> Iterator[Progress]:
    """Show, on stderr, how these tasks are getting done."""
    shown = _bar(tasks, title) if sys.stderr.isatty() else _lines(tasks, title)
    with shown as tell:
        yield tell


@contextmanager
def _lines(tasks: Sequence[Task], title: str) -> Iterator[Progress]:
    account, last = Account(tasks), time.perf_counter()

    def tell(task: Task, seconds: float) -> None:
        nonlocal last
        account.add(task, seconds)
        if time.perf_counter() - last >= EVERY and account.done < account.tasks:
            last = time.perf_counter()
            print(
                f"{title}: {account.done} of {account.tasks} tasks, {account.rate}, "
                f"about {duration(account.remaining)} left",
                file=sys.stderr,
                flush=True,
            )

    yield tell


@contextmanager
def _bar(tasks: Sequence[Task], title: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Rich

    bar = Rich(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[speed]}", style="dim"),
        console=Console(stderr=True),
        transient=True,
    )
    account = Account(tasks)
    row = bar.add_task(title, total=len(tasks), speed="starting")

    def tell(task: Task, seconds: float) -> None:
        account.add(task, seconds)
        left = f"{account.rate}, about {duration(account.remaining)} left"
        bar.update(row, advance=1, speed=left)

    with bar:
        yield tell


def duration(seconds: float) -> str:
    """A time as a person would say it.

    Example:
        >>> from gvf.study.progress import duration
        >>> duration(0.3), duration(75), duration(7300)
        ('1 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds == float("inf"):
        return "an unknown time"
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 3600:
        return f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def gap_of(task: Task) -> int:
    """A task's gap; 1 where there is no such thing."""
    return task.gap or 1


class Costs:
    """Seconds of processor time of tasks, by gap.

    Example:
        >>> from gvf.study.progress import Costs
        >>> costs = Costs()
        >>> for gap, seconds in ((1, 5.0), (1, 5.0), (2, 3.0)):
        ...     costs.add(gap, seconds)
        >>> round(costs.total({4: 1}), 6)
        2.0
    """

    def __init__(self) -> None:
        self._seconds: defaultdict[int, list[float]] = defaultdict(list)

    def __bool__(self) -> bool:
        return bool(self._seconds)

    def add(self, gap: int, seconds: float) -> None:
        """A task with this gap took so long."""
        self._seconds[gap].append(seconds)

    def total(self, counts: Mapping[int, int]) -> float:
        """How long so many tasks of each gap will take, about; one each, while nothing is known."""
        if not self:
            return float(sum(counts.values()))
        gaps = np.array(sorted(self._seconds))
        seconds = np.array([np.median(self._seconds[gap]) for gap in gaps])
        slope, constant = np.polyfit(1 / gaps, seconds, 1) if len(gaps) > 1 else (0.0, seconds[0])
        # Never below a share of the quickest that was seen.
        floor = 0.1 * seconds.min()
        return float(sum(n * max(floor, constant + slope / gap) for gap, n in counts.items()))


def costs(store: Store) -> tuple[Costs, bool]:
    """What tasks of a study cost, and whether that comes from its log: otherwise from a probe."""
    known = Costs()
    gaps = {task.name: gap_of(task) for task in store.study.tasks()}
    for facts in store.logged():
        gap, seconds = gaps.get(str(facts.get("task"))), facts.get("cpu_seconds")
        if gap is not None and isinstance(seconds, float):
            known.add(gap, seconds)
    if known:
        return known, True
    for gap, seconds in store.study.probe().items():
        known.add(gap, seconds)
    return known, False
