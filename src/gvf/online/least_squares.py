"""Least squares: one accumulator of weighed rows, one solver, and LSTD(lambda) along a stream.

The mean update of TD(0) by rows with weights s leads to the weights that solve

    A w = b,    A = sum_i s_i x_i (x_i - gamma_i x'_i)^T,    b = sum_i s_i c_i x_i.

There is no step size. :class:`Equations` adds up such rows and solves. A row's weight is the share
p w of a correction in :class:`gvf.LSTDLearner`, and that share times the count of the row's episode
in replicates of :func:`gvf.bootstrap`. :class:`LSTD` solves for the fixed point of TD(lambda). It
adds the trace z in place of s x, in the loop of the stream (:mod:`gvf.online.online_loop`), because
only that loop knows the trace. A row takes time proportional to the square of its active features,
memory is the square of the features that occur, and a solution takes their cube.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Floats
from gvf.common.checks import brief, is_number
from gvf.common.vector import load, store, zeros
from gvf.features import feature_level, weight_row
from gvf.online.algorithm import Algorithm, OnlineState
from gvf.online.lane_vectors import WIDTH, add_features, add_trace, fade, of_lanes
from gvf.online.semi_gradient import follow
from gvf.updates.linear_kernels import NARROW, Experience
from gvf.updates.update import Lanes

LARGEST_CONDITION = 1e10
"""A condition number above which equations count as singular: they do not determine the weights.

It is below what rounding errors of sums over millions of steps leave of a singular matrix.
"""
RIDGE = 1e-9
"""The share of a feature's own weight that may then be added to the diagonal."""
_PROBES = 4
"""The number of random right sides from which the condition is estimated."""


@dataclass(frozen=True)
class Solution:
    """The solution of the equations.

    Attributes:
        weights: the weights of all features, float64[size]; 0 for those that did not occur.
        used: the number of features that have a mass, and so a weight.
        condition: an estimate of the condition number of the scaled equations.
        is_singular: True if the equations do not determine the weights.
        residual: the length of A w - b as a share of that of b, scaled, without the ridge.
    """

    weights: Floats
    used: int
    condition: float
    is_singular: bool
    residual: float

    def checkpoint(self) -> dict[str, Array]:
        """Return the solution as arrays, so that it is not computed again."""
        return {f"solution/{name}": np.array(value) for name, value in vars(self).items()}

    @classmethod
    def restored(cls, arrays: Arrays) -> Self | None:
        """Return the solution of a checkpoint; None if it has none."""
        if "solution/weights" not in arrays:
            return None
        named: dict[str, Any] = {f.name: arrays[f"solution/{f.name}"][()] for f in fields(cls)}
        return cls(**named | {"weights": named["weights"].copy()})


