"""An estimate of the time that tasks will take, from the times of others.

A task takes a time for the walk, which is the same at every gap, and a time for updates, whose
number is proportional to 1 / gap:

    seconds = a + b / gap,

with a and b fitted to the median time at each gap. Medians, because the first task of a process
also compiles. The times are those of finished tasks, or of a short probe.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from threading import Lock

import numpy as np

from gvf_lab.study.base_study import Task
from gvf_lab.study.store import Store


class Account:
    """The times of the tasks done so far, and an estimate of that of the others."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._left, self._finished = Counter(map(gap_of, tasks)), Counter[int]()
        self._costs, self._began = Costs(), time.perf_counter()
        self._lock = Lock()  # the thread that shows the progress asks for the time left

    def add(self, task: Task, seconds: float) -> None:
        """Count a task that took this many seconds of processor time."""
        with self._lock:
            self._left[gap_of(task)] -= 1
            self._finished[gap_of(task)] += 1
            self._costs.add(gap_of(task), seconds)

    def remaining(self) -> float:
        """Return the seconds that the remaining tasks will take, at the speed so far."""
        with self._lock:
            left, done = (self._costs.total(counts) for counts in (self._left, self._finished))
        return (time.perf_counter() - self._began) * left / done if done else float("inf")


def gap_of(task: Task) -> int:
    """Return a task's gap; 1 if its study has no gaps."""
    return task.gap or 1


class Costs:
    """Seconds of processor time of tasks, by gap.

    Example:
        >>> from gvf_lab.study.study_progress import Costs
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
        """Add the seconds of a task with this gap."""
        self._seconds[gap].append(seconds)

    def total(self, counts: Mapping[int, int]) -> float:
        """Estimate the seconds that tasks take; before any cost is known, count a second a task.

        Args:
            counts: the number of tasks, by gap.
        """
        if not self:
            return float(sum(counts.values()))
        gaps = np.array(sorted(self._seconds))
        seconds = np.array([np.median(self._seconds[gap]) for gap in gaps])
        slope, constant = np.polyfit(1 / gaps, seconds, 1) if len(gaps) > 1 else (0.0, seconds[0])
        # The fitted line may fall below zero, so estimates have a floor.
        floor = 0.1 * seconds.min()
        return float(sum(n * max(floor, constant + slope / gap) for gap, n in counts.items()))


def spent(store: Store) -> dict[str, float]:
    """Return the seconds of processor time of finished tasks, by name, from a study's log."""
    times = {str(line.get("task")): line.get("cpu_seconds") for line in store.logged()}
    return {name: float(took) for name, took in times.items() if isinstance(took, float | int)}


def costs(store: Store) -> tuple[Costs, bool]:
    """Return the costs of a study's tasks, and True if they come from its log, not from a probe."""
    known = Costs()
    gaps = {task.name: gap_of(task) for task in store.study.tasks()}
    for name, seconds in spent(store).items():
        if name in gaps:
            known.add(gaps[name], seconds)
    if known:
        return known, True
    for gap, seconds in store.study.probe().items():
        known.add(gap, seconds)
    return known, False
