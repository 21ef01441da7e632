"""The paper's sentences on the page: a summary, and each sentence with what judges it.

A sentence is judged by what was made here and by what was shipped, under each protocol. It has a
verdict if every claim that judges it has one, or if those that have one decide: no other claim can
change that it holds in part. The summary takes shipped verdicts if they decide, since those are at
the paper's scale. It also says what was changed when results were known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from gvf_lab.domain import Protocol
from gvf_lab.figure.claim import Sentence, Verdict, weigh
from gvf_lab.figure.figure import Figure
from gvf_lab.paper import FIGURES, paper_sentences
from gvf_lab.report.exhibit import Exhibit, Version, theory
from gvf_lab.report.verdict_tables import SIGNS, Badge, place

SENTENCE_SIGNS = SIGNS | {
    "in part": Badge("quick", "± in part"),
    "": Badge("open", "… incomplete"),
}
"""The badge of each verdict on a sentence."""
WORDS = {"holds": "hold", "in part": "hold in part", "fails": "fail", "undecided": "undecided"}
"""The verdicts in the order of the summary, each with the words that follow a count."""
REFUTED = Badge("bad", "✗ refuted")
"""The badge of a sentence that arithmetic refutes."""
CONTRADICTED = Badge("bad", "≠ code or curves")
"""The badge of a sentence on the protocol that the authors' code or published curves contradict."""
UNTESTED = Badge("open", "– not tested")
"""The badge of a sentence that nothing judges."""
Decision = Literal["arithmetic", "code or curves", "theory", "nothing"]
"""The evidence that decides a sentence apart from claims."""
BADGES_WITHOUT_RESULTS: dict[Decision, Badge | None] = {
    "arithmetic": REFUTED,
    "code or curves": CONTRADICTED,
    "nothing": None,
}
"""The badges of sentences by what decides them, if no result is needed."""
NAMED = 2
"""The number of failing claims that the summary names."""

Judged = list[tuple[Figure, Verdict]]
"""Verdicts on claims, each with its figure."""


def counted(version: Version) -> list[Verdict]:
    """Return the verdicts of a figure that count.

    Left out are claims that count for nothing, claims that judge only sentences of ours, and
    verdicts of protocol "authors" if both protocols have the same results.
    """
    return [
        verdict
        for verdict in version.verdicts
        if not (verdict.given or (version.once and verdict.protocol == Protocol.AUTHORS))
        and not _is_ours(version.figure, verdict.id)
    ]


def _is_ours(figure: Figure, claim: str) -> bool:
    """Return True if a claim judges only sentences of ours."""
    judged = [each for each in paper_sentences.sentences() if each.judged_by(figure.id, claim)]
    return bool(judged) and all(each.ours for each in judged)


def verdicts_on(
    sentence: Sentence, exhibits: Iterable[Exhibit], origin: str, protocol: str
) -> Judged:
    """Return the verdicts on the claims that judge a sentence and could be judged."""
    return [
        (exhibit.figure, verdict)
        for exhibit in exhibits
        if exhibit.figure.id in sentence.figures and origin in exhibit.versions
        for verdict in exhibit.versions[origin].verdicts
        if verdict.protocol == protocol and verdict.verdict != "not judged"
        if sentence.judged_by(exhibit.figure.id, verdict.id)
    ]


def judging(sentence: Sentence, protocol: str) -> set[tuple[str, str]]:
    """Return figure and id of every claim that judges a sentence, without those that do not count.

    Example:
        >>> from gvf_lab.figure.claim import Sentence
        >>> from gvf_lab.report.sentence_verdicts import judging
        >>> claims = ("markov-vtrace/v-trace-1-wider-than-is",)
        >>> judging(Sentence("s", "Section 1", "It is wide.", claims=claims), "paper")
        {('markov-vtrace', 'v-trace-1-wider-than-is')}
    """
    return {
        (figure.id, claim.id)
        for figure in FIGURES.values()
        if figure.id in sentence.figures
        for claim in figure.claims
        if protocol in claim.protocols
        and not claim.not_counted
        and sentence.judged_by(figure.id, claim.id)
    }


def judged(sentence: Sentence, verdicts: Judged, protocol: str = Protocol.PAPER) -> str:
    """Return the verdict on a sentence; "" as long as a claim without a verdict may change it."""
    weighed = weigh((verdict for _, verdict in verdicts), some=sentence.some)
    decided = weighed == ("holds" if sentence.some else "in part")
    return weighed if decided or not _missing(sentence, verdicts, protocol) else ""


def _missing(sentence: Sentence, verdicts: Judged, protocol: str) -> set[tuple[str, str]]:
    """Return figure and id of every claim that judges a sentence and has no verdict."""
    return judging(sentence, protocol) - {(figure.id, verdict.id) for figure, verdict in verdicts}


def table(sentences: Sequence[Sentence], exhibits: Sequence[Exhibit]) -> list[dict[str, Any]]:
    """Return the sentences by their place in the paper, each with its verdicts in words."""
    groups: dict[str, list[dict[str, Any]]] = {}
    says = {sentence.id: sentence.says for sentence in sentences}
    for sentence in sentences:
        section = sentence.place.split(",")[0]
        groups.setdefault(section, []).append(_sentence(sentence, exhibits, says))
    return [{"heading": heading, "sentences": rows} for heading, rows in groups.items()]


