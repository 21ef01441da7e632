"""Measure how often intervals cover the truth, and draw it.

    python docs/intervals/measure.py          coverage.csv and coverage.png, in about 8 minutes
    python docs/intervals/measure.py draw     only the picture, from coverage.csv

Each row is 200 simulated logs (seeds 0 to 199) of one kind, with 99 replicates each. The coverage
of a log is the share of its states whose interval has the true value, and the standard error is
over logs, because the states of a log go wrong together. States of which the log says nothing, with
infinite intervals, are left out; ``unknown`` is their share.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from worlds import Array, World, world

import gvf

HERE = Path(__file__).parent
LOGS, REPLICATES, LEVELS = 200, 99, (0.95, 0.8)


class Case(NamedTuple):
    """One kind of log and learning."""

    part: str
    world: str
    episodes: int
    method: str = "lstd"
    step_size: float = 0.0
    epochs: int = 0
    block: int = 0


CASES = [
    *(Case("episodes", "chain", count) for count in (5, 10, 20, 50, 200)),
    *(Case("episodes", "rooms", count) for count in (10, 20, 50, 200)),
    *(Case("episodes", "cart", n, "td", 0.4, e) for n, e in ((20, 60), (50, 25), (200, 8))),
    *(Case("learning", "chain", 50, "td", 0.1, epochs) for epochs in (1, 3, 10, 40)),
    *(Case("learning", "chain", 50, "td", 1.0, epochs) for epochs in (1, 3, 10, 40)),
    *(Case("learning", "rooms", 50, "td", 0.5, epochs) for epochs in (1, 3, 10)),
    *(Case("ratios", f"chain{pair}", n) for pair in ("", "-hard") for n in (50, 200, 1000)),
    *(Case("ratios", "chain-hardest", n) for n in (200, 1000)),
    *(Case("blocks", "rooms", 1, block=block) for block in (1, 5, 20, 50, 125, 250)),
    *(Case("blocks", "cart", 50, "td", 0.4, 25, block) for block in (1, 5)),
]


def logs(case: Case, place: World) -> Iterator[gvf.Log]:
    """Yield the logs of a case."""
    if case.world != "rooms" or case.part != "blocks":
        for run in range(LOGS):
            yield place.log(case.episodes, np.random.default_rng([case.episodes, run]))
        return
    streams = world("stream").log(LOGS, np.random.default_rng(0))
    yield from (streams.select([run]) for run in range(LOGS))


def ends(found: gvf.Intervals, states: Array, level: float) -> dict[str, tuple[Array, Array]]:
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
    update = gvf.TD(case.step_size or 0.1)
    learner = gvf.Learner(place.question, place.features, update, gvf.IR(), every=4, seed=0)
    covered: dict[Any, list[float]] = {}
    widths: dict[Any, list[float]] = {}
    points, unknown = [], []
    for run, log in enumerate(logs(case, place)):
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
        for level in LEVELS:
            for kind, (low, high) in ends(found, states, level).items():
                widths.setdefault((level, kind), []).append(float(np.median(high - low)))
                for against in ("values", "limits"):
                    right = getattr(place, against)[known]
                    share = float(((low <= right) & (right <= high)).mean())
                    covered.setdefault((level, kind, against), []).append(share)
    error = np.array(points) - place.values
    for (level, kind, against), shares in covered.items():
        if against == "limits" and place.limits is place.values:
            continue
        yield {
            **case._asdict(),
            "level": level,
            "kind": kind,
            "against": against,
            "logs": len(shares),
            "coverage": round(float(np.mean(shares)), 4),
            "stderr": round(float(np.std(shares, ddof=1) / np.sqrt(len(shares))), 4),
            "unknown": round(float(np.mean(unknown)), 4),
            "width": f"{np.median(widths[level, kind]):.4g}",
            "bias": f"{np.sqrt(np.nanmean(np.nanmean(error, axis=0) ** 2)):.4g}",
            "deviation": f"{np.sqrt(np.nanmean(np.nanvar(error, axis=0))):.4g}",
        }


def main() -> None:
    """Measure all cases."""
    rows = []
    for case in CASES:
        rows += measure(case)
        first = rows[-6 if case.world != "cart" else -12]
        print(*case, first["coverage"], "+-", first["stderr"], flush=True)
    with (HERE / "coverage.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def draw() -> None:
    """Draw the picture."""


if __name__ == "__main__":
    if sys.argv[1:] != ["draw"]:
        main()
    draw()
