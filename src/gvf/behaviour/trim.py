"""A log without some of its rows: only when asked, and with an account of what is gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gvf.common.arrays import Array, Bools, Floats
from gvf.estimate import percent
from gvf.log import Log
from gvf.transition import Transitions


@dataclass(frozen=True, eq=False, repr=False)
class Trimmed:
    """A log without some of its rows.

    Attributes:
        log: the log that remains, in memory. Where rows are missing, the episode was cut, so the
            row before is ``truncated`` and the rest is an episode of its own.
        rows: the number of rows removed.
        share: their share of all rows.
        mass: their share of the sum of ratios, the target's mass.
        cuts: the number of rows that are truncated because the next one was removed.
    """

    log: Log
    rows: int
    share: float
    mass: float
    cuts: int

    def __repr__(self) -> str:
        return (
            f"Trimmed: {self.rows:,} rows removed ({percent(self.share)}), with "
            f"{percent(self.mass)} of the target's mass; {len(self.log):,} remain in "
            f"{len(self.log.numbers):,} episodes, {self.cuts:,} of which are newly cut"
        )


def trimmed(log: Log, judge: Callable[[Transitions], tuple[Bools, Floats]]) -> Trimmed:
    """Return a log without the rows that `judge` finds bad.

    Args:
        log: the log.
        judge: a function from transitions [m] to the bad rows, bool[m], and the mass of all [m].
    """
    kept: list[Transitions] = []
    bad_parts: list[Bools] = []
    masses: list[Floats] = []
    key_parts: list[dict[str, Array]] = []
    for batch, keys in log.keyed():
        bad, mass = judge(batch)
        kept.append(batch[~bad])
        key_parts.append({name: keys[name][~bad] for name in log.ids})
        bad_parts.append(bad)
        masses.append(mass)
    bad, mass = np.concatenate(bad_parts), np.concatenate(masses)
    rest = Transitions.concatenate(kept)
    if not len(rest):
        raise ValueError(f"{log.source}: no row would remain; the log cannot tell of this target")
    position = np.flatnonzero(~bad)
    # A gap before a row, or another episode, begins a new one.
    new = np.diff(position, prepend=-2) > 1
    new[1:] |= rest["episode"][1:] != rest["episode"][:-1]
    last = np.append(new[1:], True)
    cut = last & ~rest["terminated"] & ~rest["truncated"]
    columns = {**rest.columns, "truncated": rest["truncated"] | cut, "episode": new.cumsum() - 1}
    total = mass.sum()
    return Trimmed(
        log=Log.from_transitions(
            Transitions(**columns),
            f"{log.source}, trimmed",
            {name: np.concatenate([keys[name] for keys in key_parts]) for name in log.ids},
            log.times,
        ),
        rows=int(bad.sum()),
        share=float(bad.mean()),
        mass=float(mass[bad].sum() / total) if total > 0 else 0.0,
        cuts=int(cut.sum()),
    )
