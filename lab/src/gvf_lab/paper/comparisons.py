"""Comparisons that several figures of the paper make, as claims.

Each function makes a claim about two methods in one setting: a pair of policies, a number of steps
between updates, or both. A setting of None is the only one that the study has. The texts below say
why a range was chosen, and when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from gvf_lab.figure.claim import Claim
from gvf_lab.figure.figure import Figure
from gvf_lab.figure.history import HistoryEntry, after_audit, knowing_results
from gvf_lab.figure.statistics import (
    Bounds,
    Statistic,
    accurate_range,
    error_ratio,
    largest_stable_step,
    named,
    usable_range,
)
from gvf_lab.study.results import Pair, Results

TIE = "1 is a tie. The sentence names no amount, so any difference to the right side supports it."
NO_GROWTH = "0 is equal growth. The sentence names no amount."
GRID = (
    "An end that lies beyond the grid of step sizes, or in a gap of it wider than a factor of 2.5, "
    "has bounds only. The ratio is then a bound too, or has no value if it may lie on either side."
)
"""The reason why a ratio of step sizes may be a bound, or have no value."""
STEPS_TIE = f"{TIE} {GRID}"
PASSES = "step size at which the error passes 1 (a run's error counts as at most 2)"
"""The measure of the step sizes that a method bears."""
CAPPED = "a run's error counts as at most twice the limit"
NOTICED = 1.1
"""The factor up to which two errors are alike or slightly different, and above it noticeably."""
AS_STARK = 0.9
"""The share of a factor from which a difference is as stark; below it it is narrower."""
TENTH = "The sentence calls two methods alike and names no amount. We take a factor of at most 1.1."
SLIGHTLY = "The sentence says slightly. We take more than a tie, and a factor of at most 1.1."
QUARTER = "The sentence names no amount. We take a factor of at most 1.25."
NOTICEABLE = "The sentence says noticeable and names no amount. We take a tenth and more."
JUST_AS_STARK = (
    "The sentence says just as stark. We take nine tenths of the factor and more; less is narrower."
)
NARROWER = (
    "The sentence says that a difference is less. We take less than nine tenths of the factor; "
    "more is as stark."
)
OTHER_UNITS = (
    "A clip makes all large updates smaller by a factor, so step sizes of V-trace are in other "
    "units: with the target down and the uniform behaviour V-trace(1.0) with step size 4 x is IS "
    "with step size x. Ratios of step sizes do not depend on units, and are compared instead."
)
"""The reason why the step sizes that V-trace and another method bear are not compared."""
SIGNIFICANT = (
    "The sentence says significantly. We take this as: the interval excludes a tie, by any amount."
)
WRITTEN = HistoryEntry(
    "2026-11-15: written. No record tells whether results had been seen by then."
)
RANGES_WRITTEN = (
    WRITTEN,
    knowing_results(
        "2026-11-16: ranges end between the step sizes of a grid, and a diverged run counts as "
        "twice the limit. Before, they ended on the grid, and one diverged run ended them. This "
        "was chosen so that intervals cover, when results were known. In Four Rooms, verdicts "
        "changed."
    ),
)
AUDITED = after_audit(
    "2026-11-16: written after small runs in an audit, which showed on which side of their ranges "
    "some of these statistics lie."
)
ADDED = knowing_results(
    "2026-11-16: written when results were known, to close a gap that an audit found."
)

SLUGS = {
    "IR": "ir", "BC-IR": "bc-ir", "IS": "is", "WIS-Minibatch": "wis-minibatch",
    "WIS-Buffer": "wis-buffer",
    "V-trace(1.0)": "v-trace-1", "V-trace(0.5 max)": "v-trace-0.5-max",
    "V-trace(0.9 max)": "v-trace-0.9-max", "Sarsa": "sarsa", "WIS-TD(0)": "wis-td",
    "Expected Sarsa": "expected-sarsa", "WIS-Optimal": "wis-optimal", "On-policy": "on-policy",
    "IR+WIS-TD(0)": "ir-wis-td",
}  # fmt: skip
"""The names of methods in the ids of claims."""
BUFFER_IS_IS = "WIS-Buffer is IS up to the window's mean ratio, which is 1 within a few per cent."
"""The reason why a comparison with WIS-Buffer repeats the one with IS."""
SARSA_IS_VTRACE = "With a deterministic target Sarsa is V-trace(1.0), number for number."
"""The reason why a comparison with Sarsa in Four Rooms repeats the one with V-trace(1.0)."""


Revision = tuple[str, Mapping[str, Sequence[str]]]
"""A change of claims, and their ids by the verdicts before; an id may be a pattern with "*"."""


def revise(figure: Figure, *revisions: Revision) -> Figure:
    """Add entries to the histories of a figure's claims: a change, and the verdict before."""

    def history(claim: Claim) -> tuple[HistoryEntry, ...]:
        return (
            *claim.history,
            *(
                knowing_results(f"2026-11-16: {what}. Results were known. Before: {verdict}.")
                for what, before in revisions
                for verdict, ids in before.items()
                if any(fnmatchcase(claim.id, id) for id in ids)
            ),
        )

    claims = tuple(replace(claim, history=history(claim)) for claim in figure.claims)
    return replace(figure, claims=claims)


ENDS = (
    "a best step size at an end of the grid gives a bound on the error; the error found there "
    "counted as the best one"
)
UNITS = "does not count any more, since it compares step sizes in two units"
REPLACED = "does not count any more, since another comparison replaces it"
GAINS = knowing_results(
    "2026-11-16: a step size must have at least half of the best one's gain over not learning. "
    "Results were known."
)


