"""Features of states for models of a behaviour: a basis that needs no thought, or the caller's own.

By default states become a matrix with a constant 1, each dimension in units of its standard
deviation, and, for few dimensions, what bends:

    x(s) = [1, z_1, ..., z_d,  max(z_j - knot, 0) for the quantiles of each z_j,  z_j z_k]

A log-linear model of these features is a smooth function of each dimension, and of pairs. All
numbers come from the states that a model is fitted to. The splines of scikit-learn have no products
of two dimensions; and with features of ours an estimated policy is a few arrays, which a file can
hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Floats
from gvf.common.checks import brief
from gvf.common.fields import as_matrix

_KNOTS = 7
"""The number of quantiles at which the default features bend in each dimension."""
_MOST_BENT = 32
"""The largest number of dimensions that bend; with more the features are linear."""
_MOST_PAIRED = 10
"""The largest number of dimensions with products of pairs."""


@dataclass(frozen=True, eq=False)
class BentFeatures:
    """The default features, with the numbers of the states they were made for.

    Args:
        mean: the mean of each dimension, [d].
        scale: its standard deviation, [d]; 0 where it is constant.
        knots: the knots of each dimension, [d, knots]; empty if it does not bend.
        paired: True for products of pairs.

    Example:
        >>> import numpy as np
        >>> from gvf.behaviour.state_features import BentFeatures
        >>> states = np.random.default_rng(0).normal(size=(100, 2))
        >>> BentFeatures.of(states)(states).shape  # 1 + 2 + 2 * 7 + 3
        (100, 20)
    """

    mean: Floats
    scale: Floats
    knots: Floats
    paired: bool

    @classmethod
    def of(cls, states: Any) -> BentFeatures:
        """Make the features for some states, [m, ...]."""
        x = as_matrix(states)
        scale = x.std(axis=0)
        # Rounding gives a constant column a tiny standard deviation.
        scale[scale <= 1e-12 * np.abs(x).max(axis=0, initial=0.0)] = 0.0
        mean, varies = x.mean(axis=0), int((scale > 0).sum())
        knots = np.zeros((x.shape[1], 0))
        if 0 < varies <= _MOST_BENT:
            z = _standard(x, mean, scale)
            knots = np.quantile(z, np.arange(1, _KNOTS + 1) / (_KNOTS + 1), axis=0).T
        return cls(mean, scale, knots, varies <= _MOST_PAIRED)

    @property
    def linear(self) -> int:
        """The number of the first features, the constant and those that are linear."""
        return 1 + int((self.scale > 0).sum())

    def __call__(self, states: Any) -> Floats:
        """Return the features of states, float64[m, f]."""
        x = as_matrix(states)
        if x.shape[1] != len(self.mean):
            raise ValueError(
                f"states have {x.shape[1]} numbers, and those of the log have {len(self.mean)}"
            )
        varies = self.scale > 0
        # Far from all states of the log a product would be huge, and the estimate meaningless.
        z = np.clip(_standard(x, self.mean, self.scale)[:, varies], -8.0, 8.0)
        parts = [np.ones((len(z), 1)), z]
        parts += [np.maximum(z - knots, 0.0) for knots in self.knots[varies].T]
        if self.paired:
            first, second = np.triu_indices(z.shape[1])
            parts.append(z[:, first] * z[:, second])
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class UserFeatures:
    """The caller's features, with a constant 1 in front.

    Args:
        features: a function from states to active indices int[m, a], or to numbers [m, f].
        size: the number of features, for active indices.
    """

    features: Any
    size: int

    def __call__(self, states: Any) -> Floats | ActiveFeatures:
        """Return the features of states: active ones, or float64[m, 1 + f]."""
        x = np.asarray(self.features(states))
        if x.ndim == 1:
            x = x[:, None]
        if x.ndim != 2 or len(x) != len(states) or x.dtype.kind not in "biuf":
            raise ValueError(
                f"features must be [m, f] numbers, got {x.dtype}{list(x.shape)} for {len(states)} "
                "states"
            )
        ones = np.ones((len(x), 1))
        if self.size and x.dtype.kind in "iu":
            columns = np.concatenate([np.zeros((len(x), 1), np.int64), x + 1], axis=1)
            return ActiveFeatures(columns, 1 + self.size)
        x = x.astype(np.float64)
        if not np.isfinite(x).all():
            row, column = np.argwhere(~np.isfinite(x))[0]
            raise ValueError(f"feature {column} of row {row} is {x[row, column]}")
        return np.concatenate([ones, x], axis=1)


@dataclass(frozen=True, eq=False)
class ActiveFeatures:
    """Features of which a few are 1, as a matrix [m, size] for what models do with one.

    Args:
        columns: the columns that are 1, int64[m, a]; the first of them is always 0.
        size: the number of columns.
    """

    columns: NDArray[np.int64]
    size: int

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return len(self.columns), self.size

    def __matmul__(self, weights: Floats) -> Floats:
        """Return the matrix times weights [size, n]."""
        return weights[self.columns].sum(axis=1)

    def sparse(self) -> Any:
        """Return the matrix as one of SciPy."""
        from scipy.sparse import csr_array

        m, a = self.columns.shape
        ones, starts = np.ones(m * a), np.arange(0, m * a + 1, a)
        return csr_array((ones, self.columns.ravel(), starts), shape=self.shape)


def state_features(features: Any, states: Any) -> BentFeatures | UserFeatures:
    """Return the caller's features, tried on a state, or those by default for None."""
    if features is None:
        return BentFeatures.of(states)
    if not callable(features):
        raise TypeError(
            "features must be a feature map such as gvf.features.TileCoder, or a function from "
            f"states to numbers [m, f], not {brief(features)}"
        )
    checked = UserFeatures(features, int(getattr(features, "size", 0)))
    checked(states[:1])
    return checked


def weighed_products(
    x: Floats | ActiveFeatures, weights: Floats, values: Floats
) -> tuple[Floats, Floats]:
    """Return x^T W x, [f, f], and x^T W v, [f], for weights [m] on the diagonal of W.

    Example:
        >>> import numpy as np
        >>> from gvf.behaviour.state_features import ActiveFeatures, weighed_products
        >>> x = ActiveFeatures(np.array([[0, 1], [0, 2]]), size=3)
        >>> weighed_products(x, np.array([1.0, 2.0]), np.array([5.0, 10.0]))
        (array([[3., 1., 2.],
               [1., 1., 0.],
               [2., 0., 2.]]), array([25.,  5., 20.]))
    """
    if not isinstance(x, ActiveFeatures):
        return x.T @ (x * weights[:, None]), x.T @ (weights * values)
    a, n = x.columns.shape[1], x.size
    squares, sums = np.zeros(n * n), np.zeros(n)
    for column in x.columns.T:
        at = (column[:, None] * n + x.columns).ravel()
        squares += np.bincount(at, np.repeat(weights, a), n * n)
        sums += np.bincount(column, weights * values, n)
    return squares.reshape(n, n), sums


def row_products(x: Floats | ActiveFeatures, matrix: Array) -> Floats:
    """Return x_i^T A x_i for each row x_i of the features and a matrix A [f, f]: [m]."""
    if not isinstance(x, ActiveFeatures):
        return ((x @ matrix) * x).sum(axis=1)
    parts = [matrix[column[:, None], x.columns].sum(axis=1) for column in x.columns.T]
    return np.sum(parts, axis=0)


def _standard(x: Array, mean: Floats, scale: Floats) -> Floats:
    return (x - mean) / np.where(scale > 0, scale, 1.0)
