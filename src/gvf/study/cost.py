"""How long tasks take: learned from tasks that were done, or from a short probe.

A task walks, which takes the same time at every gap, and updates, as often as 1 / gap says:

    seconds = a + b / gap,

with a and b fitted to the median time at each gap (medians, since the first task of a process also
compiles). Tells the progress bar and ``gvf run --dry-run`` how much is left.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from gvf.study.study import Study, Task
from gvf.study.task import run_task

PROBE = 0.3
"""Seconds that a probe should take at least, where the task is long enough."""


class Costs:
    """Seconds of processor time of tasks, by gap.

    Example:
        >>> from gvf.study.cost import Costs
        >>> costs = Costs()
        >>> for gap, seconds in ((1, 5.0), (1, 5.0), (2, 3.0)):
        ...     costs.add(gap, seconds)
        >>> round(costs.of(4), 6)
        2.0
    """

    def __init__(self) -> None:
        self._seconds: defaultdict[int, list[float]] = defaultdict(list)

    def __bool__(self) -> bool:
        return bool(self._seconds)

    def add(self, gap: int, seconds: float) -> None:
        """A task with this gap took so long."""
        self._seconds[gap].append(seconds)

    def of(self, gap: int) -> float:
        """How long a task with this gap will take, about; 1 while nothing is known."""
        return self._fit([gap])[0]

    def total(self, tasks: Iterable[Task]) -> float:
        """How long these tasks will take together."""
        return sum(self._fit([task.gap for task in tasks]))

    def _fit(self, gaps: list[int]) -> list[float]:
        if not self:
            return [1.0] * len(gaps)
        known = np.array(sorted(self._seconds))
        seconds = np.array([np.median(self._seconds[gap]) for gap in known])
        slope, constant = (
            np.polyfit(1.0 / known, seconds, 1) if len(known) > 1 else (0.0, seconds[0])
        )
        # Never below a small share of the quickest that was seen.
        floor = 0.1 * float(seconds.min())
        return [max(floor, float(constant + slope / gap)) for gap in gaps]


def probe(study: Study) -> Costs:
    """Run the beginning of a task at the smallest and the largest gap, and scale it up."""
    costs = Costs()
    for gap in sorted({min(study.gaps), max(study.gaps)}):
        share = 0.01
        _seconds(study, gap, share)  # compiles, and finds the true values
        while (seconds := _seconds(study, gap, share)) < PROBE and share < 1.0:
            share = min(1.0, 4.0 * share)
        costs.add(gap, seconds / share)
    return costs


def _seconds(study: Study, gap: int, share: float) -> float:
    if study.updates:
        part = study.with_(updates=max(1, round(share * study.updates)))
    else:
        steps = study.warm_up + round(share * (study.steps - study.warm_up))
        part = study.with_(steps=max(steps, study.warm_up + gap, study.measure_every))
    task = Task(part, *part.pairs[0], gap, 0)
    began = time.thread_time()
    run_task(task)
    return time.thread_time() - began
