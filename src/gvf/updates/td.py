"""TD(0) with the whole mini-batch at once and any optimiser, or one transition after the other.

With the TD error ``delta_i = c_i + gamma_i v(s'_i) - v(s_i)`` and the correction's weights w, the
direction of a mini-batch is ``g = sum_i w_i delta_i x_i``, all delta_i at the same W, and a step
with the step size alpha is

    SGD          W += alpha g
    RMSProp      m = decay m + (1 - decay) g^2,   W += alpha g / sqrt(m + epsilon)
    Adam         n = beta1 n + (1 - beta1) g,   m = beta2 m + (1 - beta2) g^2,
                 W += alpha n / (1 - beta1^t) / (sqrt(m / (1 - beta2^t)) + epsilon)
    incremental  W += alpha k w_i delta_i x_i   for i = 1 ... k, each delta_i at the W after i - 1

Note that epsilon is inside the root in the paper's RMSProp, and outside in Adam.
Under SGD and RMSProp only rows of weights with a feature in the batch change, so only those are
visited. RMSProp's decay of the other rows is applied, exactly, when they are next visited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from gvf.common.arrays import Array
from gvf.common.checks import brief, is_number
from gvf.common.vector import load, root, store, zeros
from gvf.updates.linear_kernels import (
    NARROW,
    WIDE,
    add_block,
    block_error,
    td_direction,
    weight_row,
)
from gvf.updates.update import Lanes, Update


@njit(cache=True, nogil=True)
def td_sgd(state, experience, slots, w):
    """Apply W += alpha g; lanes: alpha."""
    td_direction(state.weights, state.lanes[0], state.weights, experience, slots, w)


@njit(cache=True, nogil=True, error_model="numpy")
def td_rmsprop(state, experience, slots, w):
    """Apply W += alpha g / sqrt(m + epsilon), visiting the batch's rows only.

    memory: g (0 before and after) and m; marks: the last update of m for each row, then a clock;
    lanes: alpha; numbers: decay, epsilon.
    """
    weights, memory, marks, _, numbers = state
    x, share = experience.x, experience.share
    direction, decay = memory[0], numbers[0]
    td_direction(direction, np.ones(weights.shape[1]), weights, experience, slots, w)
    clock = marks[-1] + 1
    marks[-1] = clock
    blocks = share.shape[1]
    size = weights.shape[0] // blocks
    fades = np.empty(min(64, slots.size * x.shape[1]))
    for steps in range(fades.size):
        fades[steps] = _power(decay, steps)
    # Rows that occur only in transitions of weight 0 come last: their g is 0, so only m decays.
    for last in range(2):
        for i in range(slots.size):
            if (w[i] == 0.0) != (last == 1):
                continue
            for b in range(blocks):
                if share[slots[i], b] == 0.0:
                    continue
                for j in range(x.shape[1]):
                    row = weight_row(x, slots[i], j, b * size)
                    steps = clock - marks[row]
                    if steps == 0:
                        continue
                    fade = fades[steps] if steps < fades.size else _power(decay, steps)
                    marks[row], lane = clock, 0
                    while lane + NARROW <= weights.shape[1]:
                        rmsprop_step(zeros(NARROW), state, row, fade, last == 0, lane)
                        lane += NARROW
                    for rest in range(lane, weights.shape[1]):
                        rmsprop_step(0.0, state, row, fade, last == 0, rest)


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def rmsprop_step(zero, state, row, fade, moves, lane):
    """Take the step of one row, in as many lanes as `zero` has numbers, and clear its g.

    A row that does not move has g = 0, and only its m decays.
    """
    weights, direction, square = state.weights, state.memory[0], state.memory[1]
    decay, epsilon = state.numbers[0], state.numbers[1]
    m = fade * load(zero, square, row, lane)
    if not moves:
        store(square, row, lane, m)
        return
    g = load(zero, direction, row, lane)
    m += (1.0 - decay) * g * g
    step = load(zero, state.lanes, 0, lane) * g / root(m + epsilon)
    store(square, row, lane, m)
    store(weights, row, lane, load(zero, weights, row, lane) + step)
    store(direction, row, lane, zero)


@njit(cache=True, nogil=True)
def _power(base, exponent):
    """Compute an integer power by squaring: unlike `pow`, the same bits on every machine."""
    result = 1.0
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def td_adam(state, experience, slots, w):
    """Apply Adam; memory: g (0 before and after), n, m; numbers: betas, epsilon, both beta^t."""
    weights, memory, _, lanes, numbers = state
    direction, mean, square = memory[0], memory[1], memory[2]
    beta1, beta2, epsilon = numbers[0], numbers[1], numbers[2]
    td_direction(direction, np.ones(weights.shape[1]), weights, experience, slots, w)
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


@njit(cache=True, nogil=True)
def td_incremental(state, experience, slots, w):
    """Apply the batch's transitions one after the other, each with k * w_i; lanes: alpha."""
    lane, lanes = 0, state.weights.shape[1]
    while lane + WIDE <= lanes:
        incremental_block(zeros(WIDE), state, experience, slots, w, lane)
        lane += WIDE
    while lane + NARROW <= lanes:
        incremental_block(zeros(NARROW), state, experience, slots, w, lane)
        lane += NARROW
    for rest in range(lane, lanes):
        incremental_block(0.0, state, experience, slots, w, rest)


