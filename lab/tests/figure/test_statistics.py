"""Statistics, against versions written the obvious way, in the runs as they are and in samples."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from planted import DOWN, by_hand
from scipy.stats import spearmanr

from gvf_lab.figure.points import points_by_step_size
from gvf_lab.figure.statistics import (
    Bounds,
    accurate_range,
    agreement,
    best_error,
    best_of_all,
    ends_at,
    error_ratio,
    gaps,
    growth,
    largest,
    largest_stable_step,
    mean,
    named,
    outside_range,
    over_gaps,
    rank_correlation,
    rises,
    smallest,
    spread,
    usable_range,
)
from gvf_lab.study import Study
from gvf_lab.study.results import MethodResults, Results, resampling

SIZES = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)
INF = math.inf
SOME = (0, 1, 2, 77, 2000)


def random_results(seed: int, points: int = 20) -> Results:
    """Errors about 1, so that they pass it somewhere; one in ten is infinite."""
    rng = np.random.default_rng(seed)
    errors, settings = {}, {"step_sizes": SIZES, "points": points}
    for gap in (2, 8, 32):
        for method in ("IR", "IS", "Sarsa"):
            error = rng.uniform(0.2, 1.3, (6, len(SIZES)))
            error[rng.random((6, len(SIZES))) < 0.1] = INF
            error[:, 0] = 0.8
            errors[DOWN, gap, method] = error
    results = by_hand(errors, **settings)
    cells = {}
    for key, cell in results.by_method.items():
        curve = rng.uniform(0.2, 1.3, (6, len(SIZES), points))
        cells[key] = replace(cell, columns={**cell.columns, "curve": curve})
    return replace(results, by_method=cells)


def one_gap(results: Results, gap: int = 8) -> Results:
    study = results.study
    assert isinstance(study, Study)
    cells = {key: cell for key, cell in results.by_method.items() if key[1] == gap}
    return replace(results, study=replace(study, gaps=(gap,)), by_method=cells)


def averages(results: Results, sample: int, values: np.ndarray) -> list[float]:
    """Averages over runs in one bootstrap sample, of each column."""
    counts = np.rint(resampling(results.runs)[sample] * results.runs).astype(int)
    told = []
    for column in values.T:
        drawn = [value for value, count in zip(column, counts, strict=True) for _ in range(count)]
        told.append(INF if INF in drawn else sum(drawn) / len(drawn))
    return told


def lanes_of(results: Results, sample: int, method: str, gap: int = 8) -> list[float]:
    return averages(results, sample, results.by_method[DOWN, gap, method].error)


@pytest.mark.parametrize("seed", range(5))
def test_errors_are_averages_over_the_runs_of_a_sample(seed: int) -> None:
    results = random_results(seed)
    errors, best = results.errors("IR", 8), results.best("IR", 8)
    for sample in SOME:
        expected = lanes_of(results, sample, "IR")
        np.testing.assert_allclose(errors[sample], expected)
        assert best[sample] == pytest.approx(min(expected))
    # In the runs as they are, these are what the figures show.
    shown = [row.y for row in points_by_step_size(one_gap(results)) if row.series == "IR"]
    np.testing.assert_allclose(errors[0], shown)


def bounded(results: Results, sample: int, method: str, most: float) -> list[float]:
    """Averages in one sample, with every run's error counted as at most `most`."""
    return averages(results, sample, np.minimum(results.by_method[DOWN, 8, method].error, most))


def passing(a: tuple[float, float], b: tuple[float, float], limit: float) -> float:
    """Return the place where a line through two points (size, error) has the height `limit`."""
    return a[0] + (limit - a[1]) / (b[1] - a[1]) * (b[0] - a[0])


def limit_of(best: float, start: float) -> float:
    """Return the largest usable error: twice the best, or half-way to that without learning."""
    return min(2 * best, (best + start) / 2)


