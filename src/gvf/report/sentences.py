"""The paper's sentences on the page: a summary, and each sentence with what judges it.

A sentence is judged by what was made here and by what was shipped, under each protocol. It has a
verdict if every claim that judges it has one, or if those that have one decide: no other claim can
change that it holds in part. The summary takes shipped verdicts if they decide, since those are at
the paper's scale. It also says what was changed when results were known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gvf.figure.claim import Verdict
from gvf.figure.figure import Figure
from gvf.figure.sentence import Sentence, weigh
from gvf.paper import FIGURES
from gvf.paper import sentences as paper
from gvf.report.evidence import theory
from gvf.report.exhibit import Exhibit
from gvf.report.tables import SIGNS, Badge, place, versions

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
KNOWN, AUDIT = "results were known", "small runs in an audit"
"""Words in a claim's history: it was written or changed with results known, or after an audit."""
NAMED = 2
"""The number of failing claims that the summary names."""

Judged = list[tuple[Figure, Verdict]]
"""Verdicts on claims, each with its figure."""


def counted(one: Exhibit) -> list[Verdict]:
    """Return the verdicts of a figure that count.

    Left out are claims that count for nothing, claims that judge only sentences of ours, and
    verdicts of protocol "authors" if both protocols have the same results.
    """
    return [
        verdict
        for verdict in one.verdicts
        if not (verdict.given or (one.once and verdict.protocol == "authors"))
        and not _is_ours(one.figure, verdict.id)
    ]


def _is_ours(figure: Figure, claim: str) -> bool:
    """Return True if a claim judges only sentences of ours."""
    judged = [each for each in paper.sentences() if each.judged_by(figure.id, claim)]
    return bool(judged) and all(each.ours for each in judged)


def verdicts_on(sentence: Sentence, shown: Iterable[Exhibit], origin: str, protocol: str) -> Judged:
    """Return the verdicts on the claims that judge a sentence and could be judged."""
    return [
        (one.figure, verdict)
        for one in shown
        if origin in versions(one)
        for verdict in versions(one)[origin].verdicts
        if verdict.protocol == protocol and verdict.verdict != "not judged"
        if sentence.judged_by(one.figure.id, verdict.id)
    ]


def judging(sentence: Sentence, protocol: str) -> set[tuple[str, str]]:
    """Return figure and id of every claim that judges a sentence, without those that do not count.

    Example:
        >>> from gvf.figure.sentence import Sentence
        >>> from gvf.report.sentences import judging
        >>> sentence = Sentence("s", "Section 1", "It is wide.", claims=("markov-vtrace/v-*",))
        >>> len(judging(sentence, "paper"))
        3
    """
    return {
        (figure.id, claim.id)
        for figure in FIGURES.values()
        for claim in figure.claims
        if protocol in claim.protocols
        and not claim.given
        and sentence.judged_by(figure.id, claim.id)
    }


def judged(sentence: Sentence, told: Judged, protocol: str = "paper") -> str:
    """Return the verdict on a sentence; "" as long as a claim without a verdict may change it."""
    weighed = weigh((verdict for _, verdict in told), some=sentence.some)
    decided = weighed == ("holds" if sentence.some else "in part")
    return weighed if decided or not _missing(sentence, told, protocol) else ""


def _missing(sentence: Sentence, told: Judged, protocol: str) -> set[tuple[str, str]]:
    """Return figure and id of every claim that judges a sentence and has no verdict."""
    return judging(sentence, protocol) - {(figure.id, verdict.id) for figure, verdict in told}


def table(sentences: Sequence[Sentence], shown: Sequence[Exhibit]) -> list[dict[str, Any]]:
    """Return the sentences by their place in the paper, each with its verdicts in words."""
    groups: dict[str, list[dict[str, Any]]] = {}
    says = {sentence.id: sentence.says for sentence in sentences}
    for sentence in sentences:
        section = sentence.place.split(",")[0]
        groups.setdefault(section, []).append(_sentence(sentence, shown, says))
    return [{"heading": heading, "sentences": there} for heading, there in groups.items()]


