"""The work of a bootstrap: the weights of some replicates, on this machine or on several.

A replicate is known by its number; number 0 is the log itself. Its counts follow from the seed and
the number, and the draws, which all share, from the seed, so any slice of the replicates can be
computed anywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from gvf.common import cluster
from gvf.common.arrays import Bools, Floats
from gvf.intervals.counts import Units, counts
from gvf.intervals.lanes import Lanes, of_lanes
from gvf.intervals.least_squares import Equations
from gvf.intervals.whole import WholeLog, check
from gvf.learner.learner import Learner
from gvf.log import Log

Method = Literal["td", "lstd"]
_SECONDS = 0.1
"""Seconds between looks for Ctrl-C, about."""


@dataclass(frozen=True)
class Replicates:
    """The weights that some replicates have learned.

    Attributes:
        weights: the weights, float64[rows, replicates].
        updates: the number of updates; 0 for least squares.
        empty: the number of replicates without a row of positive mass.
        known: True for weights with a feature that some row of positive mass has, bool[rows].
        halfway: the weights after half of the updates, float64[rows, replicates]; for least squares
            those at the end.
        diverged: True for replicates that have diverged, bool[replicates]: a weight is not finite,
            or a prediction is above the limit of :class:`gvf.LearnerReport`.
    """

    weights: Floats
    updates: int
    empty: int
    known: Bools
    halfway: Floats
    diverged: Bools

    @classmethod
    def joined(cls, parts: Sequence[Replicates]) -> Self:
        """Join replicates that were computed apart, in the order of their numbers."""
        return cls(
            weights=np.concatenate([part.weights for part in parts], axis=1),
            updates=int(parts[0].updates),
            empty=sum(int(part.empty) for part in parts),
            known=parts[0].known,
            halfway=np.concatenate([part.halfway for part in parts], axis=1),
            diverged=np.concatenate([part.diverged for part in parts]),
        )


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Job:
    """The arguments that replicates of any learner have in common; see :func:`gvf.bootstrap`."""

    log: Log
    block: int | None
    epochs: int
    method: Method
    seed: int

    def steps(self, replicates: int) -> int:
        """Return the number of steps of progress with so many replicates."""
        return len(self.log) * (1 + self.epochs) if self.method == "td" else replicates

    def run(
        self,
        learner: Learner,
        numbers: Sequence[int],
        interrupted: Callable[[], bool] = _never,
        advance: Callable[[int], object] = lambda count: None,
    ) -> Replicates:
        """Compute some replicates of a learner, by their numbers, unless it is interrupted."""
        units = Units(self.log, self.block)
        whole = WholeLog(learner, self.log, units, self.seed)
        td = self.method == "td"
        whole.take(self.log, interrupted, advance if td else lambda count: None)
        copies = counts(len(units), numbers, self.seed)
        if td:
            lanes = Lanes(whole, copies)
            halfway = self._learn(whole, lanes, interrupted, advance)
            weights = lanes.state.weights
        else:
            equations, solved = Equations(whole), []
            for lane in range(len(numbers)):
                check(interrupted)
                solved.append(equations.solve(copies[:, lane]))
                advance(1)
            weights = halfway = np.stack(solved, axis=1)
        _, factor = of_lanes(whole, copies)
        return Replicates(
            weights=weights,
            updates=whole.updates,
            empty=int((factor == 0.0).sum()),
            known=whole.known,
            halfway=halfway,
            diverged=whole.diverged(weights),
        )

    def _learn(
        self,
        whole: WholeLog,
        lanes: Lanes,
        interrupted: Callable[[], bool],
        advance: Callable[[int], object],
    ) -> Floats:
        """Update as often as the passes over the log would bring; the window is full already.

        Return the weights after half of the updates.
        """
        due, done, together = len(whole.window) * self.epochs // whole.schedule.every, 0, 1
        halfway = lanes.state.weights.copy()
        while done < due:
            check(interrupted)
            left = (due if done >= due // 2 else due // 2) - done
            start, count = time.perf_counter(), min(together, left)
            lanes.learn(count)
            # Compiling takes long the first time, so slices grow slowly.
            seconds = (time.perf_counter() - start) / count
            together = max(1, min(2 * together, int(_SECONDS / max(seconds, 1e-9))))
            total = len(self.log) * self.epochs
            advance((done + count) * total // due - done * total // due)
            done += count
            if done <= due // 2:
                halfway = lanes.state.weights.copy()
        return halfway


def spread(
    job: Job,
    learner: Learner,
    replicates: int,
    workers: int | None,
    address: str | None,
    advance: Callable[[int], object],
) -> Replicates:
    """Compute replicates 0 ... replicates - 1 of a learner in slices on a Ray cluster."""
    ray = cluster.import_ray()
    ours = cluster.connect(ray, workers, address)
    pending = []
    try:
        count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        slices = [part for part in np.array_split(np.arange(replicates), count) if len(part)]
        remote, job_there = ray.remote(num_cpus=1)(_run), ray.put(job)
        pending = [remote.remote(job_there, learner, part.tolist()) for part in slices]
        waiting, steps = pending, job.steps(replicates)
        while waiting:
            # The timeout lets an interrupt through.
            ready, waiting = ray.wait(waiting, timeout=0.2)
            done = len(slices) - len(waiting)
            advance(done * steps // len(slices) - (done - len(ready)) * steps // len(slices))
        found: list[Replicates] = ray.get(pending)
    finally:
        if ours:
            ray.shutdown()
        else:
            for task in pending:
                ray.cancel(task, force=True)
    return Replicates.joined(found)


def _run(job: Job, learner: Learner, numbers: list[int]) -> Replicates:
    return job.run(learner, numbers)
