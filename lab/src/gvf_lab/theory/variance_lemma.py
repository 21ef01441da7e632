"""The variance of updates, given the window: the paper's lemma, as the diagnosis computes it.

V is the trace of the covariance, over the draws of a mini-batch of k. The formula is in
:mod:`gvf.diagnosis.batch_law`, and :func:`gvf.diagnose` uses it. The rows compare it with the
library's draws and weights, enumerated and simulated
(:mod:`gvf_lab.theory.numbers.lemma_numbers`). The consequences for IS and BC-IR are in
:mod:`gvf_lab.theory.variance`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gvf import RatioRing
from gvf import draw_batches as draw
from gvf.corrections import BCIR, IR, IS, BCInterpolated, Correction, Interpolated, VTrace
from gvf_lab.theory import theory_pictures
from gvf_lab.theory.finding import Finding, FindingRow, exactly, sampled
from gvf_lab.theory.numbers import lemma_numbers
from gvf_lab.theory.numbers.enumeration import MakeRing
from gvf_lab.theory.numbers.prediction import squared_norms
from gvf_lab.theory.numbers.simulation import Draw

CORRECTIONS: tuple[Correction, ...] = (
    IS(),
    BCIR(),
    IR(),
    VTrace(1.0),
    Interpolated(0.5),
    BCInterpolated(0.5),
)
SMALLEST_ERROR = "weights wrong by 2e-12, a ratio by 1e-11"


def lemma(
    *,
    seed: int = 0,
    corrections: tuple[Correction, ...] = CORRECTIONS,
    measured: tuple[Correction, ...] | None = None,
    ring: MakeRing = RatioRing,
    draw: Draw = draw,
) -> Finding:
    """Test the closed form of the variance of a mini-batch's update, given the window.

    If each of k independent draws is row i with probability P_i and adds a_i Delta_i / k, and g is
    the squared length of Delta::

        E[X | B] = sum of P a Delta,    V(X | B) = (sum of P a^2 g - |E[X | B]|^2) / k.

    Let r be the mean ratio and n the number of rows. IS has P = 1/n and a = rho, V-trace
    a = min(rho, clip), BC-IR P = rho / (n r) and a = r, IR a = 1. So V(IR | B) is
    V(BC-IR | B) / r^2. With masses p = rho^b of mean m, Interpolated has P = p / (n m) and
    a = rho / p, and BC-Interpolated has a = m rho / p. Its mean is that of IS for every b.

    Args:
        seed: the seed of windows and draws.
        corrections: the corrections to diagnose; a row's weight must be the same in every batch.
        measured: corrections that draw and weigh in their place; tests use it to make rows fail.
        ring: the function that makes a ring, which draws by mass.
        draw: the function that draws batches from one window.

    Example:
        >>> from gvf_lab.theory import lemma
        >>> all(row.holds for row in lemma().rows)
        True
    """
    measured = corrections if measured is None else measured
    enumerated = lemma_numbers.lemma_enumerated(corrections, measured, seed, ring)
    simulated = lemma_numbers.lemma_simulated(corrections, measured, seed, draw)
    names = [correction.name for correction in corrections]
    return Finding(
        "Variance lemma",
        "the variance of an update, given the window, as gvf.diagnose computes it",
        (
            *_rows_enumerated(names, enumerated),
            *_rows_simulated(corrections, simulated, enumerated.biased),
        ),
        partial(theory_pictures.draw_lemma, names, simulated),
    )


def _rows_enumerated(names: list[str], moments: lemma_numbers.LemmaEnumerated) -> list[FindingRow]:
    rows = [
        exactly(
            f"V(update | B), the {len(names)} below: {lemma_numbers.WINDOWS} windows, all batches",
            moments.variance,
            moments.measured,
            SMALLEST_ERROR,
            scale=moments.second,
        ),
        exactly(
            "... and the length of E[update | B]",
            moments.length,
            np.sqrt(squared_norms(moments.mean)),
            SMALLEST_ERROR,
            scale=np.sqrt(moments.second),
        ),
    ]
    if moments.unbiased:
        mean = moments.mean[moments.unbiased]
        rows.append(
            exactly(
                f"E[update | B] is E[IS | B]: {', '.join(names[i] for i in moments.unbiased)}",
                np.broadcast_to(moments.mean_of_is, mean.shape),
                mean,
                SMALLEST_ERROR,
                scale=np.sqrt(moments.second[moments.unbiased])[:, :, None],
            )
        )
    return rows


def _rows_simulated(
    corrections: tuple[Correction, ...], simulated: lemma_numbers.LemmaSimulated, biased: list[int]
) -> list[FindingRow]:
    variances = [
        sampled(
            f"V({correction.name} | B), {lemma_numbers.BATCHES:,} batches of {lemma_numbers.BATCH}",
            simulated.formula[i],
            simulated.measured[i],
            simulated.error[i],
            "weights wrong by 1 %" + ("" if correction.draw.uniform else "; stratified draws"),
        )
        for i, correction in enumerate(corrections)
    ]
    biases = [
        sampled(
            f"bias of {corrections[i].name}, given the window",
            simulated.expected[i] - simulated.mean_of_is,
            simulated.mean[i] - simulated.mean_of_is,
            simulated.mean_error[i],
            "weights wrong by 3 %",
        )
        for i in biased
    ]
    return variances + biases