def _sentence(
    sentence: Sentence, shown: Sequence[Exhibit], says: Mapping[str, str]
) -> dict[str, Any]:
    rows = []
    once = {one.figure.id for one in shown if all(each.once for each in versions(one).values())}
    for protocol in ("paper", "authors"):
        told = {
            origin: verdicts_on(sentence, shown, origin, protocol) for origin in ("now", "shipped")
        }
        found = {figure.id for there in told.values() for figure, _ in there}
        if found and not (protocol == "authors" and found <= once):
            rows.append(
                {"protocol": protocol}
                | {origin: _told(sentence, there, protocol) for origin, there in told.items()}
            )
    waits = _waits(sentence, shown)
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
        "claims": _claims(sentence, shown),
    }


def _badge(sentence: Sentence) -> Badge | None:
    """Return the badge of a sentence that no claim judges; None if nothing does."""
    if sentence.refuted:
        return REFUTED
    if sentence.contradicted:
        return CONTRADICTED
    if not sentence.theory:
        return None
    held = [row["holds"] for name in sentence.theory for row in theory()["findings"][name]["rows"]]
    sign = SIGNS["holds" if all(held) else "fails"]
    return Badge(sign.kind, f"{sign.text[0]} {sum(held)} of {len(held)} checks as predicted")


def _waits(sentence: Sentence, shown: Sequence[Exhibit]) -> list[str]:
    """Return the titles of figures without which a sentence has no verdict."""
    if not sentence.claims or judged(sentence, _best_known(sentence, shown)):
        return []
    told = [
        one
        for origin in ("now", "shipped")
        for one in verdicts_on(sentence, shown, origin, "paper")
    ]
    missing = {figure for figure, _ in _missing(sentence, told, "paper")}
    return [figure.title for figure in FIGURES.values() if figure.id in missing]


def _told(sentence: Sentence, told: Judged, protocol: str) -> dict[str, Any] | None:
    if not told:
        return None
    counted = Counter(verdict.verdict for _, verdict in told if not verdict.given)
    parts = [f"{counted[verdict]} {words}" for verdict, words in WORDS.items() if counted[verdict]]
    return {
        "badge": SENTENCE_SIGNS[judged(sentence, told, protocol)],
        "counts": ", ".join([*parts, f"of {len(judging(sentence, protocol))}"]),
    }


def _claims(sentence: Sentence, shown: Sequence[Exhibit]) -> dict[str, list[dict[str, Any]]]:
    """Return the claims that judge a sentence by the title of their figure.

    Each has one verdict: the shipped one, if there is one.
    """
    found: dict[tuple[str, str], tuple[Figure, Verdict]] = {}
    for protocol in ("authors", "paper"):
        for origin in ("now", "shipped"):
            for figure, verdict in verdicts_on(sentence, shown, origin, protocol):
                found[figure.id, verdict.id] = (figure, verdict)
    by_figure: dict[str, list[dict[str, Any]]] = {}
    for figure, verdict in found.values():
        by_figure.setdefault(figure.title, []).append(
            {
                "place": place(figure, verdict),
                "sentence": verdict.sentence,
                "badge": SIGNS[verdict.verdict],
                "given": verdict.given,
            }
        )
    return by_figure


