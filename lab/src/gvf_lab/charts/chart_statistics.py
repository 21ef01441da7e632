"""Statistics of a chart: averages over questions, at the best of some choices of parameters.

A study of online algorithms has one error for all questions of a task. A study with a window has
one for each question, and they are averaged here. The choice with the lowest error, averaged over
the run, over questions and over runs, is the best one.

The lowest of many averages is too low, because the best choice is also a lucky one. So the authors
choose by 50 runs and report 50 others, and charts do the same: the first half of the runs chooses
(:meth:`gvf_lab.study.Results.second_half`), and all errors, curves, claims and intervals come from
the second half. Run r of Collision has the representation r mod 50, so both halves have the same
ones. Bootstrap samples keep the choices.

The functions at the end are those that claims name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf_lab import domain as domains
from gvf_lab.figure.points import summary
from gvf_lab.study.results import Results

Where = Callable[[Any], bool]
"""A function that returns True for the choices that count."""
EARLY_SHARE = 0.1
"""The share of a run that counts as its beginning."""
SHARES = {
    "Emphatic TD(lambda)": 0.37,
    "Emphatic TD(lambda, beta)": 0.25,
    "TD(lambda)": 0.16,
    "TDRC(lambda)": 0.11,
    "HTD(lambda)": 0.24,
    "GTD(lambda)": 0.25,
    "GTD2(lambda)": 0.28,
    "Proximal GTD2(lambda)": 0.24,
}
"""The published shares of parameters without traces that are worse than the start on Collision."""


def any_choice(choice: Any) -> bool:
    """Return True."""
    return True


def without_traces(choice: Any) -> bool:
    """Return True if a choice of an online algorithm has no traces."""
    return not choice.trace_decay and not choice.zeta


def column_of(results: Results, method: str, column: str = "error") -> Array:
    """Return a column averaged over questions, [R, L] or [R, L, m].

    The column "early" is the error over the first tenth of the run.
    """
    if column == "early":
        curve = column_of(results, method, "curve")
        return curve[:, :, : max(1, round(EARLY_SHARE * curve.shape[2]))].mean(axis=2)
    pairs = results.study.pairs
    return sum(results.of(method, pair=pair)[column] / len(pairs) for pair in pairs)  # pyright: ignore


def choices_of(results: Results, method: str, where: Where = any_choice) -> Array:
    """Return the numbers of the choices that count, int64[n]."""
    choices = results.of(method, pair=results.study.pairs[0]).choices
    return np.flatnonzero([where(choice) for choice in choices])


def choosing(results: Results) -> Results:
    """Return the results that choose parameters."""
    return results.chosen_by or results


def best_choice(results: Results, method: str, where: Where = any_choice, by: str = "error") -> int:
    """Return the number of the choice with the lowest column `by` among those that count."""
    at = choices_of(results, method, where)
    means, _ = summary(column_of(choosing(results), method, by)[:, at])
    return int(at[np.argmin(means)])


def best(
    results: Results,
    method: str,
    column: str = "error",
    where: Where = any_choice,
    by: str = "error",
) -> Array:
    """Return a column at the best choice, for every bootstrap sample of the runs, [1 + B]."""
    choice = best_choice(results, method, where, by)
    return results.average(column_of(results, method, column)[:, [choice]])[:, 0]


def lowest(results: Results, methods: Sequence[str], *how: Any, **more: Any) -> Array:
    """Return the lowest of the methods' columns at their best choices, [1 + B]."""
    return np.min([best(results, method, *how, **more) for method in methods], axis=0)


def highest(results: Results, methods: Sequence[str], *how: Any, **more: Any) -> Array:
    """Return the highest of the methods' columns at their best choices, [1 + B]."""
    return np.max([best(results, method, *how, **more) for method in methods], axis=0)


def spread_over_traces(results: Results, method: str) -> Array:
    """Return the highest over the lowest error as lambda or zeta varies, [1 + B].

    The other parameters are the best ones for each value.
    """
    choices = results.of(method, pair=results.study.pairs[0]).choices
    errors = [
        best(results, method, where=lambda choice, value=value: trace_of(choice) == value)
        for value in sorted(set(map(trace_of, choices)))
    ]
    return np.max(errors, axis=0) / np.min(errors, axis=0)


def trace_of(choice: Any) -> float:
    """Return lambda, or zeta, of a choice of an online algorithm."""
    return choice.zeta if choice.trace_decay is None else choice.trace_decay