def usable_by_walking(errors: Sequence[float], limit: float) -> tuple[float, float]:
    """Return bounds on the usable range, along the line through the points (log size, error).

    Neighbours of this grid are near each other, and no smallest error is far above the limit.
    """
    points = [(math.log(size), e) for size, e in zip(SIZES[1:], errors[1:], strict=True)]
    usable = [i for i, (_, error) in enumerate(points) if error <= limit]
    if not usable:
        bottom = errors.index(min(errors))
        return 1.0, 1.0 if 1 < bottom < len(points) else INF
    low, high, open_ended = points[usable[0]][0], points[usable[-1]][0], False
    if usable[0] > 0:
        low = passing(points[usable[0]], points[usable[0] - 1], limit)
    else:
        open_ended = True
    if usable[-1] < len(points) - 1:
        high = passing(points[usable[-1]], points[usable[-1] + 1], limit)
    else:
        open_ended = True
    return math.exp(high - low), INF if open_ended else math.exp(high - low)


def told(bounds: Bounds, sample: int = 0) -> tuple[float, float]:
    return float(bounds.least[sample]), float(bounds.most[sample])


@pytest.mark.parametrize("seed", range(5))
def test_the_usable_range_is_that_of_step_sizes_within_twice_the_best(seed: int) -> None:
    results = one_gap(random_results(seed))
    ranges = {method: usable_range(results, method) for method in ("IR", "IS")}
    for sample in SOME:
        for method, found in ranges.items():
            limit, most = (
                limit_of(min(errors), errors[0])
                for errors in (lanes_of(results, one, method) for one in (sample, 0))
            )
            expected = usable_by_walking(bounded(results, sample, method, 2 * most), limit)
            assert told(found, sample) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("other", "limit"),
    [
        ([0.8, 0.3, 0.3, 0.3, 0.3, 0.8], 0.6),  # as accurate, over a wider range
        ([0.8, 0.6, 0.6, 0.6, 0.6, 0.8], 0.6),  # exactly twice the best is accurate
        ([0.8, 0.9, 0.7, 0.7, 0.7, 0.8], 0.6),  # inaccurate everywhere
        ([0.8, 0.9, 0.1, 0.9, 0.9, 0.9], 0.2),  # so accurate that ours is not
        ([0.1, 0.9, 0.9, 0.9, 0.9, 0.9], 0.2),  # a step size of 0 has no ratio
        ([INF] * 6, 0.6),
    ],
)
def test_a_range_is_accurate_by_the_better_of_two_methods(other: list[float], limit: float) -> None:
    errors = {"IR": [0.8, 0.9, 0.3, 0.4, 0.5, 0.7], "IS": other}
    cells = {(DOWN, 8, method): [error] * 2 for method, error in errors.items()}
    results = by_hand(cells, step_sizes=SIZES)
    for one, another in (("IR", "IS"), ("IS", "IR")):
        here = limit_of(limit / 2, errors[one][0])
        counted = [min(error, 2 * here) for error in errors[one]]
        expected = usable_by_walking(counted, here)
        assert told(accurate_range(results, one, another)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ([0.8, 0.7, 0.6, 0.5, 0.5, 0.6], (1.0, 1.0)),  # the grid shows that there is none
        ([0.8, 0.7, 0.6, 0.5, 0.5, 0.3], (1.0, INF)),  # falling at the end of the grid
        ([0.8, 0.3, 0.5, 0.5, 0.5, 0.5], (1.0, INF)),  # smallest at the smallest step size
        ([0.8, 0.5, 0.6, 0.6, 0.6, 0.6], (1.0, 1.0)),  # the same, but far above the limit
        ([0.8, 0.9, INF, INF, INF, INF], (1.0, INF)),  # all are too large
        ([0.8, INF, INF, INF, INF, INF], (1.0, INF)),
    ],
)
def test_no_step_size_of_the_grid_may_mean_that_there_is_none(
    theirs: list[float], expected: tuple[float, float]
) -> None:
    errors = {"IR": [0.8, 0.7, 0.1, 0.1, 0.1, 0.7], "IS": theirs}
    cells = {(DOWN, 8, method): [error] * 2 for method, error in errors.items()}
    results = by_hand(cells, step_sizes=SIZES)
    assert told(accurate_range(results, "IS", "IR")) == expected


