"""The part that all learners of one question have in common: its rows, and its predictions.

What a learner does with the rows is its own: :class:`gvf.Learner` draws from a window of them, and
:class:`gvf.OnlineLearner` uses each once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from gvf.common.arrays import Floats
from gvf.common.checks import brief
from gvf.common.gymnasium import gym
from gvf.learners.learner_options import AnyOptions
from gvf.learners.states import States
from gvf.learners.totals import Totals
from gvf.learners.training import Report, Trained
from gvf.policies import DiscretePolicy, Policy
from gvf.question import GVF, OnConflict, OnNaN
from gvf.rows import QuestionRows, RowMaker
from gvf.stream.infos import info_columns
from gvf.transition import Transitions
from gvf.truth.held_out_returns import ReturnError, held_out_returns


class OneQuestion(Trained[Report]):
    """A learner that answers one question.

    Args:
        question: the question to answer.
        options: the options that all learners have.
        needs_ratio: False if unknown ratios may count as 1.
        needs_interest: True if the interest of the question matters.
        features: the features; None if there are none, as with a network.
    """

    def __init__(
        self,
        question: GVF,
        options: AnyOptions,
        *,
        needs_ratio: bool,
        needs_interest: bool,
        features: Any = None,
    ) -> None:
        policies = [
            p for p in (question.policy, options.behaviour) if isinstance(p, DiscretePolicy)
        ]
        if len({p.actions for p in policies}) > 1:
            raise ValueError(
                f"target and behaviour differ in their number of actions: {policies[0].actions} "
                f"and {policies[1].actions}"
            )
        self.question, self.behaviour = question, options.behaviour
        self.on_conflict: OnConflict = options.on_conflict
        self.on_nan: OnNaN = options.on_nan
        self.row_maker = RowMaker(
            question, self.on_conflict, self.on_nan, needs_ratio, needs_interest
        )
        self.states, self.totals = States(self.on_nan), Totals()
        self._bounded = features

    @property
    @abstractmethod
    def steps(self) -> int:
        """The number of transitions observed."""

    @property
    @abstractmethod
    def has_learned(self) -> bool:
        """True if there was an update, or if weights were set."""

    @abstractmethod
    def values_of(self, states: Any) -> Floats:
        """Return the values of a batch of states without a NaN, [m] or [m, lanes]."""

    @abstractmethod
    def observe_rows(self, rows: QuestionRows) -> None:
        """Learn from rows, at least one; if it fails, nothing has changed."""

    @abstractmethod
    def leave_out(self, batch: Transitions) -> None:
        """Let no transition follow these, which are all left out, or those before in a stream."""

    def observe_batch(self, batch: Transitions, behaviour: Policy | None) -> None:
        """Observe transitions that this behaviour chose, or that carry its probabilities."""
        if len(batch):
            self._observe(self.row_maker.many, batch, behaviour)

    def observe_row(self, columns: dict[str, Any]) -> None:
        """Observe one transition, with one value a column."""
        self._observe(self.row_maker.one, columns, self.behaviour)

    def _observe(
        self,
        make: Callable[[Any, Policy | None], QuestionRows],
        source: Any,
        behaviour: Policy | None,
    ) -> None:
        """Make rows of a batch or of one transition, and observe them."""
        rows = make(source, behaviour)
        origin = rows.origin
        if origin.left_out is None:
            self.observe_rows(rows)
            self._note(rows)
            return
        with origin.positions_explained():
            if len(rows.ratio):
                self.observe_rows(rows)
                self._note(rows)
            else:
                self.leave_out(origin.batch)
        self.totals.add_left_out(origin)

    def _note(self, rows: QuestionRows) -> None:
        """Remember what reports and predictions need to know of rows."""
        self.totals.add(rows, self._bounded)
        if not rows.origin.is_known:
            self.totals.last_unknown = self.steps
        if not self.states.is_noted:
            self.states.note(rows.origin.transitions["state"])

    def named_columns(self, info: Iterable[str]) -> tuple[str, ...]:
        """Return the names of values of ``info`` that the question needs, with these."""
        return info_columns(self.question, info)

    def predict(self, states: Any) -> Floats:
        """Predict for a batch of states [m, ...]: [m], or [m, lanes] with several lanes.

        Instead of a batch it takes one ``Dict`` observation, or a list of them. The prediction for
        a state with a NaN is NaN, if the learner leaves out such transitions. Before the first
        update there is one :class:`gvf.NotLearnedWarning`.
        """
        predictions = self._predict(states)
        if not self.states.is_settled:
            self.states.settle(predictions, self.has_learned, type(self).__name__, self.steps)
        return predictions

    def _predict(self, states: Any) -> Floats:
        return self.states.predict(self.values_of, states)

    def return_error(
        self, env: gym.Env[Any, Any], **options: Any
    ) -> ReturnError | list[ReturnError]:
        """Compare predictions with returns of the target policy, in states the behaviour visits.

        No ground truth is needed, only an environment in which the target policy can act.

        Args:
            env: a Gymnasium environment other than the one being learned from.
            **options: options of :func:`gvf.held_out_returns`: ``states``, ``rollouts``, ``seed``
                and others.

        Returns:
            A :class:`gvf.ReturnError` with standard errors; with several step sizes, a list of
            one for each.
        """
        options = {"behaviour": self.behaviour, **options}
        held_out = held_out_returns(env, self.question, **options)
        predictions = self._predict(held_out.states)
        if predictions.ndim == 1:
            return held_out.error(lambda _: predictions)
        return [held_out.error(lambda _, p=p: p) for p in predictions.T]


def check_question(question: object) -> None:
    """Raise TypeError if an object is no question."""
    if not isinstance(question, GVF):
        raise TypeError(f"question must be a gvf.GVF, got {brief(question)}")
