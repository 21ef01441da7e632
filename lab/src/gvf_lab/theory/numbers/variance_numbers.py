"""The difference V(IS | B) - V(BC-IR | B) in windows of six, with all batches of two enumerated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.corrections import Correction
from gvf.kernels import covariance, difference_of_variances, separation
from gvf_lab.theory.numbers.enumeration import MakeRing, enumerated_moments
from gvf_lab.theory.numbers.prediction import squared_norms
from gvf_lab.theory.numbers.windows import random_windows, rising_sizes, with_sizes

WINDOWS, WINDOW, BATCH = 300, 6, 2
RANDOM_KIND, CONDITION_KIND, REVERSED_KIND = "at random", "condition holds", "g = 1 / ρ²"
"""Kinds of windows: random ones, some that meet the condition, and some that reverse it."""


@dataclass(frozen=True)
class VarianceDifferences:
    """V(IS | B) - V(BC-IR | B) of G windows of one kind, and Theorem 3.3's condition.

    Attributes:
        predicted: Cov_B(rho, rho g) / k, [G].
        other_form: ((1/n) sum_i (rho_i - r)^2 g_i + r Cov_B(rho, g)) / k, [G].
        measured: the difference by enumeration, [G].
        scale: the sum of the two second moments, which sets the rounding error, [G].
        condition: True if the window meets the condition, [G].
    """

    predicted: Floats
    other_form: Floats
    measured: Floats
    scale: Floats
    condition: NDArray[np.bool_]


def differences_by_kind(
    both: tuple[Correction, Correction], seed: int, ring: MakeRing
) -> dict[str, VarianceDifferences]:
    """Compare IS and BC-IR, in this order, in windows of each of the three kinds."""
    ratios, vectors = random_windows(WINDOWS, WINDOW, seed=seed, purpose="theorem 3.3")
    positive = ratios + 0.05
    windows: dict[str, tuple[Floats, Floats]] = {
        RANDOM_KIND: (ratios, vectors),
        CONDITION_KIND: (ratios, with_sizes(vectors, rising_sizes(ratios))),
        REVERSED_KIND: (positive, with_sizes(vectors, 1.0 / positive**2)),
    }
    differences = {}
    for kind, (rho, delta) in windows.items():
        g = squared_norms(delta)
        exceptions = [separation(x, x.mean(), y)[0] for x, y in zip(rho, g, strict=True)]
        differences[kind] = VarianceDifferences(
            covariance(rho, rho * g) / BATCH,
            np.add(*difference_of_variances(rho, g)) / BATCH,
            *_difference(both, rho, delta, ring),
            np.array(exceptions) == 0.0,
        )
    return differences


@dataclass(frozen=True)
class UncorrelatedDifferences:
    """V(IS | B) - V(BC-IR | B) of G windows in which rho and g are uncorrelated.

    Attributes:
        predicted: the mean of (rho - r)^2 g, over k, [G].
        printed: c Var(rho) / k as printed in the proof, with c the mean of g, [G].
        measured: the difference by enumeration, [G].
        scale: the sum of the two second moments, which sets the rounding error, [G].
    """

    predicted: Floats
    printed: Floats
    measured: Floats
    scale: Floats


def uncorrelated_differences(
    both: tuple[Correction, Correction],
    seed: int,
    ring: MakeRing,
    sizes: Callable[[Floats, Floats], Floats],
) -> tuple[UncorrelatedDifferences, UncorrelatedDifferences]:
    """Compare IS and BC-IR in windows that `sizes` makes uncorrelated, and in product designs.

    In a product design every ratio comes with every g, so that rho^2 is uncorrelated with g too.
    """
    ratios, vectors = random_windows(WINDOWS, WINDOW, seed=seed, purpose="theorem 3.4")
    squares = squared_norms(vectors)
    # Each of three ratios comes with two sizes of update.
    design = np.repeat(ratios[:, :3], 2, axis=1)
    windows = (
        (ratios, with_sizes(vectors, sizes(ratios, squares))),
        (design, with_sizes(vectors, np.tile(squares[:, :2], 3))),
    )

    def differences(rho: Floats, delta: Floats) -> UncorrelatedDifferences:
        g = squared_norms(delta)
        return UncorrelatedDifferences(
            difference_of_variances(rho, g)[0] / BATCH,
            g.mean(axis=1) * rho.var(axis=1) / BATCH,
            *_difference(both, rho, delta, ring),
        )

    general, product = (differences(*window) for window in windows)
    return general, product


def _difference(
    both: tuple[Correction, Correction], ratios: Floats, vectors: Floats, ring: MakeRing
) -> tuple[Floats, Floats]:
    """Return V(first | B) - V(second | B) of each window, and the sum of their second moments."""
    first, second = (enumerated_moments(c, ratios, vectors, BATCH, ring=ring) for c in both)
    return first.variance - second.variance, first.second + second.second
