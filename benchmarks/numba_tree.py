"""A plain sum tree in Numba, which the ring of prefix sums replaces.

It is a complete binary tree in an array: node i has the children 2i and 2i + 1, the leaves are the
second half, and a node is the sum of its children. Draws descend from the root one by one.
"""

from __future__ import annotations

import numpy as np
from numba import njit


def tree_of(ratios: np.ndarray) -> np.ndarray:
    """Make the nodes of a tree with these leaves, float64[2 * leaves]."""
    leaves = 1 << (len(ratios) - 1).bit_length()
    nodes = np.zeros(2 * leaves)
    nodes[leaves : leaves + len(ratios)] = ratios
    width = leaves // 2
    while width:
        nodes[width : 2 * width] = nodes[2 * width : 4 * width].reshape(-1, 2).sum(axis=1)
        width //= 2
    return nodes


@njit(cache=True, nogil=True)
def tree_insert(nodes, slot, ratio):
    """Write a ratio and recompute the sums above it."""
    node = nodes.size // 2 + slot
    nodes[node] = ratio
    while node > 1:
        node >>= 1
        nodes[node] = nodes[2 * node] + nodes[2 * node + 1]


@njit(cache=True, nogil=True)
def tree_draw(nodes, uniforms, slots):
    """Turn numbers uniform in [0, 1) into slots."""
    leaves = nodes.size // 2
    for j in range(uniforms.size):
        rest = uniforms[j] * nodes[1]
        node = 1
        while node < leaves:
            node *= 2
            if rest >= nodes[node]:
                rest -= nodes[node]
                node += 1
        slots[j] = node - leaves
