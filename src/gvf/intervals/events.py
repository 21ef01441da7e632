"""The events of a log: the rows from which a question's values are learned.

A row is an event of a question if its cumulant is not the commonest one. If the commonest cumulant
is not 0, a row is also an event if its continuation is not the commonest one, because an end then
changes the return: episodes of CartPole have the cumulant 1 in all steps, and their falls are the
events. They are worth as many rows of equal ratio as their sum of ratios brings:

    effective number = (sum over events of rho) (sum over rows of rho) / (sum over rows of rho^2),

but not more than the effective number of the events among themselves, (sum z)^2 / sum z^2, where z
is rho d^2 with the distance d of the cumulant from the commonest one (1 for an end). So events of
ratio 0 count nothing, and events of small ratios or sizes little: two rewards of 100 are two events
also where noise makes all cumulants differ.

Replicates differ by how often they have each event. With few events many logs have none at all, and
then all replicates agree. Below :data:`LEAST_EVENTS` intervals are refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gvf.common.arrays import Floats
from gvf.learners import batches
from gvf.learners.learner import Learner
from gvf.log import Log
from gvf.online import LSTDLearner

LEAST_EVENTS = 5
"""The least effective number of events for intervals. With more, intervals of 95 % cover the rate
of rare clicks in 90 % of the cases or more; with fewer, coverage falls (docs/intervals.md)."""


@dataclass(frozen=True)
class Events:
    """The events of a log for a question; :func:`count_events` counts them.

    Attributes:
        question: the question, in words.
        name: the name of an event in a message, such as "rewards".
        count: the number of events.
        rows: the number of rows.
        effective: the effective number of events, by their ratios; at most ``count``.
        limit: the least effective number for intervals.

    Example:
        >>> import gvf
        >>> visits = {"state": [0] * 50, "action": [0, 1] * 25, "reward": [1, 1, *[0] * 48]}
        >>> visits |= {"terminated": [True] * 50, "episode": list(range(50))}
        >>> log = gvf.read_log(visits, quiet=True)
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.LSTDLearner(
        ...     question, gvf.features.OneHot(1), behaviour=gvf.policies.Uniform(2)
        ... )
        >>> events = gvf.intervals.count_events(learner, log)
        >>> events.count, events.rows, events.effective, events.few
        (2, 50, 1.0, True)
        >>> print(events)
        2 rewards in 50 rows, worth 1 by their ratios and sizes
    """

    question: str
    name: str
    count: int
    rows: int
    effective: float
    limit: int = LEAST_EVENTS

    @property
    def few(self) -> bool:
        """True if there are too few events for intervals."""
        return self.effective < self.limit

    def __str__(self) -> str:
        name = self.name.removesuffix("s") if self.count == 1 else self.name
        number = f"{self.count:,} {name} in {self.rows:,} rows"
        if self.effective >= 0.99 * self.count:
            return number
        return f"{number}, worth {self.effective:.2g} by their ratios and sizes"


class TooFewEventsError(ValueError):
    """The error of a log with too few events for intervals.

    Attributes:
        events: the events of the question.

    Example:
        >>> import gvf
        >>> walk = {"state": [0, 0], "action": [1], "reward": [0.0], "terminated": True}
        >>> log = gvf.read_log([walk] * 50, quiet=True)
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.LSTDLearner(
        ...     question, gvf.features.OneHot(1), behaviour=gvf.policies.Uniform(2)
        ... )
        >>> try:
        ...     gvf.bootstrap(learner, log)
        ... except gvf.intervals.TooFewEventsError as error:
        ...     print(error.events)
        0 rewards in 50 rows
    """

    def __init__(self, events: Events) -> None:
        super().__init__(
            f"{events.question}: {events}, and intervals need at least {events.limit}: with fewer, "
            "chance in the log cannot be told; record more"
        )
        self.events = events

    def __reduce__(self) -> tuple[type[TooFewEventsError], tuple[Events]]:
        return type(self), (self.events,)


def count_events(learner: Learner | LSTDLearner, log: Log) -> Events:
    """Count the events of a log for the question of a learner.

    Args:
        learner: the learner. Only its question, its behaviour, its correction and its treatment of
            NaN matter. Nothing is learned.
        log: the log.

    Returns:
        The :class:`Events`. :func:`bootstrap` raises a :class:`TooFewEventsError` if they are few.

    Example:
        >>> import gvf
        >>> walk = {"state": [0, 0], "action": [1], "terminated": True}
        >>> walks = [walk | {"reward": [float(number < 4)]} for number in range(50)]
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.LSTDLearner(
        ...     question, gvf.features.OneHot(1), behaviour=gvf.policies.Uniform(2)
        ... )
        >>> print(gvf.intervals.count_events(learner, gvf.read_log(walks, quiet=True)))
        4 rewards in 50 rows
    """
    question, parts = learner.question, []
    needs_ratio = learner.correction.needs_ratios
    for batch in batches.batches_of(log):
        rows = learner.row_maker.many(batch, learner.behaviour)
        ratio = rows.ratio if needs_ratio else np.ones(len(rows.ratio))
        parts.append((rows.cumulant, rows.continuation, ratio))
    cumulant, continuation, ratio = np.concatenate(parts, axis=1)
    usual = _commonest(cumulant)
    event = cumulant != usual
    if usual != 0.0:
        event |= continuation != _commonest(continuation)
    size, away = event.astype(np.float64), np.abs(cumulant - usual)
    if away.any():
        size[away > 0.0] = (away[away > 0.0] / away.max()) ** 2
    share = ratio / max(ratio.max(), 1e-300)  # squares may overflow
    worth, least = share * size, 1e-300
    by_ratio = share[event].sum() * share.sum() / max((share**2).sum(), least)
    among = worth.sum() ** 2 / max((worth**2).sum(), least)
    return Events(
        question=question.name or repr(question),
        name="rewards" if (question.cumulant, usual) == ("reward", 0.0) else "events",
        count=int(event.sum()),
        rows=len(event),
        effective=float(min(by_ratio, among)),
    )


def _commonest(numbers: Floats) -> float:
    values, counts = np.unique(numbers, return_counts=True)
    return float(values[counts.argmax()])
