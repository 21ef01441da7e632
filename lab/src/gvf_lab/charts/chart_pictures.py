"""The points of a chart and the pictures that go with it.

Points are the sensitivity to the step size, learning curves, best errors and fixed points. Beside
the figure itself there are pictures of learning curves, of every trace decay, and of best errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

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
from gvf_lab.figure.figure import Axes, Companion, Point
from gvf_lab.figure.picture import draw, house_style
from gvf_lab.figure.points import NAN, step_size_of, summary
from gvf_lab.figure.style import styles
from gvf_lab.study.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

QUANTITY = "root mean square value error"
SIGN = "\N{PLUS-MINUS SIGN}"
TOP = 0.75
"""The end of the axis of errors, a little above the error of predicting 0."""
SYMBOLS = {
    "step_size": "\N{GREEK SMALL LETTER ALPHA}",
    "trace_decay": "\N{GREEK SMALL LETTER LAMDA}",
    "eta": "\N{GREEK SMALL LETTER ETA}",
    "beta": "\N{GREEK SMALL LETTER BETA}",
    "zeta": "\N{GREEK SMALL LETTER ZETA}",
}
"""The letters of parameters."""
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
        >>> from gvf_lab.charts.chart_pictures import fixed_points
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


def draw_curves(results: Results) -> Picture:
    """Draw learning curves at the best choice of every method."""
    return draw(chart_learning_curves(results), Axes("steps", QUANTITY, y_top=TOP), names=PANELS)


def draw_traces(results: Results) -> Picture:
    """Draw the sensitivity to the step size for every lambda or zeta, one panel for a method."""
    choices = (
        results.of(method, pair=results.study.pairs[0]).choices for method in results.study.methods
    )
    values = sorted({trace_of(choice) for several in choices for choice in several})
    shades = np.linspace(0.1, 0.9, len(values))
    colours = {f"{value:.4g}": _shade(float(x)) for value, x in zip(values, shades, strict=True)}
    axes = Axes("step size", QUANTITY, x_log=True, y_top=TOP)
    title = "Curves: \N{GREEK SMALL LETTER LAMDA}, or \N{GREEK SMALL LETTER ZETA} of ABTD"
    # Bands of a dozen curves would hide the curves.
    rows = [row._replace(stderr=float("nan")) for row in chart_points_by_trace(results)]
    return draw(rows, axes, title=title, columns=3, colours=colours)


def _shade(x: float) -> str:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return to_hex(colormaps["viridis"](x))


def draw_best(results: Results) -> Picture:
    """Draw the best error of every method with its standard error and parameters, as a table."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    bests = best_errors(results)
    bests = [best for best in bests if best.panel == bests[0].panel]
    bests.sort(key=lambda best: best.error, reverse=True)
    looks = styles(results.study.methods)
    with house_style():
        picture = Figure(figsize=(9.8, 1.3 + 0.27 * len(bests)), layout="constrained")
        FigureCanvasAgg(picture)
        place = picture.subplots()
        for row, best in enumerate(bests):
            look = looks[best.method]
            place.errorbar(best.error, row, xerr=best.stderr, color=look.colour, marker=look.marker)
            place.plot(best.chosen_error, row, "|", color=look.colour)
            place.text(1.02, row, _words(best), transform=place.get_yaxis_transform(), va="center")
        for name, errors in fixed_points_of(results).items():
            place.axvline(float(np.mean(errors)), **_line(name))
        place.set_yticks(range(len(bests)), [best.method for best in bests])
        place.set_xlim(0.0, TOP if bests[0].error > TOP else None)
        place.set_xlabel(f"{QUANTITY}, averaged over the run (bars: one standard error)")
        heading = "fresh runs;  when chosen;  at the end;  parameters"
        place.text(1.02, len(bests) - 0.2, heading, transform=place.get_yaxis_transform())
        place.set_ylim(-0.5, len(bests) - 0.5)
        picture.legend(loc="outside lower center", ncols=3)
    return picture


def _words(best: Best) -> str:
    """Write the errors and parameters of a method."""
    error, stderr, chosen, chosen_stderr, final = map(
        _number, (best.error, best.stderr, best.chosen_error, best.chosen_stderr, best.final)
    )
    errors = f"{error} {SIGN} {stderr};  {chosen} {SIGN} {chosen_stderr};  {final}"
    key = {name: getattr(best, name) for name in SYMBOLS}
    parameters = [
        f"{SYMBOLS[name]} {_short(name, key[name])}" for name in key if key[name] is not None
    ]
    return f"{errors};  {', '.join(parameters)}"


def _number(error: float) -> str:
    """Write an error in a few characters, also if a run has diverged."""
    return f"{error:.4f}" if error < 100.0 else f"{error:.0e}"


def _short(name: str, value: float) -> str:
    if name in ("step_size", "eta"):
        return f"$2^{{{np.log2(value):g}}}$"
    return f"{value:.4g}"


def _line(name: str) -> dict[str, Any]:
    look = styles([name])[name]
    return {"color": look.colour, "linestyle": look.dash, "linewidth": 1.0, "label": name}


CURVES = Companion(
    "learning-curves",
    "Error while learning, at the parameters of each method with the lowest error over the run. "
    "Lines: exact fixed points. Bands: one standard error.",
    draw_curves,
    chart_learning_curves,
)
BEST = Companion(
    "best-errors",
    "The error of every method at its best parameters: in fresh runs (marker), in the runs that "
    "chose the parameters (stroke), and in the last 1 % of fresh runs (the last step, for draws "
    "from a window). Lines: exact fixed points. Markers of errors above .75 lie outside.",
    draw_best,
    best_errors,
)
TRACES = Companion(
    "every-trace-decay",
    "Error averaged over the run for every step size and every lambda or zeta, at the best of the "
    "other parameters.",
    draw_traces,
    chart_points_by_trace,
)
