"""The difference between resampling and reweighting, given the window: Theorems 3.3 and 3.4.

Both theorems follow from one identity,

    V(IS | B) - V(BC-IR | B) = Cov_B(rho, rho g) / k,    g = |Delta|^2.

The rows compare it with the library's draws and weights in windows of six, with all
batches of two enumerated. The variances themselves are in
:mod:`gvf_lab.theory.variance_lemma`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf import RatioRing
from gvf.common.arrays import Floats
from gvf.common.colours import SPARE_COLOURS
from gvf.corrections import BCIR, IS, Correction
from gvf.kernels import covariance, difference_of_variances, separation
from gvf_lab.theory.enumeration import (
    MakeRing,
    enumerated_moments,
    random_windows,
    rising_sizes,
    squared_norms,
    uncorrelated_sizes,
    with_sizes,
)
from gvf_lab.theory.finding import (
    BLACK,
    ROUNDING,
    Finding,
    FindingRow,
    exactly,
    label_axis,
)

WINDOWS, WINDOW, BATCH = 300, 6, 2
RANDOM_KIND, CONDITION_KIND, REVERSED_KIND = "at random", "condition holds", "g = 1 / ρ²"
"""Kinds of windows: random ones, some that meet the condition, and some that reverse it."""
DOT_TITLE = f"one dot a window of {WINDOW}, batches of {BATCH}"


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


SMALLEST_ERROR = "weights wrong by 2e-12, a ratio by 1e-11"


def theorem_3_3(
    *,
    seed: int = 0,
    importance_sampling: Correction = IS(),  # noqa: B008 (frozen)
    bcir: Correction = BCIR(),  # noqa: B008
    ring: MakeRing = RatioRing,
) -> Finding:
    """Test when BC-IR varies less than IS: if large ratios do not have very small updates.

    For every window, exactly,

        V(IS | B) - V(BC-IR | B) = Cov_B(rho, rho g) / k
                                 = ((1/n) sum_i (rho_i - r)^2 g_i + r Cov_B(rho, g)) / k.

    Suppose that for some c all rho g are below c where rho < r, and above c where rho >= r. Then
    BC-IR has the smaller variance, or the same if all ratios are equal. Such a c exists exactly if
    the largest rho g of the first kind is less than the least of the second. The condition is not
    necessary: in other windows the difference may have either sign.

    Example:
        >>> from gvf_lab.theory import theorem_3_3
        >>> all(row.holds for row in theorem_3_3().rows)
        True
    """
    differences = differences_by_kind((importance_sampling, bcir), seed, ring)
    return Finding(
        "Theorem 3.3",
        "where BC-IR varies less than IS",
        (*_rows_of_identity(differences), *_rows_of_condition(differences)),
        partial(draw_theorem_3_3, differences),
    )


def _rows_of_identity(
    differences: Mapping[str, VarianceDifferences],
) -> tuple[FindingRow, ...]:
    predicted = np.array([kind.predicted for kind in differences.values()])
    random = differences[RANDOM_KIND]
    return (
        exactly(
            f"V(IS | B) - V(BC-IR | B) is Cov_B(rho, rho g) / k, {predicted.size} windows",
            predicted,
            np.array([kind.measured for kind in differences.values()]),
            SMALLEST_ERROR,
            scale=np.array([kind.scale for kind in differences.values()]),
        ),
        exactly(
            "... and its other form, with Cov_B(rho, g)",
            random.other_form,
            random.measured,
            SMALLEST_ERROR,
            scale=random.scale,
        ),
    )


def _rows_of_condition(
    differences: Mapping[str, VarianceDifferences],
) -> tuple[FindingRow, ...]:
    random, held, reversed_ = (
        differences[k]
        for k in (
            RANDOM_KIND,
            CONDITION_KIND,
            REVERSED_KIND,
        )
    )
    violated = random.measured[~random.condition]
    return (
        FindingRow(
            "condition holds: the least V(IS | B) - V(BC-IR | B)",
            0.0,
            float(held.measured[held.condition].min()),
            ROUNDING,
            "exact",
            "BC-IR's weights 2 % too large",
            ">",
        ),
        FindingRow(
            "violated, with g = 1 / rho^2: the largest",
            0.0,
            float(reversed_.measured[~reversed_.condition].max()),
            ROUNDING,
            "exact",
            "BC-IR's weights 5 % too small",
            "<",
        ),
        FindingRow(
            f"violated by chance ({len(violated)} windows): share where IS varies more",
            0.0,
            float((violated > 0.0).mean()),
            0.01,
            "1 %",
            "BC-IR's weights 3 times too large",
            ">",
        ),
    )


def theorem_3_4(
    *,
    seed: int = 0,
    importance_sampling: Correction = IS(),  # noqa: B008
    bcir: Correction = BCIR(),  # noqa: B008
    ring: MakeRing = RatioRing,
    sizes: Callable[[Floats, Floats], Floats] = uncorrelated_sizes,
) -> Finding:
    """Test that BC-IR never varies more than IS if ratios and update sizes are uncorrelated.

    If Cov_B(rho, g) = 0, the identity of Theorem 3.3 leaves

        V(IS | B) - V(BC-IR | B) = (1/k) (1/n) sum_i (rho_i - r)^2 g_i  >=  0.

    This is (c/k) times the variance of rho over the window, with c the mean of g, if rho^2 is also
    uncorrelated with g. That holds in product designs, where every ratio comes with every g, but
    not always.

    Example:
        >>> from gvf_lab.theory import theorem_3_4
        >>> all(row.holds for row in theorem_3_4().rows)
        True
    """
    both = importance_sampling, bcir
    general, product = uncorrelated_differences(both, seed, ring, sizes)
    return Finding(
        "Theorem 3.4",
        "ratios uncorrelated with the size of updates",
        _rows_3_4(general, product),
        partial(draw_theorem_3_4, general, product),
    )


def _rows_3_4(
    general: UncorrelatedDifferences,
    product: UncorrelatedDifferences,
) -> tuple[FindingRow, ...]:
    relative = np.abs(general.measured - general.printed) / general.printed
    return (
        FindingRow(
            f"V(IS | B) - V(BC-IR | B), {len(general.measured)} uncorrelated windows: least",
            0.0,
            float(general.measured.min()),
            ROUNDING,
            "exact",
            "BC-IR's weights 5 % too large",
            ">=",
        ),
        exactly(
            "... is the mean of (rho - r)^2 g, over k",
            general.predicted,
            general.measured,
            SMALLEST_ERROR,
            scale=general.scale,
        ),
        exactly(
            f"... is c Var(rho) / k, {len(product.measured)} product designs",
            product.printed,
            product.measured,
            SMALLEST_ERROR,
            scale=product.scale,
        ),
        FindingRow(
            "... but not elsewhere, as printed: largest relative error",
            0.0,
            float(relative.max()),
            0.1,
            "10 %",
            "rho^2 uncorrelated with g, too",
            ">",
        ),
    )


def draw_theorem_3_3(differences: Mapping[str, VarianceDifferences], figure: Any) -> None:
    """Draw the difference of the two variances against the covariance."""
    axis = figure.subplots()
    for (kind, of_kind), colour in zip(differences.items(), SPARE_COLOURS, strict=False):
        axis.plot(of_kind.predicted, of_kind.measured, ".", markersize=4, color=colour, label=kind)
    axis.set_xscale("symlog", linthresh=0.1)
    axis.set_yscale("symlog", linthresh=0.1)
    axis.axhline(0.0, color=BLACK, linewidth=0.5)
    axis.axvline(0.0, color=BLACK, linewidth=0.5)
    label_axis(axis, "Cov$_B$(ρ, ρ g) / k", "V(IS | B) − V(BC-IR | B)", DOT_TITLE)


def draw_theorem_3_4(
    general: UncorrelatedDifferences,
    product: UncorrelatedDifferences,
    figure: Any,
) -> None:
    """Draw the difference of the two variances against that of the proof."""
    axis = figure.subplots()
    labelled = {"only uncorrelated": general, "product designs": product}
    for (label, windows), colour in zip(labelled.items(), SPARE_COLOURS[1:], strict=False):
        axis.loglog(windows.printed, windows.measured, ".", color=colour, markersize=4, label=label)
    printed = np.concatenate([general.printed, product.printed])
    ends = np.array([printed.min(), printed.max()])
    axis.loglog(ends, ends, "--", color=BLACK, linewidth=1, label="equal")
    label_axis(axis, "(c / k) × variance of ρ", "V(IS | B) − V(BC-IR | B)", DOT_TITLE)
