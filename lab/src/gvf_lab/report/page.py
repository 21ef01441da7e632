"""The page: every figure, its claims and its provenance, in one HTML file.

The file contains its pictures, so it opens without a network and on a phone, and it prints. It runs
no scripts; each figure that was made here carries its data as JSON
(:mod:`gvf_lab.report.figure_data`). The functions here and in :mod:`gvf_lab.report.figure_article`
prepare plain data, and those of :mod:`gvf_lab.report.verdict_tables` write the numbers in words.
The templates in ``templates/`` lay them out with jinja2, which escapes all text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from gvf.common.page_parts import css, templates
from gvf.common.progress import duration
from gvf_lab.figure.claim import LEVEL
from gvf_lab.figure.published import AGREEMENT_ERRORS, MATCHING_SHARE
from gvf_lab.paper.paper_sentences import sentences
from gvf_lab.report import sentence_verdicts, verdict_tables
from gvf_lab.report.evidence import theory
from gvf_lab.report.exhibit import PAPER, STUDIES, Exhibit
from gvf_lab.report.figure_article import (
    code_of,
    figure_section,
    is_quick,
    kind_of_time,
    moment,
    protocols_of,
)
from gvf_lab.report.sentence_verdicts import counted
from gvf_lab.report.verdict_tables import SIGNS, Badge, published_curves, versions

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
        [versions(exhibit)[origin] for exhibit in ordered if origin in versions(exhibit)]
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
        words=WORDS,
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


def _counts(exhibits: Iterable[Exhibit]) -> dict[str, list[Badge]]:
    """Count the verdicts that count, by protocol; "not judged" appears only if there are any."""
    counts = Counter((v.protocol, v.verdict) for exhibit in exhibits for v in counted(exhibit))
    words = dict(zip(SIGNS, ("hold", "fail", "undecided", "not judged"), strict=True))
    return {
        protocol: [
            Badge(sign.kind, f"{sign.text[0]} {counts[protocol, verdict]} {words[verdict]}")
            for verdict, sign in SIGNS.items()
            if counts[protocol, verdict] or verdict != "not judged"
        ]
        for protocol in dict.fromkeys(protocol for protocol, _ in counts)
    }


def _matched(exhibits: Iterable[Exhibit]) -> list[Badge]:
    """Count the published curves that must match, and the others."""
    must, good, others, alike = published_curves(exhibits)
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


def _settings(exhibits: Iterable[Exhibit]) -> dict[str, str]:
    """Return the scales, seeds and last completion of all results, as far as they are known."""
    origins = [provenance for exhibit in exhibits for provenance in exhibit.provenance.values()]
    settings = {
        "Scale": ", ".join(
            sorted({provenance.scale for provenance in origins if provenance.scale})
        ),
        "Seeds": ", ".join(map(str, sorted({provenance.seed for provenance in origins}))),
        "Finished": moment(max((provenance.finished for provenance in origins), default="")),
    }
    return {name: text for name, text in settings.items() if text}


def _protocols(exhibits: Sequence[Exhibit]) -> dict[str, str]:
    """Describe the protocols in use, and name the figures in which both give the same numbers."""
    used = {protocol for exhibit in exhibits for protocol in protocols_of(exhibit)}
    descriptions = {
        f"Protocol {name}": description for name, description in PROTOCOLS.items() if name in used
    }
    every = (
        version for exhibit in exhibits for version in versions(exhibit).values() if version.once
    )
    if same := list(dict.fromkeys(version.figure.world for version in every)):
        descriptions["Both protocols"] = (
            f"{', '.join(same)}: settings and numbers are the same. They are listed and counted "
            "once, under protocol paper."
        )
    return descriptions


def _shipped(exhibits: Sequence[Exhibit]) -> dict[str, str]:
    """Count figures by origin, and say where the shipped ones come from."""
    counts = Counter(next(iter(versions(exhibit)), "absent") for exhibit in exhibits)
    words = {"now": "made now", "shipped": "shown as shipped", "absent": "not shipped yet"}
    counts_text = [f"{counts[origin]} {text}" for origin, text in words.items() if counts[origin]]
    from_evidence = [
        versions(exhibit)["shipped"] for exhibit in exhibits if "shipped" in versions(exhibit)
    ]
    how = [provenance for exhibit in from_evidence for provenance in exhibit.provenance.values()]
    if not how:
        return {"Figures": ", ".join(counts_text)} if counts_text else {}
    days = sorted({provenance.finished[:10] for provenance in how})
    spent: dict[tuple[str, str], float] = {}
    for provenance in (
        provenance for exhibit in from_evidence for provenance in exhibit.distinct.values()
    ):
        machine = (provenance.machine, kind_of_time(provenance))
        spent[machine] = spent.get(machine, 0.0) + provenance.seconds
    facts = [
        f"{len(from_evidence)} figures",
        " to ".join(dict.fromkeys((days[0], days[-1]))),
        *(f"gvf {code_of(provenance)}" for provenance in how),
        *(f"{machine}: {duration(time)} of {kind}" for (machine, kind), time in spent.items()),
    ]
    return {"Figures": ", ".join(counts_text), "Shipped": "; ".join(dict.fromkeys(facts))}


def _agreement(shipped: Iterable[Exhibit]) -> str:
    """Say how many shipped verdicts other seeds share; "" if there is one seed only."""
    every = [by_seed for exhibit in shipped for by_seed in exhibit.seeds.values()]
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
