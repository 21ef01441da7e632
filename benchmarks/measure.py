"""Timing of contenders against each other, and the lines of the table.

Contenders take turns (A, B, C, A, B, C, ...), so that a slow moment of the machine hits all of
them. Each is judged by its fastest turn, because noise only adds time.
"""

from __future__ import annotations

import gc
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

SIZES = (15_000, 1_000_000)
DRAWS = (16, 256)

_FILE = Path(__file__).with_name("limits.toml")
LIMITS: Mapping[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
"""The limits that the benchmarks are held to, by module."""

Run = Callable[[int], object]
"""A function that does the work so many times."""


@dataclass(frozen=True)
class Effort:
    """The effort of a measurement: rounds of turns, seconds a turn, and whether it may be slow."""

    rounds: int = 25
    seconds: float = 0.03
    slow: bool = False


QUICK = Effort(rounds=5, seconds=0.02)


@dataclass(frozen=True)
class Row:
    """One line of the table.

    ``ratio`` is the time divided by that of the best of ours beside it. ``reached`` and ``target``
    are the measured number and its target. ``met`` is None if there is no target.
    """

    case: str
    name: str
    value: float | None
    unit: str
    ratio: float | None = None
    reached: str = ""
    target: str = ""
    met: bool | None = None
    note: str = ""


def at_most(case: str, name: str, value: float, unit: str, limit: float) -> Row:
    """Make a line whose value should be at most the limit."""
    return Row(case, name, value, unit, target=f"<= {limit:g} {unit}", met=value <= limit)


def interleave(contenders: Mapping[str, Run], effort: Effort) -> dict[str, float]:
    """Measure the seconds per unit of work of each contender in its fastest turn."""
    counts = {name: _calibrate(run, effort.seconds) for name, run in contenders.items()}
    best = dict.fromkeys(contenders, math.inf)
    for _ in range(effort.rounds):
        for name, run in contenders.items():
            best[name] = min(best[name], _turn(run, counts[name]) / counts[name])
    return best


def _turn(run: Run, count: int) -> float:
    gc.disable()  # a collection of one contender's garbage would slow the next
    try:
        start = perf_counter()
        run(count)
        return perf_counter() - start
    finally:
        gc.enable()


def _calibrate(run: Run, seconds: float) -> int:
    """Find the amount of work that fills a turn; the first call is left out, as it may compile."""
    run(1)
    count = 1
    while (taken := _turn(run, count)) < seconds / 4:
        count *= 4
    return max(1, round(count * seconds / taken))


def lognormal_ratios(count: int, seed: int = 0) -> np.ndarray:
    """Draw positive ratios with mean 1, float64[count]; not all peers accept zeros."""
    return np.random.default_rng(seed).lognormal(-0.5, 1.0, count)


def size_and_draws(n: int, k: int) -> str:
    """Return the name of a case."""
    return f"n = {n:,}, k = {k}"
