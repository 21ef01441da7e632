"""The points of a chart: sensitivity to the step size, learning curves, best errors, fixed points.

:mod:`gvf_lab.charts.chart_pictures` draws those of them that go with a figure.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gvf_lab import domain as domains
from gvf_lab.charts.chart_statistics import (
    Where,
    any_choice,
    best_choice,
    choices_of,
    choosing,
    column_of,
    trace_of,
    without_traces,
)
from gvf_lab.domain import TabularDomain
from gvf_lab.figure.figure import Point
from gvf_lab.figure.points import NAN, step_size_of, summary
from gvf_lab.study.results import Results

PANELS = {"traces": "best trace decay", "no traces": "no traces"}
"""The titles of the panels of online algorithms."""
POINTS: dict[str, dict[str, Any]] = {
    "TD fixed point": {},
    "emphatic TD fixed point": {"emphatic": True},
    "the same, beta = .6": {"emphatic": True, "beta": 0.6},
    "best representable": {"trace_decay": 1.0},
}
"""The lines of a chart, each with the arguments of :meth:`TabularDomain.fixed_point`."""


def chart_points_by_step_size(results: Results) -> list[Point]:
    """Return the error of every step size, at the best of the other parameters, and fixed points.

    Online algorithms have two panels: with the best trace decay, and without traces.
    """
    rows = []
    for panel, where in panels_of(results).items():
        for method in results.study.methods:
            rows += _sensitivity(results, panel, method, where)
        rows += _lines(results, panel, [row.x for row in rows])
    return rows


def panels_of(results: Results) -> dict[str, Where]:
    """Return the panels of a chart, each with the choices that count there."""
    if hasattr(results.study, "trace_decays"):
        return {"traces": any_choice, "no traces": without_traces}
    return {"main": any_choice}


def _sensitivity(results: Results, panel: str, method: str, where: Where) -> Iterator[Point]:
    choices = results.of(method, pair=results.study.pairs[0]).choices
    errors, earlier = column_of(results, method), column_of(choosing(results), method)
    at: dict[float, list[int]] = {}
    for number in choices_of(results, method, where):
        at.setdefault(step_size_of(results.study, choices[number]), []).append(number)
    for size, numbers in at.items():
        number = numbers[int(np.argmin(summary(earlier[:, numbers])[0]))]
        ((mean,), (spread,)) = summary(errors[:, [number]])
        yield Point(results.protocol, panel, method, size, mean, spread, results.runs, size)


def _lines(results: Results, panel: str, places: list[float]) -> Iterator[Point]:
    for name, errors in fixed_points_of(results).items():
        ((mean,), (spread,)) = summary(np.array(errors)[:, None])
        for x in dict.fromkeys((min(places), max(places))):
            yield Point(results.protocol, panel, name, x, mean, spread, results.runs, NAN)


def fixed_points_of(results: Results) -> dict[str, tuple[float, ...]]:
    """Return the errors of exact fixed points in the runs of some results, by name."""
    study = results.study
    first = 0 if results.chosen_by is None else results.chosen_by.runs
    return fixed_points(study.domain, study.pairs[0][1], results.runs, first)


@cache
def fixed_points(
    domain: str, behaviour: str, runs: int, first: int = 0
) -> dict[str, tuple[float, ...]]:
    """Compute the errors of exact fixed points in each run, averaged over questions, by name.

    The runs are numbered from `first` on.

    Example:
        >>> from gvf_lab.charts.chart_points import fixed_points
        >>> import numpy as np
        >>> for name, errors in fixed_points("collision", "turning", 50).items():
        ...     print(f"{np.mean(errors):.4f} {name}")
        0.3061 TD fixed point
        0.1111 emphatic TD fixed point
        0.1382 the same, beta = .6
        0.0713 best representable
    """
    world = domains.get(domain)
    by_name: dict[str, list[float]] = {name: [] for name in POINTS}
    for run in range(first, first + runs):
        here = world.for_run(run, 0)
        assert isinstance(here, TabularDomain)
        if run > first and here is world:  # all runs are alike
            for errors in by_name.values():
                errors.append(errors[0])
            continue
        for name, how in POINTS.items():
            errors = [
                here.fixed_point(question, behaviour, **how).error(here.truth(question, behaviour))
                for question in here.questions
            ]
            by_name[name].append(float(np.mean(errors)))
    return {name: tuple(errors) for name, errors in by_name.items()}


def chart_learning_curves(results: Results) -> list[Point]:
    """Return learning curves at the best choice of every method, with the panels of a chart."""
    rows: list[Point] = []
    for panel, where in panels_of(results).items():
        for method in results.study.methods:
            choice = best_choice(results, method, where)
            measured = results.of(method, pair=results.study.pairs[0])
            size = step_size_of(results.study, measured.choices[choice])
            places = measured["curve_steps"][0, choice].tolist()
            curve = summary(column_of(results, method, "curve")[:, choice])
            rows += (
                Point(results.protocol, panel, method, x, y, spread, results.runs, size)
                for x, y, spread in zip(places, *curve, strict=True)
            )
        rows += _lines(results, panel, [row.x for row in rows])
    return rows


def chart_points_by_trace(results: Results) -> list[Point]:
    """Return the error of every step size for each lambda or zeta, with a panel for each method."""
    rows = []
    for method in results.study.methods:
        choices = results.of(method, pair=results.study.pairs[0]).choices
        for value in sorted(set(map(trace_of, choices))):

            def where(choice: Any, value: float = value) -> bool:
                return trace_of(choice) == value

            points = _sensitivity(results, method, method, where)
            rows += (row._replace(series=f"{value:.4g}") for row in points)
    return rows


class Best(NamedTuple):
    """The errors of a method at its best parameters, and a line of the table of best errors.

    Attributes:
        protocol: "paper" or "authors".
        panel: the panel of the chart: which choices count.
        method: the method.
        error: the error averaged over the run, by fresh runs.
        stderr: its standard error.
        final: the error at the end of the run, by fresh runs.
        final_stderr: its standard error.
        chosen_error: the error averaged over the run, by the runs that chose the parameters.
        chosen_stderr: its standard error.
        runs: the number of fresh runs.
        step_size: the chosen step size.
        trace_decay: the chosen lambda, if the method has one; the same for `eta`, `beta`, `zeta`.
    """

    protocol: str
    panel: str
    method: str
    error: float
    stderr: float
    final: float
    final_stderr: float
    chosen_error: float
    chosen_stderr: float
    runs: int
    step_size: float
    trace_decay: float | None = None
    eta: float | None = None
    beta: float | None = None
    zeta: float | None = None


def best_errors(results: Results) -> list[Best]:
    """Return the errors of every method at its best parameters, in every panel."""
    rows = []
    for panel, where in panels_of(results).items():
        for method in results.study.methods:
            choice = best_choice(results, method, where)
            error = _measured(results, method, "error", choice)
            final = _measured(results, method, "final", choice)
            chosen = _measured(choosing(results), method, "error", choice)
            measured = results.of(method, pair=results.study.pairs[0])
            key = results.study.key(measured.choices[choice])
            place = (results.protocol, panel, method)
            rows.append(Best(*place, *error, *final, *chosen, results.runs, **key))
    return rows


def _measured(results: Results, method: str, column: str, choice: int) -> tuple[float, float]:
    """Return the mean and the standard error of a column at a choice."""
    ((mean,), (spread,)) = summary(column_of(results, method, column)[:, [choice]])
    return mean, spread
