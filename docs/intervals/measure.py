"""Measure how often intervals cover the truth, and draw it.

    python docs/intervals/measure.py              coverage.csv in half an hour, then as below
    python docs/intervals/measure.py draw         the picture and the tables, from coverage.csv
    python docs/intervals/measure.py part cart    only cases whose part or world begins so
    python docs/intervals/measure.py cost         the table of times

Each row is 200 simulated logs (seeds 0 to 199) of one kind, 100 where learning takes long, with 99
replicates each. The coverage of a log is the share of its states whose interval has the true value,
and the standard error is over logs, because the states of a log go wrong together. States of which
the log says nothing, with infinite intervals, are left out; ``unknown`` is their share. Logs with
too few events, which :func:`gvf.bootstrap` refuses, are left out; ``refused`` is their share, and
``all`` the coverage with them. ``drift`` is how far predictions moved in the second half of
learning, in half widths, and ``unfinished`` the share of logs in which that is too far.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import matplotlib.pyplot as plt
import numpy as np
from worlds import Array, World, world

import gvf
from gvf.common.colours import SPARE_COLOURS
from gvf.common.plot_style import house_style, render
from gvf.intervals.bootstrap_result import UNFINISHED
from gvf.intervals.events import LEAST_EVENTS

HERE = Path(__file__).parent
LOGS, REPLICATES, LEVELS = 200, 99, (0.95, 0.8)
FEW = 10
"""The number of logs below which a coverage is not shown."""


class Case(NamedTuple):
    """One kind of log and learning."""

    part: str
    world: str
    episodes: int
    method: str = "lstd"
    step_size: float = 0.0
    epochs: int = 0
    block: int = 0
    logs: int = LOGS


CART_EPOCHS = (20, 240), (50, 100), (200, 40)
RATES = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.02, 0.1)

CASES = [
    *(Case("episodes", "chain", count) for count in (10, 20, 50, 200)),
    *(Case("episodes", "rooms", count) for count in (10, 20, 50, 200)),
    *(Case("episodes", "cart", n, "td", 0.4, e) for n, e in ((20, 60), (50, 25), (200, 8))),
    *(Case("finished", "cart", n, "td", 0.4, e, 0, 100) for n, e in CART_EPOCHS),
    *(Case("finished", "cart", n) for n, _ in CART_EPOCHS),
    *(Case("learning", "cart", 50, "td", 0.4, epochs) for epochs in (2, 8)),
    *(Case("learning", "chain", 50, "td", 0.1, epochs) for epochs in (1, 3, 10, 40)),
    *(Case("learning", "chain", 50, "td", 1.0, epochs) for epochs in (1, 3, 10, 40)),
    *(Case("learning", "rooms", 50, "td", 0.5, epochs) for epochs in (1, 3, 10)),
    *(Case("ratios", f"chain{pair}", n) for pair in ("", "-hard") for n in (50, 200, 1000)),
    *(Case("blocks", "rooms", 1, block=block) for block in (1, 5, 20, 50, 125, 250)),
    *(Case("blocks", "hidden", 50, block=block) for block in (1, 2, 5, 10, 0)),
    *(Case("events", f"clicks-{rate}", 10_000) for rate in RATES),
    *(
        Case("events", f"clicks-{rate}", 10_000, "td", step_size, 2, 0, 100)
        for rate in RATES[3:]
        for step_size in (0.1, 0.03, 0.003)
    ),
]


def logs(case: Case, place: World) -> Iterator[gvf.Log]:
    """Yield the logs of a case."""
    if case.world != "rooms" or case.part != "blocks":
        for run in range(case.logs):
            yield place.log(case.episodes, np.random.default_rng([case.episodes, run]))
        return
    streams = world("stream").log(case.logs, np.random.default_rng(0))
    yield from (streams.select([run]) for run in range(case.logs))


def ends(found: gvf.BootstrapResult, states: Array, level: float) -> dict[str, tuple[Array, Array]]:
    """Return the ends of intervals of each kind."""
    point, low, high = found.predict(states, level=level)
    drawn = np.sort(found.replicate(states), axis=1)
    rank = round((REPLICATES + 1) * (1 - level) / 2)
    first, last = drawn[:, rank - 1], drawn[:, REPLICATES - rank]
    return {
        "symmetric": (low, high),
        "percentile": (first, last),
        "reflected": (2 * point - last, 2 * point - first),
    }


def measure(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the rows of a case."""
    place = world(case.world)
    update = gvf.updates.TD(case.step_size or 0.1)
    learner = gvf.Learner(
        place.question, place.features, update, gvf.corrections.IR(), update_every=4, seed=0
    )
    covered: dict[Any, list[float]] = {}
    widths: dict[Any, list[float]] = {}
    points, unknown, drift, events = [], [], [], []
    for run, log in enumerate(logs(case, place)):
        events.append(gvf.intervals.count_events(learner, log))
        with patch.object(gvf.intervals.Events, "few", False):  # to see what refusing them prevents
            found = gvf.bootstrap(
                learner,
                log,
                replicates=REPLICATES,
                epochs=max(case.epochs, 1),
                method=case.method,  # pyright: ignore[reportArgumentType]
                block=case.block or None,
                seed=run,
            )
        known = np.isfinite(found.predict(place.states).high)
        states = place.states[known]
        points.append(np.where(known, found.predict(place.states).point, np.nan))
        unknown.append(1 - known.mean())
        drift.append(found.drift(states).mean() if known.any() else np.nan)
        for level in LEVELS:
            for kind, (low, high) in ends(found, states, level).items():
                widths.setdefault((level, kind), []).append(float(np.median(high - low)))
                for against in ("values", "limits"):
                    right = getattr(place, against)[known]
                    share = float(((low <= right) & (right <= high)).mean())
                    covered.setdefault((level, kind, against), []).append(share)
    error, kept = np.array(points) - place.values, np.array([not one.few for one in events])
    for (level, kind, against), every in covered.items():
        if against == "limits" and place.limits is place.values:
            continue
        shares = np.array(every)[kept & np.isfinite(every)]
        if not len(shares):
            continue
        late = np.array(drift)[kept & np.isfinite(drift)]
        yield {
            **case._asdict(),
            "level": level,
            "kind": kind,
            "against": against,
            "coverage": round(float(np.mean(shares)), 4),
            "stderr": round(float(np.std(shares, ddof=1) / np.sqrt(len(shares))), 4),
            "all": round(float(np.nanmean(np.where(np.isfinite(every), every, 0.0))), 4),
            "unknown": round(float(np.mean(np.array(unknown)[kept])), 4),
            "refused": round(float(1 - kept.mean()), 4),
            "events": f"{np.mean([one.count for one in events]):.4g}",
            "worth": f"{np.mean([one.effective for one in events]):.4g}",
            "drift": f"{np.mean(late):.3g}",
            "unfinished": round(float(np.mean(late > UNFINISHED)), 4),
            "width": f"{np.nanmedian(widths[level, kind]):.4g}",
            "bias": f"{np.sqrt(np.nanmean(np.nanmean(error, axis=0) ** 2)):.4g}",
            "deviation": f"{np.sqrt(np.nanmean(np.nanvar(error, axis=0))):.4g}",
        }


