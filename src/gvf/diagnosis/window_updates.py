"""The updates of a window in sparse form: their lengths, their sums, their mini-batches.

The update of transition i is ``Delta_i = near_i x_i + far_i x'_i``. For TD(0) near is the TD error
and far is 0; gradient TD has ``far_i = -gamma_i e_i``; updates given as an array are dense features
with near 1. With a active features of d, a sum over the window takes n a steps and d numbers, so
memory is linear in the window. A sparse vector is summed in a scratch array [d], which is then
cleared where it was written. This module knows only arrays; a learner supplies its own updates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gvf.common.arrays import Array
from gvf.features import feature_level, weight_row
from gvf.policies.action_checks import numpy_array


class Updates(NamedTuple):
    """The updates ``near_i x_i + far_i x'_i`` of a window's transitions, in d dimensions."""

    near: Array
    """float64[n]"""
    x: Array
    """int32[n, a] (active indices) or float64[n, d / blocks] (dense)."""
    share: Array
    """float64[n, blocks]"""
    far: Array
    x_next: Array
    share_next: Array


def updates_of_array(updates: Any) -> tuple[Updates, int]:
    """Convert update vectors [n, d], or numbers [n], to Updates; return them and d."""
    array = np.asarray(numpy_array(updates, "updates"), np.float64)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"updates must be [n, d], a vector for each transition, got shape {array.shape}"
        )
    vectors = np.ascontiguousarray(array if array.ndim == 2 else array[:, None])
    bad = np.flatnonzero(~np.isfinite(vectors.sum(axis=1)))
    if len(bad) and not np.isfinite(vectors[bad]).all():
        i, j = np.argwhere(~np.isfinite(vectors))[0].tolist()
        raise ValueError(f"updates must be finite, got {vectors[i, j]} in row {i}, column {j}")
    ones, share = np.ones(len(array)), np.ones((len(array), 1))
    return Updates(ones, vectors, share, 0.0 * ones, vectors, share), vectors.shape[1]


@njit(cache=True, nogil=True, forceinline=True)
def _add(vector, factor, x, share, i):
    """Add ``factor`` times slot i's features to a vector [d]."""
    size = vector.size // share.shape[1]
    for b in range(share.shape[1]):
        part = factor * share[i, b]
        if part != 0.0:
            for j in range(x.shape[1]):
                vector[weight_row(x, i, j, b * size)] += part * feature_level(x, i, j)


@njit(cache=True, nogil=True, forceinline=True)
def _drain(vector, centre, x, share, i):
    """Clear a vector v [d] at slot i's features; return the sum of ``v (v - 2 c)`` over them.

    The total over all slots that were added to v is |v - c|^2 - |c|^2, because a feature that is
    listed twice is 0 the second time.
    """
    size, total = vector.size // share.shape[1], 0.0
    for b in range(share.shape[1]):
        if share[i, b] != 0.0:
            for j in range(x.shape[1]):
                row = weight_row(x, i, j, b * size)
                total += vector[row] * (vector[row] - 2.0 * centre[row])
                vector[row] = 0.0
    return total


@njit(cache=True, nogil=True)
def weighted_sum(near, x, share, far, x_next, share_next, d, weights):
    """Return the sum over the window of weights [n] times updates, [d]."""
    out = np.zeros(d)
    for i in range(near.size):
        _add(out, weights[i] * near[i], x, share, i)
        _add(out, weights[i] * far[i], x_next, share_next, i)
    return out


@njit(cache=True, nogil=True)
def squared_distances(near, x, share, far, x_next, share_next, d, slots, w, centre):
    """Return ``|X_b - centre|^2`` of ``X_b = sum_j w_bj Delta_bj`` for batches of slots [B, k]."""
    vector, out = np.zeros(d), np.full(slots.shape[0], np.sum(centre * centre))
    for b in range(out.size):
        for j in range(slots.shape[1]):
            i = slots[b, j]
            _add(vector, w[b, j] * near[i], x, share, i)
            _add(vector, w[b, j] * far[i], x_next, share_next, i)
        for j in range(slots.shape[1]):
            i = slots[b, j]
            if w[b, j] != 0.0:
                out[b] += _drain(vector, centre, x, share, i)
                if far[i] != 0.0:
                    out[b] += _drain(vector, centre, x_next, share_next, i)
        out[b] = max(out[b], 0.0)
    return out
