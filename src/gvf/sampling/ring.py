"""Exact sampling of slots in proportion to their ratios: a ring of prefix sums.

Slot i is drawn with probability ``rho_i / sum_j rho_j``. Ratios never change after insertion and
the oldest leaves first, so no tree is needed: slot i keeps the sum of the ratios of its lap around
the ring, up to and including its own. A window is then at most two segments of growing sums, the
*old* one (written in the last lap) and the *new* one:

    slot        0 ... head-1 | head ... n-1          head: where the next ratio goes
    sums        new lap      | old lap, minus the base: the sum of what has left

To draw, take x uniform in the window's mass and find the **first sum greater than x**: a ratio of
exactly 0 leaves its sum equal to its neighbour's and is never drawn. An insertion writes one
number. Each lap starts again from 0 with a compensated sum, so errors do not accumulate.

To the kernels (``ring_*``, for compiled loops) a ring is two arrays, rows of what
:func:`new_rings` makes: ``ring`` float64, a short header, then the ratios, the sums (one more, a 0
in front) and the coarse sums at the ends of blocks; and ``place`` int64[4], the counts. The
neighbour, :mod:`gvf.sampling.tree`, is for weights that change.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from operator import index
from typing import Any

import numpy as np
from numba import boolean, float64, int64, njit, uint64
from numpy.random import Generator

from gvf import xoshiro
from gvf.entry import direct_entry
from gvf.sampling.generator import addresses, next_double

Array = np.ndarray[Any, np.dtype[Any]]
Slots = np.ndarray[Any, np.dtype[np.int64]]
_INT64 = np.dtype(np.int64)  # an instance, since looking one up takes longer than a draw

LARGEST_RATIO = 1e290
"""Beyond this a sum over a window could overflow."""

_CAPACITY, _HEAD, _SIZE, _POSITIVE = range(4)  # in `place`; positive: how many ratios are above 0
_HIGH, _LOW, _BASE, _HEADER = range(4)  # in `ring`: the lap's sum, its compensation, the base
_BLOCK = 64  # slots under one coarse sum: 8 cache lines
_LOCKSTEP = 32  # searches that advance together, so that their cache misses overlap
_REBASE = 2.0**-6  # sum the old lap anew when less than this share of it is still in the window
_INDEX = (1 << 40) - 1  # a mask that tells the compiler that an index is not negative


def new_rings(count: int, capacity: int) -> tuple[Array, Array]:
    """Empty rings, a row each: float64[count, numbers of a ring], and places int64[count, 4]."""
    blocks = -(-capacity // _BLOCK)
    rings = np.zeros((count, _HEADER + capacity + (capacity + 1) + (blocks + 1)))
    places = np.zeros((count, 4), np.int64)
    places[:, _CAPACITY] = capacity
    return rings, places


@njit(cache=True, nogil=True, forceinline=True)
def ring_append(ring, place, ratio):
    """Insert a ratio, known to be good, in place of the oldest one; returns its slot."""
    # Without branches: with them numba counts references to the arrays at every call, and an
    # insertion takes several times as long.
    n, slot, size = place[_CAPACITY] & _INDEX, place[_HEAD] & _INDEX, place[_SIZE]
    full = size == n
    ratios, sums, coarse = _HEADER, _HEADER + n, _HEADER + 2 * n + 1
    lap_goes_on = slot > 0
    high, low = lap_goes_on * ring[_HIGH], lap_goes_on * ring[_LOW]
    base = full * ring[sums + slot + 1]
    place[_POSITIVE] += (ratio > 0.0) - (full & (ring[ratios + slot] > 0.0))
    # Two-sum: `error` is exactly what rounding takes from high + ratio.
    total = high + ratio
    part = total - high
    error = (high - (total - part)) + (ratio - part)
    high, low = total, low + error
    ring[ratios + slot] = ratio
    after = slot + 1
    ring[sums + after] = high + low
    # The first coarse sum counts in no search: it takes the sum where no block ends.
    block_ends = (after % _BLOCK == 0) | (after == n)
    ring[coarse + block_ends * ((after + _BLOCK - 1) // _BLOCK)] = high + low
    end = ring[sums + n]
    # Little is left of the old lap: what has left would cost the rest its digits.
    stale = end - base < _REBASE * end
    ring[_HIGH], ring[_LOW] = high, low
    ring[_BASE] = base * ((not stale) & (after < n))
    place[_HEAD] = after * (after < n)
    place[_SIZE] = min(size + 1, n)
    _rebase(ring, n, after, n if stale else after)
    return slot


@njit(cache=True, nogil=True, forceinline=True)
def _rebase(ring, n, start, stop):
    """Sum the old lap anew from slot `start`, where it now begins."""
    ratios, sums, coarse = _HEADER, _HEADER + n, _HEADER + 2 * n + 1
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
    """The mass of the old and of the new segment; their sum is the window's."""
    n = place[_CAPACITY] & _INDEX
    old = (place[_SIZE] == n) * (ring[_HEADER + 2 * n] - ring[_BASE])
    return old, ring[_HEADER + n + (place[_HEAD] & _INDEX)]


