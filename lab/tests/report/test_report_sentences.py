"""The paper's sentences on the page: their verdicts, the summary, and what is said of failures."""

from dataclasses import replace
from typing import Any

import pytest
from shown import exhibits, made, rows, verdict, write

from gvf_lab.figure import Figure
from gvf_lab.figure.claim import HistoryEntry, Sentence
from gvf_lab.paper import FIGURES, get
from gvf_lab.paper.paper_sentences import sentences
from gvf_lab.report import sentence_verdicts
from gvf_lab.report.exhibit import Exhibit, Version, shipped
from gvf_lab.report.sentence_verdicts import (
    BADGES_WITHOUT_RESULTS,
    SENTENCE_SIGNS,
    counted,
    judging,
)
from gvf_lab.report.verdict_tables import SIGNS, Badge

CLIPS = ("v-trace-1", "v-trace-0.5-max", "v-trace-0.9-max")
"""The beginnings of the ids of three claims of the figure markov-vtrace."""


def beginning(*names: str) -> tuple[str, ...]:
    """The claims whose names, with their figure, begin so."""
    claims = (
        f"{figure}/{claim.id}"
        for figure in dict.fromkeys(name.partition("/")[0] for name in names)
        for claim in get(figure).claims
    )
    return tuple(claim for claim in claims if claim.startswith(names))


def saying(claims: str = "markov-vtrace/v-trace-", **more: Any) -> Sentence:
    more = {"headline": True} | more
    return Sentence("s", "Section 1, paragraph 2", "IR is best.", claims=beginning(claims), **more)


def exhibit(*told: str, id: str = "markov-vtrace", protocol: str = "paper") -> Version:
    """A figure with verdicts on claims about one method, as many as are told."""
    figure, method = get(id), "v-trace" if id == "markov-vtrace" else "ir"
    sentence = saying(f"{id}/{method}-")
    names = sorted(name for there, name in judging(sentence, protocol) if there == id)
    verdicts = [verdict(name, one, protocol) for name, one in zip(names, told, strict=False)]
    how = {protocol: made(protocol)}
    return Version(figure, (), (), (), verdicts, how)


def summary(sentences, shown) -> dict[str, Any]:
    """The summary of versions that were made here, or of exhibits."""
    return sentence_verdicts.summary(sentences, exhibits(shown))


def table(sentences, shown) -> list[dict[str, Any]]:
    return sentence_verdicts.table(sentences, exhibits(shown))


def row(sentence: Sentence, *shown: Exhibit | Version) -> list[dict[str, Any]]:
    """The rows of a sentence in the table."""
    [group] = table([sentence], shown)
    [there] = group["sentences"]
    return there["rows"]


def line(sentence: Sentence, *shown: Exhibit | Version) -> tuple[str, str]:
    """The badge of a sentence in the summary, and what is said of where it fails."""
    [there] = summary([sentence], shown)["lines"]
    return there["badge"].text, there["turns"]


def counts(told: dict[str, Any]) -> list[str]:
    return [badge.text for badge in told["counts"]]


def test_the_claims_that_judge_a_sentence_are_known_without_results() -> None:
    assert judging(saying(), "paper") == {
        ("markov-vtrace", f"{clip}-wider-than-is") for clip in CLIPS
    }
    # Those that count for nothing are left out.
    figure = get("markov-step-size")
    given = {claim.id for claim in figure.claims if claim.not_counted}
    ids = {id for _, id in judging(saying("markov-step-size/"), "paper")}
    assert given
    assert ids == {claim.id for claim in figure.claims} - given


@pytest.mark.parametrize(
    ("told", "badge", "counted"),
    [
        (("holds",) * 3, "✓ holds", "3 hold, of 3"),
        (("holds", "holds", "fails"), "± in part", "2 hold, 1 fail, of 3"),
        (("fails", "fails", "undecided"), "✗ fails", "2 fail, 1 undecided, of 3"),
        (("holds", "holds", "undecided"), "? undecided", "2 hold, 1 undecided, of 3"),
        (("holds", "holds"), "… incomplete", "2 hold, of 3"),
        (("holds", "fails"), "± in part", "1 hold, 1 fail, of 3"),
        (("fails", "fails"), "… incomplete", "2 fail, of 3"),
    ],
)
def test_the_table_has_the_verdict_and_the_number_of_all_comparisons(
    told: tuple[str, ...], badge: str, counted: str
) -> None:
    [there] = row(saying(), exhibit(*told))
    assert (there["now"]["badge"].text, there["now"]["counts"]) == (badge, counted)
    assert there["shipped"] is None


