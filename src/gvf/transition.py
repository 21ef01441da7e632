"""Transitions: a batch of (state, action, next state) and further values, as columns.

Cumulants, continuations, ratios and learners all take such a batch. A :class:`gvf.Window` keeps the
most recent transitions.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gvf.common.checks import as_numbers, brief
from gvf.common.errors import DataCode, DataError, place
from gvf.common.fields import as_column, as_row, joined, shapes

Column = np.ndarray[Any, np.dtype[Any]]
"""One named array of a batch, with one row per transition."""
RECORDED = ("behaviour_log_probability", "behaviour_probability")
"""The columns that a behaviour's probabilities of its actions may have; the first is preferred."""
ESTIMATED = "behaviour_is_estimated"
"""The name of the column that is True where the behaviour's probability is an estimate."""


def recorded_column(columns: Container[str]) -> str | None:
    """Return the name of the column with the behaviour's probabilities; None if there is none.

    Example:
        >>> from gvf.transition import recorded_column
        >>> recorded_column(["state", "behaviour_probability"]), recorded_column(["state"])
        ('behaviour_probability', None)
    """
    return next((name for name in RECORDED if name in columns), None)


class Transitions:
    """A batch of transitions as named columns, each an array with one row per transition.

    Cumulants, continuations and other functions of transitions take such a batch. ``len(batch)`` is
    the number of transitions. ``batch.name`` and ``batch["name"]`` give a column; indexing with a
    slice or with integers gives the batch of those rows.

    Args:
        **columns: arrays of equal length. A mapping of arrays, such as a batch of observations of a
            ``Dict`` space, becomes a structured array with the same fields. The usual names are
            ``state``, ``action``, ``reward``, ``next_state``, ``terminated``, ``truncated``, and
            ``behaviour_probability`` or ``behaviour_log_probability`` if the behaviour was
            recorded. A column such as ``done`` without ``terminated`` raises an error, because it
            does not distinguish the end of a task from a time limit.

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
            # A call for each column would double the time of this method.
            self.columns = {
                name: as_column(column, f"column {name!r}")
                if isinstance(column, dict | np.ma.MaskedArray)
                else np.asarray(column)
                for name, column in columns.items()
            }
        except ValueError:
            for name, column in columns.items():
                as_column(column, f"column {name!r}")
            raise
        if "terminated" not in columns and (ends := _ENDS & columns.keys()):
            raise ValueError(_DONE.replace("done", ends.pop()))
        lengths = {name: column.shape[:1] for name, column in self.columns.items()}
        if () in lengths.values() or len(set(lengths.values())) > 1:
            raise ValueError(
                "columns need one row a transition, equally many; got " + shapes(self.columns)
            )

    @classmethod
    def _of(cls, columns: dict[str, Column]) -> Self:
        """Wrap columns without checks; they must fit."""
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
        # copy and pickle look up dunder names before there are columns.
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


_ENDS = {"done", "dones", "terminal", "terminals", "is_terminal"}
"""Columns that say where episodes end, but not why."""
_DONE = """there is a column 'done' and none 'terminated'; 'done' does not say why an episode ended.
Give both columns of Gymnasium instead:
    terminated    the task ended the episode: nothing follows, and the return ends here
    truncated     a time limit cut it: the world would have gone on, and so does the return
If no time limit cut any episode: terminated=done, truncated=np.zeros(len(done), bool).
If every episode was cut by one: terminated=np.zeros(len(done), bool), truncated=done.
If a limit of T steps cut some: truncated=done & (step == T), terminated=done & (step < T)."""


def nan_rows(column: Column) -> NDArray[np.bool_]:
    """Return the rows of a column [m, ...] that contain a NaN: bool[m].

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
    return np.asarray(np.isnan(column).any(axis=tuple(range(1, column.ndim))))


