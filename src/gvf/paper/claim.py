"""Claims: sentences of the paper about its figures, and whether our results bear them out.

A claim is a statistic, fixed beforehand, and the range in which it lies if the sentence is true.
From the results come its value and a 95 % interval, by bootstrap over runs (all methods see the
same resampled runs, so comparisons are paired). The sentence

    holds       if the whole interval lies in the range,
    fails       if the whole interval lies outside of it,
    undecided   otherwise: more runs may tell.

The ends of a range belong to neither side, so that "wider" is not borne out by a tie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from gvf.learner.linear import Array
from gvf.paper.results import Results

LEVEL = 0.95
"""Of the intervals."""


@dataclass(frozen=True)
class Claim:
    """A sentence and how it is judged.

    Attributes:
        id: unique in its figure.
        sentence: the paper's, in our words.
        measure: what the statistic is, in words.
        statistic: computes it from results: float64[1 + B], the first from the runs as they are,
            the others from bootstrap samples of them. Of `needs` it gets the results too.
        least: where the range begins.
        most: where it ends.
        needs: other figures whose results it takes.
        protocols: under which it can be judged.
        because: why it fails, if we know.

    Example:
        >>> from gvf.paper import get
        >>> claim = get("four-rooms-learning-curves").claims[0]
        >>> claim.id, claim.sentence
        ('ir-faster-than-is', 'IR learns faster than IS with an update every 16 steps.')
    """

    id: str
    sentence: str
    measure: str
    statistic: Callable[..., Array]
    least: float = -math.inf
    most: float = math.inf
    needs: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ("paper", "authors")
    because: str = ""


@dataclass(frozen=True)
class Verdict:
    """What became of a claim.

    Attributes:
        id: the claim's.
        sentence: the claim's.
        statistic: its value; None where there is none.
        low: the lower end of its interval.
        high: the upper end.
        runs: how many it rests on.
        protocol: "paper" or "authors".
        verdict: "holds", "fails" or "undecided".
        measure: what the statistic is.
        range: where it must lie for the sentence to hold; None is no bound.
        remark: why it fails or cannot be judged, if we know.

    Example:
        >>> from gvf.paper import Results, get, judge
        >>> figure = get("markov-vtrace")
        >>> results = Results(figure.study("paper"), "paper", {}, {})
        >>> told = judge(figure.claims[-1], results)
        >>> told.verdict, told.remark
        ('undecided', 'needs markov-step-size too')
    """

    id: str
    sentence: str
    statistic: float | None
    low: float | None
    high: float | None
    runs: int
    protocol: str
    verdict: str
    measure: str
    range: tuple[float | None, float | None]
    remark: str


def judge(claim: Claim, results: Results, others: Mapping[str, Results] | None = None) -> Verdict:
    """Judge a claim by results; `others` are those of figures that it needs besides.

    Example:
        >>> from gvf.paper.claim import Claim, judge
        >>> from gvf.paper.results import Results
        >>> from gvf.study import Study
        >>> import numpy as np
        >>> study = Study("s", "markov-chain", ("IR",), (1.0,), updates=10, runs=4)
        >>> claim = Claim("small", "It is small.", "a number", lambda _: np.full(2001, 0.1), most=1)
        >>> judge(claim, Results(study, "paper", {}, {})).verdict
        'holds'
    """
    absent = [name for name in claim.needs if name not in (others or {})]
    runs = min([results.runs, *((others or {})[name].runs for name in claim.needs if not absent)])
    if absent:
        return _verdict(claim, results.protocol, runs, remark=f"needs {', '.join(absent)} too")
    with np.errstate(divide="ignore", invalid="ignore"):  # where runs have diverged
        values = claim.statistic(results, *((others or {})[name] for name in claim.needs))
    value, samples = float(values[0]), values[1:]
    if runs < 2 or np.isnan(values).any():
        remark = "one run does not tell" if runs < 2 else "too many runs have diverged to tell"
        return _verdict(claim, results.protocol, runs, (value, math.nan, math.nan), remark=remark)
    # Values that occur, never between two: some may be infinite.
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(samples, (tail, 1 - tail), method="inverted_cdf").tolist()
    above = low > claim.least or claim.least == -math.inf
    below = high < claim.most or claim.most == math.inf
    if above and below:
        told = "holds"
    elif high < claim.least or low > claim.most:
        told = "fails"
    else:
        told = "undecided"
    remark = claim.because if told == "fails" else ""
    return _verdict(claim, results.protocol, runs, (value, low, high), told, remark)


def _verdict(
    claim: Claim,
    protocol: str,
    runs: int,
    numbers: tuple[float, float, float] = (math.nan, math.nan, math.nan),
    told: str = "undecided",
    remark: str = "",
) -> Verdict:
    value, low, high = (_number(v) for v in numbers)
    place = (_number(claim.least), _number(claim.most))
    known = (claim.id, claim.sentence, value, low, high, runs, protocol, told)
    return Verdict(*known, claim.measure, place, remark)


def _number(value: float) -> float | None:
    """A number as JSON knows them."""
    return value if math.isfinite(value) else None
