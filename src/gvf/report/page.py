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
from gvf.figure.claim import LEVEL
from gvf.figure.figure import Figure
from gvf.figure.picture import render
from gvf.figure.published import AGREEMENT_ERRORS, MATCHING_SHARE, Published
from gvf.report import tables
from gvf.report.data import data
from gvf.report.evidence import CLAIMS, MADE, NARROW, copies
from gvf.report.exhibit import Exhibit, Provenance
from gvf.report.tables import SIGNS, Badge, by_claim, first, must_match, place, versions

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
DPI = 150
"""Pixels per inch of a picture that is stored as PNG."""


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
    now, shipped = (
        [versions(one)[origin] for one in ordered if origin in versions(one)]
        for origin in ("now", "shipped")
    )
    css = (files("gvf.report") / "page.css").read_text(encoding="utf-8")
    template = _templates().get_template("page.html.jinja")
    return template.render(
        title=title,
        css=css,
        command=command,
        version=version,
        machine=machine,
        time=duration(seconds) if seconds else "",
        of_paper=bool(of_paper),
        own=len(of_paper) < len(ordered),
        quick=_quick(now),
        counts=_counts(now) | {f"{name}, shipped": told for name, told in _counts(shipped).items()},
        matched={
            words: badge
            for words, badge in (("", _matched(now)), (", shipped", _matched(shipped)))
            if badge
        },
        settings=_settings(now) | _shipped(of_paper),
        agreement=_agreement(shipped),
        origins={"now": bool(now), "shipped": bool(shipped)},
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
    used = {protocol for one in shown for protocol in _made_under(one)}
    return {f"Protocol {name}": said for name, said in PROTOCOLS.items() if name in used}


def _made_under(one: Exhibit) -> list[str]:
    """Return the protocols of a figure, made here or shipped."""
    return list(dict.fromkeys(name for version in versions(one).values() for name in version.made))


def _shipped(shown: Sequence[Exhibit]) -> dict[str, str]:
    """Count the paper's figures by origin, and say where the shipped ones come from."""
    counts = Counter(next(iter(versions(one)), "absent") for one in shown)
    words = {"now": "made now", "shipped": "shown as shipped", "absent": "not shipped yet"}
    told = [f"{counts[origin]} {said}" for origin, said in words.items() if counts[origin]]
    there = [versions(one)["shipped"] for one in shown if "shipped" in versions(one)]
    how = [made for one in there for made in one.made.values()]
    if not how:
        return {"Figures": ", ".join(told)} if told else {}
    days = sorted({made.finished[:10] for made in how})
    time = duration(sum(made.seconds for made in how))
    facts = [_code(made) for made in how] + [made.machine for made in how]
    said = [f"{len(there)} figures", " to ".join(dict.fromkeys((days[0], days[-1]))), *facts]
    where = "; ".join(dict.fromkeys([*said, f"{time} of processor time"]))
    return {"Figures": ", ".join(told), "Shipped": where}


def _code(made: Provenance) -> str:
    """Return the version of the code, with its commit."""
    return f"gvf {made.version}, {f'commit {made.commit}' if made.commit else 'no commit known'}"


def _mark(one: Exhibit) -> str:
    """Say where a shipped figure comes from; protocols of the same origin are mentioned once."""
    said: dict[str, list[str]] = {}
    for protocol, made in one.made.items():
        how = (f"{made.runs} runs", f"seed {made.seed}", made.finished[:10], made.machine)
        said.setdefault(f"the paper's scale, {', '.join(how)}, {_code(made)}", []).append(protocol)
    if len(said) == 1:
        return next(iter(said))
    return "; ".join(f"protocol {' and '.join(names)}: {text}" for text, names in said.items())


def _agreement(shipped: Iterable[Exhibit]) -> str:
    """Say how many shipped verdicts are the same under all seeds; "" if there is one seed only."""
    several = [told for one in shipped for told in one.seeds.values() if len(told) > 1]
    if not several:
        return ""
    same = sum(len(set(told.values())) == 1 for told in several)
    seeds = ", ".join(map(str, sorted({seed for told in several for seed in told})))
    return f"{same} of {len(several)} shipped verdicts are the same under the seeds {seeds}"


def _article(one: Exhibit) -> dict[str, Any]:
    """Return the data that the template of an article shows."""
    figure, both = one.figure, versions(one)
    under = _made_under(one)
    beneath = [theirs for theirs in figure.published if {*theirs.protocols} & {*under}]
    matches = [match for version in both.values() for match in version.matches]
    good = sum(match.matches for match in matches)
    made = [(origin, *how) for origin, version in both.items() for how in version.made.items()]
    return {
        "figure": figure,
        "title": next((version.title for version in both.values()), figure.title),
        "origin": (" and ".join(both) or "not shipped yet") if one.part in PAPER else "",
        "absent": not both,
        "quick": _quick([one]),
        "versions": [_version(version) for version in both.values()],
        "grey": bool(beneath),
        "same": _same(one),
        "claims": _claims(one),
        "notes": _notes(figure, under) | _sources(figure, beneath),
        "streams": list(dict.fromkeys(how.stream for _, _, how in made if how.stream)),
        "compared": f"{good} of {len(matches)} curves match the published ones" if matches else "",
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
        *(MADE.format(protocol) for protocol in one.made if one.part in PAPER),
    ]
    return {name: f"{folder}/{name}" for name in (copies(one) if one.shipped else names)}


def _picture(one: Exhibit) -> dict[str, Any]:
    """Return the picture, and a version with one column for narrow screens."""
    axes, name = one.figure.axes, one.figure.id
    series = ", ".join(dict.fromkeys(row.series for row in one.rows))
    if one.shipped:
        wide, narrow = (_embed_png(one.pictures[name + end]) for end in ("", NARROW))
    else:
        wide, narrow = (_embed(one.draw(titled=False, columns=columns)) for columns in (None, 1))
    alt = f"{one.figure.title}: {axes.y} against {axes.x}, for {series}."
    return {**wide, "alt": alt, "narrow": narrow["src"]}


def _companions(one: Exhibit) -> list[dict[str, Any]]:
    """Return the pictures that go with a figure."""
    pictures = {companion: _embed(drawn) for companion, drawn in one.companions.items()}
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


def _embed(picture: MatplotlibFigure) -> dict[str, Any]:
    """Embed a picture in an address, so that names inside it cannot clash with others."""
    code = b64encode(render(picture, "svg")).decode()
    width = round(picture.get_figwidth() * PER_INCH)
    return {"src": f"data:image/svg+xml;base64,{code}", "width": width}


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


def _made(one: Exhibit, origin: str, protocol: str, made: Provenance) -> dict[str, Any]:
    """Return a row of the table that says how a figure was made."""
    full = versions(one)[origin].paper_runs(protocol)
    other = full is not None and made.runs != full
    return {
        "protocol": protocol,
        "origin": origin,
        "scale": made.scale,
        "badge": Badge("quick", made.scale) if made.scale == "quick" else None,
        "runs": f"{made.runs} (paper: {full})" if other else f"{made.runs}",
        "seed": made.seed,
        "time": duration(made.seconds),
        "finished": _moment(made.finished),
        "version": f"{made.version}{f', {made.commit}' if made.commit else ''}",
    }
