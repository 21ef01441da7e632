"""What the cars of both simulators have in common: how they are steered, and when they are lost."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

SLOWEST = 1.0
"""m/s below which the car counts as stuck, after :data:`PATIENCE` seconds."""
PATIENCE = 3.0
FARTHEST = 2.0
"""Half-widths from the middle of the road at which an episode is cut off; the edge is at 1."""


def steering(actions: ArrayLike) -> NDArray[np.float32]:
    """What the driver is told, float32[m], from actions [m, 1]."""
    numbers = np.asarray(actions, np.float32)
    if numbers.ndim != 2 or numbers.shape[1] != 1:
        raise ValueError(
            f"an action is the steering in an array of shape (1,), got shape {numbers.shape[1:]}"
        )
    if not np.isfinite(numbers).all():
        row = int(np.isfinite(numbers[:, 0]).argmin())
        raise ValueError(f"steering must be a finite number, got {numbers[row, 0]} in row {row}")
    return np.clip(numbers[:, 0], -1, 1)
