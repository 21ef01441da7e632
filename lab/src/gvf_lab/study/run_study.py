"""Running a study: do the missing tasks as jobs (:mod:`gvf.jobs`), and store their results.

The process that the user started writes all results, so the files are the same bytes on threads and
on a Ray cluster, with any number of workers. On a cluster the module files of a user's own domains
and corrections are sent along, and so is the registration of an environment. A node needs only gvf
and the installed packages that those modules import.

The time left is estimated from the times of other tasks. A task takes a time for the walk, which is
the same at every gap, and a time for updates, whose number is proportional to 1 / gap:

    seconds = a + b / gap,

with a and b fitted to the median time at each gap. Medians, because the first task of a process
also compiles. The times are those of finished tasks, or of a short probe.
"""

from __future__ import annotations

import pickle
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from gvf.common.gymnasium import gym
from gvf.common.progress import duration
from gvf.common.version import __version__
from gvf.jobs import Job, JobResult, RayCluster, Stop, Workers, do_jobs, place_of
from gvf_lab import domain as domains
from gvf_lab.study.base_study import BaseStudy, Task
from gvf_lab.study.encoding import encode
from gvf_lab.study.settings import references
from gvf_lab.study.store import DEFAULT_OUT, Store


@dataclass(frozen=True)
class Summary:
    """The tasks that a run did, and those that were done before it.

    Attributes:
        tasks: the number of tasks asked for.
        done: the number of tasks computed now.
        skipped: the number of tasks done before, or by another process in the meantime.
        damaged: the number of tasks computed again because their files were damaged.
        seconds: the time that the run took.
        folder: the folder of the results.
        unfit: a line for each set of results that does not fit the study's settings, with the
            reason.
        cpu_seconds: the processor time of the tasks computed now.
        cpu_seconds_before: the processor time of the other tasks, as far as the log has it.
    """

    tasks: int
    done: int
    skipped: int
    damaged: int
    seconds: float
    folder: Path
    unfit: tuple[str, ...] = ()
    cpu_seconds: float = 0.0
    cpu_seconds_before: float = 0.0

    @property
    def text(self) -> str:
        """A sentence about the tasks done now and before.

        Example:
            >>> from pathlib import Path
            >>> from gvf_lab.study import Summary
            >>> Summary(60, 48, 12, 0, 75.0, Path("out"), (), 140.0, 35.0).text
            '12 of 60 tasks done before (35 s of processor time); 48 done now in 1 min 15 s \
(2 min 20 s of processor time)'
        """
        before = f"done before{_processor_time(self.cpu_seconds_before)}"
        now = f"in {duration(self.seconds)}{_processor_time(self.cpu_seconds)}"
        many = self.tasks != 1
        if not self.done:
            return f"all {self.tasks} tasks {before}" if many else before
        if not self.skipped:
            return f"{self.tasks} tasks done {now}" if many else f"done {now}"
        return f"{self.skipped} of {self.tasks} tasks {before}; {self.done} done now {now}"


def _processor_time(seconds: float) -> str:
    return f" ({duration(seconds)} of processor time)" if seconds else ""


def perform(registration: bytes | None, job: Job, stop: Stop) -> bytes:
    """Do a task and return the bytes of its file.

    Args:
        registration: the specification of the domain's environment, pickled, for a process of a
            cluster, which may not know it.
        job: the task as a job.
        stop: a function that is True once the work should stop.
    """
    spec = registration and pickle.loads(registration)
    if spec and gym.registry.get(spec.id) != spec:
        gym.registry[spec.id] = spec
    task: Task = job.work
    return encode(task, task.study.compute(task, stop))


def _registration(domain: str) -> bytes:
    """Pickle an environment's specification; it may name classes in the files that are sent."""
    try:
        # An environment named "module:Id" is registered on the node by its module.
        return pickle.dumps(None if ":" in domain else domains.registered(domain))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"the registration of {domain!r} cannot be sent to other machines ({error}): register "
            'it in a module, and name it "module:Id"'
        ) from error


def _check_facts(facts: dict[str, Any], store: Store) -> None:
    """Raise an error if the stored results were made from other facts, such as a recording."""
    for name, value in facts.items():
        before = store.fact(name)
        if before not in (None, value):
            raise ValueError(
                f"the results in {store.folder} come from other material than that in the cache "
                f"({name} {before[:12]}..., not {value[:12]}...): name another folder with --out"
            )


def run(
    study: BaseStudy,
    out: str | Path = DEFAULT_OUT,
    *,
    workers: Workers = None,
    tasks: Iterable[Task] | None = None,
) -> Summary:
    """Compute the missing results of a study.

    An interrupt (Ctrl-C, a power cut, a full disk) loses only the tasks in progress, and the next
    call continues from there. Damaged results are named in a warning, set aside and computed again.

    Args:
        study: the study to run.
        out: the folder of results.
        workers: the number of tasks done at once, by default one for each processor, or a
            :class:`gvf.jobs.RayCluster`.
        tasks: some of the study's tasks; by default all.

    Example:
        >>> from gvf_lab.study import Study
        >>> from gvf_lab.study.run_study import run
        >>> import tempfile
        >>> study = Study("mine", "markov-chain", ("IR",), (0.5, 1), updates=20, runs=1)
        >>> folder = tempfile.mkdtemp()
        >>> run(study, folder).done, run(study, folder).done
        (3, 0)
    """
    chosen = list(study.tasks() if tasks is None else tasks)
    for task in chosen:
        if task.study != study:
            raise ValueError(f"task {task.name} is not one of this study, {study.name!r}")
    began = time.perf_counter()
    place = study.place(place_of(workers))
    on_ray = isinstance(place, RayCluster)
    store = Store(study, out)
    store.sweep()
    missing, damaged = store.survey(chosen)
    facts, unfit = {}, ()
    if missing:
        study.check()
        facts = study.facts()
        _check_facts(facts, store)
        unfit = () if store.folder.exists() else tuple(store.unfit())
        store.prepare()
    account, times = Account(missing), dict[str, float]()

    def finish(result: JobResult[bytes]) -> None:
        task: Task = result.job.work
        store.save(task, result.value)
        study.finished(task)
        took = result.seconds if study.own_threads else result.cpu_seconds
        store.log(
            task=task.name,
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=round(result.seconds, 4),
            cpu_seconds=round(took, 4),
            host=result.host,
            engine="ray" if on_ray else "local",
            workers=place.workers,
            version=__version__,
            **facts,
        )
        account.add(task, took)
        times[task.name] = took

    do_jobs(
        # Each is checked again when its turn comes, since another process may have done it.
        (Job(task.name, work=task) for task in missing if not store.path(task).exists()),
        partial(perform, _registration(study.domain) if on_ray and missing else None),
        finish,
        place=place,
        title=study.name,
        total=len(chosen),
        before=len(chosen) - len(missing),
        left=account.remaining,
        transient=True,
        references=references(study),
    )
    logged = spent(store)
    return Summary(
        tasks=len(chosen),
        done=len(times),
        skipped=len(chosen) - len(times),
        damaged=len(damaged),
        seconds=time.perf_counter() - began,
        folder=store.folder,
        unfit=unfit,
        cpu_seconds=sum(times.values()),
        cpu_seconds_before=sum(
            logged.get(task.name, 0.0) for task in chosen if task.name not in times
        ),
    )


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
        >>> from gvf_lab.study.run_study import Costs
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
