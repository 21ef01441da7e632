"""Statistics for claims: each gives a number for every bootstrap sample of the runs.

All take their errors from :class:`gvf.study.results.Results`. A method's step size is chosen anew
in every sample, by the same rule as in the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gvf.common.arrays import Array
from gvf.study.results import Pair, Results

Statistic = Callable[[Results], Array]

USABLE_FACTOR = 2.0
"""A step size is usable if its error is at most this many times the best error."""
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

    Example:
        >>> from gvf.study.results import MethodResults, Results
        >>> from gvf.figure.statistics import usable_range
        >>> from gvf.study import Study
        >>> import numpy as np
        >>> pairs = [("down", "uniform")]
        >>> study = Study("s", "four-rooms", ("IR",), (1, 2, 8), pairs=pairs, runs=1)
        >>> error = np.array([[0.3, 0.5, 0.7]])
        >>> measured = MethodResults(study.choices("IR"), {"error": error})
        >>> results = Results(study, "paper", {(study.pairs[0], 1, "IR"): measured})
        >>> float(usable_range(results, "IR")[0])
        2.0
    """
    errors = results.errors(method, pair=pair)
    return _range(results, method, pair, errors.min(axis=1))


def accurate_range(results: Results, method: str, other: str, pair: Pair | None = None) -> Array:
    """Return the same as :func:`usable_range`, but judged by the better of two methods.

    A step size counts if its error is at most twice the best error of the two. The range is 1 if
    there is none.
    """
    best = np.minimum(results.best(method, pair=pair), results.best(other, pair=pair))
    return _range(results, method, pair, best)


def _range(results: Results, method: str, pair: Pair | None, best: Array) -> Array:
    """Return the largest over the smallest step size with at most twice an error [1 + B]."""
    sizes = np.array(results.of(method, pair=pair).choices)
    errors = results.errors(method, pair=pair)
    usable = (errors <= USABLE_FACTOR * best[:, None]) & (sizes > 0) & np.isfinite(errors)
    largest = np.where(usable, sizes, 0.0).max(axis=1)
    smallest = np.where(usable, sizes, np.inf).min(axis=1)
    return np.where(usable.any(axis=1), largest / smallest, 1.0)


def reach(results: Results, method: str, pair: Pair | None = None) -> Array:
    """Return the step size at which the error passes 1, or the grid's last if none, [1 + B]."""
    sizes = np.array(results.of(method, pair=pair).choices)
    errors = results.errors(method, pair=pair)
    over = ~(errors < 1.0)
    first = np.where(over.any(axis=1), over.argmax(axis=1), sizes.size - 1)
    before, row = np.maximum(first - 1, 0), np.arange(len(errors))
    low, high = errors[row, before], errors[row, first]
    share = np.where(high > 1.0, (1.0 - low) / np.where(high > low, high - low, 1.0), 1.0)
    return sizes[before] + np.clip(share, 0.0, 1.0) * (sizes[first] - sizes[before])


def ends_at(results: Results, method: str, pair: Pair | None = None) -> Array:
    """Return the error over the last tenth of the run, at the best step size of the whole run."""
    measured = results.of(method, pair=pair)
    late = max(1, round(LAST_SHARE * measured.curve.shape[2]))
    end = results.average(measured.curve[:, :, -late:].mean(axis=2))
    best = results.errors(method, pair=pair).argmin(axis=1)
    return end[np.arange(len(end)), best]


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