class Equations:
    """A and b of LSTD, added up row by row.

    Only features that occur have a row and a column, in the order in which they came, so tile
    coders with many tiles need little if few of them are ever active. Action values have a block of
    features for each action.

    Args:
        size: the number of weights: features, times blocks.
        most: the largest number of them that may occur.

    Example:
        >>> import numpy as np
        >>> from gvf.online.least_squares import Equations
        >>> from gvf.updates.linear_kernels import Experience
        >>> equations = Equations(3, most=100)
        >>> x, x_next = np.array([[0], [2]], np.int32), np.array([[2], [0]], np.int32)
        >>> shares, ones = np.ones((2, 1)), np.ones(2)
        >>> equations.add(Experience(x, shares, x_next, shares, ones, 0.5 * ones), weights=ones)
        >>> equations.solve(0.0).weights, equations.features
        (array([2., 0., 2.]), array([0, 2]))
    """

    def __init__(self, size: int, most: int) -> None:
        self.size, self.most = size, most
        self._place = np.full(size, -1, np.int64)
        self._listed = np.zeros(0, np.int64)
        self._count = np.zeros(1, np.int64)
        self._a, self._b, self._mass = np.zeros((0, 0)), np.zeros(0), np.zeros(0)
        self._takes_new = True

    def emptied(self) -> Self:
        """Return equations without rows, for rows that have no features but those of these."""
        other = copy(self)
        other._a, other._b, other._mass = (
            np.zeros_like(sums) for sums in (self._a, self._b, self._mass)
        )
        other._takes_new = False
        return other

    @property
    def features(self) -> NDArray[np.int64]:
        """The features that occurred, in the order in which they came, int64[count]."""
        return self._listed[: self._count[0]]

    def add(self, rows: Experience, weights: Floats) -> None:
        """Add rows, one after the other, with weights float64[m].

        Raises:
            ValueError: if more features occur than may. Nothing has changed then.
        """
        dense = rows.x.dtype.kind == "f"
        if dense and not self._count[0]:
            self._list(np.arange(self.size))
        if self._takes_new and self._count[0] < self.size:
            new = _place_new(rows, weights, self._count[0], self._place)
            if len(new):
                self._list(new)
        sums = self._a, self._b, self._mass
        if dense and rows.share.shape[1] == 1:
            columns = rows.x, rows.x_next, rows.cumulant, rows.continuation
            _add_dense(*columns, weights, *sums)
        else:
            _add_listed(rows, weights, self._place, *sums)

    def _list(self, new: NDArray[np.int64]) -> None:
        """Give new features the next places, and make room for them."""
        have = int(self._count[0])
        count = have + len(new)
        try:
            self._make_room(count)
        except ValueError:
            self._place[new] = -1
            raise
        self._place[new] = np.arange(have, count)
        self._listed[have:count], self._count[0] = new, count

    def _make_room(self, count: int) -> None:
        """Allocate for so many features, with some room for more."""
        have = len(self._listed)
        if count <= have:
            return
        if count > self.most:
            gigabytes = 8 * count**2 / 1e9
            raise ValueError(
                f"{count:,} features occur, and least squares needs the square of their number, "
                f"{gigabytes:,.1f} GB: take fewer tiles or features, or a gvf.Learner; or allow "
                f"more than max_features={self.most}"
            )
        rows = count if count == self.size else min(max(count, 2 * have, 256), self.most, self.size)
        sums = self._listed, self._a, self._b, self._mass
        self._listed = np.zeros(rows, np.int64)
        self._a, self._b, self._mass = np.zeros((rows, rows)), np.zeros(rows), np.zeros(rows)
        self._listed[:have], self._a[:have, :have], self._b[:have], self._mass[:have] = sums

    def solve(
        self,
        regulariser: float | None = None,
        *,
        singular: Literal["ridge", "least norm"] = "ridge",
    ) -> Solution:
        """Solve for the weights.

        With D the diagonal matrix of each feature's mass, the sum of s x^2, the equations are
        scaled to ``D^-1/2 A D^-1/2 y = D^-1/2 b`` and ``w = D^-1/2 y``. So a feature that seldom
        occurs makes them no harder to solve. Features without mass have weight 0.

        Args:
            regulariser: the number added to the diagonal of A.
            singular: without a regulariser, the solution of equations that do not determine the
                weights: with a ridge of 1e-9 of each feature's mass, or the one of least norm.
        """
        weights, used = np.zeros(self.size), np.flatnonzero(self._mass[: self._count[0]] > 0.0)
        if not len(used):
            return Solution(weights, 0, 1.0, is_singular=False, residual=0.0)
        scale = 1.0 / np.sqrt(self._mass[used])
        a = self._a[used[:, None], used]
        a *= scale
        a *= scale[:, None]
        b = self._b[used] * scale
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            weights[:] = np.nan
            return Solution(weights, len(used), np.inf, is_singular=True, residual=np.inf)
        diagonal = np.zeros(len(used)) if regulariser is None else regulariser * scale**2
        y, condition = _solved(a, b, diagonal)
        is_singular = not condition <= LARGEST_CONDITION
        if is_singular and regulariser is None:
            if singular == "ridge":
                y, _ = _solved(a, b, np.full(len(used), RIDGE))
            else:
                y = least_norm(self._a[used[:, None], used], self._b[used]) / scale
        size = float(np.sqrt((b * b).sum()))
        with np.errstate(over="ignore", invalid="ignore"):
            left = float(np.sqrt(((a @ y - b) ** 2).sum()))
        weights[self.features[used]] = y * scale
        return Solution(weights, len(used), condition, is_singular, left / size if size else left)

    def checkpoint(self) -> dict[str, Array]:
        """Return the arrays of the state."""
        n = int(self._count[0])
        return {
            "features": self.features.copy(),
            "a": self._a[:n, :n].copy(),
            "b": self._b[:n].copy(),
            "mass": self._mass[:n].copy(),
        }

    def restore(self, arrays: Arrays) -> None:
        """Restore a checkpoint."""
        features, n = arrays["features"], len(arrays["features"])
        shapes = [arrays[name].shape for name in ("a", "b", "mass")]
        if shapes != [(n, n), (n,), (n,)] or len(np.unique(features)) != n:
            raise ValueError(f"the equations of {n} features have the shapes {shapes}")
        if n and not (features.min() >= 0 and features.max() < self.size):
            raise ValueError(f"features should be from 0 to {self.size - 1}")
        self.__init__(self.size, self.most)
        self._make_room(n)
        self._listed[:n], self._count[0] = features, n
        self._place[features] = np.arange(n)
        self._a[:n, :n], self._b[:n], self._mass[:n] = (arrays[k] for k in ("a", "b", "mass"))


