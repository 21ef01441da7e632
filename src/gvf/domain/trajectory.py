"""Trajectories: what a policy did in a domain, as columns that learning loops read.

The stream of a run is made once and kept whole, so that all methods learn from the same one: row t
is the t-th transition, and the window at time t is the rows before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array


@dataclass(frozen=True, eq=False)
class Signals:
    """What one question says of T transitions.

    Attributes:
        ratio: pi(a|s) / mu(a|s), float64[T]; 0 wherever the question is not active.
        cumulant: float64[T].
        continuation: float64[T].
        active: whether the question is asked in the state, bool[T]; None: everywhere. What happens
            elsewhere is not learned from.
    """

    ratio: NDArray[np.float64]
    cumulant: NDArray[np.float64]
    continuation: NDArray[np.float64]
    active: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A stream of T transitions, and what questions say of it.

    Attributes:
        x: features of the states, int32[T, a] or float64[T, size].
        x_next: features of the next states.
        action: int64[T], or float64[T, d].
        next_state: [T, ...].
        signals: of every question that was asked, by name.
        kind: int64[T], equal where transitions are alike; None where they hardly ever are.
        ended: bool[T], where an episode ends, by itself or by a limit, so that what corrections
            carry along the stream begins anew; None: where a question's continuation is 0.
    """

    x: Array
    x_next: Array
    action: Array
    next_state: Array
    signals: Mapping[str, Signals]
    kind: Array | None = None
    ended: NDArray[np.bool_] | None = None

    def check(self, question: str, size: int) -> None:
        """Refuse columns that a compiled loop, which checks nothing, could not read.

        Args:
            question: one of those that were asked.
            size: the number of features.
        """
        steps, asked = len(self.action), self.signals[question]
        for name in ("x", "x_next"):
            x = getattr(self, name)
            if x.ndim != 2 or x.dtype not in (np.int32, np.float64) or len(x) != steps:
                raise ValueError(
                    f"{name} of a trajectory must be int32[{steps}, a] or float64[{steps}, {size}],"
                    f" got {x.dtype}{list(x.shape)}"
                )
            if x.dtype == np.int32 and x.size and not 0 <= x.min() <= x.max() < size:
                raise ValueError(f"{name} of a trajectory has indices outside 0 .. {size - 1}")
            if x.dtype == np.float64 and (x.shape[1] != size or not np.isfinite(x).all()):
                raise ValueError(f"{name} of a trajectory must be [{steps}, {size}] and finite")
        for name in ("ratio", "cumulant", "continuation"):
            column = getattr(asked, name)
            if column.shape != (steps,) or column.dtype != np.float64:
                raise ValueError(
                    f"{name} of question {question!r} must be float64[{steps}], got "
                    f"{column.dtype}{list(column.shape)}"
                )
            if not np.isfinite(column).all():
                at = int(np.isfinite(column).argmin())
                raise ValueError(f"{name} of question {question!r} is {column[at]} in row {at}")
        if (asked.ratio < 0).any():
            raise ValueError(f"a ratio of question {question!r} is negative")
        for name in ("kind", "ended"):
            column = getattr(self, name)
            if column is not None and column.shape != (steps,):
                raise ValueError(f"{name} of a trajectory must be [{steps}], got {column.shape}")
