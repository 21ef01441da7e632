"""Tables and pictures of the page about judging, from the CSV files of its sweep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.judge.random_problems import KINDS
from experiments.judge.sweep import SIZES
from experiments.tables import column, markdown, read_rows
from gvf.common.arrays import Bools, Floats
from gvf.common.colours import SPARE_COLOURS
from gvf.common.plot_style import house_style

CRITERIA = {
    "doubly-robust": "returns, doubly robust",
    "weighted": "returns, weighted",
    "per-decision": "returns, per decision",
    "ratio-td": "TD error, weighted by ratio",
    "td": "TD error",
}
"""The criteria by their names in the file, with their names in the picture."""
NEAR = 1.1
"""The ratio to the lowest true error up to which a candidate counts as best."""


def write(folder: Path) -> None:
    """Write the tables and pictures of all CSV files that a folder has."""
    if (folder / "intervals.csv").exists():
        text = interval_table(read_rows(folder / "intervals.csv"))
        (folder / "intervals.markdown").write_text(text, encoding="utf-8")
    if (folder / "logs.csv").exists():
        rows = read_rows(folder / "logs.csv")
        (folder / "tables.markdown").write_text(tables(rows), encoding="utf-8")
        draw_logs(rows, folder / "result.png")
    if (folder / "example.csv").exists():
        draw_example(read_rows(folder / "example.csv"), folder / "example.png")


def bootstrap(statistic: Callable[[Any], Floats], count: int) -> tuple[float, float]:
    """Return the 95 % interval of a statistic of positions of logs [B, count]."""
    at = np.random.default_rng(0).integers(count, size=(10_000, count))
    low, high = np.quantile(statistic(at), [0.025, 0.975])
    return float(low), float(high)


def share(near: Bools) -> str:
    """Return the share of logs with its interval, in percent."""
    low, high = bootstrap(lambda at: near[at].mean(axis=1), len(near))
    return f"{100 * near.mean():.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def times(ours: Bools, theirs: Bools) -> str:
    """Return the ratio of two shares, paired by log, with its interval."""
    low, high = bootstrap(
        lambda at: ours[at].mean(axis=1) / np.maximum(theirs[at].mean(axis=1), 1e-9), len(ours)
    )
    return f"{ours.mean() / max(theirs.mean(), 1e-9):.2f} ({low:.2f} to {high:.2f})"


def interval_table(rows: list[dict[str, str]]) -> str:
    """Return the table of intervals by the number of episodes, in Markdown."""
    shares = column(rows, "covered") / column(rows, "intervals")
    cells = [f"{100 * share:.0f} %" for share in shares]
    head = ["held-out episodes", *(row["episodes"] for row in rows)]
    return markdown([head, ["intervals that contain the truth", *cells]])


def tables(rows: list[dict[str, str]]) -> str:
    """Return the tables of the page in Markdown."""
    by_kind = {kind: [row for row in rows if row["world"] == kind] for kind in KINDS}
    worlds = {"all": rows} | {kind: some for kind, some in by_kind.items() if some}
    lines = [["selected by", *(f"{name}, {len(some)} logs" for name, some in worlds.items())]]
    for kind, label in CRITERIA.items():
        cells = [share(column(some, f"{kind}_ratio") <= NEAR) for some in worlds.values()]
        lines.append([label, *cells])
    best = max(SIZES, key=lambda s: float((column(rows, f"always_{s}_ratio") <= NEAR).mean()))
    cells = [share(column(some, f"always_{best}_ratio") <= NEAR) for some in worlds.values()]
    selected = [*lines, [f"nothing: always IR with {best:g}", *cells]]
    lines = [["doubly robust, times as often as", "TD error", "weighted TD error"]]
    for label, suffix, near in (
        ("learners that were judged", "ratio", NEAR),
        ("the same, root of the error", "ratio", NEAR**2),
        ("a learner of the whole log", "ratio_whole", NEAR),
    ):
        ours, *others = (
            column(rows, f"{kind}_{suffix}") <= near for kind in ("doubly-robust", "td", "ratio-td")
        )
        lines.append([label, *(times(ours, other) for other in others)])
    against = lines
    lines = [["logs", "number", "selected within 10 %", "intervals that contain the truth"]]
    near, chance = column(rows, "doubly-robust_ratio") <= NEAR, column(rows, "chance")
    doubt, size = column(rows, "doubts") > 0, column(rows, "effective_sample_size")
    k_hat, episodes = column(rows, "k_hat"), column(rows, "episodes")
    beyond = column(rows, "beyond")
    for label, some in (
        ("all", episodes > 0),
        ("without doubts", ~doubt),
        ("with doubts", doubt),
        ("k-hat above 0.7", k_hat > 0.7),
        ("effective sample size below 10", size < 10),
        ("more than 15 % of the values beyond cut episodes", beyond > 0.15),
        ("fewer than 50 episodes", episodes < 50),
        ("at least 200 episodes", episodes >= 200),
        ("chance of the winner below 40 %", chance < 0.4),
        ("chance of the winner above 60 %", chance > 0.6),
    ):
        if some.any():
            group = [row for row, inside in zip(rows, some, strict=True) if inside]
            covered = column(group, "covered").sum() / max(column(group, "pairs").sum(), 1)
            cells = [label, str(some.sum()), f"{100 * near[some].mean():.0f} %"]
            cells.append(f"{100 * covered:.0f} %")
            lines.append(cells)
    return "\n".join(map(markdown, (selected, against, lines)))


COLOURS = dict(zip(CRITERIA, ("#d55e00", "#e69f00", "#cc79a7", "#56b4e9", "#0072b2"), strict=True))


def draw_logs(rows: list[dict[str, str]], file: Path) -> None:
    """Draw the shares and the ratios of errors."""
    colours, markers = COLOURS, dict(zip(CRITERIA, "os^Dv", strict=True))
    with house_style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
        groups = {f"all\n{len(rows)} logs": rows}
        for kind in KINDS:
            some = [row for row in rows if row["world"] == kind]
            if some:
                groups[f"{kind}\n{len(some)} logs"] = some
        for at, (kind, label) in enumerate(CRITERIA.items()):
            for place, some in enumerate(groups.values()):
                near = column(some, f"{kind}_ratio") <= NEAR
                low, high = bootstrap(lambda i, near=near: near[i].mean(axis=1), len(near))
                x = place + 0.12 * (at - 2)
                left.plot([x, x], [100 * low, 100 * high], color=colours[kind], linewidth=1.5)
                left.plot(
                    x, 100 * near.mean(), markers[kind], color=colours[kind], markersize=5,
                    label=label if place == 0 else None,
                )  # fmt: skip
            ratios = np.sort(column(rows, f"{kind}_ratio"))
            shares = 100 * np.arange(1, len(ratios) + 1) / len(ratios)
            right.step(ratios, shares, where="post", color=colours[kind], label=label)
        left.set_xticks(range(len(groups)), groups)
        left.set_ylim(0, 100)
        left.set_ylabel("logs (%) with a selection within\n10 % of the lowest true error")
        left.grid(axis="x", visible=False)
        right.set_xscale("log")
        right.set_xlim(1, 1e3)
        right.set_ylim(0, 100)
        right.axvline(NEAR, color=SPARE_COLOURS[-1], linewidth=0.8, linestyle=":")
        right.set_xlabel("true squared error of the selection / lowest of all candidates")
        right.set_ylabel("logs (%) at or below")
        right.legend(loc="lower right", title="step size and correction selected by")
        figure.savefig(file, dpi=150, metadata={"Software": None})
        plt.close(figure)


def draw_example(steps: list[dict[str, str]], file: Path) -> None:
    """Draw the true error, the scores and the TD errors of one log against the step size."""
    with house_style():
        _draw_example(steps, file)


def _draw_example(steps: list[dict[str, str]], file: Path) -> None:
    colours = COLOURS
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.9), layout="constrained")
    x = column(steps, "step_size")
    panels = (
        ("true", "true squared error", SPARE_COLOURS[-1]),
        ("score", "score, doubly robust", colours["doubly-robust"]),
        ("td", "held-out squared TD error", colours["td"]),
    )
    true = column(steps, "true")
    for axis, (name, label, colour) in zip(axes, panels, strict=True):
        y = column(steps, name)
        if name == "score":
            low, high = y.min() + column(steps, "low"), y.min() + column(steps, "high")
        else:
            spread = 1.96 * column(steps, "true_stderr") if name == "true" else 0.0 * y
            low, high = y - spread, y + spread
        axis.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0)
        axis.plot(x, y, "o-", color=colour, markersize=3.5, linewidth=1.2)
        best = int(np.argmin(y))
        axis.plot(x[best], y[best], "*", color=colour, markersize=13)
        axis.set_xscale("log")
        axis.set_ylim(0, None)
        axis.set_xlabel("step size")
        axis.set_title(f"{label}\nlowest at {x[best]:g}, where the true error is {true[best]:.2g}")
    axes[0].set_ylabel("mean square (units of return squared)")
    figure.savefig(file, dpi=150, metadata={"Software": None})
    plt.close(figure)
