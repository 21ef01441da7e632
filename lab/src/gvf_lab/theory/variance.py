"""The difference between resampling and reweighting, given the window: Theorems 3.3 and 3.4.

Both theorems follow from one identity,

    V(IS | B) - V(BC-IR | B) = Cov_B(rho, rho g) / k,    g = |Delta|^2.

The rows compare it with the library's draws and weights
(:mod:`gvf_lab.theory.numbers.variance_numbers`). The variances themselves are in
:mod:`gvf_lab.theory.variance_lemma`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from gvf import RatioRing
from gvf.common.arrays import Floats
from gvf.corrections import BCIR, IS, Correction
from gvf_lab.theory import theory_pictures
from gvf_lab.theory.finding import ROUNDING, Finding, FindingRow, exactly
from gvf_lab.theory.numbers import variance_numbers
from gvf_lab.theory.numbers.enumeration import MakeRing
from gvf_lab.theory.numbers.windows import uncorrelated_sizes

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
    differences = variance_numbers.differences_by_kind((importance_sampling, bcir), seed, ring)
    return Finding(
        "Theorem 3.3",
        "where BC-IR varies less than IS",
        (*_rows_of_identity(differences), *_rows_of_condition(differences)),
        partial(theory_pictures.draw_theorem_3_3, differences),
    )


def _rows_of_identity(
    differences: Mapping[str, variance_numbers.VarianceDifferences],
) -> tuple[FindingRow, ...]:
    predicted = np.array([kind.predicted for kind in differences.values()])
    random = differences[variance_numbers.RANDOM_KIND]
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
    differences: Mapping[str, variance_numbers.VarianceDifferences],
) -> tuple[FindingRow, ...]:
    random, held, reversed_ = (
        differences[k]
        for k in (
            variance_numbers.RANDOM_KIND,
            variance_numbers.CONDITION_KIND,
            variance_numbers.REVERSED_KIND,
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
    general, product = variance_numbers.uncorrelated_differences(both, seed, ring, sizes)
    return Finding(
        "Theorem 3.4",
        "ratios uncorrelated with the size of updates",
        _rows_3_4(general, product),
        partial(theory_pictures.draw_theorem_3_4, general, product),
    )


def _rows_3_4(
    general: variance_numbers.UncorrelatedDifferences,
    product: variance_numbers.UncorrelatedDifferences,
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
