"""Sampling by weights that change (a sum tree), and uniform sampling.

A sum tree is a complete binary tree whose leaves are the weights and whose other nodes are the
sums of their two children. Setting a weight recomputes the nodes above it from their children,
never by adding a difference, so errors do not accumulate. To draw, take x uniform in the root's
mass and descend: go left if x is less than the left child's mass, else subtract that mass from x
and go right. A child without mass is never entered. For weights that never change, the ring of
prefix sums (:mod:`gvf.sampling.ratio_ring`) is several times faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gvf.common.arrays import Array
from gvf.common.checks import whole
from gvf.sampling.prefix_sums import LARGEST_RATIO
from gvf.sampling.ratio_ring import Slots, bad_weight

_LOCKSTEP = 16


@njit(cache=True, nogil=True)
def tree_set(nodes, slots, weights):
    """Set the weights of some slots; node i has the children 2i and 2i + 1, leaves come last."""
    leaves = nodes.size // 2
    for i in range(slots.size):
        nodes[leaves + slots[i]] = weights[i]
    if slots.size < 8:
        for i in range(slots.size):
            node = (leaves + slots[i]) >> 1
            while node > 0:
                nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
                node >>= 1
    else:
        _recompute_above(nodes, slots, leaves)


@njit(cache=True, nogil=True)
def _recompute_above(nodes, slots, leaves):
    """Recompute the ancestors of many slots level by level, so that shared ones stay cached."""
    level = (leaves + slots) >> 1
    while level[0] > 0:
        for i in range(level.size):
            node = level[i]
            nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
            level[i] = node >> 1


@njit(cache=True, nogil=True)
def tree_search(nodes, uniforms, slots):
    """Turn numbers uniform in [0, 1) into slots drawn by weight; the tree must have mass."""
    leaves = nodes.size // 2
    rest = np.empty(_LOCKSTEP)
    node = np.empty(_LOCKSTEP, np.int64)
    for start in range(0, uniforms.size, _LOCKSTEP):
        count = min(_LOCKSTEP, uniforms.size - start)
        for j in range(count):
            rest[j] = uniforms[start + j] * nodes[1]
            node[j] = 1
        width = 1
        while width < leaves:
            width *= 2
            for j in range(count):
                left = 2 * node[j]
                right = (rest[j] >= nodes[left]) & (nodes[left + 1] > 0.0)
                rest[j] -= right * nodes[left]
                node[j] = left + right
        for j in range(count):
            slots[start + j] = node[j] - leaves


def new_nodes(capacity: int) -> Array:
    """Make the nodes of a tree for this many slots, with all weights 0."""
    return np.zeros(2 << (capacity - 1).bit_length())


@njit(cache=True, nogil=True)
def _find_bad(slots, weights, capacity):
    for i in range(slots.size):
        if not (0 <= slots[i] < capacity and 0.0 <= weights[i] <= LARGEST_RATIO):
            return i
    return -1


class SumTree:
    """Weights that may change, from which slots are drawn in proportion.

    Slot i comes with probability ``weight_i / total``; a weight of 0 is never drawn. Use a tree for
    priorities; for ratios, which never change, :class:`RatioRing` is faster. A call that fails
    leaves the tree unchanged.

    Args:
        capacity: the number of slots; all weights start at 0.
        seed: the seed of the tree's own random generator, used when ``sample`` gets no ``rng``.

    Example:
        >>> import gvf, numpy as np
        >>> tree = gvf.SumTree(5, seed=0)
        >>> tree.set([0, 3, 4], [1.0, 2.0, 5.0])
        >>> tree.set(4, 0.0)
        >>> tree.total, tree[3]
        (3.0, 2.0)
        >>> np.unique(tree.sample(100, rng=np.random.default_rng(0)))
        array([0, 3])
    """

    def __init__(self, capacity: int, *, seed: Any = None) -> None:
        self.capacity = whole("capacity", capacity, 1)
        self._nodes = new_nodes(self.capacity)
        self._rng = np.random.default_rng(seed)

    def set(self, slots: Any, weights: Any) -> None:
        """Set the weights of slots (numbers or arrays [m]); the last of repeated slots counts."""
        slots = np.atleast_1d(np.asarray(slots))
        if slots.ndim > 1 or (slots.dtype.kind not in "iu" and slots.size):
            raise TypeError(f"slots must be integers [m], got {slots.dtype}{list(slots.shape)}")
        slots = slots.astype(np.int64)
        weights = np.ascontiguousarray(
            np.broadcast_to(np.asarray(weights, np.float64), slots.shape)
        )
        bad = _find_bad(slots, weights, self.capacity)
        if bad >= 0:
            if not 0 <= slots[bad] < self.capacity:
                raise IndexError(
                    f"slot {slots[bad]} at position {bad} is not in [0, {self.capacity})"
                )
            raise ValueError(bad_weight(weights[bad], str(bad), kind="weights"))
        if slots.size:
            tree_set(self._nodes, slots, weights)

    def __getitem__(self, slots: Any) -> Any:
        """Return the weights of slots: a number, or float64[m]."""
        weights = self._nodes[self._nodes.size // 2 :][: self.capacity][slots]
        return float(weights) if np.ndim(weights) == 0 else weights.copy()

    def __len__(self) -> int:
        return self.capacity

    @property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self._nodes[1])

    def sample(
        self, k: int, *, rng: np.random.Generator | None = None, stratified: bool = False
    ) -> Slots:
        """Draw k slots int64[k] with replacement; the arguments are those of RatioRing.sample."""
        k = whole("k", k, 1)
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {rng!r}")
        if self._nodes[1] == 0.0:
            raise ValueError(f"cannot draw: all {self.capacity} weights are 0.")
        uniforms = (rng or self._rng).random(k)
        if stratified:
            uniforms = (np.arange(k) + uniforms) / k
        slots = np.empty(k, np.int64)
        tree_search(self._nodes, uniforms, slots)
        return slots

    def __repr__(self) -> str:
        return f"SumTree({self.capacity} slots, total {self.total:.3g})"
