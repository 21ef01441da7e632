"""Findings: what is wrong with data, or speaks for a correction, as codes with fields.

A :class:`Finding` has a code, which decides, and fields, which are numbers. Words are made only
where they are shown, by :func:`sentence`. All sentences stand in :data:`SENTENCES`; changing one
changes nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from gvf.estimate import percent

Severity = Literal["note", "warning", "stops"]
"""The weight of a finding: a remark, a reason for care, or a reason why nothing can be told."""


class Code(StrEnum):
    """The kinds of findings.

    Example:
        >>> from gvf.findings import Code
        >>> Code("heavy tail")
        <Code.HEAVY_TAIL: 'heavy tail'>
    """

    NO_MASS = "no mass"
    """All ratios are 0."""
    MEAN_RATIO = "mean ratio"
    """The mean ratio is far from 1."""
    HEAVY_TAIL = "heavy tail"
    """Averages rest on the few largest ratios."""
    SMALL_SAMPLE = "small sample"
    """The effective sample size is small."""
    SMALL_EMPHATIC_SAMPLE = "small emphatic sample"
    """The effective sample size of ratio times trace is small."""
    EMPTY_BATCHES = "empty batches"
    """Many uniform mini-batches have ratios of 0 only."""
    OUTSIDE_BOUNDS = "outside bounds"
    """States are often outside the bounds of the features."""

    UNTRIED_ACTIONS = "untried actions"
    """The log never has an action of the target."""
    HARDLY_TAKEN = "hardly taken"
    """The behaviour hardly takes many of the target's actions."""
    MASS_MISSING = "mass missing"
    """The mean ratio is below 1, over episodes."""
    MASS_ABOVE = "mass above"
    """The mean ratio is above 1, over episodes."""
    EXTRAPOLATED = "extrapolated"
    """A large ratio rests on an estimated probability that the log cannot tell."""

    NOT_CROSS_FITTED = "not cross-fitted"
    """A model of the behaviour is judged on rows that it has seen."""
    ROUGH_INTERVALS = "rough intervals"
    """The episodes are few for intervals of an estimated behaviour."""
    MISSING_ROWS = "missing rows"
    """Rows have a NaN in the state or the action."""
    EQUAL_STATES = "equal states"
    """All states are the same."""
    ACTIONS_NEVER_TAKEN = "actions never taken"
    """The log never has some actions, of whichever target."""
    MISCALIBRATED = "miscalibrated"
    """The calibration error of an estimate is larger than chance explains."""
    TOO_RICH = "too rich"
    """The same probabilities in every state would do better than a model."""

    FEW_EPISODES = "few episodes"
    """There are too few held-out episodes."""
    FEW_OF_TARGET = "few of the target"
    """The held-out episodes are worth too few of the target."""
    UNEVEN_EPISODES = "uneven episodes"
    """Few held-out episodes have most of the weight."""
    BEYOND_ENDS = "beyond ends"
    """Most of the values lies beyond the ends of cut episodes."""
    OVERFLOW = "overflow"
    """Products of ratios overflow."""
    LARGE_RETURNS = "large returns"
    """Products of ratios make returns beyond all reason."""
    FEW_EVENTS = "few events"
    """The log has too few events for intervals."""
    ACTIONS_MISSING = "actions missing"
    """The log lacks so many of the target's actions that it cannot tell of the target."""

    EQUAL_RATIOS = "equal ratios"
    """A reason for IS: all ratios are the same."""
    SHORT_UPDATES = "short updates"
    """A reason for IS: updates are short where ratios are large."""
    MILD_RATIOS = "mild ratios"
    """A reason for IS: it has no bias, and ratios hardly vary."""
    NOTHING_VARIES = "nothing varies"
    """A reason for IR: no update varies, so nothing tells corrections apart."""
    INFINITE_VARIANCE = "infinite variance"
    """A reason for IR: the variance of IS overflows."""
    UNTRUSTED_MEAN = "untrusted mean"
    """A reason for IR: it needs no mean ratio, which cannot be trusted."""
    SMALL_BIAS = "small bias"
    """A reason for IR: less variance, and a bias that does not matter."""
    LASTING_BIAS = "lasting bias"
    """A reason for BC-IR: less variance, and the bias of IR matters."""


@dataclass(frozen=True)
class Finding:
    """A finding; its code and fields decide, and :func:`sentence` makes words.

    Attributes:
        code: the kind of finding.
        severity: "note", "warning", or "stops" for a reason why nothing can be told.
        fields: the numbers and names that the sentence has.

    Example:
        >>> from gvf.findings import Code, Finding, sentence
        >>> finding = Finding(Code.FEW_EPISODES, "stops", {"episodes": 4})
        >>> finding.code is Code.FEW_EPISODES, sentence(finding)
        (True, 'there are only 4 held-out episodes')
    """

    code: Code
    severity: Severity
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)