@njit(cache=True, nogil=True)
def incremental_block(zero, state, experience, slots, w, lane):
    """Apply the batch's transitions to as many lanes as `zero` has numbers."""
    weights, alpha, k = state.weights, load(zero, state.lanes, 0, lane), float(slots.size)
    x, share = experience.x, experience.share
    size = weights.shape[0] // share.shape[1]
    for i in range(slots.size):
        slot = slots[i]
        if w[i] == 0.0:
            continue
        error = block_error(zero, weights, experience, slot, k * w[i], lane)
        for b in range(share.shape[1]):
            if share[slot, b] != 0.0:
                add_block(alpha * error, weights, x, slot, share[slot, b], b * size, lane)


@dataclass(frozen=True)
class Optimiser:
    """The optimiser of :class:`TD`: a kernel and the sizes of the arrays that it keeps."""

    kernel: ClassVar[Callable[..., None]]
    memories: ClassVar[int]
    usual_step_size: ClassVar[float | None] = None
    """The default step size, if it does not depend on the features; else None."""

    def marks(self, rows: int) -> Array:
        """Return the integers to keep between updates."""
        return np.zeros(0, np.int64)

    def numbers(self) -> Sequence[float]:
        """Return the kernel's constants."""
        return ()


@dataclass(frozen=True)
class SGD(Optimiser):
    """Plain stochastic gradient descent: W += alpha g.

    Example:
        >>> import gvf
        >>> gvf.updates.TD(step_size=0.5, optimiser=gvf.updates.SGD())
        TD(step_size=0.5, optimiser=SGD())
    """

    kernel = staticmethod(td_sgd)
    memories = 0


@dataclass(frozen=True)
class RMSProp(Optimiser):
    """RMSProp: steps divided by a running root mean square, W += alpha g / sqrt(m + epsilon).

    Args:
        decay: the decay of the running mean square m.
        epsilon: the number added inside the root.

    Example:
        >>> import gvf
        >>> gvf.updates.TD(step_size=0.001, optimiser=gvf.updates.RMSProp())
        TD(step_size=0.001, optimiser=RMSProp(decay=0.9, epsilon=1e-08))
    """

    decay: float = 0.9
    epsilon: float = 1e-8

    kernel = staticmethod(td_rmsprop)
    memories = 2
    usual_step_size = 1e-3

    def __post_init__(self) -> None:
        _check_unit(decay=self.decay)

    def marks(self, rows: int) -> Array:
        """Return the last update of each row, and a clock."""
        return np.zeros(rows + 1, np.int64)

    def numbers(self) -> Sequence[float]:
        """Return decay and epsilon."""
        return self.decay, self.epsilon


