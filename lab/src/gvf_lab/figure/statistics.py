"""Statistics for claims: each gives a number for every bootstrap sample of the runs.

A claim names one of the functions at the end, or one of its own module, and the arguments
(:mod:`gvf_lab.figure.families`). A pair or gap of None is the only one that the study has.

All take their errors from :class:`gvf_lab.study.results.Results`. A method's step size is chosen by
the same rule as in the figures. Some numbers are known only within bounds (:class:`Bounds`). A
comparison has a value where the bounds decide it, and none where they do not.

A method's best error is known if its best step size lies inside the grid. If that is an end of the
grid, a better one may lie beyond, and the error found is an upper bound (:func:`best_error`).

Ranges of step sizes end where a line through the points passes a limit. If they ended at points of
the grid, small changes of an error would move them by whole steps. Near the end of a range few runs
have huge errors, and the rarest run alone would decide the mean. So in a range a run's error counts
as at most `MOST_FACTOR` times the limit. Step size 0 learns nothing, and a step size that gains
less than half of what the best one gains over it is in no range.

A grid need not resolve an end of a range. The end may lie beyond the last step size, or below the
smallest one above 0, or between two step sizes that are far apart. Then it has bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from gvf.common.arrays import Array
from gvf_lab.figure.points import step_size_of
from gvf_lab.study.results import Pair, Results

NEIGHBOUR = 2.0
"""The factor from an end of the grid to the step size that shows how fast the error falls there."""
FALLS = 2
"""Beyond an end the error falls at most this many times as it falls from there to the end."""
USABLE_FACTOR = 2.0
"""A step size is usable if its error is at most this many times the best error."""
REACH_LIMIT = 1.0
"""The error at which a method's reach ends."""
MOST_FACTOR = 2.0
"""A run's error counts as at most this many times the limit of a range of step sizes."""
WIDEST_GAP = 2.5
"""An end between two step sizes is known if the larger is at most this many times the smaller."""
LAST_SHARE = 0.1
"""The share of a run that counts as its end."""


def named(results: Results, method: str) -> str:
    """Return a method's name in a study, which may have NormIS instead of IS."""
    return "NormIS" if method == "IS" and "IS" not in results.study.methods else method


