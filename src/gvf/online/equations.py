"""The equations of LSTD, ``A w = b``, added up row by row.

    A += s x (x - gamma' x')^T,    b += s c x

with a share s of each row. Only features that occur have a row and a column, in the order in which
they came, so tile coders with many tiles need little if few of them are ever active.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Floats

CERTAIN = 1e10
"""A condition number of scaled equations above which they do not determine the weights."""
RIDGE = 1e-9
"""The share of a feature's own weight that is then added to the diagonal."""
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
    """A and b of LSTD.

    Args:
        size: the number of features.
        most: the largest number of features that may occur.

    Example:
        >>> import numpy as np
        >>> from gvf.online.equations import Equations
        >>> equations = Equations(3, most=100)
        >>> x, x_next = np.array([[0], [2]], np.int32), np.array([[2], [0]], np.int32)
        >>> ones = np.ones(2)
        >>> equations.add(x, x_next, share=ones, cumulant=ones, continuation=0.5 * ones)
        >>> equations.solve(0.0).weights, equations.features
        (array([2., 0., 2.]), array([0, 2]))
    """

    def __init__(self, size: int, most: int) -> None:
        self.size, self.most = size, most
        self._place = np.full(size, -1, np.int64)
        self._listed = np.zeros(0, np.int64)
        self._count = np.zeros(1, np.int64)
        self._a, self._b, self._mass = np.zeros((0, 0)), np.zeros(0), np.zeros(0)

    @property
    def features(self) -> NDArray[np.int64]:
        """The features that occurred, in the order in which they came, int64[count]."""
        return self._listed[: self._count[0]]

    def add(
        self, x: Array, x_next: Array, *, share: Floats, cumulant: Floats, continuation: Floats
    ) -> None:
        """Add rows, one after the other.

        Args:
            x: the features of the states: int32[m, a] (active indices) or float64[m, size].
            x_next: the features of the next states.
            share: the share of each row, float64[m].
            cumulant: float64[m].
            continuation: float64[m].

        Raises:
            ValueError: if more features occur than may. Nothing has changed then.
        """
        dense = x.dtype.kind == "f"
        if dense and not self._count[0]:
            self._make_room(self.size)
            self._place[:] = self._listed[:] = np.arange(self.size)
            self._count[0] = self.size
        if not dense:
            self._make_room(int(self._count[0]) + _new(x, x_next, share, continuation, self._place))
        add = _add_dense if dense else _add_active
        arrays = (self._place, self._listed, self._count, self._a, self._b, self._mass)
        add(x, x_next, share, cumulant, continuation, *arrays)

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
        a = np.zeros((rows, rows))
        a[:have, :have] = self._a
        self._a = a
        self._listed = np.pad(self._listed, (0, rows - have))
        self._b, self._mass = np.pad([self._b, self._mass], ((0, 0), (0, rows - have)))

    def solve(self, ridge: float | None) -> Solution:
        """Solve for the weights.

        With D the diagonal matrix of each feature's mass, the sum of s x^2, the equations are
        scaled to ``D^-1/2 A D^-1/2 y = D^-1/2 b`` and ``w = D^-1/2 y``. So a feature that seldom
        occurs makes them no harder to solve. Features without mass have weight 0.

        Args:
            ridge: the number added to the diagonal of A. None adds nothing if the equations
                determine the weights, and otherwise 1e-9 of each feature's mass.
        """
        weights, used = np.zeros(self.size), np.flatnonzero(self._mass[: self._count[0]] > 0.0)
        if not len(used):
            return Solution(weights, 0, 1.0, is_singular=False, residual=0.0)
        scale = 1.0 / np.sqrt(self._mass[used])
        a = self._a[np.ix_(used, used)]
        a *= scale
        a *= scale[:, None]
        b = self._b[used] * scale
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            weights[:] = np.nan
            return Solution(weights, len(used), np.inf, is_singular=True, residual=np.inf)
        diagonal = np.zeros(len(used)) if ridge is None else ridge * scale**2
        y, condition = _solved(a, b, diagonal)
        singular = not condition <= CERTAIN
        if singular and ridge is None:
            y, _ = _solved(a, b, np.full(len(used), RIDGE))
        size = float(np.sqrt((b * b).sum()))
        with np.errstate(over="ignore", invalid="ignore"):
            left = float(np.sqrt(((a @ y - b) ** 2).sum()))
        weights[self.features[used]] = y * scale
        return Solution(weights, len(used), condition, singular, left / size if size else left)

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