def test_what_was_made_here_and_what_was_shipped_are_judged_apart() -> None:
    now, shipped = exhibit("holds", "holds", "holds"), exhibit("holds", "holds", "fails")
    [there] = row(saying(), Exhibit(now.figure, now, shipped))
    assert there["protocol"] == "paper"
    assert there["now"]["badge"].text == "✓ holds"
    assert there["shipped"]["badge"].text == "± in part"


def test_protocols_are_judged_apart() -> None:
    both = replace(
        exhibit("holds", "holds", "holds"),
        verdicts=[
            *exhibit("holds", "holds", "holds").verdicts,
            *exhibit("fails", "fails", "fails", protocol="authors").verdicts,
        ],
    )
    assert [(one["protocol"], one["now"]["badge"].text) for one in row(saying(), both)] == [
        ("paper", "✓ holds"),
        ("authors", "✗ fails"),
    ]
    assert line(saying(), both) == ("✓ holds", "")


def test_a_sentence_without_results_has_no_row_and_waits() -> None:
    absent = Exhibit(get("markov-vtrace"))
    assert row(saying(), absent) == []
    told = summary([saying()], [absent])
    assert (told["judged"], told["absent"]) == (0, 1)
    title = "Markov chain: V-trace with three clips"
    assert line(saying(), absent) == ("… incomplete", f"Waits for: {title}.")
    [group] = table([saying()], [absent])
    [there] = group["sentences"]
    assert (there["waits"], there["badge"].text) == ([title], "… incomplete")


def test_a_sentence_of_two_figures_waits_for_both() -> None:
    both = replace(
        saying(), claims=beginning("markov-vtrace/v-trace-", "markov-step-size/ir-wider-")
    )
    first = exhibit("holds", "holds", "holds")
    wider = sorted(id for there, id in judging(both, "paper") if there == "markov-step-size")
    assert wider
    second = replace(
        exhibit(id="markov-step-size"), verdicts=[verdict(id, "holds") for id in wider]
    )
    assert summary([both], [first])["absent"] == 1
    assert summary([both], [second])["absent"] == 1
    assert line(both, first, second) == ("✓ holds", "")


def test_the_summary_takes_shipped_verdicts_where_they_are_complete() -> None:
    now = exhibit("fails", "fails", "fails")
    full = exhibit("holds", "holds", "holds")
    part = exhibit("holds", "holds")
    assert line(saying(), Exhibit(now.figure, now, full))[0] == "✓ holds"
    assert line(saying(), Exhibit(now.figure, now, part))[0] == "✗ fails"
    assert summary([saying()], [Exhibit(now.figure, None, part)])["absent"] == 1


def test_one_comparison_is_enough_where_a_sentence_says_some() -> None:
    told = exhibit("fails", "undecided", "holds")
    assert line(saying(some=True), told)[0] == "✓ holds"
    assert line(saying(), told)[0] == "± in part"
    # A comparison without a result cannot change it.
    assert line(saying(some=True), exhibit("fails", "holds"))[0] == "✓ holds"
    assert line(saying(some=True), exhibit("fails", "undecided"))[0] == "… incomplete"


def test_the_summary_counts_sentences_of_the_paper_once() -> None:
    wait = "markov-variance/"
    several = [
        replace(saying(), id="a"),
        replace(saying(), id="b", headline=False),
        replace(saying(wait), id="c"),
        replace(saying(), id="ours", ours=True, headline=False),
        Sentence("d", "Section 1", "It is so.", repeats="a"),
        Sentence("e", "Section 1", "It is so.", theory=("theorem-3-1",)),
        Sentence("f", "Section 1", "It is so.", theory=("theorem-3-1",), excuse="No."),
        Sentence("g", "Section 1", "It is so.", excuse="No."),
        Sentence("h", "Section 1", "It is so.", refuted="It is not."),
        Sentence("i", "Section 1", "It is so.", contradicted="The code differs."),
    ]
    told = summary(several, [exhibit("holds", "holds", "fails")])
    assert counts(told) == ["0 hold", "2 hold in part", "0 fail", "0 undecided"]
    numbers = ("all", "testable", "judged", "absent", "repeated", "theory", "excused", "refuted")
    assert [told[name] for name in numbers] == [9, 3, 2, 1, 1, 2, 1, 1]
    assert told["contradicted"] == 1
    assert told["held"] == Badge("good", "2 of them hold")
    assert [one["id"] for one in told["lines"]] == ["a", "c"]


