"""Checks of arguments with the same messages everywhere in gvf.

A message names the argument, the given value, and the remedy. Long values are abbreviated, because
a log of a million rows may have been passed by mistake.
"""

from __future__ import annotations

from operator import index
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from gvf.common.errors import DataCode, DataError, Place

_LONGEST = 80
"""The largest number of characters of a value in a message."""


def brief(value: Any) -> str:
    """Format a value in at most 80 characters, for a message.

    Example:
        >>> import numpy as np
        >>> from gvf.common.checks import brief
        >>> brief("IR"), brief(np.zeros((500, 3)))
        ("'IR'", 'an array float64[500, 3]')
        >>> brief([[0.0] * 3] * 1000)
        'a list of 1000: [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0...'
    """
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"an array {value.dtype}{list(value.shape)}"
    start = value
    if isinstance(value, list | tuple) and len(value) > 20:  # avoid the repr of a long list
        start = value[:20]
    try:
        text = " ".join(repr(start).split())
    except RecursionError:
        text = object.__repr__(value)
    if start is value and len(text) <= _LONGEST:
        return text
    if isinstance(value, list | tuple | dict | set):
        text = f"a {type(value).__name__} of {len(value)}: {text}"
    return f"{text[: _LONGEST - 3]}..."


def whole(name: str, value: Any, least: int) -> int:
    """Return a count as an integer; raise an error if it is not one, or below ``least``.

    Example:
        >>> from gvf.common.checks import whole
        >>> whole("steps", 1000, 0)
        1000
        >>> whole("steps", 1e3, 0)
        Traceback (most recent call last):
        TypeError: steps must be an integer, and 1000.0 is a float: write 1000
    """
    try:
        number = index(value)
    except TypeError:
        message = f"got {brief(value)}"
        if isinstance(value, float | np.floating) and float(value).is_integer():
            message = f"and {float(value)} is a float: write {int(value)}"
        raise TypeError(f"{name} must be an integer, {message}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return number


def is_number(value: Any) -> bool:
    """Return True for one finite real number.

    Example:
        >>> from gvf.common.checks import is_number
        >>> [is_number(value) for value in (0.5, "0.5", [0.5], float("nan"))]
        [True, False, False, False]
    """
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and bool(abs(value) < np.inf)


def as_array(values: Any, what: str) -> NDArray[Any]:
    """Return an array; raise ValueError if its rows differ in shape.

    Example:
        >>> from gvf.common.checks import as_array
        >>> as_array([[1.0], [2.0, 3.0]], "column 'state'")
        Traceback (most recent call last):
        ValueError: the rows of column 'state' differ in shape: row 0 has (1,), row 1 has (2,)
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{what} has masked values: fill them, or leave those rows out")
    try:
        return np.asarray(values)
    except ValueError:
        shapes = [_shape(row) for row in values]
        other = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), 0)
        message = ", ".join(f"row {i} has {shapes[i]}" for i in dict.fromkeys((0, other)))
        raise ValueError(f"the rows of {what} differ in shape: {message}") from None


def as_numbers(values: Any, what: str) -> NDArray[Any]:
    """Return an array; raise ValueError if it holds text, which NumPy would read as numbers.

    Example:
        >>> from gvf.common.checks import as_numbers
        >>> as_numbers(["0.5", "1"], "column 'reward'")
        Traceback (most recent call last):
        gvf.common.errors.DataError: column 'reward': '0.5' at position 0 is text, and must be a
        number
    """
    array = values if type(values) is np.ndarray else as_array(values, what)
    if array.dtype.kind not in "USO":
        return array
    texts = (at for at, value in np.ndenumerate(array) if isinstance(value, str | bytes))
    if (at := next(texts, None)) is not None:
        raise DataError(
            f"{what}: {str(array[at])!r}",
            *_places(at),
            " is text, and must be a number",
            code=DataCode.NOT_A_NUMBER,
            column=what,
            value=array[at],
        )
    return array


def _places(at: tuple[int, ...]) -> list[Place]:
    """Return the place of an index; none in a single number."""
    if not at:
        return []
    return [Place(at[0], f" at position {at[0] if len(at) == 1 else list(at)}", "")]


def _shape(row: Any) -> str:
    try:
        return str(np.shape(row))
    except ValueError:
        return "parts of different shapes"


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Raise ValueError if a value is not one of the words of a ``Literal``."""
    known = get_args(choices)
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {brief(value)}")


def set_frozen(instance: object, **values: Any) -> None:
    """Set attributes of a frozen instance during its construction."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)
