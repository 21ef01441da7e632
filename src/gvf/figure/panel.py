"""One panel of a picture: curves with bands of one standard error, published ones beneath.

A point that diverged is infinite. Its curve leaves the panel at the top, drawn to just above where
that point would be, and does not come back. Points that are only too large are cut off by the
panel's edge.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gvf.figure.figure import Axes, Point
from gvf.figure.style import Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Panel

MANY = 12
"""Points beyond which not every one has a marker."""
APART = 0.12
"""Of markers, then: as a share of the panel's diagonal."""
HOPELESS = 50.0
"""A curve that nowhere comes down to so many times what the others do, in the median, is left out
of the choice of limits."""
FAINT = "#666666"
"""The colour of small print."""


@dataclass(frozen=True)
class Curve:
    """Points of one series in one panel, in ascending order of x: float64[points] each."""

    x: np.ndarray
    y: np.ndarray
    stderr: np.ndarray
    runs: int


def curves(rows: Iterable[Point]) -> dict[tuple[str, str, str], Curve]:
    """Curves by protocol, panel and series."""
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
    """Where the y axis begins and ends."""
    finite = [curve.y[_on_scale(curve.y, axes.y_log) & np.isfinite(curve.y)] for curve in drawn]
    finite = [y for y in finite if y.size] or [np.array([1.0])]
    highest, lowest = (float(edge) for edge in (max(map(np.max, finite)), min(map(np.min, finite))))
    if axes.y_log:
        return lowest / 1.5, axes.y_top or highest * 1.5
    # Where a curve starts and what it comes down to is of interest; how it explodes is not.
    ends = [float(max(y[0], y.min())) for y in finite]
    # A method that explodes at every step size is off the axis: it would flatten all others.
    most = HOPELESS * max(float(np.median(ends)), 0.0)
    calm = max((end for end in ends if end <= most), default=max(ends))
    if highest > 10 * calm > 0 or any(np.isinf(curve.y).any() for curve in drawn):
        highest = min(highest, 2.5 * calm)
    return 1.05 * min(0.0, lowest), axes.y_top or 1.05 * highest or 1.0


def set_up(panel: Panel, axes: Axes, limits: tuple[float, float], height: float) -> None:
    """Scales, limits and labels of a panel so many inches high."""
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
    # Lines of about the same length, none longer than the panel is high.
    lines = math.ceil(len(axes.y) / (13 * height))
    panel.set_ylabel(textwrap.fill(axes.y, math.ceil(len(axes.y) / lines) + 5))


def draw_ours(
    panel: Panel, curve: Curve, look: Style, axes: Axes, top: float, phase: float
) -> None:
    """Draw a curve and its band; phase, from 0 to 1, puts markers out of step with others'."""
    x, y, stderr = _visible(curve, axes, top)
    order = 3 + look.width / 10
    panel.plot(x, y, **look.ours, markevery=_markers(x, phase), zorder=order)
    # Just before a method diverges its standard error may be anything: no band beyond the edge.
    inside = np.isfinite(stderr) & (y <= top)
    if inside.any():
        low = np.maximum(y - stderr, 1e-3 * y) if axes.y_log else np.maximum(y - stderr, -top)
        high = np.minimum(y + stderr, _above(axes, top))
        faint = {"color": look.colour, "alpha": 0.2, "linewidth": 0}
        panel.fill_between(x, low, high, where=inside.tolist(), zorder=order - 0.5, **faint)


def draw_published(
    panel: Panel, curve: Curve, look: Style, axes: Axes, top: float, phase: float, name: str = ""
) -> None:
    """Draw a published curve, and its name at its end."""
    x, y, _ = _visible(curve, axes, top)
    panel.plot(x, y, **look.published, markevery=_markers(x, phase), zorder=2)
    inside = np.flatnonzero(y <= top)
    if name and inside.size:
        end = x[inside[-1]], y[inside[-1]]
        small = {"fontsize": 6.5, "color": FAINT, "ha": "right"}
        panel.annotate(name, end, (0, 5), textcoords="offset points", zorder=5, **small)


def head(panel: Panel, name: str, words: str) -> None:
    """What a panel shows, and below it, in small print, some words about it."""
    panel.set_title(name, loc="left", fontweight="bold", pad=15 if words else 4)
    if words:
        small = {"fontsize": 7, "color": FAINT}
        panel.annotate(
            words, (0, 1), (0, 4), xycoords="axes fraction", textcoords="offset points", **small
        )


def runs_of(here: Mapping[str, Curve]) -> str:
    """On how many runs the curves of a panel rest, in words."""
    runs = sorted({curve.runs for curve in here.values()})
    return (
        f"{runs[0]} to {runs[-1]} runs" if len(runs) > 1 else f"{runs[0]} run{'s'[: runs[0] - 1]}"
    )


def _on_scale(values: np.ndarray, log: bool) -> np.ndarray:
    """Which values have a place on an axis."""
    return values > 0 if log else ~np.isnan(values)


def _visible(curve: Curve, axes: Axes, top: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, y and standard errors, up to the point that diverged, which lies just above the top."""
    kept = _on_scale(curve.x, axes.x_log) & _on_scale(curve.y, axes.y_log)
    x, y, stderr = curve.x[kept], curve.y[kept], curve.stderr[kept]
    gone = np.flatnonzero(np.isinf(y))
    # A curve that starts at infinity has no point to come from.
    end = len(y) if not gone.size else 0 if gone[0] == 0 else gone[0] + 1
    y = np.where(np.isinf(y), _above(axes, top), np.minimum(y, 100 * top))
    return x[:end], y[:end], stderr[:end]


def _above(axes: Axes, top: float) -> float:
    return 3 * top if axes.y_log else 1.1 * top


def _markers(x: np.ndarray, phase: float) -> tuple[float, float] | None:
    return (APART * phase, APART) if len(x) > MANY else None
