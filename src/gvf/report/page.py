"""The page: every figure, its claims and its provenance, in one HTML file.

The file contains its pictures, so it opens without a network and on a phone, and it prints. It runs
no scripts; each figure that was made here carries its data as JSON (:mod:`gvf.report.data`). The
functions here and in :mod:`gvf.report.article` prepare plain data, and those of
:mod:`gvf.report.tables` write the numbers in words. The templates in ``templates/`` lay them out
with jinja2, which escapes all text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from gvf.common.page import css, templates
from gvf.common.progress import duration
from gvf.figure.interval import LEVEL
from gvf.figure.published import AGREEMENT_ERRORS, MATCHING_SHARE
from gvf.paper.sentences import sentences
from gvf.report import sentences as sentence_tables
from gvf.report import tables
from gvf.report.article import article, code_of, is_quick, kind_of_time, made_under, moment
from gvf.report.evidence import theory
from gvf.report.exhibit import PAPER, STUDIES, Exhibit
from gvf.report.sentences import counted
from gvf.report.tables import SIGNS, Badge, published_curves, versions

PROTOCOLS = {
    "paper": "the paper's text, with correct true values. The text leaves much open: all grids of "
    "step sizes but that of WIS-TD(0), the number of updates on the chain, window and mini-batch "
    "of the continuous rooms, nearly everything of the racing car. These settings are those of the "
    "authors' code where it has them, and ours elsewhere. This is what we stand behind.",
    "authors": "the settings, and the defects, under which the authors' curves come out.",
}
WORDS = {
    "Pairs easy, hard, hardest": "pairs of policies on the chain, with ratios of up to 1.8, 9 and "
    "99. Figure 4 of the paper shows the pair hard. Other pairs are written as target/behaviour.",
    "Best step size": "the one of the grid with the smallest mean error, for each method.",
    "Usable": "a step size whose error is at most twice the method's own smallest error, and at "
    "most half-way from that to the error of not learning (step size 0). The wider range is the "
    "one with the larger quotient of its ends. A method that is bad everywhere can have a wide "
    "one.",
    "Accurate over": "as usable, but by the smallest error of both methods that are compared.",
    "Bears": "step sizes up to the one at which the error passes 1, where methods are about to "
    "diverge. It says nothing of errors below 1.",
    "Usable rates (racing car)": "learning rates with an error below that of the best constant.",
    "One by one": "each transition of a mini-batch makes an update of its own (the paper: "
    "incremental).",
    "Clip": "the ratio at which V-trace cuts larger ones: 1.0, or .5 or .9 of the largest possible "
    "(max). The smaller the clip, the harder.",
    "By the trace": "the variance of an update is the trace of its covariance, as the paper "
    "defines it. Without these words it is the variance of its L1 norm, as in the authors' code "
    "and curves.",
    "Fewest, most updates": "386 and 99,000 in the continuous rooms.",
}
"""Words that the sentences of claims use."""


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
    figures = [one for one in ordered if one.part != STUDIES]
    now, shipped = (
        [versions(one)[origin] for one in ordered if origin in versions(one)]
        for origin in ("now", "shipped")
    )
    template = templates("gvf.report").get_template("page.html.jinja")
    return template.render(
        title=title,
        css=css(),
        command=command,
        version=version,
        machine=machine,
        time=duration(seconds) if seconds else "",
        of_paper=bool(of_paper),
        of_charts=len(figures) > len(of_paper),
        own=len(figures) < len(ordered),
        quick=is_quick(now),
        counts=_counts(now) | {f"{name}, shipped": told for name, told in _counts(shipped).items()},
        matched={
            words: told
            for words, told in (("", _matched(now)), (", shipped", _matched(shipped)))
            if told
        },
        settings=_settings(now) | _shipped(figures),
        agreement=_agreement(shipped),
        origins={"now": bool(now), "shipped": bool(shipped)},
        protocols=_protocols(of_paper),
        level=f"{LEVEL:.0%}",
        words=WORDS,
        summary=sentence_tables.summary(sentences(), of_paper) if of_paper else None,
        sentences=sentence_tables.table(sentences(), of_paper) if of_paper else [],
        theory=_theory() if of_paper else None,
        claims=tables.claims(ordered),
        within=f"{AGREEMENT_ERRORS:g}",
        enough=f"{MATCHING_SHARE:.0%}",
        matches=tables.matches(ordered),
        parts={heading: list(map(article, there)) for heading, there in parts.items()},
    )


def _parts(shown: Iterable[Exhibit]) -> dict[str, list[Exhibit]]:
    """Group figures by heading, without empty headings."""
    parts: dict[str, list[Exhibit]] = {heading: [] for heading in PAPER}
    for one in shown:
        parts.setdefault(one.part, []).append(one)
    return {heading: there for heading, there in parts.items() if there}


def _counts(shown: Iterable[Exhibit]) -> dict[str, list[Badge]]:
    """Count the verdicts that count, by protocol; "not judged" appears only if there are any."""
    counts = Counter((v.protocol, v.verdict) for one in shown for v in counted(one))
    words = dict(zip(SIGNS, ("hold", "fail", "undecided", "not judged"), strict=True))
    return {
        protocol: [
            Badge(sign.kind, f"{sign.text[0]} {counts[protocol, verdict]} {words[verdict]}")
            for verdict, sign in SIGNS.items()
            if counts[protocol, verdict] or verdict != "not judged"
        ]
        for protocol in dict.fromkeys(protocol for protocol, _ in counts)
    }


def _matched(shown: Iterable[Exhibit]) -> list[Badge]:
    """Count the published curves that must match, and the others."""
    must, good, others, alike = published_curves(shown)
    kind, sign = ("good", "✓") if good == must else ("bad", "✗")
    told = [Badge(kind, f"{sign} {good} of {must} that must match do")] if must else []
    return told + ([Badge("open", f"{alike} of {others} others match")] if others else [])


def _theory() -> dict[str, Any]:
    """Return the shipped outcome of ``gvf verify``, with a badge for each row."""
    told = theory()
    signs = {True: SIGNS["holds"], False: SIGNS["fails"]}
    findings = {
        name: one | {"rows": [row | {"badge": signs[row["holds"]]} for row in one["rows"]]}
        for name, one in told["findings"].items()
    }
    return told | {"findings": findings}


def _settings(shown: Iterable[Exhibit]) -> dict[str, str]:
    """Return the scales, seeds and last completion of all results, as far as they are known."""
    made = [one for there in shown for one in there.made.values()]
    settings = {
        "Scale": ", ".join(sorted({one.scale for one in made if one.scale})),
        "Seeds": ", ".join(map(str, sorted({one.seed for one in made}))),
        "Finished": moment(max((one.finished for one in made), default="")),
    }
    return {name: said for name, said in settings.items() if said}


def _protocols(shown: Sequence[Exhibit]) -> dict[str, str]:
    """Describe the protocols in use, and name the figures in which both give the same numbers."""
    used = {protocol for one in shown for protocol in made_under(one)}
    told = {f"Protocol {name}": said for name, said in PROTOCOLS.items() if name in used}
    every = (version for one in shown for version in versions(one).values() if version.once)
    if same := list(dict.fromkeys(one.figure.world for one in every)):
        told["Both protocols"] = (
            f"{', '.join(same)}: settings and numbers are the same. They are listed and counted "
            "once, under protocol paper."
        )
    return told


def _shipped(shown: Sequence[Exhibit]) -> dict[str, str]:
    """Count figures by origin, and say where the shipped ones come from."""
    counts = Counter(next(iter(versions(one)), "absent") for one in shown)
    words = {"now": "made now", "shipped": "shown as shipped", "absent": "not shipped yet"}
    told = [f"{counts[origin]} {said}" for origin, said in words.items() if counts[origin]]
    there = [versions(one)["shipped"] for one in shown if "shipped" in versions(one)]
    how = [made for one in there for made in one.made.values()]
    if not how:
        return {"Figures": ", ".join(told)} if told else {}
    days = sorted({made.finished[:10] for made in how})
    spent: dict[tuple[str, str], float] = {}
    for made in (made for one in there for made in one.distinct.values()):
        machine = (made.machine, kind_of_time(made))
        spent[machine] = spent.get(machine, 0.0) + made.seconds
    said = [
        f"{len(there)} figures",
        " to ".join(dict.fromkeys((days[0], days[-1]))),
        *(f"gvf {code_of(made)}" for made in how),
        *(f"{machine}: {duration(time)} of {kind}" for (machine, kind), time in spent.items()),
    ]
    return {"Figures": ", ".join(told), "Shipped": "; ".join(dict.fromkeys(said))}


def _agreement(shipped: Iterable[Exhibit]) -> str:
    """Say how many shipped verdicts other seeds share; "" if there is one seed only."""
    every = [told for one in shipped for told in one.seeds.values()]
    pairs = Counter(
        (seed, verdict == next(iter(told.values())))
        for told in every
        for seed, verdict in [*told.items()][1:]
    )
    if not pairs:
        return ""
    said = [
        f"with seed {seed}, {pairs[seed, True]} of {pairs[seed, True] + pairs[seed, False]}"
        for seed in sorted({seed for seed, _ in pairs})
    ]
    alone = sum(len(told) == 1 for told in every)
    others = f" The other {alone} were reached with one seed only." if alone else ""
    return f"Shipped verdicts that another seed shares: {'; '.join(said)}.{others}"
