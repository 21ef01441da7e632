"""Trajectories: the transitions of a policy in a domain, as columns for learning loops.

The stream of a run is made once and kept whole, so that all methods learn from the same one. Row t
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
    """The ratios, cumulants, continuations and interests of one question for T transitions.

    Attributes:
        ratio: the ratio pi(a|s) / mu(a|s), float64[T]; 0 if the question is not active.
        cumulant: the cumulant, float64[T].
        continuation: the continuation, float64[T].
        interest: the interest in the state, float64[T]; None if it is always 1.
        active: True if the question is active in the state, bool[T]; None if it always is. Other
            transitions are not learned from.
        probability: the target's probability of the action, float64[T]; None if it is not known.
            Only some online algorithms use it.
    """

    ratio: NDArray[np.float64]
    cumulant: NDArray[np.float64]
    continuation: NDArray[np.float64]
    interest: NDArray[np.float64] | None = None
    active: NDArray[np.bool_] | None = None
    probability: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A stream of T transitions, with the signals of questions.

    Attributes:
        x: features of the states, int32[T, a] or float64[T, size].
        x_next: features of the next states.
        action: the actions, int64[T] or float64[T, d].
        next_state: the next states, [T, ...].
        signals: the signals of every question that was asked, by name.
        kind: a number for each kind of transition, int64[T], the same for equal transitions; None
            if transitions hardly ever repeat.
        ended: True if an episode ends, by itself or by a limit, bool[T], so that traces begin anew;
            None if episodes end exactly when a question's continuation is 0.
    """

    x: Array
    x_next: Array
    action: Array
    next_state: Array
    signals: Mapping[str, Signals]
    kind: Array | None = None
    ended: NDArray[np.bool_] | None = None

    def check(self, question: str, size: int) -> None:
        """Raise ValueError for columns that a compiled loop, which checks nothing, cannot read.

        Args:
            question: the name of a question that was asked.
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
        for name in ("ratio", "cumulant", "continuation", "interest"):
            column = getattr(asked, name)
            if name == "interest" and column is None:
                continue
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
        if asked.interest is not None and (asked.interest < 0).any():
            raise ValueError(f"an interest of question {question!r} is negative")
        for name in ("kind", "ended"):
            column = getattr(self, name)
            if column is not None and column.shape != (steps,):
                raise ValueError(f"{name} of a trajectory must be [{steps}], got {column.shape}")
