"""The articles of the page: a figure with its pictures, claims, notes, provenance and files.

A figure that was made here and one that was shipped are shown in one article, in this order. The
functions prepare plain data for the template ``figure.html.jinja``.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any

from gvf.common.plot_style import PER_INCH, embed
from gvf.common.progress import duration
from gvf_lab.figure.figure import Figure
from gvf_lab.figure.published import Published
from gvf_lab.report.evidence import CLAIMS, MADE, NARROW, copies
from gvf_lab.report.exhibit import STUDIES, Exhibit, Provenance
from gvf_lab.report.figure_data import data
from gvf_lab.report.verdict_tables import SIGNS, Badge, first, place, verdicts_by_claim, versions

DPI = 150
"""Pixels per inch of a picture that is stored as PNG."""


def figure_section(exhibit: Exhibit) -> dict[str, Any]:
    """Return the data of a figure's section, for the template."""
    figure, both = exhibit.figure, versions(exhibit)
    under = protocols_of(exhibit)
    beneath = [theirs for theirs in figure.published if {*theirs.protocols} & {*under}]
    origins = [
        (origin, *how) for origin, version in both.items() for how in version.distinct.items()
    ]
    return {
        "figure": figure,
        "title": next((version.title for version in both.values()), figure.title),
        "origin": (" and ".join(both) or "not shipped yet") if exhibit.part != STUDIES else "",
        "absent": not both,
        "quick": is_quick([exhibit]),
        "versions": [_version(version) for version in both.values()],
        "grey": bool(beneath),
        "same": _same(exhibit),
        "claims": _claims(exhibit),
        "notes": _notes(figure, under) | _sources(figure, beneath),
        "streams": list(dict.fromkeys(how.stream for _, _, how in origins if how.stream)),
        "compared": _compared(next((each for each in both.values() if each.matches), exhibit)),
        "origins": [_provenance_row(exhibit, *each) for each in origins],
        "commands": list(dict.fromkeys(how.command for _, _, how in origins if how.command)),
        "files": {origin: _files(version) for origin, version in both.items()},
        "data": data(exhibit) if "now" in both else None,
    }


def _version(exhibit: Exhibit) -> dict[str, Any]:
    """Return the pictures of a figure as it was made here or shipped."""
    return {
        "mark": _mark(exhibit) if exhibit.shipped else "",
        "picture": _picture(exhibit),
        "companions": _companions(exhibit),
    }


def _same(exhibit: Exhibit) -> list[str]:
    """Return the protocols under which the results are the shipped ones, bit for bit."""
    of_evidence = {} if exhibit.beside is None else exhibit.beside.provenance
    return [
        protocol
        for protocol, provenance in exhibit.provenance.items()
        if protocol in of_evidence
        and provenance.results
        and provenance.results == of_evidence[protocol].results
    ]


def _files(exhibit: Exhibit) -> dict[str, str]:
    """Return the paths of a figure's files from the page, by name."""
    folder, stem = exhibit.place
    companions = [companion.name for companion in exhibit.companions]
    names = [
        f"{stem}.csv",
        *(["published.csv"] if exhibit.published else []),
        *([CLAIMS] if exhibit.verdicts else []),
        *(f"{name}.{kind}" for name in (stem, *companions) for kind in ("png", "svg")),
        *(f"{companion.name}.csv" for companion in exhibit.companions if companion.read),
        *(MADE.format(protocol) for protocol in exhibit.provenance if exhibit.part != STUDIES),
    ]
    return {name: f"{folder}/{name}" for name in (copies(exhibit) if exhibit.shipped else names)}


def _picture(exhibit: Exhibit) -> dict[str, Any]:
    """Return the picture, and a version with one column for narrow screens, if there is one."""
    axes, name = exhibit.figure.axes, exhibit.figure.id
    series = ", ".join(dict.fromkeys(row.series for row in exhibit.rows))
    if exhibit.shipped:
        pictures = [
            exhibit.pictures[end] for end in (name, name + NARROW) if end in exhibit.pictures
        ]
        wide, *others = map(_embed_png, pictures)
    else:
        wide, *others = (
            embed(exhibit.draw(titled=False, columns=columns)) for columns in (None, 1)
        )
    alt = f"{exhibit.figure.title}: {axes.y} against {axes.x}, for {series}."
    return {**wide, "alt": alt, "narrow": [narrow["src"] for narrow in others]}


def _companions(exhibit: Exhibit) -> list[dict[str, Any]]:
    """Return the pictures that go with a figure."""
    pictures = {companion: embed(drawn) for companion, drawn in exhibit.companions.items()}
    for companion in exhibit.figure.companions:
        if companion.name in exhibit.pictures:
            pictures[companion] = _embed_png(exhibit.pictures[companion.name])
    return [
        {
            **picture,
            "alt": f"{exhibit.figure.title}: {companion.caption}",
            "caption": companion.caption,
        }
        for companion, picture in pictures.items()
    ]


def _embed_png(content: bytes) -> dict[str, Any]:
    """Embed a picture that was stored as PNG, in the size of one that is drawn."""
    pixels = int.from_bytes(content[16:20])  # the width, in the header of every PNG file
    code = b64encode(content).decode()
    return {"src": f"data:image/png;base64,{code}", "width": round(pixels * PER_INCH / DPI)}


