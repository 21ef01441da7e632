"""The variance of updates, given the window: diagnosed, enumerated and simulated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gvf import diagnose
from gvf.common.arrays import Floats
from gvf.corrections import IS, Correction
from gvf.kernels import self_normalised
from gvf_lab.study.base_study import seed_for
from gvf_lab.theory.numbers.enumeration import MakeRing, enumerated_moments
from gvf_lab.theory.numbers.prediction import predicted_moments, squared_norms
from gvf_lab.theory.numbers.simulation import Draw, updates
from gvf_lab.theory.numbers.windows import random_windows

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
