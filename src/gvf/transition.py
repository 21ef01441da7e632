"""Transitions: a batch of (state, action, next state), and whatever belongs to each, as columns.

Everything that looks at experience takes such a batch: cumulants, continuations, policies' ratios,
learners. A :class:`gvf.Window` keeps the most recent ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

Column = np.ndarray[Any, np.dtype[Any]]
"""Data of one kind, one row a transition."""


class Transitions:
    """A batch of transitions as named columns, each an array with one row a transition.

    Cumulants, continuations and other functions of a batch take this. ``len`` is the number of
    transitions; indexing by a name gives a column, by a slice or by integers the batch of those
    rows.

    Args:
        **columns: arrays of equal length. The usual names are ``state``, ``action``, ``reward``,
            ``next_state``, ``terminated``, ``truncated``, and ``behaviour_probability`` or
            ``behaviour_log_probability`` when the behaviour was recorded.

    Example:
        >>> import gvf
        >>> batch = gvf.Transitions(state=[0, 1, 2], reward=[0.0, 0.5, 1.0])
        >>> len(batch), batch.reward.sum(), batch[1:].state
        (3, np.float64(1.5), array([1, 2]))
        >>> batch
        Transitions(3: state int64, reward float64)
    """

    __slots__ = ("columns",)
    columns: dict[str, Column]

    def __init__(self, /, **columns: Any) -> None:
        self.columns = {name: np.asarray(column) for name, column in columns.items()}
        lengths = {name: column.shape[:1] for name, column in self.columns.items()}
        if () in lengths.values() or len(set(lengths.values())) > 1:
            shapes = ", ".join(f"{name} {column.shape}" for name, column in self.columns.items())
            raise ValueError(f"columns need one row a transition, equally many; got {shapes}")

    @classmethod
    def _of(cls, columns: dict[str, Column]) -> Self:
        """Wrap columns that are known to fit, without a look."""
        batch = cls.__new__(cls)
        batch.columns = columns
        return batch

    @classmethod
    def concatenate(cls, batches: Iterable[Transitions]) -> Transitions:
        """Join batches with the same columns into one, in order.

        Example:
            >>> import gvf
            >>> halves = [gvf.Transitions(state=[0, 1]), gvf.Transitions(state=[2])]
            >>> gvf.Transitions.concatenate(halves).state
            array([0, 1, 2])
        """
        batches = list(batches)
        names = batches[0].columns.keys() if batches else ()
        for batch in batches:
            if batch.columns.keys() != names:
                raise ValueError(
                    f"all transitions must have the same columns; some have {', '.join(names)}, "
                    f"others {', '.join(batch.columns)}"
                )
        if len(batches) == 1:
            return batches[0]
        return cls(**{name: np.concatenate([b.columns[name] for b in batches]) for name in names})

    def __len__(self) -> int:
        for column in self.columns.values():
            return len(column)
        return 0

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):
            key = [key]
        if not isinstance(key, str):
            return self._of({name: column[key] for name, column in self.columns.items()})
        if key not in self.columns:
            raise KeyError(self._unknown(key))
        return self.columns[key]

    def __getattr__(self, name: str) -> Column:
        # Dunder look-ups come from copy and pickle, before there are columns.
        if name.startswith("__") or name == "columns":
            raise AttributeError(name)
        if name not in self.columns:
            raise AttributeError(self._unknown(name))
        return self.columns[name]

    def __getstate__(self) -> dict[str, Column]:
        return self.columns

    def __setstate__(self, columns: dict[str, Column]) -> None:
        self.columns = columns

    def _unknown(self, name: str) -> str:
        return f"no column {name!r} in these transitions; there are: {', '.join(self.columns)}"

    def __repr__(self) -> str:
        return f"Transitions({len(self)}: {describe_columns(self.columns)})"


def describe_columns(columns: dict[str, Column]) -> str:
    """Names, types and shapes of columns, in a line."""
    return ", ".join(
        f"{name} {column.dtype}{list(column.shape[1:]) if column.ndim > 1 else ''}"
        for name, column in columns.items()
    )
