"""Check of exactness after 1e8 insertions of ratios from 1e-3 to 1e3 (log-uniform), n = 15,000.

The total must be the true sum of the window. Every slot must still be reachable: a search for the
middle of its share of the mass, summed exactly, must find it.
"""

from __future__ import annotations

import math

import numpy as np

import gvf
from benchmarks.measure import Effort, Row
from gvf.sampling.prefix_sums import ring_search

TITLE = "Endurance: 100,000,000 insertions"
N, INSERTIONS, BLOCK = 15_000, 100_000_000, 1_000_000


def rows(effort: Effort) -> list[Row]:
    """Measure the relative error of the total, and count slots that a search cannot find."""
    rng = np.random.default_rng(0)
    ring = gvf.RatioRing(N, seed=0)
    last = np.empty(0)
    for _ in range(INSERTIONS // BLOCK):
        last = 10.0 ** rng.uniform(-3.0, 3.0, BLOCK)
        ring.extend(last)
    last = last[-N:]
    truth = math.fsum(last)
    error = abs(ring.total - truth) / truth
    unreachable = int(np.count_nonzero(_found(ring, last, truth) != _oldest_first()))
    case = f"n = {N:,}"
    return [
        Row(case, "error of total", error, "relative", target="<= 1e-12", met=error <= 1e-12),
        Row(case, "unreachable", unreachable, "slots", target="0", met=unreachable == 0),
    ]


def _oldest_first() -> np.ndarray:
    return (INSERTIONS + np.arange(N)) % N


def _found(ring: gvf.RatioRing, ratios: np.ndarray, total: float) -> np.ndarray:
    """Return the slot that the search finds for the middle of each share, oldest first."""
    before = np.array([math.fsum(ratios[:i]) for i in range(N)])
    middles, slots = (before + ratios / 2.0) / total, np.empty(N, np.int64)
    state = ring.checkpoint()
    ring_search(state["rings"][0], state["place"], middles, slots)
    return slots