def test_a_method_is_compared_with_the_best_of_all_others() -> None:
    skewed = ("down", "random-state")
    best = {
        DOWN: {"IR": 0.4, "IS": 0.5, "Sarsa": 0.3, "On-policy": 0.1},
        skewed: {"IR": 0.2, "IS": 0.5, "Sarsa": 0.8, "On-policy": 0.1},
    }
    cells = {
        (pair, 8, method): [[0.9, error, 0.9]] * 2
        for pair, errors in best.items()
        for method, error in errors.items()
    }
    results = by_hand(cells)
    for method, pair, without, expected in (
        ("IR", DOWN, (), 0.1 / 0.4),
        ("IR", DOWN, ("On-policy",), 0.3 / 0.4),
        ("Sarsa", DOWN, ("On-policy",), 0.4 / 0.3),
        ("Sarsa", skewed, ("On-policy",), 0.2 / 0.8),
    ):
        found = best_of_all(results, method, pair, without)
        assert told(found) == pytest.approx((expected, expected))


@pytest.mark.parametrize(
    ("errors", "least", "most"),
    [
        ([0.9, 0.6, 0.2, 0.2, 0.2, 0.6], math.sqrt(8 / 0.1), math.sqrt(8 / 0.1)),  # half-way
        ([0.3, 0.2, 0.2, 0.2, 0.2, 0.2], 20.0, INF),  # beyond the grid on either side
        ([0.9, 0.6, 0.2, 0.2, 0.2, 0.2], 4 / math.sqrt(0.1), INF),  # beyond its end
        ([0.9, 0.2, 0.2, 0.2, 0.2, INF], 2 ** (4 / 3) / 0.2, INF),  # below its start; counts as .8
        ([0.9, 0.2, 0.2, 0.2, 0.2, 1e300], 2 ** (4 / 3) / 0.2, INF),
        ([0.1, 0.6, 0.6, 0.6, 0.6, 0.6], 1.0, INF),  # only without learning
        ([0.5, 0.5, 0.4, 0.3, 0.4, 0.5], 4.0, 4.0),  # all but those with less than half of the gain
        ([INF] * 6, 1.0, INF),
    ],
)
def test_the_usable_range_of_a_curve(errors: list[float], least: float, most: float) -> None:
    results = by_hand({(DOWN, 8, "IR"): [errors, errors]}, step_sizes=SIZES)
    assert told(usable_range(results, "IR")) == pytest.approx((least, most))


def test_an_end_in_a_wide_gap_of_the_grid_has_bounds() -> None:
    errors = [0.9, 0.7, 0.2, 0.2, 0.2, 0.6]
    sizes = (0.0, 0.016, 0.16, 0.4, 0.8, 1.6)
    results = by_hand({(DOWN, 8, "IR"): [errors, errors]}, step_sizes=sizes)
    largest_usable = math.sqrt(0.8 * 1.6)
    expected = largest_usable / 0.16, largest_usable / 0.016
    assert told(usable_range(results, "IR")) == pytest.approx(expected)
    passes = [0.5, 0.5, 1.5, 1.5, 1.5, 1.5]
    results = by_hand({(DOWN, 8, "IR"): [passes, passes]}, step_sizes=sizes)
    assert told(largest_stable_step(results, "IR")) == (0.016, 0.16)


def test_a_finer_grid_has_the_same_usable_range() -> None:
    def range_on(sizes: Sequence[float]) -> tuple[float, float]:
        errors = [0.1 + 0.1 * abs(math.log2(size)) for size in sizes]
        results = by_hand({(DOWN, 8, "IR"): [errors, errors]}, step_sizes=sizes)
        return told(usable_range(results, "IR"))

    # From a half to 2; on the points of the coarse grid there is only 1.
    assert range_on((0.25, 0.5, 1.0, 2.0, 4.0)) == pytest.approx((4.0, 4.0))
    assert range_on((0.4, 1.0, 2.5)) == pytest.approx((4.0, 4.0))


def reach_by_walking(errors: Sequence[float]) -> tuple[float, float]:
    """Return bounds on the place where a line through the points above 0 first reaches 1."""
    for i, error in enumerate(errors[1:], start=1):
        if error < 1.0:
            continue
        if i == 1:
            return 0.0, SIZES[1]
        place = passing((SIZES[i - 1], errors[i - 1]), (SIZES[i], error), 1.0)
        return place, place
    return SIZES[-1], INF


