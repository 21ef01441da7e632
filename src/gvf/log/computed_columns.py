"""Columns of a log that are computed from its transitions, such as estimated probabilities.

A log in memory computes them once. A larger one computes them in every pass, for each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gvf.transition import Transitions


class Computed(NamedTuple):
    """Columns that are computed from transitions."""

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
