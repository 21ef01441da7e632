"""The variance of updates, given the window: the paper's lemma, as the diagnosis computes it.

V is the trace of the covariance, over the draws of a mini-batch of k. The formula is in
:mod:`gvf.diagnosis.law`, and users meet it in :func:`gvf.diagnose`; here what that says meets the
library's draws and weights, once with every batch enumerated (:mod:`gvf.theory.exact`), once
simulated. What follows for IS and BC-IR is in :mod:`gvf.theory.variance`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf.correction import BCIR, IR, IS, BCInterpolated, Correction, Interpolated, VTrace
from gvf.diagnosis import diagnose
from gvf.diagnosis.law import self_normalised
from gvf.sampling import RatioRing
from gvf.study.base import seed_for
from gvf.study.draws import draw
from gvf.theory.exact import moments
from gvf.theory.moments import predict, squared_norms
from gvf.theory.pictures import AMBER, BLACK, BLUE, GREEN, ORANGE, PINK, SKY, panel
from gvf.theory.row import Finding, exactly, sampled
from gvf.theory.simulate import Draw, updates
from gvf.theory.windows import random_windows

CORRECTIONS: tuple[Correction, ...] = (
    IS(), BCIR(), IR(), VTrace(1.0), Interpolated(0.5), BCInterpolated(0.5),
)  # fmt: skip
COLOURS = (ORANGE, GREEN, BLUE, PINK, SKY, AMBER)
BATCHES, BATCH = 400_000, 4


def lemma(
    *,
    seed: int = 0,
    corrections: tuple[Correction, ...] = CORRECTIONS,
    measured: tuple[Correction, ...] | None = None,
    ring: Callable[..., RatioRing] = RatioRing,
    draw: Draw = draw,
) -> Finding:
    """The variance of a mini-batch's update, given the window, in closed form.

    If each of k independent draws is row i with probability P_i and adds a_i Delta_i / k, and g is
    the squared length of Delta::

        E[X | B] = sum of P a Delta,    V(X | B) = (sum of P a^2 g - |E[X | B]|^2) / k.

    With r the mean ratio and n rows: IS has P = 1/n and a = rho, V-trace a = min(rho, clip), BC-IR
    P = rho / (n r) and a = r, IR a = 1. So V(IR | B) = V(BC-IR | B) / r^2. Between them, with
    masses p = rho^b of mean m, Interpolated has P = p / (n m) and a = rho / p, BC-Interpolated
    a = m rho / p: its mean is that of IS, whatever b.

    Args:
        seed: of windows and draws.
        corrections: what is diagnosed; any that weigh a row alike in every batch.
        measured: what draws and weighs in their place, to see rows fail.
        ring: makes what draws by mass.
        draw: draws batches from one window.

    Example:
        >>> from gvf.theory import lemma
        >>> all(row.holds for row in lemma().rows)
        True
    """
    measured = corrections if measured is None else measured
    names = [correction.name for correction in corrections]
    ratios, vectors = random_windows(200, 6, seed=seed, purpose="lemma")
    variance, length, bias = _diagnosed(corrections, ratios, vectors, 2)
    enumerated = [moments(c, ratios, vectors, 2, ring=ring) for c in measured]
    second = np.array([found.second for found in enumerated])
    mean = np.array([found.mean for found in enumerated])

    ratio, vector = random_windows(1, 20, seed=seed, purpose="lemma")
    formula = _diagnosed(corrections, ratio, vector, BATCH)[0][:, 0]
    simulated = [_simulated(c, ratio[0], vector[0], seed, draw) for c in measured]
    spreads = [squared_norms(x - x.mean(axis=0)) for x in simulated]
    found = np.array([squares.mean() for squares in spreads])
    error = np.array([squares.std() for squares in spreads]) / np.sqrt(BATCHES)

    given_window = [i for i, c in enumerate(corrections) if not self_normalised(c, BATCH)]
    unbiased = [i for i in given_window if not bias[i].any()]
    expected = [predict(c, ratio, vector, BATCH).mean[0] for c in (*corrections, IS())]

    def picture(figure: Any) -> None:
        axis = figure.subplots()
        place = np.arange(len(names))
        colours = [COLOURS[i % len(COLOURS)] for i in place]
        axis.bar(place, formula, 0.6, color=colours, alpha=0.6, label="formula")
        axis.errorbar(
            place, found, 5 * error, fmt="o", color=BLACK, capsize=4,
            label="simulated, ± 5 standard errors",
        )  # fmt: skip
        axis.set_xticks(place, [name.replace("(", "\n(") for name in names])
        title = f"one window of {ratio.shape[1]}, batches of {BATCH}"
        panel(axis, "", "V(update | window)", title)

    rows = [
        exactly(
            f"V(update | B), the {len(names)} below: {len(ratios)} windows, all batches",
            variance,
            np.array([found.variance for found in enumerated]),
            "weights wrong by 2e-12, a ratio by 1e-11",
            scale=second,
        ),
        exactly(
            "... and the length of E[update | B]",
            length,
            np.sqrt(squared_norms(mean)),
            "weights wrong by 2e-12, a ratio by 1e-11",
            scale=np.sqrt(second),
        ),
    ]
    if unbiased:
        rows.append(
            exactly(
                f"E[update | B] is E[IS | B]: {', '.join(names[i] for i in unbiased)}",
                np.broadcast_to(predict(IS(), ratios, vectors).mean, mean[unbiased].shape),
                mean[unbiased],
                "weights wrong by 2e-12, a ratio by 1e-11",
                scale=np.sqrt(second[unbiased])[:, :, None],
            )
        )
    rows += [
        sampled(
            f"V({name} | B), {BATCHES:,} batches of {BATCH}",
            formula[i],
            found[i],
            error[i],
            "weights wrong by 1 %" + ("" if corrections[i].draw.uniform else "; stratified draws"),
        )
        for i, name in enumerate(names)
    ]
    rows += [
        sampled(
            f"bias of {names[i]}, given the window",
            expected[i] - expected[-1],
            simulated[i].mean(axis=0) - expected[-1],
            simulated[i].std(axis=0) / np.sqrt(BATCHES),
            "weights wrong by 3 %",
        )
        for i in given_window
        if i not in unbiased
    ]
    title = "the variance of an update, given the window, as gvf.diagnose computes it"
    return Finding("Variance lemma", title, tuple(rows), picture)


def _diagnosed(
    corrections: tuple[Correction, ...], ratios: Array, vectors: Array, k: int
) -> tuple[Array, Array, Array]:
    """What diagnoses of G windows say: variance, length of the mean, bias, [corrections, G]."""
    found = [
        diagnose(*window, batch_size=k, corrections=corrections).moments.values()
        for window in zip(ratios, vectors, strict=True)
    ]
    numbers = [[(m.variance, m.length, m.bias) for m in moments] for moments in found]
    variance, length, bias = np.array(numbers).T
    return variance, length, bias


def _simulated(correction: Correction, ratio: Array, vector: Array, seed: int, draw: Draw) -> Array:
    """A correction's updates from one window, [BATCHES, d]."""
    draws = draw(
        correction,
        ratio,
        window=len(ratio),
        batch_size=BATCH,
        updates=BATCHES,
        seed=seed_for(seed, 0, "theory", "lemma"),
    )
    return updates(correction, vector, draws)
