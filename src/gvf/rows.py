"""Rows: what a batch of transitions means for a question, as the numbers that learners use.

    batch --> without the rows that have a NaN --> ratio, cumulant, continuation, interest

A question (:class:`gvf.GVF`) says how each of the four numbers follows from transitions. Whoever
learns or judges asks three more things of a batch, and all ask them here: which of its transitions
cannot be used, whether the behaviour is known, and whether its probabilities are estimates. The
answers are an :class:`Origin`, also for those who evaluate many questions at once. The quotient of
probabilities itself is :func:`gvf.policies.ratio.quotient`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Self

import numpy as np

from gvf.common.arrays import Bools, Floats
from gvf.common.errors import noted
from gvf.plain_row import PlainRow
from gvf.policies import Policy
from gvf.question import GVF, OnConflict, OnNaN, behaviour_source
from gvf.transition import ESTIMATED, Transitions, one_row


class Origin(NamedTuple):
    """The batch that rows come from: which of its transitions are used, and who acted.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.rows import Origin
        >>> batch = gvf.Transitions(state=[0, 1], behaviour_probability=[0.5, np.nan])
        >>> origin = Origin.of(batch, np.array([False, True]), None, "error")
        >>> origin.transitions, origin.is_known, origin.estimated
        (Transitions(1: state int64, behaviour_probability float64), True, array([False]))
    """

    batch: Transitions
    """The batch as it came."""
    left_out: Bools | None
    """True for the transitions of the batch that are left out for a NaN; None if all are used."""
    transitions: Transitions
    """The transitions that are used."""
    source: Policy | str | None
    """The source of the behaviour's probabilities; see :func:`gvf.question.behaviour_source`."""

    @classmethod
    def of(
        cls,
        batch: Transitions,
        left_out: Bools | None,
        behaviour: Policy | None,
        on_conflict: OnConflict,
    ) -> Self:
        """Take a batch without the transitions that are left out, if there are any.

        Args:
            batch: the batch.
            left_out: True for transitions that cannot be used; None if all can.
            behaviour: the policy that chose the actions, if it is known.
            on_conflict: as in :meth:`gvf.GVF.evaluate`.
        """
        source = behaviour_source(batch, behaviour, on_conflict)
        if left_out is None or not left_out.any():
            return cls(batch, None, batch, source)
        return cls(batch, left_out, batch[~left_out], source)

    @property
    def is_known(self) -> bool:
        """True if the behaviour is known, and so the ratios."""
        return self.source is not None

    @property
    def estimated(self) -> Bools:
        """True for the rows whose ratio is formed with an estimated probability, bool[m].

        The probabilities are estimates where the column ``behaviour_is_estimated`` is True, which
        :func:`gvf.estimate_behaviour` adds, or if the behaviour in use is an estimated policy.
        """
        if isinstance(self.source, Policy):
            return np.full(len(self.transitions), self.source.is_estimated)
        if ESTIMATED not in self.transitions:
            return np.zeros(len(self.transitions), np.bool_)
        return np.asarray(self.transitions[ESTIMATED] == 1)

    @property
    def has_estimates(self) -> bool:
        """True if the ratio of any row is formed with an estimated probability."""
        if isinstance(self.source, Policy):
            return self.source.is_estimated
        return ESTIMATED in self.transitions and bool(self.estimated.any())

    @property
    def left_out_count(self) -> int:
        """The number of transitions that are left out."""
        return 0 if self.left_out is None else int(self.left_out.sum())

    def positions_explained(self) -> AbstractContextManager[None]:
        """Note in errors that their positions do not count the transitions left out.

        Example:
            >>> import gvf, numpy as np
            >>> from gvf.rows import Origin
            >>> batch = gvf.Transitions(state=[0.5, np.nan])
            >>> origin = Origin.of(batch, np.array([False, True]), None, "error")
            >>> try:
            ...     with origin.positions_explained():
            ...         raise ValueError("the reward at position 0 is text")
            ... except ValueError as error:
            ...     print(*error.__notes__)
            Positions do not count the rows left out for a NaN, [1].
        """
        return nullcontext() if self.left_out is None else noted(self._explanation)

    @property
    def _explanation(self) -> str:
        assert self.left_out is not None
        rows = np.array2string(np.flatnonzero(self.left_out), separator=", ", threshold=8)
        return f"Positions do not count the rows left out for a NaN, {rows}."


