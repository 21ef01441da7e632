"""Benchmark of many questions: one window, 10,000 questions, 16 draws for each in one call."""

from __future__ import annotations

import gvf
from benchmarks.measure import LIMITS, Effort, Row, Run, interleave, lognormal_ratios

TITLE = "Many questions: 10,000 questions, n = 10,000, k = 16"
QUESTIONS, N, K = 10_000, 10_000, 16
TARGET = LIMITS["questions"]["rate"]


def rows(effort: Effort) -> list[Row]:
    """Measure million draws a second on one thread and on two; this needs about 2 GB of memory."""
    ring = gvf.RatioRing(N, questions=QUESTIONS, seed=0)
    block = lognormal_ratios(500 * QUESTIONS).reshape(500, QUESTIONS)
    for _ in range(N // 500 + 4):  # until the ring is full and in its second lap
        ring.extend(block)
    times = interleave({str(threads): _run(ring, threads) for threads in (1, 2)}, effort)
    rates = {threads: QUESTIONS * K / time / 1e6 for threads, time in times.items()}
    return [
        Row("threads = 1", "gvf", rates["1"], "M draws/s"),
        Row(
            "threads = 2",
            "gvf",
            rates["2"],
            "M draws/s",
            target=f">= {TARGET:g} M draws/s",
            met=rates["2"] >= TARGET,
        ),
    ]


def _run(ring: gvf.RatioRing, threads: int) -> Run:
    def run(count: int) -> None:
        for _ in range(count):
            ring.sample(K, threads=threads)

    return run
