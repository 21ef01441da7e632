"""True values of some states, and the errors of predictions.

    mean absolute error       1/S sum_s |V(s) - v(s)|
    root mean square error    sqrt( 1/S sum_s (V(s) - v(s))^2 )

Both are over S states, with equal weights or given ones. The values v come from dynamic programming
(:mod:`gvf_lab.truth.exact_values`) or from rollouts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gvf.common.arrays import Floats
from gvf.kernels import cut_text


@dataclass(frozen=True, eq=False, repr=False)
class TrueValues:
    """The true values of S states.

    Attributes:
        states: the states over which errors are averaged, [S, ...].
        values: the value v of each state, float64[S].
        noise: the standard error of each value, float64[S]; 0 if it is exact, nan if unknown.
        weights: the weight of each state, float64[S], not negative; None for equal weights.
        share_cut: the share of rollouts that were left out because they were truncated; the values
            are biased if truncation depends on the course of a rollout.

    Example:
        >>> from gvf_lab.truth import TrueValues
        >>> import numpy as np
        >>> truth = TrueValues(np.arange(2), np.array([0.5, 1.0]), np.zeros(2))
        >>> truth
        TrueValues(2 states, values from 0.5 to 1, exact)
        >>> truth.mean_absolute_error([0.5, 0.0])
        0.5
    """

    states: NDArray[Any]
    values: Floats
    noise: Floats
    weights: Floats | None = None
    share_cut: float = 0.0

    def check(self) -> None:
        """Raise ValueError if values, noise or weights do not fit the states."""
        count = len(self.states)
        for name in ("values", "noise", "weights"):
            array = getattr(self, name)
            if array is not None and (array.shape != (count,) or array.dtype != np.float64):
                raise ValueError(
                    f"{name} of the truth must be float64[{count}], one for each state, got "
                    f"{array.dtype}{list(array.shape)}"
                )
        if count == 0 or not np.isfinite(self.values).all():
            raise ValueError("true values must be finite, of at least one state")
        if self.weights is not None and not (self.weights.min() >= 0 < self.weights.sum()):
            raise ValueError("weights of states must not be negative, nor all 0")

    def mean_absolute_error(self, predictions: ArrayLike) -> float:
        """Compute the mean of ``|V - v|`` over the states, for predictions [S]."""
        return float(np.average(np.abs(self._differences(predictions)), weights=self.weights))

    def root_mean_square_error(self, predictions: ArrayLike) -> float:
        """Compute the root of the mean of ``(V - v)^2`` over the states, for predictions [S]."""
        return float(np.sqrt(np.average(self._differences(predictions) ** 2, weights=self.weights)))

    def _differences(self, predictions: ArrayLike) -> Floats:
        values = np.asarray(predictions, np.float64)
        if values.shape != self.values.shape:
            raise ValueError(
                f"predictions have shape {values.shape}, expected {self.values.shape}: one for "
                "each of `states`"
            )
        return values - self.values

    def __repr__(self) -> str:
        known = self.noise[~np.isnan(self.noise)]
        noise = f"standard error up to {known.max():.2g}" if known.any() else "exact"
        noise = noise if known.size else "noise unknown"
        left_out = f"; {cut_text(self.share_cut)}" if self.share_cut else ""
        return (
            f"TrueValues({len(self.states)} states, values from {self.values.min():.4g} to "
            f"{self.values.max():.4g}, {noise}{left_out})"
        )
