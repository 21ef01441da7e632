"""Pictures and statistics of the racing car, from results made by hand."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from racing_by_hand import FIGURE, METHODS, STUDY, states

from gvf_lab import paper
from gvf_lab.racing import RacingStudy
from gvf_lab.racing.film import draw_film
from gvf_lab.racing.racing_figure import (
    LEARNING_CURVES,
    _spread,
    remark,
    second_largest_spread_ratio,
)
from gvf_lab.report.exhibit import Provenance, Version
from gvf_lab.study.results import MethodResults, Results, resampling

pytestmark = pytest.mark.usefixtures("one_thread", "cache")


# Pictures, by hand.


def results_of(study: RacingStudy, constant: float = 2.0, **errors: Any) -> Results:
    """Results with these errors [R, L] of a method, and of all others ones."""
    rng = np.random.default_rng(0)
    cells = {}
    for method in study.methods:
        default = np.ones((study.runs, len(study.step_sizes)))
        error = np.asarray(errors.get(method, default), np.float64)
        curve = rng.uniform(0, 1, (*error.shape, 4))
        shown = rng.uniform(0, 1, (*error.shape, 8))
        key = (study.pairs[0], study.gap, method)
        # The middles of four equal parts of ten updates.
        steps = np.broadcast_to([1.25, 3.75, 6.25, 8.75], curve.shape)
        columns = {"error": error, "final": error, "curve": curve, "curve_steps": steps}
        cells[key] = MethodResults(
            study.step_sizes, columns | {"film": shown, "constant": np.full(error.shape, constant)}
        )
    return Results(study, "paper", cells)


def test_learning_curves_are_drawn_against_updates() -> None:
    results = results_of(STUDY, IR=[[1.0, 0.5], [1.0, 0.5]])
    picture = LEARNING_CURVES.draw(results)
    assert picture is not None
    (axes,) = picture.axes
    assert axes.get_xlabel() == "updates"
    lines = [np.asarray(line.get_xydata()) for line in axes.get_lines()]
    ours = next(line for line in lines if len(line) == 4)
    # Four equal parts of ten updates.
    np.testing.assert_allclose(ours[:, 0], [1.25, 3.75, 6.25, 8.75])
    expected = results.of("IR").curve[:, 1].mean(axis=0)
    assert any(np.allclose(line[:, 1], expected) for line in lines if len(line) == 4)


def test_the_film_shows_returns_and_mean_predictions_at_the_best_rate() -> None:
    results = results_of(STUDY, IR=[[1.0, 0.5], [1.0, 0.5]], IS=[[0.5, math.inf], [0.5, 1.0]])
    picture = draw_film(results)
    assert picture is not None
    *frames, axes = picture.axes
    assert len(frames) == 7
    np.testing.assert_array_equal(frames[0].get_images()[0].get_array(), states(8, 3).frames[0])
    np.testing.assert_array_equal(frames[-1].get_images()[0].get_array(), states(8, 3).frames[7])
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    assert set(lines) == set(METHODS)
    for method, lane in (("IR", 1), ("IS", 0)):
        x, y = np.asarray(lines[method].get_xydata()).T
        # A frame in three is kept, of ten a second.
        np.testing.assert_allclose(x, 0.3 * np.arange(8))
        film = results.of(method)["film"]
        np.testing.assert_allclose(y, film[:, lane].mean(axis=0))


@pytest.mark.parametrize(
    ("simulator", "runs", "told"),
    [
        ("torcs", 2, "TORCS, only 2 of 10 runs"),
        ("torcs", 9, "TORCS, only 9 of 10 runs"),
        ("torcs", 10, "TORCS"),
        ("torcs", 25, "TORCS"),
        ("car-racing", 2, "Gymnasium's CarRacing"),
    ],
)
def test_the_title_says_what_drove_and_how_often(simulator: str, runs: int, told: str) -> None:
    assert remark(replace(STUDY, simulator=simulator, runs=runs)) == told


@pytest.mark.parametrize(("simulator", "runs"), [("torcs", 2), ("torcs", 10), ("car-racing", 2)])
def test_the_title_fits_the_picture(simulator: str, runs: int) -> None:
    figure = paper.get(FIGURE)
    results = results_of(replace(STUDY, simulator=simulator, runs=runs))
    how = Provenance(
        "quick", runs, 0, "gvf reproduce", "1.2", "2 processors", "2026-01-02T03:04:05Z", 1.0
    )
    shown = Version(
        figure, figure.read(results), provenance={"paper": how}, results={"paper": results}
    )
    assert shown.title == f"{figure.title} ({remark(results.study)})"
    picture = shown.draw()
    picture.draw_without_rendering()
    (title,) = picture.texts
    assert title.get_text() == shown.title
    room, box = picture.bbox, title.get_window_extent()
    assert room.x0 < box.x0 < box.x1 < room.x1


def test_the_best_constant_is_a_line_across_the_picture() -> None:
    figure = paper.get(FIGURE)
    results = results_of(STUDY, constant=0.25)
    line = [row for row in figure.read(results) if row.series == "best constant"]
    assert [(row.x, row.y, row.stderr) for row in line] == [(0.01, 0.25, 0.0), (0.1, 0.25, 0.0)]
    picture = LEARNING_CURVES.draw(results)
    assert picture is not None
    assert "best constant" in [text.get_text() for text in picture.legends[0].get_texts()]


# Statistics.


@pytest.mark.parametrize("other", ["IS", "V-trace(1.0)"])
def test_sensitivity_counts_the_rates_that_are_better_than_the_best_constant(other: str) -> None:
    study = replace(STUDY, runs=2, step_sizes=(0.1, 0.2, 0.3))
    (claim,) = (
        claim
        for claim in paper.get(FIGURE).claims
        if claim.id.startswith("ir-less-sensitive-than") and other in claim.sentence
    )
    # The mean counts, and a tie with the constant is not better.
    errors = {
        "IR": [[0.1, 0.4, 0.9], [0.1, 0.5, 0.9]],
        other: [[0.5, 0.1, 0.9], [0.5, 0.2, math.inf]],
    }
    for constant, expected in ((0.5, 1), (1.0, 1), (0.1, 0)):
        found = claim.value(results_of(study, constant=constant, **errors))
        assert np.asarray(found)[0] == expected


def test_bc_ir_is_judged_at_the_largest_rate_that_ir_can_use() -> None:
    study = replace(STUDY, runs=2, step_sizes=(0.1, 0.2, 0.3))
    (claim,) = paper.get("racing-momentum").claims
    errors = {"IR": [[0.1, 0.4, 0.9]] * 2, "BC-IR": [[0.3, 0.6, 0.9]] * 2}
    for constant, expected in ((1.0, 1.0), (0.5, 1.5), (0.2, 3.0), (0.05, math.nan)):
        found = claim.value(results_of(study, constant=constant, **errors))
        np.testing.assert_allclose(np.asarray(found), expected)


def test_the_spread_over_runs_is_that_of_every_sample_by_itself() -> None:
    rng = np.random.default_rng(3)
    study = replace(STUDY, runs=6, step_sizes=(0.1, 0.2, 0.3, 0.4))
    ir, plain = 1.0 + rng.normal(0, (1e-7, 0.1, 0.1, 0.1), (2, 6, 4))
    plain[:, 1] = 5 * plain[:, 1]
    plain[2, 2] = math.inf
    ir[2, 3] = plain[2, 3] = math.inf
    ir[:, 1] += rng.normal(0.1, 0.1, 6)  # usable in some samples
    results = results_of(study, constant=1.1, IR=ir, IS=plain)
    with np.errstate(invalid="ignore"):  # as where a claim is judged
        spread, more = _spread(results, "IS"), second_largest_spread_ratio(results, "IS", "IR")
    counts = np.rint(resampling(6) * 6).astype(int)
    assert len(spread) == len(more) == len(counts) == 2001
    for sample in range(300):
        runs = np.repeat(np.arange(6), counts[sample])
        if len(set(runs.tolist())) == 1:
            continue  # all the same run
        ratios = []
        for rate in range(4):
            both = []
            for errors in (plain, ir):
                some = errors[runs, rate]
                both.append(some.std() if np.isfinite(some).all() else math.inf)
            # A relative error of 1e-9 remains where runs differ in the seventh digit.
            assert spread[sample, rate] == pytest.approx(both[0], rel=1e-6)
            # Rates at which IR is no better than the best constant do not count.
            ratios.append(both[0] / both[1] if ir[runs, rate].mean() < 1.1 else 0.0)
        assert more[sample] == pytest.approx(sorted(ratios)[-2], rel=1e-6)
