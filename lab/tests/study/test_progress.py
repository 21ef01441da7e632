"""Progress of a study: costs, time left, and what was done before."""

import re
from pathlib import Path
from typing import Any

import pytest
from study_runs import STUDY

from gvf.common.progress import Progress
from gvf_lab.study.run_study import Account, Costs, costs, run, spent
from gvf_lab.study.store import Store

pytestmark = pytest.mark.usefixtures("own_folder")


def test_costs_follow_the_gap(tmp_path: Path) -> None:
    run(STUDY.with_(runs=3), tmp_path)
    known, logged = costs(Store(STUDY, tmp_path))
    assert logged
    assert known.total({1: 1}) > known.total({4: 1}) > 0
    assert Costs().total({1: 2, 4: 3}) == 5


def test_the_remaining_time_is_that_of_the_work_left(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = list(STUDY.with_(runs=2).tasks())
    clock = iter([0.0, 10.0, 30.0])
    monkeypatch.setattr("gvf_lab.study.run_study.time.perf_counter", lambda: next(clock))
    account = Account(tasks)
    account.add(tasks[0], 4.0)
    assert account.remaining() == pytest.approx(30.0)
    account.add(tasks[1], 1.0)
    assert account.remaining() == pytest.approx(30.0)


def test_counts_begin_with_what_was_done_before(monkeypatch: pytest.MonkeyPatch) -> None:
    run(STUDY.with_(runs=2), "out")
    counts = []

    class Counted(Progress):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            counts.append((self, self.done, self.total))

    monkeypatch.setattr("gvf.common.progress.Progress", Counted)
    again = run(STUDY.with_(runs=3), "out")
    ((progress, before, tasks),) = counts
    assert (before, progress.done, tasks) == (4, 6, 6)
    assert (again.skipped, again.done) == (4, 2)
    logged = spent(Store(STUDY, "out"))
    assert again.cpu_seconds + again.cpu_seconds_before == pytest.approx(sum(logged.values()), 0.01)


def test_lines_tell_the_time_that_the_costs_of_tasks_give(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gvf.common.progress.EVERY", 0.01)
    monkeypatch.setattr(Account, "remaining", lambda self: 4242.0)
    run(STUDY.with_(runs=15), "out", workers=1)
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"sweep: \d+ of 30, \d+ s so far, about 1 h 10 min left", lines[-1])


def test_the_bar_labels_its_times_and_counts_what_was_done_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(STUDY.with_(runs=2), "out")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    run(STUDY.with_(runs=15), "out", workers=1)
    shown = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert re.search(r"sweep \S+ +4/30 \d+ s so far", shown)
    assert re.search(r"\d+/30 \d+ s so far, about .* left", shown)
