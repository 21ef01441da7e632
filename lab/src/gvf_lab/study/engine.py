"""Running a study: compute the missing tasks, on threads or on a Ray cluster, and store them.

An engine (:mod:`gvf_lab.study.local_engine` or :mod:`gvf_lab.study.ray_engine`) turns tasks into
results, in any order, and never writes a file. The process that the user started writes all
results, so the files are the same bytes with every engine and every number of workers.
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

from gvf.common.part_names import known
from gvf.common.progress import duration
from gvf.common.version import __version__
from gvf_lab.study.base_study import BaseStudy, Stop, Task
from gvf_lab.study.encoding import encode
from gvf_lab.study.store import DEFAULT_OUT, Store
from gvf_lab.study.study_progress import progress, spent

ENGINES = ("local", "ray")
"""The engines: threads of this process, and tasks of a Ray cluster."""


class Result(NamedTuple):
    """The result of a task.

    Attributes:
        task: the task.
        content: the bytes of its file.
        seconds: the time that it took.
        cpu_seconds: the processor time that it took.
        host: the name of the machine that did it.
    """

    task: Task
    content: bytes
    seconds: float
    cpu_seconds: float
    host: str


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


def perform(task: Task, stop: Stop = lambda: False) -> Result:
    """Do a task; an exception gets a note with its name. Every engine runs this function."""
    began, cpu = time.perf_counter(), time.thread_time()
    try:
        content = encode(task, task.study.compute(task, stop))
    except Exception as error:
        error.add_note(f"in task {task.name}")
        raise
    seconds, cpu_seconds = time.perf_counter() - began, time.thread_time() - cpu
    if task.study.own_threads:
        cpu_seconds = seconds
    return Result(task, content, seconds, cpu_seconds, platform.node())


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
    workers: int | None = None,
    engine: str = "local",
    address: str | None = None,
    tasks: Iterable[Task] | None = None,
) -> Summary:
    """Compute the missing results of a study.

    An interrupt (Ctrl-C, a power cut, a full disk) loses only the tasks in progress, and the next
    call continues from there. Damaged results are named in a warning, set aside and computed again.

    Args:
        study: the study to run.
        out: the folder of results.
        workers: the number of tasks done at once; by default one for each processor.
        engine: "local" or "ray".
        address: the address of a Ray cluster; by default one is started on this machine.
        tasks: some of the study's tasks; by default all.

    Example:
        >>> from gvf_lab.study import Study
        >>> from gvf_lab.study.engine import run
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
    # Each is checked again when its turn comes, since another process may have done it meanwhile.
    wanted = (task for task in missing if not store.path(task).exists())
    if engine == "ray":
        from gvf_lab.study import ray_engine

        results = ray_engine.results(wanted, workers, address)
    else:
        from gvf_lab.study import local_engine as local

        results = local.results(wanted, workers, study.patience)
    times: dict[str, float] = {}
    with closing(results), progress(missing, study.name, len(chosen) - len(missing)) as tell:
        for result in results:
            store.save(result.task, result.content)
            study.finished(result.task)
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
