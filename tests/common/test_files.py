"""Files are replaced as a whole: if a writer fails, the old file stays, and no other is left.

The tests do not depend on how that is done. A limit on the size of files stands for a full disk. A
reader must see either the old file or the new one at any moment. So the new one must be another
file, since a reader that has the old one open would see it change.
"""

import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gvf
from gvf.common import checkpoint
from gvf.common.cache import remembered
from gvf.common.files import replaced, write_text
from gvf.paper import get
from gvf.racing import RacingStudy
from gvf.racing.recording import Recording
from gvf.racing.rollouts import EvaluationSet
from gvf.racing.task import _Checkpoint
from gvf.report import build as report
from gvf.report.exhibit import Provenance
from gvf.study import Study
from gvf.study.encoding import encode
from gvf.study.engine import run
from gvf.study.store import Store

resource = pytest.importorskip("resource", reason="limits on files are those of POSIX")

STUDY = Study("mine", "markov-chain", ("IR",), (0.5, 1.0), pairs=(("hard", "hard"),), updates=20)


@dataclass(frozen=True)
class Writer:
    """A function that writes one file, again and again, each time with other content."""

    path: Path
    write: Callable[[int], object]


def of_checkpoint(folder: Path) -> Writer:
    path = folder / "things.gvf"
    return Writer(path, lambda n: checkpoint.write(path, "thing", {"x": np.full(50_000, n)}))


def of_learner(folder: Path) -> Writer:
    question, path = gvf.GVF(gvf.Uniform(2), "reward", 0.9), folder / "learner.gvf"
    learner = gvf.Learner(question, gvf.OneHot(4), gvf.TD(1.0), behaviour=gvf.Uniform(2), seed=0)

    def write(n: int) -> None:
        learner.observe(state=n % 4, action=0, reward=1.0, next_state=0, terminated=False)
        learner.save(path)

    return Writer(path, write)


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


AT_ONCE = [of_checkpoint, of_results, of_record]
WRITERS = [of_checkpoint, of_learner, of_cache, of_results, of_studies, of_record, of_page,
           of_recording, of_networks]  # fmt: skip


@pytest.fixture(params=WRITERS, ids=lambda made: made.__name__.removeprefix("of_"))
def writer(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Writer:
    """A writer that has written its file once, with the number 1."""
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path))
    made = request.param(tmp_path)
    made.write(1)
    return made


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """A context in which no file can grow beyond a size, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_whoever_reads_the_old_file_reads_it_to_the_end(writer: Writer, tmp_path: Path) -> None:
    there, old = files(tmp_path), writer.path.read_bytes()
    with writer.path.open("rb", buffering=0) as reader:
        first = reader.read(10)
        writer.write(2)
        assert first + reader.read() == old
    assert writer.path.read_bytes() != old
    assert files(tmp_path) == there


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(
    writer: Writer, tmp_path: Path
) -> None:
    there, old = files(tmp_path), writer.path.read_bytes()
    with files_end_at(len(old) * 9 // 10), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((OSError, RuntimeWarning)):
            writer.write(2)
    assert writer.path.read_bytes() == old
    assert files(tmp_path) == there


@pytest.mark.parametrize("make", AT_ONCE, ids=lambda made: made.__name__.removeprefix("of_"))
def test_several_writers_at_once_do_no_harm(make: Callable[[Path], Writer], tmp_path: Path) -> None:
    writer, whole = make(tmp_path), set()
    for n in range(1, 5):
        writer.write(n)
        whole.add(writer.path.read_bytes())
    there = files(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(writer.write, n) for n in 20 * [1, 2, 3, 4]]
        while not all(one.done() for one in writing):
            assert writer.path.read_bytes() in whole
    for one in writing:
        one.result()
    assert files(tmp_path) == there


def test_an_error_names_the_file_that_it_is_about(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, replaced(tmp_path / "out"):
        (tmp_path / "input").read_bytes()
    assert caught.value.filename == str(tmp_path / "input")
    with pytest.raises(OSError, match="out") as caught, replaced(tmp_path / "out") as unfinished:
        unfinished.read_bytes()
    assert caught.value.filename == str(tmp_path / "out")


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "old")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "old").read_text() == "new\n"


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="neither a file nor a folder"):
        write_text(tmp_path / "pipe", "text")
    assert (tmp_path / "pipe").is_fifo()
