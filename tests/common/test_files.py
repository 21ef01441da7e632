"""Files are replaced as a whole: if a writer fails, the old file stays, and no other is left."""

import os
from pathlib import Path

import numpy as np
import pytest
from whole_files import (
    Writer,
    check_that_a_failed_writer_leaves_the_old_file_and_nothing_else,
    check_that_a_reader_of_the_old_file_reads_it_to_the_end,
    check_that_several_writers_at_once_do_no_harm,
)

import gvf
from gvf.common import checkpoint
from gvf.common.files import replaced, write_text


def of_checkpoint(folder: Path) -> Writer:
    path = folder / "things.gvf"
    return Writer(path, lambda n: checkpoint.write(path, "thing", {"x": np.full(50_000, n)}))


def of_learner(folder: Path) -> Writer:
    question, path = gvf.GVF(gvf.policies.Uniform(2), "reward", 0.9), folder / "learner.gvf"
    learner = gvf.Learner(
        question,
        gvf.features.OneHot(4),
        gvf.updates.TD(1.0),
        behaviour=gvf.policies.Uniform(2),
        seed=0,
    )

    def write(n: int) -> None:
        learner.observe(state=n % 4, action=0, reward=1.0, next_state=0, terminated=False)
        learner.save(path)

    return Writer(path, write)


WRITERS = [of_checkpoint, of_learner]


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


def test_several_writers_at_once_do_no_harm(tmp_path: Path) -> None:
    check_that_several_writers_at_once_do_no_harm(of_checkpoint(tmp_path), tmp_path)


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
