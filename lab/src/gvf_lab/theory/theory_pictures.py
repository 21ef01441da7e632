"""The pictures of the findings, each drawn from the numbers of its finding's rows.

Methods have their colours of :mod:`gvf.common.colours`, predictions of the theory are black, and
everything else has a spare colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gvf.common.colours import METHOD_COLOURS, SPARE_COLOURS, colours_of
from gvf.common.files import replaced
from gvf_lab.theory.finding import STANDARD_ERRORS, Finding
from gvf_lab.theory.numbers import (
    bias_numbers,
    consistency_numbers,
    emphasis_numbers,
    lemma_numbers,
    totals_numbers,
    variance_numbers,
)

BLACK = "#000000"
DOT_TITLE = f"one dot a window of {variance_numbers.WINDOW}, batches of {variance_numbers.BATCH}"


def save(finding: Finding, folder: Path) -> Path:
    """Draw a finding into ``folder/<name>.png``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    finding.picture(figure)
    path = folder / f"{finding.slug}.png"
    with replaced(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=120)
    return path


def draw_theorem_3_1(by_size: bias_numbers.BiasBySize, figure: Any) -> None:
    """Draw n times the bias of IR against n, and its distance to the limit."""
    left, right = figure.subplots(1, 2)
    sizes, ir = bias_numbers.SIZES, METHOD_COLOURS["IR"]
    for component, (marker, face) in enumerate((("o", ir), ("s", "white"))):
        drawn = {
            "color": ir, "marker": marker, "markerfacecolor": face,
            "label": f"component {component + 1}",
        }  # fmt: skip
        left.plot(sizes, sizes * by_size.bias[:, component], **drawn)
        left.axhline(by_size.limit[component], color=BLACK, linestyle="--", linewidth=1)
        right.loglog(sizes, by_size.distance[:, component], linestyle="none", **drawn)
        line = np.abs(by_size.next_term[component]) / sizes
        right.loglog(sizes, line, "--", color=BLACK, linewidth=1)
    for axis in (left, right):
        axis.set_xscale("log", base=2)
    _label(left, "window size n", "n × bias of IR", "dashed: −Cov$_π$(ρ, Δ)")
    _label(right, "window size n", "|n × bias − limit|", "dashed: the next term, ∝ 1/n")


def draw_corollary_3_1_1(in_chains: bias_numbers.BiasInChains, figure: Any) -> None:
    """Draw the bias of IR and BC-IR against the length of the window."""
    axis = figure.subplots()
    sizes = bias_numbers.CHAIN_SIZES
    looks = "o-", "^--", "D:"
    for name, biased, look in zip(
        bias_numbers.CHAINS, in_chains.relative(in_chains.ir), looks, strict=True
    ):
        axis.plot(sizes, biased, look, color=METHOD_COLOURS["IR"], label=f"IR, {name}")
    labels = ["BC-IR, all three", None, None]
    for unbiased, label in zip(in_chains.relative(in_chains.bcir), labels, strict=True):
        colour = METHOD_COLOURS["BC-IR"]
        axis.plot(sizes, unbiased, "s", color=colour, markerfacecolor="none", label=label)
    axis.set_xticks(sizes)
    _label(axis, "window size n", "|bias| / |E$_π$[Δ]|", "all windows of a Markov chain")


def draw_proposition(resampling: consistency_numbers.ResamplingDistance, figure: Any) -> None:
    """Draw the distance of the resampling distribution to the target's, against n."""
    axis, sizes = figure.subplots(), consistency_numbers.SIZES
    predicted = np.sqrt(resampling.limit / sizes)
    axis.loglog(sizes, predicted, "--", color=BLACK, label="predicted, ∝ n$^{-1/2}$")
    measured, error = resampling.distance
    _points(axis, sizes, measured, error, METHOD_COLOURS["IR"], "measured, ± 5 standard errors")
    axis.set_xscale("log", base=2)
    y = "distance of Q$_n$ to d$_μ$ π P (r.m.s.)"
    _label(axis, "window size n", y, "draws by ratio, given the window")


