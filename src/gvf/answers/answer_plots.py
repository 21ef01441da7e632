"""The pictures of an answer: ratios, scores, predictions along episodes, and a map of values.

The first functions draw arrays. The others take the arrays from an answer: the scores of the
candidates, predictions along episodes of the log, and predictions for its states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gvf.answers import build_question
from gvf.answers.answer import Answered
from gvf.answers.cells import methods
from gvf.answers.plan import setting_text
from gvf.answers.read_inputs import Material
from gvf.behaviour import Reliability, Support
from gvf.common.arrays import Array, Floats
from gvf.common.colours import SPARE_COLOURS, colours_of
from gvf.common.plot_style import house_style
from gvf.diagnosis import Diagnosis
from gvf.estimate import percent
from gvf.log import Log

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE = SPARE_COLOURS[0]
GREY = "#8a8f98"
WIDTH = 8.6
FEW_STATES = 200
"""The largest number of numbered states that are drawn one by one."""


class Curve(NamedTuple):
    """The scores of a method over its step sizes."""

    name: str
    step_sizes: Sequence[float]
    value: Floats
    """Squared errors above those of the best, [L]; infinite if the lane has diverged."""
    low: Floats
    high: Floats


class Track(NamedTuple):
    """Predictions along an episode."""

    title: str
    predicted: Floats
    low: Floats | None
    high: Floats | None


@house_style()
def ratios(diagnosis: Diagnosis) -> Figure:
    """Draw the ratios, and the variances of the corrections' updates."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 2.7), layout="constrained")
    diagnosis.plot(figure.subplots(1, 2))
    return figure


@house_style()
def cover(support: Support) -> Figure:
    """Draw the target's mass by the behaviour's probability, and where it is lost."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 2.9), layout="constrained")
    support.plot(figure.subplots(1, 2))
    return figure


@house_style()
def reliability(calibration: Reliability) -> Figure:
    """Draw how often actions were taken, by the probability that was estimated."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0, 3.2), layout="constrained")
    calibration.plot(figure.subplots())
    return figure


@house_style()
def scores(
    curves: Sequence[Curve], alone: Sequence[Curve], constant: float, level: float
) -> Figure:
    """Draw squared errors above those of the best against step sizes.

    Args:
        curves: the methods with step sizes.
        alone: the methods without, of one value each.
        constant: the error of the best constant above that of the best.
        level: the level of the intervals.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    axes = figure.subplots()
    colours = colours_of([curve.name for curve in (*curves, *alone)])
    highs = [curve.high[np.isfinite(curve.value)] for curve in (*curves, *alone)]
    every = np.concatenate(highs)
    every = every[np.isfinite(every)]
    # A few step sizes that nearly diverge would press the rest into a line.
    top = max(1.1 * min(float(every.max(initial=0.0)), 4 * float(np.median([*every, 0.0]))), 1e-12)
    top = max(top, 1.1 * constant) if constant < 2 * top else top
    for place, curve in enumerate(curves):
        x = np.array(curve.step_sizes) * 1.04 ** (place - (len(curves) - 1) / 2)
        fine = np.isfinite(curve.value)
        bars = [curve.value - curve.low, curve.high - curve.value]
        axes.errorbar(
            x[fine], curve.value[fine], np.nan_to_num([bar[fine] for bar in bars]),
            color=colours[curve.name], marker="o", markersize=3.5, linewidth=1.2, elinewidth=0.8,
            capsize=2, label=curve.name,
        )  # fmt: skip
        if (lost := x[(curve.value > top) | ~fine]).size:
            axes.plot(
                lost, np.full(len(lost), top), "^", color=colours[curve.name], clip_on=False,
                markersize=5,
            )  # fmt: skip
    for curve in alone:
        axes.axhline(curve.value[0], color=colours[curve.name], linewidth=1.2, label=curve.name)
        axes.axhspan(curve.low[0], curve.high[0], color=colours[curve.name], alpha=0.15, lw=0)
    above = constant > top
    label = f"the best constant{f', at {constant:.3g}' if above else ''}"
    place = np.nan if above else constant
    axes.axhline(place, color=GREY, linestyle="--", linewidth=1, label=label)
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    if curves:
        axes.set_xscale("log")
        axes.set_xticks(sizes := sorted({*curves[0].step_sizes}), [f"{size:g}" for size in sizes])
        axes.minorticks_off()
    axes.set_ylim(top=top)
    axes.set(
        xlabel="step size (log scale)",
        ylabel=f"squared error above the best's\n({percent(level, 'g')} interval)",
    )
    figure.legend(loc="outside upper right", ncols=5)
    return figure


@house_style()
def tracks(episodes: Sequence[Track], name: str, level: float) -> Figure:
    """Draw predictions along episodes, one panel each, with bands from low to high."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 2.5), layout="constrained")
    panels = figure.subplots(1, len(episodes), squeeze=False, sharey=True)[0]
    for axes, track in zip(panels, episodes, strict=True):
        time = np.arange(len(track.predicted))
        if track.low is not None and track.high is not None:
            fine = np.isfinite(track.low) & np.isfinite(track.high)
            low, high = (np.where(fine, ends, np.nan) for ends in (track.low, track.high))
            axes.fill_between(
                time, low, high, color=BLUE, alpha=0.22, lw=0,
                label=f"{percent(level, 'g')} interval",
            )  # fmt: skip
        axes.plot(time, track.predicted, color=BLUE, linewidth=1.3, label="prediction")
        axes.set_title(track.title, loc="left")
        axes.set(xlabel="step of the episode")
    panels[0].set_ylabel(f"expected discounted sum\nof {name}")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2)
    return figure


