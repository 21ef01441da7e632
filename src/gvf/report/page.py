"""The page: every figure, what is claimed about it, and how it was made, in one HTML file.

The file holds all that it shows, pictures included: it opens without a network, on a phone, and
prints. It has no scripts. All text goes through :func:`gvf.report.markup.tag`, which escapes it;
:mod:`gvf.report.tables` has the tables.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from gvf.paper.claim import LEVEL
from gvf.paper.published import ENOUGH, WITHIN
from gvf.report import tables
from gvf.report.markup import Html, tag
from gvf.report.more import CAPTIONS
from gvf.report.picture import NAMES, draw_shown, render
from gvf.report.shown import Shown
from gvf.report.tables import SIGNS, badge, cells, must_match, place

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

ABOUT = (
    "The experiments of “Importance Resampling for Off-policy Prediction” (Schlegel et al., 2019), "
    "run anew. Every figure lies over the curves that its authors published, where we have them, "
    "and every sentence about it is put to the test."
)
QUICK = "Quick scale: few runs, coarse grid: not the paper's numbers."
FULL = "With --scale paper come the paper's runs and grids."
JUDGED = (
    "Each sentence of the paper, in our words, has a statistic that was fixed beforehand; in "
    f"brackets its {LEVEL:.0%} interval, by bootstrap over runs. The sentence holds where the "
    "whole interval lies in the range, fails where the whole interval lies outside, and is "
    "undecided otherwise: more runs may tell."
)
COMPARED = (
    f"A point agrees where ours and the published one differ by no more than {WITHIN:g} combined "
    "standard errors (ours, scaled to the authors' number of runs) and what reading the drawing "
    f"may have cost. A curve matches where {ENOUGH:.0%} of its points agree. The worst z is the "
    "largest difference, in combined standard errors."
)
PROTOCOLS = {
    "paper": "the paper's text, with correct true values. This is what we stand behind.",
    "authors": "the settings, and the defects, under which the authors' curves come out.",
}
CAPTION = "Bands: one standard error. A curve that leaves at the top goes on above it, or diverges."
GREY = " Grey, with the marker of its method: published."
PER_INCH = 110
"""Pixels on a wide screen."""


def page(
    shown: Sequence[Shown], *, title: str, command: str, version: str, machine: str, seconds: float
) -> str:
    """One self-contained HTML page.

    Args:
        shown: the figures; those of the main text come first, whatever their order.
        title: of the page.
        command: that made it.
        version: of gvf.
        machine: in words.
        seconds: of processor time behind all results.

    Example:
        >>> from gvf.report.page import page
        >>> text = page([], title="Runs & claims", command="gvf report out", version="1.0",
        ...             machine="2 processors", seconds=200.0)
        >>> "<h1>Runs &amp; claims</h1>" in text, "3 min 20 s" in text
        (True, True)
    """
    facts = {
        "Version": f"gvf {version}",
        "Command": tag("code", command),
        "Machine": machine,
        "Time": f"{duration(seconds)} of processor time",
        **_settings(shown),
    }
    parts = {
        "Figures of the main text": [one for one in shown if one.figure.main],
        "Figures of the appendix": [one for one in shown if not one.figure.main],
    }
    parts = {heading: there for heading, there in parts.items() if there}
    ordered = [one for there in parts.values() for one in there]
    sections = [
        _section("made", "How it was made", _pairs(facts), _protocols(shown)),
        _section("contents", "Contents", _contents(parts)),
        _section("claims", "Claims", tag("p", JUDGED), tables.claims(ordered)),
    ]
    if any(one.matches for one in ordered):
        published = (tag("p", COMPARED), tables.matches(ordered))
        sections.append(_section("matches", "On the published curves", *published))
    for heading, there in parts.items():
        sections += [tag("h2", heading, class_="sheet"), *map(_figure, there)]
    header = tag("header", tag("h1", title), tag("p", ABOUT), _quick(shown, FULL), _summary(shown))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Html((files("gvf.report") / "page.css").read_text(encoding="utf-8"))),
    )
    body = tag("body", header, tag("main", Html("\n".join(sections))))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def duration(seconds: float) -> str:
    """A time in words.

    Example:
        >>> from gvf.report.page import duration
        >>> duration(7.4), duration(200), duration(4000)
        ('7 s', '3 min 20 s', '1 h 7 min')
    """
    if seconds >= 3600:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours} h {minutes} min"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _quick(shown: Sequence[Shown], more: str = "") -> Html | None:
    """What must be said where not everything was run as in the paper."""
    if not any(made.scale == "quick" for one in shown for made in one.made.values()):
        return None
    return tag("p", tag("b", QUICK), f" {more}", class_="banner")


def _summary(shown: Sequence[Shown]) -> Html:
    lines = []
    told = Counter((v.protocol, v.verdict) for one in shown for v in one.verdicts)
    for protocol in dict.fromkeys(protocol for protocol, _ in told):
        counts = (
            badge(kind, f"{sign[0]} {told[protocol, verdict]} {word}")
            for (verdict, (kind, sign)), word in zip(
                SIGNS.items(), ("hold", "fail", "undecided"), strict=True
            )
        )
        link = tag("a", f"Claims, protocol {protocol}", href="#claims")
        lines.append(tag("li", link, ": ", Html(" ".join(counts))))
    expected = [match for one in shown for match in one.matches if must_match(one.figure, match)]
    if expected:
        good = sum(match.matches for match in expected)
        kind, sign = ("good", "✓") if good == len(expected) else ("bad", "✗")
        count = badge(kind, f"{sign} {good} of {len(expected)} that must match do")
        lines.append(tag("li", tag("a", "Published curves", href="#matches"), ": ", count))
    return tag("ul", *lines, class_="summary")


def _settings(shown: Sequence[Shown]) -> dict[str, str]:
    made = [one for there in shown for one in there.made.values()]
    if not made:
        return {}
    return {
        "Scale": ", ".join(sorted({one.scale for one in made})),
        "Seeds": ", ".join(map(str, sorted({one.seed for one in made}))),
        "Finished": _moment(max(one.finished for one in made)),
    }


def _moment(iso: str) -> str:
    return iso.replace("T", " ").replace("Z", " UTC").replace("+00:00", " UTC")


def _protocols(shown: Sequence[Shown]) -> Html:
    used = {protocol for one in shown for protocol in one.made}
    words = {f"Protocol {name}": said for name, said in PROTOCOLS.items() if name in used}
    return _pairs(words)


def _contents(parts: Mapping[str, Sequence[Shown]]) -> Html:
    lists = []
    for heading, there in parts.items():
        links = (
            tag("li", tag("a", f.title, href=f"#{f.id}"), " ", tag("small", f.where))
            for f in (one.figure for one in there)
        )
        lists += [tag("p", heading), tag("ol", *links)]
    return tag("nav", *lists, aria_label="Figures")


def _figure(one: Shown) -> Html:
    figure = one.figure
    notes = _notes(one)
    beneath = [theirs for theirs in figure.published if {*theirs.protocols} & {*one.made}]
    for published in beneath:
        panel = NAMES.get(published.panel, published.panel)
        name = "Published" if len(beneath) == 1 else f"Published, {panel}"
        source = published.source[0].upper() + published.source[1:]
        notes[name] = f"{source}; {published.runs} runs. {published.note}"
    for stream in dict.fromkeys(made.stream for made in one.made.values() if made.stream):
        notes["Recorded stream"] = tag("code", stream)
    if one.matches:
        good = sum(match.matches for match in one.matches)
        matched = f"{good} of {len(one.matches)} curves match the published ones"
        notes["Comparison"] = tag("a", matched, href="#matches")
    names = [f"{figure.id}.csv", *(["published.csv"] if one.published else []), "claims.json"]
    names += [f"{name}.{kind}" for name in (figure.id, *one.more) for kind in ("png", "svg")]
    files_there = (tag("a", name, href=f"{figure.id}/{name}") for name in names)
    return tag(
        "article",
        tag("h3", one.title),
        tag("p", figure.where, class_="small"),
        _quick([one]),
        tag(
            "figure",
            _picture(one),
            tag("figcaption", CAPTION, GREY if beneath else None),
        ),
        *_more(one),
        _verdicts(one),
        _pairs(notes),
        _made(one),
        tag("p", "Beside this page: ", Html(", ".join(files_there)), class_="small beside"),
        id=figure.id,
    )


def _more(one: Shown) -> list[Html]:
    """The pictures that go with a figure."""
    return [
        tag(
            "figure",
            tag(
                "img",
                src=_embed(picture),
                alt=f"{one.figure.title}: {CAPTIONS[name]}",
                width=round(picture.get_figwidth() * PER_INCH),
            ),
            tag("figcaption", CAPTIONS[name]),
        )
        for name, picture in one.more.items()
    ]


def _notes(one: Shown) -> dict[str, str]:
    """What the figure notes about its protocols; what holds for several is said once."""
    said: dict[str, list[str]] = {}
    for protocol in one.made:
        said.setdefault(one.figure.notes.get(protocol, ""), []).append(protocol)
    return {
        f"Protocol{'s'[: len(names) - 1]} {' and '.join(names)}": note
        for note, names in said.items()
        if note
    }


def _verdicts(one: Shown) -> Html | None:
    """The figure's claims in brief; the table above has the numbers."""
    lines = []
    for verdicts in tables.by_claim(one.verdicts):
        told = []
        for verdict in verdicts:
            kind, sign = SIGNS[verdict.verdict]
            told.append(badge(kind, f"{sign}, {verdict.protocol}" if len(one.made) > 1 else sign))
        link = tag("a", verdicts[0].sentence, href=f"#{place(one.figure, verdicts[0])}")
        lines.append(tag("li", tag("span", Html(" ".join(told))), tag("span", link)))
    return tag("ul", *lines, class_="claims") if lines else None


