"""The page: every figure, its claims and its provenance, in one HTML file.

The file contains its pictures, so it opens without a network and on a phone, and it prints. It runs
no scripts; each figure that was made here carries its data as JSON. The functions here prepare
plain data, and those of :mod:`gvf_lab.report.verdict_tables` write the numbers in words. The
templates in ``templates/`` have the prose and lay everything out with jinja2, which escapes all
text. A figure that was made here and one that was shipped are shown in one section, in this order.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from gvf.common.page_parts import css, templates
from gvf.common.plot_style import PER_INCH, embed
from gvf.common.progress import duration
from gvf_lab.domain import Protocol
from gvf_lab.figure.claim import LEVEL
from gvf_lab.figure.figure import Figure
from gvf_lab.figure.published import AGREEMENT_ERRORS, MATCHING_SHARE, Published
from gvf_lab.paper.paper_sentences import sentences
from gvf_lab.report import sentence_verdicts, verdict_tables
from gvf_lab.report.exhibit import (
    CLAIMS,
    MADE,
    NARROW,
    PAPER,
    STUDIES,
    Exhibit,
    Provenance,
    Version,
    copies,
    theory,
)
from gvf_lab.report.sentence_verdicts import counted
from gvf_lab.report.verdict_tables import (
    SIGNS,
    Badge,
    first,
    must_match,
    place,
    published_curves,
    verdicts_by_claim,
)

DPI = 150
"""Pixels per inch of a picture that is stored as PNG."""


def page(
    exhibits: Sequence[Exhibit],
    *,
    title: str,
    command: str,
    version: str,
    machine: str,
    seconds: float,
) -> str:
    """Write one self-contained HTML page.

    Args:
        exhibits: the figures. The page has a heading for each ``part`` that they name: first those
            of the paper (`PAPER`), then others in the given order.
        title: the title of the page.
        command: the command that made it.
        version: the version of gvf.
        machine: a description of the machine.
        seconds: the processor time behind all results.

    Example:
        >>> from gvf_lab.report.page import page
        >>> text = page([], title="Runs & claims", command="gvf reproduce", version="1.0",
        ...             machine="2 processors", seconds=200.0)
        >>> "<h1>Runs &amp; claims</h1>" in text, "3 min 20 s" in text
        (True, True)
    """
    parts = _parts(exhibits)
    ordered = [exhibit for of_part in parts.values() for exhibit in of_part]
    of_paper = [exhibit for exhibit in ordered if exhibit.part in PAPER]
    figures = [exhibit for exhibit in ordered if exhibit.part != STUDIES]
    now, shipped = (
        [exhibit.versions[origin] for exhibit in ordered if origin in exhibit.versions]
        for origin in ("now", "shipped")
    )
    template = templates("gvf_lab.report").get_template("page.html.jinja")
    return template.render(
        title=title,
        css=css(),
        command=command,
        version=version,
        machine=machine,
        time=duration(seconds) if seconds else "",
        of_paper=bool(of_paper),
        of_charts=len(figures) > len(of_paper),
        of_studies=len(figures) < len(ordered),
        quick=is_quick(now),
        counts=_counts(now)
        | {f"{name}, shipped": badges for name, badges in _counts(shipped).items()},
        matched={
            words: badges
            for words, badges in (("", _matched(now)), (", shipped", _matched(shipped)))
            if badges
        },
        settings=_settings(now) | _shipped(figures),
        agreement=_agreement(shipped),
        origins={"now": bool(now), "shipped": bool(shipped)},
        protocols=_protocols(of_paper),
        level=f"{LEVEL:.0%}",
        summary=sentence_verdicts.summary(sentences(), of_paper) if of_paper else None,
        sentences=sentence_verdicts.table(sentences(), of_paper) if of_paper else [],
        theory=_theory() if of_paper else None,
        claims=verdict_tables.claims(ordered),
        within=f"{AGREEMENT_ERRORS:g}",
        enough=f"{MATCHING_SHARE:.0%}",
        matches=verdict_tables.matches(ordered),
        parts={heading: list(map(figure_section, of_part)) for heading, of_part in parts.items()},
    )


def _parts(exhibits: Iterable[Exhibit]) -> dict[str, list[Exhibit]]:
    """Group figures by heading, without empty headings."""
    parts: dict[str, list[Exhibit]] = {heading: [] for heading in PAPER}
    for exhibit in exhibits:
        parts.setdefault(exhibit.part, []).append(exhibit)
    return {heading: of_part for heading, of_part in parts.items() if of_part}


def _counts(versions: Iterable[Version]) -> dict[str, list[Badge]]:
    """Count the verdicts that count, by protocol; "not judged" appears only if there are any."""
    counts = Counter((v.protocol, v.verdict) for version in versions for v in counted(version))
    words = dict(zip(SIGNS, ("hold", "fail", "undecided", "not judged"), strict=True))
    return {
        protocol: [
            Badge(sign.kind, f"{sign.text[0]} {counts[protocol, verdict]} {words[verdict]}")
            for verdict, sign in SIGNS.items()
            if counts[protocol, verdict] or verdict != "not judged"
        ]
        for protocol in dict.fromkeys(protocol for protocol, _ in counts)
    }


def _matched(versions: Iterable[Version]) -> list[Badge]:
    """Count the published curves that must match, and the others."""
    must, good, others, alike = published_curves(versions)
    kind, sign = ("good", "✓") if good == must else ("bad", "✗")
    badges = [Badge(kind, f"{sign} {good} of {must} that must match do")] if must else []
    return badges + ([Badge("open", f"{alike} of {others} others match")] if others else [])


def _theory() -> dict[str, Any]:
    """Return the shipped outcome of ``gvf verify``, with a badge for each row."""
    outcome = theory()
    signs = {True: SIGNS["holds"], False: SIGNS["fails"]}
    findings = {
        name: finding | {"rows": [row | {"badge": signs[row["holds"]]} for row in finding["rows"]]}
        for name, finding in outcome["findings"].items()
    }
    return outcome | {"findings": findings}


def _settings(versions: Iterable[Version]) -> dict[str, str]:
    """Return the scales, seeds and last completion of all results, as far as they are known."""
    origins = [provenance for version in versions for provenance in version.provenance.values()]
    settings = {
        "Scale": ", ".join(
            sorted({provenance.scale for provenance in origins if provenance.scale})
        ),
        "Seeds": ", ".join(map(str, sorted({provenance.seed for provenance in origins}))),
        "Finished": moment(max((provenance.finished for provenance in origins), default="")),
    }
    return {name: text for name, text in settings.items() if text}


def _protocols(exhibits: Sequence[Exhibit]) -> dict[str, Any]:
    """Return the protocols in use, and the worlds in which both give the same numbers."""
    versions = [version for exhibit in exhibits for version in exhibit.versions.values()]
    used = {protocol for version in versions for protocol in version.provenance}
    return {
        "used": [protocol.value for protocol in Protocol if protocol in used],
        "same": list(dict.fromkeys(version.figure.world for version in versions if version.once)),
    }


def _shipped(exhibits: Sequence[Exhibit]) -> dict[str, str]:
    """Count figures by origin, and say where the shipped ones come from."""
    counts = Counter(next(iter(exhibit.versions), "absent") for exhibit in exhibits)
    words = {"now": "made now", "shipped": "shown as shipped", "absent": "not shipped yet"}
    counts_text = [f"{counts[origin]} {text}" for origin, text in words.items() if counts[origin]]
    shipped = [exhibit.shipped for exhibit in exhibits if exhibit.shipped is not None]
    how = [provenance for version in shipped for provenance in version.provenance.values()]
    if not how:
        return {"Figures": ", ".join(counts_text)} if counts_text else {}
    days = sorted({provenance.finished[:10] for provenance in how})
    spent: dict[tuple[str, str], float] = {}
    for provenance in (how for version in shipped for how in version.distinct.values()):
        machine = (provenance.machine, kind_of_time(provenance))
        spent[machine] = spent.get(machine, 0.0) + provenance.seconds
    facts = [
        f"{len(shipped)} figures",
        " to ".join(dict.fromkeys((days[0], days[-1]))),
        *(f"gvf {code_of(provenance)}" for provenance in how),
        *(f"{machine}: {duration(time)} of {kind}" for (machine, kind), time in spent.items()),
    ]
    return {"Figures": ", ".join(counts_text), "Shipped": "; ".join(dict.fromkeys(facts))}


def _agreement(shipped: Iterable[Version]) -> str:
    """Say how many shipped verdicts other seeds share; "" if there is one seed only."""
    every = [by_seed for version in shipped for by_seed in version.seeds.values()]
    pairs = Counter(
        (seed, verdict == next(iter(by_seed.values())))
        for by_seed in every
        for seed, verdict in [*by_seed.items()][1:]
    )
    if not pairs:
        return ""
    shares = [
        f"with seed {seed}, {pairs[seed, True]} of {pairs[seed, True] + pairs[seed, False]}"
        for seed in sorted({seed for seed, _ in pairs})
    ]
    alone = sum(len(by_seed) == 1 for by_seed in every)
    others = f" The other {alone} were reached with one seed only." if alone else ""
    return f"Shipped verdicts that another seed shares: {'; '.join(shares)}.{others}"


def figure_section(exhibit: Exhibit) -> dict[str, Any]:
    """Return the data of a figure's section, for the template."""
    figure, versions = exhibit.figure, exhibit.versions
    under = protocols_of(exhibit)
    beneath = [theirs for theirs in figure.published if {*theirs.protocols} & {*under}]
    origins = [
        (origin, *how) for origin, version in versions.items() for how in version.distinct.items()
    ]
    return {
        "figure": figure,
        "title": next((version.title for version in versions.values()), figure.title),
        "origin": (" and ".join(versions) or "not shipped yet") if exhibit.part != STUDIES else "",
        "absent": not versions,
        "quick": is_quick([exhibit.made] if exhibit.made else []),
        "versions": [_version_pictures(origin, version) for origin, version in versions.items()],
        "grey": bool(beneath),
        "same": _same(exhibit),
        "claims": _claims(exhibit),
        "notes": _notes(figure, under) | _sources(figure, beneath),
        "streams": list(dict.fromkeys(how.stream for _, _, how in origins if how.stream)),
        "compared": _compared(versions.values()),
        "origins": [_provenance_row(exhibit, *each) for each in origins],
        "commands": list(dict.fromkeys(how.command for _, _, how in origins if how.command)),
        "files": {origin: _files(origin, version) for origin, version in versions.items()},
        "data": data(exhibit.made, exhibit.part) if exhibit.made else None,
    }


