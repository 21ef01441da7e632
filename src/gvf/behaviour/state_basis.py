"""Features of states for models of a behaviour: a basis that needs no thought, or the caller's own.

By default states become a matrix with a constant 1, each dimension in units of its standard
deviation, and, for few dimensions, what bends:

    x(s) = [1, z_1, ..., z_d,  max(z_j - knot, 0) for the quantiles of each z_j,  z_j z_k]

A log-linear model of these features is a smooth function of each dimension, and of pairs. All
numbers come from the states that a model is fitted to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Floats
from gvf.common.checks import brief

KNOTS = 7
"""The number of quantiles at which the default basis bends in each dimension."""
MOST_BENT = 32
"""The largest number of dimensions that bend; with more the basis is linear."""
MOST_PAIRED = 10
"""The largest number of dimensions with products of pairs."""


def flat(states: Any) -> Floats:
    """Return states as a matrix float64[m, d]; the fields of a structured array in order.

    Example:
        >>> import numpy as np
        >>> from gvf.behaviour.state_basis import flat
        >>> flat(np.zeros((3, 2, 2))).shape
        (3, 4)
    """
    states = np.asarray(states)
    if states.dtype.names is not None:
        return np.concatenate([flat(states[name]) for name in states.dtype.names], axis=1)
    return states.reshape(len(states), -1).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Basis:
    """The default features, with the numbers of the states they were made for.

    Args:
        mean: the mean of each dimension, [d].
        scale: its standard deviation, [d]; 0 where it is constant.
        knots: the knots of each dimension that varies, [d, knots]; empty if it does not bend.
        paired: True for products of pairs.

    Example:
        >>> import numpy as np
        >>> from gvf.behaviour.state_basis import Basis
        >>> states = np.random.default_rng(0).normal(size=(100, 2))
        >>> Basis.of(states)(states).shape  # 1 + 2 + 2 * 7 + 3
        (100, 20)
    """

    mean: Floats
    scale: Floats
    knots: Floats
    paired: bool

    @classmethod
    def of(cls, states: Any) -> Basis:
        """Make the basis for some states, [m, ...]."""
        x = flat(states)
        scale = x.std(axis=0)
        # Rounding gives a constant column a tiny standard deviation.
        scale[scale <= 1e-12 * np.abs(x).max(axis=0, initial=0.0)] = 0.0
        mean, varies = x.mean(axis=0), int((scale > 0).sum())
        knots = np.zeros((x.shape[1], 0))
        if 0 < varies <= MOST_BENT:
            z = _standard(x, mean, scale)
            knots = np.quantile(z, np.arange(1, KNOTS + 1) / (KNOTS + 1), axis=0).T
        return cls(mean, scale, knots, varies <= MOST_PAIRED)

    @property
    def linear(self) -> int:
        """The number of the first features, the constant and those that are linear."""
        return 1 + int((self.scale > 0).sum())

    def __call__(self, states: Any) -> Floats:
        """Return the features of states, float64[m, f]."""
        x = flat(states)
        if x.shape[1] != len(self.mean):
            raise ValueError(
                f"states have {x.shape[1]} numbers, and those of the log have {len(self.mean)}"
            )
        varies = self.scale > 0
        # Far from all states of the log a product would be huge, and the estimate meaningless.
        z = np.clip(_standard(x, self.mean, self.scale)[:, varies], -8.0, 8.0)
        parts = [np.ones((len(z), 1)), z]
        if self.knots.shape[1]:
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

    @classmethod
    def of(cls, features: Any, states: Any) -> UserFeatures:
        """Check the features on some states."""
        if not callable(features):
            raise TypeError(
                "features must be a feature map such as gvf.features.TileCoder, or a function from "
                "states "
                f"to numbers [m, f], not {brief(features)}"
            )
        basis = cls(features, int(getattr(features, "size", 0)))
        basis(states[:1])
        return basis

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
        if self.size and x.dtype.kind in "iu":
            return ActiveFeatures(np.asarray(x, np.int64), self.size)
        x = x.astype(np.float64)
        if not np.isfinite(x).all():
            row, column = np.argwhere(~np.isfinite(x))[0]
            raise ValueError(f"feature {column} of row {row} is {x[row, column]}")
        return np.concatenate([np.ones((len(x), 1)), x], axis=1)


@dataclass(frozen=True, eq=False)
class ActiveFeatures:
    """Features of which a few are 1, with a constant 1 in front: as a matrix [m, 1 + size].

    Args:
        indices: the features that are 1, int64[m, a].
        size: the number of features.
    """

    indices: NDArray[np.int64]
    size: int

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return len(self.indices), 1 + self.size

    def __matmul__(self, weights: Floats) -> Floats:
        """Return the matrix times weights [1 + size, n]."""
        return weights[0] + weights[1:][self.indices].sum(axis=1)

    def transposed_times(self, values: Floats) -> Any:
        """Return the transposed matrix times values [m, n]."""
        each, flat_indices = self.indices.shape[1], self.indices.ravel()
        sums: Any = [
            np.bincount(flat_indices, np.repeat(column, each), self.size) for column in values.T
        ]
        return np.concatenate([values.sum(axis=0)[None], np.stack(sums, axis=1)])


def transposed_times(x: Floats | ActiveFeatures, values: Floats) -> Floats:
    """Return the transposed features times values [m, n]: [f, n]."""
    if isinstance(x, ActiveFeatures):
        return x.transposed_times(values)
    return x.T @ values


def _standard(x: Array, mean: Floats, scale: Floats) -> Floats:
    return (x - mean) / np.where(scale > 0, scale, 1.0)
