"""Benchmark of whole transitions: insert one, then draw k by ratio, with a full buffer."""

from __future__ import annotations

import math
from itertools import cycle, islice

from benchmarks.measure import (
    DRAWS,
    LIMITS,
    SIZES,
    Effort,
    Row,
    Run,
    interleave,
    lognormal_ratios,
    size_and_draws,
)
from benchmarks.peers import PACKAGED, Buffer, columns, ours, row

TITLE = "Whole transitions: insert one, draw k"


def rows(effort: Effort) -> list[Row]:
    """Time every buffer at every size and batch."""
    lines = []
    for n in SIZES:
        data, ratios = columns(n), lognormal_ratios(n)
        packaged, missing = [], []
        for peer in PACKAGED:
            try:
                packaged.append(peer(data, ratios))
            except ImportError as error:
                missing.append(Row(f"n = {n:,}", peer.__name__, None, "us", note=str(error)))
        own = ours(data, ratios)
        for k in DRAWS:
            case = size_and_draws(n, k)
            target = LIMITS["transitions"][case]
            times = interleave({b.name: _run(b, k) for b in [*packaged, own]}, effort)
            best = times.pop(own.name)
            for peer in packaged:
                time = times[peer.name]
                lines.append(Row(case, peer.name, time * 1e6, "us", time / best, note=peer.note))
            ratio = min(times.values(), default=math.nan) / best
            lines.append(
                Row(
                    case,
                    own.name,
                    best * 1e6,
                    "us",
                    1.0,
                    reached=f"{ratio:.1f} x the fastest packaged",
                    target=f">= {target:g} x",
                    met=ratio >= target,
                )
            )
        lines += missing
    return lines


def _run(buffer: Buffer, k: int) -> Run:
    fresh, ratios = columns(512), lognormal_ratios(512, seed=2)
    records = [buffer.record(row(fresh, i), float(ratios[i])) for i in range(512)]
    turn, step = cycle(records), buffer.step

    def run(count: int) -> None:
        for record in islice(turn, count):
            step(record, k)

    return run
