"""Draws: which rows of a walk each update sees, drawn once and shared by all methods.

Methods that draw uniformly see the same rows as each other, and so do methods that draw by ratio:
common random numbers, which make comparisons between methods sharp. Update u comes after step
``warm_up + gap (u + 1)`` and sees the n rows before it; with a fixed buffer, all updates see the
same n rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from gvf import xoshiro
from gvf.learner.linear import Array
from gvf.sampling.prefix_sums import new_rings, ring_append, ring_masses, ring_search


@dataclass(frozen=True)
class Draws:
    """Rows and statistics for U updates.

    Attributes:
        uniform: rows drawn uniformly, int64[U, k].
        by_ratio: rows drawn by ratio, int64[U, k]; -1 where the window has no mass.
        first: the window's first row, int64[U].
        last: one past its last row, int64[U].
        mean: its mean ratio, float64[U].
    """

    uniform: Array
    by_ratio: Array
    first: Array
    last: Array
    mean: Array


@njit(cache=True, nogil=True)
def _draw(ring, place, end, size, u, k, streams, uniforms, uniform, by_ratio, mean):
    """Draw for update u from the `size` rows before `end`; the ring holds their ratios."""
    n = place[0]
    for j in range(k):
        uniform[u, j] = end - size + int(xoshiro.uniform(streams[0]) * size)
    old, new = ring_masses(ring, place)
    mean[u] = (old + new) / size
    xoshiro.fill(streams[1], uniforms)
    if old + new > 0.0:
        ring_search(ring, place, uniforms, by_ratio[u])
        # A slot's row: the last one that is the slot's number modulo n.
        head = end % n
        for j in range(k):
            slot = by_ratio[u, j]
            by_ratio[u, j] = end - head + slot - (n if slot >= head else 0)
    else:
        by_ratio[u, :] = -1


@njit(cache=True, nogil=True)
def _sliding(ratio, warm_up, gap, ring, place, streams, uniform, by_ratio, first, last, mean):
    n, k = place[0], uniform.shape[1]
    uniforms = np.empty(k)
    u = 0
    for t in range(1, ratio.size + 1):
        ring_append(ring, place, ratio[t - 1])
        if t > warm_up and (t - warm_up) % gap == 0 and u < uniform.shape[0]:
            size = min(t, n)
            first[u], last[u] = t - size, t
            _draw(ring, place, t, size, u, k, streams, uniforms, uniform, by_ratio, mean)
            u += 1


@njit(cache=True, nogil=True)
def _fixed(ratio, ring, place, streams, uniform, by_ratio, first, last, mean):
    n, k = ratio.size, uniform.shape[1]
    uniforms = np.empty(k)
    for t in range(n):
        ring_append(ring, place, ratio[t])
    for u in range(uniform.shape[0]):
        first[u], last[u] = 0, n
        _draw(ring, place, n, n, u, k, streams, uniforms, uniform, by_ratio, mean)


def draw(
    ratio: Array,
    *,
    window: int,
    batch_size: int,
    seed: np.random.SeedSequence,
    updates: int = 0,
    warm_up: int = 0,
    gap: int = 1,
) -> Draws:
    """Draw for every update; with `updates`, that many from one fixed buffer of all rows."""
    fixed = updates > 0
    count = updates if fixed else max(0, (len(ratio) - warm_up) // gap)
    rings, places = new_rings(1, len(ratio) if fixed else window)
    uniform, by_ratio = (np.empty((count, batch_size), np.int64) for _ in range(2))
    first, last, mean = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count)
    out = (xoshiro.streams(2, seed), uniform, by_ratio, first, last, mean)
    if fixed:
        _fixed(ratio, rings[0], places[0], *out)
    else:
        _sliding(ratio, warm_up, gap, rings[0], places[0], *out)
    return Draws(uniform, by_ratio, first, last, mean)
