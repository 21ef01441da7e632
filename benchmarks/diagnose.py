"""Benchmark of a diagnosis of a window of tile-coded transitions, against plain NumPy."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np

import gvf
import gvf_lab.domain
from benchmarks.measure import LIMITS, Effort, Row, Run, at_most, interleave

TITLE = "Diagnosis: 5,184 weights, 64 active, k = 16, 1,000 simulated batches"
SIZES, K, BATCHES = (15_000, 60_000), 16, 1000


def rows(effort: Effort) -> list[Row]:
    """Measure time at the smaller size, and memory, which should grow with the window, at both."""
    small, large = (_learner(n) for n in SIZES)
    contenders: dict[str, Run] = {
        "gvf": _run(small.diagnose),
        "NumPy": _run(partial(_numpy, small)),
    }
    times = {name: 1e3 * time for name, time in interleave(contenders, effort).items()}
    case = f"n = {SIZES[0]:,}"
    per_transition = [_peak(learner) / n for learner, n in zip((small, large), SIZES, strict=True)]
    return [
        Row(case, "NumPy, variances and WIS-Minibatch only", times["NumPy"], "ms",
            times["NumPy"] / times["gvf"]),
        at_most(case, "gvf", times["gvf"], "ms", LIMITS["diagnose"]["time"]),
        Row(case, "gvf, memory", per_transition[0], "bytes/transition"),
        at_most(f"n = {SIZES[1]:,}", "gvf, memory", per_transition[1], "bytes/transition",
                round(1.05 * per_transition[0])),
    ]  # fmt: skip


def _learner(n: int) -> gvf.Learner:
    """Make a learner in the continuous rooms with a full window."""
    domain = gvf_lab.domain.get("continuous-four-rooms")
    learner = gvf.Learner(
        domain.question("favoured-down"),
        domain.features,
        gvf.updates.TD(0.1),
        behaviour=domain.behaviour("uniform"),
        window=n,
        batch_size=K,
        update_every=16,
        seed=0,
    )
    learner.learn(domain.make(), n, seed=0, progress=False)
    return learner


def _run(work) -> Run:
    def run(count: int) -> None:
        for _ in range(count):
            work()

    return run


def _peak(learner: gvf.Learner) -> float:
    """Measure the peak memory of a diagnosis in bytes."""
    tracemalloc.start()
    learner.diagnose()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def _numpy(learner: gvf.Learner) -> list[float]:
    """Compute the variances of IS, BC-IR, IR, V-trace(1.0) and WIS-Minibatch in plain NumPy."""
    columns, weights = learner.window.columns, learner.weights
    rho, x, x_next = learner.buffer.ratios, columns["x"], columns["x_next"]
    n, d, a = len(rho), len(weights), x.shape[1]
    delta = columns["cumulant"] - weights[x].sum(axis=1)
    delta += columns["continuation"] * weights[x_next].sum(axis=1)
    squares = delta**2 * a

    def mean_update(factor):
        return np.bincount(x.ravel(), np.repeat(factor * delta, a), d) / n

    mean, clipped = rho.mean(), np.minimum(rho, 1.0)
    square, off = np.sum(mean_update(rho) ** 2), np.sum(mean_update(clipped) ** 2)
    reweighted = (np.mean(rho**2 * squares) - square) / K
    resampled = (mean * np.mean(rho * squares) - square) / K
    vtrace = (np.mean(clipped**2 * squares) - off) / K
    rng, sums = np.random.default_rng(0), np.zeros((BATCHES, d))
    for row in sums:
        slots = rng.integers(n, size=K)
        w = rho[slots] / max(rho[slots].sum(), 1e-300)
        np.add.at(row, x[slots], (w * delta[slots])[:, None])
    return [reweighted, resampled, resampled / mean**2, vtrace, sums.var(axis=0, ddof=1).sum()]
