"""The buffer: columns, inputs and masses of the most recent transitions, with one head.

A window (:class:`gvf.Window`, :class:`gvf.FrameWindow`) has the columns that a value function
learns from. The buffer adds the numbers by which a correction draws and weighs: its inputs (the
ratio, and a trace if it has one) and its mass p. All are rings over the same slots, and share the
window's ``place`` as their only head.

Inputs and masses are kept in rings of prefix sums, which give their means and draw by mass. A mass
that is the ratio itself needs no ring of its own. Masses that change when they are drawn are kept
in a sum tree. Compiled loops call the kernels at the top by their addresses; the class calls the
same kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import float64, int64, njit, types, void
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.corrections.carried import Trace
from gvf.corrections.correction import RATIO, Correction, by_ratio
from gvf.sampling.prefix_sums import (
    CAPACITY,
    HEAD,
    HEADER,
    LARGEST_RATIO,
    SIZE,
    advance,
    effective_sizes,
    new_rings,
    ring_masses,
    ring_search,
    ring_write,
)
from gvf.sampling.random_streams import addresses, native, next_double
from gvf.sampling.ratio_ring import Slots
from gvf.sampling.sum_tree import new_nodes, tree_search, tree_set
from gvf.transition import Transitions
from gvf.window.frame_window import FrameWindow
from gvf.window.window import Window

UNIFORM, WHOLE, TREE = -1, -2, -3
"""Values of ``mass`` if no ring holds masses: uniform draws, no draws, or masses in a tree."""


class Masses(NamedTuple):
    """The arrays from which slots are drawn and weighed, C inputs a row."""

    place: NDArray[np.int64]
    """The window's place: capacity, head and filled slots, int64[3]."""
    rings: Floats
    """A ring for each input, and one for the masses if they need one: float64[C or C + 1, ...]."""
    nodes: Floats
    """A sum tree of masses that change; empty otherwise."""


def masses_type() -> types.NamedTuple:
    """Return the compiled type of Masses."""
    return types.NamedTuple((int64[::1], float64[:, ::1], float64[::1]), Masses)


# Kernels that write a row into the slot at the head, given inputs [C, m], masses p [m] and the row.


@njit(cache=True, nogil=True)
def write_rings(masses, inputs, p, i):
    """Write row i into the rings; the head stays."""
    place, rings, _ = masses
    n, slot, full = place[CAPACITY], place[HEAD], place[SIZE] == place[CAPACITY]
    for c in range(rings.shape[0]):
        value = inputs[c, i] if c < inputs.shape[0] else p[i]
        ring_write(rings[c], n, slot, full, value)


@njit(cache=True, nogil=True)
def write_rings_and_tree(masses, inputs, p, i):
    """Write row i into the rings, and its mass into the tree; the head stays."""
    write_rings(masses, inputs, p, i)
    tree_set(masses.nodes, np.array([masses.place[HEAD]]), p[i : i + 1])


# Kernels that draw slots [k] with the numbers of a NumPy Generator (its function and state). They
# return 1, or 0 if the window has no mass. The means [C + 1] are those that `write_means` writes.


@njit(cache=True)
def draw_uniformly(masses, mass, means, function, state, slots):
    """Draw filled slots, all equally likely."""
    size = masses.place[SIZE]
    for j in range(slots.size):
        slots[j] = int(next_double(function, state) * size)
    return 1.0


@njit(cache=True)
def _uniforms(function, state, count):
    """Draw uniform numbers of a NumPy generator, by its address."""
    uniforms = np.empty(count)
    for j in range(count):
        uniforms[j] = next_double(function, state)
    return uniforms


@njit(cache=True)
def draw_by_ring(masses, mass, means, function, state, slots):
    """Draw slots in proportion to the numbers in ring `mass`."""
    if means[-1] == 0.0:
        return 0.0
    uniforms = _uniforms(function, state, slots.size)
    ring_search(masses.rings[mass], masses.place, uniforms, slots)
    return 1.0


