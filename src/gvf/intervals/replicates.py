"""The work of a bootstrap: the weights of some replicates, on this machine or on several.

A replicate is known by its number; number 0 is the log itself. Its counts and its draws follow from
the seed and the number, so any slice of the replicates can be computed anywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from gvf.common.arrays import Array, Bools, Floats
from gvf.intervals.replicate_learner import Resampled
from gvf.intervals.resampling import Units, counts
from gvf.intervals.whole_log import WholeLog, check
from gvf.jobs import ray_cluster
from gvf.jobs.threads import Interrupted, Stop, on_threads
from gvf.learners.learner import Learner
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
class ReplicateArguments:
    """The arguments that replicates of any learner have in common; see :func:`gvf.bootstrap`."""

    log: Log
    block: int | None
    epochs: int
    method: Method
    seed: int

    def run(
        self,
        learner: Learner,
        numbers: Sequence[int],
        interrupted: Stop = _never,
        advance: Callable[[int], object] = lambda count: None,
        threads: int = 1,
    ) -> Replicates:
        """Compute some replicates of a learner, by their numbers, unless it is interrupted.

        Progress advances by 1 with each replicate. The results are the same bits with any number of
        threads.
        """
        units = Units(self.log, self.block)
        whole = WholeLog(learner, self.log, units, self.seed)
        whole.take(self.log, interrupted)
        copies = counts(len(units), numbers, self.seed)
        td = self.method == "td"
        updates = len(whole.window) * self.epochs // whole.schedule.update_every if td else 0

        def compute(lane: int, ended: Stop) -> tuple[int, Floats, Floats]:
            def stop() -> bool:
                return ended() or interrupted()

            if td:
                seed = np.random.SeedSequence([self.seed, numbers[lane]]).spawn(1)[0]
                return lane, *learned(Resampled(whole, copies[:, lane], seed), updates, stop)
            if stop():
                raise Interrupted
            solution = solved(whole, copies[:, lane])
            return lane, solution, solution

        shape = len(whole.values.state.weights), len(numbers)
        halfway, weights = np.empty(shape), np.empty(shape)
        with closing(on_threads(compute, range(len(numbers)), threads)) as computed:
            for lane, *both in computed:
                halfway[:, lane], weights[:, lane] = both
                advance(1)
        check(interrupted)
        rows = np.bincount(whole.unit, whole.masses > 0.0, len(units))
        return Replicates(
            weights=weights,
            updates=updates,
            empty=int((rows @ copies == 0).sum()),
            known=whole.known,
            halfway=halfway,
            diverged=whole.diverged(weights, updates),
        )


def learned(replicate: Resampled, updates: int, stop: Stop = _never) -> tuple[Floats, Floats]:
    """Let a replicate learn; return its weights after half of the updates, and after all."""
    halves = []
    for due in (updates // 2, updates - updates // 2):
        together = 1
        while due > 0:
            if stop():
                raise Interrupted
            start, count = time.perf_counter(), min(together, due)
            replicate.learn(count)
            due -= count
            # Compiling takes long the first time, so slices grow slowly.
            seconds = (time.perf_counter() - start) / count
            together = max(1, min(2 * together, int(_SECONDS / max(seconds, 1e-9))))
        halves.append(replicate.weights.copy())
    return halves[0], halves[1]


def solved(whole: WholeLog, copies: Array) -> Floats:
    """Solve for the fixed point of TD(0) over the log of a replicate, from the count of each unit.

    It is what replicates that learn tend to, as their step size falls and their updates grow in
    number. Where there are several solutions, as with most tile coders, it is that of least norm. A
    feature that no row of the replicate has keeps the weight 0.
    """
    equations = whole.equations.emptied()
    equations.add(whole.experience, whole.shares * copies[whole.unit])
    return equations.solve(singular="least norm").weights


def spread(
    job: ReplicateArguments,
    learner: Learner,
    replicates: int,
    workers: int | None,
    address: str | None,
    advance: Callable[[int], object],
) -> Replicates:
    """Compute replicates 0 ... replicates - 1 of a learner in slices on a Ray cluster."""
    ray = ray_cluster.import_ray()
    ours = ray_cluster.connect(ray, workers, address)
    pending = []
    try:
        count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        slices = [part for part in np.array_split(np.arange(replicates), count) if len(part)]
        remote, job_there = ray.remote(num_cpus=1)(_run), ray.put(job)
        pending = [remote.remote(job_there, learner, part.tolist()) for part in slices]
        waiting, sizes = pending, dict(zip(pending, map(len, slices), strict=True))
        while waiting:
            # The timeout lets an interrupt through.
            ready, waiting = ray.wait(waiting, timeout=0.2)
            advance(sum(sizes[task] for task in ready))
        results: list[Replicates] = ray.get(pending)
    finally:
        if ours:
            ray.shutdown()
        else:
            for task in pending:
                ray.cancel(task, force=True)
    return Replicates.joined(results)


def _run(job: ReplicateArguments, learner: Learner, numbers: list[int]) -> Replicates:
    return job.run(learner, numbers)
