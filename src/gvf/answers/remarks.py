"""Remarks on an answer, and the value of the policy, as the terminal and the page tell them.

A remark says what is wrong with the answer, or was done about it. It is a dataclass whose fields
decide; its text is for people.

The value of the policy is one number for a question, by several estimators, for people to compare.
The learned value is the mean prediction over the first states of the log's episodes. The others
need neither features nor learning (:mod:`gvf.judging.policy_value`), so they can be told where
predictions by state cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gvf.common.arrays import Array
from gvf.common.progress import duration
from gvf.estimate import Estimate, percent
from gvf.intervals import BootstrapResult, Events
from gvf.judging import Comparison, Estimator, Outcome, Verdict
from gvf.judging.policy_value import FEWEST_REWARDS
from gvf.log import Log

MOST_SHOWN = 10.0
"""The largest number of half widths that is written as a number."""


@dataclass(frozen=True)
class Tied:
    """A candidate was taken that is tied with the best, and has a smaller step size.

    Attributes:
        best: the name of the candidate with the lowest error.
        taken: the name of the one that was taken.
    """

    best: str
    taken: str
    warns: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"{self.taken} was taken: chance decides between it and {self.best}"


@dataclass(frozen=True)
class Faster:
    """A larger step size was taken, because learning with the best one is not finished.

    Attributes:
        best: the name of the candidate that is not finished.
        taken: the name of the one that was taken, which is not known to be worse.
    """

    best: str
    taken: str
    warns: ClassVar[bool] = False

    def __str__(self) -> str:
        return (
            f"{self.taken} was taken: learning with {self.best} is not finished, and the log "
            "does not tell that it predicts better"
        )


@dataclass(frozen=True)
class Diverged:
    """Candidates were passed over because replicates of them diverged.

    Attributes:
        names: the names of the candidates.
        replicates: the number of replicates of the first that diverged.
        total: the number of its replicates.
        taken: the name of the candidate that was taken instead.
    """

    names: tuple[str, ...]
    replicates: int
    total: int
    taken: str
    warns: ClassVar[bool] = True

    def __str__(self) -> str:
        first, *others = self.names
        text = f"{self.replicates} of the {self.total} replicates of {first} diverged"
        if others:
            text += f", and some of {len(others)} more"
        return f"{text}, so {self.taken} was taken instead"


@dataclass(frozen=True)
class FewEvents:
    """The log has too few events for intervals.

    Attributes:
        events: the events.
    """

    events: Events
    warns: ClassVar[bool] = True

    def __str__(self) -> str:
        return (
            f"no intervals: {self.events}, and intervals need at least {self.events.limit}; "
            "record more"
        )


@dataclass(frozen=True)
class FeaturesMatter:
    """The mean prediction depends on the features by more than its interval allows.

    Attributes:
        states: the states of the mean, "first states" or "states".
        value: their mean prediction.
        half_width: half of the width of its interval.
        richer: the mean prediction with richer features.
        features: the richer features, in words.
    """

    states: str
    value: float
    half_width: float
    richer: float
    features: str
    warns: ClassVar[bool] = True

    def __str__(self) -> str:
        return (
            f"the features are too poor for this interval: the mean over {self.states} is "
            f"{self.value:.4g} ± {self.half_width:.2g}, and {self.richer:.4g} with "
            f"{self.features}. Take richer [features]"
        )


@dataclass(frozen=True)
class Unfinished:
    """Learning was not finished, so replicates are wrong alike, and intervals too narrow.

    Attributes:
        epochs: the number of passes over the log.
        drift: the mean change of predictions in the second half of learning, in half widths of
            their intervals.
        distance: the mean distance of predictions from those that learning tends to, in half
            widths; None if these are not known.
    """

    epochs: int
    drift: float
    distance: float | None
    warns: ClassVar[bool] = True

    def __str__(self) -> str:
        several = "s" if self.epochs > 1 else ""
        text = (
            f"learning is not finished after {self.epochs} epoch{several}: predictions still moved "
            f"by {_percent(self.drift)} of the half width of their intervals"
        )
        if self.distance is not None:
            text += f", and are {_percent(self.distance)} away from what learning tends to"
        return f"{text}. Give more epochs or larger step_sizes in [learn]"


@dataclass(frozen=True)
class Costly:
    """The cost of least squares, if it is high. It is told before anything is computed.

    Attributes:
        features: the number of features that occur in the log.
        solutions: the number of times that their equations are solved: for held-out parts, for
            replicates, and for each question.
        seconds: an estimate of the processor time.
    """

    features: int
    solutions: int
    seconds: float
    warns: ClassVar[bool] = True

    def __str__(self) -> str:
        return (
            f"LSTD solves equations of {self.features:,} features {self.solutions:,} times, which "
            f"takes about {duration(self.seconds)} of processor time: fewer tiles or tilings in "
            "[features], or fewer replicates in [intervals], make it shorter"
        )


def _percent(share: float) -> str:
    """Write a share of a half width, which may be close to nothing."""
    most = MOST_SHOWN
    return percent(share, ".0f") if share <= most else f"more than {percent(most, ',.0f')}"


Remark = Unfinished | FeaturesMatter | Tied | Faster | Diverged | FewEvents


MEANINGS = {
    Estimator.LEARNED: "the mean prediction for the first states of the log's episodes",
    Estimator.DOUBLY_ROBUST: "the mean doubly robust return of the first states",
    Estimator.PLAIN: "the mean of ratio times reward (inverse propensity)",
    Estimator.SELF_NORMALISED: "the same, divided by the mean ratio",
    Estimator.CONSTANT: "the mean doubly robust return of all states: best without features",
}
"""The estimates of an answer, with their meanings in words."""


def values_of(
    log: Log, learner: Any, intervals: BootstrapResult | None, judgement: Comparison
) -> dict[Estimator, Estimate]:
    """Return the value of the policy by all estimators."""
    return {Estimator.LEARNED: _learned(log, learner, intervals), **judgement.values}


def _learned(log: Log, learner: Any, intervals: BootstrapResult | None) -> Estimate:
    """Return the mean prediction over the first states; without intervals, batch by batch."""
    if intervals is not None:
        states = np.concatenate([*_first_states(log)])
        return Estimate(*(float(number) for number in intervals.mean(states)))
    total = sum(float(np.sum(learner.predict(states))) for states in _first_states(log))
    return Estimate(total / len(log.numbers), math.nan, math.nan)


def _first_states(log: Log) -> Iterator[Array]:
    """Yield the first states of the episodes, in the batches of the log."""
    before = -1
    for batch in log:
        first = np.diff(batch.episode, prepend=before) != 0
        before = int(batch.episode[-1])
        if first.any():
            yield batch.state[first]


def value_lines(
    values: Mapping[Estimator, Estimate], judgement: Comparison, verdict: Verdict
) -> list[str]:
    """Return the values as lines of text."""
    rows = value_rows(values)
    cells = [(row["name"], f"{row['value']} ({row['interval']})", row["meaning"]) for row in rows]
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    level = percent(judgement.level, "g")
    return [
        f"  the value of the policy, with {level} intervals:",
        *(f"    {name:<{wide[0]}}  {value:<{wide[1]}}  {words}" for name, value, words in cells),
        *(f"  {remark}" for remark in value_remarks(judgement, verdict)),
    ]


def value_rows(values: Mapping[Estimator, Estimate]) -> list[dict[str, str]]:
    """Return the name, value, interval and meaning of each estimate, as text."""
    return [
        {
            "name": name.replace("-", " "),
            **dict(zip(("value", "interval"), written(values[name]), strict=True)),
            "meaning": meaning,
        }
        for name, meaning in MEANINGS.items()
        if name in values
    ]


def value_remarks(judgement: Comparison, verdict: Verdict) -> list[str]:
    """Return remarks on how far the values can be trusted."""
    remarks = []
    if verdict.outcome is Outcome.CANNOT_TELL:
        remarks.append("the reasons why the log cannot tell hold for these values too")
    elif verdict.outcome is Outcome.NO_BETTER:
        remarks.append(
            "predictions by state are not shown to be better than the constant: take the constant"
        )
    if judgement.rewards < FEWEST_REWARDS:
        remarks.append(
            f"the rewards are worth {judgement.rewards:.2g} equal ones, and below {FEWEST_REWARDS} "
            "the intervals are too short"
        )
    return remarks


def written(number: Estimate) -> tuple[str, str]:
    """Return a number and its interval as text, with two digits of its half width.

    Example:
        >>> from gvf.answers.remarks import written
        >>> from gvf.estimate import Estimate
        >>> written(Estimate(-104.234, -104.91, -103.6)), written(Estimate(0.5, math.nan, math.nan))
        (('-104.23', '-104.91 to -103.60'), ('0.5', 'none'))
    """
    half = (number.high - number.low) / 2
    if not (math.isfinite(half) and math.isfinite(number.value)):
        return f"{number.value:.4g}", "none" if math.isnan(half) else "unknown"
    if half == 0.0:
        return f"{number.value:.4g}", "of no width"
    digits = max(0, 1 - math.floor(math.log10(half)))
    value, low, high = (f"{part:,.{digits}f}" for part in number)
    return value, f"{low} to {high}"