def least_norm(a: Floats, b: Floats) -> Floats:
    """Solve A w = b; of several solutions, return that of least norm.

    Singular values below a share of the largest, 1 / :data:`LARGEST_CONDITION`, count as 0.
    """
    return np.asarray(np.linalg.lstsq(a, b, rcond=1.0 / LARGEST_CONDITION)[0], np.float64)


def _solved(a: Floats, b: Floats, ridge: Floats) -> tuple[Floats, float]:
    """Solve with a ridge [n] on the diagonal; estimate the condition from random right sides."""
    ridged, right = a + np.diag(ridge), _right_sides(len(b)).copy()
    right[:, 0] = b
    try:
        solved = np.linalg.solve(ridged, right)
    except np.linalg.LinAlgError:
        return np.full(len(b), np.nan), np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        longest = np.sqrt((solved[:, 1:] ** 2).sum(axis=0)).max()
        condition = float(np.sqrt((ridged**2).sum()) * longest)
    return np.array(solved[:, 0], np.float64), condition


@lru_cache(maxsize=8)
def _right_sides(size: int) -> Floats:
    """Return room for a right side, and random ones of length 1: float64[size, 1 + probes]."""
    probes = np.random.default_rng(0).standard_normal((size, _PROBES))
    probes /= np.sqrt((probes**2).sum(axis=0))
    return np.column_stack([np.zeros(size), probes])


@njit(cache=True, nogil=True, forceinline=True)
def _place_row(x, share, i, factor, place, new, count, have):
    """Give the features of row i that have no place the next ones; return how many are new."""
    size = place.size // share.shape[1]
    for block in range(share.shape[1]):
        part = factor * share[i, block]
        if part != 0.0:
            for j in range(x.shape[1]):
                f = weight_row(x, i, j, block * size)
                if place[f] < 0 and part * feature_level(x, i, j) != 0.0:
                    place[f], new[count] = have + count, f
                    count += 1
    return count


@njit(cache=True, nogil=True)
def _place_new(rows, weights, have, place):
    """Give features that have no place yet the next ones; return these features."""
    x, share, x_next, share_next, _, gamma = rows
    most = 2 * x.shape[1] * share.shape[1] * weights.size
    new, count = np.empty(min(most, place.size - have), np.int64), 0
    for i in range(weights.size):
        if weights[i] != 0.0:
            count = _place_row(x, share, i, 1.0, place, new, count, have)
            count = _place_row(x_next, share_next, i, gamma[i], place, new, count, have)
    return new[:count]


@njit(cache=True, nogil=True, forceinline=True)
def _list_row(x, share, i, factor, place, places, levels):
    """List the places of the features of row i that are not multiplied by 0, and their levels."""
    count, size = 0, place.size // share.shape[1]
    for block in range(share.shape[1]):
        part = factor * share[i, block]
        if part != 0.0:
            for j in range(x.shape[1]):
                level = part * feature_level(x, i, j)
                if level != 0.0:
                    places[count] = place[weight_row(x, i, j, block * size)]
                    levels[count] = level
                    count += 1
    return count


@njit(cache=True, nogil=True)
def _add_listed(rows, weights, place, a, b, mass):
    """Add rows feature by feature; each feature has a place."""
    x, share, x_next, share_next, c, gamma = rows
    width = x.shape[1] * share.shape[1]
    near, far = np.empty(width, np.uint64), np.empty(width, np.uint64)
    level, level_far = np.empty(width), np.empty(width)
    for i in range(weights.size):
        if weights[i] == 0.0:
            continue
        n = _list_row(x, share, i, 1.0, place, near, level)
        m = _list_row(x_next, share_next, i, gamma[i], place, far, level_far)
        for j in range(n):
            p, part = near[j], weights[i] * level[j]
            b[p] += part * c[i]
            mass[p] += abs(part * level[j])
            for q in range(n):
                a[p, near[q]] += part * level[q]
            for q in range(m):
                a[p, far[q]] -= part * level_far[q]


