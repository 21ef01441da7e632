"""Jobs: the same results at every place, stored as they come, and nothing finished is lost."""

import os
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest

from gvf.common.interrupts import postponed_interrupt
from gvf.common.progress import Progress
from gvf.jobs import (
    Interrupted,
    Job,
    RayCluster,
    Store,
    Threads,
    do_jobs,
    on_threads,
    place_of,
    run_jobs,
)

needs_posix = pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")


def draw(job, stop):
    """Draw numbers from the job's own seed."""
    return {"numbers": np.random.default_rng(job.work).random(3)}


def some_jobs(count):
    return [Job(f"draw {seed}", {"seed": seed}, seed) for seed in range(count)]


def bits(results):
    return {job.name: arrays["numbers"].tobytes() for job, arrays in results.items()}


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_the_number_of_threads_changes_no_bit(workers):
    results = run_jobs(some_jobs(20), draw, place=Threads(workers), title="drawing")
    assert bits(results) == {
        job.name: draw(job, None)["numbers"].tobytes() for job in some_jobs(20)
    }


def test_what_is_stored_is_not_done_again(tmp_path):
    store, done = Store(tmp_path / "out"), []

    def note(job, stop):
        done.append(job.work)
        return draw(job, stop)

    first = run_jobs(some_jobs(3), note, place=Threads(1), store=store, title="drawing")
    again = run_jobs(some_jobs(5), note, place=Threads(1), store=store, title="drawing")
    assert done == [0, 1, 2, 3, 4]
    assert bits(first).items() <= bits(again).items()
    # Another key is another result, whatever the name.
    other = Job("draw 0", {"seed": 0, "log": "b"}, 7)
    run_jobs([other], note, place=Threads(1), store=store, title="drawing")
    assert done[-1] == 7


def test_equal_jobs_are_done_once():
    done = []
    job = Job("a", {"rows": 1})
    results = run_jobs(
        [job, Job("a", {"rows": 1}), Job("a", {"rows": 2})],
        lambda job, stop: done.append(job.key["rows"]),
        place=Threads(1),
        title="counting",
    )
    assert (done, len(results)) == ([1, 2], 2)


def test_a_job_that_fails_is_named_and_what_is_finished_is_stored(tmp_path):
    store, failed = Store(tmp_path), threading.Event()

    def fail_second(job, stop):
        if job.work == 1:
            failed.set()
            raise RuntimeError("broken")
        assert failed.wait(30)
        return draw(job, stop)

    with pytest.raises(RuntimeError, match="broken") as caught:
        run_jobs(some_jobs(2), fail_second, place=Threads(2), store=store, title="drawing")
    assert caught.value.__notes__ == ["in job draw 1"]
    first, second = some_jobs(2)
    assert store.get(first) is not None
    assert store.get(second) is None


@needs_posix
def test_an_interrupt_keeps_all_that_is_finished():
    """The interrupt comes while a result is handed over, and others wait behind it."""
    finished, waiting = [], threading.Barrier(3, timeout=30)

    def wait(job, stop):
        if job.work < 3:
            waiting.wait()
        else:
            while not stop():
                time.sleep(0.001)
            raise Interrupted
        return job.work

    def finish(result):
        if not finished:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
        finished.append(result.value)

    jobs = some_jobs(9)
    with pytest.raises(KeyboardInterrupt):
        do_jobs(jobs, wait, finish, place=Threads(3), title="waiting", total=9)
    assert sorted(finished) == [0, 1, 2]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("gvf-worker")]


@needs_posix
def test_work_that_postpones_interrupts_hears_that_of_its_caller():
    heard, began = [], threading.Event()

    def learn(job, stop):
        with postponed_interrupt() as interrupted:
            began.set()
            while not interrupted():
                time.sleep(0.001)
            heard.append(job.name)
        raise AssertionError("an interrupt ends the work")

    def press():
        began.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        run_jobs(some_jobs(1), learn, place=Threads(1), title="learning")
    assert heard == ["draw 0"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, Interrupted])