def test_every_statement_of_the_paper_is_counted_once() -> None:
    told = summary(sentences(), [])
    parts = ("testable", "repeated", "theory", "excused", "refuted", "contradicted")
    assert sum(told[name] for name in parts) == told["all"] > 100
    assert told["absent"] == told["testable"]


def test_the_main_sentences_come_in_the_order_of_their_verdicts() -> None:
    several = [replace(saying(f"markov-vtrace/{clip}-wider-than-is"), id=clip) for clip in CLIPS]
    verdicts = [
        verdict(f"{clip}-wider-than-is", told)
        for clip, told in zip(CLIPS, ("undecided", "fails", "holds"), strict=True)
    ]
    told = summary(several, [replace(exhibit(), verdicts=verdicts)])
    assert [one["id"] for one in told["lines"]] == [CLIPS[2], CLIPS[1], CLIPS[0]]
    assert counts(told) == ["1 hold", "0 hold in part", "1 fail", "1 undecided"]


# Where a sentence fails


def test_failures_are_named_where_they_are_few() -> None:
    told = exhibit("holds", "fails", "undecided")
    failing = told.verdicts[1].sentence
    assert line(saying(), told)[1] == f"Comparisons that fail: 1 of 3 (Markov chain). {failing}"


def test_many_failures_are_told_by_examples_or_by_the_remark() -> None:
    told = exhibit("fails", "fails", "fails")
    first, second, third = (one.sentence for one in told.verdicts)
    begin = "Comparisons that fail: 3 of 3 (Markov chain)."
    assert line(saying(), told)[1] == f"{begin} For example: {first} {second}"
    assert third not in line(saying(), told)[1]
    assert line(saying(remark="Clips help."), told)[1] == f"{begin} Clips help."


def test_what_is_undecided_is_told_if_nothing_fails() -> None:
    told = exhibit("holds", "undecided", "holds")
    badge, turns = line(saying(), told)
    assert badge == "? undecided"
    assert turns.startswith("Comparisons that are undecided: 1 of 3 (Markov chain). ")
    assert line(saying(remark="Clips help."), exhibit("holds", "holds", "holds"))[1] == ""


def test_failures_are_counted_by_experiment() -> None:
    both = replace(
        saying(), claims=beginning("markov-vtrace/v-trace-", "four-rooms-step-size/ir-wider-")
    )
    rooms: Figure = get("four-rooms-step-size")
    ids = sorted(id for there, id in judging(both, "paper") if there == rooms.id)
    told = ["fails", *["holds"] * (len(ids) - 1)]
    verdicts = [verdict(*one) for one in zip(ids, told, strict=True)]
    shown = [
        exhibit("fails", "holds", "fails"),
        replace(exhibit(id=rooms.id), verdicts=verdicts),
    ]
    where = f"2 of 3 (Markov chain), 1 of {len(ids)} (Four Rooms)."
    assert line(both, *shown)[1].startswith(f"Comparisons that fail: {where} For example: ")


def test_comparisons_that_count_for_nothing_do_not_count() -> None:
    sentence = saying("markov-step-size/")
    figure = get("markov-step-size")
    verdicts = [
        verdict(claim.id, "fails" if claim.not_counted else "holds", given=claim.not_counted)
        for claim in figure.claims
    ]
    there = replace(exhibit(id=figure.id), verdicts=verdicts)
    counting = sum(not claim.not_counted for claim in figure.claims)
    assert counting < len(verdicts)
    [found] = row(sentence, there)
    assert (found["now"]["badge"].text, found["now"]["counts"]) == (
        "✓ holds",
        f"{counting} hold, of {counting}",
    )
    assert line(sentence, there) == ("✓ holds", "")


