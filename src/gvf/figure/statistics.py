"""Statistics for claims: each gives a number for every bootstrap sample of the runs.

All take their errors from :class:`gvf.study.results.Results`. A method's step size is chosen by the
same rule as in the figures.

Ranges of step sizes end where a line through the points passes a limit. If they ended at points of
the grid, small changes of an error would move them by whole steps. Near the end of a range few runs
have huge errors, and the rarest run alone would decide the mean. So in a range a run's error counts
as at most `MOST_FACTOR` times the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gvf.common.arrays import Array
from gvf.study.results import Pair, Results

Statistic = Callable[[Results], Array]

USABLE_FACTOR = 2.0
"""A step size is usable if its error is at most this many times the best error."""
REACH_LIMIT = 1.0
"""The error at which a method's reach ends."""
MOST_FACTOR = 2.0
"""A run's error counts as at most this many times the limit of a range of step sizes."""
LAST_SHARE = 0.1
"""The share of a run that counts as its end."""


def times(method: str, other: str, pair: Pair | None = None) -> Statistic:
    """Make the statistic: the error of `method` over that of `other`, at the best step sizes."""
    return lambda results: (
        results.best(named(results, method), pair=pair)
        / results.best(named(results, other), pair=pair)
    )


def named(results: Results, method: str) -> str:
    """Return a method's name in a study, which may have NormIS instead of IS."""
    return "NormIS" if method == "IS" and "IS" not in results.study.methods else method


def usable_range(results: Results, method: str, pair: Pair | None = None) -> Array:
    """Return the largest usable step size over the smallest, [1 + B]; 1 if none is usable.

    Between points the error is a line in the logarithm of the step size, since grids are coarse
    where step sizes are small.

    Example:
        >>> from gvf.study.results import MethodResults, Results
        >>> from gvf.figure.statistics import usable_range
        >>> from gvf.study import Study
        >>> import numpy as np
        >>> pairs = [("down", "uniform")]
        >>> study = Study("s", "four-rooms", ("IR",), (1, 2, 8), pairs=pairs, runs=1)
        >>> error = np.array([[0.25, 0.25, 0.75]])
        >>> measured = MethodResults(study.choices("IR"), {"error": error})
        >>> results = Results(study, "paper", {(study.pairs[0], 1, "IR"): measured})
        >>> round(float(usable_range(results, "IR")[0]), 6)  # the line passes twice 0.25 at 4
        4.0
    """
    return _range(results, method, pair, results.best(method, pair=pair))


def accurate_range(results: Results, method: str, other: str, pair: Pair | None = None) -> Array:
    """Return the same as :func:`usable_range`, but judged by the better of two methods.

    A step size counts if its error is at most twice the best error of the two. The range is 1 if
    there is none.
    """
    best = np.minimum(results.best(method, pair=pair), results.best(other, pair=pair))
    return _range(results, method, pair, best)


def _range(results: Results, method: str, pair: Pair | None, best: Array) -> Array:
    """Return the largest over the smallest step size with at most twice an error [1 + B].

    It is 1 if there is none.
    """
    measured = results.of(method, pair=pair)
    if not np.isfinite(best[0]):
        return np.ones(best.shape)
    limits = USABLE_FACTOR * np.where(np.isfinite(best), best, 0.0)
    sizes = np.array(measured.choices)
    errors = results.average(np.minimum(measured.error, MOST_FACTOR * limits[0]))[:, sizes > 0]
    logs = np.log(sizes[sizes > 0])
    usable = errors <= limits[:, None]
    last = logs.size - 1
    low, high = usable.argmax(axis=1), last - usable[:, ::-1].argmax(axis=1)
    smallest = _crossing(logs, errors, limits, low, np.maximum(low - 1, 0))
    largest = _crossing(logs, errors, limits, high, np.minimum(high + 1, last))
    return np.where(usable.any(axis=1), np.exp(largest - smallest), 1.0)


