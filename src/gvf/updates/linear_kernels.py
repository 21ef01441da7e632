"""Linear values in lanes: the kernels that all updates use.

A value is ``v(s) = sum_b share_b(s) sum_f W[b, f] x_f(s)``. Features x are either the indices of
the active binary features, int32[m, a], or dense, float64[m, size]; only the functions of
:mod:`gvf.features` that read them differ. State values have one block of weights, b = 0, with
share 1. Action values have one block for each action; its share is 1 for the action taken, or
pi(b|s) for the mean over a policy's actions.

Weights have the layout [row, lane] with row = b * size + f. A lane is one column of weights with
its own step size, and one drawn transition updates all lanes with vector instructions. Kernels read
the window's columns at given slots, so nothing is copied.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import float64, int32, njit, types

from gvf.common.arrays import Array
from gvf.common.vector import load, store, zeros
from gvf.features import feature_level, weight_row

WIDE, NARROW = 16, 8
"""Lanes that are summed at once: two vectors of today's widest registers hide the time of an
addition, and one is for the rest."""


class Experience(NamedTuple):
    """The columns of a window that updates read, one row per slot."""

    x: Array
    """The features of the states: int32[n, a] (active indices) or float64[n, size] (dense)."""
    share: Array
    """The share of each block in the value of a state, float64[n, blocks]."""
    x_next: Array
    share_next: Array
    cumulant: Array
    """float64[n]"""
    continuation: Array
    """float64[n]"""


def experience_type(dense: bool) -> types.NamedTuple:
    """Return the compiled type of an Experience with dense features, or with active indices."""
    f1, f2 = float64[::1], float64[:, ::1]
    x = f2 if dense else int32[:, ::1]
    return types.NamedTuple((x, f2, x, f2, f1, f1), Experience)


@njit(cache=True, nogil=True, forceinline=True)
def add_block_value(total, weights, x, slot, part, first, lane):
    """Add ``part`` times the value of one block of weights, in the lanes of a vector, to it."""
    for j in range(x.shape[1]):
        row, level = weight_row(x, slot, j, first), part * feature_level(x, slot, j)
        total += level * load(total, weights, row, lane)
    return total


@njit(cache=True, nogil=True, forceinline=True)
def accumulate(weights, x, share, slot, factor, out, i):
    """Add ``factor`` times the value at a slot, in all lanes, to ``out[i]``."""
    blocks, lanes = share.shape[1], weights.shape[1]
    size = weights.shape[0] // blocks
    for b in range(blocks):
        part, first, lane = factor * share[slot, b], b * size, 0
        # A block with share 0 is not read, because its weights may be infinite.
        if part == 0.0:
            continue
        while lane + WIDE <= lanes:
            total = load(zeros(WIDE), out, i, lane)
            store(out, i, lane, add_block_value(total, weights, x, slot, part, first, lane))
            lane += WIDE
        while lane + NARROW <= lanes:
            total = load(zeros(NARROW), out, i, lane)
            store(out, i, lane, add_block_value(total, weights, x, slot, part, first, lane))
            lane += NARROW
        for rest in range(lane, lanes):
            out[i, rest] = add_block_value(out[i, rest], weights, x, slot, part, first, rest)


@njit(cache=True, nogil=True, forceinline=True)
def value_at(weights, x, share, slot, out, i):
    """Write the value at a slot, in all lanes, into ``out[i]``."""
    for lane in range(weights.shape[1]):
        out[i, lane] = 0.0
    accumulate(weights, x, share, slot, 1.0, out, i)


@njit(cache=True, nogil=True, forceinline=True)
def add_block(step, weights, x, slot, part, first, lane):
    """Add ``part * step`` times the features to one block of weights, in the step's lanes."""
    for j in range(x.shape[1]):
        row, level = weight_row(x, slot, j, first), part * feature_level(x, slot, j)
        store(weights, row, lane, load(step, weights, row, lane) + step * level)


@njit(cache=True, nogil=True, forceinline=True)
def add_at(weights, scale, x, share, slot, coefficient, i):
    """Add ``scale[lane] * coefficient[i, lane]`` times the slot's features to the weights."""
    blocks, lanes = share.shape[1], weights.shape[1]
    size = weights.shape[0] // blocks
    for b in range(blocks):
        part, first, lane = share[slot, b], b * size, 0
        if part == 0.0:
            continue
        while lane + WIDE <= lanes:
            step = load(zeros(WIDE), scale, 0, lane) * load(zeros(WIDE), coefficient, i, lane)
            add_block(step, weights, x, slot, part, first, lane)
            lane += WIDE
        while lane + NARROW <= lanes:
            step = load(zeros(NARROW), scale, 0, lane) * load(zeros(NARROW), coefficient, i, lane)
            add_block(step, weights, x, slot, part, first, lane)
            lane += NARROW
        for rest in range(lane, lanes):
            add_block(scale[rest] * coefficient[i, rest], weights, x, slot, part, first, rest)


@njit(cache=True, nogil=True, forceinline=True)
def td_error_at(weights, experience, slot, factor, out, i):
    """Write ``factor`` times a slot's TD error, ``c + gamma v(s') - v(s)``, into ``out[i]``."""
    x, share, x_next, share_next, c, gamma = experience
    for lane in range(weights.shape[1]):
        out[i, lane] = factor * c[slot]
    accumulate(weights, x, share, slot, -factor, out, i)
    accumulate(weights, x_next, share_next, slot, factor * gamma[slot], out, i)