def _sentence(
    sentence: Sentence, exhibits: Sequence[Exhibit], says: Mapping[str, str]
) -> dict[str, Any]:
    rows = []
    once = {
        exhibit.figure.id
        for exhibit in exhibits
        if all(version.once for version in exhibit.versions.values())
    }
    for protocol in Protocol:
        verdicts = {
            origin: verdicts_on(sentence, exhibits, origin, protocol)
            for origin in ("now", "shipped")
        }
        figures = {figure.id for of_origin in verdicts.values() for figure, _ in of_origin}
        if figures and not (protocol == Protocol.AUTHORS and figures <= once):
            rows.append(
                {"protocol": protocol}
                | {
                    origin: _verdict_cell(sentence, of_origin, protocol)
                    for origin, of_origin in verdicts.items()
                }
            )
    waits = _waits(sentence, exhibits)
    return {
        "id": sentence.id,
        "place": sentence.place,
        "says": sentence.says,
        "ours": sentence.ours,
        "remark": sentence.remark,
        "excuse": sentence.excuse,
        "refuted": sentence.refuted,
        "contradicted": sentence.contradicted,
        "waits": waits,
        "theory": sentence.theory,
        "badge": SENTENCE_SIGNS[""] if waits and not rows else _badge(sentence),
        "repeats": (sentence.repeats, says[sentence.repeats]) if sentence.repeats else (),
        "rows": rows,
        "claims": _claims(sentence, exhibits),
    }


def decided_by(sentence: Sentence) -> Decision:
    """Return what decides a sentence apart from claims.

    Example:
        >>> from gvf_lab.figure.claim import Sentence
        >>> from gvf_lab.report.sentence_verdicts import decided_by
        >>> decided_by(Sentence("s", "Section 1", "It is wide.", refuted="It is not."))
        'arithmetic'
    """
    if sentence.refuted:
        return "arithmetic"
    if sentence.contradicted:
        return "code or curves"
    return "theory" if sentence.theory else "nothing"


def _badge(sentence: Sentence) -> Badge | None:
    """Return the badge of a sentence that no claim judges; None if nothing does."""
    decision = decided_by(sentence)
    if decision != "theory":
        return BADGES_WITHOUT_RESULTS[decision]
    held = _checks(sentence)
    sign = SIGNS["holds" if all(held) else "fails"]
    return Badge(sign.kind, f"{sign.text[0]} {sum(held)} of {len(held)} checks as predicted")


def _checks(sentence: Sentence) -> list[bool]:
    """Return whether each check of the theory behind a sentence came out as predicted."""
    return [row["holds"] for name in sentence.theory for row in theory()["findings"][name]["rows"]]


def _waits(sentence: Sentence, exhibits: Sequence[Exhibit]) -> list[str]:
    """Return the titles of figures without which a sentence has no verdict."""
    if not sentence.claims or judged(sentence, _best_known(sentence, exhibits)):
        return []
    known = [
        judgement
        for origin in ("now", "shipped")
        for judgement in verdicts_on(sentence, exhibits, origin, Protocol.PAPER)
    ]
    missing = {figure for figure, _ in _missing(sentence, known, Protocol.PAPER)}
    return [figure.title for figure in FIGURES.values() if figure.id in missing]


def _verdict_cell(sentence: Sentence, verdicts: Judged, protocol: str) -> dict[str, Any] | None:
    if not verdicts:
        return None
    counted = Counter(verdict.verdict for _, verdict in verdicts if not verdict.given)
    parts = [f"{counted[verdict]} {words}" for verdict, words in WORDS.items() if counted[verdict]]
    return {
        "badge": SENTENCE_SIGNS[judged(sentence, verdicts, protocol)],
        "counts": ", ".join([*parts, f"of {len(judging(sentence, protocol))}"]),
    }


def _claims(sentence: Sentence, exhibits: Sequence[Exhibit]) -> dict[str, list[dict[str, Any]]]:
    """Return the claims that judge a sentence by the title of their figure.

    Each has one verdict: the shipped one, if there is one.
    """
    by_claim: dict[tuple[str, str], tuple[Figure, Verdict]] = {}
    for protocol in reversed(Protocol):
        for origin in ("now", "shipped"):
            for figure, verdict in verdicts_on(sentence, exhibits, origin, protocol):
                by_claim[figure.id, verdict.id] = (figure, verdict)
    by_figure: dict[str, list[dict[str, Any]]] = {}
    for figure, verdict in by_claim.values():
        by_figure.setdefault(figure.title, []).append(
            {
                "place": place(figure, verdict),
                "sentence": verdict.sentence,
                "badge": SIGNS[verdict.verdict],
                "not_counted": verdict.given,
            }
        )
    return by_figure


