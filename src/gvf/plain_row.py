"""A plain row: the numbers of a question for one transition, without arrays.

A robot observes one transition at a time, and a batch of one costs as much as a batch of sixty. So
what most questions ask of one row is computed with Python's numbers, which have the same bits. A
row is plain if

- target and behaviour are policies given by numbers (:class:`Uniform`, :class:`Fixed`,
  :class:`Always`, :class:`Favour`, :class:`Table`), or the row has a ``behaviour_probability``;
- the cumulant is the name of a column with a finite number, and the continuation is a number;
- an interest that is needed is a number.

Any other row, and any that may be wrong, is left to :class:`gvf.rows.RowMaker`, which evaluates it
as a batch of one, with the error messages of batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np

from gvf.policies import Always, Favour, Fixed, Policy, Table, Uniform
from gvf.policies.ratio import CONFLICT_TOLERANCE
from gvf.question import GVF, OnConflict, OnNaN
from gvf.transition import ESTIMATED, RECORDED

_LOG, _PROBABILITY = RECORDED
_WHOLE = (int, np.integer)
_NUMBER = (int, float, np.integer, np.floating)
_LARGEST = 2.0**62
"""Whole numbers beyond it may not be int64; NaN and infinity are not below it either."""
Probabilities = tuple[bool, list[list[float]]]
"""True if there is a row for each state, and the rows; else one row is for all states."""
Numbers = tuple[float, float, float, float]
"""Ratio, cumulant, continuation and interest."""


class PlainRow:
    """The numbers of a question for one plain row.

    Args:
        question: the question.
        on_conflict: as in :class:`gvf.rows.RowMaker`, like the rest.
        on_nan: "error" or "skip".
        needs_ratio: False if an unknown ratio may count as 1.
        needs_interest: False if the interest is not asked of the question.

    Example:
        >>> import gvf
        >>> from gvf.plain_row import PlainRow
        >>> plain = PlainRow(gvf.GVF(gvf.policies.Fixed([0.2, 0.8]), "reward", 0.9))
        >>> row = {"state": 0, "action": 1, "reward": 2.0, "next_state": 1, "terminated": True}
        >>> plain.numbers(row, gvf.policies.Uniform(2))
        ((1.6, 2.0, 0.0, 1.0), Uniform(2))
        >>> plain.numbers({**row, "reward": float("nan")}, gvf.policies.Uniform(2)) is None
        True
    """

    def __init__(
        self,
        question: GVF,
        on_conflict: OnConflict = "error",
        on_nan: OnNaN = "error",
        needs_ratio: bool = True,
        needs_interest: bool = True,
    ) -> None:
        self._on_conflict, self._skips, self._needs_ratio = (
            on_conflict,
            on_nan == "skip",
            needs_ratio,
        )
        self._cumulant: Any = question.cumulant
        self._continuation: Any = question.continuation
        interest = question.interest if needs_interest else None
        self._interest: Any = 1.0 if interest is None else interest
        self._target = _table_of(question.policy)
        self._actions = getattr(question.policy, "actions", 0)
        fixed = (self._cumulant, str), (self._continuation, _NUMBER), (self._interest, _NUMBER)
        self._is_possible = self._target is not None and all(isinstance(*pair) for pair in fixed)
        self._behaviour: Policy | None = None
        self._acting: Probabilities | None = None

    def numbers(
        self, columns: Mapping[str, Any], behaviour: Policy | None
    ) -> tuple[Numbers, Policy | str | None] | None:
        """Return the numbers, and the source of the behaviour's probability.

        None if the row is not plain.

        Args:
            columns: one value a column, ``state`` and ``terminated`` among them.
            behaviour: the policy that chose the action, if it is known.
        """
        if not self._is_possible or self._cumulant not in columns:
            return None
        action, terminated = columns["action"], columns["terminated"]
        value: Any = columns[self._cumulant]
        if (
            not isinstance(action, _WHOLE)
            or not 0 <= action < self._actions
            or action is True
            or action is False
            or not isinstance(terminated, bool | np.bool_)
            or not isinstance(value, _NUMBER)
            or not abs(value) <= _LARGEST
            or (self._skips and _may_have_nan(columns["state"], columns["next_state"]))
        ):
            return None
        ratio, source = self._ratio(columns, int(action), behaviour)
        if ratio is None:
            return None
        continuation = 0.0 if terminated else float(self._continuation)
        return (ratio, float(value), continuation, float(self._interest)), source

    def _ratio(
        self, columns: Mapping[str, Any], action: int, behaviour: Policy | None
    ) -> tuple[float | None, Policy | str | None]:
        """Return the ratio, None if the row is not plain, and the behaviour's source."""
        if behaviour is not self._behaviour:
            self._behaviour = behaviour
            self._acting = _table_of(behaviour)
        state, source = columns["state"], behaviour
        pi, mu = (_probability(table, state, action) for table in (self._target, self._acting))
        if _LOG in columns or ESTIMATED in columns or pi is None:
            return None, None
        if _PROBABILITY in columns:
            recorded = columns[_PROBABILITY]
            if not isinstance(recorded, float | np.floating) or not 0.0 <= recorded <= 1.0:
                return None, None
            if behaviour is None or self._on_conflict != "behaviour":
                recorded, source = float(recorded), _PROBABILITY
                is_compared = behaviour is not None and self._on_conflict == "error"
                if is_compared and (mu is None or abs(recorded - mu) > CONFLICT_TOLERANCE * mu):
                    return None, None
                mu = recorded
        if source is None:
            return (None if self._needs_ratio else 1.0), None
        if pi == 0.0 and mu is not None:
            return 0.0, source
        if not mu:
            return None, None
        ratio = pi / mu
        return (ratio if isfinite(ratio) else None), source


def _table_of(policy: Policy | None) -> Probabilities | None:
    """Return the probabilities of a policy given by numbers; None for any other policy."""
    if type(policy) is Table:
        return True, policy.rows.tolist()
    if type(policy) in (Uniform, Fixed, Always, Favour):
        return False, policy.probabilities([0]).tolist()  # pyright: ignore
    return None


def _probability(table: Probabilities | None, state: Any, action: int) -> float | None:
    """Return the probability of an action; None if it is not in the table."""
    if table is None:
        return None
    by_state, rows = table
    if not by_state:
        return rows[0][action]
    is_row = isinstance(state, _WHOLE) and type(state) is not bool and 0 <= state < len(rows)
    return rows[state][action] if is_row else None


def _may_have_nan(*states: Any) -> bool:
    """Return False if states certainly have no NaN."""
    for state in states:
        if isinstance(state, np.ndarray):
            kind = state.dtype.kind
            if kind not in "biuf" or (kind == "f" and np.isnan(state).any()):
                return True
        elif not isinstance(state, _NUMBER) or state != state:
            return True
    return False