@njit(cache=True, nogil=True, forceinline=True)
def block_error(zero, weights, experience, slot, factor, lane):
    """Return ``factor`` times a slot's TD error, in as many lanes as `zero` has numbers."""
    x, share, x_next, share_next, c, gamma = experience
    size = weights.shape[0] // share.shape[1]
    error = zero + factor * c[slot]
    for b in range(share.shape[1]):
        part = -factor * share[slot, b]
        if part != 0.0:
            error = add_block_value(error, weights, x, slot, part, b * size, lane)
    for b in range(share.shape[1]):
        part = factor * gamma[slot] * share_next[slot, b]
        if part != 0.0:
            error = add_block_value(error, weights, x_next, slot, part, b * size, lane)
    return error


@njit(cache=True, nogil=True, forceinline=True)
def only_block(share, slot):
    """Return the only block with a share at a slot; -1 if there is none or more than one."""
    only = -1
    for b in range(share.shape[1]):
        if share[slot, b] != 0.0:
            if only >= 0:
                return -1
            only = b
    return only


@njit(cache=True, nogil=True, forceinline=True)
def table_error_at(weights, experience, slot, own_block, factor, out, i):
    """Write the same sums as :func:`td_error_at`, in fewer passes.

    Each state must have one feature, and only the block `own_block` may have a share in the state.
    """
    x, share, x_next, share_next, c, gamma = experience
    blocks, lanes = share.shape[1], weights.shape[1]
    size = weights.shape[0] // blocks
    here, near = weight_row(x, slot, 0, own_block * size), -factor * share[slot, own_block]
    near, constant = near * feature_level(x, slot, 0), factor * c[slot]
    started = False
    for b in range(blocks):
        far = factor * gamma[slot] * share_next[slot, b]
        if far != 0.0:
            weight_next, far = (
                weight_row(x_next, slot, 0, b * size),
                far * feature_level(x_next, slot, 0),
            )
            if started:
                for lane in range(lanes):
                    out[i, lane] += far * weights[weight_next, lane]
            else:
                for lane in range(lanes):
                    before = constant + near * weights[here, lane]
                    out[i, lane] = before + far * weights[weight_next, lane]
            started = True
    if not started:
        for lane in range(lanes):
            out[i, lane] = constant + near * weights[here, lane]


@njit(cache=True, nogil=True)
def values(weights, x, share, out):
    """Write the values of all rows of x into out [m, lanes]."""
    for i in range(out.shape[0]):
        value_at(weights, x, share, i, out, i)


@njit(cache=True, nogil=True)
def td_errors(weights, experience, slots, out):
    """Write the TD errors of a batch of slots [k] into out [k, lanes]."""
    for i in range(slots.size):
        td_error_at(weights, experience, slots[i], 1.0, out, i)


@njit(cache=True, nogil=True)
def _direction_of_lane(target, scale, weights, experience, slots, w):
    """Add the same as :func:`td_direction` for a single lane, in a third of the time."""
    share, errors = experience.share, np.empty(slots.size)
    size = weights.shape[0] // share.shape[1]
    for i in range(slots.size):
        if w[i] != 0.0:
            error = block_error(0.0, weights, experience, np.uint64(slots[i]), w[i], 0)
            errors[i] = scale[0] * error
    for i in range(slots.size):
        slot = np.uint64(slots[i])
        for b in range(share.shape[1]):
            if w[i] != 0.0 and share[slot, b] != 0.0:
                add_block(errors[i], target, experience.x, slot, share[slot, b], b * size, 0)


@njit(cache=True, nogil=True)
def td_direction(target, scale, weights, experience, slots, w):
    """Add ``scale [lane] * sum_i w_i delta_i x_i`` of a batch of slots [k] to the target.

    The target may be the weights themselves: all errors are computed before anything changes.
    """
    x, share, x_next, share_next, c, gamma = experience
    table = x.shape[1] == 1 and share.shape[1] == 1
    if weights.shape[1] == 1 and not table:
        _direction_of_lane(target, scale, weights, experience, slots, w)
        return
    errors = np.empty((slots.size, weights.shape[1]))
    if not table:
        for i in range(slots.size):
            slot, weight = np.uint64(slots[i]), w[i]
            if weight == 0.0:
                continue
            block = only_block(share, slot) if x.shape[1] == 1 else -1
            if block >= 0:
                table_error_at(weights, experience, slot, block, weight, errors, i)
            else:
                td_error_at(weights, experience, slot, weight, errors, i)
        for i in range(slots.size):
            if w[i] != 0.0:
                add_at(target, scale, x, share, np.uint64(slots[i]), errors, i)
        return
    # With one feature and one block the values are a table: one pass instead of three.
    for i in range(slots.size):
        slot, weight = np.uint64(slots[i]), w[i]
        here, next_weight = weight_row(x, slot, 0, 0), weight_row(x_next, slot, 0, 0)
        near = weight * share[slot, 0] * feature_level(x, slot, 0)
        far = weight * gamma[slot] * share_next[slot, 0] * feature_level(x_next, slot, 0)
        constant = weight * c[slot]
        for lane in range(weights.shape[1]):
            errors[i, lane] = (
                constant + far * weights[next_weight, lane] - near * weights[here, lane]
            )
    for i in range(slots.size):
        slot = np.uint64(slots[i])
        row, level = weight_row(x, slot, 0, 0), share[slot, 0] * feature_level(x, slot, 0)
        for lane in range(weights.shape[1]):
            target[row, lane] += scale[lane] * errors[i, lane] * level
