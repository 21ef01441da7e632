"""Errors of charts: averages over questions, at the best of the choices that count."""

from typing import Any

import numpy as np
import pytest

from gvf_lab.charts.chart_pictures import (
    best_errors,
    chart_learning_curves,
    chart_points_by_step_size,
    fixed_points,
)
from gvf_lab.charts.chart_statistics import (
    best,
    best_choice,
    column_of,
    flat_range,
    highest,
    lowest,
    share_worse_than_start,
    spread_over_traces,
    start_error,
    without_traces,
)
from gvf_lab.study import MethodResults, OnlineStudy, Results, Study

RUNS = 6


def window(errors: dict[str, list[float]]) -> Results:
    """Results of two questions, the errors of the second being a tenth larger."""
    study = Study("w", "rooms", tuple(errors), (0.1, 0.2, 0.4), steps=20, points=10, runs=RUNS,
                  pairs=(("SW-H0", "uniform"), ("SW-H1", "uniform")))  # fmt: skip
    found = {}
    for pair, more in zip(study.pairs, (0.0, 0.1), strict=True):
        for method, values in errors.items():
            error = np.tile(values, (RUNS, 1)) + more
            curve = np.repeat(error[:, :, None], 10, axis=2)
            curve[:, :, 0] += 1
            steps = np.tile(np.arange(10.0), (RUNS, 3, 1))
            columns = {"error": error, "final": 2 - error, "curve": curve, "curve_steps": steps}
            found[pair, 1, method] = MethodResults(study.choices(method), columns)
    return Results(study, "paper", found)


def online(error: Any) -> Results:
    """Results of TD(lambda) with two step sizes and two values of lambda."""
    study = OnlineStudy("o", "collision", ("TD(lambda)",), (0.1, 0.2), (0.0, 0.9), runs=RUNS)
    every = np.broadcast_to(error, (RUNS, 4))
    columns = {"error": every, "final": every}
    key = (study.pairs[0], None, "TD(lambda)")
    return Results(study, "both", {key: MethodResults(study.choices("TD(lambda)"), columns)})


def test_questions_are_averaged() -> None:
    results = window({"IR": [0.3, 0.2, 0.4]})
    np.testing.assert_allclose(column_of(results, "IR")[0], [0.35, 0.25, 0.45])
    assert best_choice(results, "IR") == 1
    np.testing.assert_allclose(best(results, "IR"), 0.25)


def test_a_column_is_taken_where_the_error_is_lowest_or_where_told() -> None:
    results = window({"IR": [0.3, 0.2, 0.4]})
    np.testing.assert_allclose(best(results, "IR", "final"), 1.75)
    np.testing.assert_allclose(best(results, "IR", "final", by="final"), 1.55)
    np.testing.assert_allclose(best(results, "IR", "early"), 1.25)


def test_the_lowest_and_the_highest_of_some_methods() -> None:
    results = window({"IR": [0.3, 0.2, 0.4], "BC-IR": [0.5, 0.1, 0.5], "IS": [0.9, 0.9, 0.9]})
    np.testing.assert_allclose(lowest(results, ("IR", "BC-IR")), 0.15)
    np.testing.assert_allclose(highest(results, ("IR", "BC-IR")), 0.25)


def test_only_the_choices_that_count() -> None:
    results = online([0.5, 0.1, 0.4, 0.2])
    assert best_choice(results, "TD(lambda)") == 1
    assert best_choice(results, "TD(lambda)", without_traces) == 2
    np.testing.assert_allclose(best(results, "TD(lambda)", where=without_traces), 0.4)
    np.testing.assert_allclose(spread_over_traces(results, "TD(lambda)"), 4.0)
    np.testing.assert_allclose(flat_range(results, "TD(lambda)", 1.3, without_traces), 2)
    np.testing.assert_allclose(flat_range(results, "TD(lambda)", 1.2, without_traces), 1)


