"""A diagnosis as a few lines of text, as tables, and as a picture.

The picture has two parts. The first is a histogram of the ratios on a log scale, with zeros apart,
of the number of transitions and of their mass (under resampling, the share of draws). The second is
the variance of each correction's mini-batch update, with the bias beside it.
"""

from __future__ import annotations

import math
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.common.colours import METHOD_COLOURS, colours_of
from gvf.estimate import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import Group

    from gvf.diagnosis.diagnosis import Diagnosis
    from gvf.diagnosis.moments import Moments

DECADES = 6
"""The powers of ten below the largest ratio that have bars; smaller ratios share one bar."""
BINS = 8
"""The number of bars in a power of ten."""
GREY = "#8a8f98"
"""The colour of corrections that are not recommended."""


ESTIMATED = "The ratios are estimated: their errors are in none of these numbers."
"""The remark if the behaviour's probabilities were estimated."""
OTHER_AIM = "Corrections by rho F aim at updates weighted by it; the advice is about the others."
"""The remark beside the advice if a correction is emphatic."""


class Histogram(NamedTuple):
    """The shares of transitions and of their mass in each bar; each sums to 1.

    The first bar holds the zeros, the second all positive ratios below the first edge.
    """

    edges: NDArray[np.float64]
    """The bounds of the other bars in log10, [bars - 1]."""
    transitions: NDArray[np.float64]
    """The shares of transitions, [bars]."""
    mass: NDArray[np.float64]
    """The shares of mass, [bars]."""


def histogram(ratios: NDArray[np.float64]) -> Histogram:
    """Sort ratios into bars of equal width in log10; at least one ratio is positive."""
    logs = np.log10(ratios[ratios > 0.0])
    top = float(logs.max())
    bottom = max(float(logs.min()), math.floor(top - DECADES))
    # A grid that does not depend on the window, and includes its ends.
    edges = np.arange(math.floor(bottom * BINS), math.floor(top * BINS) + 2) / BINS
    bars = np.zeros(len(ratios), np.int64)
    bars[ratios > 0.0] = 1 + np.searchsorted(edges, logs, side="right")
    count = np.bincount(bars, minlength=len(edges) + 1)
    mass = np.bincount(bars, ratios / ratios.max(), minlength=len(edges) + 1)
    return Histogram(edges, count / count.sum(), mass / mass.sum())


def summary(diagnosis: Diagnosis) -> str:
    """Return a summary in some lines of text."""
    size = diagnosis.effective_sample_size
    variances = ", ".join(f"{name} {_number(m)}" for name, m in diagnosis.moments.items())
    lines = [
        f"Diagnosis of {diagnosis.window:,} transitions, batches of {diagnosis.batch_size}: "
        f"use {diagnosis.recommendation.name}",
        f"  {diagnosis.reason}",
        *([f"  {ESTIMATED}"] if diagnosis.estimated else []),
        *([] if math.isnan(diagnosis.emphatic_sample_size) else [f"  {OTHER_AIM}"]),
        f"  ratios: mean {diagnosis.mean_ratio:.3g} ± {diagnosis.mean_ratio_error:.2g}, "
        f"largest {diagnosis.max_ratio:.4g} with {percent(diagnosis.max_share)} of the mass, "
        f"{percent(diagnosis.zero_ratios)} zeros",
        f"  effective sample size: {_size(diagnosis, size)}{_emphatic(diagnosis)}",
        f"  tail: {_tail(diagnosis)}",
        f"  variance: {variances}",
        *(f"  WARNING: {warning}" for warning in diagnosis.warnings),
    ]
    return "\n".join(fill(line, 88, subsequent_indent="    ") for line in lines)


