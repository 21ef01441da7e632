"""TD(0), with the whole mini-batch at once or one transition after the other.

With the TD error ``delta_i = c_i + gamma_i v(s'_i) - v(s_i)`` and the correction's weights w:

    mini-batch     W += alpha sum_i w_i delta_i x_i        all delta_i at the same W
    incremental    W += alpha k w_i delta_i x_i            for i = 1 ... k, each delta_i at the
                                                           W that i - 1 has left

Mini-batch TD takes any optimiser (:mod:`gvf.learner.optimiser`) in place of the plain step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from gvf.learner.linear import Array, add_at, td_error_at
from gvf.learner.optimiser import SGD, Optimiser
from gvf.learner.update import Lanes, Update


@njit(cache=True, nogil=True)
def td_incremental(
    weights, memory, marks, lanes, numbers, x, share, x_next, share_next, c, gamma, slots, w
):
    """Apply the batch's transitions one after the other, each with k * w_i; lanes: alpha."""
    error = np.empty((1, weights.shape[1]))
    for i in range(slots.size):
        slot = slots[i]
        if w[i] != 0.0:
            factor = slots.size * w[i]
            td_error_at(weights, x, share, x_next, share_next, c, gamma, slot, factor, error, 0)
            add_at(weights, lanes[0], x, share, slot, error, 0)


@dataclass(frozen=True)
class TD(Update):
    """TD(0) with the whole mini-batch at once: W += alpha sum_i w_i delta_i x_i.

    Args:
        step_size: alpha, of the weighted *sum* (w contains the 1/k); a sequence learns one copy of
            the weights for each, side by side.
        optimiser: ``SGD()``, ``RMSProp()`` or ``Adam()``.

    Example:
        >>> import gvf
        >>> gvf.TD(step_size=[0.1, 0.2]).lanes
        2
    """

    step_size: Lanes
    optimiser: Optimiser = SGD()  # noqa: RUF009 (frozen)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.optimiser, Optimiser):
            raise TypeError(
                f"optimiser must be gvf.SGD(), gvf.RMSProp() or gvf.Adam(), got {self.optimiser!r}"
            )

    @property
    def kernel(self) -> Callable[..., None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The optimiser's."""
        return self.optimiser.kernel

    @property
    def memories(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The optimiser's."""
        return self.optimiser.memories

    def marks(self, rows: int) -> Array:
        """The optimiser's."""
        return self.optimiser.marks(rows)

    def numbers(self) -> Sequence[float]:
        """The optimiser's."""
        return self.optimiser.numbers()


@dataclass(frozen=True)
class IncrementalTD(Update):
    """TD(0) with one drawn transition after the other: W += alpha k w_i delta_i x_i.

    Without the 1/k, so a step size for one sample is about k times smaller than for a mini-batch.

    Args:
        step_size: alpha; a sequence learns one copy of the weights for each, side by side.

    Example:
        >>> import gvf
        >>> gvf.IncrementalTD(step_size=0.01)
        IncrementalTD(step_size=0.01)
    """

    step_size: Lanes

    kernel = staticmethod(td_incremental)