def test_work_that_ends_itself_is_no_result(error):
    def end(job, stop):
        raise error

    with pytest.raises(error):
        run_jobs(some_jobs(2), end, place=Threads(1), title="ending")


@needs_posix
def test_ignored_interrupts_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with postponed_interrupt() as interrupted:
            os.kill(os.getpid(), signal.SIGINT)
            assert not interrupted()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@needs_posix
def test_a_job_that_does_not_listen_is_left_after_a_while():
    began, end = threading.Event(), threading.Event()

    def sleep(job, stop):
        began.set()
        end.wait(30)

    def press():
        began.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_jobs(some_jobs(1), sleep, place=Threads(1, patience=0.1), title="sleeping")
    assert time.monotonic() - start < 10
    end.set()


def test_workers_take_no_job_after_the_iterator_is_closed():
    done = []
    results = on_threads(lambda item, stop: done.append(item), iter(range(10**9)), workers=2)
    next(results)
    results.close()
    count = len(done)
    time.sleep(0.02)
    assert len(done) == count


def test_counts_begin_with_what_was_done_before(monkeypatch, tmp_path):
    run_jobs(some_jobs(4), draw, place=Threads(1), store=Store(tmp_path), title="drawing")
    counts = []

    class Counted(Progress):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            counts.append((self, self.done, self.total))

    monkeypatch.setattr("gvf.common.progress.Progress", Counted)
    run_jobs(some_jobs(6), draw, place=Threads(1), store=Store(tmp_path), title="drawing")
    ((progress, before, total),) = counts
    assert (before, progress.done, total) == (4, 6, 6)
    run_jobs(some_jobs(6), draw, place=Threads(1), store=Store(tmp_path), title="drawing")
    assert len(counts) == 1  # nothing is to be done, so nothing is shown


def test_a_result_tells_what_it_took():
    results = []

    def work(job, stop):
        time.sleep(0.02)
        return sum(range(200_000))

    do_jobs(some_jobs(1), work, results.append, place=Threads(1), title="adding", total=1)
    (result,) = results
    assert result.seconds >= 0.02
    assert 0.0 < result.cpu_seconds < result.seconds
    assert result.host


def test_workers_are_a_number_or_a_place():
    assert place_of(3) == Threads(3)
    assert place_of(None) == Threads()
    assert place_of(RayCluster("auto", 2)) == RayCluster("auto", 2)
    for workers in (0, -1):
        with pytest.raises(ValueError, match="workers must be at least 1"):
            place_of(workers)
        with pytest.raises(ValueError, match="workers must be at least 1"):
            RayCluster(workers=workers)
    for workers in (2.0, "4", True):
        with pytest.raises(TypeError, match=r"a number or a gvf\.jobs\.RayCluster"):
            place_of(workers)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="workers must be an integer, got '4'"):
        RayCluster(workers="4")  # pyright: ignore[reportArgumentType]


def draw_twice(factor, job, stop):
    if factor == 0:
        raise ValueError("no factor")
    return {"numbers": factor * draw(job, stop)["numbers"]}


@pytest.mark.filterwarnings("ignore")  # Ray's own, of many kinds
def test_a_ray_cluster_gives_the_same_bits(tmp_path):
    ray = pytest.importorskip("ray")
    try:
        do, store = partial(draw_twice, 2.0), Store(tmp_path)
        here = run_jobs(some_jobs(5), do, place=Threads(2), title="drawing")
        # Nodes cannot import this file, so it is sent along.
        sent = {"place": RayCluster(workers=1), "references": [f"{__name__}:draw_twice"]}
        there = run_jobs(some_jobs(5), do, store=store, title="drawing", **sent)
        assert not ray.is_initialized()
        assert bits(there) == bits(here)
        # Everything is stored, so no cluster is started.
        again = run_jobs(some_jobs(5), do, place=RayCluster("10.0.0.0:1"), store=store, title="x")
        assert bits(again) == bits(here)
        with pytest.raises(ValueError, match="no factor") as caught:
            run_jobs(some_jobs(1), partial(draw_twice, 0), title="drawing", **sent)
        assert caught.value.__notes__ == ["in job draw 0"]
    finally:
        ray.shutdown()
