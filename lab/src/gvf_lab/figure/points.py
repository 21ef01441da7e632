"""Readings: functions from the results of a study to the points of a figure.

The results are :class:`gvf_lab.study.results.Results`. If a figure shows one step size of a method,
it is the one with the lowest error, averaged over the run and over runs. Against the gap or the
number of updates it is chosen anew at every x. A point is infinite if one of its runs has diverged.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf_lab.figure.figure import Point
from gvf_lab.study.base_study import BaseStudy
from gvf_lab.study.results import MethodResults, Pair, Results, standard_error

NAN = float("nan")


def panel_of(results: Results, pair: Pair, gap: int | None = None) -> str:
    """Return the name of the panel of a pair and gap: "main" if there is only one of each."""
    question, behaviour = pair
    words = []
    if len(results.study.pairs) > 1:
        words.append(question if question == behaviour else f"{question}/{behaviour}")
    if gap is not None and len(results.study.gaps) > 1:
        words.append(f"gap {gap}")
    return ", ".join(words) or "main"


def points_by_step_size(results: Results) -> list[Point]:
    """Return the error of every step size, at every gap.

    If a method has other parameters too (u0 of WIS-TD(0)), their best values are taken.

    Example:
        >>> from gvf_lab.figure.points import points_by_step_size
        >>> from gvf_lab.study.results import MethodResults, Results
        >>> from gvf_lab.study import Study
        >>> import numpy as np
        >>> study = Study("s", "four-rooms", ("IR",), (1, 2), pairs=[("down", "uniform")], runs=2)
        >>> error = np.array([[0.3, 0.5], [0.5, 0.5]])
        >>> measured = MethodResults(study.choices("IR"), {"error": error})
        >>> results = Results(study, "paper", {(study.pairs[0], 1, "IR"): measured})
        >>> [(row.x, row.y, round(row.stderr, 3)) for row in points_by_step_size(results)]
        [(1.0, 0.4, 0.1), (2.0, 0.5, 0.0)]
    """
    study, rows = results.study, []
    for pair, gap, method in product(study.pairs, study.gaps, study.methods):
        measured = results.of(method, gap, pair)
        at = (results.protocol, panel_of(results, pair, gap), method)
        points = zip(measured.choices, *summary(measured.error), strict=True)
        best: dict[float, Point] = {}
        for choice, y, spread in points:
            size = step_size_of(study, choice)
            if size not in best or y < best[size].y:
                best[size] = Point(*at, size, y, spread, results.runs, size)
        rows += best.values()
    return rows


def points_by_gap(results: Results) -> list[Point]:
    """Return the error of the best step size, at every gap."""
    return list(_best(results, updates=False))


def points_by_updates(results: Results) -> list[Point]:
    """Return the error of the best step size, at every number of updates."""
    return list(_best(results, updates=True))


def _best(results: Results, updates: bool) -> Iterator[Point]:
    study = results.study
    for pair in study.pairs:
        for method in study.methods:
            for gap in study.gaps:
                measured = results.of(method, gap, pair)
                choice = best_choice(measured)
                x = study.updates_at(gap) if updates else gap
                ((y,), (spread,)) = summary(measured.error[:, [choice]])
                at = (results.protocol, panel_of(results, pair), method, float(x))
                yield Point(
                    *at, y, spread, results.runs, step_size_of(study, measured.choices[choice])
                )


def learning_curves(results: Results) -> list[Point]:
    """Return learning curves at the best step size; x is the middle of each averaged part."""
    study, rows = results.study, []
    for pair, gap, method in product(study.pairs, study.gaps, study.methods):
        measured = results.of(method, gap, pair)
        choice = best_choice(measured)
        at = (results.protocol, panel_of(results, pair, gap), method)
        points = zip(
            measured["curve_steps"][0, choice].tolist(),
            *summary(measured.curve[:, choice]),
            strict=True,
        )
        rows += (
            Point(*at, x, y, spread, results.runs, step_size_of(study, measured.choices[choice]))
            for x, y, spread in points
        )
    return rows


NORM_PANELS = {"main": "L1 norm", "scalar": "signed sum", "trace": "trace of the covariance"}
"""The titles of the panels of :func:`points_by_iteration`, if there is one pair."""


def points_by_iteration(results: Results) -> list[Point]:
    """Return the variance of updates' L1 norms and the trace of updates' covariance.

    With one pair, the variance of their signed sums is returned too.
    """
    study, rows = results.study, []
    single_pair = len(study.pairs) == 1
    for kind in ("l1", "scalar", "trace") if single_pair else ("l1", "trace"):
        for pair, method in product(study.pairs, study.methods):
            measured = results.of(method, pair=pair)
            panel = panel_of(results, pair)
            if kind != "l1":
                panel = kind if single_pair else f"{panel}, {kind}"
            rows += (
                Point(results.protocol, panel, method, float(x), y, spread, results.runs, NAN)
                for x, y, spread in zip(measured.choices, *summary(measured[kind]), strict=True)
            )
    return rows


def summary(values: Array) -> tuple[list[float], list[float]]:
    """Compute mean and standard error over runs, the first axis of [R, m]."""
    return _mean(values).tolist(), standard_error(values).tolist()


def _mean(values: Array) -> Array:
    """Average over runs; values are divided first, since the sum of huge errors may overflow."""
    return (values / len(values)).sum(axis=0)


def best_choice(measured: MethodResults) -> int:
    """Return the index of the choice with the lowest error, averaged over runs."""
    return int(np.argmin(_mean(measured.error)))


def step_size_of(study: BaseStudy, choice: Any) -> float:
    """Return a choice's step size; for WIS-TD(0) it is eta, the step size in the limit."""
    key = study.key(choice)
    return key["step_size"] if "step_size" in key else key["eta"]
