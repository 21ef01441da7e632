"""Pictures that go with a chart: learning curves, every trace decay, and the best errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gvf.charts.errors import best_choice, column_of, trace_of
from gvf.charts.reading import against_steps, against_traces, fixed_points
from gvf.figure.companion import Companion
from gvf.figure.figure import Axes
from gvf.figure.picture import draw, house_style
from gvf.figure.reading import summary
from gvf.figure.style import styles
from gvf.study.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

QUANTITY = "root mean square value error"
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
    return draw(against_steps(results), Axes("steps", QUANTITY, y_top=TOP))


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
    return draw(against_traces(results), axes, title=title, columns=3, colours=colours)


def _shade(x: float) -> str:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return to_hex(colormaps["viridis"](x))


def draw_best(results: Results) -> Picture:
    """Draw the best error of every method with its standard error and parameters, as a table."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = sorted((_best(results, method) for method in results.study.methods), reverse=True)
    looks = styles(results.study.methods)
    study = results.study
    with house_style():
        picture = Figure(figsize=(9.4, 1.3 + 0.27 * len(found)), layout="constrained")
        FigureCanvasAgg(picture)
        place = picture.subplots()
        for row, (error, spread, method, words) in enumerate(found):
            look = looks[method]
            place.errorbar(error, row, xerr=spread, color=look.colour, marker=look.marker)
            place.text(1.02, row, words, transform=place.get_yaxis_transform(), va="center")
        for name, errors in fixed_points(study.domain, study.pairs[0][1], study.runs).items():
            place.axvline(float(np.mean(errors)), **_line(name))
        place.set_yticks(range(len(found)), [method for *_, method, _ in found])
        place.set_xlim(left=0.0)
        place.set_xlabel(f"{QUANTITY}, averaged over the run (bars: one standard error)")
        heading = "error \N{PLUS-MINUS SIGN} s.e.;  last 1 %;  parameters"
        place.text(1.02, len(found) - 0.2, heading, transform=place.get_yaxis_transform())
        place.set_ylim(-0.5, len(found) - 0.5)
        picture.legend(loc="outside lower center", ncols=3)
    return picture


def _best(results: Results, method: str) -> tuple[float, float, str, str]:
    """Return a method's lowest error, its standard error, its name, and both in words."""
    choice = best_choice(results, method)
    measured = results.of(method, pair=results.study.pairs[0])
    ((error,), (spread,)) = summary(column_of(results, method)[:, [choice]])
    ((final,), _) = summary(column_of(results, method, "final")[:, [choice]])
    key = results.study.key(measured.choices[choice])
    parameters = ", ".join(f"{SYMBOLS[name]} {_short(name, value)}" for name, value in key.items())
    words = f"{error:.4f} \N{PLUS-MINUS SIGN} {spread:.4f};  {final:.4f};  {parameters}"
    return error, spread, method, words


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
)
BEST = Companion(
    "best-errors",
    "The lowest error of every method, its error in the last 1 % of the run (the last step, for "
    "draws from a window), and its parameters. Lines: exact fixed points.",
    draw_best,
)
TRACES = Companion(
    "every-trace-decay",
    "Error averaged over the run for every step size and every lambda or zeta, at the best of the "
    "other parameters.",
    draw_traces,
)
