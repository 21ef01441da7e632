"""Running a study: the missing tasks, on threads here or on a Ray cluster, into the store.

An engine turns tasks into results, in whatever order they come; it never touches a file. One
process writes them all, the one that the user started, and so the files are the same bytes whatever
the engine and the number of workers: :mod:`gvf.study.local`, :mod:`gvf.study.ray_engine`.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from gvf.common.names import known
from gvf.common.progress import duration
from gvf.common.version import __version__
from gvf.study.base import BaseStudy, Stop, Task
from gvf.study.encoding import encode
from gvf.study.progress import progress, spent
from gvf.study.store import DEFAULT_OUT, Store

ENGINES = ("local", "ray")
"""The engines: threads of this process, and tasks of a Ray cluster."""


class Result(NamedTuple):
    """A task that is done.

    Attributes:
        task: which one.
        content: the bytes of its file.
        seconds: how long it took.
        cpu_seconds: how much of a processor's time it took.
        host: the machine that did it.
    """

    task: Task
    content: bytes
    seconds: float
    cpu_seconds: float
    host: str


@dataclass(frozen=True)
class Summary:
    """What a run did, and what was done before it.

    Attributes:
        tasks: how many were asked for.
        done: how many were computed now.
        skipped: how many were done before, or by another process in the meantime.
        damaged: how many of those computed had a damaged file before.
        seconds: how long the run took.
        folder: where the results are.
        unfit: a line for each set of results of the study that do not fit its settings, and why.
        cpu_seconds: the processor time of the tasks computed now.
        cpu_seconds_before: the processor time of the others, as far as the log has it.
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
    def told(self) -> str:
        """What was done now and what before, in words.

        Example:
            >>> from pathlib import Path
            >>> from gvf.study import Summary
            >>> Summary(60, 48, 12, 0, 75.0, Path("out"), (), 140.0, 35.0).told
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


def perform(task: Task, stop: Stop = lambda: False) -> Result:
    """Do a task. Every engine runs this function."""
    began, cpu = time.perf_counter(), time.thread_time()
    content = encode(task, task.study.compute(task, stop))
    seconds, cpu_seconds = time.perf_counter() - began, time.thread_time() - cpu
    if task.study.own_threads:
        cpu_seconds = seconds
    return Result(task, content, seconds, cpu_seconds, platform.node())


def _check_facts(facts: dict[str, Any], store: Store) -> None:
    """Refuse to add to results that were made from another recording."""
    for name, found in facts.items():
        before = next((line[name] for line in store.logged() if name in line), found)
        if before != found:
            raise ValueError(
                f"the results in {store.folder} come from another {name} ({before[:12]}...) than "
                f"the one in the cache ({found[:12]}...): name another folder with --out"
            )


def run(
    study: BaseStudy,
    out: str | Path = DEFAULT_OUT,
    *,
    workers: int | None = None,
    engine: str = "local",
    address: str | None = None,
    tasks: Iterable[Task] | None = None,
) -> Summary:
    """Compute the results of a study that are missing.

    Interrupted (Ctrl-C, a power cut, a full disk) it loses only the tasks in flight; run again, it
    goes on from there. Damaged results are named in a warning, set aside and computed again.

    Args:
        study: what to run.
        out: the folder of results.
        workers: how many tasks are done at once; by default as many as there are processors.
        engine: "local" or "ray".
        address: of a Ray cluster; by default one on this machine.
        tasks: some of the study's tasks; by default all.

    Example:
        >>> from gvf.study import Study
        >>> from gvf.study.engine import run
        >>> import tempfile
        >>> study = Study("mine", "markov-chain", ("IR",), (0.5, 1), updates=20, runs=1)
        >>> folder = tempfile.mkdtemp()
        >>> run(study, folder).done, run(study, folder).done
        (3, 0)
    """
    known(engine, ENGINES, "engine")
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    if address is not None and engine != "ray":
        raise ValueError("an address is that of a Ray cluster: choose the engine 'ray' with it")
    chosen = list(study.tasks() if tasks is None else tasks)
    for task in chosen:
        if task.study != study:
            raise ValueError(f"task {task.name} is not one of this study, {study.name!r}")
    began = time.perf_counter()
    workers = study.workers(engine, workers)
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
    # Each is looked for again when its turn comes: another process may have done it meanwhile.
    wanted = (task for task in missing if not store.path(task).exists())
    if engine == "ray":
        from gvf.study import ray_engine

        results = ray_engine.results(wanted, workers, address)
    else:
        from gvf.study import local

        results = local.results(wanted, workers)
    times: dict[str, float] = {}
    with closing(results), progress(missing, study.name, len(chosen) - len(missing)) as tell:
        for result in results:
            store.save(result.task, result.content)
            store.log(
                task=result.task.name,
                finished=datetime.now(UTC).isoformat(timespec="seconds"),
                seconds=round(result.seconds, 4),
                cpu_seconds=round(result.cpu_seconds, 4),
                host=result.host,
                engine=engine,
                workers=workers,
                version=__version__,
                **facts,
            )
            tell(result.task, result.cpu_seconds)
            times[result.task.name] = result.cpu_seconds
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