@dataclass(frozen=True)
class Bounds:
    """A number of which only bounds may be known, in every sample.

    Attributes:
        least: the lower bound, float64[1 + B].
        most: the upper bound, float64[1 + B]; the same as `least` where the number is known.
        why: the reasons why only bounds are known.

    Example:
        >>> from gvf_lab.figure.statistics import Bounds
        >>> import numpy as np
        >>> beyond = Bounds(np.array([12.0]), np.array([np.inf]))
        >>> known = Bounds(np.array([8.0]), np.array([8.0]))
        >>> (beyond / known).against(1.0).tolist()  # at least 12 / 8
        [1.5]
        >>> (beyond / beyond).against(1.0).tolist()
        [nan]
    """

    least: Array
    most: Array
    why: tuple[str, ...] = ()

    def __truediv__(self, other: Bounds) -> Bounds:
        """Divide by a number; both are positive."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return Bounds(self.least / other.most, self.most / other.least, _all_of([self, other]))

    def __sub__(self, other: Bounds) -> Bounds:
        return Bounds(self.least - other.most, self.most - other.least, _all_of([self, other]))

    def against(self, *marks: float) -> Array:
        """Return a number on the same side of every mark as the true one, [1 + B].

        It is the number itself where that is known. Elsewhere it is the bound next to the marks, or
        nan where a mark lies between the bounds.
        """
        if not marks:
            return np.where(self.least < self.most, np.nan, self.most)
        between = np.any([(self.least <= mark) & (mark <= self.most) for mark in marks], axis=0)
        bound = np.where(self.least > max(marks), self.least, self.most)
        return np.where(between & (self.least < self.most), np.nan, bound)


def _all_of(numbers: Sequence[Bounds]) -> tuple[str, ...]:
    """Return the reasons of several numbers, each once."""
    return tuple(dict.fromkeys(reason for number in numbers for reason in number.why))


def _of_both(combine: Callable[..., Array], numbers: Sequence[Bounds]) -> Bounds:
    """Combine the lower bounds of several numbers, and their upper bounds."""
    least, most = (combine([getattr(n, end) for n in numbers], axis=0) for end in ("least", "most"))
    return Bounds(least, most, _all_of(numbers))


def smallest(numbers: Sequence[Bounds]) -> Bounds:
    """Return the smallest of several numbers."""
    return _of_both(np.min, numbers)


def largest(numbers: Sequence[Bounds]) -> Bounds:
    """Return the largest of several numbers."""
    return _of_both(np.max, numbers)


def mean(numbers: Sequence[Bounds]) -> Bounds:
    """Return the mean of several numbers."""
    return _of_both(np.mean, numbers)


def best_error(
    results: Results, method: str, gap: int | None = None, pair: Pair | None = None
) -> Bounds:
    """Return the lowest error that a method has with any step size.

    It is the error found if the best step size lies inside the grid. At an end of the grid this is
    an upper bound. For the lower bound, take the step size that lies a factor of `NEIGHBOUR` inside
    the grid. Beyond the end the error falls by at most `FALLS` times the factor by which it falls
    from there to the end. So a flat end hardly matters. Nothing is known if the best step size is
    0, which learns nothing. The grid is that of all runs, at the best values of other parameters.

    Example:
        >>> from gvf_lab.study.results import MethodResults, Results
        >>> from gvf_lab.figure.statistics import best_error
        >>> from gvf_lab.study import Study
        >>> import numpy as np
        >>> pairs = [("down", "uniform")]
        >>> study = Study("s", "four-rooms", ("IR",), (1, 2, 4, 8), pairs=pairs, runs=1)
        >>> error = np.array([[0.75, 0.5, 0.4, 0.2]])
        >>> measured = MethodResults(study.choices("IR"), {"error": error})
        >>> results = Results(study, "paper", {(study.pairs[0], 1, "IR"): measured})
        >>> found = best_error(results, "IR")
        >>> float(found.least[0]), float(found.most[0]), found.why
        (0.05, 0.2, ('the best step size of IR is 8, at the end of the grid',))
    """
    method = named(results, method)
    error = results.best(method, gap, pair)
    factor, size = _beyond(results, method, gap, pair)
    if factor == 1.0 or not np.isfinite(error[0]):
        return Bounds(error, error)
    reason = f"the best step size of {method} is {size:g}, at the end of the grid"
    return Bounds(error * factor, error, (reason,))


def _beyond(
    results: Results, method: str, gap: int | None, pair: Pair | None
) -> tuple[float, float]:
    """Return by which factor the error may fall beyond the grid, and the best step size.

    The factor is 1 if the best step size lies inside the grid.
    """
    errors, choices = results.errors(method, gap, pair)[0], results.of(method, gap, pair).choices
    best = choices[int(errors.argmin())]
    others = best[:-1] if isinstance(best, tuple) else ()
    curve = {
        step_size_of(results.study, choice): float(error)
        for choice, error in zip(choices, errors, strict=True)
        if not others or choice[:-1] == others
    }
    size = step_size_of(results.study, best)
    sizes = sorted(size_on_grid for size_on_grid in curve if size_on_grid > 0)
    if size == 0:
        return 0.0, size
    if size not in (sizes[0], sizes[-1]) or len(sizes) == 1:
        return 1.0, size
    # Rounding must not exclude a step size that is twice another one.
    inside = (
        [smaller for smaller in sizes if smaller <= size / NEIGHBOUR * 1.001][-1:]
        if size == sizes[-1]
        else [larger for larger in sizes if larger >= size * NEIGHBOUR / 1.001][:1]
    )
    return (curve[size] / curve[inside[0]]) ** FALLS if inside else 0.0, size


def usable_range(results: Results, method: str, pair: Pair | None = None) -> Bounds:
    """Return the largest usable step size over the smallest; 1 if none is usable.

    A step size is usable if its error is at most twice the best one, and at most half-way from the
    best one to that of step size 0, which learns nothing.

    Between points the error is a line in the logarithm of the step size, since grids are coarse
    where step sizes are small.

    Example:
        >>> from gvf_lab.study.results import MethodResults, Results
        >>> from gvf_lab.figure.statistics import usable_range
        >>> from gvf_lab.study import Study
        >>> import numpy as np
        >>> pairs = [("down", "uniform")]
        >>> study = Study("s", "four-rooms", ("IR",), (1, 2, 4, 8), pairs=pairs, runs=1)
        >>> error = np.array([[0.75, 0.25, 0.25, 0.75]])
        >>> measured = MethodResults(study.choices("IR"), {"error": error})
        >>> results = Results(study, "paper", {(study.pairs[0], 1, "IR"): measured})
        >>> found = usable_range(results, "IR")
        >>> round(float(found.least[0]), 6)  # from the root of 2 to that of 32
        4.0
    """
    return _range(results, method, pair, results.best(method, pair=pair))


def accurate_range(results: Results, method: str, other: str, pair: Pair | None = None) -> Bounds:
    """Return the same as :func:`usable_range`, but judged by the better of two methods.

    A step size counts if its error is at most twice the best error of the two, and at most half-way
    from that to the error of step size 0. The range is 1 if there is none.
    """
    best = np.minimum(results.best(method, pair=pair), results.best(other, pair=pair))
    return _range(results, method, pair, best)


def _range(results: Results, method: str, pair: Pair | None, best: Array) -> Bounds:
    """Return the largest over the smallest step size that is usable by an error; 1 if none is.

    A method without such a step size on the grid may have some between its points, unless the grid
    resolves the curve around its smallest error, or this error is far above the limit. If the
    smallest error is that of step size 0, even the smallest step is too large.
    """
    limits = USABLE_FACTOR * np.where(np.isfinite(best), best, 0.0)
    choices = results.of(method, pair=pair).choices
    if 0.0 in choices:
        start = results.errors(method, pair=pair)[:, choices.index(0.0)]
        limits = np.minimum(limits, (np.where(np.isfinite(best), best, 0.0) + start) / 2)
    sizes, errors = _curve(results, method, pair, limits[0])
    usable = (errors <= limits[:, None]) & np.isfinite(best[0])
    last = sizes.size - 1
    low, high = usable.argmax(axis=1), last - usable[:, ::-1].argmax(axis=1)
    smallest_size, largest_size = (
        _between(sizes, errors, limits, number, log=True) for number in (low - 1, high)
    )
    width = largest_size / smallest_size
    plain, resolved = results.errors(method, pair=pair), _resolved(_padded(sizes))
    bottom = plain.argmin(axis=1) - (plain.shape[1] - sizes.size)  # -1: that of step size 0
    far = plain.min(axis=1) > MOST_FACTOR * limits
    empty = (bottom >= 0) & (far | (resolved[bottom] & resolved[bottom + 1]))
    any_usable = usable.any(axis=1)
    return Bounds(
        np.where(any_usable, width.least, 1.0),
        np.where(any_usable, width.most, np.where(empty, 1.0, np.inf)),
    )


def largest_stable_step(
    results: Results, method: str, pair: Pair | None = None, gap: int | None = None
) -> Bounds:
    """Return the step size above 0 at which the error passes 1."""
    sizes, errors = _curve(results, method, pair, REACH_LIMIT, gap)
    over = errors >= REACH_LIMIT
    within = np.where(over.any(axis=1), over.argmax(axis=1), sizes.size) - 1
    return _between(sizes, errors, np.full(len(errors), REACH_LIMIT), within, log=False)


def _curve(
    results: Results, method: str, pair: Pair | None, limit: float, gap: int | None = None
) -> tuple[Array, Array]:
    """Return the step sizes above 0 [L] and their errors [1 + B, L], bounded by the limit."""
    measured = results.of(method, gap, pair)
    sizes = np.array(measured.choices)
    errors = results.average(np.minimum(measured.error, MOST_FACTOR * limit))
    return sizes[sizes > 0], errors[:, sizes > 0]


def _padded(sizes: Array) -> Array:
    return np.concatenate([[0.0], sizes, [np.inf]])


def _resolved(places: Array) -> Array:
    """Return which gaps between neighbouring places are narrow enough to draw a line across."""
    return places[1:] <= WIDEST_GAP * places[:-1]


def _between(sizes: Array, errors: Array, limits: Array, within: Array, *, log: bool) -> Bounds:
    """Return the place at which the line from a step size to the next one passes the limit.

    `within` is the number of the step size [1 + B]: -1 if the place lies below the first one, and
    the last number if it lies beyond the last one.
    """
    places, row, last = _padded(sizes), np.arange(len(errors)), sizes.size - 1
    least, most = places[within + 1], places[within + 2]
    before, after = errors[row, np.maximum(within, 0)], errors[row, np.minimum(within + 1, last)]
    share = (limits - before) / np.where(before != after, after - before, 1.0)
    resolved = _resolved(places)[within + 1]
    step = np.where(resolved, most, least) - least
    line = least + share * step
    if log:
        line = least * (1 + step / np.where(resolved, least, 1.0)) ** share
    return Bounds(np.where(resolved, line, least), np.where(resolved, line, most))


def ends_at(results: Results, method: str, pair: Pair | None = None) -> Array:
    """Return the error over the last tenth of the run, at the best step size of the whole run."""
    measured = results.of(method, pair=pair)
    late = max(1, round(LAST_SHARE * measured.curve.shape[2]))
    end = results.average(measured.curve[:, :, -late:].mean(axis=2))
    return end[np.arange(len(end)), results.chosen(method, pair=pair)]


def growth(results: Results, method: str, pair: Pair | None = None) -> Bounds:
    """Return the growth of the error from the smallest gap to the largest."""
    few, many = gaps(results)
    return best_error(results, method, few, pair) - best_error(results, method, many, pair)


def gaps(results: Results) -> tuple[int, int]:
    """Return the largest gap (few updates) and the smallest (many)."""
    return max(results.study.gaps), min(results.study.gaps)


Gap = int | Literal["largest", "smallest"] | None
"""A number of steps between updates; the largest or the smallest of the study; the only one."""


def gap_of(results: Results, gap: Gap) -> int | None:
    """Return the number of steps of a gap that may be the largest or the smallest."""
    if not isinstance(gap, str):
        return gap
    return dict(zip(("largest", "smallest"), gaps(results), strict=True))[gap]


def over_gaps(results: Results, method: str, pair: Pair | None = None) -> list[Bounds]:
    """Return the error of the best step size at every gap."""
    return [best_error(results, method, gap, pair) for gap in results.study.gaps]


def spread(errors: Sequence[Bounds]) -> Bounds:
    """Return the largest over the smallest of several errors.

    Example:
        >>> from gvf_lab.figure.statistics import Bounds, spread
        >>> import numpy as np
        >>> errors = [Bounds(*[np.array([error])] * 2) for error in (1.0, 3.0, 2.0)]
        >>> spread(errors).against(1.0).tolist()
        [3.0]
    """
    return largest(errors) / smallest(errors)


def rises(numbers: Sequence[Bounds]) -> Bounds:
    """Return the smallest factor from one number to the next."""
    return smallest([second / first for first, second in pairwise(numbers)])


def agreement(first: Array, second: Array) -> Array:
    """Return the smaller of two factors, above 1 if both lie on the same side of 1, else below.

    A factor below 1 counts as its reciprocal.

    Example:
        >>> from gvf_lab.figure.statistics import agreement
        >>> import numpy as np
        >>> agreement(np.array([4.0, 0.25, 4.0]), np.array([2.0, 0.5, 0.5])).round(6).tolist()
        [2.0, 2.0, 0.5]
    """
    a, b = np.log(first), np.log(second)
    return np.exp(np.sign(a) * np.sign(b) * np.minimum(np.abs(a), np.abs(b)))


def rank_correlation(first: Array, second: Array) -> Array:
    """Compute Spearman's rank correlation in every row of two arrays [1 + B, m], ties averaged.

    Example:
        >>> from gvf_lab.figure.statistics import rank_correlation
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


