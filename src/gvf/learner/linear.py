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
from gvf.features import feature_level, weight_row


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
def accumulate(weights, x, share, slot, factor, out, i):
    """Add ``factor`` times the value at a slot, in all lanes, to ``out[i]``."""
    blocks, lanes = share.shape[1], weights.shape[1]
    size = weights.shape[0] // blocks
    for b in range(blocks):
        part = factor * share[slot, b]
        # A block with share 0 is not read, because its weights may be infinite.
        if part != 0.0:
            first, whole = b * size, x.shape[1] - x.shape[1] % 4
            if lanes == 1:  # the same sum, without the inner loop over lanes
                total = out[i, 0]
                for j in range(x.shape[1]):
                    row, level = weight_row(x, slot, j, first), part * feature_level(x, slot, j)
                    total += level * weights[row, 0]
                out[i, 0] = total
                continue
            # Four features at a time give the same sum with fewer reads and writes.
            for j in range(0, whole, 4):
                d, e = weight_row(x, slot, j, first), weight_row(x, slot, j + 1, first)
                f, g = weight_row(x, slot, j + 2, first), weight_row(x, slot, j + 3, first)
                p, q = part * feature_level(x, slot, j), part * feature_level(x, slot, j + 1)
                r, t = part * feature_level(x, slot, j + 2), part * feature_level(x, slot, j + 3)
                for lane in range(lanes):
                    two = out[i, lane] + p * weights[d, lane] + q * weights[e, lane]
                    out[i, lane] = two + r * weights[f, lane] + t * weights[g, lane]
            for j in range(whole, x.shape[1]):
                row, level = weight_row(x, slot, j, first), part * feature_level(x, slot, j)
                for lane in range(lanes):
                    out[i, lane] += level * weights[row, lane]


@njit(cache=True, nogil=True, forceinline=True)
def value_at(weights, x, share, slot, out, i):
    """Write the value at a slot, in all lanes, into ``out[i]``."""
    for lane in range(weights.shape[1]):
        out[i, lane] = 0.0
    accumulate(weights, x, share, slot, 1.0, out, i)


@njit(cache=True, nogil=True, forceinline=True)
def add_at(weights, scale, x, share, slot, coefficient, i):
    """Add ``scale[lane] * coefficient[i, lane]`` times the slot's features to the weights."""
    blocks, lanes = share.shape[1], weights.shape[1]
    size = weights.shape[0] // blocks
    for b in range(blocks):
        part = share[slot, b]
        if part != 0.0 and lanes == 1:
            step = scale[0] * coefficient[i, 0]
            for j in range(x.shape[1]):
                row, level = weight_row(x, slot, j, b * size), part * feature_level(x, slot, j)
                weights[row, 0] += step * level
        elif part != 0.0:
            for j in range(x.shape[1]):
                row, level = weight_row(x, slot, j, b * size), part * feature_level(x, slot, j)
                for lane in range(lanes):
                    weights[row, lane] += scale[lane] * coefficient[i, lane] * level


@njit(cache=True, nogil=True, forceinline=True)
def td_error_at(weights, experience, slot, factor, out, i):
    """Write ``factor`` times a slot's TD error, ``c + gamma v(s') - v(s)``, into ``out[i]``."""
    x, share, x_next, share_next, c, gamma = experience
    for lane in range(weights.shape[1]):
        out[i, lane] = factor * c[slot]
    accumulate(weights, x, share, slot, -factor, out, i)
    accumulate(weights, x_next, share_next, slot, factor * gamma[slot], out, i)


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
def table_error_at(weights, experience, slot, own, factor, out, i):
    """Write the same sums as :func:`td_error_at`, in fewer passes.

    Each state must have one feature, and only the block `own` may have a share in the state.
    """
    x, share, x_next, share_next, c, gamma = experience
    blocks, lanes = share.shape[1], weights.shape[1]
    size = weights.shape[0] // blocks
    here, near = weight_row(x, slot, 0, own * size), -factor * share[slot, own]
    near, constant = near * feature_level(x, slot, 0), factor * c[slot]
    started = False
    for b in range(blocks):
        far = factor * gamma[slot] * share_next[slot, b]
        if far != 0.0:
            there, far = weight_row(x_next, slot, 0, b * size), far * feature_level(x_next, slot, 0)
            if started:
                for lane in range(lanes):
                    out[i, lane] += far * weights[there, lane]
            else:
                for lane in range(lanes):
                    before = constant + near * weights[here, lane]
                    out[i, lane] = before + far * weights[there, lane]
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


@njit(cache=True, nogil=True, forceinline=True)
def weight_at(w, i, lane):
    """Return the weight of the i-th drawn transition in a lane, from w [k] or [k, lanes]."""
    if w.ndim == 1:
        return w[i]
    else:
        return w[i, lane]


@njit(cache=True, nogil=True, forceinline=True)
def weigh_lanes(error, w, i, j):
    """Multiply a row of errors [k, lanes] by the weights of a drawn transition, [k, lanes]."""
    for lane in range(error.shape[1]):
        # Weight 0 gives 0 even if the error is infinite.
        error[j, lane] = w[i, lane] * error[j, lane] if w[i, lane] != 0.0 else 0.0


@njit(cache=True, nogil=True)
def td_direction(target, scale, weights, experience, slots, w):
    """Add ``scale [lane] * sum_i w_i delta_i x_i`` of a batch of slots [k] to the target.

    The target may be the weights themselves: all errors are computed before anything changes.
    """
    x, share, x_next, share_next, c, gamma = experience
    errors = np.empty((slots.size, weights.shape[1]))
    if w.ndim > 1:
        for i in range(slots.size):
            td_error_at(weights, experience, slots[i], 1.0, errors, i)
            weigh_lanes(errors, w, i, i)
        for i in range(slots.size):
            add_at(target, scale, x, share, slots[i], errors, i)
        return
    if x.shape[1] > 1 or share.shape[1] > 1:
        for i in range(slots.size):
            slot, weight = np.uint64(slots[i]), weight_at(w, i, 0)
            if weight == 0.0:
                continue
            own = only_block(share, slot) if x.shape[1] == 1 else -1
            if own >= 0:
                table_error_at(weights, experience, slot, own, weight, errors, i)
            else:
                td_error_at(weights, experience, slot, weight, errors, i)
        for i in range(slots.size):
            if weight_at(w, i, 0) != 0.0:
                add_at(target, scale, x, share, slots[i], errors, i)
        return
    # With one feature and one block the values are a table: one pass instead of three.
    for i in range(slots.size):
        slot, weight = np.uint64(slots[i]), weight_at(w, i, 0)
        here, there = weight_row(x, slot, 0, 0), weight_row(x_next, slot, 0, 0)
        near = weight * share[slot, 0] * feature_level(x, slot, 0)
        far = weight * gamma[slot] * share_next[slot, 0] * feature_level(x_next, slot, 0)
        constant = weight * c[slot]
        for lane in range(weights.shape[1]):
            errors[i, lane] = constant + far * weights[there, lane] - near * weights[here, lane]
    for i in range(slots.size):
        slot = np.uint64(slots[i])
        row, level = weight_row(x, slot, 0, 0), share[slot, 0] * feature_level(x, slot, 0)
        for lane in range(weights.shape[1]):
            target[row, lane] += scale[lane] * errors[i, lane] * level
