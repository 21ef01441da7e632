"""Emphatic resampling: draws by rho F, with the fixed point of emphatic TD(0).

The paper has no result about it; these are our own. With rho F in the place of rho, the paper's
statements about one window hold as they are, since F is known and fixed when a transition is
inserted. The limit is another one: that of emphatic TD(0). The numbers are those of
:mod:`gvf_lab.theory.numbers.emphasis_numbers`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gvf import RatioRing
from gvf import draw_batches as draw
from gvf.corrections import Correction, EmphaticBCIR, EmphaticIR, EmphaticIS, EmphaticWISMinibatch
from gvf.kernels import carried
from gvf_lab.theory import theory_pictures
from gvf_lab.theory.bias import first_order
from gvf_lab.theory.finding import Finding, FindingRow, exactly, sampled
from gvf_lab.theory.numbers import emphasis_numbers
from gvf_lab.theory.numbers.bias_numbers import SIZES, BiasBySize
from gvf_lab.theory.numbers.enumeration import MakeRing
from gvf_lab.theory.numbers.simulation import Draw


def emphatic_resampling(
    *,
    seed: int = 0,
    ir: Correction = EmphaticIR(),  # noqa: B008 (frozen)
    bcir: Correction = EmphaticBCIR(),  # noqa: B008
    importance_sampling: Correction = EmphaticIS(),  # noqa: B008
    wis: Correction = EmphaticWISMinibatch(),  # noqa: B008
    ring: MakeRing = RatioRing,
    draw: Draw = draw,
    carried: emphasis_numbers.Carried = carried,
) -> Finding:
    """Test that emphatic IR is emphatic WIS on average, with the fixed point of emphatic TD(0).

    With the follow-on trace F_t = gamma_t rho_{t-1} F_{t-1} + i_t, for every window B with mass::

        E[X | B] = sum_i rho_i F_i Delta_i / sum_j rho_j F_j,
        V(X | B) = (1/k) (sum_i P_i g_i - |E[X | B]|^2),    P_i = rho_i F_i / sum_j rho_j F_j.

    As the window grows, the first tends to E[rho F Delta] / E[rho F], which is 0 at the fixed point
    of emphatic TD(0). In windows of n independent episodes, with H the sum of rho F over an episode
    divided by its mean, and Y that of rho F (Delta - limit) divided by the same mean, the bias is
    -Cov(H, Y) / n + O(1 / n^2).

    Example:
        >>> from gvf_lab.theory import emphatic_resampling
        >>> all(row.holds for row in emphatic_resampling().rows)
        True
    """
    windows = emphasis_numbers.emphatic_windows(ir, seed, carried)
    bias = emphasis_numbers.emphatic_bias(wis, carried)
    points = emphasis_numbers.fixed_points(ir, seed, draw, carried)
    corrections = ir, bcir, importance_sampling
    enumerated = [
        emphasis_numbers.enumerated(correction, windows, ring) for correction in corrections
    ]
    simulated = emphasis_numbers.simulated_variances(corrections, windows, seed, draw)
    return Finding(
        "Emphatic resampling",
        "Emphatic IR has the fixed point of emphatic TD(0) (our own result)",
        (
            exactly(
                f"E[Emphatic IR | B] is emphatic WIS, in {len(windows.emphasis)} windows",
                windows.weighted_mean,
                enumerated[0].mean,
                "weights wrong by 2e-12, a ratio by 1e-11",
                scale=np.abs(windows.update).max(axis=(1, 2))[:, None],
            ),
            *_rows_of_bias(bias),
            *_rows_of_fixed_point(points),
            exactly(
                "V(update | B) is the lemma's with rho F: Emphatic IR, BC-IR, IS",
                windows.variance / emphasis_numbers.BATCH,
                [moments.variance for moments in enumerated],
                "weights wrong by 2e-12, a ratio by 1e-11",
                scale=[moments.second for moments in enumerated],
            ),
            sampled(
                f"... in {emphasis_numbers.BATCHES:,} batches of "
                f"{emphasis_numbers.SIMULATED_BATCH} from a window",
                windows.variance[:, 0],
                *simulated,
                "weights wrong by 2 %; stratified draws",
            ),
        ),
        partial(theory_pictures.draw_emphatic_resampling, bias, points),
    )


def _rows_of_bias(bias: BiasBySize) -> tuple[FindingRow, ...]:
    n = int(SIZES[-1])
    return first_order(f"-Cov(H, Y); n = {n} episodes", bias, n)


def _rows_of_fixed_point(points: emphasis_numbers.FixedPoints) -> tuple[FindingRow, ...]:
    measured = points.mean, points.error
    return (
        sampled(
            f"weights where it stops, {emphasis_numbers.RUNS} streams: those of emphatic TD(0)",
            points.emphatic_td,
            *measured,
            "2 % of the draws made uniformly; a trace by the row's own ratio or continuation",
        ),
        sampled(
            "... which are not those of TD(0)",
            points.td,
            *measured,
            "a trace that is always 1",
            relation="!=",
        ),
    )