# Statistics that claims name.


def error_ratio(
    results: Results, method: str, other: str, pair: Pair | None = None, gap: Gap = None
) -> Bounds:
    """Return the error of a method over that of another one, at the best step sizes."""
    gap = gap_of(results, gap)
    return best_error(results, method, gap, pair) / best_error(results, other, gap, pair)


def mean_error_ratio(results: Results, method: str, other: str) -> Bounds:
    """Return the error of a method over that of another one, mean over the gaps."""
    both = zip(over_gaps(results, method), over_gaps(results, other), strict=True)
    return mean([numerator / denominator for numerator, denominator in both])


def least_error_ratio_of_gaps(results: Results, methods: Sequence[str], other: str) -> Bounds:
    """Return the error of a method over that of another one, smallest of all methods and gaps."""
    theirs = over_gaps(results, other)
    return smallest(
        [
            numerator / denominator
            for method in methods
            for numerator, denominator in zip(over_gaps(results, method), theirs, strict=True)
        ]
    )


def rising_error_ratios(results: Results, method: str, other: str, pairs: Sequence[Pair]) -> Bounds:
    """Return the smallest factor from the error ratio of one pair to that of the next."""
    return rises([error_ratio(results, method, other, pair) for pair in pairs])


def best_of_all(
    results: Results, method: str, pair: Pair | None = None, without: Sequence[str] = ()
) -> Bounds:
    """Return the smallest error of the other methods over that of a method."""
    others = [name for name in results.study.methods if name not in (method, *without)]
    theirs = smallest([best_error(results, other, pair=pair) for other in others])
    return theirs / best_error(results, method, pair=pair)


