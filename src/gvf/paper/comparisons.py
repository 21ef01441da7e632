"""Comparisons that several figures of the paper make, as claims.

Each function makes a claim about two methods in one setting: a pair of policies, a number of steps
between updates, or both. A setting of None is the only one that the study has. The texts below say
why a range was chosen, and when.
"""

from __future__ import annotations

from typing import Any

from gvf.common.arrays import Array
from gvf.figure.claim import Claim
from gvf.figure.statistics import Statistic, accurate_range, named, reach, usable_range
from gvf.study.results import Pair, Results

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
TENTH = "The sentence calls two methods alike and names no amount. We take a factor of at most 1.1."
QUARTER = "The sentence names no amount. We take a factor of at most 1.25."
NOTICEABLE = "The sentence says noticeable and names no amount. We take a tenth and more."
NOTICED = 1.1
"""The factor from which a difference counts as noticeable."""
SIGNIFICANT = (
    "The sentence says significantly. We take this as: the interval excludes a tie, by any amount."
)
WRITTEN = "2026-11-15: written. No record tells whether results had been seen by then."
RANGES_WRITTEN = (
    WRITTEN,
    "2026-11-16: ranges end between the step sizes of a grid, and a diverged run counts as twice "
    "the limit. Before, they ended on the grid, and one diverged run ended them. This was chosen "
    "so that intervals cover, when results were known. In Four Rooms, verdicts changed.",
)
AUDITED = (
    "2026-11-16: written after small runs in an audit, which showed on which side of their ranges "
    "some of these statistics lie."
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


def grid_ends(before: str = "No verdict changed.") -> str:
    """Return the entry of a history that says how ends outside the grid are treated."""
    return (
        "2026-11-16: ends that the grid does not resolve have bounds. Before, the end of the grid, "
        "or a line across a wide gap, stood for them. This was changed when results were known. "
        f"{before}"
    )


def uncapped(told: str) -> str:
    """Return the remark that a claim would be judged otherwise if no run's error were bounded."""
    return f" With plain averages, in which single runs with huge errors decide, {told}."


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
    history: tuple[str, ...] = (AUDITED,),
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
        lambda results: (
            results.best(named(results, first), gap, pair)
            / results.best(named(results, second), gap, pair)
        ),
        history=history,
        **more,
    )


def lower_error(
    other: str,
    pair: Pair | None = None,
    gap: int | None = None,
    *,
    at: str = "",
    history: tuple[str, ...] = (AUDITED,),
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


def bears_more(first: str, second: str, pair: Pair | None = None, *marks: float) -> Statistic:
    """Make the statistic: the step size that one method bears over that of another.

    `marks` are the ends of the claim's range; by default 1.
    """
    return lambda results: (reach(results, first, pair) / reach(results, second, pair)).against(
        *(marks or (1.0,))
    )


def larger_steps(other: str, pair: Pair | None = None, **more: Any) -> Claim:
    """Make the claim that IR bears larger step sizes than another method."""
    return _over_ir(
        "ir-bears-larger-steps",
        "IR bears larger step sizes",
        PASSES,
        bears_more("IR", other, pair),
        other,
        pair,
        more,
    )


def wider_range(other: str, pair: Pair | None = None, **more: Any) -> Claim:
    """Make the claim that IR has the wider range of usable step sizes."""
    return _over_ir(
        "ir-wider",
        "IR has a wider range of usable step sizes",
        "ratio of the largest to the smallest step size within twice the method's best error "
        f"({CAPPED})",
        lambda results: (
            usable_range(results, "IR", pair) / usable_range(results, named(results, other), pair)
        ).against(1.0),
        other,
        pair,
        more,
    )


def accurate_over_wider_range(other: str, pair: Pair | None = None, **more: Any) -> Claim:
    """Make the claim that IR is accurate over a wider range of step sizes."""

    def statistic(results: Results) -> Array:
        there = named(results, other)
        ours, theirs = (
            accurate_range(results, *two, pair) for two in (("IR", there), (there, "IR"))
        )
        return (ours / theirs).against(1.0)

    why = (
        f"{STEPS_TIE} Unlike the range within twice the method's own best error, this one is not "
        "wide for a method that is inaccurate at every step size."
    )
    return _over_ir(
        "ir-accurate-over-wider-range",
        "IR is accurate over a wider range of step sizes",
        "ratio of the largest to the smallest step size within twice the best error of the two "
        f"({CAPPED})",
        statistic,
        other,
        pair,
        {"why": why} | more,
    )
