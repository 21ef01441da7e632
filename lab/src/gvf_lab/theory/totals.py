"""The variance over windows and draws: the laws of total variance.

An update varies because windows vary and because draws vary. The first part is the variance of its
average given the window. Corrections with the same average share it and differ only in the second
part: BC-IR and IS, and likewise IR and WIS-Optimal, which draws nothing. Windows of the Markov
chain are enumerated, and a stream of it is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gvf import RatioRing
from gvf import draw_batches as draw
from gvf.common.arrays import Floats
from gvf.common.colours import colours_of
from gvf.corrections import BCIR, IR, IS, Correction, WISOptimal
from gvf_lab.theory.chain import DETERMINISTIC_CHAIN, EASY_CHAIN, HARD_CHAIN, Chain
from gvf_lab.theory.enumeration import (
    MakeRing,
    enumerated_moments,
    predicted_moments,
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
from gvf_lab.theory.simulation import Draw, mean_and_error, sliding, stream

WINDOW, BATCH = 3, 2
STEPS, BLOCK = 1_000_000, 250
"""Updates in the stream, and in a block; blocks are nearly independent of each other."""
METHODS: Mapping[str, Correction] = {c.name: c for c in (BCIR(), IS(), IR(), WISOptimal())}
"""The corrections of the paper, which the theory is about."""


@dataclass(frozen=True)
class TotalVariances:
    """V(update) of the METHODS in windows of some chains.

    Attributes:
        within: E[V(update | B)] by formula, [chains, methods].
        between: V(E[update | B]) by formula, [chains, methods].
        measured: V(update) by enumeration, [chains, methods].
        printed_noise: E|X_IR - mean of Delta|^2 in the first chain, about the unweighted mean of
            the window's updates, as printed in the paper.
    """

    within: Floats
    between: Floats
    measured: Floats
    printed_noise: float


def total_variances(
    corrections: Mapping[str, Correction], chain: Chain, ring: MakeRing
) -> TotalVariances:
    """Predict the variances of METHODS, and enumerate those of `corrections` of the same names."""
    chains = (chain, HARD_CHAIN, DETERMINISTIC_CHAIN)
    within, between, measured = (np.empty((len(chains), len(METHODS))) for _ in range(3))
    for i, each in enumerate(chains):
        kinds, probability = each.windows(WINDOW)
        window = each.ratio[kinds], each.update[kinds]
        for j, (name, method) in enumerate(METHODS.items()):
            predicted = predicted_moments(method, *window, BATCH)
            within[i, j] = probability @ predicted.variance
            centred = predicted.mean - probability @ predicted.mean
            between[i, j] = probability @ squared_norms(centred)
            enumerated = enumerated_moments(corrections[name], *window, BATCH, ring=ring)
            second, mean = probability @ enumerated.second, probability @ enumerated.mean
            measured[i, j] = second - mean @ mean
    return TotalVariances(within, between, measured, _printed_noise(chain))


def _printed_noise(chain: Chain) -> float:
    kinds, probability = chain.windows(WINDOW)
    window = chain.ratio[kinds], chain.update[kinds]
    resampled = predicted_moments(IR(), *window, BATCH)
    shift = resampled.mean - window[1].mean(axis=1)
    return float(probability @ (resampled.variance + squared_norms(shift)))


@dataclass(frozen=True)
class StreamVariances:
    """The squared distances of updates from their expectation along a stream of the chain.

    Attributes:
        blocks: means over blocks of time, by name of the method, [blocks].
    """

    blocks: Mapping[str, Floats]

    def variance(self, name: str) -> tuple[float, float]:
        """Return V(update) of a method, and its standard error."""
        return mean_and_error(self.blocks[name])

    def difference(self, name: str, other: str) -> tuple[float, float]:
        """Return V(update) of one method minus that of another, and its standard error."""
        return mean_and_error(self.blocks[name] - self.blocks[other])


def stream_variances(
    corrections: Mapping[str, Correction], chain: Chain, seed: int, draw: Draw
) -> StreamVariances:
    """Simulate one stream, with an update of each correction after every step."""
    kinds, probability = chain.windows(WINDOW)
    window = chain.ratio[kinds], chain.update[kinds]
    path = stream(chain, STEPS, seed=seed, run=99)
    blocks = {}
    for name, correction in corrections.items():
        x = sliding(correction, *path, WINDOW, BATCH, seed=seed, run=99, draw=draw)
        expected = probability @ predicted_moments(METHODS[name], *window).mean
        blocks[name] = squared_norms(x - expected).reshape(-1, BLOCK).mean(axis=1)
    return StreamVariances(blocks)


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
    corrections = dict(zip(METHODS, (bcir, importance_sampling, ir, wis), strict=True))
    totals = total_variances(corrections, chain, ring)
    in_stream = stream_variances(corrections, chain, seed, draw)
    return Finding(
        "Total variance",
        "BC-IR and IS differ by their draws only; so do IR and WIS-Optimal",
        (*_rows_enumerated(totals), *_rows_of_stream(totals, in_stream), _row_as_printed(totals)),
        partial(draw_total_variance, totals, in_stream),
    )


def _rows_enumerated(variances: TotalVariances) -> tuple[FindingRow, ...]:
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


def _rows_of_stream(totals: TotalVariances, in_stream: StreamVariances) -> list[FindingRow]:
    within, total = totals.within[0], totals.within[0] + totals.between[0]
    variances = [
        sampled(
            f"V({name}) in a stream of {STEPS:,}",
            total[i],
            *in_stream.variance(name),
            "weights wrong by 2 %",
        )
        for i, name in enumerate(METHODS)
    ]
    differences = [
        sampled(
            "V(BC-IR) - V(IS) in the stream",
            within[0] - within[1],
            *in_stream.difference("BC-IR", "IS"),
            "weights wrong by 5 %; stratified draws",
        ),
        sampled(
            "V(IR) - V(WIS-Optimal) in the stream",
            within[2],
            *in_stream.difference("IR", "WIS-Optimal"),
            "weights wrong by 3 %; stratified draws",
        ),
    ]
    return variances + differences


def _row_as_printed(variances: TotalVariances) -> FindingRow:
    return FindingRow(
        "noise of IR about the unweighted mean, as printed: ratio",
        1.0,
        float(variances.printed_noise / variances.within[0, 2]),
        0.01,
        "1 %",
        "ratios that are all 1",
        "!=",
    )


def draw_total_variance(variances: TotalVariances, in_stream: StreamVariances, figure: Any) -> None:
    """Draw the variance of each method's update, between and within windows."""
    axis, place = figure.subplots(), np.arange(len(METHODS))
    colours = list(colours_of(METHODS).values())
    between, within = variances.between[0], variances.within[0]
    axis.bar(place, between, 0.6, color=colours, alpha=0.9)
    axis.bar(place, within, 0.6, between, color=colours, alpha=0.4)
    axis.bar(0, 0, 0.6, color=BLACK, alpha=0.9, label="between windows")
    axis.bar(0, 0, 0.6, color=BLACK, alpha=0.4, label="within: draws")
    measured, errors = np.array([in_stream.variance(name) for name in METHODS]).T
    draw_points(axis, place, measured, errors, BLACK, "simulated, ± 5 standard errors")
    axis.set_xticks(place, list(METHODS))
    title = f"windows of {WINDOW} of the chain, batches of {BATCH}"
    label_axis(axis, "", "V(update)", title)
