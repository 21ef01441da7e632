"""A table of a TOML file that is read strictly: every key is known, and every value is checked.

A reader takes the keys that it knows, one after the other, and then calls :meth:`Section.end`. Keys
that nobody took are an error, with the nearest known key. Every message begins with the place: the
file, and the table in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gvf.common.checks import brief, is_number
from gvf.common.part_names import known

NEEDED = object()
"""The default of a key that must be there."""
MORE = "`gvf show question` shows all"


class Section:
    """A table, read key by key.

    Args:
        given: the table.
        place: the place of the table, for messages.

    Example:
        >>> from gvf.answers.toml_table import Section
        >>> table = Section({"epochs": 5, "sede": 1}, "question.toml, [learn]")
        >>> table.whole("epochs", 10)
        5
        >>> table.whole("seed", 0)
        0
        >>> table.end()
        Traceback (most recent call last):
        gvf.answers.toml_table.PlacedError: question.toml, [learn]: unknown key: 'sede'; did
        you mean 'seed'? Known are 'epochs', 'seed' (`gvf show question` shows all)
    """

    def __init__(self, table: Any, place: str) -> None:
        if not isinstance(table, Mapping):
            raise PlacedError(place, f"must be a table of keys and values, got {brief(table)}")
        self._table, self.place = dict(table), place
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._table

    def take(self, key: str, default: Any = NEEDED) -> Any:
        """Return the value of a key, or the default; a key without a default is needed."""
        self._known.append(key)
        if key in self._table:
            return self._table[key]
        if default is NEEDED:
            self.fail(f"{key} is missing")
        return default

    def checked(self, key: str, default: Any, good: Callable[[Any], bool], must: str) -> Any:
        """Return the value of a key; raise ValueError if a given value is not good."""
        value = self.take(key, default)
        if key in self._table and not good(value):
            self.fail(f"{key} must be {must}, got {brief(value)}")
        return value

    def whole(self, key: str, default: Any = NEEDED, least: int = 0) -> Any:
        """Return a whole number that is at least `least`."""

        def good(value: Any) -> bool:
            return isinstance(value, int) and not isinstance(value, bool) and value >= least

        return self.checked(key, default, good, f"a whole number, at least {least}")

    def share(self, key: str, default: Any = NEEDED) -> Any:
        """Return a number between 0 and 1, both left out."""
        return self.checked(
            key, default, lambda v: is_number(v) and 0 < v < 1, "a number between 0 and 1"
        )

    def text(self, key: str, default: Any = NEEDED) -> Any:
        """Return a text that is not empty."""
        return self.checked(
            key, default, lambda v: isinstance(v, str) and bool(v.strip()), "a text"
        )

    def flag(self, key: str, default: bool) -> bool:
        """Return true or false."""
        return self.checked(key, default, lambda v: isinstance(v, bool), "true or false")

    def choice(self, key: str, default: Any, choices: tuple[str, ...]) -> str:
        """Return one of several words."""
        value = self.take(key, default)
        if not isinstance(value, str):
            self.fail(f"{key} must be one of {', '.join(map(repr, choices))}, got {brief(value)}")
        with self.placed():
            return known(value, choices, key)

    def several(self, key: str, default: Any, good: Callable[[Any], bool], must: str) -> tuple:
        """Return a list, not empty, whose items are all good, as a tuple."""

        def fits(value: Any) -> bool:
            return isinstance(value, list | tuple) and len(value) > 0 and all(map(good, value))

        return tuple(self.checked(key, default, fits, must))

    def numbers(self, key: str, default: Any = NEEDED) -> Any:
        """Return a number, or nested lists of numbers."""

        def good(value: Any) -> bool:
            if isinstance(value, list):
                return len(value) > 0 and all(map(good, value))
            return is_number(value) and not isinstance(value, bool)

        return self.checked(key, default, good, "a number or lists of numbers")

    def inside(self, key: str, default: Any = NEEDED) -> Section:
        """Return a table inside this one."""
        return Section(self.take(key, default), f"{self.place}, [{key}]")

    def rest(self, keys: tuple[str, ...]) -> dict[str, Any]:
        """Take all of these keys that are there."""
        self._known += keys
        return {key: self._table[key] for key in keys if key in self._table}

    def end(self) -> None:
        """Raise ValueError if there is a key that nobody took."""
        for key in self._table:
            with self.placed():
                known(key, self._known, "key", MORE)

    def fail(self, message: str) -> None:
        """Raise ValueError with the place in front."""
        raise PlacedError(self.place, message)

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Put the place in front of every ValueError and TypeError of this block."""
        with placed(self.place):
            yield


class PlacedError(ValueError):
    """An error in a question file, with its place.

    Attributes:
        place: the file or the table in it.
    """

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return ValueError, (str(self),)

    def is_in(self, place: str) -> bool:
        """Return True if the error is at a place, or in a table inside it."""
        return self.place == place or self.place.startswith(f"{place}, ")


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Put a place in front of every ValueError and TypeError of this block.

    Example:
        >>> from gvf.answers.toml_table import placed
        >>> with placed("question.toml"):
        ...     raise ValueError("no question")
        Traceback (most recent call last):
        gvf.answers.toml_table.PlacedError: question.toml: no question
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        if isinstance(error, PlacedError) and error.is_in(place):
            raise
        raise PlacedError(place, str(error)) from error