@njit(cache=True)
def draw_by_tree(masses, mass, means, function, state, slots):
    """Draw slots in proportion to the weights in the tree."""
    if means[-1] == 0.0:
        return 0.0
    uniforms = _uniforms(function, state, slots.size)
    tree_search(masses.nodes, uniforms, slots)
    return 1.0


@njit(cache=True)
def take_all(masses, mass, means, function, state, slots):
    """Take all filled slots, oldest first."""
    n, head, size = masses.place
    first = head if size == n else 0
    for j in range(slots.size):
        slots[j] = first + j - (n if first + j >= n else 0)
    return 1.0


WRITE = void(masses_type(), float64[:, ::1], float64[::1], int64)
DRAW = float64(masses_type(), int64, float64[::1], int64, int64, int64[::1])
"""The types of the kernels that write and that draw."""


@njit(cache=True, nogil=True)
def check_refreshed(p):
    """Raise ValueError if a mass [k] is invalid."""
    for i in range(p.size):
        if not 0.0 <= p[i] <= LARGEST_RATIO:
            raise ValueError("refresh gave a mass that is not a number from 0 to 1e290")


@njit(cache=True, nogil=True)
def ring_mean(masses, c):
    """Return the mean of ring c over the filled slots."""
    old, new = ring_masses(masses.rings[c], masses.place)
    return (old + new) / masses.place[SIZE]


@njit(cache=True, nogil=True)
def write_means(masses, mass, means):
    """Write the window's means of the inputs, then of the mass, into means [C + 1]."""
    inputs = means.size - 1
    for c in range(inputs):
        means[c] = ring_mean(masses, c)
    means[inputs] = 1.0
    if mass >= 0:
        means[inputs] = ring_mean(masses, mass)
    elif mass == TREE:
        means[inputs] = masses.nodes[1] / masses.place[SIZE]


