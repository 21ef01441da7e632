"""Comparisons that several figures make: their names, and what they compare in a small case."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from planted import DOWN, by_hand

from gvf_lab import paper
from gvf_lab.figure import Claim, judge
from gvf_lab.figure.history import HistoryEntry
from gvf_lab.figure.statistics import Bounds
from gvf_lab.paper.comparisons import (
    AS_STARK,
    AUDITED,
    NOTICED,
    SLUGS,
    TIE,
    accurate_over_wider_range,
    compared,
    larger_steps,
    lower_error,
    wider_range,
)
from gvf_lab.paper.continuous_four_rooms_figures import MIDDLE_GAP, UPDATES_AT
from gvf_lab.study import Study
from gvf_lab.study.results import Results

SKEWED = ("down", "random-state")


@pytest.mark.parametrize(
    ("claim", "id", "ending"),
    [
        (lower_error("IS"), "ir-lower-error-than-is", "IS."),
        (lower_error("IS", DOWN), "ir-lower-error-than-is-down-uniform", "IS (down/uniform)."),
        # A pair of one name has it once.
        (wider_range("IS", ("hard", "hard")), "ir-wider-than-is-hard", "IS (hard)."),
        (
            lower_error("V-trace(1.0)", SKEWED, 16, at="6,187 updates"),
            "ir-lower-error-than-v-trace-1-down-random-state-6187-updates",
            "V-trace(1.0) (down/random-state, 6,187 updates).",
        ),
        (
            lower_error("WIS-Minibatch", gap=1, at="an update after every step"),
            "ir-lower-error-than-wis-minibatch-an-update-after-every-step",
            "WIS-Minibatch (an update after every step).",
        ),
        (
            larger_steps("Expected Sarsa", DOWN),
            "ir-bears-larger-steps-than-expected-sarsa-down-uniform",
            "Expected Sarsa (down/uniform).",
        ),
        (
            accurate_over_wider_range("IS", DOWN),
            "ir-accurate-over-wider-range-than-is-down-uniform",
            "IS (down/uniform).",
        ),
        (compared("a-beats-b", "A beats B", "B", "A", at="late"), "a-beats-b-late", "B (late)."),
    ],
)
def test_ids_and_sentences_name_the_setting(claim: Claim, id: str, ending: str) -> None:
    assert claim.id == id
    assert claim.sentence.endswith(f" {ending}")
    assert claim.history[0] == AUDITED


def test_fields_of_a_claim_may_be_given() -> None:
    claim = lower_error(
        "IS", history=(HistoryEntry("2026: once."),), because="It is so.", not_counted="It follows."
    )
    assert (claim.least, claim.most, claim.why) == (1.0, math.inf, TIE)
    assert (claim.history, claim.because, claim.not_counted) == (
        (HistoryEntry("2026: once."),), "It is so.", "It follows.",
    )  # fmt: skip
    assert lower_error("IS", least=1.1, why="Noticeable.").least == 1.1


def test_methods_have_slugs_of_their_own() -> None:
    assert len(set(SLUGS.values())) == len(SLUGS)
    for slug in SLUGS.values():
        assert set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-")


def test_an_error_is_compared_on_the_pair_and_at_the_gap() -> None:
    level = iter(range(1, 99))
    errors = {
        (pair, gap, method): [[9.0, next(level) / 10, 9.0]] * 2
        for pair in (DOWN, SKEWED)
        for gap in (4, 16)
        for method in ("IR", "NormIS")
    }
    results = by_hand(errors)
    for pair, gap in ((DOWN, 4), (DOWN, 16), (SKEWED, 4), (SKEWED, 16)):
        expected = errors[pair, gap, "NormIS"][0][1] / errors[pair, gap, "IR"][0][1]
        told = lower_error("IS", pair, gap).statistic(results)
        assert isinstance(told, Bounds)
        np.testing.assert_allclose([told.least, told.most], expected)


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
    told = judge(lower_error("IS"), by_hand(errors, step_sizes=(0.0, 0.5, 1.0, 2.0, 4.0)))
    assert told.verdict == verdict
    assert told.remark.startswith(remark)
    assert bool(told.remark) == bool(remark)


def test_words_for_differences_exclude_each_other() -> None:
    every = [claim for figure in paper.FIGURES.values() for claim in figure.claims]
    for claim in every:
        if "noticeabl" in claim.why:
            assert (claim.least, claim.most) == (NOTICED, math.inf), claim.id
        if "slightly" in claim.why or "alike" in claim.why:
            assert claim.most <= NOTICED, claim.id
        if "stark" in claim.why and "table" in claim.id:
            ends = {(AS_STARK, math.inf), (-math.inf, AS_STARK)}
            assert (claim.least, claim.most) in ends, claim.id
    said = {word for claim in every for word in ("noticeabl", "slightly") if word in claim.why}
    assert said == {"noticeabl", "slightly"}


def test_step_sizes_in_other_units_do_not_count() -> None:
    for figure in paper.FIGURES.values():
        for claim in figure.claims:
            passes = "passes 1" in claim.measure and "rank correlation" not in claim.measure
            if passes and ("V-trace" in claim.sentence or "NormIS" in claim.sentence):
                assert claim.not_counted, claim.id


def of_figure(figure: str, id: str) -> Claim:
    return next(claim for claim in paper.get(figure).claims if claim.id == id)


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
    told = of_figure("continuous-rmsprop", "ir-needs-fewer-updates-than-is").statistic(results)
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


@pytest.mark.parametrize("figure", ["continuous-incremental", "continuous-sgd-all"])
def test_numbers_of_updates_are_those_of_the_gaps(figure: str) -> None:
    study = paper.get(figure).study("paper")
    assert isinstance(study, Study)
    assert {gap: f"{study.updates_at(gap):,} updates" for gap in UPDATES_AT} == UPDATES_AT
    assert study.updates_at(MIDDLE_GAP) == 1546
