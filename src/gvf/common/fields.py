"""Values with fields: mappings of arrays, such as Dict observations, as structured arrays.

A batch of m values with fields is a structured array [m], so that ``states["position"]`` is [m, d]
and rows are taken as of any other array. A mapping alone does not tell whether it is one value or a
batch: ``{"agent": [0, 1], "target": [2, 3]}`` may be one observation with two positions, or two
observations with two numbers each. :func:`as_states` decides it for all policies, features and
learners. Where lengths do not tell, it needs the type of one state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gvf.common.arrays import Array, Floats
from gvf.common.checks import as_array, brief


def as_column(values: Any, what: str = "a column") -> Array:
    """Return an array with one row per transition; a mapping becomes a structured array [m].

    Example:
        >>> from gvf.common.fields import as_column
        >>> states = as_column({"position": [[0.5, 1.0], [1.5, 2.0]], "door": [0, 1]})
        >>> states.shape, states["position"][1], states[1]["door"]
        ((2,), array([1.5, 2. ]), np.int64(1))
    """
    if not isinstance(values, Mapping):
        return as_array(values, what)
    fields = {name: as_column(part, f"{what}[{name!r}]") for name, part in values.items()}
    lengths = {column.shape[:1] for column in fields.values()}
    if len(lengths) != 1 or () in lengths:
        raise ValueError(
            f"the fields of {what} need one row a transition, equally many; got {shapes(fields)}"
        )
    types = [(name, (column.dtype, column.shape[1:])) for name, column in fields.items()]
    rows = np.empty(lengths.pop(), aligned(np.dtype(types)))
    for name, column in fields.items():
        rows[name] = column
    return rows


def as_row(value: Any, what: str = "a row") -> Array:
    """Return a column of one row."""
    if isinstance(value, Mapping | np.void):
        return joined([value], what)
    return as_array(value, what)[None]


def joined(values: list[Any], what: str = "a column") -> Array:
    """Return a column from a list of the values of its rows."""
    first = values[0]
    if isinstance(first, np.void):
        return np.stack(values)
    if not isinstance(first, Mapping):
        return as_array(values, what)
    for value in values:
        if not isinstance(value, Mapping) or value.keys() != first.keys():
            raise ValueError(
                f"all rows of {what} must have the same fields; some have {', '.join(first)}, "
                f"others {', '.join(value) if isinstance(value, Mapping) else brief(value)}"
            )
    parts = {name: [value[name] for value in values] for name in first}
    return as_column({name: joined(part, f"{what}[{name!r}]") for name, part in parts.items()})


def as_states(states: Any, like: np.dtype[Any] | None = None) -> Any:
    """Return a batch of states from a batch, or from one state with fields.

    A mapping is one state or a batch, by the shapes of its fields. A list of mappings is a batch of
    as many states, and one row of a structured array is a batch of 1. Anything else is a batch
    already, and is returned as it is.

    Args:
        states: the states.
        like: the structured type of one state, if it is known. Without it, a mapping is one state
            if its fields differ in length, or if one of them is a number.

    Raises:
        ValueError: if a mapping does not fit the type, or may be one state as well as several.

    Example:
        >>> import numpy as np
        >>> from gvf.common.fields import as_states
        >>> as_states({"position": [0.5, 1.0], "door": 1}).shape
        (1,)
        >>> as_states([{"position": [0.5, 1.0], "door": 1}] * 3).shape
        (3,)
        >>> maze = np.dtype([("agent", np.int64, (2,)), ("target", np.int64, (2,))])
        >>> as_states({"agent": [0, 1], "target": [2, 3]}, maze).shape
        (1,)
        >>> as_states([0.5, 1.0])
        [0.5, 1.0]
    """
    if isinstance(states, np.ndarray):
        return states[None] if states.dtype.names is not None and not states.ndim else states
    if isinstance(states, np.void):
        return np.asarray(states)[None]
    if isinstance(states, Mapping):
        states = states if like is None else _in_order(states, like)
        if _is_one(states, like):
            return as_row(states, "the state")
        return as_column(states, "the states")
    if isinstance(states, list | tuple) and states and isinstance(states[0], Mapping | np.void):
        rows = list(states)
        if like is not None and isinstance(rows[0], Mapping):
            rows = [_in_order(row, like) for row in rows]
            if not all(_is_one(row, like) for row in rows):
                raise ValueError("a list of states is of single ones, and this has a batch in it")
        return joined(rows, "the states")
    return states


def flattened(rows: Array) -> Array:
    """Return the numbers of all fields of a structured array [m], field by field, [m, many].

    Example:
        >>> from gvf.common.fields import as_column, flattened
        >>> flattened(as_column({"position": [[0.5, 1.0], [1.5, 2.0]], "door": [0, 1]}))
        array([[0.5, 1. , 0. ],
               [1.5, 2. , 1. ]])
    """
    parts = [rows[name] for name in rows.dtype.names or ()]
    return np.concatenate(
        [flattened(part) if part.dtype.names else part.reshape(len(rows), -1) for part in parts], 1
    )


def as_matrix(states: Any) -> Floats:
    """Return states as a matrix float64[m, d]; the fields of a structured array in order.

    Example:
        >>> import numpy as np
        >>> from gvf.common.fields import as_matrix
        >>> as_matrix(np.zeros((3, 2, 2))).shape
        (3, 4)
    """
    states = np.asarray(states)
    if states.dtype.names is not None:
        states = flattened(states)
    return states.reshape(len(states), -1).astype(np.float64)


def aligned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type; a structured one with the layout of C, for compiled code and torch.

    Example:
        >>> import numpy as np
        >>> from gvf.common.fields import aligned
        >>> packed = np.dtype([("door", np.bool_), ("distance", np.float64)])
        >>> packed.itemsize, aligned(packed).itemsize
        (9, 16)
    """
    if dtype.names is None:
        return dtype
    return np.dtype([(name, aligned(dtype[name])) for name in dtype.names], align=True)


