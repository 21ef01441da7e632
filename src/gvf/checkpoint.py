"""Checkpoints: one kind of file for everything that is saved.

A file is a line that a person can read, and a NumPy archive (.npz):

    gvf checkpoint, format 1, sha256 <64 hexadecimal digits of the rest of the file>
    <archive: the arrays, and as JSON the kind of thing, gvf's version and a description>

So a file tells what it is, and a change of any byte is noticed. Nothing in it is ever executed:
there is no pickle. A file is written beside and renamed: it is there whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import gvf

_FORMAT = 1
_ARRAY = "array/"  # before the names of arrays, so that none is taken for something else


def write(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, ArrayLike],
    description: Mapping[str, Any] | None = None,
) -> None:
    """Write arrays and a description to one file, for :func:`read`.

    The arrays are not copied, and what was at ``path`` stays there until all is written.

    Args:
        path: the file, in a folder that exists.
        kind: one word or two for what is saved, such as ``"window"``.
        arrays: by name; of numbers or text, not of Python objects.
        description: whatever JSON can hold.

    Example:
        >>> import numpy as np
        >>> from gvf import checkpoint
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "ages.gvf")
        ...     checkpoint.write(path, "table", {"age": np.arange(3)}, {"unit": "years"})
        ...     print(path.read_bytes()[:32].decode())
        ...     checkpoint.read(path, "table")
        gvf checkpoint, format 1, sha256
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
    about = {"kind": kind, "gvf": gvf.__version__, "description": dict(description or {})}
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot save {path.name}: there is no folder {path.parent}")
    if not path.name or path.is_dir():
        raise IsADirectoryError(f"cannot save to {path}, which is a folder: name a file in it")
    beside = path.with_name(f".gvf-{os.getpid()}-{secrets.token_hex(8)}.part")
    try:
        with open(beside, "x+b") as file:
            # The digest is known only when the rest is written, so its place is kept free.
            start = file.write(_header("0" * 64))
            np.savez(file, about=text, allow_pickle=False, **plain)
            file.seek(start)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            file.write(_header(digest))
        beside.replace(path)
    except OSError as error:
        if error.filename is None:
            raise
        # It names the file beside, of which the caller knows nothing.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        beside.unlink(missing_ok=True)


def read(
    path: str | os.PathLike[str], kind: str | tuple[str, ...] | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The description and the arrays that :func:`write` was given.

    Args:
        path: the file.
        kind: what it has to hold, one kind or one of several; None takes any.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is not a checkpoint, is damaged, comes from a newer gvf, or holds
            another kind of thing.
    """
    with open(path, "rb") as file:
        header = file.readline(200)
        found = re.match(rb"gvf checkpoint, format (\d+)", header)
        if found is None:
            raise ValueError(f"{os.fspath(path)} is not a gvf checkpoint")
        if int(found[1]) > _FORMAT:
            raise ValueError(
                f"{os.fspath(path)} was written by a newer gvf (format {int(found[1])}); this one "
                f"reads format {_FORMAT}"
            )
        if header != _header(hashlib.file_digest(file, "sha256").hexdigest()):
            raise ValueError(f"{os.fspath(path)} is damaged or incomplete")
        file.seek(len(header))
        try:
            with np.load(file, allow_pickle=False) as archive:
                plain = {name: archive[name] for name in archive.files}
            about = json.loads(plain.pop("about").tobytes())
            held, description = about["kind"], about["description"]
        except (MemoryError, OSError):
            raise  # the file is not to blame
        except Exception as error:  # the digest is right, but `write` did not make this archive
            raise ValueError(f"{os.fspath(path)} is damaged or incomplete") from error
    kinds = (kind,) if isinstance(kind, str) else kind
    if kinds is not None and held not in kinds:
        raise ValueError(f"{os.fspath(path)} holds a {held}, not a {' or a '.join(kinds)}")
    return description, {name.removeprefix(_ARRAY): array for name, array in plain.items()}


@contextmanager
def damage_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """A context in which the content of a file is used: what fails there is the file's fault."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError,
            ValueError) as error:  # fmt: skip
        told = str(error).partition("\n")[0]
        raise ValueError(f"{os.fspath(path)} does not hold what it should: {told}") from error


def _header(digest: str) -> bytes:
    return f"gvf checkpoint, format {_FORMAT}, sha256 {digest}\n".encode()