def halves(first: list[float], second: list[float]) -> Results:
    """Results of TD(lambda) whose two halves of the runs have different errors."""
    error = np.repeat([first, second], RUNS // 2, axis=0)
    return online(error).second_half()


def test_the_first_half_chooses_and_the_second_is_reported() -> None:
    results = halves([0.1, 0.2, 0.3, 0.4], [0.9, 0.8, 0.6, 0.7])
    assert results.runs == RUNS // 2
    assert best_choice(results, "TD(lambda)") == 0
    assert set(best(results, "TD(lambda)")) == {0.9}
    np.testing.assert_allclose(best(results, "TD(lambda)", where=without_traces), 0.9)
    np.testing.assert_allclose(spread_over_traces(results, "TD(lambda)"), 0.9 / 0.8)
    np.testing.assert_allclose(flat_range(results, "TD(lambda)", 0.8), 2)


def test_bootstrap_samples_keep_the_choice() -> None:
    error = np.full((RUNS, 4), 1.0)
    error[:, 0] = [0, 0, 0, 0, 0, 4]  # the best on average, by one run the worst
    errors = best(online(error), "TD(lambda)")
    assert errors[0] == pytest.approx(4 / 6)
    assert errors.max() > 1.0


def test_other_parameters_are_chosen_by_the_first_half_at_every_step_size() -> None:
    rows = chart_points_by_step_size(halves([0.5, 0.1, 0.4, 0.6], [0.3, 0.4, 0.5, 0.2]))
    found = {(row.panel, row.series, row.x): row for row in rows}
    assert found["traces", "TD(lambda)", 0.1].y == pytest.approx(0.4)
    assert found["traces", "TD(lambda)", 0.2].y == pytest.approx(0.5)
    assert {row.runs for row in rows} == {RUNS // 2}
    exact = fixed_points("collision", "turning", 3, first=3)["TD fixed point"]
    assert exact == fixed_points("collision", "turning", 6)["TD fixed point"][3:]
    assert found["traces", "TD fixed point", 0.1].y == pytest.approx(np.mean(exact))


def test_the_table_of_best_errors_has_both_halves() -> None:
    results = halves([0.5, 0.1, 0.4, 0.6], [0.3, 0.4, 0.5, 0.2])
    traced, plain = best_errors(results)
    assert (traced.panel, traced.method, traced.step_size, traced.trace_decay) == (
        "traces", "TD(lambda)", 0.1, 0.9,
    )  # fmt: skip
    assert (traced.error, traced.chosen_error) == pytest.approx((0.4, 0.1))
    assert (traced.stderr, traced.chosen_stderr) == pytest.approx((0.0, 0.0))
    assert traced.eta is None
    assert (plain.panel, plain.step_size, plain.trace_decay) == ("no traces", 0.2, 0.0)
    assert (plain.error, plain.chosen_error) == pytest.approx((0.5, 0.4))


def test_the_share_of_choices_that_are_worse_than_the_start() -> None:
    start = start_error("collision", "turning")
    results = online([start + 0.01, start - 0.01, np.inf, 0.1])
    np.testing.assert_allclose(share_worse_than_start(results, "TD(lambda)"), 0.5)
    np.testing.assert_allclose(share_worse_than_start(results, "TD(lambda)", without_traces), 1)


def test_points_of_online_algorithms_have_two_panels_and_fixed_points() -> None:
    rows = chart_points_by_step_size(online([0.5, 0.1, 0.4, 0.2]))
    found = {(row.panel, row.series, row.x): row.y for row in rows}
    exact = fixed_points("collision", "turning", RUNS)
    td = np.mean(exact["TD fixed point"])
    for panel, first, second in (("traces", 0.1, 0.2), ("no traces", 0.5, 0.4)):
        assert found[panel, "TD(lambda)", 0.1] == pytest.approx(first)
        assert found[panel, "TD(lambda)", 0.2] == pytest.approx(second)
        assert found[panel, "TD fixed point", 0.1] == pytest.approx(td)
    assert len(rows) == 2 * (2 + 4 * 2)


def test_learning_curves_are_those_of_the_best_choice() -> None:
    rows = chart_learning_curves(window({"IR": [0.3, 0.2, 0.4]}))
    mine = [row for row in rows if row.series == "IR"]
    assert [row.x for row in mine] == list(range(10))
    assert [round(row.y, 6) for row in mine] == [1.25] + 9 * [0.25]
    assert {row.step_size for row in mine} == {0.2}


def test_fixed_points_of_tasks_are_the_published_ones() -> None:
    """Means over runs and questions, to the published digits."""
    for domain, behaviour, runs, want in (
        ("collision", "turning", 50, (0.3061, 0.1111, 0.1382, 0.0713)),
        ("rooms", "uniform", 2, (0.2268, 0.0811, 0.1038, 0.0752)),
        ("high-variance-rooms", "pulled", 1, (0.2690, 0.0774, 0.1105, 0.0722)),
    ):
        found = [np.mean(errors) for errors in fixed_points(domain, behaviour, runs).values()]
        np.testing.assert_allclose(found, want, atol=6e-5)