def draw_theorem_3_2(
    limits: consistency_numbers.SlidingLimits,
    averages: consistency_numbers.SlidingAverages,
    figure: Any,
) -> None:
    """Draw averages of BC-IR and IR over time, and T times the variance of BC-IR's average."""
    left, right = figure.subplots(1, 2)
    _draw_averages(left, limits, averages)
    colour = METHOD_COLOURS["BC-IR"]
    right.plot(consistency_numbers.LENGTHS, limits.variances, "--", color=colour, label="predicted")
    right.axhline(limits.variance_limit, color=BLACK, linewidth=1, label="predicted, T → ∞")
    variances, errors = np.array(list(averages.variances.values())).T
    _points(right, list(averages.variances), variances, errors, colour, "measured, ± 5 s.e.")
    right.set_xscale("log")
    right.set_ylim(bottom=0.0)
    _label(right, "updates T", "T × variance of the average", "BC-IR")


def _draw_averages(
    axis: Any,
    limits: consistency_numbers.SlidingLimits,
    averages: consistency_numbers.SlidingAverages,
) -> None:
    time = consistency_numbers.BLOCK * np.arange(
        1, 1 + consistency_numbers.STEPS // consistency_numbers.BLOCK
    )
    for name, blocks in averages.blocks.items():
        average = np.cumsum(blocks[:, :, 1], axis=1) / np.arange(1, 1 + len(time))
        colour = METHOD_COLOURS[name]
        axis.plot(time, average.mean(axis=0), color=colour, label=name)
        low, high = average.min(axis=0), average.max(axis=0)
        axis.fill_between(time, low, high, color=colour, alpha=0.25, linewidth=0.0)
    for level, style, label in (
        (limits.expected, "-", "E$_π$[Δ]"),
        (limits.ir, "--", "IR, enumerated"),
        (limits.ir_if_independent, ":", "IR, if independent"),
    ):
        axis.axhline(level[1], color=BLACK, linestyle=style, linewidth=1, label=label)
    axis.set_xscale("log")
    title = (
        f"sliding window, n = {consistency_numbers.WINDOW}; band: {consistency_numbers.RUNS} runs"
    )
    _label(axis, "updates T", "average update, component 2", title, legend="lower right")


def draw_lemma(names: Sequence[str], simulated: lemma_numbers.LemmaSimulated, figure: Any) -> None:
    """Draw the variance of each correction's update given the window, by formula and simulated."""
    axis, place = figure.subplots(), np.arange(len(names))
    colours = list(colours_of(names).values())
    axis.bar(place, simulated.formula, 0.6, color=colours, alpha=0.6)
    axis.bar(0, 0, 0.6, color=BLACK, alpha=0.6, label="formula")
    _points(
        axis, place, simulated.measured, simulated.error, BLACK, "simulated, ± 5 standard errors"
    )
    axis.set_xticks(place, [name.replace("(", "\n(") for name in names])
    _label(
        axis,
        "",
        "V(update | window)",
        f"one window of {lemma_numbers.WINDOW}, batches of {lemma_numbers.BATCH}",
    )


def draw_theorem_3_3(
    differences: Mapping[str, variance_numbers.VarianceDifferences], figure: Any
) -> None:
    """Draw the difference of the two variances against the covariance."""
    axis = figure.subplots()
    for (kind, of_kind), colour in zip(differences.items(), SPARE_COLOURS, strict=False):
        axis.plot(of_kind.predicted, of_kind.measured, ".", markersize=4, color=colour, label=kind)
    axis.set_xscale("symlog", linthresh=0.1)
    axis.set_yscale("symlog", linthresh=0.1)
    axis.axhline(0.0, color=BLACK, linewidth=0.5)
    axis.axvline(0.0, color=BLACK, linewidth=0.5)
    _label(axis, "Cov$_B$(ρ, ρ g) / k", "V(IS | B) − V(BC-IR | B)", DOT_TITLE)


