"""Intervals: a case that can be counted, and the share of experiments in which they are right."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from planted import DOWN, by_hand

from gvf.common.arrays import Array
from gvf.common.quantiles import tail_of
from gvf_lab.figure.claim import interval
from gvf_lab.figure.statistics import Bounds, largest_stable_step, usable_range
from gvf_lab.study.results import Results, resampling


def one_method(errors: Array, sizes: tuple[float, ...]) -> Results:
    return by_hand({(DOWN, 8, "IR"): errors.tolist()}, step_sizes=sizes)


def test_an_interval_spans_step_sizes_chosen_once_and_anew() -> None:
    # The second is the better on average, .9 to 1, but lost as soon as the last run is drawn twice.
    errors = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 4.5]])
    told = interval(lambda results: results.best("IR"), [one_method(errors, (0.5, 1.0))])
    # Anew, no sample is above 1. Kept, a sample is .9 times the number of its draws of the last
    # run: four of five or more with probability .0067, five with .0003; the tail is .001.
    assert told == (pytest.approx(0.9), 0.0, pytest.approx(3.6), "", ())


def test_too_few_runs_and_samples_without_value_have_no_ends() -> None:
    few = one_method(np.ones((4, 1)), (1.0,))
    told = interval(lambda results: results.best("IR"), [few])
    assert told.value == 1.0
    assert all(math.isnan(end) for end in (told.low, told.high))
    lost = one_method(np.array([[1.0]] * 5 + [[math.inf]]), (1.0,))
    told = interval(lambda results: results.best("IR") / results.best("IR"), [lost])
    assert all(math.isnan(number) for number in told[:3])


@pytest.mark.parametrize(
    ("least", "most", "marks", "expected", "bound"),
    [
        (2.0, 3.0, (1.0,), 2.0, ">="),
        (2.0, 3.0, (4.0,), 3.0, "<="),
        (2.0, 3.0, (1.0, 4.0), 3.0, "<="),
        (2.0, 2.0, (1.0,), 2.0, ""),
        (2.0, 3.0, (2.5,), math.nan, ""),
        (2.0, 3.0, (), math.nan, ""),
    ],
)
def test_bounds_have_a_value_where_they_decide(
    least: float, most: float, marks: tuple[float, ...], expected: float, bound: str
) -> None:
    size = resampling(8).shape[0]
    bounds = Bounds(np.full(size, least), np.full(size, most), ("It is so.",))
    told = interval(lambda _: bounds, [one_method(np.ones((8, 1)), (1.0,))], *marks)
    np.testing.assert_equal(told[:3], (expected,) * 3)
    assert (told.bound, told.why) == (bound, () if least == most else ("It is so.",))


def covered(
    draw: Callable[[], Array],
    statistic: Callable[[Results], Array],
    truth: float,
    sizes: tuple[float, ...],
    experiments: int,
) -> float:
    """Return the share of experiments whose interval has the truth in it."""
    hits = 0
    for _ in range(experiments):
        told = interval(statistic, [one_method(draw(), sizes)])
        hits += told.low <= truth <= told.high
    return hits / experiments


@pytest.mark.parametrize("runs", [8, 25])
def test_intervals_of_the_best_error_cover_it(runs: int) -> None:
    # Ten step sizes that are equally good, the hardest case; the errors of a run have correlation
    # .8. The intervals cover .90 and .92; with step sizes chosen anew only, .83 and .86. The
    # standard error of 500 experiments is .013.
    rng = np.random.default_rng(runs)

    def draw() -> Array:
        shared, own = rng.normal(size=(runs, 1)), rng.normal(size=(runs, 10))
        return 1 + 0.2 * (math.sqrt(0.8) * shared + math.sqrt(0.2) * own)

    sizes = tuple(np.arange(1.0, 11.0).tolist())
    assert covered(draw, lambda r: r.best("IR"), 1.0, sizes, 500) > 0.88


@pytest.mark.parametrize("range_of", [largest_stable_step, usable_range])
def test_intervals_of_ranges_cover_them(range_of: Callable[[Results, str], Bounds]) -> None:
    # A population of 40 runs, two of which have huge errors from the fourth step size on. Few
    # experiments with 8 runs see both; with plain averages they alone decide where a range ends.
    sizes = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
    rng = np.random.default_rng(5)
    spread = 1 + 0.2 * rng.normal(size=(40, 1)) + 0.1 * rng.normal(size=(40, 6))
    population = np.array([0.9, 0.4, 0.3, 0.35, 0.5, 1.3]) * spread
    population[:2, 3:] *= 1e6

    def statistic(results: Results) -> Array:
        return range_of(results, "IR").least

    truth = float(statistic(one_method(population, sizes))[0])

    def draw() -> Array:
        return population[rng.integers(0, 40, 8)]

    assert covered(draw, statistic, truth, sizes, 300) > 0.90


def test_samples_without_a_value_may_lie_on_either_side() -> None:
    results = one_method(np.ones((8, 1)), (1.0,))
    samples = resampling(8).shape[0] - 1
    few, many = (int(share * tail_of(8) * samples) for share in (0.5, 1.5))

    def told(lost: int, value: float = 0.0) -> tuple[float, float, float]:
        numbers = np.arange(samples + 1.0)
        numbers[0], numbers[-1 - lost : -1] = value, math.nan
        return interval(lambda _: numbers, [results])[:3]

    plain, partly = told(0), told(few)
    # The largest is left, so the lost ones widen the interval at both ends.
    assert partly[1] == plain[1] - few
    assert partly[2] >= plain[2]
    assert all(math.isnan(end) for end in told(many)[1:])
    assert all(math.isnan(end) for end in told(0, math.nan)[1:])
