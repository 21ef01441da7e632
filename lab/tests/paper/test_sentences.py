"""The list of the paper's sentences, against the claims of its figures."""

import re
from collections import Counter
from pathlib import Path

import pytest

from gvf_lab import paper
from gvf_lab.figure.claim import Sentence
from gvf_lab.paper.paper_sentences import _claims, sentences

SENTENCES = {sentence.id: sentence for sentence in sentences()}
CLAIMS = {
    f"{figure.id}/{claim.id}": claim for figure in paper.FIGURES.values() for claim in figure.claims
}
THEORY = {picture.stem for picture in (Path(__file__).parents[3] / "docs" / "theory").glob("*.png")}
"""The results of `gvf verify`, which draws a picture of each."""


def judges(sentence: Sentence) -> list[str]:
    return [name for name in CLAIMS if sentence.judged_by(*name.split("/"))]


def test_ids_are_unique() -> None:
    counts = Counter(sentence.id for sentence in sentences())
    assert [id for id, count in counts.items() if count > 1] == []


def test_a_claim_that_a_sentence_names_exists() -> None:
    assert {claim for sentence in sentences() for claim in sentence.claims} <= set(CLAIMS)


def test_a_sentence_names_a_claim_once() -> None:
    for sentence in sentences():
        assert len(sentence.claims) == len(set(sentence.claims)), sentence.id


def test_a_name_without_a_claim_is_an_error() -> None:
    assert _claims("markov-vtrace-all/v-trace-1-wider-than-is-{pair}") == [
        f"markov-vtrace-all/v-trace-1-wider-than-is-{pair}" for pair in ("easy", "hard", "hardest")
    ]
    for wrong in ("v-trace-1-wider", "v-trace-1-wider-than-is-{gap}", "{clip}-wider-than-is"):
        with pytest.raises(ValueError, match=r"markov-vtrace-all has no claim and no family"):
            _claims(f"markov-vtrace-all/{wrong}")


def test_every_claim_judges_a_sentence() -> None:
    judging = {name for sentence in sentences() for name in judges(sentence)}
    assert set(CLAIMS) - judging == set()


def test_a_sentence_repeats_one_that_repeats_nothing() -> None:
    repeated = {sentence.repeats for sentence in sentences()} - {""}
    assert repeated <= set(SENTENCES)
    assert [id for id in repeated if SENTENCES[id].repeats] == []


def test_a_sentence_that_repeats_another_has_nothing_else_to_judge_it() -> None:
    for sentence in sentences():
        assert not (sentence.repeats and (sentence.claims or sentence.theory or sentence.excuse)), (
            sentence.id
        )


def test_theory_is_verified() -> None:
    assert THEORY
    ours = {"emphatic-resampling"}  # the paper has no sentence on it
    assert {result for sentence in sentences() for result in sentence.theory} == THEORY - ours


def test_a_refuted_or_contradicted_sentence_is_judged_by_nothing_else() -> None:
    for sentence in sentences():
        others = sentence.claims or sentence.theory or sentence.excuse or sentence.repeats
        assert not ((sentence.refuted or sentence.contradicted) and others), sentence.id
        assert not (sentence.refuted and sentence.contradicted), sentence.id


def test_a_first_verdict_is_one_that_comparisons_give() -> None:
    first = {sentence.first for sentence in sentences()} - {""}
    assert first == {"holds", "in part", "fails", "undecided"}
    assert not any(sentence.first for sentence in sentences() if sentence.ours)


def test_numbers_of_the_racing_cars_streams_are_those_of_the_documentation() -> None:
    results = Path(__file__).parents[3] / "docs" / "racing" / "torcs-results.markdown"
    lines = re.findall(
        r"^\| \d+ \| ([\d.]+) \| (\d+) \| (\d+) \| .* \| `", results.read_text(), re.M
    )
    mean, largest, effective = (
        [float(one) for one in column] for column in zip(*lines, strict=True)
    )
    assert len(lines) == 10
    for id, numbers in (("torcs-ratios-1000", largest), ("torcs-is-high-variance", effective)):
        assert f"between {min(numbers):g} and {max(numbers):g}" in SENTENCES[id].excuse
    assert "most of our ten streams" in SENTENCES["torcs-ir-reduces-variance"].excuse
    assert sum(ratio < 1 for ratio in mean) > 5


def test_a_sentence_is_judged_by_a_claim_that_counts() -> None:
    for sentence in sentences():
        names = judges(sentence)
        assert not names or any(not CLAIMS[name].not_counted for name in names), sentence.id


def test_those_that_are_ours_come_last_and_are_not_said_to_be_in_the_paper() -> None:
    ours = [sentence.ours for sentence in sentences()]
    assert ours == sorted(ours)
    assert all((one.place == "not in the paper") == one.ours for one in sentences())


def test_texts_are_whole_sentences() -> None:
    for sentence in sentences():
        decided = (sentence.refuted, sentence.contradicted, sentence.excuse)
        texts = (sentence.says, *decided, sentence.remark)
        for text in filter(None, texts):
            assert text.endswith("."), text


@pytest.mark.parametrize("figure", paper.FIGURES.values(), ids=lambda figure: figure.id)
def test_a_claim_has_a_reason_for_its_range_and_a_history(figure: paper.Figure) -> None:
    for claim in figure.claims:
        assert claim.why.endswith("."), claim.id
        assert claim.history, claim.id
        texts = [entry.text for entry in claim.history]
        assert all(text[:4].isdigit() and text.endswith(".") for text in texts), claim.id