def test_verdicts_that_count_are_of_the_papers_sentences_and_are_counted_once() -> None:
    rooms = get("four-rooms-gap")
    names = ("ir-ahead-as-updates-get-rarer", "ir-overlaps-wis-optimal-at-every-gap")
    told = [verdict(id, "holds", protocol) for protocol in ("paper", "authors") for id in names]
    told += [verdict("is-worse-with-gap", "fails", given="It follows.")]
    ours = rows(protocols=("paper", "authors"))
    shown = Version(rooms, ours, (), (), told, {one: made(one) for one in ("paper", "authors")})
    # The second claim judges only a sentence of ours, and both protocols have the same points.
    assert [(one.id, one.protocol) for one in counted(shown)] == [(names[0], "paper")]
    other = [row._replace(y=1.0) if row.protocol == "authors" else row for row in ours]
    assert [one.protocol for one in counted(replace(shown, rows=other))] == ["paper", "authors"]


def test_protocols_with_the_same_points_are_shown_once() -> None:
    protocols = ("paper", "authors")
    told = [
        one for p in protocols for one in exhibit("holds", "holds", "fails", protocol=p).verdicts
    ]
    shown = replace(
        exhibit(),
        rows=rows(protocols=protocols),
        verdicts=told,
        provenance={protocol: made(protocol) for protocol in protocols},
    )
    assert [one["protocol"] for one in row(saying(), shown)] == ["paper"]
    text = write([shown])
    assert "Markov chain: settings and numbers are the same." in text
    assert '<th scope="row">paper and authors</th>' in text
    assert text.count('<td data-label="Time">') == 1


def test_a_claim_that_was_not_judged_leaves_its_sentence_incomplete() -> None:
    [there] = row(saying(), exhibit("holds", "holds", "not judged"))
    assert (there["now"]["badge"].text, there["now"]["counts"]) == ("… incomplete", "2 hold, of 3")
    several, none = (
        write([replace(exhibit(*told), rows=rows())]).partition("<main>")[0]
        for told in (("holds", "fails", "not judged"), ("holds", "fails"))
    )
    assert "– 1 not judged" in several
    assert "? 0 undecided" in several
    assert "not judged" not in none


def test_a_sentence_that_no_claim_judges_shows_what_decides_it() -> None:
    def shown(**decided: Any) -> dict[str, Any]:
        [group] = table([Sentence("s", "Section 1", "It is so.", **decided)], [])
        return group["sentences"][0]

    assert shown(refuted="It is not.")["badge"] == Badge("bad", "✗ refuted")
    assert shown(contradicted="Code differs.")["badge"] == Badge("bad", "≠ code or curves")
    checked = Badge("good", "✓ 2 of 2 checks as predicted")
    assert shown(theory=("corollary-3-1-1",))["badge"] == checked
    assert shown(excuse="It cannot be tested.")["badge"] is None


def test_a_check_that_fails_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"holds": True}, {"holds": False}]
    told = {"findings": {"theorem": {"rows": rows}}}
    monkeypatch.setattr("gvf_lab.report.sentence_verdicts.theory", lambda: told)
    wrong = Sentence("s", "Section 1", "It is so.", theory=("theorem",))
    [group] = table([wrong], [])
    assert group["sentences"][0]["badge"] == Badge("bad", "✗ 1 of 2 checks as predicted")
    assert summary([wrong], [])["held"] == Badge("bad", "0 of them hold")


def test_the_page_says_how_many_sentences_wait() -> None:
    shown = [replace(exhibit("holds", "holds", "fails"), rows=rows())]
    text, told = write(shown), summary(sentences(), shown)
    assert 0 < told["judged"] < told["absent"]
    assert f"{told['absent']} of these wait for results." in text
    assert "… incomplete" in text


# What was changed when results were known


