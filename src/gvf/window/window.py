"""The window: the n most recent transitions, as columns in a ring.

A transition is a row, a kind of data (state, action, reward, ...) is a column, and a *slot* is a
position in the ring. The t-th transition (from 0) goes to slot ``t mod n`` and replaces the one
that is n steps old, so a slot keeps its transition until it is overwritten. Samplers
(:mod:`gvf.sampling`) choose slots and never see the data; the window returns the data of chosen
slots and never chooses.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from numba import int64, njit
from numpy import ndarray

from gvf.common import checkpoint
from gvf.common.checks import whole
from gvf.common.compiled import direct_entry
from gvf.common.fields import aligned, as_row
from gvf.sampling.prefix_sums import HEAD, SIZE, new_place
from gvf.transition import Column, Transitions, describe_columns

_INT64 = np.dtype(np.int64)
_new = object.__new__
_NO_COLUMNS = "a transition needs at least one column, for example state=..."
_PLAIN = {"i8": int, "f8": float, "b1": bool}


class Window:
    """A ring of columns that holds the ``capacity`` most recent transitions.

    The first insertion sets the columns with their shapes and types. An integer column becomes
    float64 when it first gets a fraction, so the first reward may be the integer 0. A call that
    fails leaves the window unchanged.

    Args:
        capacity: the number of transitions to keep, n.

    Example:
        >>> import gvf
        >>> window = gvf.Window(3)
        >>> [window.append(state=s, reward=s / 2) for s in range(4)]
        [0, 1, 2, 0]
        >>> window.extend(state=[4, 5], reward=[2.0, 2.5])
        array([1, 2])
        >>> window[[0, 2]].reward
        array([1.5, 2.5])
        >>> window
        Window(3 of 3: state int64, reward float64)
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = whole("capacity", capacity, 1)
        self.is_taken = False  # True once a learner owns the window
        self._columns: dict[str, Column] = {}
        # The types and shapes that fit without conversion; `_plan` prepares them for speed.
        self._outside: Callable[..., int] | None = None
        self._width = -1
        self._arrays: list[tuple[str, tuple[int, ...], np.dtype[Any]]] = []
        self._scalars: list[tuple[str, type | None]] = []
        self._later_integers: list[str] = []
        self._writes: list[tuple[str, Column]] = []
        self._takes: list[tuple[str, Any, int | None]] = []
        # Rings of masses share this array (gvf.sampling.prefix_sums).
        self.place = new_place(self.capacity)
        self._at = self.place.data  # the same memory, read faster from Python

    def __len__(self) -> int:
        return self._at[SIZE]

    @property
    def columns(self) -> dict[str, Column]:
        """The ring's columns [capacity, ...] in slot order; rows beyond ``len`` are not filled."""
        return dict(self._columns)

    @property
    def oldest_first(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The filled slots in order of age, int64[len]."""
        _, head, size = self._at
        return ((head if size == self.capacity else 0) + np.arange(size)) % self.capacity

    def append(self, transition: Mapping[str, Any] | None = None, /, **columns: Any) -> int:
        """Insert one transition, one value a column, and return its slot.

        Columns are given by keyword, or together as a mapping, which saves a copy.
        """
        columns_given = (
            columns if transition is None else {**transition, **columns} if columns else transition
        )
        # Most values fit their columns without conversion and take this fast path.
        if len(columns_given) != self._width:
            return self._append_slowly(columns_given)
        try:
            for name, shape, dtype in self._arrays:
                value = columns_given[name]
                if value.dtype is not dtype or value.shape != shape:
                    return self._append_slowly(columns_given)
            for name, plain in self._scalars:
                if type(columns_given[name]) is not plain:
                    return self._append_slowly(columns_given)
            for name in self._later_integers:
                if columns_given[name].bit_length() > 63:
                    return self._append_slowly(columns_given)
            slot = self._at[HEAD]
            # An integer comes first: if it is too large, nothing has been written yet.
            for name, column in self._writes:
                column[slot] = columns_given[name]
        except (AttributeError, KeyError, OverflowError):
            return self._append_slowly(columns_given)
        at, n = self._at, self.capacity
        at[HEAD] = slot + 1 if slot + 1 < n else 0
        if at[SIZE] < n:
            at[SIZE] += 1
        return slot

    def _append_slowly(self, columns: Mapping[str, Any]) -> int:
        slot = self._at[HEAD]
        if not columns and not self._columns:
            raise ValueError(_NO_COLUMNS)
        self.extend(**{name: as_row(value) for name, value in columns.items()})
        return slot

    def extend(self, /, **columns: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Insert m transitions, columns [m, ...], oldest first, and return their slots int64[m].

        The result is the same as with m calls of ``append``; if m > capacity, only the last ones
        stay.
        """
        batch = Transitions(**columns)
        rows = len(batch)
        self.make_room(batch.columns)
        slots = (self._at[HEAD] + np.arange(rows)) % self.capacity
        self._write(batch.columns, rows)
        return slots

    def make_room(self, columns: dict[str, Column]) -> None:
        """Allocate the columns if these [m, ...] are the first, and check that they fit.

        Compiled loops write into the columns themselves, and move :attr:`place`.
        """
        if not self._columns:
            self._allocate(columns)
        if columns.keys() != self._columns.keys():
            raise ValueError(self._mismatch(columns))
        self._fit(columns)

    def __getitem__(self, slots: Any) -> Transitions:
        """Return copies of the transitions in slots int[k], as columns [k, ...]."""
        if self._outside is None:
            self._outside = direct_entry(_first_outside, int64[:], int64)
        if type(slots) is ndarray and slots.dtype is _INT64 and slots.ndim == 1:
            outside = self._outside(slots, self._at[SIZE])
        else:
            slots = _as_slots(slots)
            outside = self._outside(slots.ravel(), self._at[SIZE])
        if outside >= 0:
            raise IndexError(f"slot {slots.flat[outside]} is not filled: {self!r}")
        batch = _new(Transitions)
        columns = batch.columns = {}
        # `take` is twice as fast as indexing for small batches, and a loop is faster than a
        # comprehension.
        for name, take, axis in self._takes:
            columns[name] = take(slots, axis)
        return batch

    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over the transitions, oldest first, each a batch of 1."""
        return (self[[slot]] for slot in self.oldest_first)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint beside ``path``, then rename it to ``path``."""
        checkpoint.write(path, "window", self.checkpoint())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a checkpoint: the slots, the data and the next slot are the same as before."""
        _, arrays = checkpoint.read(path, "window")
        window = cls(int(arrays["ring"][0]))
        window.restore(arrays)
        return window

    def checkpoint(self) -> dict[str, Column]:
        """Return the arrays that make up the window's state, for :meth:`restore`."""
        columns = {f"column/{name}": _copied(c[: len(self)]) for name, c in self._columns.items()}
        return {"ring": np.array([self.capacity, self._at[HEAD]]), **columns}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Restore a checkpoint of a window of the same capacity."""
        capacity, head = arrays["ring"].tolist()
        if capacity != self.capacity:
            raise ValueError(
                f"the checkpoint's capacity is {capacity}, this window's {self.capacity}"
            )
        if not 0 <= head < capacity:
            raise ValueError(f"the checkpoint's next slot, {head}, is not in [0, {capacity})")
        if "frames/names" in arrays:
            raise ValueError("the checkpoint is of a gvf.FrameWindow, and this is a gvf.Window")
        prefix = "column/"
        columns = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        restored = Window(capacity)
        if columns:
            restored.extend(**columns)
        restored.place[HEAD] = head
        # `place` must stay the same array, because masses may share it.
        self.place[:] = restored.place
        kept = {name: getattr(self, name) for name in ("place", "_at", "is_taken")}
        self.__dict__.update(restored.__dict__ | kept)

    def __getstate__(self) -> dict[str, Column]:
        return self.checkpoint()

    def __setstate__(self, arrays: dict[str, Column]) -> None:
        self.__init__(int(arrays["ring"][0]))
        self.restore(arrays)

    def __repr__(self) -> str:
        return f"Window({len(self)} of {self.capacity}: {describe_columns(self._columns)})"

    def _write(self, columns: dict[str, Column], rows: int) -> None:
        """Write rows that fit their columns, in at most two pieces around the ring."""
        skipped = max(rows - self.capacity, 0)
        head = (self._at[HEAD] + skipped) % self.capacity
        first = min(rows - skipped, self.capacity - head)
        for name, column in self._columns.items():
            values = columns[name][skipped:] if skipped else columns[name]
            column[head : head + first] = values[:first]
            if first < len(values):
                column[: len(values) - first] = values[first:]
        self._advance(rows)

    def _advance(self, rows: int) -> None:
        at = self._at
        at[HEAD], at[SIZE] = (at[HEAD] + rows) % self.capacity, min(at[SIZE] + rows, self.capacity)

    def _allocate(self, columns: dict[str, Column]) -> None:
        if not columns:
            raise ValueError(_NO_COLUMNS)
        for name, values in columns.items():
            if values.dtype.hasobject:
                raise TypeError(
                    f"column {name!r} holds Python objects ({values.dtype}), not numbers; "
                    "give arrays of one shape and type"
                )
        self._columns = {
            name: np.zeros((self.capacity, *values.shape[1:]), aligned(values.dtype))
            for name, values in columns.items()
        }
        self._plan()

    def _plan(self) -> None:
        columns = list(self._columns.items())
        self._width = len(columns)
        self._arrays = [(name, c.shape[1:], c.dtype) for name, c in columns if c.ndim > 1]
        self._scalars = [(name, _PLAIN.get(c.dtype.str[1:])) for name, c in columns if c.ndim == 1]
        integers = [name for name, plain in self._scalars if plain is int]
        self._later_integers = integers[1:]
        self._writes = sorted(columns, key=lambda item: item[0] not in integers)
        self._takes = [(name, c.take, 0 if c.ndim > 1 else None) for name, c in columns]

    def _fit(self, columns: dict[str, Column]) -> None:
        """Check columns [m, ...] against the ring's, then widen the ring's types if needed."""
        widened = {}
        for name, values in columns.items():
            column = self._columns[name]
            if values.shape[1:] != column.shape[1:]:
                raise ValueError(
                    f"column {name!r} has shape {column.shape[1:]} a transition, "
                    f"got {values.shape[1:]}"
                )
            if values.dtype != column.dtype:
                wide = _common_type(name, column, values)
                if wide != column.dtype:
                    widened[name] = column.astype(wide)
        if widened:
            self._columns.update(widened)
            self._plan()

    def _mismatch(self, columns: dict[str, Any]) -> str:
        return (
            f"this window has the columns {', '.join(self._columns)}; got {', '.join(columns)} "
            "(every insertion gives all of them)"
        )


def _common_type(name: str, column: Column, values: Column) -> np.dtype[Any]:
    """Return the column's type if it holds the values, else one that holds both, else raise."""
    present, new = column.dtype, values.dtype
    if present.names is not None and np.can_cast(new, present, "equiv"):
        return present  # the same fields with another memory layout
    if new.kind not in "biufc" or present.kind not in "biufc":
        raise TypeError(f"column {name!r} holds {present}, got {new}: {values[0]!r}")
    # A float column accepts all real numbers, at its own precision.
    if (present.kind in "fc" and new.kind in "biuf") or np.can_cast(new, present):
        return present
    if _survives(values, present):
        return present
    wide = np.promote_types(present, new)
    if not (_survives(values, wide) and _survives(column, wide)):
        raise ValueError(f"no number type holds both column {name!r} ({present}) and {values[0]!r}")
    return wide


def _copied(column: Column) -> Column:
    """Copy a column, with zeros in the padding of a structured type, which NumPy leaves unset."""
    copy = np.zeros(column.shape, column.dtype)
    copy[...] = column
    return copy


def _survives(values: Column, dtype: np.dtype[Any]) -> bool:
    """Return True if values are the same numbers in another type."""
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        return np.array_equal(values.astype(dtype), values, equal_nan=True)


def _as_slots(slots: Any) -> ndarray[Any, np.dtype[np.int64]]:
    array = np.asarray(slots)
    if isinstance(slots, slice) or (array.dtype.kind not in "iu" and array.size):
        raise IndexError(f"slots must be integers [k], got {slots!r}")
    return np.ascontiguousarray(array, np.int64)


@njit(cache=True, nogil=True)
def _first_outside(slots, size):
    """Return the position of the first slot that is not in [0, size), or -1."""
    for i in range(slots.size):
        if not 0 <= slots[i] < size:
            return i
    return -1
