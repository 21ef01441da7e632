"""The numbers of the page in words: claims with their verdicts, and the matches of curves.

The functions turn verdicts and matches into plain data, with a group for each figure; the templates
lay them out. A verdict is shown by a sign and a word, not by colour alone. What was made here and
what was shipped stand side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gvf.figure.claim import Verdict
from gvf.figure.figure import Figure
from gvf.figure.published import Match
from gvf.report.exhibit import Exhibit


class Badge(NamedTuple):
    """Words on a coloured background.

    Attributes:
        kind: the class in ``page.css``: "good", "bad", "open" or "quick".
        text: the words.
    """

    kind: str
    text: str


BOUNDS = {"": "", ">=": "≥ ", "<=": "≤ "}
"""The words before a statistic that is only a bound."""
MOST_DIGITS = 6
"""The most digits of a number in the tables."""
SIGNS = {
    "holds": Badge("good", "✓ holds"),
    "fails": Badge("bad", "✗ fails"),
    "undecided": Badge("open", "? undecided"),
    "not judged": Badge("open", "– not judged"),
}
"""The badge of each verdict."""


def claims(shown: Iterable[Exhibit]) -> list[dict[str, Any]]:
    """Return the claims of every figure that has some, each with its verdicts in words."""
    return [
        {"figure": one.figure, "claims": [_claim(one, told) for told in by_claim(one)]}
        for one in shown
        if by_claim(one)
    ]


def versions(one: Exhibit) -> dict[str, Exhibit]:
    """Return a figure as it was made here and as it was shipped, as far as there is either."""
    here = None if one.shipped or not one.made else one
    there = one if one.shipped else one.beside
    both = {"now": here, "shipped": there}
    return {origin: version for origin, version in both.items() if version is not None}


Told = dict[str, dict[str, Verdict]]
"""The verdicts on a claim, by protocol and by origin: "now" or "shipped"."""


def by_claim(one: Exhibit) -> list[Told]:
    """Group a figure's verdicts by claim; those that both protocols share appear once."""
    grouped: dict[str, Told] = {}
    for origin, version in versions(one).items():
        for verdict in version.verdicts:
            if version.once and verdict.protocol == "authors":
                continue
            told = grouped.setdefault(verdict.id, {})
            told.setdefault(verdict.protocol, {})[origin] = verdict
    return list(grouped.values())


def first(told: Told) -> Verdict:
    """Return one of the verdicts on a claim: of those made here, if there are any."""
    every = [by_origin for by_origin in told.values() if "now" in by_origin] or [*told.values()]
    return next(iter(every[0].values()))


def place(figure: Figure, verdict: Verdict) -> str:
    """Return the id of a claim's row on the page."""
    return f"claim.{figure.id}.{verdict.id}"


def _claim(one: Exhibit, told: Told) -> dict[str, Any]:
    verdict = first(told)
    every = [verdict for by_origin in told.values() for verdict in by_origin.values()]
    return {
        "place": place(one.figure, verdict),
        "sentence": verdict.sentence,
        "measure": verdict.measure,
        "published": verdict.place,
        "remarks": list(dict.fromkeys(each.remark for each in every if each.remark)),
        "why": verdict.why,
        "history": verdict.history,
        "given": verdict.given,
        "range": span(*verdict.range),
        "rows": [
            {
                "protocol": protocol,
                "seeds": agreement(seeds_of(one).get((protocol, verdict.id), {})),
                **{origin: _told(by_origin.get(origin)) for origin in ("now", "shipped")},
            }
            for protocol, by_origin in told.items()
        ],
    }


