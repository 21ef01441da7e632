"""Saved state: files of learners and hordes, and the kinds that there are.

A file has the arrays of a state, and a description of the arguments that make such a learner, as
:mod:`gvf.common.describe` writes it. :func:`gvf.load` asks the kind of a file how to make it.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar, Protocol

import numpy as np

from gvf.common import checkpoint
from gvf.common.arrays import Arrays
from gvf.common.describe import describe, differences

PREDICTOR = "predictor of a "
"""The beginning of the kinds of file that :func:`export` writes."""
KINDS: dict[str, Any] = {}
"""The class of each kind of file; a class with a ``kind`` is there as soon as it is imported."""


class Saves(Protocol):
    """The interface of an object that can be saved."""

    kind: ClassVar[str]
    """The kind of its files."""

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that make an object like this one, except the seed."""
        ...

    def exported(self) -> dict[str, Any]:
        """Return the parts that predictions need, and a text about the question."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return copies of all arrays of the state."""
        ...

    def load_state_dict(self, arrays: dict[str, Any]) -> None:
        """Restore the arrays of a state."""
        ...


def save(learner: Saves, path: str | os.PathLike[str]) -> None:
    """Write the state and a description of the arguments to one file."""
    parts: dict[str, Any] = {}
    description = {name: describe(part, parts) for name, part in learner.arguments().items()}
    checkpoint.write(path, learner.kind, parts | learner.state_dict(), description)


def load_into(learner: Saves, path: str | os.PathLike[str], same_functions: bool) -> None:
    """Restore a saved state; raise ValueError if the arguments were others."""
    description, arrays = checkpoint.read(path, learner.kind)
    description_here = {name: describe(part, {}) for name, part in learner.arguments().items()}
    different = differences(
        *({"dict": [*map(list, parts.items())]} for parts in (description, description_here))
    )
    if same_functions:
        different = [difference for difference in different if difference.is_known]
    if different:
        unknown = not all(difference.is_known for difference in different)
        lines = "\n".join(f"  {difference.text}" for difference in different)
        hint = "\nWhere you know that they are the same: load(path, same_functions=True)"
        raise ValueError(
            f"{os.fspath(path)} was saved by another learner:\n{lines}{hint if unknown else ''}"
        )
    with checkpoint.damage_named(path):
        learner.load_state_dict(arrays)


def export(learner: Saves, path: str | os.PathLike[str], states: dict[str, Any]) -> None:
    """Write the parts that predict, with what predictions need to know of the states."""
    parts: dict[str, Any] = {}
    named = {**learner.exported(), **states}
    arrays = {name: part for name, part in named.items() if isinstance(part, np.ndarray)}
    description = {
        name: describe(part, parts) for name, part in named.items() if name not in arrays
    }
    checkpoint.write(path, f"{PREDICTOR}{learner.kind}", parts | arrays, description)


def group(arrays: Arrays, name: str) -> dict[str, Any]:
    """Return the arrays of a state whose names begin with ``name/``; the keys lack it.

    Example:
        >>> import numpy as np
        >>> from gvf.learners.saved_state import group
        >>> group({"window/ring": np.arange(2), "own/counts": np.zeros(3)}, "window")
        {'ring': array([0, 1])}
    """
    start = f"{name}/"
    return {key.removeprefix(start): a for key, a in arrays.items() if key.startswith(start)}
