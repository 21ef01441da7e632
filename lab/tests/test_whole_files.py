"""The laboratory's files are replaced as a whole, as those of the library are."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from whole_files import (
    Writer,
    check_that_a_failed_writer_leaves_the_old_file_and_nothing_else,
    check_that_a_reader_of_the_old_file_reads_it_to_the_end,
    check_that_several_writers_at_once_do_no_harm,
)

from gvf_lab.cache import remembered
from gvf_lab.paper import get
from gvf_lab.racing import RacingStudy
from gvf_lab.racing.driving_rollouts import EvaluationSet
from gvf_lab.racing.racing_task import _Checkpoint
from gvf_lab.racing.recording import Recording
from gvf_lab.report import build as report
from gvf_lab.report.exhibit import Provenance
from gvf_lab.study import Study
from gvf_lab.study.encoding import encode
from gvf_lab.study.run_study import run
from gvf_lab.study.store import Store

STUDY = Study("mine", "markov-chain", ("IR",), (0.5, 1.0), pairs=(("hard", "hard"),), updates=20)


def of_cache(folder: Path) -> Writer:
    def write(n: int) -> None:
        remembered("x", {"key": 1}, lambda: {"x": np.full(5000, n)}, folder)
        (path,) = folder.iterdir()
        with path.open("r+b") as file:  # damaged, so that it is written again next time
            file.write(b"no archive")

    write(0)
    (path,) = folder.iterdir()
    return Writer(path, write)


def of_results(folder: Path) -> Writer:
    store, task = Store(STUDY, folder), next(STUDY.tasks())
    measured = STUDY.compute(task, lambda: False)

    def write(n: int) -> None:
        store.save(task, encode(task, {**measured, "error": measured["error"] + n}))

    return Writer(store.path(task), write)


def of_studies(folder: Path) -> Writer:
    def write(n: int) -> None:
        Store(STUDY.with_(runs=n + 1), folder).prepare()

    return Writer(Store(STUDY, folder).log_path.with_suffix(".toml"), write)


def of_record(folder: Path) -> Writer:
    figure = get("markov-vtrace")

    def write(n: int) -> None:
        made = Provenance("quick", n, 0, "command", "version", "machine", "today", 1.0)
        report.record(figure, folder, "paper", made)

    return Writer(folder / figure.id / report.MADE.format("paper"), write)


def of_page(folder: Path) -> Writer:
    run(STUDY.with_(runs=1), folder)
    return Writer(folder / report.PAGE, lambda n: report.build(folder, f"command {n}"))


def of_recording(folder: Path) -> Writer:
    path = folder / "drive"

    def write(n: int) -> None:
        frames = np.random.default_rng(n).integers(0, 256, (3, 64, 128), np.uint8)
        actions, places, motions = np.zeros(2), np.zeros(3), np.zeros(3, np.float32)
        first, of_frames = np.arange(2), (places, motions, motions, motions)
        Recording(frames, first, actions, actions, *of_frames, {}).save(path)

    return Writer(path, write)


def of_networks(folder: Path) -> Writer:
    pytest.importorskip("torch")
    EvaluationSet(np.zeros((1, 64, 128), np.uint8), np.zeros(1), np.zeros(1), np.zeros(1), {}).save(
        folder / "states"
    )
    here: Any = SimpleNamespace(
        stream_hash=lambda run: "1", states_file=SimpleNamespace(path=folder / "states")
    )
    kept = _Checkpoint(next(RacingStudy("mine", step_sizes=(1e-3,)).tasks()), here)

    class Lanes:
        def state_dict(self) -> dict[str, Any]:
            return {}

    return Writer(kept.path, lambda n: kept.save(n, Lanes(), []))


WRITERS = [of_cache, of_results, of_studies, of_record, of_page, of_recording, of_networks]


@pytest.fixture(params=WRITERS, ids=lambda made: made.__name__.removeprefix("of_"))
def writer(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Writer:
    """A writer that has written its file once, with the number 1."""
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path))
    made = request.param(tmp_path)
    made.write(1)
    return made


def test_whoever_reads_the_old_file_reads_it_to_the_end(writer: Writer, tmp_path: Path) -> None:
    check_that_a_reader_of_the_old_file_reads_it_to_the_end(writer, tmp_path)


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(
    writer: Writer, tmp_path: Path
) -> None:
    check_that_a_failed_writer_leaves_the_old_file_and_nothing_else(writer, tmp_path)


@pytest.mark.parametrize("make", [of_results, of_record], ids=["results", "record"])
def test_several_writers_at_once_do_no_harm(make: Callable[[Path], Writer], tmp_path: Path) -> None:
    check_that_several_writers_at_once_do_no_harm(make(tmp_path), tmp_path)
