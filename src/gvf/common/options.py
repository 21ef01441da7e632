"""Errors that name options, in the words of Python or of a question file.

The same mistake is met by someone who calls a function, and by someone who writes a question file.
One writes ``ends="truncated"``, and the other ``ends = "truncated"`` in [log].
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Words(NamedTuple):
    """A part of a message that differs between Python and a question file."""

    python: str
    file: str


class OptionError(ValueError):
    """An error whose message names options, made of its parts.

    Example:
        >>> from gvf.common.options import OptionError, option
        >>> error = OptionError("row 3: read with ", option("ends", "truncated"), " if it was cut")
        >>> print(error)
        row 3: read with ends="truncated" if it was cut
        >>> error.in_file
        'row 3: read with ends = "truncated" in [log] if it was cut'
    """

    def __init__(self, *parts: str | Words) -> None:
        super().__init__(*parts)

    def __str__(self) -> str:
        return "".join(part if isinstance(part, str) else part.python for part in self.args)

    @property
    def in_file(self) -> str:
        """The message in the words of a question file."""
        return "".join(part if isinstance(part, str) else part.file for part in self.args)


def option(name: str, value: Any) -> Words:
    """Return an option of :func:`gvf.read`; None is no value, and an ellipsis is any.

    Example:
        >>> from gvf.common.options import option
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