def _version_pictures(origin: str, version: Version) -> dict[str, Any]:
    """Return the pictures of a figure as it was made here or shipped."""
    return {
        "mark": _mark(version) if origin == "shipped" else "",
        "picture": _picture(origin, version),
        "companions": _companions(version),
    }


def _same(exhibit: Exhibit) -> list[str]:
    """Return the protocols under which the results are the shipped ones, bit for bit."""
    if exhibit.made is None or exhibit.shipped is None:
        return []
    shipped = {name: how.results for name, how in exhibit.shipped.provenance.items()}
    return [
        protocol
        for protocol, provenance in exhibit.made.provenance.items()
        if provenance.results and provenance.results == shipped.get(protocol)
    ]


def _files(origin: str, version: Version) -> dict[str, str]:
    """Return the paths of a figure's files from the page, by name."""
    folder, stem = version.place
    if origin == "shipped":
        return {name: f"{folder}/{name}" for name in copies(version.figure)}
    companions = [companion.name for companion in version.companions]
    names = [
        f"{stem}.csv",
        *(["published.csv"] if version.published else []),
        *([CLAIMS] if version.verdicts else []),
        *(f"{name}.{kind}" for name in (stem, *companions) for kind in ("png", "svg")),
        *(f"{companion.name}.csv" for companion in version.companions if companion.read),
        *(
            MADE.format(protocol)
            for protocol in version.provenance
            if version.figure.part != STUDIES
        ),
    ]
    return {name: f"{folder}/{name}" for name in names}


