"""Minimisation of a smooth function by L-BFGS (Liu and Nocedal 1989), in NumPy.

A step is d = -H g, where H approximates the inverse of the curvature from the latest changes s of
the point and y of the gradient g. It is shortened until the function falls enough (Armijo).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from gvf.common.arrays import Floats

Loss = Callable[[Floats], tuple[float, Floats]]
"""A function from a point [n] to its value and gradient [n]."""


def minimise(
    loss: Loss, start: Floats, *, steps: int = 500, tolerance: float = 1e-6, memory: int = 12
) -> Floats:
    """Return a point where the largest derivative is at most `tolerance`, or the best one found.

    Example:
        >>> import numpy as np
        >>> from gvf.behaviour.descent import minimise
        >>> scale = np.array([1.0, 100.0])
        >>> minimise(lambda x: (0.5 * scale @ (x - 3) ** 2, scale * (x - 3)), np.zeros(2)).round(4)
        array([3., 3.])
    """
    point, (value, slope) = start, loss(start)
    changes: deque[tuple[Floats, Floats, float]] = deque(maxlen=memory)
    for _ in range(steps):
        if np.abs(slope).max() <= tolerance:
            break
        direction = -_times_inverse(changes, slope)
        falls = float(direction @ slope)
        if falls >= 0:  # rounding has spoilt the approximation
            changes.clear()
            direction, falls = -slope, -float(slope @ slope)
        length = 1.0 if changes else min(1.0, 1.0 / np.abs(slope).sum())
        for _ in range(40):
            new = point + length * direction
            new_value, new_slope = loss(new)
            if new_value <= value + 1e-4 * length * falls:
                break
            length *= 0.5
        else:
            break  # no better point can be told apart
        step, bend = new - point, new_slope - slope
        curvature = float(step @ bend)
        if curvature > 1e-10 * float(bend @ bend):
            changes.append((step, bend, 1.0 / curvature))
        point, value, slope = new, new_value, new_slope
    return point


def _times_inverse(changes: deque[tuple[Floats, Floats, float]], slope: Floats) -> Floats:
    """Return the gradient times the approximate inverse of the curvature."""
    result, shares = slope.copy(), []
    for step, bend, inverse in reversed(changes):
        share = inverse * float(step @ result)
        result -= share * bend
        shares.append(share)
    if changes:
        _, bend, inverse = changes[-1]
        result /= inverse * float(bend @ bend)
    for (step, bend, inverse), share in zip(changes, reversed(shares), strict=True):
        result += step * (share - inverse * float(bend @ result))
    return result
