"""Values of ``info`` as columns of a stream.

``env.step`` returns a mapping ``info`` with, for example, a position or a distance. A stream adds
the values whose names it is given as columns of float64, beside state and reward, and a question
can use one as its cumulant. In a vector environment the values of all environments are arrays, each
with a mask; those of a step that ended an episode may be in ``info["final_info"]``.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.question import GVF

STANDARD = (
    "state",
    "action",
    "reward",
    "next_state",
    "terminated",
    "truncated",
    "behaviour_probability",
    "behaviour_log_probability",
    "stream",
)
"""The columns that every stream has, some of them only with some environments."""


def info_columns(question: GVF, more: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of values of ``info`` that a question needs, beyond the standard columns.

    Args:
        question: the question, whose cumulant and interest may be names of columns.
        more: further names, which functions of transitions use.

    Example:
        >>> import gvf
        >>> from gvf.stream.infos import info_columns
        >>> info_columns(gvf.GVF(gvf.policies.Uniform(2), "x_position"))
        ('x_position',)
        >>> info_columns(gvf.GVF(gvf.policies.Uniform(2), "reward"), more=["distance"])
        ('distance',)
    """
    named: tuple[Any, ...] = (question.cumulant, question.continuation, question.interest)
    names = [name for name in named if isinstance(name, str) and name not in STANDARD]
    return tuple(dict.fromkeys([*names, *_checked(more)]))


class Info:
    """A reader of named values of ``info``, which checks that they exist and keep their shapes.

    Args:
        names: the names of the values; none may be the name of a standard column.

    Example:
        >>> import gvf
        >>> info = gvf.stream.infos.Info(["distance"])
        >>> info.one({"distance": 3, "speed": 0.5})
        {'distance': array(3.)}
        >>> info.one({"speed": 0.5})
        Traceback (most recent call last):
        ValueError: info has no 'distance' at step 1 (from 0); it has: speed
    """

    names: tuple[str, ...]
    """The names, without duplicates."""
    step: int
    """The number of the next step, from 0."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(_checked(names)))
        for name in self.names:
            if name in STANDARD:
                raise ValueError(
                    f"info={name!r} would take the place of the column {name!r}, which every "
                    "stream has; rename it in a wrapper of the environment"
                )
        self.step = 0
        self._shapes: dict[str, tuple[int, ...]] = {}

    def one(self, info: Mapping[str, Any]) -> dict[str, Floats]:
        """Copy the values of a single environment's step, float64[...] each."""
        values = {}
        for name in self.names:
            if name not in info:
                raise self._missing(name, "info", info)
            values[name] = self._number(name, info[name])
        self.step += 1
        return values

    def many(
        self, info: Mapping[str, Any], rows: NDArray[np.intp], over: NDArray[np.bool_] | None = None
    ) -> dict[str, Floats]:
        """Copy the values of a step of a vector environment, float64[m, ...] each.

        Args:
            info: the step's info, with values of all environments [n, ...].
            rows: the environments wanted, [m].
            over: True for environments whose ``info`` comes from a reset, bool[m]; the values of
                the step itself are in ``info["final_info"]``. None if there are none.
        """
        columns: dict[str, Floats] = {}
        parts: list[tuple[str, Mapping[str, Any], NDArray[np.bool_]]]
        parts = [("info", info, np.ones(len(rows), bool) if over is None else ~over)]
        if over is not None:
            final = info.get("final_info")
            parts.append(("info['final_info']", final if isinstance(final, Mapping) else {}, over))
        for name in self.names:
            pieces = [
                (part, self._taken(name, place, is_given, rows[part]))
                for place, is_given, part in parts
                if part.any()
            ]
            column = columns[name] = np.empty((len(rows), *self._shapes[name]))
            for part, piece in pieces:
                column[part] = piece
        self.step += 1
        return columns

    def _taken(
        self, name: str, place: str, info: Mapping[str, Any], rows: NDArray[np.intp]
    ) -> Floats:
        """Return the values of some environments, [m, ...]."""
        if name not in info:
            raise self._missing(name, place, _unmasked(info, rows[0]), rows[0])
        if f"_{name}" in info:
            is_given = np.asarray(info[f"_{name}"], bool)[rows]
            if not is_given.all():
                row = rows[is_given.argmin()]
                raise self._missing(name, place, _unmasked(info, row), row)
        values = np.asarray(info[name])
        if values.ndim == 0 or len(values) <= rows.max():
            raise ValueError(
                f"{place}[{name!r}] is {reprlib.repr(info[name])} at step {self.step} (from 0), "
                "and should have one value for each environment"
            )
        if values.dtype != object:
            return self._number(name, values[rows], 1)
        # Gymnasium stores some values, such as a NumPy bool or a list, as objects.
        return np.stack([self._number(name, value) for value in values[rows]])

    def _number(self, name: str, value: Any, batch: int = 0) -> Floats:
        """Copy a value as float64, and check that its shape, without the batch, has not changed."""
        try:
            array = np.asarray(value)
        except ValueError:  # lists of different lengths
            array = np.empty((), object)
        if array.dtype.kind not in "biuf":
            raise ValueError(
                f"info[{name!r}] is {reprlib.repr(value)} at step {self.step} (from 0), neither a "
                "number nor an array of numbers"
            )
        shape = array.shape[batch:]
        before = self._shapes.setdefault(name, shape)
        if shape != before:
            raise ValueError(
                f"info[{name!r}] has shape {shape} at step {self.step} (from 0), and had {before} "
                "before"
            )
        return array.astype(np.float64)

    def _missing(
        self, name: str, place: str, info: Iterable[str], row: int | np.intp | None = None
    ) -> ValueError:
        where = "" if row is None else f" in environment {row}"
        entries = ", ".join(map(str, info)) or "nothing"
        return ValueError(
            f"{place} has no {name!r} at step {self.step} (from 0){where}; it has: {entries}"
        )


def _checked(names: Iterable[str]) -> list[str]:
    listed = [names] if isinstance(names, str) else list(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in listed):
        raise TypeError(f'info must name values, as in info=("distance",), got {names!r}')
    return listed


def _unmasked(info: Mapping[str, Any], row: int | np.intp) -> list[str]:
    """Return the keys that one environment of a vector has."""
    hidden = {f"_{key}" for key in info} | {"final_obs", "final_info"}
    keys = [key for key in info if key not in hidden]
    return [key for key in keys if f"_{key}" not in info or info[f"_{key}"][row]]
