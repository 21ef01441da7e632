"""Doing jobs: those that are not stored, on threads or on a Ray cluster, with progress.

Results that are stored are read. The other jobs are done, and each result is stored as soon as it
is there, by the process that the user started. So an interrupt loses only the jobs in progress, and
the bits are the same at every place and with any number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any

from gvf.common.interrupts import postponed_interrupt
from gvf.common.progress import progress_of
from gvf.jobs.job import Job, JobResult, Stop, Value
from gvf.jobs.ray_cluster import RayCluster
from gvf.jobs.store import Store
from gvf.jobs.threads import Threads

Place = Threads | RayCluster
"""A place where jobs are done."""
Workers = int | Threads | RayCluster | None
"""An argument that names a place: a number of threads, or a place; None for one a processor."""


def run_jobs(
    jobs: Sequence[Job],
    do: Callable[[Job, Stop], Value],
    *,
    place: Place,
    store: Store | None = None,
    title: str,
    progress: bool | None = None,
    references: Iterable[str] = (),
) -> dict[Job, Value]:
    """Return the results of all jobs; do and store those that are missing.

    Args:
        jobs: the jobs. Equal ones are done once.
        do: the function that does a job. Its second argument is a function that it calls now and
            then; once that is True, it raises :class:`Interrupted`. What learns, or calls what
            learns, may leave this to :func:`gvf.common.interrupts.postponed_interrupt`. For a
            cluster, Ray must be able to pickle it.
        place: where they are done.
        store: the store of results, which are then arrays by name; by default nothing is stored.
        title: the title of the progress.
        progress: False to show none. By default it is a bar in a terminal, and elsewhere a line now
            and then. True adds a line at the end there.
        references: references ``"module:name"`` to the user's own code that the work needs. Its
            files are sent to the nodes of a cluster.

    Raises:
        KeyboardInterrupt: after Ctrl-C, once all that is finished is stored.
        Exception: that of a job which failed, with a note that names the job; what was finished
            before is stored.

    Example:
        >>> from gvf.jobs import Job, Threads, run_jobs
        >>> jobs = [Job(f"square of {number}", work=number) for number in range(3)]
        >>> results = run_jobs(
        ...     jobs, lambda job, stop: job.work**2, place=Threads(2), title="squares"
        ... )
        >>> [results[job] for job in jobs]
        [0, 1, 4]
    """
    values: dict[Job, Any] = {}
    jobs = list(dict.fromkeys(jobs))
    if store is not None:
        values = {job: arrays for job in jobs if (arrays := store.get(job)) is not None}

    def finish(result: JobResult[Value]) -> None:
        if store is not None:
            store.put(result.job, result.value)  # pyright: ignore[reportArgumentType]
        values[result.job] = result.value

    missing = [job for job in jobs if job not in values]
    do_jobs(
        missing, do, finish, place=place, title=title, total=len(jobs), before=len(values),
        progress=progress, references=references,
    )  # fmt: skip
    return values


def do_jobs(
    jobs: Iterable[Job],
    do: Callable[[Job, Stop], Value],
    finish: Callable[[JobResult[Value]], object],
    *,
    place: Place,
    title: str,
    total: int,
    before: int = 0,
    left: Callable[[], float] | None = None,
    transient: bool = False,
    progress: bool | None = None,
    references: Iterable[str] = (),
) -> None:
    """Do jobs, and hand each result over as soon as it is there; nothing is remembered.

    Args:
        jobs: the jobs; each is asked for when a worker is free.
        do: as for :func:`run_jobs`.
        finish: the function that takes each result, in this thread, in any order. Ctrl-C never
            interrupts it.
        place: where they are done.
        title: the title of the progress.
        total: the number of jobs, with those that were done before.
        before: the number of jobs that were done before.
        left: a function that estimates the seconds left, for jobs that take different times.
        transient: True if the bar of progress disappears at the end.
        progress: as for :func:`run_jobs`.
        references: as for :func:`run_jobs`.
    """
    if before == total:
        return
    with (
        postponed_interrupt() as interrupted,
        progress_of(title, total, before, show=progress, left=left, transient=transient) as advance,
        closing(place.results(do, jobs, interrupted, references)) as results,
    ):
        for result in results:
            finish(result)
            advance()


def place_of(workers: Workers) -> Place:
    """Return the place that an argument ``workers`` means.

    Example:
        >>> from gvf.jobs import RayCluster, place_of
        >>> place_of(4).workers, place_of(RayCluster("auto")).address
        (4, 'auto')
    """
    if isinstance(workers, Threads | RayCluster):
        return workers
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int)):
        raise TypeError(f"workers must be a number or a gvf.jobs.RayCluster, got {workers!r}")
    return Threads(workers)
