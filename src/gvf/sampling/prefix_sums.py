"""A ring of prefix sums: the kernels behind exact sampling by ratio.

Slot i is drawn with probability ``rho_i / sum_j rho_j``. Ratios never change after insertion and
the oldest leaves first, so no tree is needed: slot i keeps the sum of the ratios of its lap around
the ring, up to and including its own. A window is then at most two segments of growing sums, the
*old* one (written in the last lap) and the *new* one:

    slot        0 ... head-1 | head ... n-1          head: the slot of the next ratio
    sums        new lap      | old lap, minus the base: the sum of the ratios that have left

To draw, take x uniform in the window's mass and find the **first sum greater than x**. A ratio of
exactly 0 leaves its sum equal to its neighbour's and is never drawn. An insertion writes one
number. Each lap starts again from 0 with a compensated sum, so errors do not accumulate.

A ring is a row of the array that :func:`new_rings` makes: a short header, then the ratios, the sums
(one more, with a 0 in front) and the coarse sums at the ends of blocks. The capacity, the head and
the number of filled slots are kept apart, in ``place``, int64[3], which all rings of a window share
with the window's columns. Compiled loops with a single ring call ``ring_append`` and
``ring_search``; those with several call ``ring_write`` for each, then ``advance``. The other
kernels serve the class :class:`gvf.RatioRing` (:mod:`gvf.sampling.ratio_ring`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gvf.common.arrays import Array
from gvf.sampling import xoshiro
from gvf.sampling.random_streams import next_double

LARGEST_RATIO = 1e290
"""The largest ratio accepted; beyond it a sum over a window could overflow."""

CAPACITY, HEAD, SIZE = range(3)  # the entries of `place`
# The header of a ring: the lap's sum, its compensation, the base, the number of positive ratios.
HIGH, LOW, BASE, POSITIVE, HEADER = range(5)
_BLOCK = 64  # slots under one coarse sum: 8 cache lines
_LOCKSTEP = 32  # searches that advance together, so that their cache misses overlap
_REBASE = 2.0**-6  # the old lap is summed anew when less than this share of it is in the window
_INDEX = (1 << 40) - 1  # a mask that tells the compiler that an index is not negative


def new_place(capacity: int) -> Array:
    """Make the place of an empty window: capacity, head and filled slots, int64[3]."""
    return np.array([capacity, 0, 0], np.int64)


def new_rings(count: int, capacity: int) -> Array:
    """Make empty rings, a row each: float64[count, numbers of a ring]."""
    blocks = -(-capacity // _BLOCK)
    return np.zeros((count, HEADER + capacity + (capacity + 1) + (blocks + 1)))


@njit(cache=True, nogil=True, forceinline=True)
def ring_append(ring, place, ratio):
    """Insert a valid ratio in place of the oldest one and return its slot."""
    n, slot, size = place[CAPACITY] & _INDEX, place[HEAD] & _INDEX, place[SIZE]
    ring_write(ring, n, slot, size == n, ratio)
    advance(place)
    return slot


@njit(cache=True, nogil=True, forceinline=True)
def advance(place):
    """Move the head of a window by one slot."""
    n, after = place[CAPACITY], place[HEAD] + 1
    place[HEAD] = after * (after < n)
    place[SIZE] = min(place[SIZE] + 1, n)


@njit(cache=True, nogil=True, forceinline=True)
def ring_write(ring, n, slot, full, ratio):
    """Write a valid ratio into the slot at the head, without moving the head.

    ``full`` is True if the slot holds the oldest ratio, which is then replaced.
    """
    # No branches: with them Numba counts references to the arrays at every call, and an
    # insertion takes several times as long.
    ratios, sums, coarse = HEADER, HEADER + n, HEADER + 2 * n + 1
    lap_goes_on = slot > 0
    high, low = lap_goes_on * ring[HIGH], lap_goes_on * ring[LOW]
    base = full * ring[sums + slot + 1]
    comes = 1.0 if ratio > 0.0 else 0.0
    leaves = 1.0 if full & (ring[ratios + slot] > 0.0) else 0.0
    ring[POSITIVE] += comes - leaves
    # Two-sum: `error` is exactly the rounding error of high + ratio.
    total = high + ratio
    part = total - high
    error = (high - (total - part)) + (ratio - part)
    high, low = total, low + error
    ring[ratios + slot] = ratio
    after = slot + 1
    ring[sums + after] = high + low
    # No search reads the first coarse sum, so it takes the sums at which no block ends.
    block_ends = (after % _BLOCK == 0) | (after == n)
    ring[coarse + block_ends * ((after + _BLOCK - 1) // _BLOCK)] = high + low
    end = ring[sums + n]
    # When little of the old lap is left, subtracting the base would cancel most digits.
    stale = end - base < _REBASE * end
    ring[HIGH], ring[LOW] = high, low
    ring[BASE] = base * ((not stale) & (after < n))
    _rebase(ring, n, after, n if stale else after)


@njit(cache=True, nogil=True, forceinline=True)
def _rebase(ring, n, start, stop):
    """Sum the old lap anew from slot `start`, where it now begins."""
    ratios, sums, coarse = HEADER, HEADER + n, HEADER + 2 * n + 1
    high, low = 0.0, 0.0
    for slot in range(start, stop):
        ratio = ring[ratios + slot]
        total = high + ratio
        part = total - high
        low += (high - (total - part)) + (ratio - part)
        high = total
        ring[sums + slot + 1] = high + low
        block_ends = ((slot + 1) % _BLOCK == 0) | (slot + 1 == n)
        ring[coarse + block_ends * (slot // _BLOCK + 1)] = high + low


@njit(cache=True, nogil=True, forceinline=True)
def ring_masses(ring, place):
    """Return the masses of the old and the new segment; their sum is the window's mass."""
    n = place[CAPACITY] & _INDEX
    old = (place[SIZE] == n) * (ring[HEADER + 2 * n] - ring[BASE])
    return old, ring[HEADER + n + (place[HEAD] & _INDEX)]


