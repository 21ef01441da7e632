"""The value of the policy: one number for a question, by several estimators, for people to compare.

The learned value is the mean prediction over the first states of the log's episodes. The others
need neither features nor learning (:mod:`gvf.judging.policy_value`), so they can be told where
predictions by state cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf.estimate import Estimate, percent
from gvf.intervals import BootstrapResult
from gvf.judging import Comparison, Estimator, Outcome, Verdict
from gvf.judging.policy_value import FEWEST_REWARDS
from gvf.log import Log

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
        >>> from gvf.answers.value_estimates import written
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
