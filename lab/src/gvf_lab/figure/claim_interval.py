"""The 95 % interval of a claim's statistic, by bootstrap over runs.

The statistic of the expected errors is wanted, and that of the averages over runs estimates it. The
smallest of several averages is too small, since the chosen step size is also the luckiest. If each
bootstrap sample chooses anew, its minimum is too small once more. If all samples keep the step
sizes that all runs choose, they leave out that another choice may be as good. So both are done, and
the interval spans both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from gvf.common.arrays import Array
from gvf.common.quantiles import tail_of
from gvf_lab.figure.statistics import Bounds
from gvf_lab.study.results import Results

LEVEL = 0.95
"""The level of the intervals."""
FEWEST_RUNS = 5
"""Runs below which no interval can be trusted."""


class Estimate(NamedTuple):
    """The value of a statistic and its interval.

    Attributes:
        value: the value.
        low: the lower end of its interval.
        high: the upper end of its interval.
        bound: "<=" or ">=" if the value is only a bound on the true one, else "".
        why: the reasons why it is.
    """

    value: float
    low: float
    high: float
    bound: str = ""
    why: tuple[str, ...] = ()


def interval(
    statistic: Callable[..., Array | Bounds], results: Sequence[Results], *marks: float
) -> Estimate:
    """Compute a statistic of results and both ends of its interval.

    A statistic that has only bounds has a value where these lie on one side of every mark. A
    bootstrap sample without a value may lie on either side of the interval. The ends are nan if
    there are too few runs, or too many such samples, or if the statistic itself has no value.

    Example:
        >>> from gvf_lab.figure.claim_interval import interval
        >>> from gvf_lab.study import MethodResults, Results, Study
        >>> import numpy as np
        >>> pair = ("hard", "hard")
        >>> study = Study("s", "markov-chain", ("IR",), (1.0,), pairs=(pair,), updates=9, runs=8)
        >>> measured = MethodResults((1.0,), {"error": np.ones((8, 1))})
        >>> results = Results(study, "paper", {(pair, 1, "IR"): measured})
        >>> interval(lambda results: results.best("IR"), [results])[:3]
        (1.0, 1.0, 1.0)
    """
    runs = min(each.runs for each in results)
    with np.errstate(divide="ignore", invalid="ignore"):  # diverged runs have infinite errors
        anew = statistic(*results)
        once = statistic(*(each.choosing_once() for each in results))
    bound, why = "", ()
    if isinstance(anew, Bounds) and anew.least[0] < anew.most[0]:
        why = anew.why
        bound = ">=" if marks and anew.least[0] > max(marks) else "<="
    anew, once = (
        number.against(*marks) if isinstance(number, Bounds) else number for number in (anew, once)
    )
    value, samples = float(anew[0]), [anew[1:], once[1:]]
    none = Estimate(value, math.nan, math.nan, "" if math.isnan(value) else bound, why)
    if runs < FEWEST_RUNS or math.isnan(value):
        return none
    tail = tail_of(runs, LEVEL)
    if any(np.isnan(values).mean() >= tail for values in samples):
        return none
    # Some values may be infinite, so quantiles do not interpolate.
    low, high = (
        [
            np.quantile(np.where(np.isnan(values), end, values), share, method="inverted_cdf")
            for values in samples
        ]
        for end, share in ((-np.inf, tail), (np.inf, 1 - tail))
    )
    return Estimate(value, float(min(low)), float(max(high)), bound, why)
