"""Columns of Arrow as arrays of NumPy, and back.

A list column whose lists have equal lengths is an array [m, length], and a struct is a structured
array, as for observations of a ``Dict`` space. A missing number is NaN. Text stays text. Other
types have no array here, and their columns are left out of a log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gvf.common.arrays import Array
from gvf.common.fields import as_column

if TYPE_CHECKING:
    import pyarrow as pa

RowText = Callable[[int], str]
"""A function from a row of an array to its place in the source, in words."""


def is_known(kind: pa.DataType) -> bool:
    """Return True if columns of a type can be arrays.

    Example:
        >>> import pyarrow as pa
        >>> from gvf.log.arrow import is_known
        >>> is_known(pa.list_(pa.float64())), is_known(pa.binary())
        (True, False)
    """
    import pyarrow.types as types

    if _is_list(kind):
        return is_known(kind.value_type)
    if types.is_struct(kind):
        return all(is_known(kind.field(i).type) for i in range(kind.num_fields))
    if types.is_dictionary(kind):
        return is_known(kind.value_type)
    known = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    times = (types.is_temporal,)
    return any(test(kind) for test in (*known, *texts, *times))


def as_numpy(column: pa.Array, name: str, row_text: RowText) -> Array:
    """Return a column of Arrow as an array [m, ...].

    Args:
        column: the column.
        name: its name, for messages.
        row_text: the place of a row in the source, in words.

    Raises:
        ValueError: if its lists differ in length.

    Example:
        >>> import pyarrow as pa
        >>> from gvf.log.arrow import as_numpy
        >>> as_numpy(pa.array([[1, 2], [3, 4]]), "obs", str)
        array([[1, 2],
               [3, 4]])
        >>> as_numpy(pa.array([1.5, None]), "reward", str)
        array([1.5, nan])
    """
    import pyarrow as pa
    import pyarrow.types as types

    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if types.is_dictionary(kind):
        return as_numpy(column.dictionary_decode(), name, row_text)
    if _is_list(kind):
        return _from_lists(column, name, row_text)
    if types.is_struct(kind):
        fields = [kind.field(i).name for i in range(kind.num_fields)]
        arrays = zip(fields, column.flatten(), strict=True)
        return as_column(
            {field: as_numpy(part, f"{name}.{field}", row_text) for field, part in arrays}
        )
    if types.is_decimal(kind):
        column = column.cast(pa.float64())
    if types.is_boolean(kind) and column.null_count:
        column = column.cast(pa.uint8())  # a missing one is then NaN
    array = column.to_numpy(zero_copy_only=False)
    if array.dtype == object:
        return np.array(["" if value is None else str(value) for value in array], np.str_)
    return array


def _from_lists(column: pa.Array, name: str, row_text: RowText) -> Array:
    """Return lists of equal lengths as an array; a missing list is all NaN."""
    from pyarrow import compute

    is_valid = np.asarray(column.is_valid())
    lengths = (
        compute.call_function("list_value_length", [column])
        .fill_null(-1)
        .to_numpy(zero_copy_only=False)
    )
    sizes = np.unique(lengths[is_valid])
    if len(sizes) > 1:
        usual = lengths[is_valid][0]
        at = int((is_valid & (lengths != usual)).argmax())
        raise ValueError(
            f"{row_text(at)}: column {name!r} has a list of {lengths[at]}, and {usual} before: all "
            "lists of a column must have the same length"
        )
    size = int(sizes[0]) if len(sizes) else 0
    inner = as_numpy(column.flatten(), name, row_text)
    inner = inner.reshape(int(is_valid.sum()), size, *inner.shape[1:])
    if is_valid.all():
        return inner
    if not len(sizes):
        raise ValueError(f"{row_text(0)}: column {name!r} is empty")
    filled = np.full((len(column), *inner.shape[1:]), np.nan)
    filled[is_valid] = inner
    return filled


def as_arrow(column: Array, clock: Any = None) -> pa.Array:
    """Return an array [m, ...] as a column of Arrow, with lists of fixed size for its rows.

    A column of points in time gets the type `clock`, which has their time zone.

    Example:
        >>> import numpy as np
        >>> from gvf.log.arrow import as_arrow
        >>> print(as_arrow(np.zeros((5, 2, 3), np.float32)).type)
        fixed_size_list<item: fixed_size_list<item: float>[3]>[2]
    """
    import pyarrow as pa

    if column.dtype.names is not None:
        fields = list(column.dtype.names)
        return pa.StructArray.from_arrays([as_arrow(column[name]) for name in fields], fields)
    values = pa.array(np.ascontiguousarray(column).reshape(-1))
    for size in reversed(column.shape[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, size)
    return values if clock is None else values.cast(clock)


def _is_list(kind: Any) -> bool:
    import pyarrow.types as types

    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
