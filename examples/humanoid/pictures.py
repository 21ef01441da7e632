"""The pictures of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from examples.humanoid.findings import Findings, own_forces
from examples.humanoid.robot import CHECKED, CONTINUATIONS, DISTANCES, Robot, expected_share
from examples.humanoid.tables import KINDS
from examples.humanoid.work import OTHERS, Folder
from gvf.common.colours import METHOD_COLOURS

SHADES = ("#bbbbbb", "#777777", "#222222")
"""Greys for short to long horizons."""
MARKERS = ("o", "s", "D")
LEVELS = (-0.5, 1.0)
"""The range of variance explained that is drawn."""
HIGHEST = 2.5
"""The largest ratio of errors that is drawn at its place."""
KEYS = ("ratio", "ratio_low", "ratio_high")
CUT = 0.02
"""The largest share of a return that may be cut off."""


def draw_pictures(
    path: Path, folder: Folder, found: Findings, compared: Sequence[Mapping[str, Any]]
) -> None:
    """Draw all pictures into a folder."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context({"axes.spines.top": False, "axes.spines.right": False}):
        drawn = {
            "ladder": _ladder(folder.robot, found),
            "kinds": _kinds(folder.robot, found),
            "corrections": _corrections(folder.robot, compared),
            "changes": _changes(folder.robot, found),
            "time": _time(folder, found),
        }
    for name, figure in drawn.items():
        figure.savefig(path / f"{name}.png", dpi=100)
        plt.close(figure)


def _subplots(rows: int, columns: int, size: tuple[float, float], **more: Any) -> Any:
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=size, layout="constrained", **more)


def _ladder(robot: Robot, found: Findings) -> Any:
    """Draw effective samples, and variance explained, by the expected share of samples."""
    directions = list(robot.directions)[:CHECKED]
    figure, (left, *others) = _subplots(1, 1 + CHECKED, (11, 3.6))
    shares = np.array([expected_share(policy) for policy in robot.targets.values()])
    samples = found.effective[0]  # all of them, for the behaviour itself
    calm = np.array([name.startswith("calm") for name in robot.targets])
    left.plot([1.0, shares.min()], [samples, samples * shares.min()], color="#999999", lw=1)
    for some, marker, label in ((~calm, "o", "pushed"), (calm, "s", "calm")):
        left.plot(shares[some], found.effective[some], marker, color="#222222", ms=5, label=label)
    left.set(
        xscale="log",
        yscale="log",
        xlabel="expected share",
        ylabel=f"effective samples among {samples:,.0f}",
        title=f"{len(shares)} targets",
    )
    left.invert_xaxis()
    left.legend(frameon=False)
    for axis, direction in zip(others, directions, strict=True):
        targets = [0, *(robot.checked.index(f"{direction} {d:g}") for d in DISTANCES)]
        for c, horizon in enumerate(CONTINUATIONS):
            for explained, style in ((found.corrected, "-"), (found.uncorrected, ":")):
                level, error = np.array([explained.median(np.s_[t, :, c]) for t in targets]).T
                axis.errorbar(
                    (0.0, *DISTANCES), level, error, ls=style, marker=MARKERS[c], lw=1.3, ms=4,
                    color=SHADES[c], label=f"γ = {horizon:g}" if style == "-" else None,
                )  # fmt: skip
        axis.plot([], [], ":", color="#777777", label="about the behaviour")
        axis.axhline(0.0, color="#999999", lw=0.8)
        axis.set(xlabel="distance (standard deviations)", title=direction, ylim=LEVELS)
    others[0].set_ylabel("variance explained (median)")
    others[0].legend(frameon=False, fontsize=8, loc="lower left")
    return figure


def _kinds(robot: Robot, found: Findings) -> Any:
    """Draw a map of the variance explained: kinds of sensors against targets and horizons."""
    kinds = list(dict.fromkeys(found.kinds.tolist()))
    figure, axes = _subplots(1, len(CONTINUATIONS), (11, 3.6), sharey=True)
    image = None
    for c, (axis, horizon) in enumerate(zip(axes, CONTINUATIONS, strict=True)):
        level = np.array(
            [
                [np.median(found.corrected.found[t, found.kinds == k, c]) for k in kinds]
                for t in range(len(robot.checked))
            ]
        ).T
        image = axis.imshow(level, vmin=0.0, vmax=1.0, cmap="cividis", aspect="auto")
        for (row, column), value in np.ndenumerate(level):
            text = f"{value:.1f}" if value > -0.05 else "< 0"
            colour = "#ffffff" if value < 0.6 else "#222222"
            axis.text(column, row, text, ha="center", va="center", fontsize=6, color=colour)
        axis.set_xticks(range(len(robot.checked)), robot.checked, rotation=90, fontsize=8)
        axis.set_yticks(range(len(kinds)), [KINDS.get(k, k) for k in kinds])
        axis.set_title(f"γ = {horizon:g}, {robot.step / (1 - horizon):.0f} ms")
    figure.colorbar(image, ax=axes, label="variance explained (median)", shrink=0.9)
    return figure


