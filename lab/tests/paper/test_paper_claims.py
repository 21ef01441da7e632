"""The paper's claims: each statistic holds, fails and stays open; ranges fit words."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
from cases import CASES, Case
from golden_claims import FIGURES
from planted import DOWN, Truth, by_hand, elsewhere, planted

from gvf_lab import paper
from gvf_lab.figure import Claim, Verdict, judge
from gvf_lab.figure.statistics import Bounds
from gvf_lab.study import Study
from gvf_lab.study.results import Results

EVERY = [(figure, claim) for figure in paper.FIGURES.values() for claim in figure.claims]


def claim_of(figure: str, id: str) -> Claim:
    return next(claim for claim in FIGURES[figure].claims if claim.id == id)


def verdict_on(
    figure: str, claim: Claim, protocol: str, truths: Sequence[Truth], **how: Any
) -> Verdict:
    others = {
        name: planted(FIGURES[name], protocol, elsewhere(truths), **how) for name in claim.needs
    }
    return judge(claim, planted(FIGURES[figure], protocol, truths, **how), others)


def test_every_statistic_of_the_paper_has_planted_truths() -> None:
    assert {claim.statistic.__name__ for _, claim in EVERY} == set(CASES)
    for statistic, cases in CASES.items():
        for figure, id in cases:
            assert claim_of(figure, id).statistic.__name__ == statistic, id


@pytest.mark.parametrize(
    ("figure", "claim", "protocol", "case"),
    [
        pytest.param(figure, claim, protocol, case, id=f"{statistic}-{figure}-{id}-{protocol}")
        for statistic, cases in CASES.items()
        for (figure, id), case in cases.items()
        for claim in [claim_of(figure, id)]
        for protocol in claim.protocols
    ],
)
def test_planted_results_give_every_verdict(
    figure: str, claim: Claim, protocol: str, case: Case
) -> None:
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


FASTER = ("four-rooms-learning-curves", "ir-faster-than-is")


def test_a_verdict_can_be_written() -> None:
    claim, case = claim_of(*FASTER), CASES["error_ratio"][FASTER]
    told = verdict_on(FASTER[0], claim, "paper", case.truths("holds")[0], about=case.about)
    written = json.loads(json.dumps(asdict(told), allow_nan=False))
    assert list(written)[:8] == [
        "id", "sentence", "statistic", "low", "high", "runs", "protocol", "verdict",
    ]  # fmt: skip
    assert (written["why"], written["history"]) == (
        claim.why,
        [entry.text for entry in claim.history],
    )


def test_fewer_than_five_runs_decide_nothing() -> None:
    (truths, *_) = CASES["error_ratio"][FASTER].truths("holds")
    told = verdict_on(FASTER[0], claim_of(*FASTER), "paper", truths, runs=4)
    assert (told.verdict, told.low, told.high, told.runs) == ("undecided", None, None, 4)
    assert told.remark == "fewer than 5 runs do not tell"
    json.dumps(asdict(told), allow_nan=False)


@pytest.mark.parametrize("needs", sorted({claim.needs for _, claim in EVERY if claim.needs}))
def test_a_claim_says_what_else_it_needs(needs: tuple[str, ...]) -> None:
    figure, claim = next((figure, claim) for figure, claim in EVERY if claim.needs == needs)
    told = judge(claim, planted(figure, "paper", [Truth()]))
    assert (told.verdict, told.statistic, told.low, told.high) == ("not judged", None, None, None)
    assert told.remark == f"needs {', '.join(needs)} too"
    json.dumps(asdict(told), allow_nan=False)


def test_a_claim_takes_the_results_it_needs_at_any_scale() -> None:
    figure, constant = paper.get("continuous-rmsprop-all"), paper.get("continuous-sgd-all")
    claim = claim_of(figure.id, "rmsprop-worse-than-constant")
    fewer = replace(constant, quick={"gaps": (16, 256)})
    others = {constant.id: planted(fewer, "paper", [Truth()], runs=5)}
    told = judge(claim, planted(figure, "paper", [Truth(error={"IR": 2.0})], runs=8), others)
    assert (told.verdict, told.runs) == ("holds", 5)
    assert told.statistic == pytest.approx(2.0, rel=0.2)


# Ranges, and the words of sentences


def test_words_for_differences_exclude_each_other() -> None:
    noticed, as_stark = 1.1, 0.9
    for _, claim in EVERY:
        if "noticeabl" in claim.why:
            assert (claim.least, claim.most) == (noticed, math.inf), claim.id
        if "slightly" in claim.why or "alike" in claim.why:
            assert claim.most <= noticed, claim.id
        if "stark" in claim.why and "table" in claim.id:
            ends = {(as_stark, math.inf), (-math.inf, as_stark)}
            assert (claim.least, claim.most) in ends, claim.id
    said = {word for _, claim in EVERY for word in ("noticeabl", "slightly") if word in claim.why}
    assert said == {"noticeabl", "slightly"}


def test_step_sizes_in_other_units_do_not_count() -> None:
    for _, claim in EVERY:
        passes = "passes 1" in claim.measure and "rank correlation" not in claim.measure
        if passes and ("V-trace" in claim.sentence or "NormIS" in claim.sentence):
            assert claim.not_counted, claim.id


FLAT = [0.9, 0.4, 0.2, 0.4, 0.9]
"""Errors with the best step size inside the grid."""


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict", "remark"),
    [
        # Their best step size is 0, so that they may be better with a small one.
        (FLAT, [0.6, 0.9, 0.9, 0.9, 0.9], "undecided", "the best step size of IS is 0, at the end"),
        (FLAT, [0.1, 0.9, 0.9, 0.9, 0.9], "fails", ""),
        (FLAT, [0.9, 0.9, 0.8, 0.5, 0.3], "undecided", "the best step size of IS is 4, at the end"),
        (FLAT, [0.9, 0.9, 0.8, 0.41, 0.4], "holds", ""),  # nearly flat, and far above
        # The same the other way round.
        ([0.1, 0.9, 0.9, 0.9, 0.9], FLAT, "holds", ""),
        ([0.3, 0.9, 0.9, 0.9, 0.9], FLAT, "undecided", "the best step size of IR is 0, at the end"),
        ([0.9, 0.9, 0.8, 0.41, 0.4], FLAT, "fails", ""),
    ],
)
def test_a_best_step_size_at_an_end_of_the_grid_decides_one_way_only(
    ours: list[float], theirs: list[float], verdict: str, remark: str
) -> None:
    errors = {(DOWN, 8, "IR"): [ours] * 5, (DOWN, 8, "IS"): [theirs] * 5}
    claim = replace(claim_of(*FASTER), least=1.0)
    told = judge(claim, by_hand(errors, step_sizes=(0.0, 0.5, 1.0, 2.0, 4.0)))
    assert told.verdict == verdict
    assert told.remark.startswith(remark)
    assert bool(told.remark) == bool(remark)


# Numbers of updates

GAPS = (16, 64, 256)
UPDATES = {16: 6187, 64: 1546, 256: 386}


def needed(ours: float, theirs: Sequence[float]) -> float:
    """Return how many times IR's updates IS needs, with errors at gaps 256, 64 and 16."""
    errors = {
        (DOWN, gap, method): [[error]] * 2
        for method, at_gaps in (("IR", (9.0, ours, 0.01)), ("IS", theirs))
        for gap, error in zip(GAPS[::-1], at_gaps, strict=True)
    }
    settings = {"gaps": GAPS, "step_sizes": (0.5,), "steps": 100_000, "warm_up": 1000}
    results: Results = by_hand(errors, **settings)
    assert {gap: results.study.updates_at(gap) for gap in GAPS} == UPDATES
    told = claim_of("continuous-rmsprop", "ir-needs-fewer-updates-than-is").value(results)
    assert isinstance(told, Bounds)
    assert (told.least == told.most).all()
    assert (told.most == told.most[0]).all()
    return told.most[0]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (0.4, (0.8, 0.6, 0.4), UPDATES[16] / UPDATES[64]),  # at a measured point
        (0.5, (0.8, 0.6, 0.4), math.sqrt(UPDATES[16] / UPDATES[64])),  # half-way, in logarithms
        (0.7, (0.8, 0.6, 0.4), math.sqrt(UPDATES[256] / UPDATES[64])),
        (0.6, (0.8, 0.6, 0.4), 1.0),
        (0.3, (0.8, 0.6, 0.4), math.inf),  # never reached
        (0.9, (0.8, 0.6, 0.4), 0.0),  # reached before the fewest updates
        (0.5, (0.8, 0.4, 0.6), (UPDATES[256] / UPDATES[64]) ** 0.25),  # the first time counts
        (0.5, (math.inf, 0.6, 0.4), math.sqrt(UPDATES[16] / UPDATES[64])),
        (0.5, (math.inf, math.inf, 0.4), UPDATES[16] / UPDATES[64]),  # no line leads to infinity
    ],
)
def test_updates_that_another_method_needs_for_the_error_of_ir(
    ours: float, theirs: tuple[float, float, float], expected: float
) -> None:
    assert needed(ours, theirs) == pytest.approx(expected, rel=1e-3)


def test_numbers_of_updates_are_those_of_the_gaps() -> None:
    for figure, claim in EVERY:
        if "updates)" in claim.sentence and "gap" in claim.of:
            study = figure.study("paper")
            assert isinstance(study, Study)
            assert f"{study.updates_at(claim.of['gap']):,} updates)" in claim.sentence
    study = paper.get("continuous-rmsprop").study("paper")
    assert isinstance(study, Study)
    assert study.updates_at(64) == UPDATES[64]