def summary(sentences: Sequence[Sentence], shown: Sequence[Exhibit]) -> dict[str, Any]:
    """Return the summary of the page: counts, and the sentences that matter most.

    Verdicts are those under protocol "paper": shipped ones, or those made here if the shipped ones
    do not decide.
    """
    papers = [one for one in sentences if not one.ours]
    known = {one.id: _best_known(one, shown) for one in sentences}
    verdicts = {one.id: judged(one, known[one.id]) for one in sentences}
    authors = {one.id: _under_authors(one, shown, verdicts[one.id]) for one in sentences}
    counted = Counter(verdicts[one.id] for one in papers if one.counts)
    badges = [_badge(one) for one in papers if not one.claims and not one.repeats]
    checked = [badge for badge in badges if badge not in (None, REFUTED, CONTRADICTED)]
    good = sum(badge is not None and badge.kind == "good" for badge in checked)
    held = Badge("good" if good == len(checked) else "bad", f"{good} of them hold")
    return {
        "all": len(papers),
        "testable": counted.total(),
        "judged": counted.total() - counted[""],
        "absent": counted[""],
        "counts": [
            Badge(SENTENCE_SIGNS[verdict].kind, f"{counted[verdict]} {words}")
            for verdict, words in WORDS.items()
        ],
        "repeated": sum(bool(one.repeats) for one in papers),
        "theory": len(checked),
        "held": held,
        "refuted": badges.count(REFUTED),
        "contradicted": badges.count(CONTRADICTED),
        "excused": badges.count(None),
        "authors": [
            {"id": one.id, "says": one.says, "badges": [SENTENCE_SIGNS[v] for v in pair]}
            for one in papers
            if one.counts and authors[one.id]
            for pair in [(verdicts[one.id], authors[one.id])]
        ],
        "written": _written(),
        "changed": _changed(papers, verdicts),
        "lines": [
            {
                "badge": SENTENCE_SIGNS[verdict],
                "says": one.says,
                "id": one.id,
                "authors": authors[one.id],
                "turns": _turns(one, known[one.id]) if verdict else _waiting(one, shown),
            }
            for verdict in (*WORDS, "")
            for one in sentences
            if one.headline and verdicts[one.id] == verdict
        ],
    }


def _under_authors(sentence: Sentence, shown: Sequence[Exhibit], verdict: str) -> str:
    """Return the verdict under protocol "authors" if it differs from that under "paper"."""
    other = judged(sentence, _best_known(sentence, shown, "authors"), "authors")
    return other if sentence.claims and verdict and other != verdict else ""


def _written() -> dict[str, int]:
    """Count the claims that judge sentences of the paper, by what was known when they changed."""
    claims = [
        claim
        for figure in FIGURES.values()
        for claim in figure.claims
        if not _is_ours(figure, claim.id)
    ]
    told = [" ".join(claim.history).lower() for claim in claims]
    known = sum(KNOWN in history for history in told)
    audit = sum(AUDIT in history and KNOWN not in history for history in told)
    return {"all": len(claims), "known": known, "audit": audit}


def _changed(sentences: Iterable[Sentence], verdicts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the sentences that have another verdict now than they had first."""
    now = {
        one.id: SENTENCE_SIGNS[verdicts[one.id]] if one.claims else _badge(one) or UNTESTED
        for one in sentences
    }
    return [
        {"id": one.id, "says": one.says, "badges": [SENTENCE_SIGNS[one.first], now[one.id]]}
        for one in sentences
        if one.first and now[one.id] not in (SENTENCE_SIGNS[one.first], SENTENCE_SIGNS[""])
    ]


def _best_known(sentence: Sentence, shown: Sequence[Exhibit], protocol: str = "paper") -> Judged:
    shipped = verdicts_on(sentence, shown, "shipped", protocol)
    if judged(sentence, shipped, protocol):
        return shipped
    return verdicts_on(sentence, shown, "now", protocol)


def _waiting(sentence: Sentence, shown: Sequence[Exhibit]) -> str:
    return f"Waits for: {'; '.join(_waits(sentence, shown))}."


def _turns(sentence: Sentence, told: Judged) -> str:
    """Say where a sentence fails, or where it is undecided if it fails nowhere."""
    counting = [(figure, verdict) for figure, verdict in told if not verdict.given]
    found = {verdict.verdict for _, verdict in counting} - {"holds"}
    if not found:
        return ""
    least, words = ("fails", "fail") if "fails" in found else ("undecided", "are undecided")
    there = [(figure, verdict) for figure, verdict in counting if verdict.verdict == least]
    every = Counter(figure.world for figure, _ in counting)
    worlds = Counter(figure.world for figure, _ in there)
    where = ", ".join(f"{count} of {every[world]} ({world})" for world, count in worlds.items())
    named = list(dict.fromkeys(verdict.sentence for _, verdict in there))
    names = " ".join(named[:NAMED])
    example = f"For example: {names}" if len(named) > NAMED else names
    return f"Comparisons that {words}: {where}. {sentence.remark or example}"
