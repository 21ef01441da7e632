"""How long tasks take: learned from tasks that were done, or from a short probe.

A task walks, which takes the same time at every gap, and updates, as often as 1 / gap says:

    seconds = a + b / gap,

with a and b fitted to the median time at each gap (medians, since the first task of a process also
compiles). Tells the progress bar and ``gvf run --dry-run`` how much is left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from gvf.study.base import Task
from gvf.study.store import Store


def gap_of(task: Task) -> int:
    """A task's gap; 1 where there is no such thing."""
    return task.gap or 1


class Costs:
    """Seconds of processor time of tasks, by gap.

    Example:
        >>> from gvf.study.cost import Costs
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
