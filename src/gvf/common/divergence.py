"""The limit beyond which predictions have diverged."""

from __future__ import annotations

import math

DIVERGED = 1000.0
"""A prediction above this multiple of the largest possible return has diverged."""


def largest_return(cumulant: float, continuation: float, passed_on: int) -> float:
    """Return the largest possible return; at least 1.

    Args:
        cumulant: the largest absolute cumulant seen.
        continuation: the largest continuation seen.
        passed_on: the number of steps over which updates can have passed on cumulants.

    Example:
        >>> from gvf.common.divergence import largest_return
        >>> largest_return(2.0, 0.5, passed_on=1000), largest_return(2.0, 1.0, passed_on=1000)
        (4.0, 2000.0)
    """
    steps = 1.0 / (1.0 - continuation) if continuation < 1.0 else math.inf
    return max(cumulant * min(steps, passed_on), 1.0)