def summary(sentences: Sequence[Sentence], exhibits: Sequence[Exhibit]) -> dict[str, Any]:
    """Return the summary of the page: counts, and the sentences that matter most.

    Verdicts are those under protocol "paper": shipped ones, or those made here if the shipped ones
    do not decide.
    """
    papers = [sentence for sentence in sentences if not sentence.ours]
    known = {sentence.id: _best_known(sentence, exhibits) for sentence in sentences}
    verdicts = {sentence.id: judged(sentence, known[sentence.id]) for sentence in sentences}
    authors = {
        sentence.id: _under_authors(sentence, exhibits, verdicts[sentence.id])
        for sentence in sentences
    }
    counted = Counter(verdicts[sentence.id] for sentence in papers if sentence.counts)
    others = [sentence for sentence in papers if not sentence.claims and not sentence.repeats]
    decided = Counter(map(decided_by, others))
    good = sum(all(_checks(each)) for each in others if decided_by(each) == "theory")
    all_good = good == decided["theory"]
    return {
        "all": len(papers),
        "testable": counted.total(),
        "judged": counted.total() - counted[""],
        "absent": counted[""],
        "counts": [
            Badge(SENTENCE_SIGNS[verdict].kind, f"{counted[verdict]} {words}")
            for verdict, words in WORDS.items()
        ],
        "repeated": sum(bool(sentence.repeats) for sentence in papers),
        "theory": decided["theory"],
        "held": Badge("good" if all_good else "bad", f"{good} of them hold"),
        "refuted": decided["arithmetic"],
        "contradicted": decided["code or curves"],
        "excused": decided["nothing"],
        "authors": [
            {"id": sentence.id, "says": sentence.says, "badges": [SENTENCE_SIGNS[v] for v in pair]}
            for sentence in papers
            if sentence.counts and authors[sentence.id]
            for pair in [(verdicts[sentence.id], authors[sentence.id])]
        ],
        "written": _written(),
        "changed": _changed(papers, verdicts),
        "lines": [
            {
                "badge": SENTENCE_SIGNS[verdict],
                "says": sentence.says,
                "id": sentence.id,
                "authors": authors[sentence.id],
                "turns": _turns(sentence, known[sentence.id])
                if verdict
                else _waiting(sentence, exhibits),
            }
            for verdict in (*WORDS, "")
            for sentence in sentences
            if sentence.headline and verdicts[sentence.id] == verdict
        ],
    }


def _under_authors(sentence: Sentence, exhibits: Sequence[Exhibit], verdict: str) -> str:
    """Return the verdict under protocol "authors" if it differs from that under "paper"."""
    other = judged(sentence, _best_known(sentence, exhibits, Protocol.AUTHORS), Protocol.AUTHORS)
    return other if sentence.claims and verdict and other != verdict else ""


def _written() -> dict[str, int]:
    """Count the claims that judge sentences of the paper, by what was known when they changed."""
    claims = [
        claim
        for figure in FIGURES.values()
        for claim in figure.claims
        if not _is_ours(figure, claim.id)
    ]
    knew = Counter(claim.knew for claim in claims)
    return {"all": len(claims), "known": knew["results"], "audit": knew["audit"]}


def _changed(sentences: Iterable[Sentence], verdicts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the sentences that have another verdict now than they had first."""

    def badge(sentence: Sentence) -> Badge:
        if sentence.claims:
            return SENTENCE_SIGNS[verdicts[sentence.id]]
        return _badge(sentence) or UNTESTED

    return [
        {
            "id": sentence.id,
            "says": sentence.says,
            "badges": [SENTENCE_SIGNS[sentence.first], badge(sentence)],
        }
        for sentence in sentences
        if sentence.first
        and not (sentence.claims and verdicts[sentence.id] in (sentence.first, ""))
    ]


def _best_known(
    sentence: Sentence, exhibits: Sequence[Exhibit], protocol: str = Protocol.PAPER
) -> Judged:
    shipped = verdicts_on(sentence, exhibits, "shipped", protocol)
    if judged(sentence, shipped, protocol):
        return shipped
    return verdicts_on(sentence, exhibits, "now", protocol)


def _waiting(sentence: Sentence, exhibits: Sequence[Exhibit]) -> str:
    return f"Waits for: {'; '.join(_waits(sentence, exhibits))}."


def _turns(sentence: Sentence, verdicts: Judged) -> str:
    """Say where a sentence fails, or where it is undecided if it fails nowhere."""
    counting = [(figure, verdict) for figure, verdict in verdicts if not verdict.given]
    outcomes = {verdict.verdict for _, verdict in counting} - {"holds"}
    if not outcomes:
        return ""
    least, words = ("fails", "fail") if "fails" in outcomes else ("undecided", "are undecided")
    examples = [(figure, verdict) for figure, verdict in counting if verdict.verdict == least]
    every = Counter(figure.world for figure, _ in counting)
    worlds = Counter(figure.world for figure, _ in examples)
    where = ", ".join(f"{count} of {every[world]} ({world})" for world, count in worlds.items())
    named = list(dict.fromkeys(verdict.sentence for _, verdict in examples))
    names = " ".join(named[:NAMED])
    example = f"For example: {names}" if len(named) > NAMED else names
    return f"Comparisons that {words}: {where}. {sentence.remark or example}"
