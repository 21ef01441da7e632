"""Draws for all groups over several steps: insert, draw, weigh, next row.

Every group has the rings of one :class:`gvf.window.Buffer`, and all share one place. Groups do not
depend on each other, so one compiled call takes a group through all rows of a chunk before the
next, and its rings stay in the cache. A row is drawn from the window as it was at its step: the
columns are kept for a few steps longer than the rings (``kept`` rows instead of n), so that an
earlier step of the chunk still finds a row that a later step has replaced.

With uniform draws all groups share the slots, and only their weights differ. A group that came
later draws only the rows since then, by the same random numbers, until they fill the window. Its
means are over these rows too. So it learns as if it had begun then.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import float64, int64, njit, types, uint64, void
from numpy.typing import NDArray

from gvf.common.arrays import Arrays, Floats
from gvf.common.compiled import call, compile_for, once, unowned
from gvf.corrections import BCIR, IR, RATIO, Correction
from gvf.horde.layout import Ints
from gvf.sampling import xoshiro
from gvf.sampling.prefix_sums import (
    CAPACITY,
    HEAD,
    HEADER,
    SIZE,
    advance,
    effective_sizes,
    new_place,
    new_rings,
    ring_search,
    ring_write,
)
from gvf.window.buffer import UNIFORM, WHOLE, Masses, check_like, kind_of, take_rows, write_means

_WORTH_THREADS = 2_000
"""The number of drawn rows below which another thread costs more than it gains."""


@dataclass(frozen=True)
class DrawnRows:
    """The drawn rows of U updates, for D sets of draws: one a group, or one shared by all.

    Attributes:
        slots: the slots in the window of n, int64[U, D, k].
        rows: the same as rows of the columns, int64[U, D, k].
        w: the correction's weights, float64[U, groups, k].
        has_mass: 0 where a group had no mass and skips the update, int64[U, groups].
        times: the number of the newest transition at each update, from 0, int64[U].
        steps: the number of transitions observed so far.
        uniforms: None. If the weights search themselves, the numbers float64[U, groups, k] that say
            where in the mass of the window each row lies, oldest first; the slots are then missing.
    """

    slots: Ints
    rows: Ints
    w: Floats
    has_mass: Ints
    times: Ints
    steps: int
    uniforms: Floats | None = None


class GroupDraws:
    """The rings of all groups, from which the rows of updates are drawn.

    Args:
        correction: the correction.
        groups: the number of groups.
        capacity: the number of rows in the window, n.
        batch_size: the number of rows drawn for an update, k.
        seed: the seed of the groups' streams, and of the one for uniform draws.
        since: the step from which on each group knows the rows, int64[groups]; 0 by default.
    """

    def __init__(
        self,
        correction: Correction,
        groups: int,
        capacity: int,
        batch_size: int,
        seed: np.random.SeedSequence,
        since: Ints | None = None,
    ) -> None:
        self._since = np.zeros(groups, np.int64) if since is None else since
        self.latest = int(self._since.max())
        self.correction, self.batch_size = correction, batch_size
        self.mass, rings, _ = kind_of(correction, capacity)
        self.rings = new_rings(groups * rings, capacity).reshape(groups, rings, -1)
        self.place = new_place(capacity)
        self.streams = xoshiro.streams(groups + 1, seed)  # the last is for uniform draws
        self.steps = 0
        # These weights do not depend on the rows, which then need not be read.
        self._reads = int(correction.weigh not in (IR.weigh, BCIR.weigh))
        self.can_defer = self.mass >= 0 and not self._reads
        """True if rows may be searched later, because nothing here depends on them."""

    @property
    def whole(self) -> bool:
        """True if the whole window is in every batch."""
        return self.mass == WHOLE

    @property
    def masses(self) -> Floats:
        """A view of the masses, float64[groups, n]; that of transition t is in slot t mod n."""
        return self.rings[:, self.mass, HEADER : HEADER + int(self.place[CAPACITY])]

    @property
    def ratios(self) -> Floats:
        """A view of the ratios of the filled slots, float64[groups, len]."""
        return self.rings[:, RATIO, HEADER : HEADER + int(self.place[SIZE])]

    @property
    def effective_sample_sizes(self) -> Floats:
        """(sum rho)^2 / sum rho^2 of the filled slots, for each group, float64[groups]."""
        sizes = np.empty(len(self.rings))
        effective_sizes(self.ratios, sizes)
        return sizes

    def insert(
        self,
        inputs: Floats,
        p: Floats,
        due: NDArray[np.bool_],
        kept: int,
        pool: Pool,
        defer: bool = False,
    ) -> DrawnRows:
        """Insert m rows, and draw after each row for which an update is due.

        Args:
            inputs: the correction's inputs, float64[C, groups, m].
            p: the masses, float64[groups, m].
            due: True for rows after which an update is due, bool[m].
            kept: the number of rows in the columns, at least n and as many more as m.
            pool: the threads.
            defer: True to leave the search to the weights, if :attr:`can_defer` and m <= n.
        """
        groups, m, updates = len(self.rings), len(due), int(due.sum())
        n, times = int(self.place[CAPACITY]), self.steps + np.flatnonzero(due)
        sizes = np.minimum(times + 1, n)
        k = int(sizes[-1]) if self.whole and updates else self.batch_size
        assert not self.whole or updates <= 1
        defer = defer and self.can_defer and m <= n
        full = self.latest <= max(self.steps + 1 - n, 0)  # all groups know the whole window
        alike = self.whole or (self.mass == UNIFORM and full)
        sets, drawn_here = 1 if alike else groups, 0 if defer else k
        slots = np.empty((updates, sets, drawn_here), np.int64)
        uniforms = np.empty((updates, groups, k - drawn_here))
        if self.mass == UNIFORM:
            _draw_uniformly(self.streams[-1], sizes, times, self._since, slots)
        elif self.whole and updates:
            last = (self.steps + m - 1) % n
            slots[0, 0] = (last + 1 + np.arange(k)) % k if k == n else range(k)
        w = np.empty((updates, groups, k))
        has_mass = np.ones((updates, groups), np.int64)
        later = uniforms if defer else None
        drawn = DrawnRows(slots, np.empty_like(slots), w, has_mass, times, self.steps + m, later)
        loop, weigh, parameters = _loop(), self.correction.address("weigh"), self.correction
        arrays = (
            (self.place, self.rings, self.streams),
            (inputs, p, due.astype(np.int64), self._since, parameters.parameters),
            (drawn.slots, drawn.rows, drawn.w, drawn.has_mass, uniforms),
        )

        def work(first: int, last: int) -> None:
            loop(weigh, arrays, (self.mass, self.steps, kept, self._reads, first, last))

        pool.over(groups, work, worth=groups * max(updates, 1) * k >= _WORTH_THREADS)
        self.place[HEAD] = (self.place[HEAD] + m) % n
        self.place[SIZE] = min(self.place[SIZE] + m, n)
        self.steps += m
        return drawn

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return copies of the arrays that change."""
        return {
            "rings": self.rings.copy(),
            "place": self.place.copy(),
            "streams": self.streams.copy(),
            "steps": np.array(self.steps),
        }

    def load_state_dict(self, arrays: Arrays) -> None:
        """Restore the arrays that :meth:`state_dict` returned."""
        for name, array in (
            ("rings", self.rings),
            ("place", self.place),
            ("streams", self.streams),
        ):
            check_like(name, arrays[name], array)
            array[...] = arrays[name]
        self.steps = int(arrays["steps"])


