"""The vocabulary of online kernels: weights, traces and features of neighbouring lanes.

Every function works on WIDTH lanes of arrays [rows, lanes], from a lane on, and takes and returns
vectors of as many numbers (:mod:`gvf.common.vector`). A factor or step may also be one number.
Features are read as in :mod:`gvf.features`.

    dot(w, x)              value(w, x, i, lane)
    c + gamma' v' - v      td_error(w, x, x_next, i, now, lane)
    dot(z, h)              inner(z, h, trace, lane)
    z *= f                 fade(z, f, trace, lane)
    w += a x               add_features(w, a, x, i, lane)
    w += a z               add_trace(w, a, z, trace, lane)

Traces are dense, and the features of a state are few. So a stream lists the rows that may have a
trace other than 0, and only these are visited.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gvf.common.vector import load, store, zeros
from gvf.features import feature_index, feature_level, weight_row

WIDTH = 8
"""The number of lanes in a vector."""
_SMALLEST = np.finfo(np.float64).tiny
_FEW = 16  # rows that are not worth looking through


@njit(cache=True, nogil=True, forceinline=True)
def of_lanes(state, parameter, lane):
    """Return a parameter of the lanes."""
    return load(zeros(WIDTH), state.lanes, parameter, lane)


@njit(cache=True, nogil=True, forceinline=True)
def value(weights, x, i, lane):
    """Return the product of weights and features."""
    total = zeros(WIDTH)
    for j in range(x.shape[1]):
        row = weight_row(x, i, j, 0)
        total += feature_level(x, i, j) * load(total, weights, row, lane)
    return total


@njit(cache=True, nogil=True)
def overlap(x, y, i):
    """Return the product of two rows of features, a number."""
    total = 0.0
    for j in range(x.shape[1]):
        for k in range(y.shape[1]):
            if feature_index(x, i, j) == feature_index(y, i, k):
                total += feature_level(x, i, j) * feature_level(y, i, k)
    return total


@njit(cache=True, nogil=True, forceinline=True)
def td_error(weights, x, x_next, i, now, lane):
    """Return the TD error of the transition."""
    delta = now.c - value(weights, x, i, lane)
    # A weight may be infinite, and 0 times it would be no number.
    if now.gamma_next != 0.0:
        delta += now.gamma_next * value(weights, x_next, i, lane)
    return delta


@njit(cache=True, nogil=True, forceinline=True)
def inner(z, other, trace, lane):
    """Return the product of a trace and weights."""
    total = zeros(WIDTH)
    for k in range(trace.counts[0]):
        row = np.uint64(trace.listed[k])
        total += load(total, z, row, lane) * load(total, other, row, lane)
    return total


@njit(cache=True, nogil=True, forceinline=True)
def fade(z, factor, trace, lane):
    """Multiply a trace by a factor."""
    factors = zeros(WIDTH) + factor
    for k in range(trace.counts[0]):
        row = np.uint64(trace.listed[k])
        store(z, row, lane, factors * load(factors, z, row, lane))


@njit(cache=True, nogil=True, forceinline=True)
def add_features(target, step, x, i, lane):
    """Add a multiple of the features to weights or to a trace."""
    steps = zeros(WIDTH) + step
    for j in range(x.shape[1]):
        row = weight_row(x, i, j, 0)
        store(target, row, lane, load(steps, target, row, lane) + steps * feature_level(x, i, j))


@njit(cache=True, nogil=True, forceinline=True)
def add_trace(target, step, z, trace, lane):
    """Add a multiple of a trace to weights."""
    steps = zeros(WIDTH) + step
    for k in range(trace.counts[0]):
        row = np.uint64(trace.listed[k])
        added = steps * load(steps, z, row, lane)
        store(target, row, lane, load(steps, target, row, lane) + added)


@njit(cache=True, nogil=True, forceinline=True)
def enlist(trace, x, i, first, last, now):
    """List the rows of the features at a step, after removal of rows whose traces are all 0.

    Where the continuation into the state is 0, all traces of the lanes are set to 0. Otherwise rows
    are looked through after a ratio of 0, which makes most traces 0, and whenever their number has
    doubled. A trace below the smallest normal number counts as 0: rounding would keep it alive for
    ever.
    """
    counts = trace.counts
    if now.gamma == 0.0:
        _remove(trace, first, last, np.inf)
    elif now.rho_before == 0.0 or counts[0] > counts[1]:
        _remove(trace, first, last, _SMALLEST)
        counts[1] = max(2 * counts[0], _FEW)
    for j in range(x.shape[1]):
        row = weight_row(x, i, j, 0)
        if trace.is_listed[row] == 0 and feature_level(x, i, j) != 0.0:
            trace.is_listed[row] = 1
            trace.listed[counts[0]] = row
            counts[0] += 1


@njit(cache=True, nogil=True)
def _remove(trace, first, last, limit):
    """Remove rows whose traces are all below a limit, and set these traces to 0."""
    kept = 0
    for k in range(trace.counts[0]):
        row = trace.listed[k]
        if limit < np.inf and _reaches(trace.traces, row, first, last, limit):
            trace.listed[kept] = row
            kept += 1
        else:
            trace.is_listed[row] = 0
            trace.traces[:, row, first:last] = 0.0
    trace.counts[0] = kept


@njit(cache=True, nogil=True)
def _reaches(traces, row, first, last, limit):
    """Return True if a trace of the row is not below the limit; a NaN is not."""
    for t in range(traces.shape[0]):
        for lane in range(first, last):
            if not abs(traces[t, row, lane]) < limit:
                return True
    return False