@njit(cache=True, nogil=True)
def _add_dense(x, x_next, cumulant, continuation, weights, a, b, mass):
    """Add rows of real-valued features, four at a time, for which A is read and written once.

    The last of them may be fewer; the others of the four then have parts of 0.
    """
    size, rows, count = x.shape[1], weights.size, 0
    part, change = np.zeros((4, size)), np.zeros((4, size))
    for i in range(rows):
        s, c, gamma = weights[i], cumulant[i], continuation[i]
        if s != 0.0:
            for q in range(size):
                change[count, q] = x[i, q]
            if gamma != 0.0:
                for q in range(size):
                    change[count, q] -= gamma * x_next[i, q]
            for p in range(size):
                part[count, p] = s * x[i, p]
                b[p] += part[count, p] * c
                mass[p] += abs(part[count, p] * x[i, p])
            count += 1
        if count == 4 or (count > 0 and i == rows - 1):
            part[count:] = 0.0
            for p in range(size):
                parts = part[0, p], part[1, p], part[2, p], part[3, p]
                lane = size if parts == (0.0, 0.0, 0.0, 0.0) else 0
                while lane + NARROW <= size:
                    store(
                        a, p, lane, _add_four(load(zeros(NARROW), a, p, lane), parts, change, lane)
                    )
                    lane += NARROW
                for rest in range(lane, size):
                    a[p, rest] = _add_four(a[p, rest], parts, change, rest)
            count = 0


@njit(cache=True, nogil=True, forceinline=True)
def _add_four(total, parts, change, lane):
    """Add four rows in their order, so that the sums have the bits of one row after the other."""
    total += parts[0] * load(total, change, 0, lane)
    total += parts[1] * load(total, change, 1, lane)
    total += parts[2] * load(total, change, 2, lane)
    total += parts[3] * load(total, change, 3, lane)
    return total


@njit(cache=True, nogil=True)
def lstd(state, trace, x, x_next, i, now, first, last):
    """Add a step to A and b; memory: the rows of A, then b; lanes: lambda; numbers: emphatic."""
    z, rows = trace.traces[0], state.weights.shape[0]
    for lane in range(first, last, WIDTH):
        decay, emphasis = of_lanes(state, 0, lane), zeros(WIDTH) + 1.0
        if state.numbers[0] != 0.0:
            emphasis = follow(trace, zeros(WIDTH) + now.gamma, decay, now, lane)
        fade(z, now.rho * now.gamma * decay, trace, lane)
        add_features(z, now.rho * emphasis, x, i, lane)
        for k in range(trace.counts[0]):
            row = trace.listed[k]
            part = load(decay, z, row, lane)
            add_features(state.memory[row], part, x, i, lane)
            add_features(state.memory[row], -now.gamma_next * part, x_next, i, lane)
        add_trace(state.memory[rows], now.c, z, trace, lane)


@dataclass(frozen=True)
class LSTD(Algorithm):
    """Least squares TD(lambda), off-policy: the ratio is in the trace, and there is no step size.

    Singular values below 1e-10 of the largest count as 0. Where the equations have several
    solutions, the one of least norm is taken.

    Args:
        trace_decay: lambda, in [0, 1]; a number or one for each lane.
        emphatic: True for the fixed point of emphatic TD(lambda).
        regulariser: the number added to the diagonal of A, which is a sum over all steps.

    Example:
        >>> import gvf
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.5)
        >>> learner = gvf.OnlineLearner(
        ...     question,
        ...     gvf.features.OneHot(2),
        ...     gvf.online.LSTD(),
        ...     behaviour=gvf.policies.Uniform(2),
        ... )
        >>> for state in (0, 1, 0):
        ...     learner.observe(state, 1, 1.0, 1 - state, False)
        >>> learner.predict([0, 1])
        array([2., 2.])
    """

    trace_decay: Lanes = 0.0
    emphatic: bool = False
    regulariser: float = 0.0

    lane_fields = ("trace_decay",)
    unit_fields = ("trace_decay",)
    kernel = staticmethod(lstd)
    traces = 1
    remedy = "take a regulariser, a smaller trace_decay, or a behaviour closer to the target"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_regulariser(self.regulariser)

    @property
    def uses_interest(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """True if emphatic."""
        return self.emphatic

    def memories(self, rows: int) -> int:
        """Return the number of rows of A, and one more for b."""
        return rows + 1

    def numbers(self) -> Sequence[float]:
        """Return 1 if emphatic, else 0."""
        return (float(self.emphatic),)

    def weights(self, state: OnlineState) -> Floats:
        """Solve for the weights [rows, lanes]; NaN in lanes whose sums are not finite."""
        rows, lanes = len(state.weights), self.lanes or 1
        solutions = np.full((rows, lanes), np.nan)
        for lane in range(lanes):
            a, b = state.memory[:rows, :, lane], state.memory[rows, :, lane]
            if np.isfinite(a).all() and np.isfinite(b).all():
                solutions[:, lane] = least_norm(a + self.regulariser * np.eye(rows), b)
        return solutions


def check_regulariser(regulariser: Any) -> None:
    """Raise ValueError if a number cannot be added to the diagonal of equations."""
    if not (is_number(regulariser) and regulariser >= 0.0):
        raise ValueError(f"regulariser must be finite and not negative, got {brief(regulariser)}")