@njit(cache=True, nogil=True)
def ring_search(ring, place, uniforms, slots):
    """Turn numbers uniform in [0, 1) into slots drawn by ratio; the ring must have mass.

    Many binary searches advance in lockstep and without branches, first over the coarse sums,
    then inside a block. Each halves a range of `length` candidates from `low`. The last candidate
    is known to be greater than the target and is not read. The uniforms are overwritten.
    """
    n, head = place[CAPACITY] & _INDEX, place[HEAD] & _INDEX
    sums, coarse = HEADER + n, HEADER + 2 * n + 1
    old, new = ring_masses(ring, place)
    total, base = old + new, ring[BASE]
    # u * total may round up to the end of a segment; the limits keep it in the last positive slot.
    old_limit, new_limit = np.nextafter(ring[sums + n], 0.0), np.nextafter(new, 0.0)
    head_block, blocks = head // _BLOCK, (n + _BLOCK - 1) // _BLOCK
    scratch = np.empty((2, _LOCKSTEP), np.int64)
    first, length = scratch[0], scratch[1]
    for start in range(0, uniforms.size, _LOCKSTEP):
        count = min(_LOCKSTEP, uniforms.size - start)
        target, low = uniforms[start : start + count], slots[start : start + count]
        for j in range(count):
            x = target[j] * total
            if x < old or new <= 0.0:
                target[j] = min(base + x, old_limit)
                first[j], low[j], length[j] = head, head_block, blocks - head_block
            else:
                target[j] = min(x - old, new_limit)
                first[j], low[j], length[j] = 0, 0, head_block + 1
        span = max(blocks - head_block, head_block + 1)
        while span > 1:
            span -= span >> 1
            for j in range(count):
                half = length[j] >> 1
                low[j] += half * (ring[coarse + low[j] + half] <= target[j])
                length[j] -= half
        for j in range(count):
            begin = low[j] * _BLOCK
            end = min(begin + _BLOCK, head if first[j] < head else n)
            low[j] = max(begin, first[j])
            length[j] = end - low[j]
        span = _BLOCK
        while span > 1:
            span >>= 1
            for j in range(count):
                half = length[j] >> 1
                low[j] += half * (ring[sums + low[j] + half] <= target[j])
                length[j] -= half