@pytest.mark.parametrize("seed", range(5))
def test_the_reach_is_where_the_error_passes_1(seed: int) -> None:
    results = one_gap(random_results(seed))
    found = largest_stable_step(results, "IR")
    for sample in SOME:
        expected = reach_by_walking(bounded(results, sample, "IR", 2.0))
        assert told(found, sample) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("errors", "least", "most"),
    [
        ([0.5, 0.5, 0.5, 0.5, 0.5, 0.5], 4.0, INF),  # never
        ([0.5, 0.5, 0.5, 0.5, 0.5, 1.5], 3.0, 3.0),  # half-way between 2 and 4
        ([0.5, 0.5, 0.5, 1.0, 0.5, 0.5], 1.0, 1.0),  # touching counts
        ([0.5, 0.5, 0.5, INF, 0.5, 0.5], 2 / 3, 2 / 3),  # counts as 2
        ([0.5, 1.5, 0.5, 1.5, 0.5, 0.5], 0.0, 0.2),  # the first time counts
        ([1.5, 0.5, 0.5, 0.5, 0.5, 0.5], 4.0, INF),  # a step size of 0 does not
        ([0.5, 0.5, 0.5, 0.5, 1e300, 1e300], 4 / 3, 4 / 3),
    ],
)
def test_the_reach_of_a_curve(errors: list[float], least: float, most: float) -> None:
    results = by_hand({(DOWN, 8, "IR"): [errors, errors]}, step_sizes=SIZES)
    assert told(largest_stable_step(results, "IR")) == pytest.approx((least, most))


def bounds(least: float, most: float) -> Bounds:
    return Bounds(np.array([least]), np.array([most]))


@pytest.mark.parametrize(
    ("ours", "theirs", "marks", "expected"),
    [
        ((6.0, 6.0), (3.0, 3.0), (1.0,), 2.0),
        ((3.0, 3.0), (3.0, 3.0), (1.0,), 1.0),  # a tie that is known
        ((12.0, INF), (3.0, 3.0), (1.0,), 4.0),  # at least
        ((3.0, 3.0), (12.0, INF), (1.0,), 0.25),  # at most
        ((12.0, INF), (12.0, INF), (1.0,), math.nan),  # both are beyond the grid
        ((0.5, 0.5), (0.0, 0.1), (1.0,), 5.0),  # theirs is below the smallest step size
        ((0.0, 0.1), (0.0, 0.1), (1.0,), math.nan),
        ((12.0, INF), (11.0, 11.0), (1 / 1.1, 1.1), math.nan),  # may be alike, or not
        ((12.0, INF), (6.0, 6.0), (1 / 1.1, 1.1), 2.0),
        ((2.0, 2.1), (2.0, 2.0), (1 / 1.1, 1.1), 1.05),  # alike wherever it lies
        ((3.0, 6.0), (12.0, 12.0), (1.0,), 0.5),
        ((3.0, 30.0), (12.0, 12.0), (1.0,), math.nan),  # an end in a wide gap
    ],
)
def test_bounds_decide_or_give_no_value(
    ours: tuple[float, float],
    theirs: tuple[float, float],
    marks: tuple[float, ...],
    expected: float,
) -> None:
    (value,) = (bounds(*ours) / bounds(*theirs)).against(*marks)
    assert value == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("errors", "factor", "size"),
    [
        ([0.9, 0.5, 0.2, 0.3, 0.4, 0.5], 1.0, None),  # inside the grid
        ([0.9, 0.2, 0.2, 0.3, 0.4, 0.5], 1.0, None),  # at its start, which is flat
        ([0.9, 0.5, 0.4, 0.3, 0.2, 0.2], 1.0, None),  # inside, though the end is as good
        ([0.9, 0.2, 0.25, 0.3, 0.4, 0.5], 0.64, 0.2),  # from .5 on the error is 1.25 times as large
        ([0.9, 0.5, 0.4, 0.3, 0.25, 0.2], 0.64, 4),
        ([0.9, 0.2, INF, INF, INF, INF], 0.0, 0.2),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 0.0, 0),  # without learning
        ([0.1, 0.1001, 0.3, 0.4, 0.5, 0.6], 0.0, 0),  # the same, however flat
        ([INF] * 6, 1.0, None),
    ],
)
def test_the_best_error_at_an_end_of_the_grid_is_a_bound(
    errors: list[float], factor: float, size: float | None
) -> None:
    results = by_hand({(DOWN, 8, "IR"): [errors, errors]}, step_sizes=SIZES)
    found = best_error(results, "IR")
    assert told(found) == pytest.approx(
        (factor * min(errors) if factor < 1 else min(errors), min(errors))
    )
    reason = f"the best step size of IR is {size}, at the end of the grid"
    assert found.why == (() if size is None else (reason,))