def _claims(exhibit: Exhibit) -> list[dict[str, Any]]:
    """Return the figure's claims in brief; the table of all claims has the numbers."""
    brief = []
    for verdicts in verdicts_by_claim(exhibit):
        badges = []
        for origin in versions(exhibit):
            protocols_by_verdict: dict[str, list[str]] = {}
            for protocol, by_origin in verdicts.items():
                if origin in by_origin:
                    protocols_by_verdict.setdefault(by_origin[origin].verdict, []).append(protocol)
            for verdict, protocols in protocols_by_verdict.items():
                kind, sign = SIGNS[verdict]
                words = protocols if len(protocols_by_verdict) > 1 else []  # all protocols agree
                words = words + [origin] * (origin == "shipped")
                badges.append(Badge(kind, ", ".join([sign, *words])))
        verdict = first(verdicts)
        row_id = place(exhibit.figure, verdict)
        brief.append({"sentence": verdict.sentence, "place": row_id, "badges": badges})
    return brief


def _notes(figure: Figure, protocols: Iterable[str]) -> dict[str, str]:
    """Return the figure's notes on its protocols; a note on several protocols appears once."""
    protocols_by_note: dict[str, list[str]] = {}
    for protocol in protocols:
        protocols_by_note.setdefault(figure.notes.get(protocol, ""), []).append(protocol)
    return {
        f"Protocol{'s'[: len(names) - 1]} {' and '.join(names)}" if any(names) else "Note": note
        for note, names in protocols_by_note.items()
        if note
    }


def _sources(figure: Figure, beneath: Sequence[Published]) -> dict[str, str]:
    """Return the sources of published curves."""
    sources = {}
    for published in beneath:
        panel = figure.panels.get(published.panel, published.panel)
        name = "Published" if len(beneath) == 1 else f"Published, {panel}"
        source = published.source[0].upper() + published.source[1:]
        sources[name] = f"{source}; {published.runs} runs. {published.note}"
    return sources


def _compared(exhibit: Exhibit) -> str:
    """Say how many curves match the published ones, under each protocol."""
    by_protocol: dict[str, list[bool]] = {}
    for match in exhibit.matches:
        by_protocol.setdefault(match.protocol, []).append(match.matches)
    counts = [f"{sum(good)} of {len(good)} ({name})" for name, good in by_protocol.items()]
    return f"curves that match the published ones: {', '.join(counts)}" if counts else ""


def _provenance_row(
    exhibit: Exhibit, origin: str, protocol: str, provenance: Provenance
) -> dict[str, Any]:
    """Return a row of the table that says how a figure was made."""
    full = versions(exhibit)[origin].paper_runs(provenance)
    other = full is not None and provenance.runs != full
    return {
        "protocol": protocol,
        "origin": origin,
        "scale": provenance.scale,
        "badge": Badge("quick", provenance.scale) if provenance.scale == "quick" else None,
        "runs": f"{provenance.runs} (paper: {full})" if other else f"{provenance.runs}",
        "seed": provenance.seed,
        "time": f"{duration(provenance.seconds)} of {kind_of_time(provenance)}",
        "finished": moment(provenance.finished),
        "version": code_of(provenance),
    }


def kind_of_time(provenance: Provenance) -> str:
    """Say which time was measured: tasks on a GPU were timed by the clock."""
    return "GPU time" if provenance.options.get("device") == "cuda" else "processor time"


def moment(iso: str) -> str:
    """Write a time, given as ISO 8601, for a reader."""
    return iso.replace("T", " ").replace("Z", " UTC").replace("+00:00", " UTC")


def is_quick(exhibits: Iterable[Exhibit]) -> bool:
    """Return True if something was run at the quick scale."""
    return any(
        provenance.scale == "quick"
        for exhibit in exhibits
        for provenance in exhibit.provenance.values()
    )


def protocols_of(exhibit: Exhibit) -> list[str]:
    """Return the protocols of a figure, made here or shipped."""
    return list(
        dict.fromkeys(name for version in versions(exhibit).values() for name in version.provenance)
    )


def code_of(provenance: Provenance) -> str:
    """Return the version of the code with its commit; a wheel has none."""
    if not provenance.results:  # a study that is not the paper's, or a record of an earlier version
        return provenance.version
    checkout = f"commit {provenance.commit}" if provenance.commit else "not a git checkout"
    return f"{provenance.version}, {checkout}"


def _mark(exhibit: Exhibit) -> str:
    """Say where a shipped figure comes from; protocols of the same origin are mentioned once."""
    protocols_by_origin: dict[str, list[str]] = {}
    for protocol, provenance in exhibit.provenance.items():
        how = (
            f"{provenance.runs} runs",
            f"seed {provenance.seed}",
            provenance.finished[:10],
            provenance.machine,
        )
        protocols_by_origin.setdefault(
            f"scale paper, {', '.join(how)}, gvf {code_of(provenance)}", []
        ).append(protocol)
    if len(protocols_by_origin) == 1:
        return next(iter(protocols_by_origin))
    return "; ".join(
        f"protocol {' and '.join(names)}: {text}" for text, names in protocols_by_origin.items()
    )
