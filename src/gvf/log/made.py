"""A log made of transitions that are already in memory, such as some rows of another log."""

from __future__ import annotations

from gvf.log.log import Log
from gvf.log.names import MEANINGS, recognise
from gvf.log.rows import Rows
from gvf.log.sources import Columns
from gvf.transition import Transitions


def log_of(transitions: Transitions, name: str) -> Log:
    """Return the log of transitions that have all columns of a log, in memory.

    Args:
        transitions: the transitions, with ``terminated``, ``truncated`` and ``episode``. A new
            number, or one of the two ends, begins a new episode.
        name: the name of the log.

    Example:
        >>> import gvf
        >>> from gvf.log.made import log_of
        >>> batch = gvf.Transitions(
        ...     state=[0, 4], action=[1, 1], next_state=[1, 5], terminated=[False, True],
        ...     truncated=[True, False], episode=[0, 1]
        ... )
        >>> log_of(batch, "some rows").lengths
        array([1, 1])
    """
    source = Columns(transitions.columns, name)
    told: dict[str, str | None] = {
        meaning: meaning if meaning in transitions else None for meaning in MEANINGS
    }
    reading = recognise(source.names, {**told, "time": None, "done": None, "stream": None})
    return Log(Rows(source, reading, None, "keep", "keep"), in_memory=True)