def shapes(columns: Mapping[str, Array]) -> str:
    """List the shapes of columns in a line, at most twelve."""
    texts = [f"{name} {column.shape}" for name, column in columns.items()]
    return ", ".join([*texts[:12], "..."] if len(texts) > 12 else texts)


def _is_one(states: Mapping[str, Any], like: np.dtype[Any] | None) -> bool:
    """Return True if a mapping is one state, False if it is a batch."""
    sizes = dict(_sizes(states))
    lengths = {size[:1] for size in sizes.values()}
    is_batch = len(lengths) == 1 and () not in lengths
    if like is None and is_batch:
        ((length,),) = lengths
        raise ValueError(
            f"all fields of the states ({', '.join(sizes)}) have the length {length}, so they may "
            f"be one state or a batch of {length}: for one give [state], and for a batch an array "
            "with fields, gvf.Transitions(state=states).state"
        )
    known = sizes if like is None else dict(_sizes(like))
    wanted = {at: known[at] for at in sizes}
    if sizes == wanted:
        return True
    if is_batch and {at: size[1:] for at, size in sizes.items()} == wanted:
        return False
    at = next(at for at, size in sizes.items() if size != wanted[at])
    raise ValueError(
        f"the states' {at} has the shape {sizes[at]}; one state has {wanted[at]} there, and m "
        f"states have {('m', *wanted[at])}"
    )


def _sizes(fields: Any, path: str = "") -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the names and shapes of all fields, those of a mapping or of a structured type."""
    for name in (fields.names or ()) if isinstance(fields, np.dtype) else fields:
        part, at = fields[name], f"{path}[{name!r}]" if path else repr(name)
        if isinstance(part, Mapping) or (isinstance(part, np.dtype) and part.names):
            yield from _sizes(part, at)
        elif isinstance(part, np.dtype):
            yield at, part.shape
        else:
            yield at, as_array(part, f"the states' {at}").shape


def _in_order(states: Any, like: np.dtype[Any]) -> dict[str, Any]:
    """Return the fields that a type has, in its order; some may be missing."""
    names = like.names or ()
    if not isinstance(states, Mapping) or not any(name in states for name in names):
        raise ValueError(f"a state has the fields {', '.join(names)}, and got {brief(states)}")
    return {
        name: _in_order(states[name], like[name]) if like[name].names else states[name]
        for name in names
        if name in states
    }
