"""TD(0) with the whole mini-batch at once, and the optimisers that take its step.

With the TD error ``delta_i = c_i + gamma_i v(s'_i) - v(s_i)``, all at the same weights, the batch's
direction ``g = sum_i w_i delta_i x_i``, and a step size alpha:

    SGD        W += alpha g
    RMSProp    m = decay m + (1 - decay) g^2,   W += alpha g / sqrt(m + epsilon)
    Adam       n = beta1 n + (1 - beta1) g,   m = beta2 m + (1 - beta2) g^2,
               W += alpha n / (1 - beta1^t) / (sqrt(m / (1 - beta2^t)) + epsilon)

Note where epsilon stands: in the paper's RMSProp inside the root, in Adam outside.
Only rows of weights with a feature in the batch change under SGD and RMSProp, so only those are
visited; RMSProp's decay of the others is made up for, exactly, when they are next seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from gvf.learner.linear import Array, add_batch, weight_row, weighted_td_errors


@njit(cache=True, nogil=True)
def td_sgd(
    weights, memory, marks, lanes, numbers, x, share, x_next, share_next, c, gamma, slots, w
):
    """W += alpha g; lanes: alpha."""
    errors = np.empty((slots.size, weights.shape[1]))
    weighted_td_errors(weights, x, share, x_next, share_next, c, gamma, slots, w, errors)
    add_batch(weights, lanes[0], x, share, slots, w, errors)


@njit(cache=True, nogil=True)
def _direction(target, weights, x, share, x_next, share_next, c, gamma, slots, w):
    """Add the batch's direction g to the target [rows, lanes]."""
    errors = np.empty((slots.size, weights.shape[1]))
    ones = np.ones(weights.shape[1])
    weighted_td_errors(weights, x, share, x_next, share_next, c, gamma, slots, w, errors)
    add_batch(target, ones, x, share, slots, w, errors)


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
def td_rmsprop(
    weights, memory, marks, lanes, numbers, x, share, x_next, share_next, c, gamma, slots, w
):
    """W += alpha g / sqrt(m + epsilon), visiting the batch's rows only.

    memory: g (0 before and after) and m; marks: for each row the update at which m was last brought
    up to date, and behind them a clock; numbers: decay, epsilon.
    """
    direction, square = memory[0], memory[1]
    decay, epsilon = numbers[0], numbers[1]
    _direction(direction, weights, x, share, x_next, share_next, c, gamma, slots, w)
    clock = marks[-1] + 1
    marks[-1] = clock
    blocks = share.shape[1]
    size = weights.shape[0] // blocks
    for i in range(slots.size):
        for b in range(blocks):
            if share[slots[i], b] == 0.0:
                continue
            for j in range(x.shape[1]):
                row = weight_row(x, slots[i], j, b * size)
                if marks[row] == clock:
                    continue
                fade = _power(decay, clock - marks[row])
                marks[row] = clock
                for lane in range(weights.shape[1]):
                    g = direction[row, lane]
                    m = fade * square[row, lane] + (1.0 - decay) * g * g
                    square[row, lane] = m
                    weights[row, lane] += lanes[0, lane] * g / np.sqrt(m + epsilon)
                    direction[row, lane] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def td_adam(
    weights, memory, marks, lanes, numbers, x, share, x_next, share_next, c, gamma, slots, w
):
    """Adam; memory: g (0 before and after), n, m; numbers: betas, epsilon, and both beta^t."""
    direction, mean, square = memory[0], memory[1], memory[2]
    beta1, beta2, epsilon = numbers[0], numbers[1], numbers[2]
    _direction(direction, weights, x, share, x_next, share_next, c, gamma, slots, w)
    numbers[3] *= beta1
    numbers[4] *= beta2
    for row in range(weights.shape[0]):
        for lane in range(weights.shape[1]):
            g = direction[row, lane]
            direction[row, lane] = 0.0
            mean[row, lane] = beta1 * mean[row, lane] + (1.0 - beta1) * g
            square[row, lane] = beta2 * square[row, lane] + (1.0 - beta2) * g * g
            n = mean[row, lane] / (1.0 - numbers[3])
            m = square[row, lane] / (1.0 - numbers[4])
            weights[row, lane] += lanes[0, lane] * n / (np.sqrt(m) + epsilon)


@dataclass(frozen=True)
class Optimiser:
    """What TD needs of an optimiser: a kernel, and what the kernel keeps."""

    kernel: ClassVar[Callable[..., None]]
    memories: ClassVar[int]

    def marks(self, rows: int) -> Array:
        """Whole numbers to keep between updates."""
        return np.zeros(0, np.int64)

    def numbers(self) -> Sequence[float]:
        """The kernel's constants."""
        return ()


@dataclass(frozen=True)
class SGD(Optimiser):
    """Plain stochastic gradient descent: W += alpha g.

    Example:
        >>> import gvf
        >>> gvf.TD(step_size=0.5, optimiser=gvf.SGD())
        TD(step_size=0.5, optimiser=SGD())
    """

    kernel = staticmethod(td_sgd)
    memories = 0


@dataclass(frozen=True)
class RMSProp(Optimiser):
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

    kernel = staticmethod(td_rmsprop)
    memories = 2

    def __post_init__(self) -> None:
        _check_unit(decay=self.decay)

    def marks(self, rows: int) -> Array:
        """When each row was last seen, and a clock."""
        return np.zeros(rows + 1, np.int64)

    def numbers(self) -> Sequence[float]:
        """Decay and epsilon."""
        return self.decay, self.epsilon


@dataclass(frozen=True)
class Adam(Optimiser):
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

    kernel = staticmethod(td_adam)
    memories = 3

    def __post_init__(self) -> None:
        _check_unit(beta1=self.beta1, beta2=self.beta2)

    def numbers(self) -> Sequence[float]:
        """Both betas, epsilon, and the betas' powers so far."""
        return self.beta1, self.beta2, self.epsilon, 1.0, 1.0


def _check_unit(**values: float) -> None:
    for name, value in values.items():
        if not 0.0 <= value < 1.0:
            raise ValueError(f"{name} must be in [0, 1), got {value}")
