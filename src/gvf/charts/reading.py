"""The points of a chart: sensitivity to the step size, learning curves, and exact fixed points.

:mod:`gvf.charts.pictures` draws those of them that go with a figure.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from gvf import domain as domains
from gvf.charts.errors import (
    Where,
    any_choice,
    best_choice,
    choices_of,
    column_of,
    trace_of,
    without_traces,
)
from gvf.domain import TabularDomain
from gvf.figure.figure import Point
from gvf.figure.reading import NAN, step_size_of, summary
from gvf.study.results import Results

PANELS = {"traces": "best trace decay", "no traces": "no traces"}
"""The titles of the panels of online algorithms."""
POINTS: dict[str, dict[str, Any]] = {
    "TD fixed point": {},
    "emphatic TD fixed point": {"emphatic": True},
    "best representable": {"trace_decay": 1.0},
}
"""The lines of a chart, each with the arguments of :meth:`TabularDomain.fixed_point`."""


def against_step_size(results: Results) -> list[Point]:
    """Return the error of every step size, at the best of the other parameters, and fixed points.

    Online algorithms have two panels: with the best trace decay, and without traces.
    """
    panels: dict[str, Where] = {"main": any_choice}
    if hasattr(results.study, "trace_decays"):
        panels = {"traces": any_choice, "no traces": without_traces}
    rows = []
    for panel, where in panels.items():
        for method in results.study.methods:
            rows += _sensitivity(results, panel, method, where)
        rows += _lines(results, panel, [row.x for row in rows])
    return rows


def _sensitivity(results: Results, panel: str, method: str, where: Where) -> Iterator[Point]:
    choices = results.of(method, pair=results.study.pairs[0]).choices
    errors = column_of(results, method)
    at: dict[float, list[int]] = {}
    for number in choices_of(results, method, where):
        at.setdefault(step_size_of(results.study, choices[number]), []).append(number)
    for size, numbers in at.items():
        means, spreads = summary(errors[:, numbers])
        least = int(np.argmin(means))
        place = (results.protocol, panel, method, size)
        yield Point(*place, means[least], spreads[least], results.runs, size)


def _lines(results: Results, panel: str, places: list[float]) -> Iterator[Point]:
    study = results.study
    for name, errors in fixed_points(study.domain, study.pairs[0][1], study.runs).items():
        ((mean,), (spread,)) = summary(np.array(errors)[:, None])
        for x in dict.fromkeys((min(places), max(places))):
            yield Point(results.protocol, panel, name, x, mean, spread, study.runs, NAN)


@cache
def fixed_points(domain: str, behaviour: str, runs: int) -> dict[str, tuple[float, ...]]:
    """Compute the errors of exact fixed points in each run, averaged over questions, by name.

    Example:
        >>> from gvf.charts.reading import fixed_points
        >>> import numpy as np
        >>> for name, errors in fixed_points("collision", "turning", 50).items():
        ...     print(f"{np.mean(errors):.4f} {name}")
        0.3061 TD fixed point
        0.1111 emphatic TD fixed point
        0.0713 best representable
    """
    world = domains.get(domain)
    found: dict[str, list[float]] = {name: [] for name in POINTS}
    for run in range(runs):
        here = world.for_run(run, 0)
        assert isinstance(here, TabularDomain)
        if run > 0 and here is world:  # all runs are alike
            for errors in found.values():
                errors.append(errors[0])
            continue
        for name, how in POINTS.items():
            errors = [
                here.fixed_point(question, behaviour, **how).error(here.truth(question, behaviour))
                for question in here.questions
            ]
            found[name].append(float(np.mean(errors)))
    return {name: tuple(errors) for name, errors in found.items()}


def against_steps(results: Results) -> list[Point]:
    """Return learning curves at the best choice of every method."""
    rows = []
    for method in results.study.methods:
        choice = best_choice(results, method)
        measured = results.of(method, pair=results.study.pairs[0])
        size = step_size_of(results.study, measured.choices[choice])
        places = measured["curve_steps"][0, choice].tolist()
        curve = summary(column_of(results, method, "curve")[:, choice])
        rows += (
            Point(results.protocol, "main", method, x, y, spread, results.runs, size)
            for x, y, spread in zip(places, *curve, strict=True)
        )
    return [*rows, *_lines(results, "main", [row.x for row in rows])]


def against_traces(results: Results) -> list[Point]:
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
