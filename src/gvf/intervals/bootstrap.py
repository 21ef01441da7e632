"""The bootstrap of a learner over the episodes of a log.

A replicate is what the learner would have learned from a log in which every episode counts a random
number of times, Poisson(1) (:mod:`gvf.intervals.resampling`). The spread of the replicates'
predictions around that of the log is like the spread of the log's prediction over logs that could
have been. Replicates learn from draws of their own, or are solved for by least squares
(:mod:`gvf.intervals.replicates`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gvf.common.arrays import Floats
from gvf.common.checks import brief, check_choice, whole
from gvf.horde import Horde
from gvf.intervals.bootstrap_result import BootstrapResult, rank_of
from gvf.intervals.events import TooFewEventsError, count_events
from gvf.intervals.replicates import (
    Halves,
    Method,
    ReplicateArguments,
    Replicates,
    ReplicateWork,
)
from gvf.intervals.resampling import Units
from gvf.jobs import Job, JobResult, Workers, do_jobs, place_of
from gvf.learners.learner import Learner
from gvf.log import Log
from gvf.online import LSTDLearner
from gvf.updates.td import TD


def bootstrap(
    learner: Learner | Horde | LSTDLearner,
    log: Log,
    *,
    replicates: int = 199,
    level: float = 0.95,
    epochs: int = 1,
    method: Method | None = None,
    block: int | None = None,
    seed: int = 0,
    workers: Workers = None,
    progress: bool | None = None,
) -> BootstrapResult:
    """Learn from a log many times over, with episodes drawn anew, for intervals of predictions.

    Every replicate counts each episode a random number of times, and learns from draws of its own,
    as the learner does. An interval reaches as far from the prediction as the share ``level`` of
    the replicates does. It covers the chance in the log. It does not cover what would be wrong in
    every log: features that cannot represent the values, too few epochs
    (:meth:`Intervals.unfinished`), estimated ratios. Where the log never was, it is infinite.

    Args:
        learner: the learner, also one of least squares, or the horde. Only its arguments matter,
            and it does not change. It must have linear values and one step size.
        log: the log.
        replicates: the number of replicates, B. With 199, an interval of 95 % reaches as far as
            the 190th of them, in the order of their distances.
        level: the share of intervals that should cover the value.
        epochs: the number of passes over the log, as for the learner itself. Updates draw from the
            whole log, and an epoch has as many as its rows would bring; the learner's own window
            and warm-up have no effect.
        method: "td" to learn as the learner does; "lstd" to solve for the values that it tends to
            (as :class:`gvf.LSTDLearner` does), which needs neither step size nor epochs. By default
            "lstd" for such a learner, and "td" for the others.
        block: for a stream with few episodes or none, the number of steps after which it has
            forgotten where it was. Blocks of so many steps are then drawn, instead of episodes.
        seed: the seed. A replicate depends on it and on the replicate's number, and on no other
            replicate.
        workers: the number of threads, by default one for each processor; or a
            :class:`gvf.jobs.RayCluster`. The results are the same bits.
        progress: False to show none. By default it is a bar in a terminal, and elsewhere a line now
            and then. True adds a line at the end there.

    Returns:
        The :class:`BootstrapResult`.

    Raises:
        TooFewEventsError: if the log has too few events for a question (:func:`count_events`); a
            ``ValueError``.
        ValueError: if the log has fewer than 5 episodes or blocks, or if the learner has several
            step sizes or masses that change.

    Example:
        >>> import gvf
        >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "terminated": True}
        >>> walks = [walk | {"reward": [0.0, number % 3]} for number in range(30)]
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(
        ...     question,
        ...     gvf.features.OneHot(3),
        ...     gvf.updates.TD(0.1),
        ...     gvf.corrections.IR(),
        ...     behaviour=gvf.policies.Uniform(2),
        ... )
        >>> intervals = gvf.bootstrap(learner, gvf.read_log(walks, quiet=True), epochs=20, seed=1)
        >>> point, low, high = intervals.predict([0, 1])
        >>> bool((low < point).all() and (point < high).all())
        True
    """
    if method is None:
        method = "lstd" if isinstance(learner, LSTDLearner) else "td"
    check_choice("method", method, Method)
    if method == "td" and isinstance(learner, LSTDLearner):
        raise ValueError("an LSTDLearner has no step size to learn with: take method='lstd'")
    place = place_of(workers)
    rank_of(level, whole("replicates", replicates, 1))
    if not isinstance(log, Log):
        raise TypeError(f"bootstrap takes a gvf.Log, got {brief(log)}; gvf.read_log makes one")
    block = None if block is None else whole("block", block, 1)
    Units(log, block)  # checks their number, before anything is learned
    learners = _learners_of(learner)
    job = ReplicateArguments(log, block, whole("epochs", epochs, 1), method, whole("seed", seed, 0))
    for part in learners:
        events = count_events(part, log)
        if events.few:
            raise TooFewEventsError(events)
    numbers = range(replicates + 1)
    questions = [str(part.question) for part in learners]
    jobs = [
        Job(f"replicate {number} of {question}", work=(g, number))
        for g, question in enumerate(questions)
        for number in numbers
    ]
    work, waiting = ReplicateWork(job, learners), [dict[int, Halves]() for _ in learners]
    results: list[Replicates] = []

    def finish(result: JobResult[Halves]) -> None:
        g, number = result.job.work
        waiting[g][number] = result.value
        # Learners are finished in their order, so that few prepared logs are in memory.
        while len(results) < len(learners) and len(waiting[len(results)]) == len(numbers):
            ready = waiting[len(results)]
            computed = [ready.pop(number) for number in numbers]
            results.append(job.collect(work.whole(len(results)), computed))

    do_jobs(jobs, work, finish, place=place, title="bootstrap", total=len(jobs), progress=progress)
    names = learner.names if isinstance(learner, Horde) else None
    return intervals_of(job, learners, results, level, names)


def intervals_of(
    job: ReplicateArguments,
    learners: Sequence[Learner],
    results: Sequence[Replicates],
    level: float,
    names: Sequence[str] | None = None,
) -> BootstrapResult:
    """Make intervals of replicates 0, ..., B of each learner, from wherever they were computed.

    Args:
        job: the job that computed them.
        learners: the learners, one for each question.
        results: the replicates of each learner.
        level: the share of intervals that should cover the value.
        names: the names of a horde's questions; None for a single learner.
    """
    units = Units(job.log, job.block)
    uses_ratios = any(learner.correction.needs_ratios for learner in learners)
    return BootstrapResult(
        questions=(repr(learners[0].question),) if names is None else tuple(names),
        features=learners[0].features,
        policies=tuple(learner.values.prediction.policy for learner in learners),
        weights=np.stack([each.weights for each in results]),
        known=np.stack([each.known for each in results]),
        horde=names is not None,
        level=float(level),
        method=job.method,
        units=units.name,
        episodes=len(units),
        updates=results[0].updates,
        empty=max(each.empty for each in results),
        change=np.stack([_change(each) for each in results]),
        diverged=np.stack([each.diverged for each in results]),
        estimated=uses_ratios and bool(getattr(job.log, "has_estimates", False)),
    )


def _change(replicates: Replicates) -> Floats:
    """Return the mean change of the weights in the second half of learning, [rows]."""
    if replicates.diverged.any():
        return np.zeros(len(replicates.weights))
    return np.asarray((replicates.weights - replicates.halfway).mean(axis=1))


def _learners_of(learner: Learner | Horde | LSTDLearner) -> list[Learner]:
    """Return the learner, or a learner for each question of a horde."""
    if isinstance(learner, Horde):
        parts = learner.arguments()
        names = (
            "features",
            "update",
            "correction",
            "behaviour",
            "window",
            "batch_size",
            "update_every",
        )
        shared = {name: parts[name] for name in (*names, "warm_up", "on_conflict", "on_nan")}
        return [Learner(question, **shared) for question in learner.questions]
    if isinstance(learner, LSTDLearner):
        if learner.regulariser is not None:
            raise ValueError("replicates have no regulariser, and this learner has one of its own")
        names = ("question", "features", "correction", "behaviour", "on_conflict", "on_nan")
        shared = {name: getattr(learner, name) for name in names}
        return [Learner(update=TD(1.0), **shared)]
    if not isinstance(learner, Learner):
        raise TypeError(
            "bootstrap takes a gvf.Learner, a gvf.LSTDLearner or a gvf.Horde, got "
            f"{brief(learner)}; other learners have no lanes for replicates"
        )
    rule = learner.values.update_rule
    if rule.lanes is not None:
        raise ValueError(
            f"this learner has {rule.lanes} step sizes, and intervals are for one: choose it first"
        )
    if learner.correction.refresh is not None:
        raise ValueError(
            f"the masses of {learner.correction.name} follow the errors of a learner, and "
            "replicates draw by masses that stay; choose another correction, such as "
            "gvf.corrections.IR()"
        )
    return [learner]