@pytest.mark.parametrize(("last", "factor"), [(1.0, 0.25), (1.2, 0.25), (2.6, 0.0)])
def test_an_end_is_judged_by_a_step_size_twice_as_far_inside(last: float, factor: float) -> None:
    # The nearest one of a fine grid is nearly as good, wherever the best lies; if none is as far
    # inside, nothing is known.
    sizes = [last, last + 0.6, last + 1.2]
    results = by_hand({(DOWN, 8, "IR"): [[0.2, 0.3, 0.4]] * 2}, step_sizes=sizes)
    assert told(best_error(results, "IR")) == pytest.approx((0.2 * factor, 0.2))


def test_the_best_step_size_is_at_an_end_of_its_own_grid() -> None:
    # Eta is judged at the best u0; with the other one its curve is flat.
    study = Study("s", "continuous-four-rooms", ("WIS-TD(0)",), (0.1,), pairs=(DOWN,), runs=2,
                  update="incremental", u0=(1.0, 64.0), mu=(0.1, 0.4, 1.6))  # fmt: skip
    errors = {(1.0, 0.1): 0.2, (1.0, 0.4): 0.4, (1.0, 1.6): 0.8}
    error = np.array([[errors.get(choice, 0.3) for choice in study.choices("WIS-TD(0)")]] * 2)
    measured = MethodResults(study.choices("WIS-TD(0)"), {"error": error})
    results = Results(study, "paper", {(DOWN, 1, "WIS-TD(0)"): measured})
    found = best_error(results, "WIS-TD(0)")
    assert told(found) == pytest.approx((0.05, 0.2))
    assert found.why == ("the best step size of WIS-TD(0) is 0.1, at the end of the grid",)