def flat_range(results: Results, method: str, factor: float, where: Where = any_choice) -> Array:
    """Return the number of choices whose error is at most `factor` times the best, [1 + B]."""
    averages = results.average(column_of(results, method)[:, choices_of(results, method, where)])
    limit = factor * best(results, method, where=where)
    return (averages <= limit[:, None]).sum(axis=1)


def share_worse_than_start(results: Results, method: str, where: Where = any_choice) -> Array:
    """Return the share of choices whose error is above that of predicting 0, [1 + B]."""
    averages = results.average(column_of(results, method)[:, choices_of(results, method, where)])
    study = results.study
    return (averages > start_error(study.domain, study.pairs[0][1])).mean(axis=1)


@cache
def start_error(domain: str, behaviour: str) -> float:
    """Compute the error of predicting 0 in every state, averaged over questions.

    Example:
        >>> from gvf_lab.charts.chart_statistics import start_error
        >>> round(start_error("collision", "turning"), 5), round(start_error("rooms", "uniform"), 4)
        (0.68908, 0.7229)
    """
    world = domains.get(domain)
    truths = [world.truth(question, behaviour) for question in world.questions]
    return float(np.mean([truth.root_mean_square_error(0.0 * truth.values) for truth in truths]))


# Statistics that claims about charts name.


def lowest_over_highest(
    results: Results,
    methods: Sequence[str],
    others: Sequence[str],
    column: str = "error",
    by: str = "error",
    traces: bool = True,
) -> Array:
    """Return the lowest column of some methods over the highest of others, [1 + B].

    The choices are those with the lowest column `by`; without `traces`, only such choices count.
    """
    where = any_choice if traces else without_traces
    first = lowest(results, methods, column, where, by)
    return first / highest(results, others, column, where, by)


def lowest_over_lowest(
    results: Results,
    methods: Sequence[str],
    others: Sequence[str],
    column: str = "error",
    by: str = "error",
) -> Array:
    """Return the lowest column of some methods over the lowest of others, [1 + B]."""
    first, second = (lowest(results, group, column, by=by) for group in (methods, others))
    return first / second


def lowest_of_figure_over_error(
    results: Results, online: Results, methods: Sequence[str], other: str, traces: bool = True
) -> Array:
    """Return the lowest error of some methods of another figure over that of a method."""
    where = any_choice if traces else without_traces
    return lowest(online, methods, where=where) / best(results, other)


def ratio_of_flat_ranges(
    results: Results, online: Results, method: str, other: str, factor: float
) -> Array:
    """Return the flat range of a method over that of one of another figure without traces."""
    ours = flat_range(results, method, factor)
    return ours / flat_range(online, other, factor, without_traces)


def ratio_of_spreads_over_traces(
    results: Results, methods: Sequence[str], others: Sequence[str]
) -> Array:
    """Return the smallest spread over trace decays of some methods over the largest of others."""
    first, second = (
        [spread_over_traces(results, method) for method in group] for group in (methods, others)
    )
    return np.min(first, axis=0) / np.max(second, axis=0)


def difference_of_shares_worse(
    results: Results, methods: Sequence[str], others: Sequence[str]
) -> Array:
    """Return the smallest share of choices worse than the start, less the largest of others."""
    first, second = (
        [share_worse_than_start(results, method) for method in group] for group in (methods, others)
    )
    return np.min(first, axis=0) - np.max(second, axis=0)


def distance_from_published_shares(results: Results) -> Array:
    """Return the largest difference from the published shares without traces."""
    differences = [
        np.abs(share_worse_than_start(results, method, without_traces) - share)
        for method, share in SHARES.items()
    ]
    return np.max(differences, axis=0)


def growths(results: Results, before: Results, methods: Sequence[str]) -> Array:
    """Return the growth of each method's error from another figure to this one, [m, 1 + B]."""
    return np.array([best(results, method) / best(before, method) for method in methods])


def mean_growth_from_figure(results: Results, before: Results, methods: Sequence[str]) -> Array:
    """Return the growth of the error from another figure, mean over methods."""
    return np.mean(growths(results, before, methods), axis=0)


def ratio_of_growths_from_figure(
    results: Results, before: Results, methods: Sequence[str], others: Sequence[str]
) -> Array:
    """Return the smallest growth of some methods from another figure over the largest of others."""
    first, second = (growths(results, before, group) for group in (methods, others))
    return first.min(axis=0) / second.max(axis=0)
