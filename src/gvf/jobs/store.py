"""The store of jobs: one file for each result, so that interrupted work goes on where it was.

    <folder>/gvf-version.txt
    <folder>/<name>-<digest>.gvf
    <folder>/damaged/<name>-<digest>.gvf

The digest is that of the job's key, so a result is found only by a job that depends on the same. A
file is complete when it appears. A file that cannot be read is set aside, and its job is done
again. A folder belongs to one version of gvf, and any other refuses it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from gvf.common import checkpoint
from gvf.common.arrays import Array
from gvf.common.files import write_text
from gvf.common.version import __version__
from gvf.jobs.job import Job

Arrays = dict[str, Array]
VERSION = "gvf-version.txt"
"""The name of the file with the version of gvf."""
_KIND = "result of a job"


class Store:
    """The results of jobs in a folder, which appears with the first of them.

    Args:
        folder: the folder.

    Raises:
        ValueError: if the folder is of another version of gvf.

    Example:
        >>> import numpy as np
        >>> from gvf.jobs import Job, Store
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     store, job = Store(folder), Job("half", {"rows": 50})
        ...     before = store.get(job)
        ...     store.put(job, {"mean": np.array([0.5])})
        ...     before, store.get(job), store.get(Job("half", {"rows": 60}))
        (None, {'mean': array([0.5])}, None)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            return
        try:
            version = (self.folder / VERSION).read_text("utf-8").strip()
        except FileNotFoundError:
            version = "an unknown version" if any(self.folder.iterdir()) else __version__
        if version != __version__:
            raise ValueError(
                f"{self.folder} was written by gvf {version}; this is gvf {__version__}, and goes "
                "on with its own results only: name another folder, or remove this one"
            )

    def path(self, job: Job) -> Path:
        """Return the file of a job's result."""
        name = re.sub(r"[^\w.-]+", "_", job.name)
        return self.folder / f"{name}-{job.digest}.gvf"

    def get(self, job: Job) -> Arrays | None:
        """Return the result of a job, or None if it is not there."""
        path = self.path(job)
        try:
            return checkpoint.read(path, _KIND)[1]
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            aside = set_aside(path, self.folder / "damaged" / path.name)
            print(
                f"gvf: warning: {error}; it is set aside as {aside}, and computed again",
                file=sys.stderr,
            )
            return None

    def put(self, job: Job, arrays: Arrays) -> None:
        """Store the result of a job."""
        if not (self.folder / VERSION).exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_text(self.folder / VERSION, __version__)
        checkpoint.write(self.path(job), _KIND, arrays)


def set_aside(
    path: Path, aside: Path, is_whole: Callable[[Path], bool] = lambda path: False
) -> Path | None:
    """Move a damaged file, and return its new path; None if another process has repaired it.

    Args:
        path: the file.
        aside: the path to move it to.
        is_whole: a function that tells whether the file that was moved is damaged after all.
    """
    aside.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.replace(aside)
    except FileNotFoundError:
        return aside  # another process has moved it
    # Another process may have written the result anew between our reading and our moving.
    if is_whole(aside):
        aside.replace(path)
        return None
    return aside
