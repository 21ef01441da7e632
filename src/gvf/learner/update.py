"""What all updates have in common: lanes of step sizes, and arrays that change.

An update is a frozen description (its step sizes and constants); what changes as it learns is a
dictionary of arrays, so that it can be saved, copied and handed to compiled loops.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gvf.learner.linear import Array, Experience

Lanes = float | Sequence[float]
"""One number, or one for each lane."""


@dataclass(frozen=True)
class Update(ABC):
    """How drawn and weighed transitions change the weights; the base of all updates.

    A field declared as `Lanes` may be a number or a sequence of L numbers: then L copies of the
    weights learn side by side from the same draws, one for each.
    """

    lane_fields: ClassVar[tuple[str, ...]] = ("step_size",)
    action_values: ClassVar[bool] = False
    """Whether it learns a value for every action, or one for every state."""
    next_action: ClassVar[str] = "none"
    """For action values, what follows: one action "sampled" from pi, or the mean, "expected"."""

    def __post_init__(self) -> None:
        for name in self.lane_fields:
            value = np.asarray(getattr(self, name), np.float64)
            if value.ndim > 1 or value.size == 0:
                raise ValueError(f"{name} must be a number or a sequence of them, got {value}")
            if not np.all((value >= 0.0) & np.isfinite(value)):
                raise ValueError(f"{name} must be finite and not negative, got {value}")
            plain = float(value) if value.ndim == 0 else tuple(value.tolist())
            object.__setattr__(self, name, plain)
        lengths = {len(self.lane_values(name)) for name in self.lane_fields} - {1}
        if len(lengths) > 1:
            raise ValueError(
                f"{' and '.join(self.lane_fields)} must have as many lanes each: {self}"
            )

    @property
    def lanes(self) -> int | None:
        """The number of lanes, None when every field is a single number."""
        values = [getattr(self, name) for name in self.lane_fields]
        return max((len(v) for v in values if isinstance(v, tuple)), default=None)

    def lane_values(self, name: str) -> Array:
        """A field as an array [lanes]."""
        value = np.atleast_1d(np.asarray(getattr(self, name), np.float64))
        return np.broadcast_to(value, (self.lanes or 1,)).copy() if value.size == 1 else value

    def start(self, rows: int) -> dict[str, Array]:
        """The arrays that change, ``weights`` [rows, lanes] among them, at the start."""
        constants = {name: self.lane_values(name) for name in self.lane_fields}
        return {"weights": np.zeros((rows, self.lanes or 1)), **constants}

    @abstractmethod
    def apply(
        self, state: dict[str, Array], experience: Experience, slots: Array, w: Array
    ) -> None:
        """Change the state by the transitions in slots [k], with the correction's weights w [k]."""