def nan_place(name: str, value: Any) -> str:
    """Return the place of the first NaN in a row of a column; the name alone for a number.

    Example:
        >>> import numpy as np
        >>> from gvf.common.fields import as_row
        >>> from gvf.transition import nan_place
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
    """Raise ValueError if a column has a NaN; the message says where.

    Example:
        >>> import numpy as np
        >>> from gvf.transition import check_no_nan
        >>> check_no_nan("state", np.array([[0.5, 1.0], [0.5, np.nan]]))
        Traceback (most recent call last):
        gvf.common.errors.DataError: state[1] is nan at position 1; repair it, or let the learner
        leave out such transitions: on_nan="skip"
    """
    missing = nan_rows(column)
    if missing.any():
        at = int(missing.argmax())
        raise DataError(
            f"{nan_place(name, column[at])} is nan",
            place(at),
            '; repair it, or let the learner leave out such transitions: on_nan="skip"',
            code=DataCode.NOT_FINITE,
            column=name,
            value=column[at],
        )


def without_last_states(transitions: Transitions) -> Transitions:
    """Replace next states with a NaN by the states, where ``terminated`` says that nothing follows.

    Logs often have no state after the last one of an episode, and no prediction uses it.

    Example:
        >>> from gvf.transition import Transitions, without_last_states
        >>> nan = float("nan")
        >>> log = Transitions(state=[1.0, 2.0], next_state=[nan, nan], terminated=[False, True])
        >>> without_last_states(log).next_state
        array([nan,  2.])
    """
    columns = transitions.columns
    ended, after = columns.get("terminated"), columns.get("next_state")
    if ended is None or after is None or "state" not in columns:
        return transitions
    # A reduction would take longer than a look at the only row.
    if not (ended[0] if len(ended) == 1 else ended.any()):
        return transitions
    unused = nan_rows(after) & (ended == 1)
    if not unused.any():
        return transitions
    filled = after.copy()
    filled[unused] = transitions["state"][unused]
    return Transitions._of({**columns, "next_state": filled})


TransitionsLike = Transitions | Iterable[Transitions | Mapping[str, Any]]
"""Transitions, or a list of batches and of mappings, one transition each."""


def ended_rows(columns: Mapping[str, Column], count: int) -> NDArray[np.bool_]:
    """Find the rows with which an episode ends, terminated or truncated: bool[m].

    Example:
        >>> import numpy as np
        >>> from gvf.transition import ended_rows
        >>> ended_rows({"terminated": np.array([0, 1, 0]), "truncated": np.array([0, 0, 1])}, 3)
        array([False,  True,  True])
    """
    ended = np.zeros(count, bool)
    for name in ("terminated", "truncated"):
        if name in columns:
            column = columns[name]
            if column.dtype.kind != "b":
                column = as_numbers(column, f"column {name!r}").astype(bool)
            ended |= column
    return ended


def as_transitions(rows: Any) -> Transitions:
    """Return transitions from themselves, or from a list of rows or batches.

    Example:
        >>> from gvf.transition import as_transitions
        >>> as_transitions([{"state": 3, "reward": 0.5}, {"state": 4, "reward": 1.0}]).state
        array([3, 4])
    """
    if isinstance(rows, Transitions):
        return rows
    if isinstance(rows, Mapping | str) or not isinstance(rows, Iterable):
        hint = "; of a table, gvf.Transitions(**table)" if isinstance(rows, Mapping) else ""
        raise TypeError(
            f"expected gvf.Transitions, or a list of mappings (one transition each), got "
            f"{brief(rows)}{hint}"
        )
    items: list[Transitions | list[Mapping[str, Any]]] = []
    for position, item in enumerate(rows):
        check_item(item, position)
        if isinstance(item, Transitions):
            items.append(item)
        elif items and isinstance(items[-1], list):
            items[-1].append(item)
        else:
            items.append([item])
    return together(items)


def one_row(columns: Mapping[str, Any]) -> Transitions:
    """Make a batch of one transition from one value a column, ``terminated`` among them.

    Example:
        >>> from gvf.transition import one_row
        >>> one_row({"state": [0.5, 1.0], "reward": 2.0, "terminated": False})
        Transitions(1: state float64[2], reward float64, terminated bool)
    """
    try:
        # A call for each value would take longer. Columns of one row need no check.
        return Transitions._of({
            name: as_row(value) if isinstance(value, dict) else np.asarray(value)[None]
            for name, value in columns.items()
        })  # fmt: skip
    except ValueError:
        return Transitions(**{name: as_row(value, f"{name!r}") for name, value in columns.items()})


def is_transitions(value: Any) -> bool:
    """Return True for transitions, and for a list of rows or batches."""
    if isinstance(value, list) and value:
        return isinstance(value[0], Transitions | Mapping)
    return isinstance(value, Transitions)


def check_item(item: Any, position: int) -> None:
    """Raise TypeError if an item of a source is neither a batch nor a transition."""
    if not isinstance(item, Transitions | Mapping):
        raise TypeError(
            f"item {position} is a {type(item).__name__}; give gvf.Transitions (a batch) or "
            "mappings (one transition): {'state': ..., 'action': ..., 'reward': ..., "
            "'next_state': ..., 'terminated': ..., 'behaviour_probability': ...}"
        )


def together(items: Iterable[Transitions | list[Mapping[str, Any]]]) -> Transitions:
    """Join batches and lists of mappings into one batch, in order."""
    return Transitions.concatenate(
        item if isinstance(item, Transitions) else _of_rows(item) for item in items
    )


def _of_rows(rows: list[Mapping[str, Any]]) -> Transitions:
    """Make one batch of mappings with the same keys."""
    names = rows[0].keys()
    for row in rows:
        if row.keys() != names:
            raise ValueError(
                f"all transitions must have the same columns; some have {', '.join(names)}, "
                f"others {', '.join(row)}"
            )
    return Transitions(**{name: joined([row[name] for row in rows]) for name in names})


def describe_columns(columns: dict[str, Column]) -> str:
    """List the names, types and shapes of columns in a line.

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
    """Format a type and shape; a structured type shows its fields in braces."""
    if dtype.subdtype is not None:
        base, inner = dtype.subdtype
        return _described(base, (*shape, *inner))
    text = str(dtype)
    if dtype.names is not None:
        text = (
            "{" + ", ".join(f"{name} {_described(dtype[name], ())}" for name in dtype.names) + "}"
        )
    return f"{text}{list(shape) if shape else ''}"