class Subject(NamedTuple):
    """The thing that sentences are about.

    Attributes:
        window: "window" for the window of a learner, "log" for a whole log.
        estimated: True if the behaviour is estimated.
    """

    window: Literal["window", "log"] = "window"
    estimated: bool = False

    @property
    def closer(self) -> str:
        """The advice for ratios that vary too much."""
        if self.estimated:
            return "estimate the behaviour by a simpler model"
        verb = "record" if self.window == "log" else "choose"
        return f"{verb} a behaviour closer to the target"

    @property
    def source(self) -> str:
        """The origin of the behaviour's probabilities."""
        return (
            "the estimate of the behaviour" if self.estimated else "the behaviour's probabilities"
        )

    @property
    def enlarge(self) -> str:
        """The advice for too few rows."""
        return "record more" if self.window == "log" else "enlarge the window"


def sentence(
    finding: Finding, window: Literal["window", "log"] = "window", estimated: bool = False
) -> str:
    """Return a finding in words.

    Args:
        finding: the finding.
        window: "window" for the window of a learner, "log" for a whole log.
        estimated: True if the behaviour is estimated.

    Example:
        >>> from gvf.findings import Code, Finding, sentence
        >>> finding = Finding(Code.HEAVY_TAIL, "warning", {"k_hat": 0.92, "limit": 0.7})
        >>> sentence(finding, "log").partition("; ")[2]
        'record a behaviour closer to the target.'
    """
    return SENTENCES[finding.code](finding.fields, Subject(window, estimated))


Fields = Mapping[str, Any]


def _mean_ratio(f: Fields, subject: Subject) -> str:
    errors = f["errors"]
    far = f"{errors:.0f} standard errors from 1" if errors < math.inf else "not 1"
    are = "is" if subject.estimated else "are"
    cause = (
        f"check {subject.source}"
        if f["tail_is_known"]
        else f"{subject.source} {are} wrong, or the {subject.window} misses rare large ratios"
    )
    return f"The mean ratio is {f['mean']:.3g}, {far}: {cause}."


def _heavy_tail(f: Fields, subject: Subject) -> str:
    return (
        f"The ratios have a heavy tail, k-hat {f['k_hat']:.2f} > {f['limit']:.2f}: these numbers "
        f"rest on a few transitions and the next one may change them; {subject.closer}."
    )


def _small_sample(f: Fields, subject: Subject) -> str:
    return (
        f"The {subject.window} is worth {f['size']:.3g} transitions from the target, and one of "
        f"them holds {percent(f['largest_share'])} of the mass: {subject.enlarge}, or "
        f"{subject.closer}."
    )


def _small_emphatic_sample(f: Fields, subject: Subject) -> str:
    return (
        f"Weighted by rho F, the {subject.window} is worth {f['size']:.3g} transitions: "
        f"{subject.enlarge}. With an emphatic correction a smaller beta helps, too."
    )


def _untried(f: Fields, _: Subject) -> str:
    return (
        f"The log never has the action{_actions(f['actions'])}, to which the target gives "
        f"{percent(f['share'])}: nothing in the log tells what would follow."
    )


def _extrapolated(f: Fields, _: Subject) -> str:
    return (
        f"The largest ratio, {f['ratio']:.3g}, has {percent(f['share'])} of the sum, and rests on "
        f"an ESTIMATED probability of {f['probability']:.2g}. {f['rows']:,} rows cannot tell so "
        "small a probability: estimate it by a simpler model, from more rows, or leave out such "
        "ratios."
    )


def _mass_missing(f: Fields, subject: Subject) -> str:
    wrong = "its estimate is wrong" if subject.estimated else "its probabilities are wrong"
    return (
        f"The mean ratio is below 1: about {percent(1 - f['mean'])} of the target's mass is where "
        f"the behaviour never goes, or {wrong}."
    )


def _mass_above(_: Fields, subject: Subject) -> str:
    are = "is" if subject.estimated else "are"
    return f"The mean ratio is above 1: {subject.source} {are} wrong."


def _miscalibrated(_: Fields, subject: Subject) -> str:
    where = "its reliability" if subject.window == "log" else ".reliability()"
    return (
        f"The calibration error is larger than chance explains: look at {where}, and try another "
        "model or features."
    )


def _actions(actions: Any) -> str:
    """Return actions as text, with a plural before them: "s 1, 2"."""
    more = ", ..." if len(actions) > 5 else ""
    return f"{'s' * (len(actions) > 1)} {', '.join(map(str, actions[:5]))}{more}"


def _gain(f: Fields) -> str:
    """Return the comparison of a correction's variance with that of IS."""
    unrelated = f"{_times(f['unrelated'])} less where ratios say nothing of updates, as early in"
    match f["variance"]:
        case "less":
            return f"has {_times(f['gain'])} less variance than IS at the present weights"
        case "equal":
            return f"has the variance of IS at the present weights, and {unrelated} learning"
        case _:
            more = f"has {_times(f['loss'])} the variance of IS at the present weights"
            return f"{more}, but {unrelated} learning"


def _untrusted_mean(f: Fields, _: Subject) -> str:
    return (
        f"IR {_gain(f)}; no ratio multiplies an update, nor does their mean, which cannot be "
        "trusted here."
    )


