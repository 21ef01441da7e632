"""The rows of a log that a behaviour is estimated from, and judged on.

A short log gives all of its rows, a long one a random sample: a hundred thousand rows tell a
behaviour well enough, and take seconds. Rows with a NaN in the state or the action are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Bools
from gvf.common.checks import brief
from gvf.common.fields import as_matrix
from gvf.log import Log
from gvf.transition import Transitions, nan_rows

_FEW = 20
"""Continuous actions with at most this many distinct whole numbers are probably discrete."""


@dataclass(frozen=True, eq=False)
class LogRows:
    """Some rows of a log, without those that have a NaN.

    Args:
        batch: the rows, m of them.
        position: their positions in the log, int64[m], ascending.
        missing: the number of rows of the log with a NaN in the state or the action.
        count: the number of actions; None if they are continuous.
        taken: the actions taken anywhere in the log; empty if they are continuous.
    """

    batch: Transitions
    position: NDArray[np.int64]
    missing: int
    count: int | None
    taken: NDArray[np.int64]

    @property
    def states(self) -> Array:
        """The states, [m, ...]."""
        return self.batch["state"]

    @property
    def actions(self) -> Array:
        """The actions: int64[m], or float64[m, d] if they are continuous."""
        return as_actions(self.batch["action"], self.count)

    @property
    def episode(self) -> NDArray[np.int64]:
        """The numbers of the episodes, [m]."""
        return self.batch["episode"]


def rows_of(log: Log, most: int, actions: int | None, rng: np.random.Generator) -> LogRows:
    """Return at most `most` rows of a log, chosen at random if it has more.

    Args:
        log: the log.
        most: the largest number of rows.
        actions: the number of actions, if the caller gives it.
        rng: the generator of the choice.

    Raises:
        ValueError: if the log has no actions, or they are not those of a policy.
    """
    if not isinstance(log, Log):
        raise TypeError(f"log must be a gvf.Log, as gvf.read_log makes, not {brief(log)}")
    if "action" not in log.columns:
        raise ValueError(f"{log.source}: the log has no actions, so it has no behaviour")
    taken: set[int] = set()

    def note_actions(batch: Transitions, position: NDArray[np.int64]) -> None:
        taken.update(_taken(batch["action"], actions, position))

    def usable(batch: Transitions) -> Bools:
        return ~(nan_rows(batch["state"]) | nan_rows(batch["action"]))

    joined, position, missing = log.sample(most, rng=rng, usable=usable, inspect=note_actions)
    if not len(joined):
        raise ValueError(f"{log.source}: all rows have a NaN in the state or the action")
    infinite = np.isinf(as_matrix(joined["state"])).any(axis=1)
    if infinite.any():
        at = int(position[infinite.argmax()])
        raise ValueError(f"the state of transition {at} of the log is infinite: repair it")
    discrete = actions is not None or joined["action"].dtype.kind in "iu"
    count = None
    if discrete:
        count = max(taken) + 1 if actions is None else actions
    else:
        _check_continuous(joined["action"])
    names = np.array(sorted(taken), np.int64)
    return LogRows(joined, position, missing, count, names)


def as_actions(column: Array, count: int | None) -> Array:
    """Return actions as int64[m], or as float64[m, d] if they are continuous."""
    if count is not None:
        return column.astype(np.int64)
    return column.astype(np.float64).reshape(len(column), -1)


def _taken(column: Array, actions: int | None, position: NDArray[np.int64]) -> set[int]:
    """Return the discrete actions of a batch, checked."""
    if actions is None and column.dtype.kind not in "iu":
        return set()
    if column.ndim > 1:
        raise ValueError(
            f"the actions are {column.dtype}{list(column.shape[1:])}, several numbers a row: "
            "give each combination a number, 0, 1, ..."
        )
    names = np.unique(column)
    wrong = (names < 0) | (names != np.floor(names))
    if actions is not None:
        wrong |= names >= actions
    if wrong.any():
        value = names[wrong.argmax()]
        at = int(position[(column == value).argmax()])
        most = "" if actions is None else f" to {actions - 1}"
        raise ValueError(f"transition {at} of the log has the action {value}, not 0, 1, ...{most}")
    return set(names.astype(np.int64).tolist())


def _check_continuous(column: Array) -> None:
    """Raise ValueError if actions in floating point look like numbers of actions."""
    if column.ndim > 1 or (column != np.floor(column)).any():
        return
    names = np.unique(column)
    if len(names) <= _FEW:
        raise ValueError(
            f"the actions are {column.dtype}, but only {len(names)} whole numbers: if they number "
            f"actions, say how many there are: actions={int(names.max()) + 1}"
        )
