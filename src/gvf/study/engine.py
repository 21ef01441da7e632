"""Running a study: the missing tasks, on threads here or on a Ray cluster, into the store.

An engine turns tasks into results, in whatever order they come; it never touches a file. One
process writes them all, the one that the user started, and so the files are the same bytes whatever
the engine and the number of workers: :mod:`gvf.study.local`, :mod:`gvf.study.ray_engine`.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import gvf
from gvf.domain.domain import known
from gvf.study.progress import progress
from gvf.study.racing import RacingStudy, RacingTask
from gvf.study.store import DEFAULT_OUT, AnyResult, AnyStudy, AnyTask, Store, encode
from gvf.study.task import run_task
from gvf.study.variance import VarianceTask, run_variance

ENGINES = ("local", "ray")
"""Threads of this process; tasks of a Ray cluster."""


class Result(NamedTuple):
    """What became of a task.

    Attributes:
        task: which one.
        content: its file.
        seconds: how long it took.
        cpu_seconds: how much of a processor's time it took.
        host: where.
    """

    task: AnyTask
    content: bytes
    seconds: float
    cpu_seconds: float
    host: str


@dataclass(frozen=True)
class Summary:
    """What a run did.

    Attributes:
        tasks: how many were asked for.
        done: how many were computed now.
        skipped: how many were there already.
        damaged: how many of those computed had a damaged file before.
        seconds: how long it took.
        folder: where the results are.
    """

    tasks: int
    done: int
    skipped: int
    damaged: int
    seconds: float
    folder: Path


def perform(task: AnyTask, stop: Callable[[], bool] = lambda: False) -> Result:
    """Do a task: the function that every engine runs."""
    began, cpu = time.perf_counter(), time.thread_time()
    content = encode(task, _result(task, stop))
    seconds, cpu_seconds = time.perf_counter() - began, time.thread_time() - cpu
    if isinstance(task, RacingTask):
        cpu_seconds = seconds  # PyTorch has threads of its own, or a GPU
    return Result(task, content, seconds, cpu_seconds, platform.node())


def _result(task: AnyTask, stop: Callable[[], bool]) -> AnyResult:
    if isinstance(task, VarianceTask):
        return run_variance(task, stop)
    if isinstance(task, RacingTask):
        from gvf.study.racing_task import run_racing

        return run_racing(task, stop)
    return run_task(task, stop)


def _stream(study: RacingStudy, store: Store) -> str:
    """The hash of the stream that a study learns from, which must be that of its other results."""
    from gvf.study.racing_task import material

    found = material(study).stream.hash
    before = next((line["stream"] for line in store.logged() if "stream" in line), found)
    if before != found:
        raise ValueError(
            f"the results in {store.folder} come from another stream ({before[:12]}...) than the "
            f"one in the cache ({found[:12]}...): name another folder with --out"
        )
    return found


def run(
    study: AnyStudy,
    out: str | Path = DEFAULT_OUT,
    *,
    workers: int | None = None,
    engine: str = "local",
    address: str | None = None,
    tasks: Iterable[AnyTask] | None = None,
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
    store = Store(study, out)
    store.sweep()
    missing, damaged = store.survey(chosen)
    facts: dict[str, Any] = {}
    if isinstance(study, RacingStudy):
        if engine == "ray":
            raise ValueError("the racing car learns where its recordings are: no engine 'ray'")
        workers = 1 if study.device == "cuda" else workers  # a run has a whole GPU, or a processor
        if missing:
            facts["stream"] = _stream(study, store)
    if missing:
        store.prepare()
    # Looked at again when its turn comes: another process may have done it in the meantime.
    wanted = (task for task in missing if not store.path(task).exists())
    if engine == "ray":
        from gvf.study import ray_engine

        results = ray_engine.results(wanted, workers, address)
    else:
        from gvf.study import local

        results = local.results(wanted, workers)
    done = 0
    with closing(results), progress(missing, study.name) as tell:
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
                version=gvf.__version__,
                **facts,
            )
            tell(result.task, result.cpu_seconds)
            done += 1
    seconds = time.perf_counter() - began
    return Summary(len(chosen), done, len(chosen) - done, len(damaged), seconds, store.folder)
