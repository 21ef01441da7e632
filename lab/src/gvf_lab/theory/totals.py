"""The variance over windows and draws: the laws of total variance.

An update varies because windows vary and because draws vary. The first part is the variance of its
average given the window. Corrections with the same average share it and differ only in the second
part: BC-IR and IS, and likewise IR and WIS-Optimal, which draws nothing. The numbers are those of
:mod:`gvf_lab.theory.numbers.totals_numbers`.
"""

from __future__ import annotations

from functools import partial

from gvf import RatioRing
from gvf import draw_batches as draw
from gvf.corrections import BCIR, IR, IS, Correction, WISOptimal
from gvf_lab.theory import theory_pictures
from gvf_lab.theory.finding import Finding, FindingRow, exactly, sampled
from gvf_lab.theory.numbers import totals_numbers
from gvf_lab.theory.numbers.chain import EASY_CHAIN, Chain
from gvf_lab.theory.numbers.enumeration import MakeRing
from gvf_lab.theory.numbers.simulation import Draw


def total_variance(
    *,
    seed: int = 0,
    bcir: Correction = BCIR(),  # noqa: B008 (frozen)
    importance_sampling: Correction = IS(),  # noqa: B008
    ir: Correction = IR(),  # noqa: B008
    wis: Correction = WISOptimal(),  # noqa: B008
    ring: MakeRing = RatioRing,
    draw: Draw = draw,
    chain: Chain = EASY_CHAIN,
) -> Finding:
    """Test that BC-IR and IS differ only by their draws, and so do IR and WIS-Optimal.

    Over windows B and draws::

        V(X_BC) = E[V(X_BC | B)] + V(mu_B),    V(X_IS) = E[V(X_IS | B)] + V(mu_B),
        V(X_BC) - V(X_IS) = E[V(X_BC | B) - V(X_IS | B)],
        V(X_IR) = V(X_WIS) + (1/k) E[sum_i w_i g_i - |sum_i w_i Delta_i|^2],

    with mu_B the mean of rho Delta over the window and w = rho / sum of rho. The second term of the
    last line is the noise of drawing k transitions instead of using all n, and its centre is the
    *weighted* mean of the updates.

    Example:
        >>> from gvf_lab.theory import total_variance
        >>> all(row.holds for row in total_variance().rows)
        True
    """
    corrections = dict(
        zip(totals_numbers.METHODS, (bcir, importance_sampling, ir, wis), strict=True)
    )
    totals = totals_numbers.total_variances(corrections, chain, ring)
    stream = totals_numbers.stream_variances(corrections, chain, seed, draw)
    return Finding(
        "Total variance",
        "BC-IR and IS differ by their draws only; so do IR and WIS-Optimal",
        (*_rows_enumerated(totals), *_rows_of_stream(totals, stream), _row_as_printed(totals)),
        partial(theory_pictures.draw_total_variance, totals, stream),
    )


def _rows_enumerated(variances: totals_numbers.TotalVariances) -> tuple[FindingRow, ...]:
    bcir, reweighted, ir, wis = variances.measured.T
    return (
        exactly(
            "V(update) is E[V(update | B)] + V(E[update | B]), 4 methods",
            variances.within + variances.between,
            variances.measured,
            "weights wrong by 2e-12, a ratio by 1e-11",
        ),
        exactly(
            "V(BC-IR) - V(IS) is E[V(BC-IR | B) - V(IS | B)]",
            variances.within[:, 0] - variances.within[:, 1],
            bcir - reweighted,
            "weights wrong by 2e-12, a ratio by 1e-11",
            scale=reweighted,
        ),
        exactly(
            "V(IR) - V(WIS-Optimal) is E[sum w g - |sum w Delta|^2] / k",
            variances.within[:, 2],
            ir - wis,
            "weights wrong by 2e-12",
            scale=ir,
        ),
    )


def _rows_of_stream(
    totals: totals_numbers.TotalVariances, stream: totals_numbers.StreamVariances
) -> list[FindingRow]:
    within, total = totals.within[0], totals.within[0] + totals.between[0]
    variances = [
        sampled(
            f"V({name}) in a stream of {totals_numbers.STEPS:,}",
            total[i],
            *stream.variance(name),
            "weights wrong by 2 %",
        )
        for i, name in enumerate(totals_numbers.METHODS)
    ]
    differences = [
        sampled(
            "V(BC-IR) - V(IS) in the stream",
            within[0] - within[1],
            *stream.difference("BC-IR", "IS"),
            "weights wrong by 5 %; stratified draws",
        ),
        sampled(
            "V(IR) - V(WIS-Optimal) in the stream",
            within[2],
            *stream.difference("IR", "WIS-Optimal"),
            "weights wrong by 3 %; stratified draws",
        ),
    ]
    return variances + differences


def _row_as_printed(variances: totals_numbers.TotalVariances) -> FindingRow:
    return FindingRow(
        "noise of IR about the unweighted mean, as printed: ratio",
        1.0,
        float(variances.printed_noise / variances.within[0, 2]),
        0.01,
        "1 %",
        "ratios that are all 1",
        "!=",
    )
