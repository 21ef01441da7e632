"""Errors of all lanes over the evaluation states, and sums that neighbouring states share.

States that are close to each other share most of their tiles. So the states are paired by the
number of tiles that they share, the pairs are paired likewise, and so on. The sum of the weights
that are common to all states of a group is computed once, and each member adds its own:

    sum(group) = sum(parent) + the weights that are common in the group but not in the parent

For 1000 positions and 64 tilings this reads about 30 weights a state instead of 64, and most of
them from the fastest cache.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gvf.common.arrays import Array
from gvf.common.vector import absolute, load, store, zeros
from gvf.kernels import NARROW, WIDE, accumulate, weight_row

Target = tuple[Array, Array, Array, Array, Array, Array, Array]
"""Features, block shares, unseen rows, true values and weights of the evaluation states, and the
nodes and rows of their tree of sums."""

LEVEL, END, STATE = range(3)
"""Columns of the nodes of a tree."""


def sum_tree(x: Array, share: Array) -> tuple[Array, Array]:
    """Return the tree of sums of states with active indices x [S, a]: nodes [N, 3] and rows [R].

    A node adds the weights in the rows from the end of the node before to its own end. Its level is
    0 for a state, 1 for a pair, and so on. Its parent is the last node before it whose level is one
    higher. The tree is empty for values that are no plain sums: those of dense features, of shares
    of blocks, or of one feature a state.
    """
    if x.dtype.kind != "i" or x.shape[1] == 1 or share.shape[1] > 1 or np.any(share != 1.0):
        return np.empty((0, 3), np.int64), np.empty(0, np.int64)
    # Neighbours come one after the other, so that the cache has most of their weights.
    states = np.lexsort(x.T)
    levels, pairs = [x[states]], []
    while True:
        first, second = pair(levels[-1])
        # Each column has the index that both members have there, or -1.
        common = np.where(levels[-1][first] == levels[-1][second], levels[-1][first], -1)
        if len(first) == len(levels[-1]) or (common < 0).all():
            break
        levels.append(common)
        pairs.append((first, second))
    place, inherited = np.arange(len(levels[-1])), np.zeros(levels[-1].shape, np.bool_)
    nodes, node_rows = [], []
    for level in reversed(range(len(levels))):
        used = levels[level] >= 0
        state = states if level == 0 else np.full(len(used), -1)
        nodes.append(np.column_stack([place << level, np.full(len(used), level), state]))
        node_rows.append(np.where(used & ~inherited, levels[level], -1))
        if level > 0:
            first, second = pairs[level - 1]
            above, shape = place, levels[level - 1].shape
            place, inherited = np.empty(shape[0], np.int64), np.empty(shape, np.bool_)
            for member, offset in ((second, 1), (first, 0)):
                place[member], inherited[member] = 2 * above + offset, used
    all_nodes, all_own = np.concatenate(nodes), np.concatenate(node_rows)
    order = np.lexsort((-all_nodes[:, 1], all_nodes[:, 0]))
    all_nodes, all_own = all_nodes[order], all_own[order]
    end = np.cumsum((all_own >= 0).sum(axis=1))
    columns = np.column_stack([all_nodes[:, 1], end, all_nodes[:, 2]])
    return columns, all_own[all_own >= 0].astype(np.int64)


@njit(cache=True, nogil=True)
def pair(common):
    """Pair each row of common [n, a] with the free row that agrees with it in most columns.

    An index of -1 agrees with none. Returns the first and second members of the pairs; a row that
    is left over is both.
    """
    n = common.shape[0]
    free = np.ones(n, np.bool_)
    first, second = np.empty((n + 1) // 2, np.int64), np.empty((n + 1) // 2, np.int64)
    count = 0
    for i in range(n):
        if not free[i]:
            continue
        best, most = i, -1
        for j in range(i + 1, n):
            if free[j]:
                agree = 0
                for c in range(common.shape[1]):
                    agree += (common[i, c] == common[j, c]) & (common[i, c] >= 0)
                if agree > most:
                    best, most = j, agree
        free[i] = free[best] = False
        first[count], second[count] = i, best
        count += 1
    return first, second


@njit(cache=True, nogil=True)
def tree_errors(weights, nodes, rows, truth, counts, squared, error):
    """Add |V - v|, or its square, of all states of a tree of sums to error [L]."""
    lanes, begin = error.size, 0
    sums = np.zeros((nodes[0, LEVEL] + 2, lanes))
    for node in range(nodes.shape[0]):
        level, end, state = nodes[node, LEVEL], nodes[node, END], nodes[node, STATE]
        value = truth[state] if level == 0 else 0.0
        count = counts[state] if level == 0 and counts.size > 0 else 1.0
        node_rows = rows[begin:end]
        # All lanes of a node follow each other, so that the length of its sum is guessed once.
        lane = 0
        while lane + WIDE <= lanes:
            visit(zeros(WIDE), weights, node_rows, sums, level, value, count, squared, error, lane)
            lane += WIDE
        while lane + NARROW <= lanes:
            visit(
                zeros(NARROW), weights, node_rows, sums, level, value, count, squared, error, lane
            )
            lane += NARROW
        for rest in range(lane, lanes):
            visit(0.0, weights, node_rows, sums, level, value, count, squared, error, rest)
        begin = end


@njit(cache=True, nogil=True, forceinline=True)
def visit(zero, weights, rows, sums, level, truth, count, squared, error, lane):
    """Add a node's rows to its parent's sum, in as many lanes as `zero` has numbers.

    The sum of a group is kept in sums [levels + 1, L]; that of a state gives its error.
    """
    value = load(zero, sums, level + 1, lane)
    for row in rows:
        value += load(zero, weights, row, lane)
    if level > 0:
        store(sums, level, lane, value)
        return
    value -= truth
    difference = value * value if squared else absolute(value)
    store(error, 0, lane, load(zero, error, 0, lane) + count * difference)


@njit(cache=True, nogil=True, forceinline=True)
def table_errors(weights, x, truth, squared, error):
    """Add |V - v|, or its square, of all states of a table to error [L], four states at a time."""
    whole = truth.size - truth.size % 4
    for s in range(0, whole, 4):
        a, b = weight_row(x, s, 0, 0), weight_row(x, s + 1, 0, 0)
        c, d = weight_row(x, s + 2, 0, 0), weight_row(x, s + 3, 0, 0)
        p, q, r, t = truth[s], truth[s + 1], truth[s + 2], truth[s + 3]
        if squared:
            for lane in range(error.size):
                first = error[lane] + (weights[a, lane] - p) ** 2 + (weights[b, lane] - q) ** 2
                error[lane] = first + (weights[c, lane] - r) ** 2 + (weights[d, lane] - t) ** 2
        else:
            for lane in range(error.size):
                first = abs(weights[a, lane] - p) + abs(weights[b, lane] - q)
                second = abs(weights[c, lane] - r) + abs(weights[d, lane] - t)
                error[lane] += first + second
    for s in range(whole, truth.size):
        a, p = weight_row(x, s, 0, 0), truth[s]
        for lane in range(error.size):
            difference = abs(weights[a, lane] - p)
            error[lane] += difference * difference if squared else difference


@njit(cache=True, nogil=True)
def measure(weights, target, squared, dead, error):
    """Write each lane's error over the states [S] into error [L]; inf if the lane has diverged.

    The target is a :data:`Target`. Its rows `unseen` are weights that change but that no value of
    these states depends on; they only show whether a lane has diverged.
    ``counts`` [S] are the weights of the states, with mean 1; empty if all are equal.
    """
    x, share, unseen, truth, counts, nodes, rows = target
    error[:] = 0.0
    # With one weight the feature may be dense, and then its value matters.
    table = x.shape[1] == 1 and weights.shape[0] > 1
    if table and share.shape[1] == 1 and counts.size == 0:
        table_errors(weights, x, truth, squared, error)
    elif nodes.shape[0] > 0:
        tree_errors(weights, nodes, rows, truth, counts, squared, error)
    else:
        feature_errors(weights, x, share, truth, counts, squared, error)
    poison(weights, unseen, error)
    for lane in range(error.size):
        dead[lane] |= not error[lane] < np.inf
        mean = error[lane] / truth.size
        error[lane] = np.inf if dead[lane] else (np.sqrt(mean) if squared else mean)


@njit(cache=True, nogil=True, forceinline=True)
def poison(weights, rows, error):
    """Make the error [L] of a lane nan if a weight in these rows is not finite.

    Zero times a number that is not finite is nan. Four rows are added at a time.
    """
    whole = rows.size - rows.size % 4
    for i in range(0, whole, 4):
        a, b = np.uint64(rows[i]), np.uint64(rows[i + 1])
        c, d = np.uint64(rows[i + 2]), np.uint64(rows[i + 3])
        for lane in range(error.size):
            first = 0.0 * weights[a, lane] + 0.0 * weights[b, lane]
            error[lane] += first + (0.0 * weights[c, lane] + 0.0 * weights[d, lane])
    for i in range(whole, rows.size):
        for lane in range(error.size):
            error[lane] += 0.0 * weights[np.uint64(rows[i]), lane]


@njit(cache=True, nogil=True)
def feature_errors(weights, x, share, truth, counts, squared, error):
    """Add |V - v|, or its square, of all states to error [L]."""
    difference = np.empty((1, error.size))
    blocks, size = share.shape[1], weights.shape[0] // share.shape[1]
    for s in range(truth.size):
        if x.shape[1] == 1 and size > 1 and not squared and counts.size == 0:
            # Action values in a table: policies with one or two actions in a state need one pass.
            first, last, actions = 0, 0, 0
            for b in range(blocks):
                if share[s, b] != 0.0:
                    first, last, actions = (b if actions == 0 else first), b, actions + 1
            p, q, v = share[s, first], share[s, last], -truth[s]
            a, b = weight_row(x, s, 0, first * size), weight_row(x, s, 0, last * size)
            if actions == 1:
                for lane in range(error.size):
                    error[lane] += abs(v + p * weights[a, lane])
                continue
            if actions == 2:
                for lane in range(error.size):
                    error[lane] += abs(v + p * weights[a, lane] + q * weights[b, lane])
                continue
        for lane in range(error.size):
            difference[0, lane] = -truth[s]
        accumulate(weights, x, share, s, 1.0, difference, 0)
        count = counts[s] if counts.size > 0 else 1.0
        if squared:
            for lane in range(error.size):
                error[lane] += count * difference[0, lane] * difference[0, lane]
        else:
            for lane in range(error.size):
                error[lane] += count * abs(difference[0, lane])
