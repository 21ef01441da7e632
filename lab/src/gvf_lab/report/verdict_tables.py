"""The numbers of the page in words: claims with their verdicts, and the matches of curves.

The functions turn verdicts and matches into plain data, with a group for each figure; the templates
lay them out. A verdict is shown by a sign and a word, not by colour alone. What was made here and
what was shipped stand side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gvf_lab.domain import Protocol
from gvf_lab.figure.claim import Verdict
from gvf_lab.figure.figure import Figure
from gvf_lab.figure.published import Match
from gvf_lab.report.exhibit import Exhibit, Version


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


def claims(exhibits: Iterable[Exhibit]) -> list[dict[str, Any]]:
    """Return the claims of every figure that has some, each with its verdicts in words."""
    return [
        {
            "figure": exhibit.figure,
            "claims": [_claim(exhibit, verdicts) for verdicts in verdicts_by_claim(exhibit)],
        }
        for exhibit in exhibits
        if verdicts_by_claim(exhibit)
    ]


ClaimVerdicts = dict[str, dict[str, Verdict]]
"""The verdicts on a claim, by protocol and by origin: "now" or "shipped"."""


def verdicts_by_claim(exhibit: Exhibit) -> list[ClaimVerdicts]:
    """Group a figure's verdicts by claim; those that both protocols share appear once."""
    grouped: dict[str, ClaimVerdicts] = {}
    for origin, version in exhibit.versions.items():
        for verdict in version.verdicts:
            if version.once and verdict.protocol == Protocol.AUTHORS:
                continue
            by_protocol = grouped.setdefault(verdict.id, {})
            by_protocol.setdefault(verdict.protocol, {})[origin] = verdict
    return list(grouped.values())


def first(verdicts: ClaimVerdicts) -> Verdict:
    """Return one of the verdicts on a claim: of those made here, if there are any."""
    every = [by_origin for by_origin in verdicts.values() if "now" in by_origin] or [
        *verdicts.values()
    ]
    return next(iter(every[0].values()))


def place(figure: Figure, verdict: Verdict) -> str:
    """Return the id of a claim's row on the page."""
    return f"claim.{figure.id}.{verdict.id}"


def _claim(exhibit: Exhibit, verdicts: ClaimVerdicts) -> dict[str, Any]:
    verdict = first(verdicts)
    seeds = exhibit.shipped.seeds if exhibit.shipped else {}
    every = [verdict for by_origin in verdicts.values() for verdict in by_origin.values()]
    return {
        "place": place(exhibit.figure, verdict),
        "sentence": verdict.sentence,
        "measure": verdict.measure,
        "published": verdict.place,
        "remarks": list(dict.fromkeys(each.remark for each in every if each.remark)),
        "why": verdict.why,
        "history": verdict.history,
        "not_counted": verdict.given,
        "range": span(*verdict.range),
        "rows": [
            {
                "protocol": protocol,
                "seeds": agreement(seeds.get((protocol, verdict.id), {})),
                **{origin: _verdict_cell(by_origin.get(origin)) for origin in ("now", "shipped")},
            }
            for protocol, by_origin in verdicts.items()
        ],
    }


def _verdict_cell(verdict: Verdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {
        "badge": SIGNS[verdict.verdict],
        "statistic": statistic(verdict),
        "runs": f"{verdict.runs} run{'s'[: verdict.runs - 1]}",
    }


def agreement(seeds: Mapping[int, str]) -> str:
    """Say how many seeds have the verdict of the first, and which others they have.

    Example:
        >>> from gvf_lab.report.verdict_tables import agreement
        >>> agreement({0: "holds", 1: "holds", 2: "undecided"}), agreement({0: "holds"})
        ('2 of 3 seeds; seed 2: undecided', '')
    """
    if len(seeds) < 2:
        return ""
    shipped = next(iter(seeds.values()))
    others = [f"; seed {seed}: {verdict}" for seed, verdict in seeds.items() if verdict != shipped]
    return f"{len(seeds) - len(others)} of {len(seeds)} seeds{''.join(others)}"


def matches(exhibits: Iterable[Exhibit]) -> list[dict[str, Any]]:
    """Return the curves of every figure that were compared with published ones."""
    return [
        {
            "figure": exhibit.figure,
            "curves": [
                {"origin": origin, **_match(exhibit.figure, match)}
                for origin, version in exhibit.versions.items()
                for match in version.matches
                if not (version.once and match.protocol == Protocol.PAPER)
            ],
        }
        for exhibit in exhibits
        if any(version.matches for version in exhibit.versions.values())
    ]


def must_match(figure: Figure, match: Match) -> bool:
    """Return True if our curve must match the published one.

    Example:
        >>> from gvf_lab.figure import Match
        >>> from gvf_lab.paper import get
        >>> from gvf_lab.report.verdict_tables import must_match
        >>> figure = get("markov-step-size")
        >>> [must_match(figure, Match(protocol, "main", "IR", 10, 9, 2.5))
        ...  for protocol in ("paper", "authors")]
        [False, True]
    """
    return match.protocol == Protocol.AUTHORS and any(
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


def published_curves(versions: Iterable[Version]) -> Curves:
    """Count each published curve once, however many figures show it."""
    by_curve: dict[tuple[str, str], tuple[bool, bool]] = {}
    for version in versions:
        for match in version.matches:
            if match.protocol == Protocol.AUTHORS:
                theirs = next(
                    each for each in version.figure.published if each.panel == match.panel
                )
                must, good = by_curve.get((theirs.file, match.series), (False, True))
                must_and_good = (must or theirs.must_match, good and match.matches)
                by_curve[theirs.file, match.series] = must_and_good
    must, others = ([good for m, good in by_curve.values() if m is kind] for kind in (True, False))
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
        >>> from gvf_lab.report.verdict_tables import number
        >>> number(1.23456), number(1), number(-2e-5), number(float("inf"))
        ('1.23', '1.00', '−2.00e−05', '∞')
    """
    return f"{value:#.{digits}g}".rstrip(".").replace("-", "−").replace("inf", "∞")


def span(least: float | None, most: float | None) -> str:
    """Write a range, whose ends do not belong to it; None is no bound.

    Example:
        >>> from gvf_lab.report.verdict_tables import span
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
    value, low, high = (math.inf if end is None else end for end in numbers)
    low = -math.inf if low > value else low
    digits = _digits((value, low, high), verdict.range)
    value_text = BOUNDS[verdict.bound] + number(value, digits)
    return f"{value_text} [{number(low, digits)}, {number(high, digits)}]"


def _digits(numbers: Iterable[float], ends: Iterable[float | None]) -> int:
    """Return how many digits tell numbers apart, from each other and from the ends of a range."""
    apart = {x for x in (*numbers, *ends) if x is not None and math.isfinite(x)}
    tried = range(3, MOST_DIGITS)
    return next((n for n in tried if len({f"{x:.{n}g}" for x in apart}) == len(apart)), MOST_DIGITS)