@njit(cache=True, nogil=True)
def take_rows(masses, mass, slots, inputs, p):
    """Copy inputs and masses of slots [k] into inputs [C, k] and p [k]; p stays 1 if uniform."""
    _, rings, nodes = masses
    for j in range(slots.size):
        for c in range(inputs.shape[0]):
            inputs[c, j] = rings[c, HEADER + slots[j]]
        if mass >= 0:
            p[j] = rings[mass, HEADER + slots[j]]
        elif mass == TREE:
            p[j] = nodes[nodes.size // 2 + slots[j]]


_DRAWS = {UNIFORM: draw_uniformly, WHOLE: take_all, TREE: draw_by_tree}


@dataclass(frozen=True)
class Rows:
    """Rows to be inserted.

    Attributes:
        columns: the window's columns, [m, ...] each.
        inputs: the correction's inputs, float64[C, m].
        p: the rows' masses, float64[m].
    """

    columns: dict[str, NDArray[Any]]
    inputs: Floats
    p: Floats

    def __len__(self) -> int:
        return len(self.p)

    def __getitem__(self, rows: slice) -> Rows:
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Rows(columns, np.ascontiguousarray(self.inputs[:, rows]), self.p[rows])


class Buffer:
    """A window, with the inputs and masses of a correction beside its columns.

    Args:
        window: an empty :class:`gvf.Window` or :class:`gvf.FrameWindow` for the columns.
        correction: the correction, which says how rows are carried, drawn and weighed.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.window.buffer import Buffer
        >>> buffer = Buffer(gvf.Window(3), gvf.corrections.BCIR())
        >>> ratio, continuation = np.array([2.0, 0.0, 1.0, 3.0]), np.full(4, 0.9)
        >>> with buffer.rows({"reward": np.arange(4.0)}, ratio, continuation) as rows:
        ...     buffer.extend(rows)
        >>> slots = buffer.draw(4, np.random.default_rng(1))
        >>> buffer.window[slots].reward, buffer.weigh(slots)
        (array([3., 3., 2., 3.]), array([0.33333333, 0.33333333, 0.33333333, 0.33333333]))
    """

    def __init__(self, window: Window | FrameWindow, correction: Correction) -> None:
        if len(window) or window.columns:
            raise ValueError(f"a learner fills its window itself; this one is not new: {window}")
        if window.is_taken:
            raise ValueError("this window belongs to another learner; give each its own")
        self._sit_on(window, correction)
        window.is_taken = True

    def _sit_on(self, window: Window | FrameWindow, correction: Correction) -> None:
        """Allocate inputs and masses that share the window's place."""
        self.window, self.correction = window, correction
        self.trace = Trace(correction)
        self.mass, rings, nodes = kind_of(correction, window.capacity)
        self.write = write_rings_and_tree if self.mass == TREE else write_rings
        self.draws = _DRAWS.get(self.mass, draw_by_ring)
        self.masses = Masses(window.place, new_rings(rings, window.capacity), nodes)
        self._parameters = correction.parameters
        self._means = np.empty(correction.rows + 1)

    def __len__(self) -> int:
        return len(self.window)

    @property
    def inputs(self) -> Floats:
        """A view of the inputs of the filled slots, in slot order, float64[C, len]."""
        return self.masses.rings[: self.correction.rows, HEADER : HEADER + len(self)]

    @property
    def ratios(self) -> Floats:
        """A view of the ratios of the filled slots, in slot order, float64[len]."""
        return self.inputs[RATIO]

    @property
    def mean_ratio(self) -> float:
        """The mean ratio over the filled slots; nan when the buffer is empty."""
        return float(ring_mean(self.masses, RATIO)) if len(self) else float("nan")

    @property
    def effective_sample_size(self) -> float:
        """(sum rho)^2 / sum rho^2 of the filled slots."""
        size = np.empty(1)
        effective_sizes(self.inputs[RATIO : RATIO + 1], size)
        return float(size[0])

    def plain_rows(self, columns: dict[str, NDArray[Any]], ratio: Floats) -> Rows:
        """Make rows of a correction that carries nothing from row to row."""
        inputs = np.ascontiguousarray(ratio)[None]
        if self.mass == RATIO and len(ratio) == 1 and ratio[0] <= LARGEST_RATIO:
            return Rows(columns, inputs, ratio)  # what `masses` gives, which takes longer
        return Rows(columns, inputs, self.correction.masses(inputs))

    @contextmanager
    def rows(
        self,
        columns: dict[str, NDArray[Any]],
        ratio: Floats,
        continuation: Floats,
        transitions: Transitions | None = None,
        *,
        interest: Floats | None = None,
        missing: NDArray[np.bool_] | None = None,
    ) -> Iterator[Rows]:
        """Make the next rows of their streams, with inputs and masses.

        This is a context in which the rows are inserted. If it fails before the first insertion,
        the traces are restored.

        Args:
            columns: the window's columns, [m, ...] each.
            ratio: the ratio of each row, [m].
            continuation: the continuation of each row, [m].
            transitions: the rows as given, with those that are missing; see
                :meth:`gvf.corrections.carried.Trace.inputs`.
            interest: the interest in the state of each row, [m]; 1 by default.
            missing: True for transitions that are not among the rows.
        """
        if self.correction.trace is None:
            yield self.plain_rows(columns, ratio)
            return
        place = self.masses.place.copy()
        with self.trace.undone(unless=lambda: not np.array_equal(place, self.masses.place)):
            inputs = self.trace.inputs(
                ratio, continuation, transitions, interest=interest, missing=missing
            )
            yield Rows(columns, inputs, self.correction.masses(inputs))

    def extend(self, rows: Rows) -> None:
        """Insert rows, oldest first."""
        place = self.masses.place
        before = place.copy()
        self.window.extend(**rows.columns)  # first, because it may fail
        after = place.copy()
        place[:] = before
        for i in range(len(rows)):
            self.write(self.masses, rows.inputs, rows.p, i)
            advance(place)
        place[:] = after

    def draw(self, k: int, rng: np.random.Generator) -> Slots | None:
        """Draw the slots of a batch, int64[k]; return None if the window has no mass.

        If the whole window is the batch, return all filled slots, oldest first.
        """
        slots = np.empty(len(self) if self.mass == WHOLE else k, np.int64)
        write_means(self.masses, self.mass, self._means)
        rng = native(rng)  # named, so that its state outlives the call below
        addresses_of_rng = addresses(rng)
        assert addresses_of_rng is not None
        drawn = self.draws(
            self.masses, self.mass, self._means, addresses_of_rng[0], addresses_of_rng[1], slots
        )
        return slots if drawn else None

    def weigh(self, slots: Slots) -> Floats:
        """Compute the correction's weights of drawn slots, float64[k]."""
        inputs, p = self._take(slots)
        w = np.empty(len(slots))
        self.correction.weigh(inputs, p, self._means, self._parameters, w)
        return w

    def refresh(self, slots: Slots, delta: Floats) -> None:
        """Refresh the masses of drawn slots [k] from their TD errors [k], if masses can change."""
        if self.correction.refresh is not None:
            inputs, p = self._take(slots)
            self.correction.refresh(delta, inputs, self._parameters, p)
            check_refreshed(p)
            tree_set(self.masses.nodes, slots, p)

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state, without the window's own, for :meth:`restore`."""
        carried = {f"trace/{name}": array for name, array in self.trace.checkpoint().items()}
        return {"rings": self.masses.rings.copy(), "nodes": self.masses.nodes.copy(), **carried}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a checkpoint; the window's own must be restored first."""
        for name, arrays_here in (("rings", self.masses.rings), ("nodes", self.masses.nodes)):
            check_like(name, arrays[name], arrays_here)
        trace = {name[6:]: array for name, array in arrays.items() if name.startswith("trace/")}
        self.masses.rings[...], self.masses.nodes[...] = arrays["rings"], arrays["nodes"]
        self.trace.restore(trace)

    def __getstate__(self) -> tuple[Window | FrameWindow, Correction, dict[str, NDArray[Any]]]:
        return self.window, self.correction, self.checkpoint()

    def __setstate__(self, state: tuple[Any, Correction, dict[str, NDArray[Any]]]) -> None:
        window, correction, arrays = state
        self._sit_on(window, correction)
        self.restore(arrays)

    def _take(self, slots: Slots) -> tuple[Floats, Floats]:
        inputs, p = np.empty((self.correction.rows, len(slots))), np.ones(len(slots))
        take_rows(self.masses, self.mass, slots, inputs, p)
        return inputs, p


def check_like(name: str, array: NDArray[Any], like: NDArray[Any]) -> None:
    """Raise ValueError if an array differs in shape or type from the one it replaces."""
    if array.shape != like.shape or array.dtype != like.dtype:
        raise ValueError(
            f"{name} should be {like.dtype}{list(like.shape)} and is "
            f"{array.dtype}{list(array.shape)}"
        )


def kind_of(correction: Correction, capacity: int) -> tuple[int, int, Floats]:
    """Return the ring of the masses (or a code), the number of rings, and the nodes of a tree."""
    how, inputs, none = correction.draw, correction.rows, np.empty(0)
    if how.whole or how.uniform:
        if correction.refresh is not None:
            raise ValueError(f"{correction.name} refreshes masses, but has none")
        return (WHOLE if how.whole else UNIFORM), inputs, none
    if correction.refresh is not None:
        return TREE, inputs, new_nodes(capacity)
    if how.mass is by_ratio:
        return RATIO, inputs, none
    return inputs, inputs + 1, none
