"""Writers of whole files, and checks of them for the tests of both houses.

The checks do not depend on how files are written. A limit on the size of files stands for a full
disk. A reader must see either the old file or the new one at any moment. So the new one must be
another file, since a reader that has the old one open would see it change.
"""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

resource = pytest.importorskip("resource", reason="limits on files are those of POSIX")


@dataclass(frozen=True)
class Writer:
    """A function that writes one file, again and again, each time with other content."""

    path: Path
    write: Callable[[int], object]


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


def check_that_a_reader_of_the_old_file_reads_it_to_the_end(writer: Writer, tmp_path: Path) -> None:
    there, old = files(tmp_path), writer.path.read_bytes()
    with writer.path.open("rb", buffering=0) as reader:
        first = reader.read(10)
        writer.write(2)
        assert first + reader.read() == old
    assert writer.path.read_bytes() != old
    assert files(tmp_path) == there


def check_that_a_failed_writer_leaves_the_old_file_and_nothing_else(
    writer: Writer, tmp_path: Path
) -> None:
    there, old = files(tmp_path), writer.path.read_bytes()
    with files_end_at(len(old) * 9 // 10), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((OSError, RuntimeWarning)):
            writer.write(2)
    assert writer.path.read_bytes() == old
    assert files(tmp_path) == there


def check_that_several_writers_at_once_do_no_harm(writer: Writer, tmp_path: Path) -> None:
    whole: set[bytes] = set()
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
