"""The articles of the page: a figure with its pictures, claims, notes, provenance and files.

A figure that was made here and one that was shipped are shown in one article, in this order. The
functions prepare plain data for the template ``figure.html.jinja``.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any

from gvf.common.pictures import PER_INCH, embed
from gvf.common.progress import duration
from gvf.figure.figure import Figure
from gvf.figure.published import Published
from gvf.report.data import data
from gvf.report.evidence import CLAIMS, MADE, NARROW, copies
from gvf.report.exhibit import STUDIES, Exhibit, Provenance
from gvf.report.tables import SIGNS, Badge, by_claim, first, place, versions

DPI = 150
"""Pixels per inch of a picture that is stored as PNG."""


def article(one: Exhibit) -> dict[str, Any]:
    """Return the data that the template of an article shows."""
    figure, both = one.figure, versions(one)
    under = made_under(one)
    beneath = [theirs for theirs in figure.published if {*theirs.protocols} & {*under}]
    made = [(origin, *how) for origin, version in both.items() for how in version.distinct.items()]
    return {
        "figure": figure,
        "title": next((version.title for version in both.values()), figure.title),
        "origin": (" and ".join(both) or "not shipped yet") if one.part != STUDIES else "",
        "absent": not both,
        "quick": is_quick([one]),
        "versions": [_version(version) for version in both.values()],
        "grey": bool(beneath),
        "same": _same(one),
        "claims": _claims(one),
        "notes": _notes(figure, under) | _sources(figure, beneath),
        "streams": list(dict.fromkeys(how.stream for _, _, how in made if how.stream)),
        "compared": _compared(next((each for each in both.values() if each.matches), one)),
        "made": [_made(one, *each) for each in made],
        "commands": list(dict.fromkeys(how.command for _, _, how in made if how.command)),
        "files": {origin: _files(version) for origin, version in both.items()},
        "data": data(one) if "now" in both else None,
    }


def _version(one: Exhibit) -> dict[str, Any]:
    """Return the pictures of a figure as it was made here or shipped."""
    return {
        "mark": _mark(one) if one.shipped else "",
        "picture": _picture(one),
        "companions": _companions(one),
    }


def _same(one: Exhibit) -> list[str]:
    """Return the protocols under which the results are the shipped ones, bit for bit."""
    there = {} if one.beside is None else one.beside.made
    return [
        protocol
        for protocol, made in one.made.items()
        if protocol in there and made.results and made.results == there[protocol].results
    ]


def _files(one: Exhibit) -> dict[str, str]:
    """Return the paths of a figure's files from the page, by name."""
    folder, stem = one.place
    companions = [companion.name for companion in one.companions]
    names = [
        f"{stem}.csv",
        *(["published.csv"] if one.published else []),
        *([CLAIMS] if one.verdicts else []),
        *(f"{name}.{kind}" for name in (stem, *companions) for kind in ("png", "svg")),
        *(f"{companion.name}.csv" for companion in one.companions if companion.read),
        *(MADE.format(protocol) for protocol in one.made if one.part != STUDIES),
    ]
    return {name: f"{folder}/{name}" for name in (copies(one) if one.shipped else names)}


def _picture(one: Exhibit) -> dict[str, Any]:
    """Return the picture, and a version with one column for narrow screens, if there is one."""
    axes, name = one.figure.axes, one.figure.id
    series = ", ".join(dict.fromkeys(row.series for row in one.rows))
    if one.shipped:
        pictures = [one.pictures[end] for end in (name, name + NARROW) if end in one.pictures]
        wide, *others = map(_embed_png, pictures)
    else:
        wide, *others = (embed(one.draw(titled=False, columns=columns)) for columns in (None, 1))
    alt = f"{one.figure.title}: {axes.y} against {axes.x}, for {series}."
    return {**wide, "alt": alt, "narrow": [narrow["src"] for narrow in others]}


def _companions(one: Exhibit) -> list[dict[str, Any]]:
    """Return the pictures that go with a figure."""
    pictures = {companion: embed(drawn) for companion, drawn in one.companions.items()}
    for companion in one.figure.companions:
        if companion.name in one.pictures:
            pictures[companion] = _embed_png(one.pictures[companion.name])
    return [
        {
            **picture,
            "alt": f"{one.figure.title}: {companion.caption}",
            "caption": companion.caption,
        }
        for companion, picture in pictures.items()
    ]