@njit(cache=True, nogil=True)
def _draw_uniformly(stream, sizes, times, since, slots):
    """Draw the slots [U, D, k] of updates from windows with so many filled slots [U].

    Each set of draws is from the rows that its group knows, those from `since` on.
    """
    n = sizes.max() if sizes.size else 0
    for u in range(sizes.size):
        for j in range(slots.shape[2]):
            number = xoshiro.uniform(stream)
            for d in range(slots.shape[1]):
                known = min(sizes[u], times[u] + 1 - since[d])
                slots[u, d, j] = int(number * known)
                if known < sizes[u]:  # counted from the oldest row that is known
                    slots[u, d, j] = (since[d] + slots[u, d, j]) % n


def _insert(weigh, arrays, numbers):
    """Take the groups from `first` to `last` through all rows; :class:`GroupDraws` has them."""
    (place, rings, streams), (inputs, p, due, since, parameters), drawn_rows = unowned(arrays)
    slots, rows, w, has_mass, later = drawn_rows
    mass, steps, kept, reads, first, last = numbers
    n, count, k = place[CAPACITY], inputs.shape[0], w.shape[2]
    defer = later.shape[2] > 0
    here, no_nodes = np.empty(3, np.int64), np.empty(0)
    means, uniforms = np.empty(count + 1), np.empty(k)
    taken, taken_p = np.ones((count, k)), np.ones(k)
    for g in range(first, last):
        for j in range(3):
            here[j] = place[j]
        masses, u = Masses(here, rings[g], no_nodes), 0
        d = g if slots.shape[1] > 1 else 0
        for i in range(due.size):
            newest, full = here[HEAD], here[SIZE] == n
            latest = (steps + i) % kept
            for c in range(rings.shape[1]):
                value = inputs[c, g, i] if c < count else p[g, i]
                ring_write(rings[g, c], n, newest, full, value)
            advance(here)
            if due[i] == 0:
                continue
            write_means(masses, mass, means)
            known = min(here[SIZE], steps + i + 1 - since[g])
            if known < here[SIZE]:  # the rows before have ratio and mass 0
                for c in range(count + (mass >= 0)):
                    means[c] *= here[SIZE] / known
            some_mass = mass < 0 or means[count] > 0.0
            if defer:
                if some_mass:
                    xoshiro.fill(streams[g], later[u, g])
                else:
                    later[u, g] = 0.0
            elif mass >= 0:
                if some_mass:
                    xoshiro.fill(streams[g], uniforms)
                    ring_search(rings[g, mass], here, uniforms, slots[u, g])
                else:
                    slots[u, g] = newest
            if not defer and d == g:
                for j in range(k):
                    age = newest - slots[u, d, j]
                    age += n if age < 0 else 0
                    rows[u, d, j] = latest - age + (kept if age > latest else 0)
            if some_mass:
                if reads:
                    take_rows(masses, mass, slots[u, d], taken, taken_p)
                if mass == WHOLE and known < k:  # the rows before come first
                    w[u, g, : k - known] = 0.0
                    own_uniforms = np.ascontiguousarray(taken[:, k - known :])
                    p_own, w_own = taken_p[k - known :], w[u, g, k - known :]
                    call(weigh, (own_uniforms, p_own, means, parameters, w_own))
                else:
                    call(weigh, (taken, taken_p, means, parameters, w[u, g]))
            else:
                w[u, g] = 0.0
            if not some_mass or (mass == WHOLE and not w[u, g].any()):
                has_mass[u, g] = 0
            u += 1


@once
def _loop() -> Any:
    f1, f2, f3, i1, i2, i3 = (
        float64[::1], float64[:, ::1], float64[:, :, ::1], int64[::1], int64[:, ::1],
        int64[:, :, ::1],
    )  # fmt: skip
    arrays = types.Tuple(
        (
            types.Tuple((i1, f3, uint64[:, ::1])),
            types.Tuple((f3, f2, i1, i1, f1)),
            types.Tuple((i3, i3, f3, i2, f3)),
        )
    )
    return compile_for(_insert, void(int64, arrays, types.UniTuple(int64, 6)))


class Pool:
    """Threads that work on slices of a range; the results do not depend on their number."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None

    def __reduce__(self) -> Any:
        return Pool, (self.threads,)

    def over(self, count: int, work: Callable[[int, int], None], *, worth: bool) -> None:
        """Call `work(start, stop)` on slices of a range, in threads if that is `worth` it."""
        if not worth or self.threads == 1 or count == 1:
            work(0, count)
            return
        self._pool = self._pool or ThreadPoolExecutor(self.threads)
        edges = np.linspace(0, count, min(self.threads, count) + 1).astype(int).tolist()
        list(self._pool.map(work, edges[:-1], edges[1:]))
