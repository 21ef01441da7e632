"""Least squares for every replicate: exact answers, with no step size and no noise of draws.

The fixed point of TD(0) over a log in which unit e occurs N_e times solves

    A w = b,    A = sum_i N_i p_i w_i x_i (x_i - gamma_i x'_i)^T,    b = sum_i N_i p_i w_i c_i x_i,

with the correction's pair (p, w), as in :func:`gvf.online.window_lstd`. A and b are sums over
units, so a replicate takes one weighted sum over the rows and one solution. It is what replicates
that learn (:mod:`gvf.intervals.replicate_learner`) tend to, as their step size falls and their
updates grow in number.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gvf.common.arrays import Array, Floats
from gvf.features import feature_level, weight_row
from gvf.intervals.whole_log import WholeLog
from gvf.online.least_squares import CUTOFF

_SINGULAR = 1e10
"""The condition number beyond which equations count as singular."""


@njit(cache=True, nogil=True)
def _add(experience, weight, a, b):
    """Add all rows with their weights [n] to A [rows, rows] and b [rows]."""
    x, share, x_next, share_next, c, gamma = experience
    blocks = share.shape[1]
    size = b.size // blocks
    for i in range(weight.size):
        if weight[i] == 0.0:
            continue
        for block in range(blocks):
            for j in range(x.shape[1]):
                row = weight_row(x, i, j, block * size)
                level = weight[i] * share[i, block] * feature_level(x, i, j)
                if level == 0.0:
                    continue
                b[row] += level * c[i]
                for other in range(blocks):
                    for k in range(x.shape[1]):
                        near = share[i, other] * feature_level(x, i, k)
                        far = gamma[i] * share_next[i, other] * feature_level(x_next, i, k)
                        a[row, weight_row(x, i, k, other * size)] += level * near
                        a[row, weight_row(x_next, i, k, other * size)] -= level * far


class ReplicateEquations:
    """The rows of a log, ready to be summed into the equations of any replicate.

    Args:
        whole: the whole log.
    """

    def __init__(self, whole: WholeLog) -> None:
        correction, inputs, p = whole.correction, whole.inputs, whole.masses
        w = correction.weights(inputs, correction.means(inputs), p=p)
        self._weight = np.where(p > 0.0, p * w, 0.0)
        self._unit = whole.unit
        self._experience = whole.values.experience(whole.columns)
        self._rows = len(whole.values.state.weights)

    def solve(self, copies: Array) -> Floats:
        """Solve for the weights [rows] of a replicate, from the count of each of its units [units].

        A feature that no row of the replicate has keeps the weight 0, as in TD.
        """
        weight = self._weight * copies[self._unit]
        a, b = np.zeros((self._rows, self._rows)), np.zeros(self._rows)
        x, x_next = self._experience.x, self._experience.x_next
        if x.dtype.kind == "f" and self._experience.share.shape[1] == 1:
            far = self._experience.continuation[:, None] * x_next
            a += (weight[:, None] * x).T @ (x - far)
            b += (weight * self._experience.cumulant) @ x
        else:
            _add(self._experience, weight, a, b)
        known = np.flatnonzero(a.any(axis=1))
        solution = np.zeros(self._rows)
        solution[known] = solved(a[np.ix_(known, known)], b[known])
        return solution


def solved(a: Floats, b: Floats) -> Floats:
    """Solve A w = b; the solution of least norm, if there are several."""
    if not len(a):
        return b
    try:
        inverse = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        inverse = np.full_like(a, np.inf)
    condition = np.abs(a).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max()
    if condition < _SINGULAR:
        return inverse @ b
    return np.asarray(np.linalg.lstsq(a, b, rcond=CUTOFF)[0], np.float64)
