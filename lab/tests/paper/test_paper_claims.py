"""The paper's claims: each is borne out, refuted or left open where results are made so by hand."""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from cases import CASES, GAPS
from planted import Truth, elsewhere, planted

from gvf_lab import paper
from gvf_lab.figure import Claim, Figure, Verdict, judge

FIGURES = {
    # All gaps at which claims compare methods, so that none is mistaken for another.
    id: replace(figure, quick={**figure.quick, "gaps": GAPS}) if "gaps" in figure.quick else figure
    for id, figure in paper.FIGURES.items()
}
CLAIMS = [
    pytest.param(figure, claim, protocol, id=f"{figure.id}/{claim.id}-{protocol}")
    for figure in FIGURES.values()
    for claim in figure.claims
    for protocol in claim.protocols
]
FIRST_CLAIMS = [
    pytest.param(figure, figure.claims[0], id=figure.id)
    for figure in FIGURES.values()
    if figure.claims
]
NEEDY = [
    pytest.param(figure, claim, id=f"{figure.id}/{claim.id}")
    for figure in FIGURES.values()
    for claim in figure.claims
    if claim.needs
]


def verdict_on(
    figure: Figure, claim: Claim, protocol: str, truths: tuple[Truth, ...], **how: Any
) -> Verdict:
    others = {
        name: planted(FIGURES[name], protocol, elsewhere(truths), **how) for name in claim.needs
    }
    return judge(claim, planted(figure, protocol, truths, **how), others)


def test_every_claim_has_planted_truths_and_no_other_has() -> None:
    known = {(figure.id, claim.id) for figure in FIGURES.values() for claim in figure.claims}
    assert {(figure, claim) for figure, cases in CASES.items() for claim in cases} == known


@pytest.mark.parametrize(("figure", "claim", "protocol"), CLAIMS)
def test_planted_results_give_every_verdict(figure: Figure, claim: Claim, protocol: str) -> None:
    case = CASES[figure.id][claim.id]
    for verdict in ("holds", "fails", "undecided"):
        for truths in case.truths(verdict):
            told = verdict_on(figure, claim, protocol, truths, about=case.about)
            assert told.verdict == verdict, (told, truths)
            assert (told.id, told.sentence, told.protocol) == (claim.id, claim.sentence, protocol)
            assert told.runs == 8
            assert told.low is not None
            assert told.high is not None
            assert told.low <= told.high
            assert told.remark == (claim.because if verdict == "fails" else "")


@pytest.mark.parametrize(("figure", "claim"), FIRST_CLAIMS)
def test_a_verdict_can_be_written(figure: Figure, claim: Claim) -> None:
    case = CASES[figure.id][claim.id]
    told = verdict_on(figure, claim, "paper", case.truths("holds")[0], about=case.about)
    written = json.loads(json.dumps(asdict(told), allow_nan=False))
    assert list(written)[:8] == [
        "id", "sentence", "statistic", "low", "high", "runs", "protocol", "verdict",
    ]  # fmt: skip
    assert (written["why"], written["history"]) == (
        claim.why,
        [entry.text for entry in claim.history],
    )


@pytest.mark.parametrize(("figure", "claim"), FIRST_CLAIMS)
def test_fewer_than_five_runs_decide_nothing(figure: Figure, claim: Claim) -> None:
    (truths, *_) = CASES[figure.id][claim.id].truths("holds")
    told = verdict_on(figure, claim, "paper", truths, runs=4)
    assert (told.verdict, told.low, told.high, told.runs) == ("undecided", None, None, 4)
    assert told.remark == "fewer than 5 runs do not tell"
    json.dumps(asdict(told), allow_nan=False)


@pytest.mark.parametrize(("figure", "claim"), NEEDY)
def test_a_claim_says_what_else_it_needs(figure: Figure, claim: Claim) -> None:
    told = judge(claim, planted(figure, "paper", [Truth()]))
    assert (told.verdict, told.statistic, told.low, told.high) == ("not judged", None, None, None)
    for name in claim.needs:
        assert name in told.remark
    json.dumps(asdict(told), allow_nan=False)


def test_a_claim_takes_the_results_it_needs_at_any_scale() -> None:
    figure, constant = paper.get("continuous-rmsprop-all"), paper.get("continuous-sgd-all")
    claim = next(claim for claim in figure.claims if claim.id == "rmsprop-worse-than-constant")
    fewer = replace(constant, quick={"gaps": (16, 256)})
    others = {constant.id: planted(fewer, "paper", [Truth()], runs=5)}
    told = judge(claim, planted(figure, "paper", [Truth(error={"IR": 2.0})], runs=8), others)
    assert (told.verdict, told.runs) == ("holds", 5)
    assert told.statistic == pytest.approx(2.0, rel=0.2)
