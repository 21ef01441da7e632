"""Facts of a log that a plan leaves open: how many actions and states there are, and ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gvf.common.arrays import Array, Floats
from gvf.log import Log

SAMPLE = 100_000
"""The number of states, at least, from which ranges are taken; a smaller log gives all of its."""
QUANTILES = (0.005, 0.995)
"""The quantiles of the states' dimensions that bound tile coding and scaled features."""


@dataclass(frozen=True)
class Facts:
    """Facts of a log that a plan leaves open.

    Attributes:
        actions: the number of actions, if they are whole numbers; otherwise None.
        states: the number of states, if they are whole numbers; otherwise None.
        last_action: the largest action and its place, in words.
        last_state: the largest state and its place, in words.
        names: the names of the dimensions of a state.
        sample: states of the log, [n, ...].
        not_numbered: why the actions are not numbered, in words; empty if they are.
        renamed: the meanings of columns that have other names in the file, by these names.
    """

    actions: int | None
    states: int | None
    last_action: str
    last_state: str
    names: tuple[str, ...]
    sample: Array
    not_numbered: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, log: Log) -> Facts:
        """Look through a log."""
        stride = max(1, len(log) // SAMPLE)
        most, place, sample, before = {"action": -1, "state": -1}, {}, [], 0
        action = state = np.zeros(0)
        for batch in log:
            action, state = batch.action, batch.state
            for name, column in (("action", action), ("state", state)):
                if column.dtype.kind in "iub" and column.ndim == 1 and column.max() > most[name]:
                    most[name] = int(column.max())
                    place[name] = before + int(column.argmax())
            sample.append(state[(-before) % stride :: stride])
            before += len(batch)
        texts = {name: f"{log.place(at)} has {name} {most[name]}" for name, at in place.items()}
        why = ""
        if "action" not in place:
            why = f"the log's are {action.dtype}{list(action.shape[1:]) or ''}"
            if action.ndim == 1 and (action == np.floor(action)).all():
                why += ": store them as whole numbers (integers)"
        width = int(np.prod(state.shape[1:]))
        columns = log.meanings.get("state", ())
        names = columns if len(columns) == width else [f"state[{i}]" for i in range(width)]
        return cls(
            actions=most["action"] + 1 if "action" in place else None,
            states=most["state"] + 1 if "state" in place else None,
            last_action=texts.get("action", ""),
            last_state=texts.get("state", ""),
            names=tuple(names),
            sample=np.concatenate(sample),
            not_numbered=why,
            renamed={
                columns[0]: meaning
                for meaning, columns in log.meanings.items()
                if meaning in log.columns and meaning not in ("state", "next_state")
            },
        )

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The range of each dimension of the states, [d] and [d], without rare outliers."""
        flat = self.sample.reshape(len(self.sample), -1).astype(np.float64)
        flat = np.where(np.isfinite(flat), flat, np.nan)
        low, high = np.nanquantile(flat, QUANTILES, axis=0)
        same = high <= low
        least, most = np.nanmin(flat, axis=0), np.nanmax(flat, axis=0)
        low, high = np.where(same, least, low), np.where(same, most, high)
        still = high <= low  # a dimension that never changes
        return np.where(still, low - 0.5, low), np.where(still, high + 0.5, high)