def grid_ends(before: str = "No verdict changed.") -> HistoryEntry:
    """Return the entry of a history that says how ends outside the grid are treated."""
    return knowing_results(
        "2026-11-16: ends that the grid does not resolve have bounds. Before, the end of the grid, "
        "or a line across a wide gap, stood for them. This was changed when results were known. "
        f"{before}"
    )


def uncapped(text: str) -> str:
    """Return the remark that a claim would be judged otherwise if no run's error were bounded."""
    return f" With plain averages, in which single runs with huge errors decide, {text}."


def _setting(pair: Pair | None, at: str) -> tuple[str, str]:
    """Return the end of an id and of a sentence that name a setting."""
    policies = "" if pair is None else "/".join(dict.fromkeys(pair))
    words = [word for word in (policies, at) if word]
    slug = "".join(f"-{word}" for word in words)
    slug = slug.replace("/", "-").replace(" ", "-").replace(",", "")
    return slug, f" ({', '.join(words)})" if words else ""


def compared(
    id: str,
    says: str,
    first: str,
    second: str,
    pair: Pair | None = None,
    gap: int | None = None,
    *,
    at: str = "",
    history: tuple[HistoryEntry, ...] = (AUDITED,),
    **more: Any,
) -> Claim:
    """Make a claim about the best error of one method over that of another.

    Args:
        id: the beginning of the id.
        says: the beginning of the sentence.
        first: the method whose error is divided.
        second: the method by whose error it is divided.
        pair: the pair of policies.
        gap: the number of steps between updates.
        at: words for the gap.
        history: the claim's history.
        **more: other fields of the claim, such as its range.
    """
    slug, setting = _setting(pair, at)
    return Claim(
        f"{id}{slug}",
        f"{says}{setting}.",
        f"error of {first} over that of {second}, averaged over the run, best step sizes",
        error_ratio(first, second, pair, gap),
        history=history,
        **more,
    )


def lower_error(
    other: str,
    pair: Pair | None = None,
    gap: int | None = None,
    *,
    at: str = "",
    history: tuple[HistoryEntry, ...] = (AUDITED,),
    **more: Any,
) -> Claim:
    """Make the claim that IR's best error is lower than that of another method."""
    return compared(
        f"ir-lower-error-than-{SLUGS[other]}",
        f"IR's error is lower than that of {other}",
        other,
        "IR",
        pair,
        gap,
        at=at,
        history=history,
        **({"least": 1.0, "why": TIE} | more),
    )


def _over_ir(
    id: str,
    says: str,
    measure: str,
    statistic: Statistic,
    other: str,
    pair: Pair | None,
    more: dict[str, Any],
) -> Claim:
    """Make the claim that a statistic of IR is larger than that of another method."""
    slug, setting = _setting(pair, "")
    return Claim(
        f"{id}-than-{SLUGS[other]}{slug}",
        f"{says} than {other}{setting}.",
        f"{measure}, IR's over that of {other}",
        statistic,
        **({"least": 1.0, "why": STEPS_TIE, "history": (AUDITED, grid_ends())} | more),
    )


def bears_more(first: str, second: str, pair: Pair | None = None) -> Statistic:
    """Make the statistic: the step size that one method bears over that of another."""
    return lambda results: (
        largest_stable_step(results, first, pair) / largest_stable_step(results, second, pair)
    )


USABLE = (
    "ratio of the largest to the smallest step size within twice the method's best error and with "
    f"at least half of its gain over not learning ({CAPPED})"
)
"""The measure of usable step sizes."""


def wider(first: str, second: str, pair: Pair | None = None) -> Statistic:
    """Make the statistic: the usable range of one method over that of another."""
    return lambda results: (
        usable_range(results, named(results, first), pair)
        / usable_range(results, named(results, second), pair)
    )


def larger_steps(other: str, pair: Pair | None = None, **more: Any) -> Claim:
    """Make the claim that IR bears larger step sizes than another method."""
    if other.startswith("V-trace"):
        more = more | {"not_counted": OTHER_UNITS}
    return _over_ir(
        "ir-bears-larger-steps",
        "IR bears larger step sizes",
        PASSES,
        bears_more("IR", other, pair),
        other,
        pair,
        more,
    )


def _gains(more: dict[str, Any]) -> dict[str, Any]:
    """Add to the history of a claim about ranges what a step size must gain."""
    history = more.get("history", (AUDITED, grid_ends()))
    return more if history == (ADDED,) else more | {"history": (*history, GAINS)}


def wider_range(other: str, pair: Pair | None = None, **more: Any) -> Claim:
    """Make the claim that IR has the wider range of usable step sizes."""
    more = _gains(more)
    return _over_ir(
        "ir-wider",
        "IR has a wider range of usable step sizes",
        USABLE,
        wider("IR", other, pair),
        other,
        pair,
        more,
    )


def accurate_over_wider_range(other: str, pair: Pair | None = None, **more: Any) -> Claim:
    """Make the claim that IR is accurate over a wider range of step sizes."""

    def statistic(results: Results) -> Bounds:
        other_name = named(results, other)
        return accurate_range(results, "IR", other_name, pair) / accurate_range(
            results, other_name, "IR", pair
        )

    why = (
        f"{STEPS_TIE} Unlike the range within twice the method's own best error, this one is not "
        "wide for a method that is inaccurate at every step size."
    )
    return _over_ir(
        "ir-accurate-over-wider-range",
        "IR is accurate over a wider range of step sizes",
        "ratio of the largest to the smallest step size within twice the best error of the two and "
        f"with at least half of its gain over not learning ({CAPPED})",
        statistic,
        other,
        pair,
        {"why": why} | _gains(more),
    )
