"""A log made of transitions that are already in memory, such as some rows of another log."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gvf.common.arrays import Array
from gvf.log.checked_rows import CheckedRows
from gvf.log.column_meanings import COUNTED, MEANINGS, recognise
from gvf.log.log import Log
from gvf.log.tables import ColumnSource
from gvf.transition import Transitions


def log_of(
    transitions: Transitions,
    name: str,
    ids: Mapping[str, Array] = MappingProxyType({}),
    times: str | None = None,
) -> Log:
    """Return the log of transitions that have all columns of a log, in memory.

    Args:
        transitions: the transitions, with ``terminated``, ``truncated`` and ``episode``. A new
            number, or one of the two ends, begins a new episode.
        name: the name of the log.
        ids: the names that the episodes had in a log before, [m] each, by column.
        times: the column of the transitions that has the log's times.

    Example:
        >>> import gvf
        >>> from gvf.log.log_in_memory import log_of
        >>> batch = gvf.Transitions(
        ...     state=[0, 4], action=[1, 1], next_state=[1, 5], terminated=[False, True],
        ...     truncated=[True, False], episode=[0, 1]
        ... )
        >>> log_of(batch, "some rows").lengths
        array([1, 1])
    """
    columns = dict(transitions.columns)
    columns[COUNTED] = columns.pop("episode")
    source = ColumnSource({**columns, **ids}, name)
    meanings: dict[str, str | None] = {
        meaning: meaning if meaning in transitions else None for meaning in MEANINGS
    }
    meanings |= {"time": times, "done": None, "stream": None, "episode": COUNTED}
    reading = recognise(source.names, meanings, ids=[*ids])
    return Log(CheckedRows(source, reading, None, "keep", "keep"), in_memory=True)
