"""The page: every figure, its claims and its provenance, in one HTML file.

The file contains its pictures, so it opens without a network and on a phone, and it prints. It runs
no scripts; each figure carries its data as JSON (:mod:`gvf.report.data`). The functions here
prepare plain data, and those of :mod:`gvf.report.tables` write the numbers in words. The templates
in ``templates/`` lay them out with jinja2, which escapes all text.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from gvf.common.progress import duration
from gvf.figure.figure import Figure
from gvf.figure.interval import LEVEL
from gvf.figure.picture import render
from gvf.figure.published import AGREEMENT_ERRORS, MATCHING_SHARE, Published
from gvf.report import tables
from gvf.report.data import data
from gvf.report.exhibit import Exhibit, Provenance
from gvf.report.tables import SIGNS, Badge, by_claim, must_match, place

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

PAPER = ("Figures of the main text", "Figures of the appendix")
"""The parts of the page that show the paper's figures. They come first, in this order."""
PROTOCOLS = {
    "paper": "the paper's text, with correct true values. This is what we stand behind.",
    "authors": "the settings, and the defects, under which the authors' curves come out.",
}
PER_INCH = 110
"""Pixels per inch of a picture on a wide screen."""


def page(
    shown: Sequence[Exhibit],
    *,
    title: str,
    command: str,
    version: str,
    machine: str,
    seconds: float,
) -> str:
    """Write one self-contained HTML page.

    Args:
        shown: the figures. The page has a heading for each ``part`` that they name: first those of
            the paper (`PAPER`), then others in the given order.
        title: the title of the page.
        command: the command that made it.
        version: the version of gvf.
        machine: a description of the machine.
        seconds: the processor time behind all results.

    Example:
        >>> from gvf.report.page import page
        >>> text = page([], title="Runs & claims", command="gvf report out", version="1.0",
        ...             machine="2 processors", seconds=200.0)
        >>> "<h1>Runs &amp; claims</h1>" in text, "3 min 20 s" in text
        (True, True)
    """
    parts = _parts(shown)
    ordered = [one for there in parts.values() for one in there]
    of_paper = [one for one in ordered if one.part in PAPER]
    css = (files("gvf.report") / "page.css").read_text(encoding="utf-8")
    template = _templates().get_template("page.html.jinja")
    return template.render(
        title=title,
        css=css,
        command=command,
        version=version,
        machine=machine,
        time=duration(seconds),
        of_paper=bool(of_paper),
        own=len(of_paper) < len(ordered),
        quick=_quick(ordered),
        counts=_counts(ordered),
        matched=_matched(ordered),
        settings=_settings(ordered),
        protocols=_protocols(of_paper),
        level=f"{LEVEL:.0%}",
        claims=tables.claims(ordered),
        within=f"{AGREEMENT_ERRORS:g}",
        enough=f"{MATCHING_SHARE:.0%}",
        matches=tables.matches(ordered),
        parts={heading: list(map(_article, there)) for heading, there in parts.items()},
    )