@njit(cache=True, nogil=True)
def ring_search(ring, place, uniforms, slots):
    """Turn numbers uniform in [0, 1) into slots drawn by ratio; the ring must have mass.

    Many binary searches advance in lockstep and without branches, first over the coarse sums,
    then inside a block. Each halves a range of `length` candidates from `low`, the last of which is
    known to be greater than the target and is not looked at. The uniforms are overwritten.
    """
    n, head = place[_CAPACITY] & _INDEX, place[_HEAD] & _INDEX
    sums, coarse = _HEADER + n, _HEADER + 2 * n + 1
    old, new = ring_masses(ring, place)
    total, base = old + new, ring[_BASE]
    # u * total may round up to the end of a segment: stay below it, in its last positive slot.
    old_limit, new_limit = np.nextafter(ring[sums + n], 0.0), np.nextafter(new, 0.0)
    head_block, blocks = head // _BLOCK, (n + _BLOCK - 1) // _BLOCK
    scratch = np.empty((2, _LOCKSTEP), np.int64)
    first, length = scratch[0], scratch[1]
    for start in range(0, uniforms.size, _LOCKSTEP):
        lanes = min(_LOCKSTEP, uniforms.size - start)
        target, low = uniforms[start : start + lanes], slots[start : start + lanes]
        for j in range(lanes):
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
            for j in range(lanes):
                half = length[j] >> 1
                low[j] += half * (ring[coarse + low[j] + half] <= target[j])
                length[j] -= half
        for j in range(lanes):
            begin = low[j] * _BLOCK
            end = min(begin + _BLOCK, head if first[j] < head else n)
            low[j] = max(begin, first[j])
            length[j] = end - low[j]
        span = _BLOCK
        while span > 1:
            span >>= 1
            for j in range(lanes):
                half = length[j] >> 1
                low[j] += half * (ring[sums + low[j] + half] <= target[j])
                length[j] -= half


@njit(cache=True, nogil=True)
def _append(ring, place, ratio):
    """Check and insert one ratio; its slot, or -1 when the ratio is bad."""
    if not 0.0 <= ratio <= LARGEST_RATIO:
        return -1
    return ring_append(ring, place, ratio)


@njit(cache=True, nogil=True)
def _extend(rings, places, ratios):
    """Insert ratios [m, G] ring by ring; -1, or where one is bad, and then nothing is done."""
    for i in range(ratios.shape[0]):
        for g in range(ratios.shape[1]):
            if not 0.0 <= ratios[i, g] <= LARGEST_RATIO:
                return i * ratios.shape[1] + g
    for g in range(len(rings)):
        for i in range(len(ratios)):
            ring_append(rings[g], places[g], ratios[i, g])
    return -1


@njit(cache=True, nogil=True)
def _append_and_sample(ring, place, stream, ratio, slots):
    """Insert and draw in one call; the slot, -1 for a bad ratio, -2 when no mass would be left."""
    if not 0.0 <= ratio <= LARGEST_RATIO:
        return -1
    full = place[_SIZE] == place[_CAPACITY]
    leaves = full and ring[_HEADER + place[_HEAD]] > 0.0
    if ratio == 0.0 and place[_POSITIVE] - leaves == 0:
        return -2
    slot = ring_append(ring, place, ratio)
    uniforms = np.empty(slots.size)
    xoshiro.fill(stream, uniforms)
    ring_search(ring, place, uniforms, slots)
    return slot