def _solved(a: Floats, b: Floats, ridge: Floats) -> tuple[Floats, float]:
    """Solve with a ridge [n] on the diagonal; estimate the condition from random right sides."""
    probes = np.random.default_rng(0).standard_normal((len(b), _PROBES))
    probes /= np.sqrt((probes**2).sum(axis=0))
    ridged = a + np.diag(ridge)
    try:
        solved = np.linalg.solve(ridged, np.column_stack([b, probes]))
    except np.linalg.LinAlgError:
        return np.full(len(b), np.nan), np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        longest = np.sqrt((solved[:, 1:] ** 2).sum(axis=0)).max()
        condition = float(np.sqrt((ridged**2).sum()) * longest)
    return np.array(solved[:, 0], np.float64), condition


@njit(cache=True, nogil=True)
def _new(x, x_next, share, continuation, place):
    """Count the features that have no place yet; the places stay."""
    count = 0
    for i in range(share.size):
        if share[i] != 0.0:
            for j in range(x.shape[1]):
                if place[x[i, j]] == -1:
                    place[x[i, j]] = -2
                    count += 1
            if continuation[i] != 0.0:
                for j in range(x.shape[1]):
                    if place[x_next[i, j]] == -1:
                        place[x_next[i, j]] = -2
                        count += 1
    if count > 0:
        for i in range(share.size):
            for j in range(x.shape[1]):
                for f in (x[i, j], x_next[i, j]):
                    if place[f] == -2:
                        place[f] = -1
    return count


@njit(cache=True, nogil=True)
def _at(f, place, listed, count):
    """Return the place of a feature, a new one if it has none."""
    if place[f] < 0:
        place[f] = count[0]
        listed[count[0]] = f
        count[0] += 1
    return place[f]


@njit(cache=True, nogil=True)
def _add_active(x, x_next, share, cumulant, continuation, place, listed, count, a, b, mass):
    """Add rows of active features."""
    for i in range(share.size):
        s = share[i]
        if s == 0.0:
            continue
        for j in range(x.shape[1]):
            p = _at(x[i, j], place, listed, count)
            b[p] += s * cumulant[i]
            mass[p] += abs(s)
        # One kind after the other, so that new features get their places in the order of the rows.
        for j in range(x.shape[1]):
            p = place[x[i, j]]
            for q in range(x.shape[1]):
                a[p, place[x[i, q]]] += s
        if continuation[i] != 0.0:
            back = s * continuation[i]
            for q in range(x.shape[1]):
                r = _at(x_next[i, q], place, listed, count)
                for j in range(x.shape[1]):
                    a[place[x[i, j]], r] -= back


@njit(cache=True, nogil=True)
def _add_dense(x, x_next, share, cumulant, continuation, place, listed, count, a, b, mass):
    """Add rows of real-valued features."""
    size = x.shape[1]
    change = np.empty(size)
    for i in range(share.size):
        s = share[i]
        if s == 0.0:
            continue
        for q in range(size):
            change[q] = x[i, q] - (
                continuation[i] * x_next[i, q] if continuation[i] != 0.0 else 0.0
            )
        for p in range(size):
            if x[i, p] != 0.0:
                part = s * x[i, p]
                b[p] += part * cumulant[i]
                mass[p] += abs(part * x[i, p])
                for q in range(size):
                    a[p, q] += part * change[q]