@cache
def _templates() -> Environment:
    """Load the templates. A missing name is an error, and so is nan in JSON."""
    templates = Environment(
        loader=PackageLoader("gvf.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.policies["json.dumps_kwargs"] = {
        "allow_nan": False,
        "ensure_ascii": False,
        "separators": (",", ":"),
    }
    return templates


def _moment(iso: str) -> str:
    return iso.replace("T", " ").replace("Z", " UTC").replace("+00:00", " UTC")


def _parts(shown: Iterable[Exhibit]) -> dict[str, list[Exhibit]]:
    """Group figures by heading, without empty headings."""
    parts: dict[str, list[Exhibit]] = {heading: [] for heading in PAPER}
    for one in shown:
        parts.setdefault(one.part, []).append(one)
    return {heading: there for heading, there in parts.items() if there}


def _quick(shown: Iterable[Exhibit]) -> bool:
    """Return True if something was run at the quick scale."""
    return any(made.scale == "quick" for one in shown for made in one.made.values())


def _counts(shown: Iterable[Exhibit]) -> dict[str, list[Badge]]:
    """Count the claims that hold, fail and are undecided, by protocol."""
    counts = Counter((v.protocol, v.verdict) for one in shown for v in one.verdicts)
    words = dict(zip(SIGNS, ("hold", "fail", "undecided"), strict=True))
    return {
        protocol: [
            Badge(sign.kind, f"{sign.text[0]} {counts[protocol, verdict]} {words[verdict]}")
            for verdict, sign in SIGNS.items()
        ]
        for protocol in dict.fromkeys(protocol for protocol, _ in counts)
    }


def _matched(shown: Iterable[Exhibit]) -> Badge | None:
    """Count the curves that match among those that must; None if none must."""
    expected = [match for one in shown for match in one.matches if must_match(one.figure, match)]
    if not expected:
        return None
    good = sum(match.matches for match in expected)
    kind, sign = ("good", "✓") if good == len(expected) else ("bad", "✗")
    return Badge(kind, f"{sign} {good} of {len(expected)} that must match do")


def _settings(shown: Iterable[Exhibit]) -> dict[str, str]:
    """Return the scales, seeds and last completion of all results, as far as they are known."""
    made = [one for there in shown for one in there.made.values()]
    settings = {
        "Scale": ", ".join(sorted({one.scale for one in made if one.scale})),
        "Seeds": ", ".join(map(str, sorted({one.seed for one in made}))),
        "Finished": _moment(max((one.finished for one in made), default="")),
    }
    return {name: said for name, said in settings.items() if said}


def _protocols(shown: Iterable[Exhibit]) -> dict[str, str]:
    used = {protocol for one in shown for protocol in one.made}
    return {f"Protocol {name}": said for name, said in PROTOCOLS.items() if name in used}


def _article(one: Exhibit) -> dict[str, Any]:
    """Return the data that the template of an article shows."""
    figure = one.figure
    beneath = [theirs for theirs in figure.published if {*theirs.protocols} & {*one.made}]
    good = sum(match.matches for match in one.matches)
    compared = f"{good} of {len(one.matches)} curves match the published ones"
    folder, stem = one.place
    companions = [companion.name for companion in one.companions]
    names = [
        f"{stem}.csv",
        *(["published.csv"] if one.published else []),
        *(["claims.json"] if one.verdicts else []),
        *(f"{name}.{kind}" for name in (stem, *companions) for kind in ("png", "svg")),
    ]
    made = one.made.values()
    return {
        "figure": figure,
        "title": one.title,
        "quick": _quick([one]),
        "picture": _picture(one),
        "grey": bool(beneath),
        "companions": _companions(one),
        "claims": _claims(one),
        "notes": _notes(one) | _sources(figure, beneath),
        "streams": list(dict.fromkeys(how.stream for how in made if how.stream)),
        "compared": compared if one.matches else "",
        "made": [_made(one, protocol, how) for protocol, how in one.made.items()],
        "commands": list(dict.fromkeys(how.command for how in made if how.command)),
        "folder": folder,
        "files": names,
        "data": data(one),
    }


def _picture(one: Exhibit) -> dict[str, Any]:
    """Return the picture, and a version with one column for narrow screens."""
    axes = one.figure.axes
    series = ", ".join(dict.fromkeys(row.series for row in one.rows))
    wide, narrow = (one.draw(titled=False, columns=columns) for columns in (None, 1))
    alt = f"{one.figure.title}: {axes.y} against {axes.x}, for {series}."
    return {**_embed(wide), "alt": alt, "narrow": _embed(narrow)["src"]}


def _companions(one: Exhibit) -> list[dict[str, Any]]:
    """Return the pictures that go with a figure."""
    return [
        {
            **_embed(picture),
            "alt": f"{one.figure.title}: {companion.caption}",
            "caption": companion.caption,
        }
        for companion, picture in one.companions.items()
    ]


def _embed(picture: MatplotlibFigure) -> dict[str, Any]:
    """Embed a picture in an address, so that names inside it cannot clash with others."""
    code = b64encode(render(picture, "svg")).decode()
    width = round(picture.get_figwidth() * PER_INCH)
    return {"src": f"data:image/svg+xml;base64,{code}", "width": width}


def _claims(one: Exhibit) -> list[dict[str, Any]]:
    """Return the figure's claims in brief; the table of all claims has the numbers."""
    brief = []
    for verdicts in by_claim(one.verdicts):
        badges = []
        for verdict in verdicts:
            kind, sign = SIGNS[verdict.verdict]
            badges.append(Badge(kind, f"{sign}, {verdict.protocol}" if len(one.made) > 1 else sign))
        first = verdicts[0]
        entry = {"sentence": first.sentence, "place": place(one.figure, first), "badges": badges}
        brief.append(entry)
    return brief


def _notes(one: Exhibit) -> dict[str, str]:
    """Return the figure's notes on its protocols; a note on several protocols appears once."""
    said: dict[str, list[str]] = {}
    for protocol in one.made:
        said.setdefault(one.figure.notes.get(protocol, ""), []).append(protocol)
    return {
        f"Protocol{'s'[: len(names) - 1]} {' and '.join(names)}" if any(names) else "Note": note
        for note, names in said.items()
        if note
    }


def _sources(figure: Figure, beneath: Sequence[Published]) -> dict[str, str]:
    """Return the sources of published curves."""
    said = {}
    for published in beneath:
        panel = figure.panels.get(published.panel, published.panel)
        name = "Published" if len(beneath) == 1 else f"Published, {panel}"
        source = published.source[0].upper() + published.source[1:]
        said[name] = f"{source}; {published.runs} runs. {published.note}"
    return said


def _made(one: Exhibit, protocol: str, made: Provenance) -> dict[str, Any]:
    """Return a row of the table that says how a figure was made."""
    full = one.paper_runs(protocol)
    other = full is not None and made.runs != full
    return {
        "protocol": protocol,
        "scale": made.scale,
        "badge": Badge("quick", made.scale) if made.scale == "quick" else None,
        "runs": f"{made.runs} (paper: {full})" if other else f"{made.runs}",
        "seed": made.seed,
        "time": duration(made.seconds),
        "finished": _moment(made.finished),
        "version": made.version,
    }
