"""Errors as data: whose option, which column and value, and where in a batch.

The same mistake is met by someone who calls a function, and by someone who writes a question file.
One writes ``ends="truncated"``, and the other ``ends = "truncated"`` in [log]. And a row has one
position in the batch that a policy sees, and another in the file. So a message is made of parts,
and whoever shows it decides how they are written. Nobody needs to read a message to change it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from typing import Any, NamedTuple


class Words(NamedTuple):
    """A part of a message that differs between Python and a question file."""

    python: str
    file: str


class Place(NamedTuple):
    """The part of a message that says where in a batch a value is."""

    position: int
    text: str
    """The words, which name the position."""
    elsewhere: str
    """The words in a message that names the place of the row in another way."""


def place(
    position: Any, before: str = " at position ", after: str = "", elsewhere: str = ""
) -> Place:
    """Return the part of a message with a position in a batch.

    Example:
        >>> from gvf.common.errors import place
        >>> place(3)
        Place(position=3, text=' at position 3', elsewhere='')
    """
    return Place(int(position), f"{before}{position}{after}", elsewhere)


class OptionError(ValueError):
    """An error whose message is made of parts, so that each reader gets its own words.

    Example:
        >>> from gvf.common.errors import OptionError, option
        >>> error = OptionError("row 3: read with ", option("ends", "truncated"), " if it was cut")
        >>> print(error)
        row 3: read with ends="truncated" if it was cut
        >>> error.in_file
        'row 3: read with ends = "truncated" in [log] if it was cut'
    """

    def __init__(self, *parts: str | Words | Place) -> None:
        super().__init__(*parts)

    def __str__(self) -> str:
        return self.text()

    @property
    def in_file(self) -> str:
        """The message in the words of a question file."""
        return self.text(in_file=True)

    @property
    def position(self) -> int | None:
        """The position in the batch; None if the message has none."""
        places = [part.position for part in self.args if isinstance(part, Place)]
        return places[0] if places else None

    def text(self, *, in_file: bool = False, placed: bool = True) -> str:
        """Return the message.

        Args:
            in_file: True for the words of a question file.
            placed: False to leave out the position, for a message that names the place otherwise.

        Example:
            >>> from gvf.common.errors import DataError, place
            >>> error = DataError("action 7", place(3), " is not one of 0 to 1")
            >>> str(error), error.text(placed=False)
            ('action 7 at position 3 is not one of 0 to 1', 'action 7 is not one of 0 to 1')
        """
        return "".join(_written_part(part, in_file, placed) for part in self.args)


def _written_part(part: str | Words | Place, in_file: bool, placed: bool) -> str:
    match part:
        case Words():
            return part.file if in_file else part.python
        case Place():
            return part.text if placed else part.elsewhere
        case _:
            return part


class DataCode(StrEnum):
    """The kinds of mistakes in data.

    Example:
        >>> from gvf.common.errors import DataCode
        >>> DataCode("conflict")
        <DataCode.CONFLICT: 'conflict'>
    """

    INVALID = "invalid"
    """The value is not one that the column may have."""
    NOT_FINITE = "not finite"
    """The value is NaN or infinite."""
    NOT_A_NUMBER = "not a number"
    """The value is text."""
    NO_RATIO = "no ratio"
    """The probabilities of the policies have no finite quotient."""
    CONFLICT = "conflict"
    """Two sources tell different things."""


class DataError(OptionError):
    """An error about one value of a batch, with its place as data.

    Attributes:
        code: the kind of mistake.
        column: the name of the column or signal.
        value: the value.
        position: the row of the batch in which it is.

    Example:
        >>> from gvf.common.errors import DataCode, DataError, place
        >>> try:
        ...     raise DataError(
        ...         "action 7", place(3), " is not one of 0 to 1", column="action", value=7
        ...     )
        ... except DataError as error:
        ...     print(error.code, error.column, error.value, error.position)
        invalid action 7 3
    """

    def __init__(
        self,
        *parts: str | Words | Place,
        code: DataCode = DataCode.INVALID,
        column: str = "",
        value: Any = None,
    ) -> None:
        super().__init__(*parts)
        self.code, self.column, self.value = code, column, value


def option(name: str, value: Any) -> Words:
    """Return an option of :func:`gvf.read_log`; None is no value, and an ellipsis is any.

    Example:
        >>> from gvf.common.errors import option
        >>> option("time", None)
        Words(python='time=None', file='time = false in [log]')
    """
    python, file = _written(value, "None"), _written(value, "false")
    return Words(f"{name}={python}", f"{name} = {file} in [log]")


def _written(value: Any, nothing: str) -> str:
    if value is None or value is ...:
        return nothing if value is None else "..."
    if isinstance(value, list | tuple):
        return f"[{', '.join(_written(part, nothing) for part in value)}]"
    return json.dumps(value, ensure_ascii=False)


@contextmanager
def noted(note: str) -> Iterator[None]:
    """Add a note to a ValueError that leaves this context."""
    try:
        yield
    except ValueError as error:
        error.add_note(note)
        raise


def positions_counted_from(start: int, of: str) -> AbstractContextManager[None]:
    """Note in errors that their positions count from a transition of a longer source.

    Example:
        >>> from gvf.common.errors import positions_counted_from
        >>> try:
        ...     with positions_counted_from(64, "the log"):
        ...         raise ValueError("the reward at position 3 is text")
        ... except ValueError as error:
        ...     print(*error.__notes__)
        Positions count from transition 64 of the log.
    """
    return noted(f"Positions count from transition {start} of {of}.")
