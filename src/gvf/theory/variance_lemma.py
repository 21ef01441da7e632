"""The variance of updates, given the window: the paper's lemma, as the diagnosis computes it.

V is the trace of the covariance, over the draws of a mini-batch of k. The formula is in
:mod:`gvf.diagnosis.law`, and :func:`gvf.diagnose` uses it. The rows compare it with the library's
draws and weights, enumerated and simulated (:mod:`gvf.theory.numbers.lemma`). The consequences for
IS and BC-IR are in :mod:`gvf.theory.variance`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gvf.correction import BCIR, IR, IS, BCInterpolated, Correction, Interpolated, VTrace
from gvf.sampling import RatioRing
from gvf.study.draws import draw
from gvf.theory import pictures
from gvf.theory.finding import Finding, FindingRow, exactly, sampled
from gvf.theory.numbers import lemma as numbers
from gvf.theory.numbers.enumeration import MakeRing
from gvf.theory.numbers.prediction import squared_norms
from gvf.theory.numbers.simulation import Draw

CORRECTIONS: tuple[Correction, ...] = (
    IS(), BCIR(), IR(), VTrace(1.0), Interpolated(0.5), BCInterpolated(0.5),
)  # fmt: skip
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
        >>> from gvf.theory import lemma
        >>> all(row.holds for row in lemma().rows)
        True
    """
    measured = corrections if measured is None else measured
    enumerated = numbers.lemma_enumerated(corrections, measured, seed, ring)
    simulated = numbers.lemma_simulated(corrections, measured, seed, draw)
    names = [correction.name for correction in corrections]
    return Finding(
        "Variance lemma",
        "the variance of an update, given the window, as gvf.diagnose computes it",
        (
            *_rows_enumerated(names, enumerated),
            *_rows_simulated(corrections, simulated, enumerated.biased),
        ),
        partial(pictures.draw_lemma, names, simulated),
    )


def _rows_enumerated(names: list[str], found: numbers.LemmaEnumerated) -> list[FindingRow]:
    rows = [
        exactly(
            f"V(update | B), the {len(names)} below: {numbers.WINDOWS} windows, all batches",
            found.variance,
            found.measured,
            SMALLEST_ERROR,
            scale=found.second,
        ),
        exactly(
            "... and the length of E[update | B]",
            found.length,
            np.sqrt(squared_norms(found.mean)),
            SMALLEST_ERROR,
            scale=np.sqrt(found.second),
        ),
    ]
    if found.unbiased:
        mean = found.mean[found.unbiased]
        rows.append(
            exactly(
                f"E[update | B] is E[IS | B]: {', '.join(names[i] for i in found.unbiased)}",
                np.broadcast_to(found.mean_of_is, mean.shape),
                mean,
                SMALLEST_ERROR,
                scale=np.sqrt(found.second[found.unbiased])[:, :, None],
            )
        )
    return rows


def _rows_simulated(
    corrections: tuple[Correction, ...], found: numbers.LemmaSimulated, biased: list[int]
) -> list[FindingRow]:
    variances = [
        sampled(
            f"V({correction.name} | B), {numbers.BATCHES:,} batches of {numbers.BATCH}",
            found.formula[i],
            found.measured[i],
            found.error[i],
            "weights wrong by 1 %" + ("" if correction.draw.uniform else "; stratified draws"),
        )
        for i, correction in enumerate(corrections)
    ]
    biases = [
        sampled(
            f"bias of {corrections[i].name}, given the window",
            found.expected[i] - found.mean_of_is,
            found.mean[i] - found.mean_of_is,
            found.mean_error[i],
            "weights wrong by 3 %",
        )
        for i in biased
    ]
    return variances + biases