@house_style()
def numbered(values: Floats, low: Floats | None, high: Floats | None, counts: Array) -> Figure:
    """Draw the values of numbered states, [S], of which some were never seen."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
    axes = figure.subplots()
    seen = np.flatnonzero(counts)
    bars = None
    if low is not None and high is not None:
        bars = np.maximum([values - low, high - values], 0.0)[:, seen]
    axes.errorbar(seen, values[seen], bars, fmt="o", markersize=3, color=BLUE, elinewidth=1)
    axes.set(xlabel="state (states that the log never visits are left out)", ylabel="prediction")
    return figure


@house_style()
def value_map(
    points: Floats, values: Floats, widths: Floats | None, names: Sequence[str], level: float
) -> Figure:
    """Draw mean predictions, and mean widths of intervals, over two dimensions of the states.

    Args:
        points: the two dimensions of the log's states, [n, 2].
        values: the predictions there, [n].
        widths: the widths of the intervals there, [n].
        names: the names of the dimensions.
        level: the level of the intervals.
    """
    from matplotlib.figure import Figure

    columns = 1 if widths is None else 2
    figure = Figure(figsize=(WIDTH if columns == 2 else 5.0, 3.3), layout="constrained")
    panels = figure.subplots(1, columns, squeeze=False, sharey=True)[0]
    maps = [(panels[0], values, "mean prediction", "cividis")]
    if widths is not None:
        maps.append(
            (panels[1], widths, f"mean width of the {percent(level, 'g')} interval", "magma_r")
        )
    for axes, numbers, label, colours in maps:
        _cells(figure, axes, points, numbers, label, colours)
        axes.set_xlabel(names[0])
    panels[0].set_ylabel(names[1])
    return figure


def _cells(
    figure: Figure, axes: Axes, points: Floats, values: Floats, label: str, colours: str
) -> None:
    import matplotlib

    edges = [_edges(points[:, i]) for i in range(2)]
    inside = np.all([(p >= e[0]) & (p <= e[-1]) for p, e in zip(points.T, edges, strict=True)], 0)
    known = inside & np.isfinite(values)
    count, total = (
        np.histogram2d(*points[known].T, bins=edges, weights=weights)[0]
        for weights in (None, values[known])
    )
    with np.errstate(invalid="ignore"):
        mean = np.where(count > 0, total / count, np.nan)
    cmap = matplotlib.colormaps[colours].with_extremes(bad="#e4e4e7")
    image = axes.pcolormesh(*edges, np.ma.masked_invalid(mean.T), cmap=cmap, rasterized=True)
    axes.grid(visible=False)
    figure.colorbar(image, ax=axes, label=label, pad=0.02)


def _edges(values: Floats, bins: int = 28) -> Any:
    """Return the edges of bins: one for each value if there are few, else over the usual range."""
    different = np.unique(values[np.isfinite(values)])
    if len(different) <= bins:
        middle = (different[1:] + different[:-1]) / 2 if len(different) > 1 else np.zeros(0)
        gap = float(np.diff(different).min()) / 2 if len(different) > 1 else 0.5
        return np.concatenate([[different[0] - gap], middle, [different[-1] + gap]])
    low, high = np.quantile(values[np.isfinite(values)], (0.005, 0.995))
    return np.linspace(low, high if high > low else low + 1.0, bins + 1)


EPISODES = (0.5, 0.8, 1.0)
"""The episodes that are shown, by their place in the order of lengths."""
LONGEST_SHOWN = 500
"""The number of steps of an episode that are shown."""
MAP_STATES = 20_000
"""The number of the log's states that make a map."""


