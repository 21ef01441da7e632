"""The bar, and the lines, that show progress."""

import re
import threading
import time

import pytest

from gvf.common import progress
from gvf.common.progress import Progress, progress_of


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.05)
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)


def test_a_bar_of_any_loop_labels_its_times(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_of("counting", 5, 2) as advance:
        advance()
        advance(2)
    shown = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert re.search(r"counting \S+ 5/5 1 s so far *\n", shown)


@pytest.mark.usefixtures("fast")
def test_lines_come_while_a_step_is_still_at_work(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_of("judging", 1200, 1) as advance:
        time.sleep(0.13)
        advance(3)
        time.sleep(0.13)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert re.fullmatch(r"judging: 1 of 1,200, \d+ s so far", lines[0])
    assert re.fullmatch(
        r"judging: 4 of 1,200, \d+ s so far, about \d\d? (s|min \d+ s) left", lines[-1]
    )
    time.sleep(0.1)
    assert capsys.readouterr().err == ""
    assert not [thread for thread in threading.enumerate() if thread.name == "gvf-progress"]


def test_short_work_is_shown_only_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for show in (None, False):
        with progress_of("adding", 3, show=show) as advance:
            advance(3)
        assert capsys.readouterr().err == ""
    with progress_of("adding", None, show=True) as advance:
        advance(3)
    assert capsys.readouterr().err == "adding: 3, 1 s so far\n"


@pytest.mark.usefixtures("fast")
def test_nothing_is_written_where_nothing_shall_be_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress_of("adding", 3, show=False):
        time.sleep(0.12)
    assert capsys.readouterr().err == ""


def test_the_time_left_is_that_of_the_work_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Progress, "seconds", 61.0)
    counted = Progress("mine", 40, before=10)
    counted(10)
    assert counted.times == "1 min 1 s so far, about 2 min 2 s left"


def test_an_estimate_of_ones_own_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter([float("inf"), 5.0])
    monkeypatch.setattr(Progress, "seconds", 60.0)
    counted = Progress("mine", 40, left=lambda: next(left))
    counted(10)
    assert counted.times == "1 min 0 s so far"
    assert counted.times == "1 min 0 s so far, about 5 s left"


@pytest.mark.usefixtures("fast")
def test_later_lines_are_rarer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Progress, "seconds", 3600.0)
    with progress_of("long", None):
        time.sleep(0.12)
    assert capsys.readouterr().err == ""