def key(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the case of a row, as text."""
    return tuple(str(row[name]) for name in Case._fields)


def main(wanted: tuple[str, ...]) -> None:
    """Measure all cases, or those whose part or world begins with a word, and keep the others."""
    order = {tuple(map(str, case)): at for at, case in enumerate(CASES)}
    rows: list[dict[str, Any]] = []
    if wanted:
        with (HERE / "coverage.csv").open() as file:
            rows = [row for row in csv.DictReader(file) if key(row) in order]
    for case in CASES:
        if wanted and not (case.part.startswith(wanted) or case.world.startswith(wanted)):
            continue
        measured = list(measure(case))
        rows = [row for row in rows if key(row) != tuple(map(str, case))] + measured
        rows.sort(key=lambda row: order[key(row)])
        for row in measured[:1]:
            print(*case, row["coverage"], "+-", row["stderr"], row["drift"], flush=True)
        with (HERE / "coverage.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def read() -> list[dict[str, Any]]:
    """Return the rows of coverage.csv."""
    with (HERE / "coverage.csv").open() as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    words = ("part", "world", "method", "kind", "against")
    return [{k: v if k in words else float(v) for k, v in row.items()} for row in rows]


def chosen(rows: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    """Return the rows with these values; by default of symmetric intervals, level 0.95, truth."""
    wanted = {"kind": "symmetric", "level": 0.95, "against": "values", **wanted}
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def line(axes: Any, rows: list[dict[str, Any]], x: str, label: str, style: str = "-") -> None:
    """Draw coverage with bars of two standard errors, where it is from enough logs."""
    rows = [row for row in rows if percent([row])]
    colour = SPARE_COLOURS[len(axes.containers)]
    look = {"linestyle": style, "marker": "o", "markersize": 3, "capsize": 2, "linewidth": 1}
    covered, bars = zip(*((row["coverage"], 2 * row["stderr"]) for row in rows), strict=True)
    axes.errorbar([row[x] for row in rows], covered, bars, label=label, color=colour, **look)


def draw() -> None:
    """Draw the picture and write the tables."""
    rows = read()
    tables(rows)
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
    (HERE / "coverage.png").write_bytes(render(figure, "png"))


def percent(rows: list[dict[str, Any]]) -> str:
    """Return a coverage with twice its standard error; nothing if it is from few logs."""
    if not rows or rows[0]["logs"] * (1 - rows[0]["refused"]) < FEW:
        return ""
    return f"{100 * rows[0]['coverage']:.0f} ± {200 * rows[0]['stderr']:.0f}"


def tables(rows: list[dict[str, Any]]) -> None:
    """Write the tables of the page."""
    words = {"chain": "chain, solved", "rooms": "Four Rooms, solved"}
    lines = [
        "| world | episodes | 95 % | 80 % | percentile 95 % | reflected 95 % | unknown states "
        "| refused logs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in chosen(rows, part="episodes"):
        if row["world"] not in words:
            continue
        same = {"part": "episodes", "world": row["world"], "episodes": row["episodes"]}
        others = ({"level": 0.8}, {"kind": "percentile"}, {"kind": "reflected"})
        told = [percent([row]), *(percent(chosen(rows, **same, **other)) for other in others)]
        lines.append(
            f"| {words[row['world']]} | {row['episodes']:.0f} | {' | '.join(told)} "
            f"| {100 * row['unknown']:.0f} % | {100 * row['refused']:.0f} % |"
        )
    (HERE / "episodes.markdown").write_text("\n".join(lines) + "\n")
    lines = [
        "| episodes | learning | what learning tends to | the true value | drift | unfinished |",
        "|---|---|---|---|---|---|",
    ]
    cart = [row for row in chosen(rows, world="cart") if row["part"] != "learning"]
    for row in sorted(
        cart, key=lambda row: (row["episodes"], row["method"] == "lstd", row["epochs"])
    ):
        same = {name: row[name] for name in Case._fields}
        limits = percent(chosen(rows, **same, against="limits"))
        learning, late = "solved", "| |"
        if row["method"] == "td":
            learning = f"{row['epochs']:.0f} epochs"
            late = f"{row['drift']:.2f} | {100 * row['unfinished']:.0f} % |"
        lines.append(f"| {row['episodes']:.0f} | {learning} | {limits} | {percent([row])} | {late}")
    (HERE / "cartpole.markdown").write_text("\n".join(lines) + "\n")
    lines = [
        "| clicks | of 10,000 | worth | refused | solved | solved, with those refused "
        "| step size 0.1 | 0.03 | 0.003 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in chosen(rows, part="events", method="lstd"):
        cells = [f"{100 * float(row['world'].partition('-')[2]):g} %", f"{row['events']:.0f}"]
        cells += [f"{row['worth']:.1f}", f"{100 * row['refused']:.0f} %", percent([row])]
        cells += [f"{100 * row['all']:.0f}"]
        for step_size in (0.1, 0.03, 0.003):
            learned = chosen(rows, world=row["world"], method="td", step_size=step_size)
            cells.append(percent(learned))
        lines.append(f"| {' | '.join(cells)} |")
    (HERE / "events.markdown").write_text("\n".join(lines) + "\n")


def cost() -> None:
    """Write how long replicates take on one processor, next to a learner."""
    words = {"chain": "chain", "rooms": "Four Rooms", "cart": "CartPole, 4 tilings"}
    lines = [
        "| world | rows | updates | one learner | 199 replicates | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for name, title in words.items():
        place, seconds, updates = world(name), [], 0
        log = place.log(200, np.random.default_rng(0))
        for again in range(4):  # the first compiles
            learner = gvf.Learner(
                place.question, place.features, gvf.updates.TD(0.1), gvf.corrections.IR(), seed=0
            )
            before = time.process_time()
            found = gvf.bootstrap(learner, log, epochs=10, workers=1, seed=again)
            between = time.process_time()
            learner.fit(log, epochs=10)
            seconds.append((time.process_time() - between, between - before))
            updates = found.updates
        one, many = np.array(seconds[1:]).min(axis=0)
        lines.append(
            f"| {title} | {len(log):,} | {updates:,} | {1000 * one:.0f} ms | {many:.1f} s "
            f"| {many / one:.0f} |"
        )
    (HERE / "cost.markdown").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["cost"]:
        sys.exit(cost())
    if sys.argv[1:] != ["draw"]:
        main(tuple(sys.argv[2:]))
    draw()