class QuestionRows(NamedTuple):
    """The numbers of a question for the m used transitions of a batch."""

    ratio: Floats
    """The ratios pi(a|s) / mu(a|s), float64[m]; 1 if they are neither known nor needed."""
    cumulant: Floats
    """The cumulants, float64[m]."""
    continuation: Floats
    """The continuations, float64[m]."""
    interest: Floats
    """The interest in the states, float64[m]; 1 if it is not needed."""
    origin: Origin
    """The batch that the rows come from."""


class RowMaker:
    """A maker of rows of one question.

    Args:
        question: the question.
        on_conflict: the rule if there are a record of the behaviour and a policy, as in
            :meth:`gvf.GVF.evaluate`.
        on_nan: "error" to raise an error for a NaN; "skip" to leave out such transitions.
        needs_ratio: False if unknown ratios may count as 1, as for a correction without ratios.
        needs_interest: False if the interest is not asked of the question.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.rows import RowMaker
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
        >>> batch = gvf.Transitions(state=[0, 0], action=[0, 1], reward=[np.nan, 7.0])
        >>> rows = RowMaker(question, on_nan="skip").many(batch, gvf.policies.Uniform(2))
        >>> rows.ratio, rows.cumulant, rows.continuation, rows.origin.left_out
        (array([2.]), array([7.]), array([0.9]), array([ True, False]))
    """

    def __init__(
        self,
        question: GVF,
        on_conflict: OnConflict = "error",
        on_nan: OnNaN = "error",
        needs_ratio: bool = True,
        needs_interest: bool = True,
    ) -> None:
        self.question, self.on_nan = question, on_nan
        self.on_conflict: OnConflict = on_conflict
        self.needs_ratio, self.needs_interest = needs_ratio, needs_interest
        self._plain = PlainRow(question, on_conflict, on_nan, needs_ratio, needs_interest)

    def many(self, batch: Transitions, behaviour: Policy | None) -> QuestionRows:
        """Return the rows of a batch, and where they come from.

        Args:
            batch: the transitions.
            behaviour: the policy that chose the actions; None if the batch has to tell.

        Raises:
            ValueError: as :meth:`gvf.GVF.evaluate`. Positions count the used transitions, and a
                note says which are not among them.
        """
        left_out = None
        if self.on_nan == "skip":
            left_out = self.question.missing(batch, interest=self.needs_interest)
        origin = Origin.of(batch, left_out, behaviour, self.on_conflict)
        question, transitions = self.question, origin.transitions
        ratio = interest = np.ones(len(transitions))
        if not len(transitions):  # functions of users need not take an empty batch
            return QuestionRows(ratio, ratio, ratio, interest, origin)
        try:
            if self.needs_ratio or origin.source is not None:
                conflict = self.on_conflict
                ratio = question.ratios(transitions, behaviour=behaviour, on_conflict=conflict)
            cumulant = question.cumulants(transitions)
            continuation = question.continuations(transitions)
            if self.needs_interest:
                interest = question.interests(transitions)
        except ValueError:
            with origin.positions_explained():
                raise
        return QuestionRows(ratio, cumulant, continuation, interest, origin)

    def one(self, columns: Mapping[str, Any], behaviour: Policy | None) -> QuestionRows:
        """Return the row of one transition, given by one value a column.

        It is that of a batch of one, to the last bit, and so are the errors. A plain row, as
        :class:`gvf.plain_row.PlainRow` says, takes a tenth of the time.
        """
        batch = one_row(columns)
        plain = self._plain.numbers(columns, behaviour)
        if plain is None:
            return self.many(batch, behaviour)
        numbers, source = plain
        ratio, cumulant, continuation, interest = np.array(numbers).reshape(4, 1)
        origin = Origin(batch, None, batch, source)
        return QuestionRows(ratio, cumulant, continuation, interest, origin)
