"""The variance over windows and draws: the laws of total variance.

An update varies because windows do, and because draws do. The first part is the variance of its
average given the window; corrections with the same average share it, and so differ by the second
part only: BC-IR and IS, and likewise IR and WIS-Optimal, which draws nothing. Windows of the Markov
chain are enumerated, and simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf.correction import BCIR, IR, IS, Correction, WISOptimal
from gvf.sampling import RatioRing
from gvf.study.draws import draw
from gvf.theory.chain import EASY, HARD, ONLY_RIGHT, Chain
from gvf.theory.exact import moments
from gvf.theory.moments import predict, squared_norms
from gvf.theory.pictures import AMBER, BLACK, SKY, panel
from gvf.theory.row import Finding, Row, exactly, sampled
from gvf.theory.simulate import Draw, sliding, stream

WINDOW, BATCH = 3, 2
STEPS, BLOCK = 1_000_000, 250


def total_variance(
    *,
    seed: int = 0,
    bcir: Correction = BCIR(),  # noqa: B008 (frozen)
    importance_sampling: Correction = IS(),  # noqa: B008
    ir: Correction = IR(),  # noqa: B008
    wis: Correction = WISOptimal(),  # noqa: B008
    ring: Callable[..., RatioRing] = RatioRing,
    draw: Draw = draw,
    chain: Chain = EASY,
) -> Finding:
    """BC-IR and IS differ by their draws only, and so do IR and WIS-Optimal.

    Over windows B and draws::

        V(X_BC) = E[V(X_BC | B)] + V(mu_B),    V(X_IS) = E[V(X_IS | B)] + V(mu_B),
        V(X_BC) - V(X_IS) = E[V(X_BC | B) - V(X_IS | B)],
        V(X_IR) = V(X_WIS) + (1/k) E[sum_i w_i g_i - |sum_i w_i Delta_i|^2],

    with mu_B the mean of rho Delta over the window and w = rho / sum of rho. The second term of the
    last line is the noise of drawing k transitions instead of using all n, and its centre is the
    *weighted* mean of the updates.

    Example:
        >>> from gvf.theory import total_variance
        >>> all(row.holds for row in total_variance().rows)
        True
    """
    right = {c.name: c for c in (BCIR(), IS(), IR(), WISOptimal())}
    corrections = dict(zip(right, (bcir, importance_sampling, ir, wis), strict=True))
    chains = (chain, HARD, ONLY_RIGHT)
    predicted, measured = np.empty((3, 4)), np.empty((3, 4))
    parts = {}
    for i, each in enumerate(chains):
        kinds, probability = each.windows(WINDOW)
        window = each.ratio[kinds], each.update[kinds]
        for j, (name, correction) in enumerate(corrections.items()):
            given_window = predict(right[name], *window, BATCH)
            inside = float(probability @ given_window.variance)
            between = _variance(probability, given_window.mean)
            found = moments(correction, *window, BATCH, ring=ring)
            second, mean = probability @ found.second, probability @ found.mean
            predicted[i, j], measured[i, j] = inside + between, second - mean @ mean
            parts[i, name] = inside, between
    given = {name: parts[0, name][0] for name in corrections}

    kinds, probability = chain.windows(WINDOW)
    path = stream(chain, STEPS, seed=seed, run=99)
    squares = {}
    for name, correction in corrections.items():
        x = sliding(correction, *path, WINDOW, BATCH, seed=seed, run=99, draw=draw)
        centre = predict(right[name], chain.ratio[kinds], chain.update[kinds]).mean
        squares[name] = _blocks(squared_norms(x - probability @ centre))
    columns = list(corrections)
    totals = dict(zip(columns, predicted[0], strict=True))
    unweighted = _printed_noise(chain) / given["IR"]

    def of_blocks(values: Array) -> tuple[float, float]:
        return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))

    def picture(figure: Any) -> None:
        axis = figure.subplots()
        place = np.arange(len(columns))
        within = np.array([parts[0, name][0] for name in columns])
        between = np.array([parts[0, name][1] for name in columns])
        axis.bar(place, between, 0.6, color=SKY, label="between windows")
        axis.bar(place, within, 0.6, between, color=AMBER, label="within: draws")
        means, errors = zip(*(of_blocks(squares[name]) for name in columns), strict=True)
        axis.errorbar(
            place, means, 5 * np.array(errors), fmt="o", color=BLACK, capsize=4,
            label="simulated, ± 5 standard errors",
        )  # fmt: skip
        axis.set_xticks(place, columns)
        panel(axis, "", "V(update)", f"windows of {WINDOW} of the chain, batches of {BATCH}")

    return Finding(
        "Total variance",
        "BC-IR and IS differ by their draws only; so do IR and WIS-Optimal",
        (
            exactly(
                "V(update) is E[V(update | B)] + V(E[update | B]), 4 methods",
                predicted,
                measured,
                "weights wrong by 2e-12, a ratio by 1e-11",
            ),
            exactly(
                "V(BC-IR) - V(IS) is E[V(BC-IR | B) - V(IS | B)]",
                [parts[i, "BC-IR"][0] - parts[i, "IS"][0] for i in range(len(chains))],
                measured[:, 0] - measured[:, 1],
                "weights wrong by 2e-12, a ratio by 1e-11",
                scale=measured[:, 1],
            ),
            exactly(
                "V(IR) - V(WIS-Optimal) is E[sum w g - |sum w Delta|^2] / k",
                [parts[i, "IR"][0] for i in range(len(chains))],
                measured[:, 2] - measured[:, 3],
                "weights wrong by 2e-12",
                scale=measured[:, 2],
            ),
            *(
                sampled(
                    f"V({name}) in a stream of {STEPS:,}",
                    totals[name],
                    *of_blocks(squares[name]),
                    "weights wrong by 2 %",
                )
                for name in columns
            ),
            sampled(
                "V(BC-IR) - V(IS) in the stream",
                given["BC-IR"] - given["IS"],
                *of_blocks(squares["BC-IR"] - squares["IS"]),
                "weights wrong by 5 %; stratified draws",
            ),
            sampled(
                "V(IR) - V(WIS-Optimal) in the stream",
                given["IR"],
                *of_blocks(squares["IR"] - squares["WIS-Optimal"]),
                "weights wrong by 3 %; stratified draws",
            ),
            Row(
                "noise of IR about the unweighted mean, as printed: ratio",
                1.0,
                unweighted,
                0.01,
                "1 %",
                "ratios that are all 1",
                "!=",
            ),
        ),
        picture,
    )


def _variance(probability: Array, values: Array) -> float:
    """The trace of the covariance of values [W, d]."""
    centred = values - probability @ values
    return float(probability @ squared_norms(centred))


def _blocks(values: Array) -> Array:
    """Means over stretches of time, nearly independent of each other."""
    return values.reshape(-1, BLOCK).mean(axis=1)


def _printed_noise(chain: Chain) -> float:
    """E|X_IR - mean of Delta|^2, with the unweighted mean of the window's updates, as printed."""
    kinds, probability = chain.windows(WINDOW)
    window = chain.ratio[kinds], chain.update[kinds]
    resampled = predict(IR(), *window, BATCH)
    shift = resampled.mean - window[1].mean(axis=1)
    return float(probability @ (resampled.variance + squared_norms(shift)))
