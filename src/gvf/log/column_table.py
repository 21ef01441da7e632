"""The table that tells what a log's columns were taken for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gvf.common.arrays import Array
from gvf.log.column_meanings import Reading
from gvf.log.episode_bounds import Bounds
from gvf.log.tables import Source
from gvf.transition import describe_columns, recorded_column

if TYPE_CHECKING:
    from gvf.log.log import Log


def described(
    log: Log, source: Source, reading: Reading, bounds: Bounds, behaviour: str = ""
) -> str:
    """Return the table as text: a line about the log, one for each column, then remarks."""
    hidden = {"next_state", "terminated", "truncated"} if reading.single else set()
    if reading.single and "episode" not in reading:
        hidden.add("episode")
    sample = {name: col for name, col in log._sample.columns.items() if name not in hidden}
    rows = [("meaning", "column", "type", "range", "recognised")]
    for name, column in sample.items():
        kind = describe_columns({name: column[:1]}).removeprefix(f"{name} ")
        rows.append((name, *_origin(name, reading, bounds, log), kind, _range(column)))
    rows = [rows[0], *((name, at, kind, span, how) for name, at, how, kind, span in rows[1:])]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[4]]).rstrip()
        for row in rows
    ]
    return "\n".join(
        [
            _heading(log, reading.single),
            *(f"  {line}" for line in lines),
            *_remarks(log, source, reading, bounds, behaviour),
        ]
    )


def _heading(log: Log, single: bool) -> str:
    lengths = log.lengths
    kept = "in memory" if log.in_memory else "read from its file in every pass"
    if single:
        return f"{log.source}: {len(log):,} single decisions, {kept}"
    several = "" if len(lengths) == 1 else "s"
    return (
        f"{log.source}: {len(log):,} transitions in {len(lengths):,} episode{several} of "
        f"{_between(lengths.min(), lengths.max())} steps, {kept}"
    )


def _origin(name: str, reading: Reading, bounds: Bounds, log: Log) -> tuple[str, str]:
    """Return the columns of the source behind a column, and how they were found."""
    if name in (origins := log.origins):
        return "", origins[name]
    if name == "episode":
        return _listed(reading, ["stream", "episode"]), bounds.how
    if name in ("terminated", "truncated"):
        ended = int(log.terminated.sum())
        count = ended if name == "terminated" else len(log.numbers) - ended
        return _listed(reading, [name, "done"]), f"{count:,} of {len(log.numbers):,} episodes"
    if name in reading.parts:
        return _listed(reading, [name]), reading.parts[name].how
    if name == "next_state":
        return "", "the state of the following row"
    time = (
        not reading.single
        and "time" in reading
        and reading.parts["time"].columns == (reading.kept[name],)
    )
    return reading.kept[name], "the order of rows, and kept" if time else "kept"


def _listed(reading: Reading, meanings: list[str]) -> str:
    names = reading.columns(meanings)
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, ..., {names[-1]}"


def _remarks(
    log: Log, source: Source, reading: Reading, bounds: Bounds, behaviour: str
) -> list[str]:
    """Return lines about ends, next states, probabilities, and columns and rows left out."""
    lines = [f"ends: {bounds.why}"]
    if bounds.gaps:
        several = "s" if bounds.gaps > 1 else ""
        lines.append(f"gaps: episodes were cut in {bounds.gaps:,} place{several} with missing rows")
    if bounds.unseen:
        lines.append(f"missing rows: {bounds.unseen}")
    if "next_state" not in reading and not reading.single and log.terminated.any():
        known = log._sample.next_state.dtype.kind == "f"
        stands = "NaN" if known else "the state itself"
        lines.append(f"next states: not in the log; after a terminated step stands {stands}")
    if bounds.left_out:
        lines.append(
            "left out: the last row of each cut episode, because its next state is not in the log "
            f"({bounds.left_out:,} in all)"
        )
    if bounds.lost:
        several = "s" if bounds.lost > 1 else ""
        lines.append(f"left out: {bounds.lost:,} episode{several} with no other row")
    if log.has_estimates:
        lines.append("behaviour probabilities: estimated, not recorded")
    elif recorded_column(log.columns) is None:
        advice = "; name a column, give the policy that acted, or estimate it"
        lines.append(
            f"behaviour probabilities: not in the log{f', {behaviour}' if behaviour else advice}"
        )
    for name, why in {**source.left_out, **reading.left_out}.items():
        lines.append(f"left out: column {name!r}, because {why}")
    if not log.in_memory:
        lines.append(f"ranges: of the first {len(log._sample):,} transitions")
    lines += [f"{name}: {fact}" for name, fact in log.notes.items()]
    return lines


def _range(column: Array) -> str:
    if column.dtype.kind == "b":
        return ""
    if column.dtype.kind not in "iufM" or not column.size:
        return ""
    if column.dtype.kind == "f":
        finite = column[np.isfinite(column)]
        return _between(finite.min(), finite.max()) if finite.size else "NaN"
    return _between(column.min(), column.max())


def _between(least: object, most: object) -> str:
    low, high = (f"{x:.4g}" if isinstance(x, np.floating) else str(x) for x in (least, most))
    return low if low == high else f"{low} to {high}"
