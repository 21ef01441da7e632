"""Files that are written completely or not at all.

A file is written under a temporary name and then renamed. A reader sees the old file or the new
one, never half of one. A writer that fails leaves the old file and no temporary one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(
    path: str | os.PathLike[str], within: str | os.PathLike[str] | None = None
) -> Iterator[Path]:
    """Yield a path to write to; the file written there replaces `path` when the block ends.

    Args:
        path: the file. Its folder must exist.
        within: the folder of the unfinished file, on the same disk; by default the folder of
            `path`.

    Raises:
        FileNotFoundError: if there is no such folder.
        IsADirectoryError: if `path` is a folder.
        OSError: if the file cannot be written; it names `path`.

    Example:
        >>> from gvf.common.files import replaced
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     with replaced(Path(folder, "notes.txt")) as unfinished:
        ...         _ = unfinished.write_text("whole")
        ...     [file.name for file in Path(folder).iterdir()]
        ['notes.txt']
    """
    path = Path(path).resolve()  # a link stays, and the file that it names is replaced
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(f"cannot save to {path}, which is neither a file nor a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot save {path.name}: there is no folder {path.parent}")
    if not path.name or path.is_dir():
        raise IsADirectoryError(f"cannot save to {path}, which is a folder: name a file in it")
    folder = path.parent if within is None else Path(within)
    # A unique name, because another process or thread may be writing the same file.
    unfinished = folder / f".gvf-{os.getpid()}-{secrets.token_hex(8)}.part"
    try:
        yield unfinished
        unfinished.replace(path)
    except OSError as error:
        if error.filename is None or Path(error.filename) != unfinished:
            raise
        # The caller has never heard of the unfinished file.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        unfinished.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    r"""Write a text file completely or not at all, as UTF-8, ending in a newline.

    Example:
        >>> from gvf.common.files import write_text
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     write_text(Path(folder, "notes.txt"), "one line")
        ...     Path(folder, "notes.txt").read_text()
        'one line\n'
    """
    with replaced(path) as unfinished:
        unfinished.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
