"""The pictures of a horde's page: distributions, a map, a stretch of time, and the ratios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gvf.common.arrays import Floats
from gvf.common.colours import SPARE_COLOURS
from gvf.common.plot_style import house_style
from gvf.horde.horde_report import PolicyDiagnosis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, _, RED, *_ = SPARE_COLOURS  # these pictures show no method
GREY = "#8a8f98"
_WIDTH = 8.6
_LETTERS = 34


def short(text: str, letters: int = _LETTERS) -> str:
    """Shorten a text in its middle."""
    if len(text) <= letters:
        return text
    half = (letters - 1) // 2
    return f"{text[: letters - 1 - half]}…{text[-half:]}"


@house_style()
def distributions(ude: Floats, explained: Floats | None) -> Figure:
    """Draw histograms of UDE, and of the variance explained if it is given."""
    figure, axes = _figure(1, 1 if explained is None else 2, 2.6)
    known = ude[np.isfinite(ude)]
    top = max(float(known.max(initial=0.0)), 1.0)
    edges = np.geomspace(1e-3, 1.1 * top, 50).tolist()
    # Smaller ones share the first bar.
    axes[0].hist(np.maximum(known, edges[0] * 1.01), edges, color=BLUE)
    axes[0].set(xscale="log", xlabel="UDE (log scale)", ylabel="questions")
    if explained is not None:
        known = explained[~np.isnan(explained)]
        axes[1].hist(np.maximum(known, -0.999), np.linspace(-1, 1, 51).tolist(), color=BLUE)
        axes[1].axvline(0.0, color=GREY, linewidth=1)
        axes[1].set(xlabel="variance explained", ylabel="questions")
        if (known < -1).any():
            axes[1].set_xticks([-1, -0.5, 0, 0.5, 1], ["≤ -1", "-0.5", "0", "0.5", "1"])
    return figure


@house_style()
def error_map(
    errors: Floats, rows: Sequence[str], groups: Sequence[str], columns: Sequence[str], what: str
) -> Figure:
    """Draw errors as colours; `what` is "UDE" or "variance explained".

    Args:
        errors: the errors, [rows, groups, columns]; nan if there is no question.
        rows: the names of the rows.
        groups: the names of the groups of columns.
        columns: the names of the columns in each group: the continuations.
        what: the kind of error.
    """
    import matplotlib
    from matplotlib.colors import LogNorm, Normalize

    height = float(np.clip(0.16 * len(rows), 1.0, 9.0))
    figure, (axes,) = _figure(1, 1, height + 1.6)
    if what == "UDE":
        norm, map_name, extend = LogNorm(0.03, 1.0), "cividis", "both"
        errors = np.where(errors <= 0.0, 1e-9, errors)
    else:
        norm, map_name, extend = Normalize(0.0, 1.0), "cividis_r", "min"
    colours = matplotlib.colormaps[map_name].with_extremes(bad="#e4e4e7")
    flat = errors.reshape(len(rows), -1)
    image = axes.imshow(
        np.ma.masked_invalid(flat), aspect="auto", norm=norm, cmap=colours, interpolation="nearest"
    )
    wide = len(columns)
    few = flat.shape[1] <= 45
    ticks = np.arange(flat.shape[1]) if few else np.arange(len(groups)) * wide + (wide - 1) / 2
    names = [short(name, 12) for name in columns] * len(groups) if few else [""] * len(groups)
    axes.set_xticks(ticks, names, rotation=90)
    every = -(-len(groups) // 40)
    above = axes.secondary_xaxis("top")
    above.set_xticks(
        (np.arange(len(groups)) * wide + (wide - 1) / 2)[::every],
        [short(name, 22) for name in groups][::every],
        rotation=90 if len(groups) > 4 else 0,
    )
    above.tick_params(length=0)
    above.spines["top"].set_visible(False)
    if len(groups) <= 100 and wide > 1:
        for edge in np.arange(1, len(groups)) * wide - 0.5:
            axes.axvline(edge, color="white", linewidth=1)
    every = -(-len(rows) // 50)
    axes.set_yticks(np.arange(len(rows))[::every], [short(name, 26) for name in rows][::every])
    axes.grid(visible=False)
    listed = ", ".join(short(name, 12) for name in columns)
    axes.set_xlabel("continuation" if few else f"continuation, in each group: {short(listed, 80)}")
    figure.colorbar(image, ax=axes, extend=extend, label=what, pad=0.01, aspect=6 * height + 6)
    return figure


@house_style()
def stretch(names: Sequence[str], predictions: Floats, returns: Floats, whose: str) -> Figure:
    """Draw predictions and returns over time, [T, questions], one panel a question."""
    rows = -(-len(names) // 2)
    figure, panels = _figure(rows, min(len(names), 2), 1.5 * rows + 0.5)
    time = np.arange(len(predictions))
    for i, name in enumerate(names):
        panels[i].plot(time, returns[:, i], color=GREY, linewidth=1.0, label=whose)
        panels[i].plot(time, predictions[:, i], color=RED, linewidth=1.2, label="prediction")
        panels[i].set_title(short(name, 50), loc="left")
        if i >= len(names) - min(len(names), 2):
            panels[i].set_xlabel("step of the stretch")
    for left in panels[len(names) :]:
        left.set_visible(False)
    figure.supylabel("in the unit of each question's return", fontsize=8.5)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2)
    return figure


@house_style()
def ratios(policies: Sequence[PolicyDiagnosis], names: Sequence[str]) -> Figure:
    """Draw the effective sample size and the mean ratio of policies, in the given order."""
    few = len(policies) <= 30
    figure, (left, right) = _figure(1, 2, np.clip(0.17 * len(policies) + 1.0, 2.0, 6.0))
    at = np.arange(len(policies))
    size = [100 * policy.ratios.effective_sample_size / policy.ratios.window for policy in policies]
    mean = np.array([policy.ratios.mean_ratio for policy in policies])
    error = np.array([policy.ratios.mean_ratio_error for policy in policies])
    left.barh(at, size, color=BLUE, height=0.8 if few else 1.0)
    left.set(xlabel="effective sample size, % of the window", xlim=(0, 100))
    right.errorbar(mean, at, xerr=2 * error, fmt="o", markersize=3, color=BLUE, elinewidth=1)
    right.axvline(1.0, color=GREY, linewidth=1)
    right.set(xlabel="mean ratio, ± 2 standard errors (1 if all is well)")
    for axes in (left, right):
        axes.set_ylim(len(policies) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
    labels = [short(name, 26) for name in names] if few else []
    left.set_yticks(at if few else [], labels)
    right.set_yticks([])
    if not few:
        left.set_ylabel(f"{len(policies):,} policies, the smallest sample first")
    return figure


def _figure(rows: int, columns: int, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with its panels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    panels: Any = figure.subplots(rows, columns, squeeze=False)
    return figure, list(panels.ravel())