def _small_bias(f: Fields, _: Subject) -> str:
    windows = f["windows"]
    lasts = f"outweighs chance only after {_about(windows)} windows"
    return f"IR {_gain(f)}; its bias {lasts if windows < 1e6 else 'is small'}."


def _lasting_bias(f: Fields, _: Subject) -> str:
    return (
        f"BC-IR {_gain(f)}; it has no bias, and that of IR would outweigh chance after "
        f"{_about(f['windows'])} windows."
    )


def _times(factor: float) -> str:
    return "infinitely" if math.isinf(factor) else f"{_about(factor)} times"


def _about(number: float) -> str:
    """Format a number with two digits: 1.4, 37, 5,200."""
    return f"{number:.2g}" if number < 10 else f"{float(f'{number:.2g}'):,.0f}"


def _text(template: str) -> Callable[[Fields, Subject], str]:
    """Return a sentence that is the same for all subjects."""
    return lambda f, _: template.format_map(f)


SENTENCES: dict[Code, Callable[[Fields, Subject], str]] = {
    Code.NO_MASS: lambda f, subject: (
        f"All {f['window']} ratios are 0: the behaviour took no action of the target, so nothing "
        f"in the {subject.window} tells of it."
    ),
    Code.MEAN_RATIO: _mean_ratio,
    Code.HEAVY_TAIL: _heavy_tail,
    Code.SMALL_SAMPLE: _small_sample,
    Code.SMALL_EMPHATIC_SAMPLE: _small_emphatic_sample,
    Code.EMPTY_BATCHES: lambda f, _: (
        f"{percent(f['share'], '.0f')} of uniform mini-batches hold zero ratios only, and teach "
        "nothing: resample, or draw more at a time."
    ),
    Code.OUTSIDE_BOUNDS: lambda f, _: (
        f"{percent(f['share'], '.0f')} of the states are outside the bounds of the features, and "
        "count as the nearest states inside: give wider bounds"
    ),
    Code.UNTRIED_ACTIONS: _untried,
    Code.HARDLY_TAKEN: lambda f, _: (
        f"{percent(min(f['share'], 1.0))} of the target's actions are such that the behaviour "
        "hardly takes them: values that depend on them rest on few rows."
    ),
    Code.MASS_MISSING: _mass_missing,
    Code.MASS_ABOVE: _mass_above,
    Code.EXTRAPOLATED: _extrapolated,
    Code.NOT_CROSS_FITTED: _text(
        "Not cross-fitted: the model is judged on rows that it has seen, so its scores are too "
        "good."
    ),
    Code.ROUGH_INTERVALS: _text("Only {episodes} episodes: intervals over episodes are rough."),
    Code.MISSING_ROWS: _text(
        "{rows} rows have a NaN in the state or the action: their probability is NaN."
    ),
    Code.EQUAL_STATES: _text("All states are the same, so the estimate is the same everywhere."),
    Code.ACTIONS_NEVER_TAKEN: lambda f, _: (
        f"The log never has the action{_actions(f['actions'])}: it cannot tell of targets that "
        "take it."
    ),
    Code.MISCALIBRATED: _miscalibrated,
    Code.TOO_RICH: _text(
        "The same probabilities in every state would do better: the model is too rich for this log."
    ),
    Code.FEW_EPISODES: _text("there are only {episodes} held-out episodes"),
    Code.FEW_OF_TARGET: _text(
        "the {episodes:,} held-out episodes are worth only {size:.2g} of the target"
    ),
    Code.UNEVEN_EPISODES: _text("few episodes have most of the weight (k-hat {k_hat:.2g})"),
    Code.BEYOND_ENDS: lambda f, _: (
        f"{percent(f['share'], '.0f')} of the values lie beyond the ends of cut episodes"
    ),
    Code.OVERFLOW: _text("products of ratios overflow"),
    Code.LARGE_RETURNS: _text("products of ratios make returns of {largest:.2g}"),
    Code.FEW_EVENTS: _text("there are only {events}"),
    Code.ACTIONS_MISSING: lambda f, _: (
        f"the log never has {percent(f['share'], '.0f')} of the target's actions"
    ),
    Code.EQUAL_RATIOS: _text(
        "All ratios are the same, so there is nothing that resampling could gain."
    ),
    Code.SHORT_UPDATES: lambda f, _: (
        f"IS has {_times(f['loss'])} less variance than resampling at the present weights, since "
        "the larger a ratio is, the shorter is the update."
    ),
    Code.MILD_RATIOS: _text(
        "IS has no bias, and with ratios as mild as these little variance to lose."
    ),
    Code.NOTHING_VARIES: _text(
        "No update varies on this window, so nothing tells the corrections apart: diagnose again "
        "after some learning."
    ),
    Code.INFINITE_VARIANCE: _text(
        "The ratios are so large that the variance of IS overflows; no ratio multiplies an update "
        "of IR."
    ),
    Code.UNTRUSTED_MEAN: _untrusted_mean,
    Code.SMALL_BIAS: _small_bias,
    Code.LASTING_BIAS: _lasting_bias,
}
"""The sentence of each code, a function of the fields and of the subject."""