def reach(results: Results, method: str, pair: Pair | None = None) -> Array:
    """Return the step size at which the error passes 1, or the grid's last if none, [1 + B]."""
    measured = results.of(method, pair=pair)
    sizes = np.array(measured.choices)
    errors = results.average(np.minimum(measured.error, MOST_FACTOR * REACH_LIMIT))
    over = errors >= REACH_LIMIT
    beyond = np.where(over.any(axis=1), over.argmax(axis=1), sizes.size)
    limits = np.full(len(errors), REACH_LIMIT)
    within, beyond = np.maximum(beyond - 1, 0), np.minimum(beyond, sizes.size - 1)
    return _crossing(sizes, errors, limits, within, beyond)


def _crossing(places: Array, errors: Array, limits: Array, within: Array, beyond: Array) -> Array:
    """Return the place at which a line from `within` to `beyond` passes the limit, [1 + B].

    Both are numbers of places, and neighbours; equal ones mean the end of the grid.
    """
    row = np.arange(len(errors))
    low, high = errors[row, within], errors[row, beyond]
    share = (limits - low) / np.where(high > low, high - low, 1.0)
    return places[within] + share * (places[beyond] - places[within])


def ends_at(results: Results, method: str, pair: Pair | None = None) -> Array:
    """Return the error over the last tenth of the run, at the best step size of the whole run."""
    measured = results.of(method, pair=pair)
    late = max(1, round(LAST_SHARE * measured.curve.shape[2]))
    end = results.average(measured.curve[:, :, -late:].mean(axis=2))
    return end[np.arange(len(end)), results.chosen(method, pair=pair)]


def growth(results: Results, method: str, pair: Pair | None = None) -> Array:
    """Return the growth of the error from the smallest gap to the largest, [1 + B]."""
    few, many = gaps(results)
    method = named(results, method)
    return results.best(method, few, pair) - results.best(method, many, pair)


def gaps(results: Results) -> tuple[int, int]:
    """Return the largest gap (few updates) and the smallest (many)."""
    return max(results.study.gaps), min(results.study.gaps)


def over_gaps(results: Results, method: str, pair: Pair | None = None) -> Array:
    """Return the error of the best step size at every gap, [1 + B, gaps]."""
    method = named(results, method)
    return np.stack([results.best(method, gap, pair) for gap in results.study.gaps], axis=1)


def spread(errors: Sequence[Array]) -> Array:
    """Return the largest over the smallest of several errors [1 + B].

    Example:
        >>> from gvf.figure.statistics import spread
        >>> import numpy as np
        >>> spread([np.array([1.0]), np.array([3.0]), np.array([2.0])]).tolist()
        [3.0]
    """
    stacked = np.stack(errors)
    return stacked.max(axis=0) / stacked.min(axis=0)


def beside(results: Results, method: str, others: Sequence[str]) -> Array:
    """Return a method's error over the geometric mean of the errors of others, [1 + B]."""
    theirs = np.stack([results.best(other) for other in others])
    return results.best(method) / np.exp(np.log(theirs).mean(axis=0))


def best_of_all(method: str, pair: Pair | None = None, without: Sequence[str] = ()) -> Statistic:
    """Make the statistic: the smallest error of the other methods over that of `method`."""

    def statistic(results: Results) -> Array:
        others = [name for name in results.study.methods if name not in (method, *without)]
        smallest = np.min([results.best(other, pair=pair) for other in others], axis=0)
        return smallest / results.best(method, pair=pair)

    return statistic


def rank_correlation(first: Array, second: Array) -> Array:
    """Compute Spearman's rank correlation in every row of two arrays [1 + B, m], ties averaged.

    Example:
        >>> from gvf.figure.statistics import rank_correlation
        >>> import numpy as np
        >>> rank_correlation(np.array([[1.0, 2.0, 3.0]]), np.array([[9.0, 8.0, 1.0]])).tolist()
        [-1.0]
    """
    a, b = (_ranks(values) for values in (first, second))
    a, b = (ranks - ranks.mean(axis=1, keepdims=True) for ranks in (a, b))
    return (a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))


def _ranks(values: Array) -> Array:
    below = (values[:, None, :] < values[:, :, None]).sum(axis=2)
    equal = (values[:, None, :] == values[:, :, None]).sum(axis=2)
    return below + (equal - 1) / 2
