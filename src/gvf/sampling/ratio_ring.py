"""Exact sampling of slots in proportion to their ratios.

Slot i of the n most recent is drawn with probability ``rho_i / sum_j rho_j``. The method, and why
it is exact, is described in :mod:`gvf.sampling.prefix_sums`, whose kernels this class calls. For
weights that change, use :mod:`gvf.sampling.sum_tree`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import boolean, float64, int64, uint64
from numpy.random import Generator

from gvf.common.arrays import Array
from gvf.common.checks import whole
from gvf.common.compiled import direct_entry
from gvf.sampling import prefix_sums, xoshiro
from gvf.sampling.random_streams import addresses

Slots = np.ndarray[Any, np.dtype[np.int64]]
_INT64 = np.dtype(np.int64)  # kept, because looking it up takes longer than a draw
_RING = (float64[::1], int64[::1])
_ENTRIES: dict[str, tuple[Any, ...]] = {
    "_append": (prefix_sums.append, *_RING, float64),
    "_sample_with": (prefix_sums.sample_with, *_RING, int64, int64, boolean, int64[::1]),
    "_append_and_sample": (prefix_sums.append_and_sample, *_RING, uint64[::1], float64, int64[::1]),
}


class RatioRing:
    """The ratios of the n most recent transitions, from which slots are drawn in proportion.

    Draws are exact and independent: slot i comes with probability ``ratio_i / total``, and a ratio
    of 0 is never drawn. Ratios may lie within a factor of 1e12 of each other. A far larger ratio
    does not affect the precision of the others once it has left. A call that fails leaves the ring
    unchanged. Like NumPy's arrays, a ring is for one thread at a time.

    Args:
        capacity: the number of ratios to keep, n.
        questions: the number of questions, G. Every transition then brings G ratios, and draws are
            made for each question: ratios are [m, G], draws [G, k], and the properties arrays [G].
        seed: the seed of the ring's own streams (one a question), which ``sample`` uses when it
            gets no ``rng``: a :class:`numpy.random.SeedSequence` or anything it accepts.

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
        self.capacity = whole("capacity", capacity, 1)
        self.questions = None if questions is None else whole("questions", questions, 1)
        self._rings = prefix_sums.new_rings(questions or 1, self.capacity)
        self._place = prefix_sums.new_place(self.capacity)
        self._streams = xoshiro.streams(len(self._rings), seed)
        self._ring, self._stream = self._rings[0], self._streams[0]
        self._append: Callable[..., int] | None = None
        self._sample_with: Callable[..., None] | None = None
        self._append_and_sample: Callable[..., int] | None = None

    def append(self, ratio: Any) -> int:
        """Insert one transition's ratio (with questions: [G]) and return its slot."""
        if self.questions is not None:
            return int(self.extend(np.asarray(ratio, np.float64)[None])[0])
        entry = self._append or self._enter("_append")
        slot = entry(self._ring, self._place, float(ratio))
        if slot < 0:
            raise ValueError(bad_weight(ratio))
        return slot

    def extend(self, ratios: Any) -> Slots:
        """Insert the ratios of m transitions, [m] or [m, G], oldest first; return slots int64[m].

        The result is the same, bit for bit, as with m calls of ``append``; m may be larger than the
        capacity.
        """
        ratios = np.asarray(ratios, np.float64)
        is_single = self.questions is None
        if ratios.ndim != 2 - is_single or (not is_single and ratios.shape[1] != self.questions):
            shape = "[m]" if is_single else f"[m, {self.questions}]"
            raise ValueError(f"ratios must have shape {shape}, got {ratios.shape}")
        slots = (self._place[prefix_sums.HEAD] + np.arange(len(ratios))) % self.capacity
        table = np.ascontiguousarray(ratios).reshape(-1, len(self._rings))
        bad = prefix_sums.extend(self._rings, self._place, table)
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
            k: the number of draws, for each question.
            rng: the source of randomness; None for the ring's own streams.
            stratified: True to take draw j from the j-th of k equal parts of the mass. Draws are
                then by ratio on average over the batch, but not independent.
            threads: the number of threads. The draws do not depend on it.

        Returns:
            int64[k], or [G, k] with questions.
        """
        k, threads = whole("k", k, 1), whole("threads", threads, 1)
        if rng is not None and not isinstance(rng, Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {rng!r}")
        if self.questions is not None:
            return self._sample_questions(k, rng, stratified, threads)
        if self._ring.item(prefix_sums.POSITIVE) == 0.0:
            raise ValueError(self._no_mass())
        slots = np.empty(k, _INT64)
        if threads == 1 and type(rng) is Generator and (generator := addresses(rng)):
            entry = self._sample_with or self._enter("_sample_with")
            entry(self._ring, self._place, *generator, stratified, slots)
            return slots
        uniforms = np.empty(k) if rng is None else rng.random(k)
        if rng is None and threads == 1:
            store = (self._rings, self._place, self._streams)
            prefix_sums.sample(*store, stratified, uniforms[None], slots[None])
            return slots
        if rng is None:
            xoshiro.fill(self._stream, uniforms)
        if stratified:
            uniforms = (np.arange(k) + uniforms) / k

        def work(a: int, b: int) -> None:
            prefix_sums.ring_search(self._ring, self._place, uniforms[a:b], slots[a:b])

        _in_slices(threads, k, work)
        return slots

    def append_and_sample(self, ratio: Any, k: int) -> tuple[int, Slots]:
        """Insert one ratio, then draw k slots with the ring's own stream, in one compiled call."""
        if self.questions is not None:
            raise ValueError("append_and_sample is for one question; use append and sample")
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        slots = np.empty(k, _INT64)
        entry = self._append_and_sample or self._enter("_append_and_sample")
        slot = entry(self._ring, self._place, self._stream, float(ratio), slots)
        if slot == -1:
            raise ValueError(bad_weight(ratio))
        if slot == -2:
            raise ValueError(f"{self._no_mass()} Appending {ratio} would leave it so.")
        return slot, slots

    def __len__(self) -> int:
        return self._place.item(prefix_sums.SIZE)

    @property
    def ratios(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """A copy of the ratios in slot order, [len], or [len, G] with questions."""
        filled = self._filled.T.copy()
        return filled[:, 0] if self.questions is None else filled

    @property
    def total(self) -> Any:
        """Sum of the ratios in the window; 0 when it is empty."""
        if self.questions is None:
            return sum(prefix_sums.ring_masses(self._ring, self._place))
        n, head = self.capacity, self._place[prefix_sums.HEAD]
        new = self._rings[:, prefix_sums.HEADER + n + head]
        old = self._rings[:, prefix_sums.HEADER + 2 * n] - self._rings[:, prefix_sums.BASE]
        return new + (old if len(self) == n else 0.0)

    @property
    def mean(self) -> Any:
        """Mean ratio over the filled slots; nan when the window is empty."""
        return self.total / len(self) if len(self) else self.total + np.nan

    @property
    def max(self) -> Any:
        """Largest ratio in the window; nan when it is empty. Reads every slot."""
        return self._one_or_all(self._filled.max(axis=1)) if len(self) else self.total + np.nan

    @property
    def effective_sample_size(self) -> Any:
        """(sum r)^2 / sum r^2, the equivalent number of equal ratios. Reads every slot."""
        sizes = np.empty(len(self._rings))
        prefix_sums.effective_sizes(self._filled, sizes)
        return self._one_or_all(sizes)

    def checkpoint(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return copies of the arrays that make up the ring's state, for :meth:`restore`."""
        return {
            "rings": self._rings.copy(),
            "place": self._place.copy(),
            "streams": self._streams.copy(),
        }

    def restore(self, arrays: dict[str, Any]) -> None:
        """Restore a checkpoint; both rings then give the same results, bit for bit."""
        rings, place, streams = (arrays[name] for name in ("rings", "place", "streams"))
        rows, capacity = len(rings), place[prefix_sums.CAPACITY]
        if (rows, capacity) != (len(self._rings), self.capacity):
            raise ValueError(
                f"the checkpoint is of {rows} question(s) and capacity {capacity}, "
                f"this ring of {len(self._rings)} and {self.capacity}"
            )
        self._rings[...], self._place[...], self._streams[...] = rings, place, streams

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

    def _enter(self, name: str) -> Callable[..., Any]:
        """Find a kernel's direct entry on first use, because finding it compiles the kernel."""
        entry = direct_entry(*_ENTRIES[name])
        setattr(self, name, entry)
        return entry

    @property
    def _filled(self) -> Array:
        """A view of the ratios, [G, len]."""
        return self._rings[:, prefix_sums.HEADER : prefix_sums.HEADER + len(self)]

    def _one_or_all(self, values: np.ndarray[Any, Any]) -> Any:
        """Return one number without questions, and an array [G] with them."""
        return float(values[0]) if self.questions is None else values

    def _no_mass(self) -> str:
        if not len(self):
            return "cannot draw from an empty window: append ratios first."
        if self.questions is None:
            return f"cannot draw: all {len(self)} ratios in the window are 0."
        empty = np.flatnonzero(self._rings[:, prefix_sums.POSITIVE] == 0.0)
        return (
            f"cannot draw: all {len(self)} ratios in the window are 0 for {len(empty)} of "
            f"{self.questions} questions, the first of them question {empty[0]}."
        )

    def _sample_questions(
        self, k: int, rng: Generator | None, stratified: bool, threads: int
    ) -> Slots:
        if not self._rings[:, prefix_sums.POSITIVE].all():
            raise ValueError(self._no_mass())
        slots = np.empty((len(self._rings), k), np.int64)
        if rng is None:
            uniforms = np.empty(slots.shape)
        else:
            uniforms = rng.random(slots.shape)
            if stratified:
                uniforms = (np.arange(k) + uniforms) / k

        def work(a: int, b: int) -> None:
            rings = self._rings[a:b]
            if rng is None:
                prefix_sums.sample(
                    rings, self._place, self._streams[a:b], stratified, uniforms[a:b], slots[a:b]
                )
            else:
                prefix_sums.search(rings, self._place, uniforms[a:b], slots[a:b])

        _in_slices(threads, len(slots), work)
        return slots


def _in_slices(threads: int, count: int, work: Callable[[int, int], object]) -> None:
    """Call `work(start, stop)` on equal slices of `count` items, one thread a slice."""
    if threads == 1:
        work(0, count)
        return
    edges = np.linspace(0, count, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, edges[:-1], edges[1:]))


def bad_weight(weight: Any, position: str = "", *, kind: str = "ratios") -> str:
    """Return the error message for an invalid ratio or weight."""
    where = f" at position {position}" if position else ""
    return f"{kind} must be numbers from 0 to {prefix_sums.LARGEST_RATIO:g}, got {weight}{where}"
