"""Claims: comparisons by which sentences about figures are judged, and these sentences.

A claim is a statistic, and the range in which it lies if what it says is true. It also tells why
this range was chosen, and when: a range that was chosen after the results were seen proves less.
The results give its value and a 95 % interval, by bootstrap over runs. All methods get the same
resampled runs, so comparisons are paired. The claim

    holds       if the whole interval lies in the range,
    fails       if the whole interval lies outside the range,
    undecided   otherwise; more runs may decide it.

If the results of another figure are missing, it is not judged. The ends of a range belong to
neither side, so a tie does not support "wider".

The statistic of the expected errors is wanted, and that of the averages over runs estimates it. The
smallest of several averages is too small, since the chosen step size is also the luckiest. If each
bootstrap sample chooses anew, its minimum is too small once more. If all samples keep the step
sizes that all runs choose, they leave out that another choice may be as good. So both are done, and
the interval spans both.

A sentence of a paper is judged by one claim or many, which may belong to several figures. It

    holds       if every claim holds,
    in part     if some claims hold and others fail: the sentence turns around somewhere,
    fails       if some claims fail and none holds,
    undecided   otherwise.

Claims that do not count (``Claim.not_counted``) are left out. A sentence without claims is judged
by theory, is refuted by arithmetic, is contradicted by the authors' code or published curves, says
why it cannot be tested, or repeats another one.

Claims are written as families (:mod:`gvf_lab.figure.families`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from gvf.common.arrays import Array
from gvf.common.quantiles import tail_of
from gvf_lab.figure.statistics import Bounds
from gvf_lab.study.results import Results

LEVEL = 0.95
"""The level of the intervals."""
FEWEST_RUNS = 5
"""Runs below which no interval can be trusted."""
Knew = Literal["unrecorded", "audit", "results"]
"""Prior knowledge: no record tells; small runs of an audit; the results that judge the claim."""


@dataclass(frozen=True)
class HistoryEntry:
    """A line in the history of a claim.

    Attributes:
        text: the line, which begins with its date.
        knew: what was known when the claim was written or changed; nothing is counted by words of
            the text.
    """

    text: str
    knew: Knew = "unrecorded"


@dataclass(frozen=True)
class Claim:
    """A comparison: what it says, and the statistic that judges it.

    Attributes:
        id: the id, unique in its figure.
        sentence: what it says, in our words.
        measure: a description of the statistic.
        statistic: the function from results and the arguments `of` to float64[1 + B], or to bounds
            on it. The first value is that of all runs, the others are those of bootstrap samples.
            It also gets the results of `needs`.
        least: the lower end of the range.
        most: the upper end of the range.
        needs: other figures whose results the statistic needs.
        protocols: the protocols under which the claim can be judged.
        because: the reason why it fails, if known.
        why: the reason for the range.
        history: when it was written and changed, and what was known by then.
        not_counted: the reason why it counts for nothing: it cannot fail, or repeats another claim.
        place: the place of the publication that says it, if the figure does not tell.
        of: the arguments of the statistic: methods, pair, gap.
        family: the id of its family, in which `{name}` stands for what differs.
        names: the names of its family, each with the value that its id has.

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
    of: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def knew(self) -> Knew:
        """The most that was known when it was written or changed.

        Example:
            >>> from gvf_lab.paper import get
            >>> get("four-rooms-learning-curves").claims[0].knew
            'results'
        """
        known = {entry.knew for entry in self.history}
        return "results" if "results" in known else "audit" if "audit" in known else "unrecorded"

    def value(self, results: Results, *others: Results) -> Array | Bounds:
        """Return the statistic of some results and of those of `needs`."""
        return self.statistic(results, *others, **self.of)


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
    estimate = interval(claim.value, [results, *more], *ends)
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


def interval(
    statistic: Callable[..., Array | Bounds], results: Sequence[Results], *marks: float
) -> Estimate:
    """Compute a statistic of results and both ends of its interval.

    A statistic that has only bounds has a value where these lie on one side of every mark. A
    bootstrap sample without a value may lie on either side of the interval. The ends are nan if
    there are too few runs, or too many such samples, or if the statistic itself has no value.

    Example:
        >>> from gvf_lab.figure.claim import interval
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


@dataclass(frozen=True)
class Sentence:
    """A sentence about experiments.

    Attributes:
        id: the id, unique in its paper.
        place: the place in the paper.
        says: the sentence in our words.
        claims: the claims that judge it, as "figure/claim".
        theory: the names of theoretical results that judge it.
        refuted: the reason why arithmetic refutes it.
        contradicted: how the authors' code or published curves differ from it, for a sentence on
            the protocol of experiments.
        excuse: the reason why it cannot be tested.
        repeats: the id of the sentence that it repeats; repetitions are not counted.
        ours: True if it is not in the paper but was added by us; it is not counted.
        some: True if it says "can", "could", "potentially" or "in some settings": it holds if one
            of its claims does.
        headline: True if it belongs in a summary of the paper.
        remark: the place where it turns around, and the reason, if known.
        first: its verdict when claims first judged it by results at the paper's scale. If it has
            another one now, the claims were changed when results were known.

    Example:
        >>> from gvf_lab.figure.claim import Sentence
        >>> Sentence("fast", "Section 1", "IR learns fast.", claims=("speed/ir-fast",)).counts
        True
    """

    id: str
    place: str
    says: str
    claims: tuple[str, ...] = ()
    theory: tuple[str, ...] = ()
    refuted: str = ""
    contradicted: str = ""
    excuse: str = ""
    repeats: str = ""
    ours: bool = False
    some: bool = False
    headline: bool = False
    remark: str = ""
    first: str = ""

    def __post_init__(self) -> None:
        judged = self.claims or self.theory or self.refuted or self.contradicted
        if not (judged or self.excuse or self.repeats):
            raise ValueError(
                f"{self.id}: needs claims, theory, a refutation, a contradiction, an excuse or "
                "what it repeats"
            )
        for claim in self.claims:
            if "/" not in claim:
                raise ValueError(f"{self.id}: claims are named figure/claim, got {claim!r}")

    @property
    def counts(self) -> bool:
        """True if it is a sentence of the paper that is judged, and repeats no other."""
        return bool(self.claims) and not self.repeats and not self.ours

    @cached_property
    def figures(self) -> frozenset[str]:
        """The figures whose claims judge it."""
        return frozenset(claim.partition("/")[0] for claim in self.claims)

    def judged_by(self, figure: str, claim: str) -> bool:
        """Return True if a claim of a figure judges it.

        Example:
            >>> from gvf_lab.figure.claim import Sentence
            >>> sentence = Sentence("fast", "Section 1", "IR is fast.", claims=("speed/ir-fast",))
            >>> sentence.judged_by("speed", "ir-fast"), sentence.judged_by("speed", "is")
            (True, False)
        """
        return f"{figure}/{claim}" in self._claims

    @cached_property
    def _claims(self) -> frozenset[str]:
        return frozenset(self.claims)


def weigh(verdicts: Iterable[Verdict], some: bool = False) -> str:
    """Return the verdict on a sentence from the verdicts on its claims.

    With `some`, one claim that holds is enough.

    Example:
        >>> from gvf_lab.figure.claim import weigh
        >>> weigh([])
        'undecided'
    """
    outcomes = [verdict.verdict for verdict in verdicts if not verdict.given]
    if outcomes and (
        all(outcome == "holds" for outcome in outcomes) or (some and "holds" in outcomes)
    ):
        return "holds"
    if "fails" in outcomes:
        return "in part" if "holds" in outcomes else "fails"
    return "undecided"