@njit(cache=True)
def _sample_with(ring, place, function, state, stratified, slots):
    """Draw slots [k] with the numbers of a NumPy Generator."""
    k = slots.size
    uniforms = np.empty(k)
    for j in range(k):
        u = next_double(function, state)
        uniforms[j] = (j + u) / k if stratified else u
    ring_search(ring, place, uniforms, slots)


@njit(cache=True, nogil=True)
def _look_ahead(rings, places, g, sink):
    """Read what the search in ring g will look at first, so that it is in the cache by then."""
    if g < len(rings):
        n = places[g, _CAPACITY]
        total = rings[g, _BASE] + rings[g, _HEADER + n + places[g, _HEAD]]
        for i in range(_HEADER + 2 * n, rings.shape[1], 8):  # a cache line is 8 numbers
            total += rings[g, i]
        sink[0] = total


@njit(cache=True, nogil=True)
def _sample(rings, places, streams, stratified, uniforms, slots):
    """Draw slots [G, k] for rings, each with its own stream."""
    k = slots.shape[1]
    sink = np.empty(1)
    for g in range(len(rings)):
        _look_ahead(rings, places, g + 1, sink)
        for j in range(k):
            u = xoshiro.uniform(streams[g])
            uniforms[g, j] = (j + u) / k if stratified else u
        ring_search(rings[g], places[g], uniforms[g], slots[g])


@njit(cache=True, nogil=True)
def _search(rings, places, uniforms, slots):
    sink = np.empty(1)
    for g in range(len(rings)):
        _look_ahead(rings, places, g + 1, sink)
        ring_search(rings[g], places[g], uniforms[g], slots[g])


@njit(cache=True, nogil=True)
def _effective(ratios, sizes):
    """Effective sample size [G] of ratios [G, len]."""
    for g in range(len(ratios)):
        largest = 0.0
        for i in range(ratios.shape[1]):
            largest = max(largest, ratios[g, i])
        first, second = 0.0, 0.0
        if largest > 0.0:
            for i in range(ratios.shape[1]):
                share = ratios[g, i] / largest  # so that squares neither overflow nor vanish
                first += share
                second += share * share
        sizes[g] = first * first / second if second > 0.0 else 0.0


