"""The variance of updates, given the window: the paper's lemma, as the diagnosis computes it.

V is the trace of the covariance, over the draws of a mini-batch of k. The formula is in
the library, and :func:`gvf.diagnose` uses it. The rows compare it with the library's draws and
weights, enumerated and simulated. The consequences for IS and BC-IR are in
:mod:`gvf_lab.theory.variance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gvf import RatioRing, diagnose
from gvf import draw_batches as draw
from gvf.common.arrays import Floats
from gvf.common.colours import colours_of
from gvf.corrections import BCIR, IR, IS, BCInterpolated, Correction, Interpolated, VTrace
from gvf.kernels import self_normalised
from gvf_lab.study.base_study import seed_for
from gvf_lab.theory.enumeration import (
    MakeRing,
    enumerated_moments,
    predicted_moments,
    random_windows,
    squared_norms,
)
from gvf_lab.theory.finding import (
    BLACK,
    Finding,
    FindingRow,
    draw_points,
    exactly,
    label_axis,
    sampled,
)
from gvf_lab.theory.simulation import Draw, updates

Corrections = tuple[Correction, ...]
WINDOWS = 200
"""Windows whose batches are enumerated."""
WINDOW, BATCHES, BATCH = 20, 400_000, 4
"""The length of the window that batches are simulated from, their number and their size."""


@dataclass(frozen=True)
class LemmaEnumerated:
    """Moments of C corrections in G windows: as diagnosed, and summed over all batches.

    Attributes:
        variance: V(X | B) as diagnosed, [C, G].
        length: |E[X | B]| as diagnosed, [C, G].
        mean_of_is: E[IS | B], [G, d].
        mean: E[X | B] by enumeration, [C, G, d].
        second: E[|X|^2 | B] by enumeration, [C, G].
        measured: V(X | B) by enumeration, [C, G].
        unbiased: the indices of corrections whose mean is that of IS in every window.
        biased: the indices of the others, without the self-normalised (biased over windows only).
    """

    variance: Floats
    length: Floats
    mean_of_is: Floats
    mean: Floats
    second: Floats
    measured: Floats
    unbiased: list[int]
    biased: list[int]


def lemma_enumerated(
    corrections: Corrections, measured: Corrections, seed: int, ring: MakeRing
) -> LemmaEnumerated:
    """Diagnose `corrections` and enumerate the batches of `measured` in windows of 6."""
    ratios, vectors = random_windows(WINDOWS, 6, seed=seed, purpose="lemma")
    variance, length, bias = _diagnosed(corrections, ratios, vectors, 2)
    enumerated = [enumerated_moments(c, ratios, vectors, 2, ring=ring) for c in measured]
    given_window = [i for i, c in enumerate(corrections) if not self_normalised(c, BATCH)]
    return LemmaEnumerated(
        variance,
        length,
        predicted_moments(IS(), ratios, vectors).mean,
        np.array([moments.mean for moments in enumerated]),
        np.array([moments.second for moments in enumerated]),
        np.array([moments.variance for moments in enumerated]),
        [i for i in given_window if not bias[i].any()],
        [i for i in given_window if bias[i].any()],
    )


@dataclass(frozen=True)
class LemmaSimulated:
    """Moments of C corrections in one window: as diagnosed, and of simulated batches.

    Attributes:
        formula: V(X | B) as diagnosed, [C].
        measured: V(X | B) of the batches, [C].
        error: the standard errors of `measured`, [C].
        expected: E[X | B] by formula, [C, d].
        mean_of_is: E[IS | B], [d].
        mean: the mean update of the batches, [C, d].
        mean_error: the standard errors of `mean`, [C, d].
    """

    formula: Floats
    measured: Floats
    error: Floats
    expected: Floats
    mean_of_is: Floats
    mean: Floats
    mean_error: Floats


def lemma_simulated(
    corrections: Corrections, measured: Corrections, seed: int, draw: Draw
) -> LemmaSimulated:
    """Diagnose `corrections` and simulate batches of `measured` in one window."""
    ratio, vector = random_windows(1, WINDOW, seed=seed, purpose="lemma")
    simulated = [_simulated(c, ratio[0], vector[0], seed, draw) for c in measured]
    spreads = [squared_norms(x - x.mean(axis=0)) for x in simulated]
    return LemmaSimulated(
        _diagnosed(corrections, ratio, vector, BATCH)[0][:, 0],
        np.array([squares.mean() for squares in spreads]),
        np.array([squares.std() for squares in spreads]) / np.sqrt(BATCHES),
        np.array([predicted_moments(c, ratio, vector, BATCH).mean[0] for c in corrections]),
        predicted_moments(IS(), ratio, vector, BATCH).mean[0],
        np.array([x.mean(axis=0) for x in simulated]),
        np.array([x.std(axis=0) for x in simulated]) / np.sqrt(BATCHES),
    )


def _diagnosed(
    corrections: Corrections, ratios: Floats, vectors: Floats, k: int
) -> tuple[Floats, Floats, Floats]:
    """Diagnose G windows: variance, length of the mean, and bias, [corrections, G]."""
    diagnoses = [
        diagnose(*window, batch_size=k, corrections=corrections).moments.values()
        for window in zip(ratios, vectors, strict=True)
    ]
    numbers = [[(m.variance.value, m.length, m.bias) for m in moments] for moments in diagnoses]
    variance, length, bias = np.array(numbers).T
    return variance, length, bias


def _simulated(
    correction: Correction, ratio: Floats, vector: Floats, seed: int, draw: Draw
) -> Floats:
    """Simulate a correction's updates from one window, [BATCHES, d]."""
    draws = draw(
        correction,
        ratio,
        window=len(ratio),
        batch_size=BATCH,
        updates=BATCHES,
        seed=seed_for(seed, 0, "theory", "lemma"),
    )
    return updates(correction, vector, draws)


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
    enumerated = lemma_enumerated(corrections, measured, seed, ring)
    simulated = lemma_simulated(corrections, measured, seed, draw)
    names = [correction.name for correction in corrections]
    return Finding(
        "Variance lemma",
        "the variance of an update, given the window, as gvf.diagnose computes it",
        (
            *_rows_enumerated(names, enumerated),
            *_rows_simulated(corrections, simulated, enumerated.biased),
        ),
        partial(draw_lemma, names, simulated),
    )


def _rows_enumerated(names: list[str], moments: LemmaEnumerated) -> list[FindingRow]:
    rows = [
        exactly(
            f"V(update | B), the {len(names)} below: {WINDOWS} windows, all batches",
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
    corrections: tuple[Correction, ...], simulated: LemmaSimulated, biased: list[int]
) -> list[FindingRow]:
    variances = [
        sampled(
            f"V({correction.name} | B), {BATCHES:,} batches of {BATCH}",
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


def draw_lemma(names: Sequence[str], simulated: LemmaSimulated, figure: Any) -> None:
    """Draw the variance of each correction's update given the window, by formula and simulated."""
    axis, place = figure.subplots(), np.arange(len(names))
    colours = list(colours_of(names).values())
    axis.bar(place, simulated.formula, 0.6, color=colours, alpha=0.6)
    axis.bar(0, 0, 0.6, color=BLACK, alpha=0.6, label="formula")
    draw_points(
        axis, place, simulated.measured, simulated.error, BLACK, "simulated, ± 5 standard errors"
    )
    axis.set_xticks(place, [name.replace("(", "\n(") for name in names])
    label_axis(
        axis,
        "",
        "V(update | window)",
        f"one window of {WINDOW}, batches of {BATCH}",
    )
