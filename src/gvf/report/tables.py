"""The tables of the page: claims with their verdicts, and how well ours lie on published curves.

A table has a body for each figure. Every cell knows its column's name, so that a narrow screen can
show a row as a card. Verdicts are told by a sign and a word, not by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from gvf.paper.claim import Verdict
from gvf.paper.figure import Figure
from gvf.paper.published import Match
from gvf.report.markup import Html, tag
from gvf.report.picture import NAMES
from gvf.report.shown import Shown

SIGNS = {
    "holds": ("good", "✓ holds"),
    "fails": ("bad", "✗ fails"),
    "undecided": ("open", "? undecided"),
}
"""The class of a verdict's badge, and what it says."""


def badge(kind: str, text: str) -> Html:
    """Words on a ground of some colour."""
    return tag("span", text, class_=f"badge {kind}")


def table(
    kind: str, columns: Sequence[str], groups: Iterable[tuple[Figure | None, Sequence[Html]]]
) -> Html:
    """A table: rows of cells, in groups, each under the name of its figure."""
    bodies = []
    for figure, rows in groups:
        name = None
        if figure:
            link = tag("a", figure.title, href=f"#{figure.id}")
            words = tag("th", link, f" ({figure.where})", scope="rowgroup", colspan=len(columns))
            name = tag("tr", words)
        bodies.append(tag("tbody", name, Html("\n".join(rows))))
    heads = (tag("th", column, scope="col") for column in columns)
    return tag("table", tag("thead", tag("tr", *heads)), *bodies, class_=kind)


def cells(values: Mapping[str, str]) -> list[Html]:
    """Cells of a row, by the names of their columns."""
    return [tag("td", tag("span", value), data_label=name) for name, value in values.items()]


def claims(shown: Sequence[Shown]) -> Html:
    """All claims with their verdicts."""
    columns = ("Claim", "Verdict", "Statistic", "Holds if", "Runs", "Protocol")
    groups = []
    for one in shown:
        rows = [
            _claim(one.figure, verdicts, position)
            for verdicts in by_claim(one.verdicts)
            for position in range(len(verdicts))
        ]
        groups += [(one.figure, rows)] if rows else []
    return table("claims", columns, groups)


def by_claim(verdicts: Iterable[Verdict]) -> list[list[Verdict]]:
    """Verdicts about the same claim, under several protocols, together."""
    grouped: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        grouped.setdefault(verdict.id, []).append(verdict)
    return list(grouped.values())


def place(figure: Figure, verdict: Verdict) -> str:
    """Where the page has a claim."""
    return f"claim.{figure.id}.{verdict.id}"


def _claim(figure: Figure, verdicts: Sequence[Verdict], position: int) -> Html:
    """A row for each protocol; the first has the sentence, for all of them."""
    verdict = verdicts[position]
    sentence = None
    if position == 0:
        remarks = dict.fromkeys(v.remark for v in verdicts if v.remark)
        sentence = tag(
            "th",
            tag("span", verdict.sentence),
            tag("small", verdict.measure),
            *(tag("small", remark, class_="remark") for remark in remarks),
            scope="row",
            rowspan=len(verdicts),
            id=place(figure, verdict),
        )
    values = {
        "Verdict": badge(*SIGNS[verdict.verdict]),
        "Statistic": statistic(verdict),
        "Holds if": span(*verdict.range),
        "Runs": str(verdict.runs),
        "Protocol": verdict.protocol,
    }
    return tag("tr", sentence, *cells(values))


def matches(shown: Sequence[Shown]) -> Html:
    """All our curves that were compared with published ones."""
    columns = ("Curve", "Verdict", "Points", "Within", "Worst z", "Protocol", "Expected")
    groups = [
        (one.figure, [_match(one.figure, match) for match in one.matches])
        for one in shown
        if one.matches
    ]
    return table("matches", columns, groups)


def must_match(figure: Figure, match: Match) -> bool:
    """Whether we say that ours comes out like the published curve.

    Example:
        >>> from gvf.paper import Match, get
        >>> from gvf.report.tables import must_match
        >>> figure = get("markov-step-size")
        >>> [must_match(figure, Match(protocol, "main", "IR", 10, 9, 2.5))
        ...  for protocol in ("paper", "authors")]
        [False, True]
    """
    return match.protocol == "authors" and any(
        published.must_match and published.panel == match.panel for published in figure.published
    )


def _match(figure: Figure, match: Match) -> Html:
    must = must_match(figure, match)
    if match.matches:
        verdict = badge("good", "✓ matches")
    else:
        verdict = badge("bad", "✗ does not match") if must else badge("open", "≠ differs")
    values = {
        "Verdict": verdict,
        "Points": str(match.points),
        "Within": f"{match.within} ({match.share:.0%})",
        "Worst z": number(match.worst),
        "Protocol": match.protocol,
        "Expected": "must match" if must else "may differ",
    }
    several = len({published.panel for published in figure.published}) > 1
    panel = f", {NAMES.get(match.panel, match.panel)}" if several else None
    return tag("tr", tag("th", match.series, panel, scope="row"), *cells(values))


def number(value: float) -> str:
    """Three digits, and a minus that is one.

    Example:
        >>> from gvf.report.tables import number
        >>> number(1.23456), number(1), number(-2e-5), number(float("inf"))
        ('1.23', '1.00', '−2.00e−05', '∞')
    """
    return f"{value:#.3g}".rstrip(".").replace("-", "−").replace("inf", "∞")


def span(least: float | None, most: float | None) -> str:
    """A range; None is no bound.

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
    """A statistic with its interval, or a dash where it could not be computed."""
    numbers = (verdict.statistic, verdict.low, verdict.high)
    if numbers == (None, None, None) and verdict.verdict == "undecided":
        return "–"
    # A verdict stores what is infinite as None; below a finite value that is the lower end.
    value, low, high = (math.inf if one is None else one for one in numbers)
    low = -math.inf if low > value else low
    return f"{number(value)} [{number(low)}, {number(high)}]"