def _corrections(robot: Robot, compared: Sequence[Mapping[str, Any]]) -> Any:
    """Draw the errors of corrections, in errors of IR, by target."""
    figure, axis = _subplots(1, 1, (10, 4.2))
    names = [name for name in dict.fromkeys(row["correction"] for row in compared) if name != "IR"]
    for n, name in enumerate(names):
        rows = [row for row in compared if row["correction"] == name]
        x = np.arange(len(rows)) + (n - (len(names) - 1) / 2) * 0.13
        y, low, high = (np.array([row[key] for row in rows]) for key in KEYS)
        colour = METHOD_COLOURS.get(name, "#777777")
        label = "answers about the behaviour" if name == "none" else name
        axis.errorbar(x, y, [y - low, high - y], fmt="o", ms=4, lw=1.2, color=colour, label=label)
        for at in np.flatnonzero(y > HIGHEST):
            axis.plot(x[at], 0.97 * HIGHEST, "^", ms=6, color=colour)
            axis.annotate(
                f"{y[at]:.0f}", (x[at], 0.97 * HIGHEST), (5, -3), textcoords="offset points",
                fontsize=8,
            )  # fmt: skip
    axis.axhline(1.0, color=METHOD_COLOURS["IR"], lw=1.2, label="IR")
    axis.set_xticks(range(len(robot.checked)), robot.checked, rotation=30, ha="right")
    ticks = [0.3, 0.5, 0.7, 1, 1.5, 2]
    axis.set(yscale="log", ylabel="error, in errors of IR")
    axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ylim(0.4, HIGHEST)
    axis.minorticks_off()
    axis.legend(frameon=False, ncols=3, fontsize=9, loc="upper left", bbox_to_anchor=(0.0, 1.18))
    return figure


def _changes(robot: Robot, found: Findings) -> Any:
    """Draw the predicted change of each sensor against the true one, for three targets."""
    first, second = list(robot.directions)[:CHECKED]
    near, far = DISTANCES[1], DISTANCES[-1]
    figure, axes = _subplots(1, 3, (10, 3.5))
    c, some = 1, ~own_forces(found.kinds)
    for axis, target in zip(
        axes, (f"{first} {near:g}", f"{second} {near:g}", f"{second} {far:g}"), strict=True
    ):
        t = robot.checked.index(target)
        true, predicted = found.change[t, some, c], found.predicted_change[t, some, c]
        ends = np.array([true.min(), true.max()])
        axis.plot(ends, ends, color="#999999", lw=1)
        axis.plot(true, predicted, "o", ms=3, alpha=0.5, color=METHOD_COLOURS["IR"], mew=0)
        axis.set(title=target, xlabel="true change")
    axes[0].set_ylabel("predicted change")
    return figure


def _time(folder: Folder, found: Findings) -> Any:
    """Draw predictions over a stretch of a stream that was not learned from, with returns."""
    robot, stream, c = folder.robot, folder.stream(OTHERS[-1]), 1
    gamma, count = CONTINUATIONS[c], len(found.predictions)
    sensor = folder.calibration.scaled(stream["next_state"][: 2 * count])
    ends = (stream["terminated"] | stream["truncated"])[: 2 * count]
    shown = [name for name in robot.shown if name in found.names]
    figure, axes = _subplots(len(shown), 1, (10, 1.9 * len(shown)), sharex=True, squeeze=False)
    seconds = np.arange(count) * robot.step / 1000.0
    near = next(t for t, name in enumerate(robot.targets) if name.endswith(f" {DISTANCES[1]:g}"))
    # Returns are known where what an episode's end cuts off hardly counts.
    last = np.append(np.flatnonzero(ends), len(ends) - 1)
    left = last[np.searchsorted(last, np.arange(count))] - np.arange(count)
    known = gamma**left < CUT
    for axis, name in zip(axes[:, 0], shown, strict=True):
        s = found.names.index(name)
        returns, later = np.empty(len(sensor)), 0.0
        for t in range(len(sensor) - 1, -1, -1):
            later = sensor[t, s] + gamma * later * (not ends[t])
            returns[t] = later
        for values, colour, style, label in (
            (np.where(known, returns[:count], np.nan), "#999999", "-", "what followed"),
            (found.predictions[:, 0, s, c], METHOD_COLOURS["IR"], "-", "predicted"),
            (
                found.predictions[:, near, s, c],
                METHOD_COLOURS["IS"],
                "--",
                f"predicted for {list(robot.targets)[near]}",
            ),
        ):
            axis.plot(seconds, values, color=colour, ls=style, lw=1.4, label=label)
        axis.set_title(robot.shown[name], fontsize=10, loc="left")
        for end in np.flatnonzero(ends[:count]):
            axis.axvline(seconds[end], color="#bbbbbb", lw=0.8)
    axes[0, 0].legend(frameon=False, fontsize=8, ncols=3)
    axes[-1, 0].set_xlabel("seconds")
    figure.supylabel(f"discounted sum, γ = {gamma:g} (standard deviations)", fontsize=9)
    return figure
