"""Benchmark of the bare kernels in a compiled loop, called from Numba as in the studies.

An insertion is timed alone. A draw is timed as a step of one insertion and k = 256 draws, random
numbers included, divided by k. The peers are sum trees: a plain one (:mod:`.numba_tree`), and one
whose draws descend in lockstep (the kernel of ``gvf.SumTree``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

import gvf
from benchmarks.measure import (
    LIMITS,
    SIZES,
    Effort,
    Row,
    Run,
    at_most,
    interleave,
    lognormal_ratios,
)
from benchmarks.numba_tree import tree_draw, tree_insert, tree_of
from gvf.sampling import xoshiro
from gvf.sampling.prefix_sums import ring_append, ring_search
from gvf.sampling.sum_tree import tree_search

TITLE = "Inside a compiled loop (k = 256)"
K = 256
_MASK = 4095  # cycles through the new ratios, since a division costs more than an insertion


@njit(nogil=True)
def _ring_steps(ring, place, stream, new, k, count):
    """Insert one of the new ratios and draw k, `count` times; with k = 0 draw nothing."""
    uniforms, slots = np.empty(k), np.empty(k, np.int64)
    checksum = 0
    for i in range(count):
        checksum += ring_append(ring, place, new[i & _MASK])
        if k:
            xoshiro.fill(stream, uniforms)
            ring_search(ring, place, uniforms, slots)
            checksum += slots[0]
    return checksum


def _tree_steps(draw: Callable) -> Callable:
    """Make the same loop for a sum tree with the given kernel for its draws."""

    @njit(nogil=True)
    def steps(nodes, place, stream, new, n, k, count):
        uniforms, slots = np.empty(k), np.empty(k, np.int64)
        slot = place[0]
        checksum = 0
        for i in range(count):
            tree_insert(nodes, slot, new[i & _MASK])
            slot = slot + 1 if slot + 1 < n else 0
            if k:
                xoshiro.fill(stream, uniforms)
                draw(nodes, uniforms, slots)
                checksum += slots[0]
        place[0] = slot
        return checksum

    return steps


_plain_steps, _lockstep_steps = _tree_steps(tree_draw), _tree_steps(tree_search)


def rows(effort: Effort) -> list[Row]:
    """Time insertions and draws at every size."""
    lines = []
    for n in SIZES:
        limits = LIMITS["compiled"]
        for work, k, limit in (
            ("insert", 0, limits["insert"]),
            ("draw", K, limits["draw"][str(n)]),
        ):
            case = f"n = {n:,}, {work}"
            runs = {
                "numba sum tree": _tree_run(_plain_steps, n, k),
                "numba sum tree, lockstep": _tree_run(_lockstep_steps, n, k),
                "gvf": _ring_run(n, k),
            }
            if not k:
                del runs["numba sum tree, lockstep"]  # its insertion is that of the plain tree
            times = {name: t * 1e9 / max(k, 1) for name, t in interleave(runs, effort).items()}
            ours = times.pop("gvf")
            lines += [Row(case, name, time, "ns", time / ours) for name, time in times.items()]
            lines.append(at_most(case, "gvf", ours, "ns", limit))
    return lines


def _ring_run(n: int, k: int) -> Run:
    full = gvf.RatioRing(n, seed=0)
    full.extend(lognormal_ratios(n + n // 3))
    state, new = full.checkpoint(), lognormal_ratios(_MASK + 1, seed=2)
    ring, place, stream = state["rings"][0], state["place"], state["streams"][0]
    return lambda count: _ring_steps(ring, place, stream, new, k, count)


def _tree_run(steps: Callable, n: int, k: int) -> Run:
    nodes, place = tree_of(lognormal_ratios(n)), np.array([n // 3])
    stream, new = xoshiro.streams(1, 0)[0], lognormal_ratios(_MASK + 1, seed=2)
    return lambda count: steps(nodes, place, stream, new, n, k, count)
