"""Claims: comparisons by which sentences about figures are judged.

A claim is a statistic, and the range in which it lies if what it says is true. It also tells why
this range was chosen, and when: a range that was chosen after the results were seen proves less.
The results give its value and a 95 % interval, by bootstrap over runs
(:mod:`gvf_lab.figure.claim_interval`). All methods get the same resampled runs, so comparisons are
paired. The claim

    holds       if the whole interval lies in the range,
    fails       if the whole interval lies outside the range,
    undecided   otherwise; more runs may decide it.

If the results of another figure are missing, it is not judged.

The ends of a range belong to neither side, so a tie does not support "wider".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gvf.common.arrays import Array
from gvf_lab.figure.claim_interval import FEWEST_RUNS, Estimate, interval
from gvf_lab.figure.history import HistoryEntry
from gvf_lab.figure.statistics import Bounds
from gvf_lab.study.results import Results


@dataclass(frozen=True)
class Claim:
    """A comparison: what it says, and the statistic that judges it.

    Attributes:
        id: the id, unique in its figure.
        sentence: what it says, in our words.
        measure: a description of the statistic.
        statistic: the function from results to float64[1 + B], or to bounds on it. The first value
            is that of all runs, the others are those of bootstrap samples. It also gets the results
            of `needs`.
        least: the lower end of the range.
        most: the upper end of the range.
        needs: other figures whose results the statistic needs.
        protocols: the protocols under which the claim can be judged.
        because: the reason why it fails, if known.
        why: the reason for the range.
        history: when it was written and changed, and what was known by then.
        not_counted: the reason why it counts for nothing: it cannot fail, or repeats another claim.
        place: the place of the publication that says it, if the figure does not tell.

    Example:
        >>> from gvf_lab.paper import get
        >>> claim = get("four-rooms-learning-curves").claims[0]
        >>> claim.id, claim.sentence
        ('ir-faster-than-is', 'IR learns faster than IS with an update every 16 steps.')
    """

    id: str
    sentence: str
    measure: str
    statistic: Callable[..., Array | Bounds]
    least: float = -math.inf
    most: float = math.inf
    needs: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ("paper", "authors")
    because: str = ""
    why: str = ""
    history: tuple[HistoryEntry, ...] = ()
    not_counted: str = ""
    place: str = ""


@dataclass(frozen=True)
class Verdict:
    """The judgement of a claim.

    Attributes:
        id: the claim's id.
        sentence: the claim's sentence.
        statistic: the statistic's value; None if it is not finite.
        low: the lower end of its interval.
        high: the upper end of its interval.
        runs: the number of runs behind it.
        protocol: "paper" or "authors".
        verdict: "holds", "fails", "undecided" or "not judged".
        measure: a description of the statistic.
        range: the range in which the statistic must lie for the sentence to hold; None is no bound.
        remark: the reason why it fails or cannot be judged, if known.
        why: the reason for the range.
        history: when the claim was written and changed.
        given: the reason why it does not count, ``Claim.not_counted``; files have this name.
        place: the place of the publication that says it, if the figure does not tell.
        bound: "<=" or ">=" if the statistic is only a bound on the true one, else "".

    Example:
        >>> from gvf_lab.figure import judge
        >>> from gvf_lab.paper import get
        >>> from gvf_lab.study import Results
        >>> figure = get("markov-vtrace")
        >>> results = Results(figure.study("paper"), "paper", {})
        >>> verdict = judge(figure.claims[-1], results)
        >>> verdict.verdict, verdict.remark
        ('not judged', 'needs markov-step-size too')
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
    why: str = ""
    history: tuple[str, ...] = ()
    given: str = ""
    place: str = ""
    bound: str = ""


def judge(claim: Claim, results: Results, others: Mapping[str, Results] | None = None) -> Verdict:
    """Judge a claim by results; `others` are the results of the figures in ``claim.needs``.

    Example:
        >>> from gvf_lab.figure.claim import Claim, judge
        >>> from gvf_lab.study.results import Results
        >>> from gvf_lab.study import Study
        >>> import numpy as np
        >>> study = Study("s", "markov-chain", ("IR",), (1.0,), updates=10, runs=8)
        >>> claim = Claim("small", "It is small.", "a number", lambda _: np.full(2001, 0.1), most=1)
        >>> judge(claim, Results(study, "paper", {})).verdict
        'holds'
    """
    absent = [name for name in claim.needs if name not in (others or {})]
    runs = min([results.runs, *((others or {})[name].runs for name in claim.needs if not absent)])
    if absent:
        remark = f"needs {', '.join(absent)} too"
        return _verdict(claim, results.protocol, runs, verdict="not judged", remark=remark)
    more = [(others or {})[name] for name in claim.needs]
    ends = filter(math.isfinite, (claim.least, claim.most))
    estimate = interval(claim.statistic, [results, *more], *ends)
    if math.isnan(estimate.low):
        few = f"fewer than {FEWEST_RUNS} runs do not tell"
        none = (
            "some bootstrap samples have no value: too many runs diverge, too few learn, or the "
            "grid of step sizes does not resolve it"
        )
        remark = few if runs < FEWEST_RUNS else "; ".join(estimate.why) or none
        return _verdict(claim, results.protocol, runs, estimate, remark=remark)
    above = estimate.low > claim.least or claim.least == -math.inf
    below = estimate.high < claim.most or claim.most == math.inf
    if above and below:
        verdict = "holds"
    elif estimate.high < claim.least or estimate.low > claim.most:
        verdict = "fails"
    else:
        verdict = "undecided"
    remark = claim.because if verdict == "fails" else ""
    return _verdict(claim, results.protocol, runs, estimate, verdict, remark)


NONE = Estimate(math.nan, math.nan, math.nan)
"""The estimate of a claim that is not judged."""


def _verdict(
    claim: Claim,
    protocol: str,
    runs: int,
    estimate: Estimate = NONE,
    verdict: str = "undecided",
    remark: str = "",
) -> Verdict:
    value, low, high = (_number(v) for v in estimate[:3])
    place = (_number(claim.least), _number(claim.most))
    known = (claim.id, claim.sentence, value, low, high, runs, protocol, verdict)
    history = tuple(entry.text for entry in claim.history)
    reasons = (claim.why, history, claim.not_counted, claim.place, estimate.bound)
    return Verdict(*known, claim.measure, place, remark, *reasons)


def _number(value: float) -> float | None:
    """Return a number for JSON: None if it is not finite."""
    return value if math.isfinite(value) else None
