"""The variance of updates, given the window: the paper's lemma.

V is the trace of the covariance, over the draws of a mini-batch of k. The closed forms are in
:mod:`gvf.theory.moments`; here they meet the library's draws and weights, once with every batch
enumerated (:mod:`gvf.theory.exact`), once simulated. What follows from them for IS and BC-IR is in
:mod:`gvf.theory.variance`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gvf.correction import BCIR, IR, IS, Correction, VTrace
from gvf.sampling import RatioRing
from gvf.study.draws import draw
from gvf.study.walk import seed_for
from gvf.theory import moments as closed
from gvf.theory.exact import moments
from gvf.theory.pictures import BLACK, COLOURS, panel
from gvf.theory.row import Array, Finding, exactly, sampled
from gvf.theory.simulate import Draw, updates
from gvf.theory.windows import random_windows

CLIP = 1.0
BATCHES, BATCH = 400_000, 4


def lemma(
    *,
    seed: int = 0,
    corrections: tuple[Correction, ...] = (IS(), BCIR(), IR(), VTrace(CLIP)),
    ring: Callable[..., RatioRing] = RatioRing,
    draw: Draw = draw,
) -> Finding:
    """The variance of a mini-batch's update, given the window, in closed form.

    With r the mean ratio, mu_B the mean of rho Delta, g the squared length of Delta, w = rho / sum
    of rho, and k independent draws::

        V(IS | B)    = (mean of rho^2 g - |mu_B|^2) / k,
        V(BC-IR | B) = (r * mean of rho g - |mu_B|^2) / k,
        V(IR | B)    = (sum of w g - |sum of w Delta|^2) / k  =  V(BC-IR | B) / r^2,

    and for V-trace (the last of the corrections) the first with min(rho, clip) in place of rho,
    which also biases it, by the mean of (min(rho, clip) - rho) Delta.

    Example:
        >>> from gvf.theory import lemma
        >>> all(row.holds for row in lemma().rows)
        True
    """
    ratios, vectors = random_windows(200, 6, seed=seed, purpose="lemma")
    predicted = np.array([_closed(c, ratios, vectors, 2) for c in corrections])
    enumerated = [moments(c, ratios, vectors, 2, ring=ring) for c in corrections]
    measured = np.array([found.variance for found in enumerated])
    second = np.array([found.second for found in enumerated])

    ratio, vector = (values[0] for values in random_windows(1, 20, seed=seed, purpose="lemma"))
    draws = draw(
        ratio,
        window=len(ratio),
        batch_size=BATCH,
        updates=BATCHES,
        seed=seed_for(seed, 0, "theory", "lemma"),
    )
    formula, found, error = (np.empty(len(corrections)) for _ in range(3))
    for i, correction in enumerate(corrections):
        x = updates(correction, ratio, vector, draws)
        squares = closed.squared_norms(x - x.mean(axis=0))
        formula[i] = _closed(correction, ratio, vector, BATCH)
        found[i], error[i] = squares.mean(), squares.std() / np.sqrt(BATCHES)
    clipped = updates(corrections[-1], ratio, vector, draws)
    average = closed.mean_ratio_times_update(ratio, vector)
    names = [correction.name for correction in corrections]
    by_ratio = "; stratified draws"

    def picture(figure: Any) -> None:
        axis = figure.subplots()
        place = np.arange(len(names))
        colours = [COLOURS[name.split("(")[0]] for name in names]
        axis.bar(place, formula, 0.6, color=colours, alpha=0.6, label="formula")
        axis.errorbar(
            place, found, 5 * error, fmt="o", color=BLACK, capsize=4,
            label="simulated, ± 5 standard errors",
        )  # fmt: skip
        axis.set_xticks(place, names)
        panel(axis, "", "V(update | window)", f"one window of {len(ratio)}, batches of {BATCH}")

    return Finding(
        "Variance lemma",
        "the variance of an update, given the window",
        (
            exactly(
                f"V(update | B), the 4 below: {len(ratios)} windows, all batches",
                predicted,
                measured,
                "weights wrong by 2e-12, a ratio by 1e-11",
                scale=second,
            ),
            *(
                sampled(
                    f"V({name} | B), {BATCHES:,} batches of {BATCH}",
                    formula[i],
                    found[i],
                    error[i],
                    "weights wrong by 1 %" + by_ratio * (corrections[i].draw == "ratio"),
                )
                for i, name in enumerate(names)
            ),
            sampled(
                f"bias of {names[-1]}, given the window",
                closed.bias_of_vtrace(ratio, vector, CLIP),
                clipped.mean(axis=0) - average,
                clipped.std(axis=0) / np.sqrt(BATCHES),
                "weights wrong by 3 %",
            ),
        ),
        picture,
    )


def _closed(correction: Correction, ratios: Array, vectors: Array, k: int) -> Array:
    """The lemma's formula for a correction."""
    if isinstance(correction, VTrace):
        return closed.variance_of_vtrace(ratios, vectors, k, correction.clip)
    formula = {
        "IS": closed.variance_of_is,
        "BC-IR": closed.variance_of_bcir,
        "IR": closed.variance_of_ir,
    }[correction.name]
    return formula(ratios, vectors, k)