def draw_theorem_3_4(
    general: variance_numbers.UncorrelatedDifferences,
    product: variance_numbers.UncorrelatedDifferences,
    figure: Any,
) -> None:
    """Draw the difference of the two variances against that of the proof."""
    axis = figure.subplots()
    labelled = {"only uncorrelated": general, "product designs": product}
    for (label, windows), colour in zip(labelled.items(), SPARE_COLOURS[1:], strict=False):
        axis.loglog(windows.printed, windows.measured, ".", color=colour, markersize=4, label=label)
    printed = np.concatenate([general.printed, product.printed])
    ends = np.array([printed.min(), printed.max()])
    axis.loglog(ends, ends, "--", color=BLACK, linewidth=1, label="equal")
    _label(axis, "(c / k) × variance of ρ", "V(IS | B) − V(BC-IR | B)", DOT_TITLE)


def draw_total_variance(
    variances: totals_numbers.TotalVariances, stream: totals_numbers.StreamVariances, figure: Any
) -> None:
    """Draw the variance of each method's update, between and within windows."""
    axis, place = figure.subplots(), np.arange(len(totals_numbers.METHODS))
    colours = list(colours_of(totals_numbers.METHODS).values())
    between, within = variances.between[0], variances.within[0]
    axis.bar(place, between, 0.6, color=colours, alpha=0.9)
    axis.bar(place, within, 0.6, between, color=colours, alpha=0.4)
    axis.bar(0, 0, 0.6, color=BLACK, alpha=0.9, label="between windows")
    axis.bar(0, 0, 0.6, color=BLACK, alpha=0.4, label="within: draws")
    measured, errors = np.array([stream.variance(name) for name in totals_numbers.METHODS]).T
    _points(axis, place, measured, errors, BLACK, "simulated, ± 5 standard errors")
    axis.set_xticks(place, list(totals_numbers.METHODS))
    title = f"windows of {totals_numbers.WINDOW} of the chain, batches of {totals_numbers.BATCH}"
    _label(axis, "", "V(update)", title)


def draw_emphatic_resampling(
    by_size: bias_numbers.BiasBySize, points: emphasis_numbers.FixedPoints, figure: Any
) -> None:
    """Draw n times the bias of Emphatic IR against n, and values at the fixed points."""
    left, right = figure.subplots(1, 2)
    sizes, colour = bias_numbers.SIZES, METHOD_COLOURS["Emphatic IR"]
    for component, (marker, face) in enumerate((("o", colour), ("s", "white"))):
        left.plot(
            sizes, sizes * by_size.bias[:, component], color=colour, marker=marker,
            markerfacecolor=face, label=f"component {component + 1}",
        )  # fmt: skip
        left.axhline(by_size.limit[component], color=BLACK, linestyle="--", linewidth=1)
    left.set_xscale("log", base=2)
    _label(left, "window size n, in episodes", "n × bias of Emphatic IR", "dashed: −Cov(H, Y)")
    corridor = emphasis_numbers.LONG
    states = np.arange(corridor.states)
    right.plot(states, corridor.values, "--", color=BLACK, label="true values")
    right.plot(states, corridor.phi @ points.td, color=METHOD_COLOURS["IR"], label="TD(0), IR")
    emphatic = corridor.phi @ points.emphatic_td
    right.plot(states, emphatic, color=colour, label="emphatic TD(0)")
    drawn = corridor.phi @ points.mean
    right.plot(states, drawn, "o", color=colour, markerfacecolor="white", label="Emphatic IR")
    right.set_xticks(states)
    _label(right, "state of the corridor", "value", "at fixed points; points: measured")


def _points(axis: Any, x: Any, y: Any, errors: Any, colour: str, label: str) -> None:
    """Draw points with bars of STANDARD_ERRORS standard errors."""
    bars = STANDARD_ERRORS * np.array(errors)
    axis.errorbar(x, y, bars, fmt="o", color=colour, capsize=4, label=label)


def _label(axis: Any, x: str, y: str, title: str, *, legend: str = "best") -> None:
    """Label an axis, place its legend, and hide the two spines that are not needed."""
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.set_title(title, fontsize="medium")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize="small", loc=legend)
