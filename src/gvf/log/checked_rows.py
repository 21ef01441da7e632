"""The rows of a source as transitions: columns joined and checked, next states, ends.

A row whose values are impossible raises an error that names the row and the column, at the latest
when the row is read. The columns that tell of episodes, and the behaviour's probabilities, are
checked when the log is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from gvf.common.arrays import Array, Arrays, Bools
from gvf.common.errors import OptionError, Words, option
from gvf.common.fields import as_column
from gvf.log.column_meanings import Reading
from gvf.log.episode_bounds import OWN, Bounds, Decisions, Ends, Gaps
from gvf.log.episode_ends import Scan
from gvf.log.tables import Source
from gvf.transition import RECORDED, Transitions, describe_columns, nan_place, nan_rows

OnNaN = Literal["error", "keep"]
LIKELIHOODS = RECORDED[::-1]
"""The meanings of columns that tell how likely the recorded actions were."""
_ROUNDING = 1e-6
"""A probability of 1 in single precision may be this much larger."""


class Computed(NamedTuple):
    """Columns that are computed from transitions, such as estimated probabilities."""

    compute: Callable[[Transitions], Mapping[str, Any]]
    """The function from transitions [m] to columns [m]; None removes a column."""
    origin: str
    """The origin of the columns, in words."""

    def added_to(self, batch: Transitions) -> Transitions:
        """Return transitions with the columns."""
        columns = {**batch.columns, **self.compute(batch)}
        episode = columns.pop("episode")  # stays last
        kept = {name: column for name, column in columns.items() if column is not None}
        return Transitions(**kept, episode=episode)


class CheckedRows:
    """The rows of a source as transitions, in order.

    Args:
        source: the source.
        reading: the meanings of its columns.
        ends: the meaning of ends that the log leaves open.
        on_nan: "keep" to accept NaN.
        gaps: what is done where rows are missing.
    """

    def __init__(
        self, source: Source, reading: Reading, ends: Ends | None, on_nan: OnNaN, gaps: Gaps
    ) -> None:
        self.source, self.reading, self._on_nan = source, reading, on_nan
        if "state" not in reading:
            raise OptionError(
                f"{source.name}: no column looks like the state; name it, as in ",
                option("state", "x"),
                " or ",
                option("state", ["x", "v"]),
                f". The columns are: {', '.join(source.names)}",
            )
        self.derived = "next_state" not in reading and not reading.single
        self._discrete = True
        self._shapes: dict[str, tuple[int, ...]] = {}
        row_text, single = source.row_text, reading.single
        scan = Decisions(reading, row_text) if single else Scan(reading, ends, row_text, gaps)
        meanings = [*scan.meanings, "action", *LIKELIHOODS]
        row = 0
        names = dict.fromkeys([*reading.columns(meanings), *reading.ids])
        for batch in source.batches([*names] or source.names[:1]):
            if not row:
                action = self._meant(batch, ["action"], 0).get("action", np.zeros(0))
                self._discrete = action.dtype.kind in "iu"
            columns = self._meant(batch, meanings, row)
            row += len(next(iter(batch.values())))
            scanned = {n: c for n, c in columns.items() if n in scan.meanings} or _counted(batch)
            if reading.ids:
                scanned[OWN] = as_column({name: batch[name] for name in reading.ids})
            scan.add(scanned)
        self.bounds: Bounds = scan.finish(self.derived)
        if not len(self.bounds):
            raise ValueError(f"{source.name}: no row has a next state, so there is no transition")

    def batches(
        self, start: int = 0, stop: int | None = None, chosen: Bools | None = None
    ) -> Iterator[Transitions]:
        """Yield the transitions of the rows start, ..., stop - 1, of all or of some episodes.

        Args:
            start: the first row, with which an episode begins.
            stop: the row after the last one; None for all.
            chosen: True for the episodes wanted, bool[E]; None for all.
        """
        stop = self.source.rows if stop is None else stop
        reading = self.reading
        meanings = ["state", "action", "reward", "next_state", *LIKELIHOODS, "stream"]
        names = list(dict.fromkeys([*reading.columns(meanings), *reading.kept.values()]))
        waiting: dict[str, Array] = {}
        row = start
        # A derived next state is in the following row, so one row is read ahead.
        ahead = min(stop + self.derived, self.source.rows)
        for batch in self.source.batches(names, start, ahead):
            columns: dict[str, Array] = {
                **self._meant(batch, meanings, row),
                **{column: batch[name] for column, name in reading.kept.items()},
            }
            if reading.single:
                states = columns["state"]
                columns["next_state"] = _without(states, states, np.ones(len(states), bool))
            if waiting:
                followed = _followed(waiting, columns["state"][:1])
                yield from self._inside(followed, row - len(waiting["state"]), stop, chosen)
            elif not self.derived:
                yield from self._inside(columns, row, stop, chosen)
            waiting = columns if self.derived else {}
            row += len(columns["state"])
        if waiting:  # no transition uses the next state of the last row
            followed = _followed(waiting, waiting["state"][-1:])
            yield from self._inside(followed, row - len(waiting["state"]), stop, chosen)

    def _inside(
        self, columns: dict[str, Array], first: int, stop: int, chosen: Bools | None
    ) -> Iterator[Transitions]:
        """Yield a batch of the rows that are transitions, with their episodes and ends."""
        bounds = self.bounds
        rows = np.arange(first, min(first + len(columns["state"]), stop))
        episode = np.searchsorted(bounds.first, rows, "right") - 1
        inside = rows <= bounds.last[episode]
        if chosen is not None:
            inside &= chosen[episode]
        if not inside.any():
            return
        last = rows == bounds.last[episode]
        terminated = last & bounds.terminated[episode]
        columns = {name: column[: len(rows)] for name, column in columns.items()}
        if self.derived and terminated.any():
            columns["next_state"] = _without(columns["next_state"], columns["state"], terminated)
        elif not self.derived and self._on_nan == "error":
            self._check_no_nan("next_state", columns["next_state"], first, inside & ~terminated)
        ordered = {
            "state": columns.pop("state"),
            **{n: columns.pop(n) for n in ("action", "reward") if n in columns},
            "next_state": columns.pop("next_state"),
            "terminated": terminated,
            "truncated": last & ~terminated,
            **columns,
            "episode": episode,
        }
        if not inside.all():
            ordered = {name: column[inside] for name, column in ordered.items()}
        yield Transitions(**ordered)

    def _check_alike(self, state: Array, after: Array) -> None:
        """Raise an error if next states do not have the form of states."""
        if state.shape[1:] != after.shape[1:] or state.dtype.names != after.dtype.names:
            types = describe_columns({"the state": state, "the next state": after})
            names = ", ".join(self.reading.columns(["state", "next_state"]))
            raise ValueError(f"{self.source.name}: {types}; both must be alike ({names})")

    def _meant(self, batch: Arrays, meanings: Sequence[str], row: int) -> dict[str, Array]:
        """Return the columns of some meanings, joined, converted and checked."""
        values_of: dict[str, Array] = {}
        for meaning in meanings:
            part = self.reading.parts.get(meaning)
            if part is not None:
                column = batch[part.columns[0]]
                if part.is_matrix and meaning == "episode":
                    column = as_column({name: batch[name] for name in part.columns})
                elif part.is_matrix:
                    column = self._matrix([batch[name] for name in part.columns], part.columns, row)
                shape = self._shapes.setdefault(meaning, column.shape[1:])
                if column.shape[1:] != shape:
                    raise ValueError(
                        f"{self.source.row_text(row)}: column {part.columns[0]!r} has the shape "
                        f"{column.shape[1:]}, and {shape} before"
                    )
                values_of[meaning] = self._checked(meaning, part.columns, column, row)
        if "state" in values_of and "next_state" in values_of:
            self._check_alike(values_of["state"], values_of["next_state"])
        return values_of

    def _matrix(self, columns: list[Array], names: Sequence[str], row: int) -> Array:
        for name, column in zip(names, columns, strict=True):
            if column.dtype.kind == "U":
                at = _first_text(column)
                raise ValueError(
                    f"{self.source.row_text(row + at)}: column {name!r} is {str(column[at])!r}, "
                    "and must be a number"
                )
            if column.ndim != 1 or column.dtype.kind not in "biuf":
                raise ValueError(
                    f"column {name!r} is {column.dtype}{list(column.shape[1:]) or ''}; only "
                    "columns of numbers can be joined to a matrix"
                )
        return np.stack(columns, axis=1)

    def _checked(self, meaning: str, names: Sequence[str], column: Array, row: int) -> Array:
        """Return a column in the type of its meaning, or raise an error that names the row."""
        name = names[0] if len(names) == 1 else meaning
        if meaning in ("terminated", "truncated", "done"):
            good = (
                np.isin(column, (0, 1))
                if column.dtype.kind in "biuf"
                else np.zeros(len(column), bool)
            )
            self._require(good, name, column, row, "it must be true or false, 1 or 0")
            return column.astype(bool)
        if meaning in ("episode", "stream", "time"):
            single = {name: column}
            for name in column.dtype.names or single:
                values = column[name] if column.dtype.names else column
                good = values != "" if values.dtype.kind == "U" else ~nan_rows(values)
                self._require(good, name, values, row, "rows without it belong nowhere")
            return column
        if column.dtype.kind not in "biufV":
            hint = "; number them 0, 1, ..." if meaning == "action" else ""
            at = _first_text(column) if column.dtype.kind == "U" else 0
            value_text = str(column[at]) if column.dtype.kind == "U" else column[at]
            raise ValueError(
                f"{self.source.row_text(row + at)}: column {name!r}, the {meaning}, is "
                f"{value_text!r}, and must be a number{hint}"
            )
        if self._on_nan == "error" and meaning != "next_state":
            self._check_no_nan(meaning, column, row, np.ones(len(column), bool), names)
        if meaning in LIKELIHOODS:
            return self._likelihood(meaning, name, column, row)
        if meaning == "reward":
            column = column.astype(np.float64, copy=False)
        return column.astype(np.int64) if column.dtype.kind == "b" else column

    def _likelihood(self, meaning: str, name: str, column: Array, row: int) -> Array:
        """Return probabilities of the actions that were taken, or their logarithms, checked."""
        if column.ndim != 1:
            raise ValueError(
                f"column {name!r} has {column.shape[1]} numbers in a row: give one, the "
                "probability of the action that was taken"
            )
        column = column.astype(np.float64, copy=False)
        known = column[~np.isnan(column)]
        logs = meaning == "behaviour_log_probability"
        least, most = (-np.inf, 0.0) if logs else (0.0, 1.0)
        most = most + _ROUNDING if self._discrete else np.inf  # a density may be large
        wanted: list[str | Words] = ["the logarithm of a probability is at most 0"]
        if not logs:
            wanted = ["a probability is between 0 and 1"]
            if (known < 0).any() and (known <= _ROUNDING).all():
                logs_there = option("behaviour_log_probability", name)
                wanted += ["; if these are logarithms, read with ", logs_there]
        outside = (column < least) | (column > most) | (column == np.inf)
        self._require(~outside, name, column, row, *wanted)
        taken = "the action was taken, so its probability cannot be 0"
        self._require(column != least, name, column, row, taken)
        return column

    def _require(self, good: Any, name: str, column: Array, row: int, *wanted: str | Words) -> None:
        good = np.asarray(good)
        if not good.all():
            at = int(good.argmin())
            value = column[at].item() if column.ndim == 1 else column[at]
            value_text = "missing" if value != value or value == "" else value
            value_of_row = f"{self.source.row_text(row + at)}: column {name!r} is {value_text}; "
            raise OptionError(value_of_row, *wanted)

    def _check_no_nan(
        self, meaning: str, column: Array, row: int, used: Bools, names: Sequence[str] = ()
    ) -> None:
        bad = nan_rows(column)[: len(used)] & used
        if bad.any():
            at = int(bad.argmax())
            names = names or self.reading.parts[meaning].columns
            column_name = nan_place(names[0], column[at])
            if len(names) > 1:
                column_name = names[int(np.isnan(column[at]).argmax())]
            raise OptionError(
                f"{self.source.row_text(row + at)}: column {column_name!r} is NaN or missing: "
                "repair the log",
                Words(', or read with on_nan="keep" and learn with on_nan="skip"', ""),
            )


def _first_text(column: Array) -> int:
    """Return the first place of a column of texts, such as one of a CSV file, without a number."""
    for at, text in enumerate(column.tolist()):
        try:
            float(text)
        except ValueError:
            return at
    return 0


def _followed(columns: dict[str, Array], after: Array) -> dict[str, Array]:
    """Add next states to rows: the states of the following rows, the last of which is `after`."""
    return {**columns, "next_state": np.concatenate([columns["state"][1:], after])}


def _without(after: Array, states: Array, ended: Bools) -> Array:
    """Return next states without those at the task's ends: NaN, or the state for whole numbers."""
    filled = after.copy()
    filled[ended] = np.nan if after.dtype.kind == "f" else states[ended]
    return filled


def _counted(batch: Arrays) -> dict[str, Array]:
    """Return a column that only counts the rows, where no column tells of episodes."""
    return {"row": np.zeros(len(next(iter(batch.values()))))}