def _picture(origin: str, version: Version) -> dict[str, Any]:
    """Return the picture, and a version with one column for narrow screens, if there is one."""
    axes, name = version.figure.axes, version.figure.id
    series = ", ".join(dict.fromkeys(row.series for row in version.rows))
    if origin == "shipped":
        pictures = [
            version.pictures[end] for end in (name, name + NARROW) if end in version.pictures
        ]
        wide, *others = map(_embed_png, pictures)
    else:
        wide, *others = (
            embed(version.draw(titled=False, columns=columns)) for columns in (None, 1)
        )
    alt = f"{version.figure.title}: {axes.y} against {axes.x}, for {series}."
    return {**wide, "alt": alt, "narrow": [narrow["src"] for narrow in others]}


def _companions(version: Version) -> list[dict[str, Any]]:
    """Return the pictures that go with a figure."""
    pictures = {companion: embed(drawn) for companion, drawn in version.companions.items()}
    for companion in version.figure.companions:
        if companion.name in version.pictures:
            pictures[companion] = _embed_png(version.pictures[companion.name])
    return [
        {
            **picture,
            "alt": f"{version.figure.title}: {companion.caption}",
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
        for origin in exhibit.versions:
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


def _compared(versions: Iterable[Version]) -> str:
    """Say how many curves match the published ones, under each protocol."""
    by_protocol: dict[str, list[bool]] = {}
    for match in next((version.matches for version in versions if version.matches), ()):
        by_protocol.setdefault(match.protocol, []).append(match.matches)
    counts = [f"{sum(good)} of {len(good)} ({name})" for name, good in by_protocol.items()]
    return f"curves that match the published ones: {', '.join(counts)}" if counts else ""


def _provenance_row(
    exhibit: Exhibit, origin: str, protocol: str, provenance: Provenance
) -> dict[str, Any]:
    """Return a row of the table that says how a figure was made."""
    full = exhibit.versions[origin].paper_runs(provenance)
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


def is_quick(versions: Iterable[Version]) -> bool:
    """Return True if something was run at the quick scale."""
    return any(
        provenance.scale == "quick"
        for version in versions
        for provenance in version.provenance.values()
    )


def protocols_of(exhibit: Exhibit) -> list[str]:
    """Return the protocols of a figure, made here or shipped."""
    return list(
        dict.fromkeys(name for version in exhibit.versions.values() for name in version.provenance)
    )


def code_of(provenance: Provenance) -> str:
    """Return the version of the code with its commit; a wheel has none."""
    if not provenance.results:  # a study that is not the paper's, or a record of an earlier version
        return provenance.version
    checkout = f"commit {provenance.commit}" if provenance.commit else "not a git checkout"
    return f"{provenance.version}, {checkout}"


def _mark(version: Version) -> str:
    """Say where a shipped figure comes from; protocols of the same origin are mentioned once."""
    protocols_by_origin: dict[str, list[str]] = {}
    for protocol, provenance in version.provenance.items():
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


def data(version: Version, part: str) -> dict[str, Any]:
    """Return a version's points, published points, verdicts, matches and provenance, for JSON.

    Points have the columns of the CSV file as keys. ``made`` has an entry for each protocol.
    """
    figure = version.figure
    carried = {
        "id": figure.id,
        "title": version.title,
        "where": figure.where,
        "part": part,
        "axes": asdict(figure.axes),
        "rows": [row._asdict() for row in version.rows],
        "published": [row._asdict() for row in version.published],
        "verdicts": [asdict(verdict) for verdict in version.verdicts],
        "matches": [
            {
                **asdict(match),
                "matches": match.matches,
                "must_match": must_match(figure, match),
            }
            for match in version.matches
        ],
        "made": {
            protocol: asdict(provenance) for protocol, provenance in version.provenance.items()
        },
    }
    return plain(carried)


def plain(value: Any) -> Any:
    """Convert to values that JSON knows.

    JSON has no numbers that are not finite. Here nan is null, infinity is the string "inf" and
    minus infinity is "-inf"; the CSV files beside the page have an empty cell, "inf" and "-inf". A
    verdict is the same as in ``claims.json``: there every number that is not finite is null.

    Example:
        >>> from gvf_lab.report.page import plain
        >>> plain({"y": (0.5, float("inf"), -float("inf"), float("nan"))})
        {'y': [0.5, 'inf', '-inf', None]}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(inside) for key, inside in value.items()}
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | int):
        return value
    return [plain(inside) for inside in value] if isinstance(value, Iterable) else str(value)