def outside_range(
    results: Results, method: str, others: Sequence[str], pair: Pair | None = None
) -> Bounds:
    """Return the factor by which a method's error lies outside the range of those of others.

    It is at most 1 if the error lies within the range.
    """
    mine = best_error(results, method, pair=pair)
    theirs = [best_error(results, other, pair=pair) for other in others]
    return largest([mine / largest(theirs), smallest(theirs) / mine])


def error_spread(
    results: Results, methods: Sequence[str] = (), pair: Pair | None = None, gap: Gap = None
) -> Bounds:
    """Return the largest over the smallest error of several methods; by default of all."""
    at = gap_of(results, gap)
    return spread(
        [best_error(results, method, at, pair) for method in methods or results.study.methods]
    )


def largest_error_spread_of_gaps(results: Results, methods: Sequence[str]) -> Bounds:
    """Return the largest over the smallest error of several methods, largest of all gaps."""
    errors = [over_gaps(results, method) for method in methods]
    return largest([spread(at_gap) for at_gap in zip(*errors, strict=True)])


def error_spread_ratio(
    results: Results, method: str, other: str, pairs: Sequence[Pair], gap: Gap = None
) -> Bounds:
    """Return the largest over the smallest error of pairs: a method's over another one's."""
    at = gap_of(results, gap)
    first, second = (
        spread([best_error(results, name, at, pair) for pair in pairs]) for name in (method, other)
    )
    return first / second