@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam (Kingma and Ba 2015), with both moments corrected for their start at 0.

    Every weight changes at every update, even if its feature is not in the batch.

    Args:
        beta1: the decay of the running mean of g.
        beta2: the decay of the running mean square of g.
        epsilon: the number added outside the root.

    Example:
        >>> import gvf
        >>> gvf.updates.TD(step_size=0.001, optimiser=gvf.updates.Adam(beta1=0.8))
        TD(step_size=0.001, optimiser=Adam(beta1=0.8, beta2=0.999, epsilon=1e-08))
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    kernel = staticmethod(td_adam)
    memories = 3
    usual_step_size = 1e-3

    def __post_init__(self) -> None:
        _check_unit(beta1=self.beta1, beta2=self.beta2)

    def numbers(self) -> Sequence[float]:
        """Return both betas, epsilon, and the initial powers of the betas."""
        return self.beta1, self.beta2, self.epsilon, 1.0, 1.0


@dataclass(frozen=True)
class TD(Update):
    """TD(0) with the whole mini-batch at once: W += alpha sum_i w_i delta_i x_i.

    Args:
        step_size: the step size alpha of the weighted *sum* (w contains the 1/k). With a sequence,
            one copy of the weights learns with each, side by side. The default for SGD is
            0.1 / (largest squared length of the features): 0.1 for one-hot features, 0.1 / tilings
            for tile coding. The default for RMSProp and Adam is 0.001.
        optimiser: ``SGD()``, ``RMSProp()`` or ``Adam()``.

    Example:
        >>> import gvf
        >>> gvf.updates.TD(step_size=[0.1, 0.2]).lanes
        2
    """

    step_size: Lanes | None = None
    optimiser: Optimiser = SGD()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.optimiser, Optimiser):
            raise TypeError(
                "optimiser must be gvf.updates.SGD(), gvf.updates.RMSProp() or gvf.updates.Adam(), "
                "got "
                f"{brief(self.optimiser)}"
            )

    def default_step_size(self, squared_length: Array, weight: Array, batch_size: int) -> Array:
        """Return the optimiser's usual step size; for SGD, 0.1 / (squared length) or less."""
        usual = self.optimiser.usual_step_size
        if usual is not None:
            return np.full_like(squared_length, usual)
        return super().default_step_size(squared_length, weight, batch_size)

    @property
    def kernel(self) -> Callable[..., None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The optimiser's kernel."""
        return self.optimiser.kernel

    @property
    def memories(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The optimiser's number of arrays like the weights."""
        return self.optimiser.memories

    def marks(self, rows: int) -> Array:
        """Return the optimiser's integers to keep between updates."""
        return self.optimiser.marks(rows)

    def numbers(self) -> Sequence[float]:
        """Return the constants of the optimiser's kernel."""
        return self.optimiser.numbers()


@dataclass(frozen=True)
class IncrementalTD(Update):
    """TD(0) with one drawn transition after the other: W += alpha k w_i delta_i x_i.

    The factor k cancels the 1/k in w, so good step sizes are about k times smaller than for
    :class:`TD`.

    Args:
        step_size: the step size alpha. With a sequence, one copy of the weights learns with each,
            side by side. The default is that of :class:`TD` divided by k.

    Example:
        >>> import gvf
        >>> gvf.updates.IncrementalTD(step_size=0.01)
        IncrementalTD(step_size=0.01)
    """

    step_size: Lanes | None = None

    kernel = staticmethod(td_incremental)

    def default_step_size(self, squared_length: Array, weight: Array, batch_size: int) -> Array:
        """Return the default of :class:`TD` divided by k, because k w_i lacks the 1/k."""
        return super().default_step_size(squared_length, weight, batch_size) / batch_size


def _check_unit(**values: float) -> None:
    for name, value in values.items():
        if not (is_number(value) and 0.0 <= value < 1.0):
            raise ValueError(f"{name} must be in [0, 1), got {brief(value)}")
