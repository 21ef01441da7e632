"""Running a study: do the missing tasks as jobs (:mod:`gvf.jobs`), and store their results.

The process that the user started writes all results, so the files are the same bytes on threads and
on a Ray cluster, with any number of workers. On a cluster the module files of a user's own domains
and corrections are sent along, and so is the registration of an environment. A node needs only gvf
and the installed packages that those modules import.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from gvf.common.gymnasium import gym
from gvf.common.progress import duration
from gvf.common.version import __version__
from gvf.jobs import Job, JobResult, RayCluster, Stop, Workers, do_jobs, place_of
from gvf_lab import domain as domains
from gvf_lab.study.base_study import BaseStudy, Task
from gvf_lab.study.encoding import encode, references
from gvf_lab.study.store import DEFAULT_OUT, Store
from gvf_lab.study.study_progress import Account, spent


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