def growth_difference(results: Results, method: str, other: str) -> Bounds:
    """Return the growth of a method's error to the largest gap, less that of another one."""
    return growth(results, method) - growth(results, other)


def end_ratio(results: Results, method: str, other: str, pair: Pair | None = None) -> Array:
    """Return the error of a method in the last tenth of the run over that of another one."""
    return ends_at(results, method, pair) / ends_at(results, other, pair)


def rising_end_errors(results: Results, methods: Sequence[str], pair: Pair | None = None) -> Array:
    """Return the smallest factor from one method's error at the end to that of the next."""
    return steps_up([ends_at(results, method, pair) for method in methods])


def steps_up(values: Sequence[Array]) -> Array:
    """Return the smallest factor from one value to the next."""
    stacked = np.stack(values)
    return (stacked[1:] / stacked[:-1]).min(axis=0)


def stable_step_ratio(
    results: Results, method: str, other: str, pair: Pair | None = None, gap: int | None = None
) -> Bounds:
    """Return the step size at which a method's error passes 1 over that of another one."""
    return largest_stable_step(results, method, pair, gap) / largest_stable_step(
        results, other, pair, gap
    )


def stable_step_ratio_of_figures(
    results: Results, others: Results, method: str, other: str
) -> Bounds:
    """Return the same ratio for a method that only the other figure has."""
    return largest_stable_step(others, method) / largest_stable_step(results, other)


def stable_step_spread_ratio(
    results: Results, method: str, other: str, pairs: Sequence[Pair]
) -> Bounds:
    """Return the largest over the smallest stable step size of pairs: a method's over another's."""
    first, second = (
        spread([largest_stable_step(results, name, pair) for pair in pairs])
        for name in (method, other)
    )
    return first / second


def rising_stable_steps(results: Results, method: str, pairs: Sequence[Pair]) -> Bounds:
    """Return the smallest factor from the stable step size of one pair to that of the next."""
    return rises([largest_stable_step(results, method, pair) for pair in pairs])


def least_stable_step_of_pairs(
    results: Results, method: str, pairs: Sequence[Pair], pair: Pair
) -> Bounds:
    """Return the smallest stable step size of some pairs over that of another pair."""
    least = smallest([largest_stable_step(results, method, each) for each in pairs])
    return least / largest_stable_step(results, method, pair)


def least_stable_step_of_others(
    results: Results, methods: Sequence[str], without: Sequence[str], pair: Pair | None = None
) -> Bounds:
    """Return the smallest stable step size of all other methods over the largest of some."""
    names = [name for name in results.study.methods if name not in without]
    steps = {name: largest_stable_step(results, name, pair) for name in names}
    largest_of_methods = largest([steps.pop(method) for method in methods])
    return smallest(list(steps.values())) / largest_of_methods


def usable_range_ratio(
    results: Results, method: str, other: str, pair: Pair | None = None
) -> Bounds:
    """Return the usable range of a method over that of another one."""
    first, second = (usable_range(results, named(results, name), pair) for name in (method, other))
    return first / second


def accurate_range_ratio(
    results: Results, method: str, other: str, pair: Pair | None = None
) -> Bounds:
    """Return the range of accurate step sizes of a method over that of another one."""
    first, second = (named(results, name) for name in (method, other))
    return accurate_range(results, first, second, pair) / accurate_range(
        results, second, first, pair
    )
