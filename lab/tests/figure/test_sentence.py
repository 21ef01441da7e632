"""Sentences: the claims that judge them, and the verdict from theirs."""

from itertools import combinations

import pytest

from gvf_lab.figure.claim import Sentence, Verdict, weigh


def verdict(told: str, given: str = "") -> Verdict:
    known = ("c", "It is so.", 1.0, 1.0, 1.0, 5, "paper", told, "a number", (0.0, None), "")
    return Verdict(*known, given=given)


WEIGHED = {
    (): "undecided",
    ("holds",): "holds",
    ("fails",): "fails",
    ("undecided",): "undecided",
    ("holds", "fails"): "in part",
    ("holds", "undecided"): "undecided",
    ("fails", "undecided"): "fails",
    ("holds", "fails", "undecided"): "in part",
}


@pytest.mark.parametrize(("found", "expected"), WEIGHED.items())
def test_a_sentence_is_weighed_by_the_verdicts_on_its_claims(
    found: tuple[str, ...], expected: str
) -> None:
    assert weigh(verdict(one) for one in found) == expected
    # Neither their order nor their number matters.
    assert weigh(verdict(one) for one in (found * 2)[::-1]) == expected


def test_every_combination_is_weighed() -> None:
    kinds = ("holds", "fails", "undecided")
    assert set(WEIGHED) == {some for many in range(4) for some in combinations(kinds, many)}


@pytest.mark.parametrize("given", ["holds", "fails", "undecided"])
@pytest.mark.parametrize(("found", "expected"), WEIGHED.items())
def test_claims_that_count_for_nothing_change_nothing(
    found: tuple[str, ...], expected: str, given: str
) -> None:
    assert weigh([*map(verdict, found), verdict(given, "It follows.")]) == expected


def test_claims_are_named_in_full() -> None:
    sentence = Sentence("s", "Section 1", "It is so.", claims=("gap/ir-faster", "all/ir-wider"))
    for name, expected in {
        "gap/ir-faster": True,
        "gap/ir-faster-than-is": False,
        "all/ir-faster": False,
        "all/ir-wider": True,
        "gap/ir-wider": False,
    }.items():
        assert sentence.judged_by(*name.split("/")) == expected, name
    assert not Sentence("s", "p", "It is so.", excuse="It cannot be tested.").judged_by("all", "x")


def test_only_judged_sentences_of_the_paper_count() -> None:
    claims = ("all/x",)
    assert Sentence("s", "p", "It is so.", claims=claims).counts
    assert not Sentence("s", "p", "It is so.", claims=claims, ours=True).counts
    assert not Sentence("s", "p", "It is so.", claims=claims, repeats="t").counts
    assert not Sentence("s", "p", "It is so.", theory=("theorem",)).counts


def test_a_sentence_needs_something_that_judges_it() -> None:
    with pytest.raises(ValueError, match=r"^s: needs claims, theory, a refutation, a "):
        Sentence("s", "Section 1", "It is so.")
    assert not Sentence("s", "Section 1", "It is so.", refuted="It is not.").counts
    assert not Sentence("s", "Section 1", "It is so.", contradicted="Code differs.").counts


def test_a_claim_is_named_with_its_figure() -> None:
    sentence = Sentence("s", "Section 1", "It is so.", claims=("gap/ir-faster", "all/ir-wide"))
    assert sentence.figures == {"gap", "all"}
    with pytest.raises(ValueError, match="s: claims are named figure/claim, got 'ir-faster'"):
        Sentence("s", "Section 1", "It is so.", claims=("ir-faster",))
