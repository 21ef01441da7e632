"""Mean, variance and bias of one mini-batch update given the window, for any correction.

Mean and variance follow from :mod:`gvf.diagnosis.batch_law`; if a row's weight depends on the rest
of its batch, they are simulated. With rho the ratios, r their mean, ``w_i = rho_i / sum rho`` and

    E_IS = (1/n) sum_i rho_i Delta_i,        X = sum_i w_i Delta_i = E_IS / r,

E_IS has no bias over windows. X has the bias of WIS-Optimal, ``b = -sum_i w_i^2 (Delta_i - X)`` to
first order in 1/n. So the bias of a correction is ``E - E_IS``, or ``(E - X) + b``. The latter has
less noise for a self-normalised correction, because it does not contain the noise of r. Emphatic
corrections aim at another mean: for them rho is replaced by rho F, the product of ratio and trace.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gvf.common.arrays import Floats
from gvf.corrections import Correction
from gvf.diagnosis.batch_law import Law, law_of, self_normalised
from gvf.diagnosis.window_updates import Updates, squared_distances, weighted_sum
from gvf.estimate import Estimate
from gvf.sampling import RatioRing

ROUNDING = 1e-12
"""The largest relative difference of numbers that are equal up to rounding."""


@dataclass(frozen=True)
class Moments:
    """The mean and variance of a correction's mini-batch update, over draws from a given window.

    Attributes:
        correction: the correction.
        variance: ``E|X - E X|^2`` given the window, the sum of all components' variances. Its
            standard error is 0 if it is exact, and not simulated.
        length: ``|E X|``, the length of the expected update.
        bias: the length of the bias. If the weights scale with the ratios, it is the distance of
            the expected update from that of IS: 0 for IS and BC-IR, the effect of the clip for
            V-trace. If the total of the weights does not depend on the scale of the ratios (IR, all
            of WIS, OnPolicy), it is an estimate over windows: the distance from WIS-Optimal plus
            the bias of WIS-Optimal, which falls as 1/n. For emphatic corrections, IS and
            WIS-Optimal are those with ratio times trace in place of the ratio.
        effective_sample_size: the effective sample size of the draws, (sum p)^2 / sum p^2 for the
            masses p; n for uniform draws.

    Example:
        >>> import gvf
        >>> moments = gvf.diagnose([0.5, 1.5], [1.0, 1.0], batch_size=1).moments["IS"]
        >>> moments.variance.value, moments.length, moments.bias, moments.effective_sample_size
        (0.25, 1.0, 0.0, 2.0)
    """

    correction: Correction
    variance: Estimate
    length: float
    bias: float
    effective_sample_size: float


@dataclass(frozen=True)
class WindowSums:
    """A window with its updates, and the sums over it that all corrections share.

    Attributes:
        inputs: the ratios, and the trace if there is one, [C, n].
        mean: the mean ratio r; that of ratio times trace for emphatic corrections.
        updates: the updates, in d dimensions.
        dimensions: the dimension d.
        squares: the squared lengths of the updates, [n].
        shares: the shares w of the ratios (or of ratio times trace) in their sum, [n].
        optimal: the update X of WIS-Optimal, [d].
        bias: the bias b of X over windows, [d].
        bias_windows: the number of windows after which this bias outweighs chance.
    """

    inputs: Floats
    mean: float
    updates: Updates
    dimensions: int
    squares: Floats
    shares: Floats
    optimal: Floats
    bias: Floats
    bias_windows: float

    @classmethod
    def of(cls, inputs: Floats, ratios: Floats, updates: Updates, dimensions: int) -> WindowSums:
        """Compute the sums for a window with ratios, or ratios times traces, not all of them 0."""
        n, largest = len(ratios), float(ratios.max())
        # If all ratios are equal, the computed mean may differ from them in the last digit.
        mean = float(ratios.mean()) if ratios.min() < largest else largest
        each, ones = np.arange(n)[:, None], np.ones((n, 1))
        squares = squared_distances(*updates, dimensions, each, ones, np.zeros(dimensions))
        if not np.isfinite(squares).all():
            at = int(np.argmin(np.isfinite(squares)))
            raise ValueError(
                f"the update in row {at} is too long: its squared length is not finite"
            )
        w = ratios / mean / n
        optimal, second = (weighted_sum(*updates, dimensions, x) for x in (w, w * w))
        bias, windows = _bias_over_windows(w, squares, optimal, second)
        return cls(inputs, mean, updates, dimensions, squares, w, optimal, bias, windows)

    @property
    def effective_sample_size(self) -> float:
        """(sum rho)^2 / sum rho^2, with rho F in place of rho for emphatic corrections."""
        return 1.0 / _product(self.shares, self.shares)

    def sum(self, weights: Floats) -> Floats:
        """Return the sum of weights [n] times updates, [d]."""
        return weighted_sum(*self.updates, self.dimensions, weights)


def all_moments(
    corrections: Sequence[Correction],
    plain: WindowSums,
    emphatic: WindowSums | None = None,
    *,
    batch_size: int,
    batches: int,
    rng: np.random.Generator,
) -> list[Moments]:
    """Compute the moments of each correction; all simulations use the same random numbers."""
    start = rng.bit_generator.state
    moments = []
    for correction in corrections:
        window = emphatic if correction.emphatic and emphatic is not None else plain
        inputs = window.inputs[: correction.rows]
        law = law_of(correction, inputs[:, None], batch_size)
        aim = _Aim.of(window, self_normalised(correction, batch_size))
        if law.exact:
            variance, error, length, bias = _exact(law, window, aim)
        else:
            rng.bit_generator.state = start
            variance, error, length, bias = _simulated(
                correction, law, window, aim, batch_size, batches, rng
            )
        shares = _product(law.chance, law.chance)
        size = 1.0 / shares if shares > 0.0 else 0.0
        estimate = Estimate(variance, standard_error=error)
        moments.append(Moments(correction, estimate, length, bias, size))
    return moments


def _bias_over_windows(
    w: Floats, squares: Floats, optimal: Floats, second: Floats
) -> tuple[Floats, float]:
    """Compute the plug-in bias of WIS-Optimal over windows, [d], and when it outweighs chance.

    To first order in 1/n the update X = ``sum w_i Delta_i`` has the bias b = ``-sum w_i^2 (Delta_i
    - X)`` and the variance s^2 = ``sum w_i^2 |Delta_i - X|^2`` over windows of independent
    transitions. The mean over m windows has the bias b and the standard error s / sqrt(m). The two
    are equal after s^2 / |b|^2 windows, which is never less than the effective sample size.
    """
    shares = _product(w, w)
    bias = shares * optimal - second
    length = _length(bias)
    chance = _product(w * w, squares) + _product(optimal, shares * optimal - 2.0 * second)
    if length <= 1e-9 * math.sqrt(shares * max(chance, 0.0)):
        return np.zeros_like(bias), math.inf  # only rounding
    return bias, chance / length / length


@dataclass(frozen=True)
class _Aim:
    """The estimate of the unbiased update from the window: ``factor X - b``."""

    factor: float
    optimal: Floats
    b: Floats

    @classmethod
    def of(cls, window: WindowSums, normalised: bool) -> _Aim:
        if normalised:
            return cls(1.0, window.optimal, window.bias)
        return cls(window.mean, window.optimal, np.zeros_like(window.bias))

    def missed_by(self, unit: float, scale: float, rest: Floats, spare: float = 0.0) -> float:
        """Return the distance to ``unit (scale X + rest)``, less `spare` units^2 in its square."""
        off, size = unit * scale - self.factor, max(unit, self.factor)
        off = off if abs(off) > ROUNDING * self.factor else 0.0
        relative = unit / size
        vector = off / size * self.optimal + relative * rest + self.b / size
        return size * math.sqrt(max(_product(vector, vector) - relative * relative * spare, 0.0))


def _exact(law: Law, window: WindowSums, aim: _Aim) -> tuple[float, float, float, float]:
    """Return variance, its error 0, and the lengths of mean and bias, by the lemma."""
    expected, unit = law.expected[0], float(law.unit[0])
    scale = float(expected.sum())
    # Expected weights in proportion to the ratios give an exact multiple of X. Rounding must not
    # disturb this, because the bias of many corrections is exactly 0.
    multiple = scale * window.shares
    rest = expected - multiple
    beside = np.zeros(window.dimensions)
    if (np.abs(rest) > ROUNDING * np.abs(multiple)).any():
        beside = window.sum(rest)
    mean = scale * window.optimal + beside
    variance = float(law.variance(window.squares, _product(mean, mean))[0])
    return (
        unit * (unit * variance),
        0.0,
        unit * _length(mean),
        aim.missed_by(unit, scale, beside),
    )


def _simulated(
    correction: Correction,
    law: Law,
    window: WindowSums,
    aim: _Aim,
    k: int,
    batches: int,
    rng: np.random.Generator,
) -> tuple[float, float, float, float]:
    """Return variance, its standard error, and the lengths of mean and bias, by simulation."""
    inputs = np.ascontiguousarray(window.inputs[: correction.rows])
    n = inputs.shape[1]
    if correction.draw.uniform:
        slots = rng.integers(n, size=(batches, k))
    else:
        ring = RatioRing(n)
        ring.extend(law.chance[0])
        slots = ring.sample(batches * k, rng=rng).reshape(batches, k)
    means = np.tile(correction.means(inputs), (batches, 1))
    unit = float(law.unit[0])
    w = correction.weigh_rows(inputs, correction.masses(inputs), slots, means) / unit
    total = np.bincount(slots.ravel(), w.ravel(), minlength=n)
    mean = window.sum(total / batches)
    distances = squared_distances(*window.updates, window.dimensions, slots, w, mean)
    variance = float(distances.sum()) / (batches - 1)
    error = float(distances.std(ddof=1)) / math.sqrt(batches)
    # The squared length of a mean over batches exceeds the true one by variance / batches.
    spare = variance / batches
    return (
        unit * (unit * variance),
        unit * (unit * error),
        unit * math.sqrt(max(_product(mean, mean) - spare, 0.0)),
        aim.missed_by(unit, 0.0, mean, spare),
    )


def _product(first: Floats, second: Floats) -> float:
    # Not one @ other, which waits for BLAS's threads.
    return float(np.sum(first * second))


def _length(vector: Floats) -> float:
    return math.sqrt(_product(vector, vector))
