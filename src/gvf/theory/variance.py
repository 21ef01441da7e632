"""Where resampling varies less than reweighting, given the window: Theorems 3.3 and 3.4.

Everything that follows from comparing IS with BC-IR is in one identity,

    V(IS | B) - V(BC-IR | B) = Cov_B(rho, rho g) / k,    g = |Delta|^2,

which here meets the library's draws and weights, with every batch enumerated
(:mod:`gvf.theory.exact`). The variances themselves are next door, in
:mod:`gvf.theory.variance_lemma`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf.correction import BCIR, IS, Correction
from gvf.diagnosis.comparison import covariance, difference_of_variances, separation
from gvf.sampling import RatioRing
from gvf.theory.exact import moments
from gvf.theory.moments import squared_norms
from gvf.theory.pictures import BLACK, BLUE, ORANGE, panel
from gvf.theory.row import EXACT, Finding, Row, exactly
from gvf.theory.windows import random_windows, rising_sizes, uncorrelated_sizes, with_sizes


def theorem_3_3(
    *,
    seed: int = 0,
    importance_sampling: Correction = IS(),  # noqa: B008
    bcir: Correction = BCIR(),  # noqa: B008
    ring: Callable[..., RatioRing] = RatioRing,
) -> Finding:
    """BC-IR varies less than IS where large ratios do not come with very small updates.

    Exactly, for every window,

        V(IS | B) - V(BC-IR | B) = Cov_B(rho, rho g) / k
                                 = ((1/n) sum_i (rho_i - r)^2 g_i + r Cov_B(rho, g)) / k.

    So if for some c all rho g are below c where rho < r and above c where rho >= r, BC-IR has the
    smaller variance (unless all ratios are equal: then it is the same). There is such a c exactly
    if the largest rho g of the first kind is less than the least of the second. The condition is
    not necessary: other windows may have either sign.

    Example:
        >>> from gvf.theory import theorem_3_3
        >>> all(row.holds for row in theorem_3_3().rows)
        True
    """
    ratios, vectors = random_windows(300, 6, seed=seed, purpose="theorem 3.3")
    positive = ratios + 0.05
    windows: dict[str, tuple[Array, Array]] = {
        "at random": (ratios, vectors),
        "condition holds": (ratios, with_sizes(vectors, rising_sizes(ratios))),
        "g = 1 / ρ²": (positive, with_sizes(vectors, 1.0 / positive**2)),
    }
    both = importance_sampling, bcir
    found = {kind: _difference(both, *window, ring) for kind, window in windows.items()}
    measured = {kind: difference for kind, (difference, _) in found.items()}
    scale = {kind: size for kind, (_, size) in found.items()}
    predicted, holds = {}, {}
    for kind, (rho, delta) in windows.items():
        g = squared_norms(delta)
        predicted[kind] = covariance(rho, rho * g) / 2
        exceptions = [separation(x, x.mean(), y)[0] for x, y in zip(rho, g, strict=True)]
        holds[kind] = np.array(exceptions) == 0.0
    count = sum(map(len, measured.values()))
    violated = measured["at random"][~holds["at random"]]
    other = np.add(*difference_of_variances(ratios, squared_norms(vectors)))

    def picture(figure: Any) -> None:
        axis = figure.subplots()
        for (kind, found), colour in zip(measured.items(), (BLACK, BLUE, ORANGE), strict=True):
            axis.plot(predicted[kind], found, ".", markersize=4, color=colour, label=kind)
        axis.set_xscale("symlog", linthresh=0.1)
        axis.set_yscale("symlog", linthresh=0.1)
        axis.axhline(0.0, color=BLACK, linewidth=0.5)
        axis.axvline(0.0, color=BLACK, linewidth=0.5)
        panel(
            axis,
            "Cov$_B$(ρ, ρ g) / k",
            "V(IS | B) − V(BC-IR | B)",
            "one dot a window of 6, batches of 2",
        )

    return Finding(
        "Theorem 3.3",
        "where BC-IR varies less than IS",
        (
            exactly(
                f"V(IS | B) - V(BC-IR | B) is Cov_B(rho, rho g) / k, {count} windows",
                np.array(list(predicted.values())),
                np.array(list(measured.values())),
                "weights wrong by 2e-12, a ratio by 1e-11",
                scale=np.array(list(scale.values())),
            ),
            exactly(
                "... and its other form, with Cov_B(rho, g)",
                other / 2,
                measured["at random"],
                "weights wrong by 2e-12, a ratio by 1e-11",
                scale=scale["at random"],
            ),
            Row(
                "condition holds: the least V(IS | B) - V(BC-IR | B)",
                0.0,
                float(measured["condition holds"][holds["condition holds"]].min()),
                EXACT,
                "exact",
                "BC-IR's weights 2 % too large",
                ">",
            ),
            Row(
                "violated, with g = 1 / rho^2: the largest",
                0.0,
                float(measured["g = 1 / ρ²"][~holds["g = 1 / ρ²"]].max()),
                EXACT,
                "exact",
                "BC-IR's weights 5 % too small",
                "<",
            ),
            Row(
                f"violated by chance ({len(violated)} windows): share where IS varies more",
                0.0,
                float((violated > 0.0).mean()),
                0.01,
                "1 %",
                "BC-IR's weights 3 times too large",
                ">",
            ),
        ),
        picture,
    )


def theorem_3_4(
    *,
    seed: int = 0,
    importance_sampling: Correction = IS(),  # noqa: B008
    bcir: Correction = BCIR(),  # noqa: B008
    ring: Callable[..., RatioRing] = RatioRing,
    sizes: Callable[[Array, Array], Array] = uncorrelated_sizes,
) -> Finding:
    """Where ratios and the size of updates are uncorrelated, BC-IR never varies more than IS.

    If Cov_B(rho, g) = 0, the identity of Theorem 3.3 leaves

        V(IS | B) - V(BC-IR | B) = (1/k) (1/n) sum_i (rho_i - r)^2 g_i  >=  0.

    This is (c/k) times the variance of rho over the window, with c the mean of g, if rho^2 too is
    uncorrelated with g: on product designs, where every ratio comes with every g, but not always.

    Example:
        >>> from gvf.theory import theorem_3_4
        >>> all(row.holds for row in theorem_3_4().rows)
        True
    """
    ratios, vectors = random_windows(300, 6, seed=seed, purpose="theorem 3.4")
    made = sizes(ratios, squared_norms(vectors))
    uncorrelated = with_sizes(vectors, made)
    g = squared_norms(uncorrelated)
    spread, _ = difference_of_variances(ratios, g)
    printed = g.mean(axis=1) * ratios.var(axis=1) / 2
    # Three ratios, each with two sizes of update.
    design = np.repeat(ratios[:, :3], 2, axis=1)
    product = with_sizes(vectors, np.tile(squared_norms(vectors)[:, :2], 3))

    both = importance_sampling, bcir
    general, scale = _difference(both, ratios, uncorrelated, ring)
    on_product, product_scale = _difference(both, design, product, ring)
    equal = squared_norms(product).mean(axis=1) * design.var(axis=1) / 2
    fails = np.abs(general - printed) / printed

    def picture(figure: Any) -> None:
        axis = figure.subplots()
        axis.loglog(printed, general, ".", color=ORANGE, markersize=4, label="only uncorrelated")
        axis.loglog(equal, on_product, ".", color=BLUE, markersize=4, label="product designs")
        ends = np.array([min(printed.min(), equal.min()), max(printed.max(), equal.max())])
        axis.loglog(ends, ends, "--", color=BLACK, linewidth=1, label="equal")
        panel(
            axis,
            "(c / k) × variance of ρ",
            "V(IS | B) − V(BC-IR | B)",
            "one dot a window of 6, batches of 2",
        )

    return Finding(
        "Theorem 3.4",
        "ratios uncorrelated with the size of updates",
        (
            Row(
                f"V(IS | B) - V(BC-IR | B), {len(general)} uncorrelated windows: least",
                0.0,
                float(general.min()),
                EXACT,
                "exact",
                "BC-IR's weights 5 % too large",
                ">=",
            ),
            exactly(
                "... is the mean of (rho - r)^2 g, over k",
                spread / 2,
                general,
                "weights wrong by 2e-12, a ratio by 1e-11",
                scale=scale,
            ),
            exactly(
                f"... is c Var(rho) / k, {len(equal)} product designs",
                equal,
                on_product,
                "weights wrong by 2e-12, a ratio by 1e-11",
                scale=product_scale,
            ),
            Row(
                "... but not elsewhere, as printed: largest relative error",
                0.0,
                float(fails.max()),
                0.1,
                "10 %",
                "rho^2 uncorrelated with g, too",
                ">",
            ),
        ),
        picture,
    )


def _difference(
    both: tuple[Correction, Correction],
    ratios: Array,
    vectors: Array,
    ring: Callable[..., RatioRing],
) -> tuple[Array, Array]:
    """V(first | B) - V(second | B) of each window, batches of 2 enumerated, and its scale."""
    first, second = (moments(correction, ratios, vectors, 2, ring=ring) for correction in both)
    return first.variance - second.variance, first.second + second.second
