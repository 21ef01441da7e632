"""The numbers of the page in words: claims with their verdicts, and the matches of curves.

The functions turn verdicts and matches into plain data, with a group for each figure; the templates
lay them out. A verdict is shown by a sign and a word, not by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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


SIGNS = {
    "holds": Badge("good", "✓ holds"),
    "fails": Badge("bad", "✗ fails"),
    "undecided": Badge("open", "? undecided"),
}
"""The badge of each verdict."""


def claims(shown: Iterable[Exhibit]) -> list[dict[str, Any]]:
    """Return the claims of every figure that has some, each with its verdicts in words."""
    return [
        {
            "figure": one.figure,
            "claims": [_claim(one.figure, verdicts) for verdicts in by_claim(one.verdicts)],
        }
        for one in shown
        if one.verdicts
    ]


def by_claim(verdicts: Iterable[Verdict]) -> list[list[Verdict]]:
    """Group the verdicts on the same claim under several protocols."""
    grouped: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        grouped.setdefault(verdict.id, []).append(verdict)
    return list(grouped.values())


def place(figure: Figure, verdict: Verdict) -> str:
    """Return the id of a claim's row on the page."""
    return f"claim.{figure.id}.{verdict.id}"


def _claim(figure: Figure, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    first = verdicts[0]
    return {
        "place": place(figure, first),
        "sentence": first.sentence,
        "measure": first.measure,
        "remarks": list(dict.fromkeys(one.remark for one in verdicts if one.remark)),
        "verdicts": [
            {
                "badge": SIGNS[one.verdict],
                "statistic": statistic(one),
                "range": span(*one.range),
                "runs": one.runs,
                "protocol": one.protocol,
            }
            for one in verdicts
        ],
    }


def matches(shown: Iterable[Exhibit]) -> list[dict[str, Any]]:
    """Return the curves of every figure that were compared with published ones."""
    return [
        {"figure": one.figure, "curves": [_match(one.figure, match) for match in one.matches]}
        for one in shown
        if one.matches
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


def number(value: float) -> str:
    """Write a number with three digits and a true minus sign.

    Example:
        >>> from gvf.report.tables import number
        >>> number(1.23456), number(1), number(-2e-5), number(float("inf"))
        ('1.23', '1.00', '−2.00e−05', '∞')
    """
    return f"{value:#.3g}".rstrip(".").replace("-", "−").replace("inf", "∞")


def span(least: float | None, most: float | None) -> str:
    """Write a range; None is no bound.

    Example:
        >>> from gvf.report.tables import span
        >>> span(0.5, 2.0), span(1.0, None), span(None, 0.05)
        ('0.5 to 2', '≥ 1', '≤ 0.05')
    """
    if least is not None and most is not None:
        return f"{least:.3g} to {most:.3g}"
    if least is not None:
        return f"≥ {least:.3g}"
    return "any" if most is None else f"≤ {most:.3g}"


def statistic(verdict: Verdict) -> str:
    """Write a statistic with its interval, or a dash if it could not be computed."""
    numbers = (verdict.statistic, verdict.low, verdict.high)
    if numbers == (None, None, None) and verdict.verdict == "undecided":
        return "–"
    # A verdict stores infinity as None; a lower end above the value can only be minus infinity.
    value, low, high = (math.inf if one is None else one for one in numbers)
    low = -math.inf if low > value else low
    return f"{number(value)} [{number(low)}, {number(high)}]"
