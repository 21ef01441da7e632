"""One panel of a picture: curves with bands of one standard error, over published curves.

A point that diverged is infinite, and a curve ends before its first such point: a line towards it
would show a slope that nobody measured. Points that are only too large are cut off by the panel's
edge.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gvf_lab.figure.figure import Axes, Point
from gvf_lab.figure.style import Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Panel

MOST_MARKERS = 12
"""The largest number of points that all have markers."""
MARKER_DISTANCE = 0.12
"""The distance between markers on longer curves, as a share of the panel's diagonal."""
OUTLIER_FACTOR = 50.0
"""Curves do not count for the limits if they stay above this many times the median minimum."""
SMALL_PRINT_COLOUR = "#666666"
"""The colour of small print."""


@dataclass(frozen=True)
class Curve:
    """The points of one series in one panel, in ascending order of x: float64[points] each."""

    x: np.ndarray
    y: np.ndarray
    stderr: np.ndarray
    runs: int


def curves(rows: Iterable[Point]) -> dict[tuple[str, str, str], Curve]:
    """Group points into curves, by protocol, panel and series."""
    grouped: dict[tuple[str, str, str], list[Point]] = {}
    for row in rows:
        grouped.setdefault((row.protocol, row.panel, row.series), []).append(row)
    return {
        key: Curve(
            *np.array(sorted((row.x, row.y, row.stderr) for row in group), dtype=float).T,
            runs=group[0].runs,
        )
        for key, group in grouped.items()
    }


def limits(drawn: Sequence[Curve], axes: Axes) -> tuple[float, float]:
    """Return the limits of the y axis."""
    finite = [curve.y[_on_scale(curve.y, axes.y_log) & np.isfinite(curve.y)] for curve in drawn]
    finite = [y for y in finite if y.size] or [np.array([1.0])]
    highest, lowest = (float(edge) for edge in (max(map(np.max, finite)), min(map(np.min, finite))))
    if axes.y_log:
        return lowest / 1.5, axes.y_top or highest * 1.5
    # The start and the minimum of a curve matter, not how large it grows.
    ends = [float(max(y[0], y.min())) for y in finite]
    # A method that diverges at every step size would flatten all other curves.
    most = OUTLIER_FACTOR * max(float(np.median(ends)), 0.0)
    calm = max((end for end in ends if end <= most), default=max(ends))
    if highest > 10 * calm > 0 or any(np.isinf(curve.y).any() for curve in drawn):
        highest = min(highest, 2.5 * calm)
    return 1.05 * min(0.0, lowest), axes.y_top or 1.05 * highest or 1.0


def label_few_decades(panel: Panel, axes: Axes) -> None:
    """Label 1 and 3 of each decade if a logarithmic axis has fewer than two decades.

    A single label would not tell the scale. The curves must have been drawn.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    for axis, log, (low, high) in (
        (panel.xaxis, axes.x_log, panel.get_xlim()),
        (panel.yaxis, axes.y_log, panel.get_ylim()),
    ):
        if log and high < 100 * low:
            axis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
            axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
            axis.set_minor_formatter(NullFormatter())


def set_up(panel: Panel, axes: Axes, limits: tuple[float, float], height: float) -> None:
    """Set scales, limits and labels of a panel of this height in inches."""
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    if axes.x_log:
        panel.set_xscale("log")
        panel.xaxis.set_minor_formatter(NullFormatter())
    panel.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    if axes.y_log:
        panel.set_yscale("log")
    panel.margins(x=0.02)
    panel.set_ylim(*limits)
    panel.set_xlabel(axes.x)
    # Break the label into lines of about equal length, none longer than the panel is high.
    lines = math.ceil(len(axes.y) / (13 * height))
    panel.set_ylabel(textwrap.fill(axes.y, math.ceil(len(axes.y) / lines) + 5))


def draw_ours(
    panel: Panel, curve: Curve, look: Style, axes: Axes, top: float, phase: float
) -> None:
    """Draw a curve and its band; `phase`, from 0 to 1, shifts its markers along the curve."""
    x, y, stderr = _visible(curve, axes, top)
    order = 3 + look.width / 10
    # The x axis shows where points diverged, too.
    panel.update_datalim([(place, top) for place in curve.x[_on_scale(curve.x, axes.x_log)]])
    panel.plot(x, y, **look.ours, markevery=_markers(x, phase), zorder=order)
    # Just before a method diverges its standard error is meaningless, so no band leaves the panel.
    inside = np.isfinite(stderr) & (y <= top)
    if inside.any():
        low = np.maximum(y - stderr, 1e-3 * y) if axes.y_log else np.maximum(y - stderr, -top)
        high = np.minimum(y + stderr, _above(axes, top))
        faint = {"color": look.colour, "alpha": 0.2, "linewidth": 0}
        panel.fill_between(x, low, high, where=inside.tolist(), zorder=order - 0.5, **faint)


def draw_published(
    panel: Panel, curve: Curve, look: Style, axes: Axes, top: float, phase: float, name: str = ""
) -> None:
    """Draw a published curve, with its name at its end."""
    x, y, _ = _visible(curve, axes, top)
    panel.plot(x, y, **look.published, markevery=_markers(x, phase), zorder=2)
    inside = np.flatnonzero(y <= top)
    if name and inside.size:
        end = x[inside[-1]], y[inside[-1]]
        small = {"fontsize": 6.5, "color": SMALL_PRINT_COLOUR, "ha": "right"}
        panel.annotate(name, end, (0, 5), textcoords="offset points", zorder=5, **small)


def head(panel: Panel, name: str, words: str) -> None:
    """Write the title of a panel, and remarks in small print below it."""
    panel.set_title(name, loc="left", fontweight="bold", pad=15 if words else 4)
    if words:
        small = {"fontsize": 7, "color": SMALL_PRINT_COLOUR}
        panel.annotate(
            words, (0, 1), (0, 4), xycoords="axes fraction", textcoords="offset points", **small
        )


def runs_of(here: Mapping[str, Curve]) -> str:
    """Return the number of runs behind the curves of a panel, in words."""
    runs = sorted({curve.runs for curve in here.values()})
    return (
        f"{runs[0]} to {runs[-1]} runs" if len(runs) > 1 else f"{runs[0]} run{'s'[: runs[0] - 1]}"
    )


def _on_scale(values: np.ndarray, log: bool) -> np.ndarray:
    """Return which values have a place on an axis."""
    return values > 0 if log else ~np.isnan(values)


def _visible(curve: Curve, axes: Axes, top: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x, y and standard errors of the points before the first that diverged."""
    kept = _on_scale(curve.x, axes.x_log) & _on_scale(curve.y, axes.y_log)
    x, y, stderr = curve.x[kept], curve.y[kept], curve.stderr[kept]
    end = int(np.append(np.isinf(y), True).argmax())
    return x[:end], np.minimum(y[:end], 100 * top), stderr[:end]


def _above(axes: Axes, top: float) -> float:
    return 3 * top if axes.y_log else 1.1 * top


def _markers(x: np.ndarray, phase: float) -> tuple[float, float] | None:
    return (MARKER_DISTANCE * phase, MARKER_DISTANCE) if len(x) > MOST_MARKERS else None