def _picture(one: Shown) -> Html:
    """The picture, and the same with its panels one below the other for a narrow screen."""
    axes = one.figure.axes
    series = ", ".join(dict.fromkeys(row.series for row in one.rows))
    alt = f"{one.figure.title}: {axes.y} against {axes.x}, for {series}."
    wide, narrow = (draw_shown(one, titled=False, columns=columns) for columns in (None, 1))
    width = round(wide.get_figwidth() * PER_INCH)
    return tag(
        "picture",
        tag("source", media="screen and (max-width: 36rem)", srcset=_embed(narrow)),
        tag("img", src=_embed(wide), alt=alt, width=width),
    )


def _embed(picture: MatplotlibFigure) -> str:
    """A picture as an address that contains it; pictures in it cannot mix up each other's names."""
    return "data:image/svg+xml;base64," + b64encode(render(picture, "svg")).decode()


def _made(one: Shown) -> Html:
    columns = ("Protocol", "Scale", "Runs", "Seed", "Time", "Finished", "Version")
    rows = []
    for protocol, made in one.made.items():
        full = one.figure.study(protocol, **made.options).runs
        values = {
            "Scale": badge("quick", made.scale) if made.scale == "quick" else made.scale,
            "Runs": f"{made.runs}" if made.runs == full else f"{made.runs} (paper: {full})",
            "Seed": f"{made.seed}",
            "Time": duration(made.seconds),
            "Finished": _moment(made.finished),
            "Version": made.version,
        }
        rows.append(tag("tr", tag("th", protocol, scope="row"), *cells(values)))
    commands = dict.fromkeys(made.command for made in one.made.values())
    return tag(
        "div",
        tables.table("made", columns, [(None, rows)]),
        tag("p", "To redraw this figure alone:"),
        *(tag("pre", tag("code", command)) for command in commands),
    )


def _section(id: str, heading: str, *inside: Html) -> Html:
    return tag("section", tag("h2", heading), *inside, id=id)


def _pairs(pairs: Mapping[str, str]) -> Html:
    inside = (part for name, said in pairs.items() for part in (tag("dt", name), tag("dd", said)))
    return tag("dl", *inside, class_="facts")
