"""Transitions: a batch of (state, action, next state), and whatever belongs to each, as columns.

Everything that looks at experience takes such a batch: cumulants, continuations, policies' ratios,
learners. A :class:`gvf.Window` keeps the most recent ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gvf.common.checks import as_array, brief

Column = np.ndarray[Any, np.dtype[Any]]
"""Data of one kind, one row a transition."""


class Transitions:
    """A batch of transitions as named columns, each an array with one row a transition.

    Cumulants, continuations and other functions of a batch take this. ``len`` is the number of
    transitions; indexing by a name gives a column, by a slice or by integers the batch of those
    rows.

    Args:
        **columns: arrays of equal length; a mapping of arrays, such as a batch of observations of a
            ``Dict`` space, becomes a structured array with these fields. The usual names are
            ``state``, ``action``, ``reward``, ``next_state``, ``terminated``, ``truncated``, and
            ``behaviour_probability`` or ``behaviour_log_probability`` when the behaviour was
            recorded. A column ``done`` without ``terminated`` is refused: it does not say whether
            the task ended an episode or a time limit cut it.

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
        try:
            # A call for each column would cost as much as all else here.
            self.columns = {
                name: as_column(column) if isinstance(column, dict) else np.asarray(column)
                for name, column in columns.items()
            }
        except ValueError:
            for name, column in columns.items():
                as_column(column, f"column {name!r}")
            raise
        if "done" in columns and "terminated" not in columns:
            raise ValueError(_DONE)
        lengths = {name: column.shape[:1] for name, column in self.columns.items()}
        if () in lengths.values() or len(set(lengths.values())) > 1:
            shapes = _shapes(self.columns)
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


_DONE = """there is a column 'done' and none 'terminated'; 'done' does not say why an episode ended.
Give both columns of Gymnasium instead:
    terminated    the task ended the episode: nothing follows, and the return ends here
    truncated     a time limit cut it: the world would have gone on, and so does the return
If no time limit cut any episode: terminated=done, truncated=np.zeros(len(done), bool).
If every episode was cut by one: terminated=np.zeros(len(done), bool), truncated=done.
If a limit of T steps cut some: truncated=done & (step == T), terminated=done & (step < T)."""


def nan_rows(column: Column) -> NDArray[np.bool_]:
    """The rows of a column [m, ...] that have a NaN somewhere: bool[m].

    Example:
        >>> import numpy as np
        >>> from gvf.transition import nan_rows
        >>> nan_rows(np.array([[0.5, 1.0], [np.nan, 2.0]]))
        array([False,  True])
    """
    if column.dtype.names is not None:
        fields = [nan_rows(column[name]) for name in column.dtype.names]
        return np.array(np.stack(fields).any(axis=0))
    if column.dtype.kind not in "fc":
        return np.zeros(len(column), bool)
    return np.array(np.isnan(column).reshape(len(column), -1).any(axis=1))


def nan_place(name: str, value: Any) -> str:
    """The first place of a NaN in one row of a column; the name alone if the row is a number.

    Example:
        >>> import numpy as np
        >>> from gvf.transition import as_row, nan_place
        >>> nan_place("state", as_row({"lidar": [0.5, np.nan], "door": 1})[0])
        "state['lidar'][1]"
    """
    value = np.asarray(value)
    if value.dtype.names is not None:
        field = next(part for part in value.dtype.names if nan_rows(value[part][None])[0])
        return nan_place(f"{name}[{field!r}]", value[field])
    at = np.argwhere(np.isnan(value))[0].tolist()
    return f"{name}{at}" if at else name


def check_no_nan(name: str, column: Column) -> None:
    """Refuse a column with a NaN, and say where it is.

    Example:
        >>> import numpy as np
        >>> from gvf.transition import check_no_nan
        >>> check_no_nan("state", np.array([[0.5, 1.0], [0.5, np.nan]]))
        Traceback (most recent call last):
        ValueError: state[1] is nan at position 1; repair it, or let the learner leave out such
        transitions: on_nan="skip"
    """
    missing = nan_rows(column)
    if missing.any():
        at = int(missing.argmax())
        raise ValueError(
            f"{nan_place(name, column[at])} is nan at position {at}; repair it, or let the learner "
            'leave out such transitions: on_nan="skip"'
        )


def as_column(values: Any, what: str = "a column") -> Column:
    """An array of one row a transition; a mapping of them as a structured array [m].

    Example:
        >>> from gvf.transition import as_column
        >>> states = as_column({"position": [[0.5, 1.0], [1.5, 2.0]], "door": [0, 1]})
        >>> states.shape, states["position"][1], states[1]["door"]
        ((2,), array([1.5, 2. ]), np.int64(1))
    """
    if not isinstance(values, dict):
        return as_array(values, what)
    fields = {name: as_column(part, f"{what}[{name!r}]") for name, part in values.items()}
    lengths = {column.shape[:1] for column in fields.values()}
    if len(lengths) != 1 or () in lengths:
        raise ValueError(
            f"the fields of {what} need one row a transition, equally many; got {_shapes(fields)}"
        )
    types = [(name, (column.dtype, column.shape[1:])) for name, column in fields.items()]
    rows = np.empty(lengths.pop(), aligned(np.dtype(types)))
    for name, column in fields.items():
        rows[name] = column
    return rows


def _shapes(columns: dict[str, Column]) -> str:
    """The shapes of columns, in a line; of many, those of the first."""
    told = [f"{name} {column.shape}" for name, column in columns.items()]
    return ", ".join([*told[:12], "..."] if len(told) > 12 else told)


def joined(values: list[Any]) -> Column:
    """A column from the values of its rows, one by one."""
    if not isinstance(values[0], dict):
        return as_array(values, "a column")
    for value in values:
        if not isinstance(value, dict) or value.keys() != values[0].keys():
            raise ValueError(
                "all rows of a column must have the same fields; some have "
                f"{', '.join(values[0])}, others "
                f"{', '.join(value) if isinstance(value, dict) else brief(value)}"
            )
    return as_column({name: joined([value[name] for value in values]) for name in values[0]})


def as_row(value: Any) -> Column:
    """A column of one row."""
    return joined([value]) if isinstance(value, dict) else np.asarray(value)[None]


def aligned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type itself; a structured one laid out as C does, for compiled code and torch.

    Example:
        >>> import numpy as np
        >>> from gvf.transition import aligned
        >>> packed = np.dtype([("door", np.bool_), ("distance", np.float64)])
        >>> packed.itemsize, aligned(packed).itemsize
        (9, 16)
    """
    if dtype.names is None:
        return dtype
    return np.dtype([(name, aligned(dtype[name])) for name in dtype.names], align=True)


def describe_columns(columns: dict[str, Column]) -> str:
    """Names, types and shapes of columns, in a line.

    Example:
        >>> import numpy as np
        >>> from gvf.transition import describe_columns
        >>> fields = [("position", np.float32, (2,)), ("door", np.int64)]
        >>> describe_columns({"state": np.zeros(3, fields), "reward": np.zeros(3)})
        'state {position float32[2], door int64}, reward float64'
    """
    return ", ".join(
        f"{name} {_described(column.dtype, column.shape[1:])}" for name, column in columns.items()
    )


def _described(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """A type and shape; of a structured type, those of each field in braces."""
    if dtype.subdtype is not None:
        base, inner = dtype.subdtype
        return _described(base, (*shape, *inner))
    told = str(dtype)
    if dtype.names is not None:
        told = (
            "{" + ", ".join(f"{name} {_described(dtype[name], ())}" for name in dtype.names) + "}"
        )
    return f"{told}{list(shape) if shape else ''}"
