"""The paper's sentences on the page: a summary, and each sentence with the claims that judge it.

A sentence is judged by what was made here and by what was shipped, under each protocol. The summary
takes shipped verdicts where there are any, since those are at the paper's scale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gvf.figure.claim import Verdict
from gvf.figure.figure import Figure
from gvf.figure.sentence import Sentence, weigh
from gvf.report.exhibit import Exhibit
from gvf.report.tables import SIGNS, Badge, place, versions

SENTENCE_SIGNS = SIGNS | {"in part": Badge("quick", "± in part")}
"""The badge of each verdict on a sentence."""
ORDER = ("holds", "in part", "fails", "undecided")
"""The verdicts in the order of the summary."""
NAMED = 2
"""The number of failing claims that the summary names."""

Judged = list[tuple[Figure, Verdict]]
"""Verdicts on claims, each with its figure."""


def verdicts_on(sentence: Sentence, shown: Iterable[Exhibit], origin: str, protocol: str) -> Judged:
    """Return the verdicts on the claims that judge a sentence."""
    return [
        (one.figure, verdict)
        for one in shown
        if origin in versions(one)
        for verdict in versions(one)[origin].verdicts
        if verdict.protocol == protocol and sentence.judged_by(one.figure.id, verdict.id)
    ]


def judged(sentence: Sentence, told: Judged) -> str:
    """Return the verdict on a sentence; "" if nothing that judges it was made."""
    if not told:
        return ""
    return weigh((verdict for _, verdict in told), some=sentence.some)


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
    for protocol in ("paper", "authors"):
        told = {
            origin: verdicts_on(sentence, shown, origin, protocol) for origin in ("now", "shipped")
        }
        if any(told.values()):
            rows.append(
                {"protocol": protocol}
                | {origin: _told(sentence, there) for origin, there in told.items()}
            )
    return {
        "id": sentence.id,
        "place": sentence.place,
        "says": sentence.says,
        "ours": sentence.ours,
        "remark": sentence.remark,
        "excuse": sentence.excuse,
        "theory": sentence.theory,
        "repeats": (sentence.repeats, says[sentence.repeats]) if sentence.repeats else (),
        "rows": rows,
        "claims": _claims(sentence, shown),
    }


def _told(sentence: Sentence, told: Judged) -> dict[str, Any] | None:
    if not told:
        return None
    counted = Counter(verdict.verdict for _, verdict in told if not verdict.given)
    parts = [f"{counted[verdict]} {verdict}" for verdict in ORDER if counted[verdict]]
    return {"badge": SENTENCE_SIGNS[judged(sentence, told)], "counts": ", ".join(parts)}


def _claims(sentence: Sentence, shown: Sequence[Exhibit]) -> list[dict[str, Any]]:
    """Return the claims that judge a sentence, with one verdict each: shipped, if there is one."""
    found: dict[tuple[str, str], tuple[Figure, Verdict]] = {}
    for protocol in ("authors", "paper"):
        for origin in ("now", "shipped"):
            for figure, verdict in verdicts_on(sentence, shown, origin, protocol):
                found[figure.id, verdict.id] = (figure, verdict)
    return [
        {
            "place": place(figure, verdict),
            "sentence": verdict.sentence,
            "badge": SIGNS[verdict.verdict],
            "given": verdict.given,
        }
        for figure, verdict in found.values()
    ]


def summary(sentences: Sequence[Sentence], shown: Sequence[Exhibit]) -> dict[str, Any]:
    """Return the summary of the page: counts, and the sentences that matter most.

    Verdicts are those under protocol "paper": shipped ones, or those made here if none are shipped.
    """
    verdicts = {sentence.id: _best_known(sentence, shown) for sentence in sentences}
    counted = Counter(judged(one, verdicts[one.id]) or "absent" for one in sentences if one.counts)
    others = {
        "about theory": sum(bool(one.theory) and not one.claims for one in sentences),
        "not testable": sum(bool(one.excuse) for one in sentences),
        "repeated": sum(bool(one.repeats) for one in sentences),
    }
    leading = [one for one in sentences if one.headline and verdicts[one.id]]
    lines = [
        {
            "badge": SENTENCE_SIGNS[judged(one, verdicts[one.id])],
            "says": one.says,
            "id": one.id,
            "turns": _turns(one, verdicts[one.id]),
        }
        for verdict in ORDER
        for one in leading
        if judged(one, verdicts[one.id]) == verdict
    ]
    return {
        "judged": sum(counted.values()) - counted["absent"],
        "counts": [
            Badge(SENTENCE_SIGNS[verdict].kind, f"{counted[verdict]} {words}")
            for verdict, words in zip(ORDER, ("hold", "in part", "fail", "undecided"), strict=True)
        ],
        "absent": counted["absent"],
        "others": others,
        "lines": lines,
    }


def _best_known(sentence: Sentence, shown: Sequence[Exhibit]) -> Judged:
    shipped = verdicts_on(sentence, shown, "shipped", "paper")
    return shipped or verdicts_on(sentence, shown, "now", "paper")


def _turns(sentence: Sentence, told: Judged) -> str:
    """Say where a sentence fails."""
    counting = [verdict for _, verdict in told if not verdict.given]
    failing = [verdict.sentence for verdict in counting if verdict.verdict == "fails"]
    if not failing:
        return ""
    where = f"Fails in {len(failing)} of {len(counting)} comparisons"
    reason = f" {sentence.remark}" if sentence.remark else ""
    if len(failing) > NAMED or sentence.remark:
        return f"{where}.{reason}" if reason else f"{where}, first: {failing[0]}"
    return f"{where}: {' '.join(failing)}"