def test_reasons_are_told_once() -> None:
    errors = {"IR": [0.9, 0.5, 0.2, 0.3, 0.4, 0.5], "IS": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
    cells = {(DOWN, 8, method): [error] * 2 for method, error in errors.items()}
    ratio = error_ratio(by_hand(cells, step_sizes=SIZES), "IS", "IR")
    assert told(ratio) == (0.0, pytest.approx(0.5))
    assert len((ratio - ratio).why) == len(spread([ratio, ratio]).why) == len(ratio.why) == 1


def test_bounds_of_several_numbers() -> None:
    numbers = [bounds(1.0, 1.0), bounds(2.0, 3.0), bounds(12.0, INF)]
    assert told(smallest(numbers)) == (1.0, 1.0)
    assert told(smallest(numbers[1:])) == (2.0, 3.0)
    assert told(largest(numbers)) == (12.0, INF)
    assert told(largest(numbers[:2])) == (2.0, 3.0)
    assert told(rises(numbers)) == (2.0, 3.0)
    assert told(mean(numbers[:2])) == (1.5, 2.0)
    assert told(numbers[1] - numbers[0]) == (1.0, 2.0)
    assert told(numbers[0] - numbers[2]) == (-INF, -11.0)
    assert told(rises([numbers[0], numbers[2], numbers[2]])) == (0.0, INF)


def test_one_run_in_many_does_not_decide_a_range() -> None:
    usual = [0.9, 0.2, 0.2, 0.2, 0.2, 5.0]
    lost = [0.9, 0.2, 0.2, 0.2, 1e9, 1e9]
    plain, mixed = (
        by_hand({(DOWN, 8, "IR"): [usual] * 50 + [last]}, step_sizes=SIZES)
        for last in (usual, lost)
    )
    for range_of in (largest_stable_step, usable_range):
        assert told(range_of(mixed, "IR")) == pytest.approx(told(range_of(plain, "IR")), rel=0.02)


def test_a_step_size_can_be_chosen_once_for_all_samples() -> None:
    results = one_gap(random_results(3))
    once = results.choosing_once()
    lane = int(np.argmin(results.errors("IR")[0]))
    np.testing.assert_array_equal(once.best("IR"), results.errors("IR")[:, lane])
    assert (once.best("IR") > results.best("IR")).any()
    assert once.best("IR")[0] == results.best("IR")[0]
    assert set(once.chosen("IR")) == {lane}
    late = results.by_method[DOWN, 8, "IR"].curve[:, lane, 18:].mean(axis=1)
    np.testing.assert_allclose(ends_at(once, "IR"), results.average(late))


def test_the_end_is_the_last_tenth_at_the_step_size_that_is_best_over_the_run() -> None:
    results = one_gap(random_results(3))
    told = ends_at(results, "IR")
    for sample in SOME:
        errors = lanes_of(results, sample, "IR")
        best = errors.index(min(errors))
        late = results.by_method[DOWN, 8, "IR"].curve[:, best, 18:].mean(axis=1)
        assert told[sample] == pytest.approx(averages(results, sample, late[:, None])[0])
    # A curve of few points has one at its end.
    short = one_gap(random_results(3, points=4))
    lane = int(np.argmin(short.errors("IR")[0]))
    expected = short.by_method[DOWN, 8, "IR"].curve[:, lane, -1].mean()
    assert ends_at(short, "IR")[0] == pytest.approx(expected)


def test_statistics_over_gaps() -> None:
    results = random_results(4)
    assert gaps(results) == (32, 2)
    at_gaps, grown = over_gaps(results, "IR"), growth(results, "IR")
    for sample in SOME:
        best = [min(lanes_of(results, sample, "IR", gap)) for gap in (2, 8, 32)]
        np.testing.assert_allclose([error.most[sample] for error in at_gaps], best)
        ends = [error.least[sample] for error in at_gaps]
        assert grown.most[sample] == pytest.approx(best[2] - ends[0])
        assert grown.least[sample] == pytest.approx(ends[2] - best[0])


def test_statistics_of_several_methods() -> None:
    results = one_gap(random_results(6))
    ratio, outside = error_ratio(results, "IR", "IS"), outside_range(results, "Sarsa", ["IR", "IS"])
    apart = spread([best_error(results, method) for method in ("IR", "IS", "Sarsa")])
    assert apart.why == ()  # all best step sizes lie inside the grid
    for sample in SOME:
        ir, is_, sarsa = (min(lanes_of(results, sample, m)) for m in ("IR", "IS", "Sarsa"))
        assert told(ratio, sample) == pytest.approx((ir / is_, ir / is_))
        expected = max(sarsa / max(ir, is_), min(ir, is_) / sarsa)
        assert outside.most[sample] == pytest.approx(expected)
        assert apart.most[sample] == pytest.approx(max(ir, is_, sarsa) / min(ir, is_, sarsa))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(4.0, 2.0, 2.0), (2.0, 4.0, 2.0), (0.25, 0.5, 2.0), (4.0, 0.5, 0.5), (0.5, 4.0, 0.5),
     (1.0, 4.0, 1.0), (INF, 2.0, 2.0)],
)  # fmt: skip
def test_agreement_is_the_smaller_of_two_factors(
    first: float, second: float, expected: float
) -> None:
    assert agreement(np.array([first]), np.array([second]))[0] == pytest.approx(expected)


def test_is_stands_for_what_is_drawn_as_it() -> None:
    with_norm = by_hand({(DOWN, 8, method): [[1.0] * 3] * 2 for method in ("IR", "NormIS")})
    assert [named(with_norm, method) for method in ("IS", "IR")] == ["NormIS", "IR"]
    assert named(one_gap(random_results(0)), "IS") == "IS"


def test_the_rank_correlation_is_that_of_spearman() -> None:
    rng = np.random.default_rng(6)
    # Small whole numbers: many ties.
    first, second = rng.integers(0, 5, (2, 200, 8)).astype(np.float64)
    first[:3, 0] = INF
    expected = np.array([spearmanr(a, b)[0] for a, b in zip(first, second, strict=True)], float)
    np.testing.assert_allclose(rank_correlation(first, second), expected, atol=1e-12)
    rising = np.arange(8.0)[None]
    assert rank_correlation(rising, rising**3) == pytest.approx(1.0)
    assert rank_correlation(rising, -rising) == pytest.approx(-1.0)