def _embed_png(content: bytes) -> dict[str, Any]:
    """Embed a picture that was stored as PNG, in the size of one that is drawn."""
    pixels = int.from_bytes(content[16:20])  # the width, in the header of every PNG file
    code = b64encode(content).decode()
    return {"src": f"data:image/png;base64,{code}", "width": round(pixels * PER_INCH / DPI)}


def _claims(one: Exhibit) -> list[dict[str, Any]]:
    """Return the figure's claims in brief; the table of all claims has the numbers."""
    brief = []
    for told in by_claim(one):
        badges = []
        for origin in versions(one):
            said: dict[str, list[str]] = {}
            for protocol, by_origin in told.items():
                if origin in by_origin:
                    said.setdefault(by_origin[origin].verdict, []).append(protocol)
            for verdict, protocols in said.items():
                kind, sign = SIGNS[verdict]
                words = protocols if len(said) > 1 else []  # all protocols agree
                words = words + [origin] * (origin == "shipped")
                badges.append(Badge(kind, ", ".join([sign, *words])))
        verdict = first(told)
        there = place(one.figure, verdict)
        brief.append({"sentence": verdict.sentence, "place": there, "badges": badges})
    return brief


def _notes(figure: Figure, protocols: Iterable[str]) -> dict[str, str]:
    """Return the figure's notes on its protocols; a note on several protocols appears once."""
    said: dict[str, list[str]] = {}
    for protocol in protocols:
        said.setdefault(figure.notes.get(protocol, ""), []).append(protocol)
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


def _compared(one: Exhibit) -> str:
    """Say how many curves match the published ones, under each protocol."""
    by_protocol: dict[str, list[bool]] = {}
    for match in one.matches:
        by_protocol.setdefault(match.protocol, []).append(match.matches)
    told = [f"{sum(good)} of {len(good)} ({name})" for name, good in by_protocol.items()]
    return f"curves that match the published ones: {', '.join(told)}" if told else ""


def _made(one: Exhibit, origin: str, protocol: str, made: Provenance) -> dict[str, Any]:
    """Return a row of the table that says how a figure was made."""
    full = versions(one)[origin].paper_runs(made)
    other = full is not None and made.runs != full
    return {
        "protocol": protocol,
        "origin": origin,
        "scale": made.scale,
        "badge": Badge("quick", made.scale) if made.scale == "quick" else None,
        "runs": f"{made.runs} (paper: {full})" if other else f"{made.runs}",
        "seed": made.seed,
        "time": f"{duration(made.seconds)} of {kind_of_time(made)}",
        "finished": moment(made.finished),
        "version": code_of(made),
    }


def kind_of_time(made: Provenance) -> str:
    """Say which time was measured: tasks on a GPU were timed by the clock."""
    return "GPU time" if made.options.get("device") == "cuda" else "processor time"


def moment(iso: str) -> str:
    """Write a time, given as ISO 8601, for a reader."""
    return iso.replace("T", " ").replace("Z", " UTC").replace("+00:00", " UTC")


def is_quick(shown: Iterable[Exhibit]) -> bool:
    """Return True if something was run at the quick scale."""
    return any(made.scale == "quick" for one in shown for made in one.made.values())


def made_under(one: Exhibit) -> list[str]:
    """Return the protocols of a figure, made here or shipped."""
    return list(dict.fromkeys(name for version in versions(one).values() for name in version.made))


def code_of(made: Provenance) -> str:
    """Return the version of the code with its commit; a wheel has none."""
    if not made.results:
        return made.version  # a study that is not the paper's, or a record of an earlier version
    return f"{made.version}, {f'commit {made.commit}' if made.commit else 'not a git checkout'}"


def _mark(one: Exhibit) -> str:
    """Say where a shipped figure comes from; protocols of the same origin are mentioned once."""
    said: dict[str, list[str]] = {}
    for protocol, made in one.made.items():
        how = (f"{made.runs} runs", f"seed {made.seed}", made.finished[:10], made.machine)
        said.setdefault(f"scale paper, {', '.join(how)}, gvf {code_of(made)}", []).append(protocol)
    if len(said) == 1:
        return next(iter(said))
    return "; ".join(f"protocol {' and '.join(names)}: {text}" for text, names in said.items())