@njit(cache=True, nogil=True)
def append(ring, place, ratio):
    """Check and insert one ratio; return its slot, or -1 if the ratio is invalid."""
    if not 0.0 <= ratio <= LARGEST_RATIO:
        return -1
    return ring_append(ring, place, ratio)


@njit(cache=True, nogil=True)
def extend(rings, place, ratios):
    """Insert ratios [m, G] and return -1; if one is invalid, insert none and return its index."""
    for i in range(ratios.shape[0]):
        for g in range(ratios.shape[1]):
            if not 0.0 <= ratios[i, g] <= LARGEST_RATIO:
                return i * ratios.shape[1] + g
    write_rows(rings, place, ratios.T)
    for _ in range(len(ratios)):
        advance(place)
    return -1


@njit(cache=True, nogil=True)
def write_rows(rings, place, columns):
    """Write columns [G, m] into rings ring by ring, from the head on; the head stays."""
    n, size = place[CAPACITY] & _INDEX, place[SIZE]
    for g in range(len(rings)):
        slot = place[HEAD] & _INDEX
        for i in range(columns.shape[1]):
            ring_write(rings[g], n, slot, size + i >= n, columns[g, i])
            slot = (slot + 1) * (slot + 1 < n)


@njit(cache=True, nogil=True)
def append_and_sample(ring, place, stream, ratio, slots):
    """Insert and draw; return the slot, -1 for an invalid ratio, or -2 if no mass would be left."""
    if not 0.0 <= ratio <= LARGEST_RATIO:
        return -1
    full = place[SIZE] == place[CAPACITY]
    leaves = full and ring[HEADER + place[HEAD]] > 0.0
    if ratio == 0.0 and ring[POSITIVE] - leaves == 0.0:
        return -2
    slot = ring_append(ring, place, ratio)
    uniforms = np.empty(slots.size)
    xoshiro.fill(stream, uniforms)
    ring_search(ring, place, uniforms, slots)
    return slot


@njit(cache=True)
def sample_with(ring, place, function, state, stratified, slots):
    """Draw slots [k] with the numbers of a NumPy Generator."""
    k = slots.size
    uniforms = np.empty(k)
    for j in range(k):
        u = next_double(function, state)
        uniforms[j] = (j + u) / k if stratified else u
    ring_search(ring, place, uniforms, slots)


@njit(cache=True, nogil=True)
def _look_ahead(rings, place, g, sink):
    """Read the numbers that the search in ring g reads first, to bring them into the cache."""
    if g < len(rings):
        n = place[CAPACITY]
        total = rings[g, BASE] + rings[g, HEADER + n + place[HEAD]]
        for i in range(HEADER + 2 * n, rings.shape[1], 8):  # a cache line is 8 numbers
            total += rings[g, i]
        sink[0] = total


@njit(cache=True, nogil=True)
def sample(rings, place, streams, stratified, uniforms, slots):
    """Draw slots [G, k] for rings, each with its own stream."""
    k = slots.shape[1]
    sink = np.empty(1)
    for g in range(len(rings)):
        _look_ahead(rings, place, g + 1, sink)
        for j in range(k):
            u = xoshiro.uniform(streams[g])
            uniforms[g, j] = (j + u) / k if stratified else u
        ring_search(rings[g], place, uniforms[g], slots[g])


@njit(cache=True, nogil=True)
def search(rings, place, uniforms, slots):
    """Turn uniforms [G, k] into slots [G, k], ring by ring."""
    sink = np.empty(1)
    for g in range(len(rings)):
        _look_ahead(rings, place, g + 1, sink)
        ring_search(rings[g], place, uniforms[g], slots[g])


@njit(cache=True, nogil=True)
def effective_sizes(ratios, sizes):
    """Write the effective sample sizes [G] of ratios [G, len] into `sizes`."""
    for g in range(len(ratios)):
        largest = 0.0
        for i in range(ratios.shape[1]):
            largest = max(largest, ratios[g, i])
        first, second = 0.0, 0.0
        if largest > 0.0:
            for i in range(ratios.shape[1]):
                share = ratios[g, i] / largest  # so that squares neither overflow nor underflow
                first += share
                second += share * share
        sizes[g] = first * first / second if second > 0.0 else 0.0