def _told(verdict: Verdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {
        "badge": SIGNS[verdict.verdict],
        "statistic": statistic(verdict),
        "runs": f"{verdict.runs} run{'s'[: verdict.runs - 1]}",
    }


def seeds_of(one: Exhibit) -> Mapping[tuple[str, str], Mapping[int, str]]:
    """Return the verdicts by seed of a figure's shipped version."""
    there = versions(one).get("shipped")
    return {} if there is None else there.seeds


def agreement(seeds: Mapping[int, str]) -> str:
    """Say how many seeds have the verdict of the first, and which others they have.

    Example:
        >>> from gvf.report.tables import agreement
        >>> agreement({0: "holds", 1: "holds", 2: "undecided"}), agreement({0: "holds"})
        ('2 of 3 seeds; seed 2: undecided', '')
    """
    if len(seeds) < 2:
        return ""
    shipped = next(iter(seeds.values()))
    others = [f"; seed {seed}: {told}" for seed, told in seeds.items() if told != shipped]
    return f"{len(seeds) - len(others)} of {len(seeds)} seeds{''.join(others)}"


def matches(shown: Iterable[Exhibit]) -> list[dict[str, Any]]:
    """Return the curves of every figure that were compared with published ones."""
    return [
        {
            "figure": one.figure,
            "curves": [
                {"origin": origin, **_match(one.figure, match)}
                for origin, version in versions(one).items()
                for match in version.matches
                if not (version.once and match.protocol == "paper")
            ],
        }
        for one in shown
        if any(version.matches for version in versions(one).values())
    ]


def must_match(figure: Figure, match: Match) -> bool:
    """Return True if our curve must match the published one.

    Example:
        >>> from gvf.figure import Match
        >>> from gvf.paper import get
        >>> from gvf.report.tables import must_match
        >>> figure = get("markov-step-size")
        >>> [must_match(figure, Match(protocol, "main", "IR", 10, 9, 2.5))
        ...  for protocol in ("paper", "authors")]
        [False, True]
    """
    return match.protocol == "authors" and any(
        published.must_match and published.panel == match.panel for published in figure.published
    )


class Curves(NamedTuple):
    """The number of published curves, and of those that ours match, under protocol "authors".

    Attributes:
        must: the number of published curves that ours must match.
        good: the number of these that ours match.
        others: the number of other published curves.
        alike: the number of these that ours match.
    """

    must: int
    good: int
    others: int
    alike: int


def published_curves(shown: Iterable[Exhibit]) -> Curves:
    """Count each published curve once, however many figures show it."""
    found: dict[tuple[str, str], tuple[bool, bool]] = {}
    for one in shown:
        for match in one.matches:
            if match.protocol == "authors":
                theirs = next(each for each in one.figure.published if each.panel == match.panel)
                must, good = found.get((theirs.file, match.series), (False, True))
                told = (must or theirs.must_match, good and match.matches)
                found[theirs.file, match.series] = told
    must, others = ([good for m, good in found.values() if m is kind] for kind in (True, False))
    return Curves(len(must), sum(must), len(others), sum(others))


def _match(figure: Figure, match: Match) -> dict[str, Any]:
    must = must_match(figure, match)
    if match.matches:
        badge = Badge("good", "✓ matches")
    else:
        badge = Badge("bad", "✗ does not match") if must else Badge("open", "≠ differs")
    several = len({published.panel for published in figure.published}) > 1
    panel = f", {figure.panels.get(match.panel, match.panel)}" if several else ""
    return {
        "name": f"{match.series}{panel}",
        "badge": badge,
        "points": match.points,
        "within": f"{match.within} ({match.share:.0%})",
        "worst": number(match.worst),
        "protocol": match.protocol,
        "expected": "must match" if must else "may differ",
    }


def number(value: float, digits: int = 3) -> str:
    """Write a number with a few digits and a true minus sign.

    Example:
        >>> from gvf.report.tables import number
        >>> number(1.23456), number(1), number(-2e-5), number(float("inf"))
        ('1.23', '1.00', '−2.00e−05', '∞')
    """
    return f"{value:#.{digits}g}".rstrip(".").replace("-", "−").replace("inf", "∞")


def span(least: float | None, most: float | None) -> str:
    """Write a range, whose ends do not belong to it; None is no bound.

    Example:
        >>> from gvf.report.tables import span
        >>> span(0.5, 2.0), span(1.0, None), span(None, 0.05)
        ('0.5 to 2', '> 1', '< 0.05')
    """
    if least is not None and most is not None:
        return f"{least:.3g} to {most:.3g}"
    if least is not None:
        return f"> {least:.3g}"
    return "any" if most is None else f"< {most:.3g}"


def statistic(verdict: Verdict) -> str:
    """Write a statistic with its interval, as far as there are any.

    It gets more than three digits if fewer would not show that its numbers differ from each other,
    or on which side of the ends of the range they lie.
    """
    numbers = (verdict.statistic, verdict.low, verdict.high)
    if verdict.verdict in ("undecided", "not judged"):
        if numbers == (None, None, None):
            return "no value"
        if numbers[1:] == (None, None):
            return f"{BOUNDS[verdict.bound]}{number(numbers[0] or 0.0)}, no interval"
    # A verdict stores infinity as None; a lower end above the value can only be minus infinity.
    value, low, high = (math.inf if one is None else one for one in numbers)
    low = -math.inf if low > value else low
    digits = _digits((value, low, high), verdict.range)
    shown = BOUNDS[verdict.bound] + number(value, digits)
    return f"{shown} [{number(low, digits)}, {number(high, digits)}]"


def _digits(numbers: Iterable[float], ends: Iterable[float | None]) -> int:
    """Return how many digits tell numbers apart, from each other and from the ends of a range."""
    apart = {one for one in (*numbers, *ends) if one is not None and math.isfinite(one)}
    tried = range(3, MOST_DIGITS)
    return next(
        (n for n in tried if len({f"{one:.{n}g}" for one in apart}) == len(apart)), MOST_DIGITS
    )
