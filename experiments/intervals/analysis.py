"""The picture and the tables of the page about intervals, from coverage.csv."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from experiments.intervals.sweep import LEVELS, Case
from experiments.tables import read_rows, write_table
from gvf.common.colours import SPARE_COLOURS
from gvf.common.plot_style import house_style, render
from gvf.intervals.bootstrap_result import UNFINISHED
from gvf.intervals.events import LEAST_EVENTS

FEW = 10
"""The number of logs below which a coverage is not shown."""


def write(folder: Path) -> None:
    """Write the picture and the tables."""
    rows = numbers(folder / "coverage.csv")
    write_tables(rows, folder)
    draw(rows, folder / "coverage.png")


def numbers(file: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, with numbers in the place of text."""
    words = ("part", "world", "method", "kind", "against")
    return [{k: v if k in words else float(v) for k, v in row.items()} for row in read_rows(file)]


def chosen(rows: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    """Return the rows with these values; by default of symmetric intervals, level 0.95, truth."""
    wanted = {"kind": "symmetric", "level": 0.95, "against": "values", **wanted}
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def line(axes: Any, rows: list[dict[str, Any]], x: str, label: str, style: str = "-") -> None:
    """Draw coverage with bars of two standard errors, where it is from enough logs."""
    rows = [row for row in rows if percent([row])]
    if not rows:
        return
    colour = SPARE_COLOURS[len(axes.containers)]
    look = {"linestyle": style, "marker": "o", "markersize": 3, "capsize": 2, "linewidth": 1}
    covered, bars = zip(*((row["coverage"], 2 * row["stderr"]) for row in rows), strict=True)
    axes.errorbar([row[x] for row in rows], covered, bars, label=label, color=colour, **look)


def draw(rows: list[dict[str, Any]], file: Path) -> None:
    """Draw coverage in eight panels."""
    with house_style():
        figure, panels = plt.subplots(2, 4, figsize=(13, 6), sharey=True, layout="constrained")
        names = {"chain": "chain, solved", "rooms": "Four Rooms, solved"}
        for axes, (name, title) in zip(panels[0], names.items(), strict=False):
            for kind in ("symmetric", "reflected", "percentile"):
                line(axes, chosen(rows, part="episodes", world=name, kind=kind), "episodes", kind)
            part = chosen(rows, part="episodes", world=name, level=0.8)
            line(axes, part, "episodes", "symmetric, 80 %", ":")
            axes.set(title=title, xscale="log", xlabel="episodes")
        axes = panels[0][2]
        ways = (
            ("episodes", "td", "6500 to 8500 updates"),
            ("finished", "td", "26,000 to 43,000 updates"),
            ("finished", "lstd", "solved"),
        )
        for part, method, label in ways:
            some = chosen(rows, part=part, world="cart", method=method, against="limits")
            line(axes, some, "episodes", label)
        axes.set(title="CartPole: what learning tends to", xscale="log", xlabel="episodes")
        axes = panels[0][3]
        for step_size, label in (
            (0.0, "solved"),
            *((a, f"step size {a:g}") for a in (0.1, 0.03, 0.003)),
        ):
            part = chosen(rows, part="events", step_size=step_size)
            line(axes, part, "worth", label)
        solved = chosen(rows, part="events", method="lstd")
        every = [row["worth"] for row in solved], [row["all"] for row in solved]
        axes.plot(*every, ":", color=SPARE_COLOURS[0], linewidth=1, label="solved, refused too")
        axes.axvline(LEAST_EVENTS, color="#222222", linewidth=0.6)
        axes.set(title="rare clicks in 10,000 rows", xscale="log", xlabel="events, worth")
        axes = panels[1][0]
        for name, step_size in (("chain", 0.1), ("chain", 1.0), ("rooms", 0.5)):
            part = chosen(rows, part="learning", world=name, step_size=step_size)
            line(axes, part, "epochs", f"{name}, step size {step_size:g}")
        axes.set(title="50 episodes, learned", xscale="log", xlabel="epochs")
        axes = panels[1][1]
        for name, ratio in (("chain", 1.8), ("chain-hard", 9)):
            part = chosen(rows, part="ratios", world=name)
            line(axes, part, "episodes", f"ratios up to {ratio}")
        axes.set(title="chain, heavy ratios, solved", xscale="log", xlabel="episodes")
        axes = panels[1][2]
        hidden = chosen(rows, part="blocks", world="hidden")
        line(axes, chosen(rows, part="blocks", world="rooms"), "block", "Four Rooms, 2500 steps")
        line(axes, [row for row in hidden if row["block"]], "block", "chain whose episodes differ")
        whole = {"linestyle": "--", "linewidth": 1, "label": "the same, whole episodes"}
        axes.axhline(hidden[-1]["coverage"], color=SPARE_COLOURS[1], **whole)
        axes.set(title="blocks, solved", xscale="log", xlabel="steps in a block")
        axes = panels[1][3]
        for name, against in (("chain", "values"), ("rooms", "values"), ("cart", "limits")):
            part = [r for r in chosen(rows, world=name, against=against) if r["method"] == "td"]
            points = sorted((row["drift"], row["coverage"]) for row in part)
            colour = SPARE_COLOURS[len(axes.lines)]
            axes.plot(*zip(*points, strict=True), "o", label=name, color=colour, markersize=3)
        axes.axvline(UNFINISHED, color="#222222", linewidth=0.6)
        axes.set(title="all that learned", xscale="log", xlabel="drift, in half widths")
        for axes in panels.flat:
            for level in LEVELS:
                axes.axhline(level, color="#222222", linewidth=0.6, linestyle=(0, (2, 2)))
            left = axes is panels[1][1] or axes is panels[1][3]
            axes.legend(loc="lower left" if left else "lower right")
            if axes not in panels[:, 3]:
                told = sorted({x for bars in axes.containers for x in bars[0].get_xdata()})
                axes.set_xticks(told, [f"{x:g}" for x in told])
                axes.minorticks_off()
            axes.set_ylim(0, 1.02)
        for axes in panels[:, 0]:
            axes.set_ylabel("coverage")
    file.write_bytes(render(figure, "png"))


def percent(rows: list[dict[str, Any]]) -> str:
    """Return a coverage with twice its standard error; nothing if it is from few logs."""
    if not rows or rows[0]["logs"] * (1 - rows[0]["refused"]) < FEW:
        return ""
    return f"{100 * rows[0]['coverage']:.0f} ± {200 * rows[0]['stderr']:.0f}"


def write_tables(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write the tables of the page."""
    words = {"chain": "chain, solved", "rooms": "Four Rooms, solved"}
    kinds = ["95 %", "80 %", "percentile 95 %", "reflected 95 %"]
    lines = [["world", "episodes", *kinds, "unknown states", "refused logs"]]
    for row in chosen(rows, part="episodes"):
        if row["world"] not in words:
            continue
        same = {"part": "episodes", "world": row["world"], "episodes": row["episodes"]}
        others = ({"level": 0.8}, {"kind": "percentile"}, {"kind": "reflected"})
        covered = [percent([row]), *(percent(chosen(rows, **same, **other)) for other in others)]
        shares = [f"{100 * row[name]:.0f} %" for name in ("unknown", "refused")]
        lines.append([words[row["world"]], f"{row['episodes']:.0f}", *covered, *shares])
    write_table(folder / "episodes.markdown", lines)
    against = ["what learning tends to", "the true value"]
    lines = [["episodes", "learning", *against, "drift", "unfinished"]]
    cart = [row for row in chosen(rows, world="cart") if row["part"] != "learning"]
    for row in sorted(
        cart, key=lambda row: (row["episodes"], row["method"] == "lstd", row["epochs"])
    ):
        same = {name: row[name] for name in Case._fields}
        limits = percent(chosen(rows, **same, against="limits"))
        learning, late = "solved", ["", ""]
        if row["method"] == "td":
            learning = f"{row['epochs']:.0f} epochs"
            late = [f"{row['drift']:.2f}", f"{100 * row['unfinished']:.0f} %"]
        lines.append([f"{row['episodes']:.0f}", learning, limits, percent([row]), *late])
    write_table(folder / "cartpole.markdown", lines)
    ways = ["solved", "solved, with those refused", "step size 0.1", "0.03", "0.003"]
    lines = [["clicks", "of 10,000", "worth", "refused", *ways]]
    for row in chosen(rows, part="events", method="lstd"):
        cells = [f"{100 * float(row['world'].partition('-')[2]):g} %", f"{row['events']:.0f}"]
        cells += [f"{row['worth']:.1f}", f"{100 * row['refused']:.0f} %", percent([row])]
        cells += [f"{100 * row['all']:.0f}"]
        for step_size in (0.1, 0.03, 0.003):
            learned = chosen(rows, world=row["world"], method="td", step_size=step_size)
            cells.append(percent(learned))
        lines.append(cells)
    write_table(folder / "events.markdown", lines)