def scores_of(material: Material, result: Answered) -> Figure | None:
    """Draw the scores of all candidates; None if none of them has a step size."""
    judgement = result.judgement
    by_name: dict[str, list[Any]] = {name: [] for name in methods(material)}
    for score in judgement.scores:
        if score.standing != "reference":
            by_name[score.learner].append(score)
    curves, alone = [], []
    for name, of_method in by_name.items():
        ordered = sorted(of_method, key=lambda score: -1 if score.lane is None else score.lane)
        sizes = [] if ordered[0].lane is None else material.plan.step_sizes
        columns = np.array([list(score.difference) for score in ordered], float).T
        with np.errstate(invalid="ignore"):
            diverged = np.array([score.standing == "diverged" for score in ordered])
            columns[0] = np.where(diverged, np.inf, columns[0])
        (curves if len(sizes) else alone).append(Curve(name, sizes, *columns))
    if not curves:
        return None
    constant = judgement.constant.difference.value
    return scores(curves, alone, constant, judgement.level)


def tracks_of(material: Material, result: Answered) -> Figure:
    """Draw predictions along a few episodes."""
    log = material.log
    order = np.argsort(log.lengths, kind="stable")
    chosen = list(dict.fromkeys(int(order[round(q * (len(order) - 1))]) for q in EPISODES))
    episode_tracks = []
    for at in chosen:
        episode = log.episodes[at]
        predicted, low, high = result.predict(episode.state[:LONGEST_SHOWN])
        end = "ended by the task" if episode.terminated[-1] else "cut"
        title = f"{_name(log, at)}: {len(episode):,} steps, {end}"
        known = result.intervals is not None
        episode_tracks.append(
            Track(title, predicted, low if known else None, high if known else None)
        )
    name = setting_text(material.plan.questions[_place(material, result)].cumulant)
    return tracks(episode_tracks, name, material.plan.level)


def _name(log: Log, at: int) -> str:
    """Return the name of an episode: the log's own, with its place if others have the same."""
    ids = log.ids
    if not ids:
        return f"episode {log.numbers[at]}"
    same = np.all([column == column[at] for column in ids.values()], axis=0)
    name = ", ".join(f"{name} {column[at]}" for name, column in ids.items())
    return name if same.sum() == 1 else f"{name} from {log.place(int(log.lengths[:at].sum()))}"


def _place(material: Material, result: Answered) -> int:
    return next(i for i, asked in enumerate(material.questions) if asked is result.question)


def unknown(material: Material, result: Answered) -> str:
    """Return the share of the log's states with an infinite interval, as text; empty if none."""
    if result.intervals is None:
        return ""
    sample = material.facts.sample
    _, low, high = result.predict(sample[:: max(1, len(sample) // MAP_STATES)])
    share = float(np.isinf(high - low).mean())
    return percent(share) if share else ""


class Map(NamedTuple):
    """A picture of values over states."""

    figure: Figure
    over: str
    """The dimensions that it shows, in words."""
    others: str
    """The other dimensions, over which it averages."""


def map_of(material: Material, result: Answered) -> Map | None:
    """Draw the values over two dimensions, or over numbered states; None if states have neither."""
    facts, level = material.facts, material.plan.level
    sample = facts.sample[:: max(1, len(facts.sample) // MAP_STATES)]
    known = result.intervals is not None
    if facts.states is not None:
        if facts.states > FEW_STATES:
            return None
        counts = np.bincount(facts.sample, minlength=facts.states)
        seen = np.flatnonzero(counts)
        values, low, high = (np.full(facts.states, np.nan) for _ in range(3))
        values[seen], low[seen], high[seen] = result.predict(seen.astype(facts.sample.dtype))
        picture = numbered(values, low if known else None, high if known else None, counts)
        return Map(picture, "the states", "")
    if sample.ndim != 2 or sample.shape[1] < 2 or sample.dtype.names:
        return None
    values, low, high = result.predict(sample)
    pair = _dimensions(material, sample, values)
    points = sample[:, pair].astype(np.float64)
    names = [facts.names[i] for i in pair]
    picture = value_map(points, values, high - low if known else None, names, level)
    others = [name for i, name in enumerate(facts.names) if i not in pair]
    return Map(picture, " and ".join(names), " and ".join(others))


def _dimensions(material: Material, sample: Array, values: Floats) -> list[int]:
    """Return the two dimensions to show: those of the plan, or those that explain most."""
    chosen = build_question.dimensions(material.plan, material.facts)
    if len(chosen) < 2:
        shares = [_explained(column, values) for column in sample.T]
        order = [int(i) for i in np.argsort(shares)[::-1] if int(i) not in chosen]
        chosen = [*chosen, *order][:2]
    return chosen


def _explained(column: Array, values: Floats, bins: int = 20) -> float:
    """Return the share of the variance of values that bins of a column explain."""
    edges = np.unique(np.nanquantile(column, np.linspace(0, 1, bins + 1)[1:-1]))
    place = np.searchsorted(edges, column)
    count = np.bincount(place, minlength=len(edges) + 1)
    total = np.bincount(place, weights=values, minlength=len(edges) + 1)
    mean = np.divide(total, count, out=np.zeros(len(count)), where=count > 0)
    return float(np.var(mean[place]))