def test_sentences_with_another_verdict_than_first_are_listed() -> None:
    one, excused = (
        saying(first="fails"),
        Sentence("e", "p", "It is so.", excuse="No.", first="holds"),
    )
    told = summary([one, excused], [exhibit("holds", "holds", "fails")])["changed"]
    badges = [[badge.text for badge in there["badges"]] for there in told]
    assert badges == [["✗ fails", "± in part"], ["✓ holds", "– not tested"]]
    # The same verdict, none yet, and a sentence that was never judged before are not changes.
    assert summary([saying(first="in part")], [exhibit("holds", "fails")])["changed"] == []
    assert summary([one], [])["changed"] == []
    assert summary([saying()], [exhibit("fails", "fails", "fails")])["changed"] == []


def test_comparisons_are_counted_by_what_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = get("markov-vtrace")
    first, second, third, *_ = figure.claims
    claims = (
        replace(
            first,
            history=(
                HistoryEntry("2026-11-15: written."),
                HistoryEntry("2026-11-16: so.", "results"),
            ),
        ),
        replace(second, history=(HistoryEntry("2026-11-16: written.", "audit"),)),
        replace(third, history=(HistoryEntry("2026-11-15: results were known, it says."),)),
    )
    few = {"markov-vtrace": replace(figure, claims_of=lambda id: claims)}
    monkeypatch.setattr("gvf_lab.report.sentence_verdicts.FIGURES", few)
    assert summary([], [])["written"] == {"all": 3, "known": 1, "audit": 1}


def test_another_verdict_under_protocol_authors_is_told() -> None:
    several = [
        verdict
        for protocol, told in (("paper", "holds"), ("authors", "fails"))
        for verdict in exhibit(told, told, told, protocol=protocol).verdicts
    ]
    told = summary([saying()], [replace(exhibit(), verdicts=several)])
    [there] = told["authors"]
    assert [badge.text for badge in there["badges"]] == ["✓ holds", "✗ fails"]
    assert told["lines"][0]["authors"] == "fails"
    alike = summary([saying()], [exhibit("holds", "holds", "holds")])
    assert (alike["authors"], alike["lines"][0]["authors"]) == ([], "")


def test_other_words_change_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [
        Exhibit(version.figure, None, version)
        for version in map(shipped, FIGURES.values())
        if version is not None
    ]
    before = summary(sentences(), shown)

    def reworded(figure: Figure) -> Figure:
        claims = tuple(
            replace(
                claim,
                sentence="So.",
                why="So.",
                history=tuple(replace(entry, text="So.") for entry in claim.history),
            )
            for claim in figure.claims
        )
        return replace(figure, title=f"So: {figure.id}", claims_of=lambda id: claims)

    figures = {id: reworded(figure) for id, figure in FIGURES.items()}
    room = "gvf_lab.report.sentence_verdicts"
    monkeypatch.setattr(f"{room}.FIGURES", figures)
    for name, signs in (("SIGNS", SIGNS), ("SENTENCE_SIGNS", SENTENCE_SIGNS)):
        monkeypatch.setattr(f"{room}.{name}", dict.fromkeys(signs, Badge("open", "so")))
    same = Badge("bad", "so")
    for name in ("REFUTED", "CONTRADICTED", "UNTESTED"):
        monkeypatch.setattr(f"{room}.{name}", same)
    monkeypatch.setattr(
        f"{room}.BADGES_WITHOUT_RESULTS", dict.fromkeys(BADGES_WITHOUT_RESULTS, same)
    )
    texts = {name: "So." for name in ("says", "refuted", "contradicted", "excuse", "remark")}
    others = [
        replace(one, **{name: text for name, text in texts.items() if getattr(one, name)})
        for one in sentences()
    ]
    after = summary(
        others,
        [
            Exhibit(
                figures[one.figure.id], None, replace(one.shipped, figure=figures[one.figure.id])
            )
            for one in shown
            if one.shipped is not None
        ],
    )
    numbers = [name for name, value in before.items() if isinstance(value, int)]
    assert len(numbers) == 9
    assert {name: after[name] for name in numbers} == {name: before[name] for name in numbers}
    assert after["written"] == before["written"]
    for name in ("authors", "changed", "lines"):
        assert [one["id"] for one in after[name]] == [one["id"] for one in before[name]]
    # Comparisons are counted by the world of their figure, whatever its title says.
    where = [[line["turns"].split(". ")[0] for line in told["lines"]] for told in (before, after)]
    assert where[0] == where[1]
