"""Pictures that go with a chart: learning curves, every trace decay, and the best errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gvf_lab.charts.chart_points import (
    PANELS,
    Best,
    best_errors,
    chart_learning_curves,
    chart_points_by_trace,
    fixed_points_of,
)
from gvf_lab.charts.chart_statistics import trace_of
from gvf_lab.figure.figure import Axes, Companion
from gvf_lab.figure.picture import draw, house_style
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
