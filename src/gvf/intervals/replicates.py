"""Replicates: a learner of a log in which every unit occurs as often as it counts.

A learner of that log, with the whole of it as its window, draws row i in proportion to

    N_i p_i,

N_i being the count of row i's unit and p_i the mass of the row, and weighs a batch by the means of
that log. A replicate does the same with the rows of the log itself, which all replicates share
(:mod:`gvf.intervals.whole_log`, :mod:`gvf.intervals.replicate_learner`). It
has weights, masses, means and a stream of draws of its own. So replicates differ by their draws, as
learners of different logs do, and a row is never more than a row of a batch: a step is not larger
than that of the learner. As their step size falls and their updates grow in number, replicates tend
to the solution of least squares with the weights N_i p_i w_i, which :func:`solved` computes.

A replicate is known by its number; number 0 is the log itself. Its counts and its draws follow from
the seed and the number, so any of the replicates can be computed anywhere.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from gvf.common.arrays import Array, Bools, Floats
from gvf.intervals.replicate_learner import Replicate
from gvf.intervals.resampling import Units, counts
from gvf.intervals.whole_log import WholeLog
from gvf.jobs import Interrupted, Job, Stop
from gvf.learners.learner import Learner
from gvf.log import Log

Method = Literal["td", "lstd"]
_SECONDS = 0.1
"""Seconds between looks for Ctrl-C, about."""
_PREPARED = 2
"""The number of logs, as seen by different learners, that are kept in memory."""


def _never() -> bool:
    return False


def learned(replicate: Replicate, updates: int, stop: Stop = _never) -> tuple[Floats, Floats]:
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

    Where there are several solutions, as with most tile coders, it is that of least norm. A feature
    that no row of the replicate has keeps the weight 0.
    """
    equations = whole.equations.emptied()
    equations.add(whole.experience, whole.shares * copies[whole.unit])
    return equations.solve(singular="least norm").weights


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


class Halves(NamedTuple):
    """The weights of a replicate after half of its updates, and after all, float64[rows] each.

    `is_empty` is True if the replicate has no row of positive mass.
    """

    halfway: Floats
    weights: Floats
    is_empty: bool


@dataclass(frozen=True)
class ReplicateArguments:
    """The arguments that replicates of any learner have in common; see :func:`gvf.bootstrap`."""

    log: Log
    block: int | None
    epochs: int
    method: Method
    seed: int

    def prepare(self, learner: Learner) -> WholeLog:
        """Return the log as a learner sees it."""
        return WholeLog(learner, self.log, Units(self.log, self.block), self.seed)

    def one(self, whole: WholeLog, number: int, stop: Stop) -> Halves:
        """Compute a replicate, unless it should stop."""
        copies = counts(len(whole.units), [number], self.seed)[:, 0]
        is_empty = not copies[whole.units_with_mass].any()
        if self.method == "td":
            seed = np.random.SeedSequence([self.seed, number]).spawn(1)[0]
            halves = learned(Replicate(whole, copies, seed), self._updates(whole), stop)
            return Halves(*halves, is_empty)
        if stop():
            raise Interrupted
        solution = solved(whole, copies)
        return Halves(solution, solution, is_empty)

    def _updates(self, whole: WholeLog) -> int:
        update_every = whole.learner.schedule.update_every
        return len(whole.buffer) * self.epochs // update_every if self.method == "td" else 0

    def collect(self, whole: WholeLog, computed: Sequence[Halves]) -> Replicates:
        """Put replicates together, with what the log says of them."""
        updates = self._updates(whole)
        weights = np.stack([each.weights for each in computed], axis=1)
        return Replicates(
            weights=weights,
            updates=updates,
            empty=sum(each.is_empty for each in computed),
            known=whole.known,
            halfway=np.stack([each.halfway for each in computed], axis=1),
            diverged=whole.diverged(weights, updates),
        )

    def run(self, learner: Learner, numbers: Sequence[int], stop: Stop = _never) -> Replicates:
        """Compute some replicates of a learner, by their numbers, unless it should stop."""
        whole = self.prepare(learner)
        computed = [self.one(whole, number, stop) for number in numbers]
        return self.collect(whole, computed)


class ReplicateWork:
    """Do jobs, whose work is the number of a learner and that of a replicate.

    Any process can do it. Each prepares the log for a learner when it does the first of its jobs.

    Args:
        arguments: the arguments of all replicates.
        learners: the learners.
    """

    def __init__(self, arguments: ReplicateArguments, learners: Sequence[Learner]) -> None:
        self._arguments, self._learners = arguments, learners
        self._prepared: OrderedDict[int, WholeLog] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[ReplicateWork], tuple[Any, ...]]:
        return type(self), (self._arguments, self._learners)

    def whole(self, number: int) -> WholeLog:
        """Return the log as a learner sees it."""
        with self._lock:
            if number not in self._prepared:
                self._prepared[number] = self._arguments.prepare(self._learners[number])
                if len(self._prepared) > _PREPARED:
                    self._prepared.popitem(last=False)
            return self._prepared[number]

    def __call__(self, job: Job, stop: Stop) -> Halves:
        """Do a job."""
        learner, replicate = job.work
        return self._arguments.one(self.whole(learner), replicate, stop)
