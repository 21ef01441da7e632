"""Logs that come episode by episode: lists of dictionaries, and Minari datasets.

An episode of T steps has T actions and rewards, and T or T + 1 states; with T + 1, the next state
of step t is state t + 1. In Minari's ``infos`` the entry of step t is at t + 1, because entry 0
comes from the reset. Datasets that were made from buffers may have T entries instead; then the
entry of step t is at t. :class:`Episodes` turns both into rows, one for each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gvf.common.arrays import Array
from gvf.common.checks import brief
from gvf.common.fields import as_column
from gvf.log.column_meanings import COUNTED, Given, Part, Reading, recognise
from gvf.log.tables import Source
from gvf.transition import RECORDED, Transitions, nan_rows

if TYPE_CHECKING:
    from gvf.log.log import Log

_FIELDS = ("observations", "actions", "rewards", "terminations", "truncations")
_INFO = ("infos", "info")


class Episodes(Source):
    """Episodes as a table with one row for each step.

    Args:
        episodes: a sequence of mappings of arrays, or a Minari dataset.
        name: the name of the source, for people.
        given: the columns that the caller names, by meaning.

    Example:
        >>> from gvf.log.episode_lists import Episodes
        >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "terminated": True}
        >>> source = Episodes([walk, walk], "two walks", {})
        >>> [batch["obs"] for batch in source.batches(["obs"])]
        [array([0, 1, 0, 1])]
        >>> source.reading.parts["next_state"].columns
        ('next obs',)
    """

    def __init__(self, episodes: Any, name: str, meanings: Mapping[str, Given]) -> None:
        self._episodes, self._minari = episodes, hasattr(episodes, "iterate_episodes")
        first = next(iter(self._from(0)), None)
        if first is None:
            raise ValueError(f"{name} has no episodes")
        plain = recognise(list(first), meanings)
        self._states = plain.columns(["state"])
        self._ends = plain.columns(["terminated", "truncated", "done"])
        self._likelihoods = plain.columns(RECORDED)
        self._clock = plain.columns(["action", "reward"]) or [
            key for key in first if key not in self._states and np.ndim(first[key])
        ]
        self._names = list(first)
        self.shifted: dict[str, bool] = {}
        self._successors = self._has_successors(first)
        lengths = self._lengths()
        self._starts = np.cumsum([0, *lengths])
        row = self._flat(first, 0)
        size = sum(column.nbytes for column in row.values()) // max(lengths[0], 1)
        self.reading = self._with_successors(plain)
        names = [*first, *self.reading.columns(["next_state"]), COUNTED]
        rows = int(self._starts[-1])
        super().__init__(name, list(dict.fromkeys(names)), rows, size * rows)

    def row_text(self, row: int) -> str:
        """Return the step and the episode of a row."""
        at = int(np.searchsorted(self._starts, row, "right")) - 1
        return f"step {row - self._starts[at]} of episode {at}"

    def batches(
        self, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[dict[str, Array]]:
        """Yield some columns of the steps start, ..., stop - 1, several episodes at a time."""
        stop = self.rows if stop is None else stop
        at = int(np.searchsorted(self._starts, start, "right")) - 1
        waiting: list[dict[str, Array]] = []
        count = 0
        for number, episode in enumerate(self._from(at), at):
            first = int(self._starts[number])
            if first >= stop:
                break
            flat = self._flat(episode, number)
            rows = slice(max(start - first, 0), stop - first)
            waiting.append({name: flat[name][rows] for name in columns})
            count += len(flat[COUNTED][rows])
            if count >= self.batch_rows:
                yield _joined(waiting)
                waiting, count = [], 0
        if count:
            yield _joined(waiting)

    def _from(self, start: int) -> Iterator[dict[str, Any]]:
        """Yield the episodes from a number on, each as a flat dictionary."""
        if self._minari:
            indices = np.asarray(self._episodes.episode_indices)[start:]
            episodes: Iterable[Any] = (
                self._episodes.iterate_episodes(indices) if len(indices) else ()
            )
        else:
            episodes = islice(self._episodes, start, None)
        return (_flattened(episode, number) for number, episode in enumerate(episodes, start))

    def _lengths(self) -> list[int]:
        if self._minari:
            indices = self._episodes.episode_indices
            metadata = self._episodes.storage.get_episode_metadata(indices)
            return [int(episode["total_steps"]) for episode in metadata]
        return [self._steps(episode, number) for number, episode in enumerate(self._from(0))]

    def _steps(self, episode: dict[str, Any], number: int) -> int:
        """Return the number of steps, T."""
        if self._clock:
            column = self._clock[0]
            self._check_there(episode, column, number)
            return len(episode[column])
        return len(as_column(episode[self._states[0]])) - 1

    def _has_successors(self, episode: dict[str, Any]) -> bool:
        """Return True if there is one state more than steps."""
        if not self._states:
            return False
        return len(as_column(episode[self._states[0]])) == self._steps(episode, 0) + 1

    def _with_successors(self, plain: Reading) -> Reading:
        """Add the next states and the numbers of the episodes, which no column has."""
        parts = dict(plain.parts)
        if self._successors and "next_state" not in parts:
            state = parts["state"]
            names = tuple(f"next {column}" for column in state.columns)
            parts["next_state"] = Part(names, "the state after it", state.is_matrix)
        # Steps are numbered anew in each episode, and an episode is one whatever it calls itself.
        parts["episode"] = Part((COUNTED,), "one after the other")
        for meaning in RECORDED:
            part = parts.get(meaning)
            if part is not None and self.shifted.get(part.columns[0]):
                parts[meaning] = replace(part, how=f"{part.how}; step t's is entry t + 1 of infos")
        return replace(plain, parts=parts)

    def _check_there(self, episode: dict[str, Any], column: str, number: int) -> None:
        if column not in episode:
            raise ValueError(
                f"episode {number} has no {column!r}, which episode 0 has; it has: "
                f"{', '.join(map(str, episode))}"
            )

    def _flat(self, episode: dict[str, Any], number: int) -> dict[str, Array]:
        """Return the rows of an episode, one for each step."""
        steps = self._steps(episode, number)
        rows: dict[str, Array] = {COUNTED: np.full(steps, number)}
        for name in self._names:
            self._check_there(episode, name, number)
            column = as_column(episode[name], f"{name!r} of episode {number}")
            if column.ndim == 0:
                rows[name] = np.full(steps, column)
                if name in self._ends:
                    rows[name] = (np.arange(steps) == steps - 1) & bool(column)
            elif name in self._states and self._successors and len(column) == steps + 1:
                rows[name], rows[f"next {name}"] = column[:-1], column[1:]
            elif len(column) == steps and not (name in self._states and self._successors):
                rows[name] = self._of_steps(name, column, number, shifted=False)
            elif len(column) == steps + 1 and name.startswith(
                tuple(f"{prefix}/" for prefix in _INFO)
            ):
                rows[name] = self._of_steps(name, column, number, shifted=True)
            else:
                asked = "one more" if name in self._states and self._successors else "as many"
                raise ValueError(
                    f"episode {number} has {len(column)} entries of {name!r} for {steps} steps; "
                    f"there should be {asked}"
                )
        return rows

    def _of_steps(self, name: str, column: Array, number: int, shifted: bool) -> Array:
        """Return the entries of the steps; all episodes must have them at the same places."""
        if name.startswith(tuple(f"{prefix}/" for prefix in _INFO)):
            if self.shifted.setdefault(name, shifted) != shifted:
                raise ValueError(
                    f"episode {number} has {len(column)} entries of {name!r}, and other episodes "
                    f"have one {'less' if shifted else 'more'} for their steps; it is not clear "
                    "which entry belongs to which step"
                )
            missing = nan_rows(column)
            if shifted and name in self._likelihoods and missing[-1] and not missing[0]:
                raise ValueError(
                    f"episode {number}: the last entry of {name!r} is NaN and the first is not, "
                    "but entry t + 1 should belong to step t; give as many entries as steps"
                )
        return column[1:] if shifted else column


def _flattened(episode: Any, number: int) -> dict[str, Any]:
    """Return an episode as a dictionary of columns; entries of infos become 'infos/...'."""
    if all(hasattr(episode, field) for field in _FIELDS):  # Minari's EpisodeData
        episode = {name: getattr(episode, name) for name in (*_FIELDS, "infos")}
    if isinstance(episode, Transitions):
        episode = episode.columns
    if not isinstance(episode, Mapping):
        raise TypeError(
            f"episode {number} is {brief(episode)}; give mappings of arrays, as in "
            '{"state": ..., "action": ..., "reward": ..., "terminated": ...}'
        )
    flat: dict[str, Any] = {}
    for name, value in episode.items():
        if name in _INFO and (isinstance(value, Mapping) or value is None):
            flat |= {f"{name}/{key}": entry for key, entry in (value or {}).items()}
        else:
            flat[str(name)] = value
    return flat


def _joined(parts: list[dict[str, Array]]) -> dict[str, Array]:
    if len(parts) == 1:
        return parts[0]
    try:
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    except ValueError as error:
        raise ValueError(f"the episodes differ in the shape of a column: {error}") from error


def is_one_episode(columns: Mapping[str, Any], meanings: Mapping[str, Given]) -> bool:
    """Return True if a mapping has one state more than it has actions: a single episode.

    Example:
        >>> from gvf.log.episode_lists import is_one_episode
        >>> is_one_episode({"obs": [0, 1, 2], "action": [1, 1]}, {})
        True
    """
    reading = recognise(list(columns), meanings)
    if not ("state" in reading and "action" in reading):
        return False
    states, actions = (columns[reading.columns([name])[0]] for name in ("state", "action"))
    if not np.ndim(actions):
        return False
    return len(as_column(states)) == len(actions) + 1


class LogEpisodes(Sequence[Transitions]):
    """The episodes of a log, as a sequence."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __len__(self) -> int:
        return len(self._log.numbers)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return self._log.select(np.arange(len(self))[position]).episodes
        at = range(len(self))[position]
        log = self._log
        if log._whole is not None:
            ends = np.cumsum(log.lengths)
            return log._whole[int(ends[at] - log.lengths[at]) : int(ends[at])]
        return log.select([at]).transitions()

    def __iter__(self) -> Iterator[Transitions]:
        waiting: list[Transitions] = []
        for batch in self._log:
            borders = np.flatnonzero(np.diff(batch.episode)) + 1
            starts = [0, *borders.tolist(), len(batch)]
            for start, stop in pairwise(starts):
                piece = batch[start:stop]
                if waiting and waiting[-1].episode[0] != piece.episode[0]:
                    yield Transitions.concatenate(waiting)
                    waiting = []
                waiting.append(piece)
        if waiting:
            yield Transitions.concatenate(waiting)