def tables(diagnosis: Diagnosis) -> Group:
    """Return two tables for rich: the ratios, and the corrections."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    size, comparison, emphatic = (
        diagnosis.effective_sample_size, diagnosis.comparison, diagnosis.emphatic_sample_size
    )  # fmt: skip
    style: Any = {"box": box.SIMPLE, "title_justify": "left", "pad_edge": False}
    window = Table("ratios", "", title=f"{diagnosis.window:,} transitions", **style)
    for name, value in (
        ("effective sample size", _size(diagnosis, size)),
        *([] if math.isnan(emphatic) else [("... of rho F", _size(diagnosis, emphatic))]),
        ("mean", f"{diagnosis.mean_ratio:.3g} ± {diagnosis.mean_ratio_error:.2g}"),
        ("zeros", percent(diagnosis.zero_ratios)),
        ("largest", f"{diagnosis.max_ratio:.4g}, {percent(diagnosis.max_share)} of the mass"),
        ("tail", _tail(diagnosis)),
    ):
        window.add_row(name, value)
    title = f"Mini-batches of {diagnosis.batch_size}"
    corrections = Table("correction", title=title, **style)
    for column in ("variance", "of IS", "noise /\nsignal", "bias", "drawn\nfrom"):
        corrections.add_column(column, justify="right", no_wrap=True)
    unbiased = comparison.reweighted
    for name, m in diagnosis.moments.items():
        corrections.add_row(
            name,
            _number(m),
            percent(_ratio(m.variance.value, unbiased.variance.value)),
            f"{_ratio(math.sqrt(m.variance.value), m.length):.3g}",
            percent(_ratio(m.bias, unbiased.length)),
            _count(m.effective_sample_size),
            style="bold" if m.correction == diagnosis.recommendation else "",
        )
    theorems = (
        f"IS - BC-IR: {comparison.difference:.3g} = {comparison.spread:.3g} (spread of ratios) "
        f"{comparison.dependence:+.3g} (ratios with lengths of updates)\n"
        f"Theorem 3.3: {_theorem_3_3(diagnosis)}\n"
        f"Theorem 3.4: {_theorem_3_4(diagnosis)}"
    )
    advice = Text.assemble((f"Use {diagnosis.recommendation.name}. ", "bold"), diagnosis.reason)
    warnings = [Text.assemble(("Warning: ", "bold red"), text) for text in diagnosis.warnings]
    remarks = [(OTHER_AIM, not math.isnan(emphatic)), (ESTIMATED, diagnosis.estimated)]
    other = [Text(remark) for remark, holds in remarks if holds]
    return Group(window, corrections, Text(theorems), Text(""), advice, *other, *warnings)


def picture(diagnosis: Diagnosis, axes: Any = None) -> Figure:
    """Draw ratios on the first axes and variances on the second."""
    import matplotlib.pyplot as plt

    if axes is None:
        _, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    left, right = np.ravel(axes)
    _draw_ratios(left, diagnosis)
    _draw_variances(right, diagnosis)
    for part in (left, right):
        part.spines[["top", "right"]].set_visible(False)
    return left.figure


def _draw_ratios(axes: Axes, diagnosis: Diagnosis) -> None:
    edges, transitions, mass = diagnosis.histogram
    width, span = 1.0 / BINS, edges[-1] - edges[0]
    # Zeros and very small ratios have no place on the log scale: they go to its left.
    gap = 0.13 * span + width
    below = edges[0] - gap
    zero = below - gap * (transitions[1] > 0.0)
    positions = np.concatenate([[zero, below], edges[:-1] + width / 2])
    powers = range(math.floor(edges[0]), math.floor(edges[-1]) + 1)
    marks = [m * 10.0**power for power in powers for m in ((1, 2, 5) if span < 2 else (1,))]
    ticks = {math.log10(m): f"{m:g}" for m in marks if edges[0] <= math.log10(m) <= edges[-1]}
    if not ticks:  # all ratios are in one bar between two marks
        middle = (edges[0] + edges[-1]) / 2
        ticks[middle] = f"{10.0**middle:.2g}"
    if transitions[0] > 0.0:
        ticks[zero] = "0"
    if transitions[1] > 0.0:
        ticks.pop(edges[0], None)  # to make room
        ticks[below] = f"<{10.0 ** edges[0]:g}"
    has_rows = transitions > 0.0
    positions, transitions, mass = positions[has_rows], transitions[has_rows], mass[has_rows]
    # IS draws transitions uniformly and IR by mass, so the bars have the colours of these methods.
    uniform, by_mass = METHOD_COLOURS["IS"], METHOD_COLOURS["IR"]
    axes.bar(positions, transitions, width, color=uniform, alpha=0.7, label="of the transitions")
    axes.bar(
        positions, mass, width, fill=False, edgecolor=by_mass, linewidth=1.5, label="of their mass"
    )
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set(xlabel=f"ratio, {diagnosis.window:,} of them", ylabel="share")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, borderpad=0)


def _draw_variances(axes: Axes, diagnosis: Diagnosis) -> None:
    length = diagnosis.comparison.reweighted.length
    names, moments = list(diagnosis.moments), list(diagnosis.moments.values())
    variances = np.array([m.variance.value for m in moments])
    errors = np.array([m.variance.standard_error for m in moments])
    low, high = variances.min(), (variances + errors).max()
    colour_of = colours_of(names)
    recommended = [m.correction == diagnosis.recommendation for m in moments]
    colours = [colour_of[x] if best else GREY for x, best in zip(names, recommended, strict=True)]
    axes.barh(names, variances, color=colours, xerr=errors, ecolor="black")
    axes.invert_yaxis()
    for name, m in diagnosis.moments.items():
        bias = f"bias {percent(_ratio(m.bias, length))}"
        end = m.variance.value + m.variance.standard_error, name
        axes.annotate(bias, end, (4, 0), textcoords="offset points", va="center", fontsize="small")
    if high > 10 * low > 0:
        axes.set_xscale("log")
        axes.set_xlim(low / 3, high * (high / low) ** 0.4)
    elif high > 0:
        axes.set_xlim(0, 1.4 * high)
    axes.set(
        xlabel=f"variance of an update with {diagnosis.batch_size} transitions\n"
        "(bias in units of the mean update)"
    )


def _size(diagnosis: Diagnosis, size: float) -> str:
    return f"{_count(size)} ({percent(size / diagnosis.window)})"


def _emphatic(diagnosis: Diagnosis) -> str:
    size = diagnosis.emphatic_sample_size
    return "" if math.isnan(size) else f", of rho F: {_size(diagnosis, size)}"


def _tail(diagnosis: Diagnosis) -> str:
    if math.isnan(diagnosis.k_hat):
        return "too few large ratios to tell"
    if diagnosis.k_hat == -math.inf:
        return "bounded: the largest ratios are all the same"
    verdict = "light enough" if diagnosis.k_hat <= diagnosis.k_threshold else "TOO HEAVY"
    return f"k-hat {diagnosis.k_hat:.2f}, {verdict} (up to {diagnosis.k_threshold:.2f})"


def _theorem_3_3(diagnosis: Diagnosis) -> str:
    if diagnosis.comparison.theorem_3_3:
        return "its condition holds"
    return f"its condition fails for {percent(diagnosis.comparison.exceptions)} of the transitions"


def _theorem_3_4(diagnosis: Diagnosis) -> str:
    correlation, chance = diagnosis.comparison.correlation, diagnosis.comparison.chance
    if diagnosis.comparison.theorem_3_4:
        return "its condition holds"
    fails = "fails no more than by chance" if abs(correlation) < 2 * chance else "fails"
    return (
        f"its condition {fails}: correlation {correlation:.2g} of ratios and squared lengths "
        f"(chance alone: ± {chance:.2g})"
    )


def _number(moments: Moments) -> str:
    value, error = moments.variance.value, moments.variance.standard_error
    return f"{value:.3g} ± {error:.1g}" if error > 0.0 else f"{value:.3g}"


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else math.nan


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
