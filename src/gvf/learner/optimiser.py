"""Optimisers: from a batch's weighted TD errors to new weights.

With the batch's direction ``g = sum_i w_i delta_i x_i`` and a step size alpha:

    SGD        W += alpha g
    RMSProp    m = decay m + (1 - decay) g^2,   W += alpha g / sqrt(m + epsilon)
    Adam       n = beta1 n + (1 - beta1) g,   m = beta2 m + (1 - beta2) g^2,
               W += alpha n / (1 - beta1^t) / (sqrt(m / (1 - beta2^t)) + epsilon)

Note where epsilon stands: in the paper's RMSProp inside the root, in Adam outside.
Only rows of weights with a feature in the batch change under SGD and RMSProp, so only those are
visited; RMSProp's decay of the others is made up for, exactly, when they are next seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numba import njit

from gvf.learner.linear import Array, add_at, feature_index


class Optimiser(Protocol):
    """What a TD update needs of an optimiser."""

    def start(self, rows: int, lanes: int) -> dict[str, Array]:
        """The arrays it keeps between updates."""
        ...

    def apply(
        self,
        state: dict[str, Array],
        step_size: Array,
        x: Array,
        share: Array,
        slots: Array,
        errors: Array,
    ) -> None:
        """Change ``state["weights"]`` [rows, lanes], given weighted TD errors [k, lanes]."""
        ...


@njit(cache=True, nogil=True)
def sgd(weights, step_size, x, share, slots, errors):
    """W += alpha g."""
    for i in range(slots.size):
        add_at(weights, step_size, x, share, slots[i], errors, i)


@njit(cache=True, nogil=True)
def _power(base, exponent):
    """Whole powers by squaring: unlike `pow`, the same bits on every machine."""
    result = 1.0
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def rmsprop(
    weights, step_size, gradient, square, seen, clock, decay, epsilon, x, share, slots, errors
):
    """W += alpha g / sqrt(m + epsilon), visiting the batch's rows only.

    gradient [rows, lanes] is 0 before and after; square [rows, lanes] is m as of the update number
    seen [rows]; clock [1] counts updates.
    """
    clock[0] += 1
    ones = np.ones(weights.shape[1])
    for i in range(slots.size):
        add_at(gradient, ones, x, share, slots[i], errors, i)
    blocks = share.shape[1]
    size = weights.shape[0] // blocks
    for i in range(slots.size):
        for b in range(blocks):
            if share[slots[i], b] != 0.0:
                for j in range(x.shape[1]):
                    row = b * size + feature_index(x, slots[i], j)
                    if seen[row] == clock[0]:
                        continue
                    fade = _power(decay, clock[0] - seen[row])
                    seen[row] = clock[0]
                    for lane in range(weights.shape[1]):
                        g = gradient[row, lane]
                        m = fade * square[row, lane] + (1.0 - decay) * g * g
                        square[row, lane] = m
                        weights[row, lane] += step_size[lane] * g / np.sqrt(m + epsilon)
                        gradient[row, lane] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def adam(
    weights,
    step_size,
    gradient,
    mean,
    square,
    powers,
    beta1,
    beta2,
    epsilon,
    x,
    share,
    slots,
    errors,
):
    """Adam; mean and square are its moments [rows, lanes], powers [2] beta1^t and beta2^t."""
    ones = np.ones(weights.shape[1])
    for i in range(slots.size):
        add_at(gradient, ones, x, share, slots[i], errors, i)
    powers[0] *= beta1
    powers[1] *= beta2
    for row in range(weights.shape[0]):
        for lane in range(weights.shape[1]):
            g = gradient[row, lane]
            gradient[row, lane] = 0.0
            mean[row, lane] = beta1 * mean[row, lane] + (1.0 - beta1) * g
            square[row, lane] = beta2 * square[row, lane] + (1.0 - beta2) * g * g
            n = mean[row, lane] / (1.0 - powers[0])
            m = square[row, lane] / (1.0 - powers[1])
            weights[row, lane] += step_size[lane] * n / (np.sqrt(m) + epsilon)


@dataclass(frozen=True)
class SGD:
    """Plain stochastic gradient descent: W += alpha g.

    Example:
        >>> import gvf
        >>> gvf.TD(step_size=0.5, optimiser=gvf.SGD())
        TD(step_size=0.5, optimiser=SGD())
    """

    def start(self, rows: int, lanes: int) -> dict[str, Array]:
        """Nothing is kept."""
        return {}

    def apply(
        self,
        state: dict[str, Array],
        step_size: Array,
        x: Array,
        share: Array,
        slots: Array,
        errors: Array,
    ) -> None:
        """Change the weights."""
        sgd(state["weights"], step_size, x, share, slots, errors)


@dataclass(frozen=True)
class RMSProp:
    """Steps divided by a running root mean square of g: W += alpha g / sqrt(m + epsilon).

    Args:
        decay: of the running mean square m.
        epsilon: added inside the root.

    Example:
        >>> import gvf
        >>> gvf.TD(step_size=0.001, optimiser=gvf.RMSProp())
        TD(step_size=0.001, optimiser=RMSProp(decay=0.9, epsilon=1e-08))
    """

    decay: float = 0.9
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _check_unit(decay=self.decay)

    def start(self, rows: int, lanes: int) -> dict[str, Array]:
        """The direction, its mean square, when each row was last seen, and a clock."""
        return {
            "gradient": np.zeros((rows, lanes)),
            "square": np.zeros((rows, lanes)),
            "seen": np.zeros(rows, np.int64),
            "clock": np.zeros(1, np.int64),
        }

    def apply(
        self,
        state: dict[str, Array],
        step_size: Array,
        x: Array,
        share: Array,
        slots: Array,
        errors: Array,
    ) -> None:
        """Change the weights."""
        rmsprop(
            state["weights"],
            step_size,
            state["gradient"],
            state["square"],
            state["seen"],
            state["clock"],
            self.decay,
            self.epsilon,
            x,
            share,
            slots,
            errors,
        )


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015), with both moments corrected for their start at 0.

    Every weight moves at every update, seen in the batch or not.

    Args:
        beta1: decay of the running mean of g.
        beta2: decay of its running mean square.
        epsilon: added outside the root.

    Example:
        >>> import gvf
        >>> gvf.TD(step_size=0.001, optimiser=gvf.Adam(beta1=0.8))
        TD(step_size=0.001, optimiser=Adam(beta1=0.8, beta2=0.999, epsilon=1e-08))
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _check_unit(beta1=self.beta1, beta2=self.beta2)

    def start(self, rows: int, lanes: int) -> dict[str, Array]:
        """The direction, its mean and mean square, and the powers of the betas."""
        return {
            **{name: np.zeros((rows, lanes)) for name in ("gradient", "mean", "square")},
            "powers": np.ones(2),
        }

    def apply(
        self,
        state: dict[str, Array],
        step_size: Array,
        x: Array,
        share: Array,
        slots: Array,
        errors: Array,
    ) -> None:
        """Change the weights."""
        adam(
            state["weights"],
            step_size,
            state["gradient"],
            state["mean"],
            state["square"],
            state["powers"],
            self.beta1,
            self.beta2,
            self.epsilon,
            x,
            share,
            slots,
            errors,
        )


def _check_unit(**values: float) -> None:
    for name, value in values.items():
        if not 0.0 <= value < 1.0:
            raise ValueError(f"{name} must be in [0, 1), got {value}")
