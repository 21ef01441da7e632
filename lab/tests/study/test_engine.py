"""Engines: however a study is spread, stopped, killed and resumed, its bits are the same."""

import random
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import pytest
from study_runs import STOPPED, STUDY, beside_progress, digests, needs_posix, start

from gvf.jobs import Interrupted, Job, RayCluster, Threads
from gvf_lab.study import run_task
from gvf_lab.study.run_study import perform, run
from gvf_lab.study.store import Store

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_the_number_of_workers_changes_no_bit(
    tmp_path: Path, undisturbed: dict[str, str], workers: int
) -> None:
    run(STUDY, tmp_path, workers=workers)
    assert digests(tmp_path) == undisturbed


@needs_posix
@pytest.mark.parametrize("seed", range(10))
def test_stopped_or_killed_at_two_random_moments_and_resumed(
    tmp_path: Path, toml: Path, undisturbed: dict[str, str], seed: int
) -> None:
    rng = random.Random(seed)
    out = tmp_path / "out"
    for stop in rng.sample([signal.SIGINT, signal.SIGKILL], 2):
        process = start(toml, out, workers=rng.choice([1, 2, 3]))
        # At the start, or when so many more results are there, give or take a moment.
        wanted = len(digests(out)) + rng.choice([0, 1, 2, 4, 6, 9])
        deadline = time.monotonic() + 30
        while len(list(out.glob("**/*.parquet"))) < wanted and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.8) if wanted == 0 else rng.uniform(0, 0.05))
        process.send_signal(stop)
        process.communicate(timeout=30)
        assert digests(out).items() <= undisturbed.items()
    process = start(toml, out, workers=rng.choice([1, 2, 4]))
    told, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert beside_progress(errors) == ""
    # If this process is slow, the sweep may be finished before it is stopped.
    assert re.match(r"sweep: ((\d+ of|all) 30 tasks done before|30 tasks done in) ", told)
    assert digests(out) == undisturbed


@needs_posix
def test_an_interrupt_is_one_line_and_keeps_what_is_done(tmp_path: Path, toml: Path) -> None:
    out = tmp_path / "out"
    # So many tasks take minutes, and are never done before the interrupt.
    process = start(toml, out, 1, "--set", "runs=5000")
    while len(list(out.glob("**/*.parquet"))) < 2 and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    told, errors = process.communicate(timeout=30)
    assert (process.returncode, told, beside_progress(errors)) == (130, "", STOPPED)
    assert 2 <= len(digests(out)) < 10_000


DEAF = """
import sys, time
from gvf.cli import main
from gvf_lab.study import task

def deaf(*_):
    print("begun", flush=True)
    time.sleep(60)

task.run_task = deaf
sys.exit(main(["study", "run", *sys.argv[1:], "--workers", "1"]))
"""


@needs_posix
def test_an_interrupt_does_not_wait_for_a_task_that_does_not_listen(
    tmp_path: Path, toml: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", DEAF, toml, "--out", tmp_path / "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, beside_progress(errors)) == (130, STOPPED)


def test_two_processes_at_once_do_no_harm(
    tmp_path: Path, toml: Path, undisturbed: dict[str, str]
) -> None:
    both = [start(toml, tmp_path / "out", workers=2) for _ in range(2)]
    for process in both:
        assert beside_progress(process.communicate(timeout=60)[1]) == ""
        assert process.returncode == 0
    assert digests(tmp_path / "out") == undisturbed


def test_closing_the_results_ends_the_task_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    many = tuple(range(200))  # many lanes: a long task whose walk is soon over
    quick = next(STUDY.tasks())
    long = next(STUDY.with_(steps=100_000, step_sizes=many).tasks())
    began, interrupted = threading.Event(), threading.Event()

    def noted(task, stop):
        if task == long:
            began.set()
        try:
            return run_task(task, stop)
        except Interrupted:
            interrupted.set()
            raise

    monkeypatch.setattr("gvf_lab.study.task.run_task", noted)
    jobs = [Job(task.name, work=task) for task in (quick, long)]
    results = Threads(1).results(partial(perform, None), jobs)
    assert next(results).job.work == quick
    assert began.wait(30)
    results.close()
    assert interrupted.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("gvf-worker")]


def test_a_study_says_how_long_its_tasks_may_take_to_stop() -> None:
    assert STUDY.place(Threads(2)) == Threads(2, patience=1.0)
    assert STUDY.place(RayCluster("auto")) == RayCluster("auto")


def test_a_task_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(task, stop):
        raise RuntimeError("broken")

    monkeypatch.setattr("gvf_lab.study.task.run_task", fail)
    with pytest.raises(RuntimeError, match="broken") as caught:
        run(STUDY, tmp_path)
    assert caught.value.__notes__ == [f"in job {next(STUDY.tasks()).name}"]


def test_results_that_are_finished_when_a_task_fails_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *_ = STUDY.tasks()
    failed, finished = threading.Event(), threading.Event()

    class Slow(SimpleQueue):
        """A queue that is read only once a result lies behind the failure."""

        def put(self, item, block=True, timeout=None):
            super().put(item, block, timeout)
            if isinstance(item, RuntimeError):
                failed.set()
            elif isinstance(item, tuple):
                finished.set()

        def get(self, block=True, timeout=None):
            assert finished.wait(30)
            return super().get(block, timeout)

    def fail_first(task, stop):
        if task == first:
            raise RuntimeError("broken")
        assert failed.wait(30)
        return run_task(task, stop)

    monkeypatch.setattr("gvf.jobs.threads.SimpleQueue", Slow)
    monkeypatch.setattr("gvf_lab.study.task.run_task", fail_first)
    with pytest.raises(RuntimeError, match="broken"):
        run(STUDY, tmp_path, workers=2, tasks=[first, second])
    assert Store(STUDY, tmp_path).path(second).exists()
