"""The memory of a learner without a window, for its report: ratios, and the latest states."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gvf.common.arrays import Array, Arrays, Floats
from gvf.features import features_of
from gvf.learners.learner_report import FEWEST, Range
from gvf.updates.linear_kernels import values

RECENT = 64
"""The number of states whose predictions a report looks at."""
_SUM, _SQUARES, _LARGEST, _ZEROS, _ENDS = range(5)  # positions in the statistics


@njit(cache=True, nogil=True)
def _add(known, ratio, continuation):
    """Add transitions to the statistics, one after the other, so that batches do not matter."""
    for rho, gamma in zip(ratio, continuation):  # noqa: B905 (not compiled)
        known[_ENDS] += 1.0 if gamma < 1.0 else 0.0
        known[_SUM] += rho
        known[_SQUARES] += rho * rho
        known[_LARGEST] = max(known[_LARGEST], rho)
        known[_ZEROS] += 1.0 if rho == 0.0 else 0.0


class RatioCounts:
    """The number of transitions, the statistics of their ratios, and the latest features.

    Example:
        >>> import numpy as np
        >>> from gvf.online.counts import RatioCounts
        >>> counts = RatioCounts()
        >>> counts.add(np.array([2.0, 0.0]), np.array([0.9, 0.0]), np.array([[0], [1]], np.int32))
        >>> counts.steps, counts.numbers, counts.recent[:, 0]
        (2, array([2., 4., 2., 1., 2.]), array([0, 1], dtype=int32))
    """

    def __init__(self) -> None:
        self.steps = 0
        self.numbers = np.zeros(5)
        self.recent: Array = np.zeros((0, 0), np.int32)

    def add(self, ratio: Floats, continuation: Floats, x: Array) -> None:
        """Add the ratios [m], continuations [m] and features [m, ...] of transitions."""
        self.steps += len(ratio)
        _add(self.numbers, ratio, continuation)
        same = self.recent.shape[1:] == x.shape[1:] and self.recent.dtype == x.dtype
        recent = np.concatenate([self.recent, x]) if same else x
        self.recent = recent[-RECENT:].copy()

    def report(self, weights: Floats, signals: Range) -> dict[str, Any]:
        """Return the fields of a report.

        Args:
            weights: the weights, [rows, lanes].
            signals: the signals seen.
        """
        none, steps = float("nan"), self.steps
        total, squares, largest_ratio, zeros, ends = self.numbers.tolist()
        predictions = np.zeros((len(self.recent), weights.shape[1]))
        values(
            np.ascontiguousarray(weights), self.recent, np.ones((len(predictions), 1)), predictions
        )
        predictions[:, ~np.isfinite(weights).all(axis=0)] = np.inf
        return {
            "steps": steps,
            "mean_ratio": total / steps if steps else none,
            "max_ratio": largest_ratio if steps else none,
            "zero_ratios": zeros / steps if steps else none,
            "effective_sample_size": total * (total / squares) if squares else 0.0,
            "endless": steps >= FEWEST and not ends,
            **signals.findings(predictions),
        }

    def state_dict(self) -> dict[str, Array]:
        """Return the arrays of the state."""
        return {
            "steps": np.array(self.steps),
            "ratios": self.numbers.copy(),
            "recent": self.recent,
        }

    def load_state_dict(self, arrays: Arrays, size: int) -> None:
        """Restore a state; there are so many features."""
        recent = arrays["recent"]
        if len(recent):
            recent = features_of(lambda _: recent, size, recent)
        self.steps, self.recent = int(arrays["steps"]), recent
        self.numbers[:] = arrays["ratios"]