class RatioRing:
    """The ratios of the n most recent transitions, to draw slots from in proportion to them.

    Exact: slot i comes with probability ``ratio_i / total``, independently for each draw, and a
    ratio of 0 is never drawn. Ratios may lie within a factor of 1e12 of each other; a far larger
    one passing through costs the others nothing once it has left. A call that fails leaves the ring
    as it was. Like NumPy's own containers, a ring is for one thread at a time.

    Args:
        capacity: how many ratios to keep, n.
        questions: with G questions, every transition brings G ratios, and draws are made for each
            question: ratios are [m, G], draws [G, k], and the properties arrays [G].
        seed: of the ring's own streams (one a question), which ``sample`` uses when it gets no
            ``rng``; anything that :class:`numpy.random.SeedSequence` takes, or one.

    Example:
        >>> import gvf, numpy as np
        >>> ring = gvf.RatioRing(4, seed=0)
        >>> ring.extend([1.0, 0.0, 3.0])
        array([0, 1, 2])
        >>> np.bincount(ring.sample(10_000, rng=np.random.default_rng(0)), minlength=4)
        array([2524,    0, 7476,    0])
        >>> slot, draws = ring.append_and_sample(4.0, k=5)
        >>> slot, len(draws), ring.total, ring.mean
        (3, 5, 8.0, 2.0)
        >>> ring
        RatioRing(4 of 4, mean 2, max 4, effective sample size 2.46)
    """

    def __init__(self, capacity: int, *, questions: int | None = None, seed: Any = None) -> None:
        if index(capacity) < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        if questions is not None and index(questions) < 1:
            raise ValueError(f"questions must be None or at least 1, got {questions}")
        self.capacity, self.questions = int(capacity), questions
        self._rings, self._places = new_rings(questions or 1, self.capacity)
        self._streams = xoshiro.streams(len(self._rings), seed)
        self._ring, self._place, self._stream = self._rings[0], self._places[0], self._streams[0]

    def append(self, ratio: Any) -> int:
        """Insert one transition's ratio (with questions: [G]) and return its slot."""
        if self.questions is not None:
            return int(self.extend(np.asarray(ratio, np.float64)[None])[0])
        slot = self._append(self._ring, self._place, float(ratio))
        if slot < 0:
            raise ValueError(bad_weight(ratio))
        return slot

    def extend(self, ratios: Any) -> Slots:
        """Insert m transitions' ratios [m] ([m, G]), oldest first; returns their slots int64[m].

        The same, bit for bit, as appending one by one; m may be larger than the capacity.
        """
        ratios = np.asarray(ratios, np.float64)
        one = self.questions is None
        if ratios.ndim != 2 - one or (not one and ratios.shape[1] != self.questions):
            shape = "[m]" if one else f"[m, {self.questions}]"
            raise ValueError(f"ratios must have shape {shape}, got {ratios.shape}")
        slots = (self._place[_HEAD] + np.arange(len(ratios))) % self.capacity
        table = np.ascontiguousarray(ratios).reshape(-1, len(self._rings))
        bad = _extend(self._rings, self._places, table)
        if bad >= 0:
            position = np.unravel_index(bad, ratios.shape)
            raise ValueError(bad_weight(ratios[position], ", ".join(map(str, position))))
        return slots

    def sample(
        self,
        k: int,
        *,
        rng: Generator | None = None,
        stratified: bool = False,
        threads: int = 1,
    ) -> Slots:
        """Draw k slots with replacement, each with probability ratio / total.

        Args:
            k: how many draws (a question).
            rng: where randomness comes from; None: the ring's own streams.
            stratified: draw j falls into the j-th of k equal parts of the mass (still by ratio on
                average over the batch, but no longer independent).
            threads: how many to use. The draws do not depend on it.

        Returns:
            int64[k], or [G, k] with questions.
        """
        if index(k) < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if index(threads) < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        if rng is not None and not isinstance(rng, Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {rng!r}")
        if self.questions is not None:
            return self._sample_questions(k, rng, stratified, threads)
        if self._place.item(_POSITIVE) == 0:
            raise ValueError(self._no_mass())
        slots = np.empty(k, _INT64)
        if threads == 1 and type(rng) is Generator and (found := addresses(rng)):
            self._sample_with(self._ring, self._place, *found, stratified, slots)
            return slots
        uniforms = np.empty(k) if rng is None else rng.random(k)
        if rng is None and threads == 1:
            store = (self._rings, self._places, self._streams)
            _sample(*store, stratified, uniforms[None], slots[None])
            return slots
        if rng is None:
            xoshiro.fill(self._stream, uniforms)
        if stratified:
            uniforms = (np.arange(k) + uniforms) / k

        def work(a: int, b: int) -> None:
            ring_search(self._ring, self._place, uniforms[a:b], slots[a:b])

        _in_slices(threads, k, work)
        return slots

    def append_and_sample(self, ratio: Any, k: int) -> tuple[int, Slots]:
        """Insert one ratio, then draw k slots with the ring's own stream, in one compiled call."""
        if self.questions is not None:
            raise ValueError("append_and_sample is for one question; use append and sample")
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        slots = np.empty(k, _INT64)
        slot = self._append_and_sample(self._ring, self._place, self._stream, float(ratio), slots)
        if slot == -1:
            raise ValueError(bad_weight(ratio))
        if slot == -2:
            raise ValueError(f"{self._no_mass()} Appending {ratio} would leave it so.")
        return slot, slots

    def __len__(self) -> int:
        return self._place.item(_SIZE)

    @property
    def ratios(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The ratios in slot order, a copy [len] ([len, G])."""
        filled = self._filled.T.copy()
        return filled[:, 0] if self.questions is None else filled

    @property
    def total(self) -> Any:
        """Sum of the ratios in the window; 0 when it is empty."""
        if self.questions is None:
            return sum(ring_masses(self._ring, self._place))
        n, head = self.capacity, self._place[_HEAD]
        new = self._rings[:, _HEADER + n + head]
        old = self._rings[:, _HEADER + 2 * n] - self._rings[:, _BASE]
        return new + (old if len(self) == n else 0.0)

    @property
    def mean(self) -> Any:
        """Mean ratio over the filled slots; nan when the window is empty."""
        return self.total / len(self) if len(self) else self.total + np.nan

    @property
    def max(self) -> Any:
        """Largest ratio in the window; nan when it is empty. Looks at every slot."""
        return self._one_or_all(self._filled.max(axis=1)) if len(self) else self.total + np.nan

    @property
    def effective_sample_size(self) -> Any:
        """(sum r)^2 / sum r^2: how many equal ratios are worth as much. Looks at every slot."""
        sizes = np.empty(len(self._rings))
        _effective(self._filled, sizes)
        return self._one_or_all(sizes)

    def checkpoint(self) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of the arrays that are the ring's whole state, for :meth:`restore`."""
        return {
            "rings": self._rings.copy(),
            "places": self._places.copy(),
            "streams": self._streams.copy(),
        }

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take up a checkpoint: from here on the two rings do the same, bit for bit."""
        rings, places, streams = (arrays[name] for name in ("rings", "places", "streams"))
        rows, capacity = len(rings), places[0, _CAPACITY]
        if (rows, capacity) != (len(self._rings), self.capacity):
            raise ValueError(
                f"the checkpoint is of {rows} question(s) and capacity {capacity}, "
                f"this ring of {len(self._rings)} and {self.capacity}"
            )
        self._rings[...], self._places[...], self._streams[...] = rings, places, streams

    def __getstate__(self) -> tuple[int, int | None, dict[str, Array]]:
        return self.capacity, self.questions, self.checkpoint()

    def __setstate__(self, state: tuple[int, int | None, dict[str, Array]]) -> None:
        capacity, questions, arrays = state
        self.__init__(capacity, questions=questions)
        self.restore(arrays)

    def __repr__(self) -> str:
        filled = f"RatioRing({len(self)} of {self.capacity}"
        if self.questions is not None:
            return f"{filled}, {self.questions} questions)"
        return (
            f"{filled}, mean {self.mean:.3g}, max {self.max:.3g}, "
            f"effective sample size {self.effective_sample_size:.3g})"
        )

    @cached_property
    def _append(self) -> Callable[..., int]:
        return direct_entry(_append, float64[::1], int64[::1], float64)

    @cached_property
    def _sample_with(self) -> Callable[..., None]:
        types = (float64[::1], int64[::1], int64, int64, boolean, int64[::1])
        return direct_entry(_sample_with, *types)

    @cached_property
    def _append_and_sample(self) -> Callable[..., int]:
        types = (float64[::1], int64[::1], uint64[::1], float64, int64[::1])
        return direct_entry(_append_and_sample, *types)

    @property
    def _filled(self) -> Array:
        """The ratios [G, len], not a copy."""
        return self._rings[:, _HEADER : _HEADER + len(self)]

    def _one_or_all(self, values: np.ndarray[Any, Any]) -> Any:
        """One number without questions, an array [G] with them."""
        return float(values[0]) if self.questions is None else values

    def _no_mass(self) -> str:
        if not len(self):
            return "cannot draw from an empty window: append ratios first."
        if self.questions is None:
            return f"cannot draw: all {len(self)} ratios in the window are 0."
        empty = np.flatnonzero(self._places[:, _POSITIVE] == 0)
        return (
            f"cannot draw: all {len(self)} ratios in the window are 0 for {len(empty)} of "
            f"{self.questions} questions, the first of them question {empty[0]}."
        )

    def _sample_questions(
        self, k: int, rng: Generator | None, stratified: bool, threads: int
    ) -> Slots:
        if not self._places[:, _POSITIVE].all():
            raise ValueError(self._no_mass())
        slots = np.empty((len(self._rings), k), np.int64)
        if rng is None:
            uniforms = np.empty(slots.shape)
        else:
            uniforms = rng.random(slots.shape)
            if stratified:
                uniforms = (np.arange(k) + uniforms) / k

        def work(a: int, b: int) -> None:
            rings, places = self._rings[a:b], self._places[a:b]
            if rng is None:
                _sample(rings, places, self._streams[a:b], stratified, uniforms[a:b], slots[a:b])
            else:
                _search(rings, places, uniforms[a:b], slots[a:b])

        _in_slices(threads, len(slots), work)
        return slots


def _in_slices(threads: int, count: int, work: Callable[[int, int], object]) -> None:
    """Do `work(start, stop)` over `count` items in equal slices, a thread each."""
    if threads == 1:
        work(0, count)
        return
    edges = np.linspace(0, count, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, edges[:-1], edges[1:]))


def bad_weight(weight: Any, position: str = "", *, kind: str = "ratios") -> str:
    """What is said of a ratio or weight that cannot be taken."""
    where = f" at position {position}" if position else ""
    return f"{kind} must be numbers from 0 to {LARGEST_RATIO:g}, got {weight}{where}"
