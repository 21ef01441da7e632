"""Measure how often intervals cover the truth.

    python -m experiments intervals          coverage.csv in half an hour
    python -m experiments intervals cart     only cases whose part or world begins so
    python -m experiments intervals cost     the table of times

Each row is 200 simulated logs (seeds 0 to 199) of one kind, 100 where learning takes long, with 99
replicates each. The coverage of a log is the share of its states whose interval has the true value,
and the standard error is over logs, because the states of a log go wrong together. States of which
the log says nothing, with infinite intervals, are left out; ``unknown`` is their share. Logs with
too few events, which :func:`gvf.bootstrap` refuses, are left out; ``refused`` is their share, and
``all`` the coverage with them. ``drift`` is how far predictions moved in the second half of
learning, in half widths, and ``unfinished`` the share of logs in which that is too far.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import gvf
from experiments.intervals.interval_worlds import Array, World, world
from experiments.tables import read_rows, write_rows, write_table
from gvf.intervals.bootstrap_result import UNFINISHED

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
    replicates = drawn.shape[1]
    rank = max(round((replicates + 1) * (1 - level) / 2), 1)
    first, last = drawn[:, rank - 1], drawn[:, replicates - rank]
    return {
        "symmetric": (low, high),
        "percentile": (first, last),
        "reflected": (2 * point - last, 2 * point - first),
    }


def rows_of(case: Case, replicates: int = REPLICATES) -> Iterator[dict[str, str]]:
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
                replicates=replicates,
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
            **{name: str(value) for name, value in case._asdict().items()},
            "level": str(level),
            "kind": kind,
            "against": against,
            "coverage": str(round(float(np.mean(shares)), 4)),
            "stderr": str(round(float(np.std(shares, ddof=1) / np.sqrt(len(shares))), 4)),
            "all": str(round(float(np.nanmean(np.where(np.isfinite(every), every, 0.0))), 4)),
            "unknown": str(round(float(np.mean(np.array(unknown)[kept])), 4)),
            "refused": str(round(float(1 - kept.mean()), 4)),
            "events": f"{np.mean([one.count for one in events]):.4g}",
            "worth": f"{np.mean([one.effective for one in events]):.4g}",
            "drift": f"{np.mean(late):.3g}",
            "unfinished": str(round(float(np.mean(late > UNFINISHED)), 4)),
            "width": f"{np.nanmedian(widths[level, kind]):.4g}",
            "bias": f"{np.sqrt(np.nanmean(np.nanmean(error, axis=0) ** 2)):.4g}",
            "deviation": f"{np.sqrt(np.nanmean(np.nanvar(error, axis=0))):.4g}",
        }


def measure(folder: Path, parts: Sequence[str] = (), quick: bool = False) -> None:
    """Measure all cases, or those whose part or world begins with a word, and keep the others.

    The quick measure has one case of each part and world, with ten logs and 19 replicates.
    """
    if tuple(parts) == ("cost",):
        write_table(folder / "cost.markdown", costs(10 if quick else 200))
        return
    file, cases = folder / "coverage.csv", CASES
    if quick:
        of_kind = {(case.part, case.world[:5], case.method): case for case in CASES[::-1]}
        cases = [case._replace(logs=10, epochs=min(case.epochs, 2)) for case in of_kind.values()]
    order = {tuple(map(str, case)): at for at, case in enumerate(cases)}
    wanted = tuple(part for part in parts if part != "cost")
    rows = [row for row in read_rows(file) if key(row) in order] if wanted else []
    for case in cases:
        if wanted and not (case.part.startswith(wanted) or case.world.startswith(wanted)):
            continue
        measured = list(rows_of(case, 19 if quick else REPLICATES))
        rows = [row for row in rows if key(row) != tuple(map(str, case))] + measured
        rows.sort(key=lambda row: order[key(row)])
        for row in measured[:1]:
            print(*case, row["coverage"], "+-", row["stderr"], row["drift"], flush=True)
        write_rows(file, rows)


def key(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the case of a row, as text."""
    return tuple(str(row[name]) for name in Case._fields)


def costs(episodes: int) -> list[list[str]]:
    """Measure how long replicates take on one processor, next to a learner."""
    words = {"chain": "chain", "rooms": "Four Rooms", "cart": "CartPole, 4 tilings"}
    lines = [["world", "rows", "updates", "one learner", "199 replicates", "ratio"]]
    for name, title in words.items():
        place, seconds, updates = world(name), [], 0
        log = place.log(episodes, np.random.default_rng(0))
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
        times = [f"{1000 * one:.0f} ms", f"{many:.1f} s", f"{many / one:.0f}"]
        lines.append([title, f"{len(log):,}", f"{updates:,}", *times])
    return lines
