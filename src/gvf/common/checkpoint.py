"""Checkpoints: one file format for everything that is saved.

A file is a readable line followed by a NumPy archive (.npz):

    gvf checkpoint, version 0.1.0, sha256 <64 hexadecimal digits of the rest of the file>
    <archive: the arrays, and as JSON the kind of object and a description>

The line identifies the file and the gvf that wrote it, which is the only one that reads it. The
digest detects a change of any byte. Nothing in a file is ever executed; there is no pickle. A file
is written under another name and then renamed, so it is never incomplete.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gvf.common.files import replaced
from gvf.common.version import __version__

_ARRAY = "array/"  # the prefix of arrays, so that their names cannot collide with others


def write(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, ArrayLike],
    description: Mapping[str, Any] | None = None,
) -> None:
    """Write arrays and a description to one file, for :func:`read`.

    The arrays are not copied. An existing file at ``path`` is replaced only when all is written.

    Args:
        path: the file, in a folder that exists.
        kind: the kind of object in one or two words, such as ``"window"``.
        arrays: arrays of numbers or text by name; Python objects are not allowed.
        description: further data that JSON can hold.

    Example:
        >>> import numpy as np
        >>> from gvf.common import checkpoint
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "ages.gvf")
        ...     checkpoint.write(path, "table", {"age": np.arange(3)}, {"unit": "years"})
        ...     print(path.read_bytes()[:14].decode())
        ...     checkpoint.read(path, "table")
        gvf checkpoint
        ({'unit': 'years'}, {'age': array([0, 1, 2])})
    """
    path = Path(path)
    plain = {_ARRAY + name: np.asarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        if array.dtype.hasobject:
            raise TypeError(
                f"{name.removeprefix(_ARRAY)!r} holds Python objects ({array.dtype}), and a "
                "checkpoint only takes arrays of numbers or text"
            )
    about = {"kind": kind, "description": dict(description or {})}
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with replaced(path) as unfinished, unfinished.open("x+b") as file:
        # The digest is known only after the rest is written, so zeros hold its place.
        start = file.write(_header("0" * 64))
        np.savez(file, about=text, allow_pickle=False, **plain)
        file.seek(start)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        file.write(_header(digest))


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the description and the arrays that :func:`write` wrote for this kind of object.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: as :func:`read_any`, or if the file holds another kind of object.
    """
    held, description, arrays = read_any(path)
    if held != kind:
        raise ValueError(f"{os.fspath(path)} holds a {held}, not a {kind}")
    return description, arrays


def read_any(
    path: str | os.PathLike[str],
) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the kind of object, the description and the arrays that :func:`write` wrote.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is not a checkpoint, is damaged, or was saved by another gvf.
    """
    with open(path, "rb") as file:
        header = file.readline(200)
        version = re.match(rb"gvf checkpoint, version ([^, ]+), ", header)
        if version is None:
            raise ValueError(f"{os.fspath(path)} is not a gvf checkpoint")
        if version[1] != __version__.encode():
            raise ValueError(
                f"{os.fspath(path)} was saved by gvf {version[1].decode('ascii', 'replace')}; this "
                f"is gvf {__version__}, and reads only its own files"
            )
        if header != _header(hashlib.file_digest(file, "sha256").hexdigest()):
            raise ValueError(f"{os.fspath(path)} is damaged or incomplete")
        file.seek(len(header))
        try:
            with np.load(file, allow_pickle=False) as archive:
                plain = {name: archive[name] for name in archive.files}
            about = json.loads(plain.pop("about").tobytes())
            kind, description = about["kind"], about["description"]
        except (MemoryError, OSError):
            raise  # the file may be sound
        except Exception as error:  # the digest is right, but the archive is not from `write`
            raise ValueError(f"{os.fspath(path)} is damaged or incomplete") from error
    return kind, description, {name.removeprefix(_ARRAY): array for name, array in plain.items()}


@contextmanager
def damage_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors in this context into a ValueError that blames the content of the file."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError,
            ValueError) as error:  # fmt: skip
        message = str(error).partition("\n")[0]
        raise ValueError(f"{os.fspath(path)} does not hold what it should: {message}") from error


def _header(digest: str) -> bytes:
    return f"gvf checkpoint, version {__version__}, sha256 {digest}\n".encode()
