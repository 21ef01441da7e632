"""A cache of results that take long to compute, as files.

The name of a file is a hash of a key, which holds everything that the result depends on: names,
numbers and arrays. Another key gives another file, so a file is never out of date. A file is
renamed when it is complete, and one that cannot be read is computed again. Sampled truths are kept
here; those of :mod:`gvf_lab.truth.exact_values` are quick to compute.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from gvf.common.arrays import Arrays
from gvf.common.files import replaced


def default_folder() -> Path:
    """Return the folder of the cache: ``GVF_CACHE_DIR``, or ``gvf`` in the user's cache folder.

    Example:
        >>> from gvf_lab.cache import default_folder
        >>> default_folder().is_absolute()
        True
    """
    chosen = os.environ.get("GVF_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    if sys.platform == "win32":
        parent = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        parent = Path.home() / "Library" / "Caches"
    else:
        parent = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(parent) / "gvf"


def remembered(
    name: str,
    key: Mapping[str, Any],
    compute: Callable[[], Arrays],
    folder: str | os.PathLike[str] | None = None,
) -> Arrays:
    """Return ``compute()``, read from a file if it was computed before.

    If the folder cannot be written to, there is a warning, and the next call computes again.

    Args:
        name: the beginning of the file's name.
        key: everything that determines the result: strings, numbers and arrays, by name.
        compute: a function that returns arrays by name.
        folder: the folder of the files; by default :func:`default_folder`.

    Example:
        >>> from gvf_lab.cache import remembered
        >>> import numpy as np
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for _ in range(2):
        ...         kept = remembered("range", {"count": 3}, lambda: {"x": np.arange(3)}, folder)
        >>> kept["x"]
        array([0, 1, 2])
    """
    folder = default_folder() if folder is None else Path(folder)
    path = folder / f"{name}-{_digest(key)}.npz"
    try:
        # Opened here, because np.load leaves a file open that it cannot read.
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {part: file[part] for part in file.files}
    except (OSError, ValueError, EOFError, KeyError, BadZipFile, zlib.error):
        pass  # the file does not exist or is damaged
    arrays = compute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as unfinished, unfinished.open("xb") as file:
            np.savez(file, allow_pickle=False, **arrays)
    except OSError as error:
        warnings.warn(
            f"cannot keep {path.name} in {folder} ({error.strerror or error}), so it will be "
            "computed again next time; the environment variable GVF_CACHE_DIR names another folder",
            RuntimeWarning,
            stacklevel=2,
        )
    return arrays


def _digest(key: Mapping[str, Any]) -> str:
    """Hash the key's names and values; the hash is the same on every machine."""
    plain = {
        part: [str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()]
        if isinstance(value, np.ndarray)
        else value
        for part, value in key.items()
    }
    text = json.dumps(plain, sort_keys=True, default=lambda number: number.item())
    return hashlib.sha256(text.encode()).hexdigest()[:20]
