"""Consistency: the limits of importance resampling, as windows grow and as time goes on.

As the window grows, a draw by ratio becomes a draw from d_mu pi P (the paper's proposition). With a
window of fixed length, BC-IR's average over time converges to the right update (Theorem 3.2), and
IR keeps the bias of its window. The numbers are those of
:mod:`gvf_lab.theory.numbers.consistency_numbers`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gvf import draw_batches as draw
from gvf.common.arrays import Floats
from gvf.corrections import BCIR, IR, Correction
from gvf_lab.theory import theory_pictures
from gvf_lab.theory.finding import Finding, FindingRow, sampled
from gvf_lab.theory.numbers import consistency_numbers
from gvf_lab.theory.numbers.simulation import Draw, stream


def proposition(*, seed: int = 0, draw: Draw = draw) -> Finding:
    """Test that draws by ratio become draws from d_mu pi P, at the rate n^(-1/2).

    Let Q_n be the distribution of a draw by ratio, given a window of n independent transitions from
    p = d_mu mu P, and q = d_mu pi P. Then Q_n tends to q, and (by the delta method)::

        n E|Q_n - q|^2  tends to  sum_x E_pi[rho (1{X = x} - q(x))^2],

    so that the distance falls as n^(-1/2). Its square is estimated without bias from n draws.

    Example:
        >>> from gvf_lab.theory import proposition
        >>> all(row.holds for row in proposition().rows)
        True
    """
    distance = consistency_numbers.resampling_distance(seed, draw)
    first, n = (
        int(consistency_numbers.SIZES[consistency_numbers.SLOPE_START]),
        int(consistency_numbers.SIZES[-1]),
    )
    rows = (
        sampled(
            f"frequency of each kind of transition, n = {n}",
            distance.target,
            distance.frequency,
            distance.frequency_error,
            "2 % of the draws made uniformly",
        ),
        sampled(
            f"n * mean |Q_n - q|^2, n = {n}",
            distance.limit,
            distance.scaled[-1],
            distance.error[-1],
            "6 % of the draws made uniformly",
        ),
        sampled(
            f"the distance falls as n to the power, n = {first} to {n}",
            -0.5,
            *distance.slope,
            "6 % of the draws made uniformly",
        ),
    )
    return Finding(
        "Proposition",
        "draws by ratio become draws from d_mu pi P",
        rows,
        partial(theory_pictures.draw_proposition, distance),
    )


def theorem_3_2(
    *,
    seed: int = 0,
    bcir: Correction = BCIR(),  # noqa: B008 (frozen)
    ir: Correction = IR(),  # noqa: B008
    draw: Draw = draw,
    stream: Callable[..., tuple[Floats, Floats]] = stream,
) -> Finding:
    """Test that BC-IR averages to the right update with a sliding window, and IR does not.

    For a window of n transitions that slides along the stream, and frozen values::

        (1/T) sum_t X_BC(t)  tends to  E_pi[Delta]  almost surely, and
        T V((1/T) sum_t X_BC(t))  tends to  sum over all lags h of Cov(rho_0 Delta_0, rho_h Delta_h)
                                            + E[V(X_BC | B)],

    since every transition is in n windows, and draws are independent given the stream. The average
    of IR keeps the bias of IR in windows of n *consecutive* transitions, which differs from that of
    Theorem 3.1 for independent ones.

    Example:
        >>> from gvf_lab.theory import theorem_3_2
        >>> all(row.holds for row in theorem_3_2().rows)
        True
    """
    limits = consistency_numbers.sliding_limits()
    averages = consistency_numbers.sliding_averages(seed, bcir, ir, draw, stream)
    return Finding(
        "Theorem 3.2",
        "with a sliding window, BC-IR averages to the right update",
        _rows_3_2(limits, averages),
        partial(theory_pictures.draw_theorem_3_2, limits, averages),
    )


def _rows_3_2(
    limits: consistency_numbers.SlidingLimits, averages: consistency_numbers.SlidingAverages
) -> tuple[FindingRow, ...]:
    of_ir = averages.mean["IR"], averages.error["IR"]
    updates = consistency_numbers.RUNS * consistency_numbers.STEPS
    return (
        sampled(
            f"average of BC-IR, n = {consistency_numbers.WINDOW}, {updates:,} updates",
            limits.expected,
            averages.mean["BC-IR"],
            averages.error["BC-IR"],
            "weights wrong by 1 %",
        ),
        sampled(
            f"T * variance of the average, T = {consistency_numbers.BLOCK}",
            limits.variance_limit,
            *averages.variances[consistency_numbers.BLOCK],
            "weights wrong by 5 %; stratified draws",
        ),
        sampled(
            "average of IR: the bias of its windows, enumerated",
            limits.ir,
            *of_ir,
            "weights wrong by 1 %; a window of n + 1 or n - 1",
        ),
        sampled(
            "... which is not E_pi[Delta]",
            limits.expected,
            *of_ir,
            "IR with the factor of BC-IR",
            relation="!=",
        ),
        sampled(
            "... nor that of independent transitions",
            limits.ir_if_independent,
            *of_ir,
            "a stream of independent transitions",
            relation="!=",
        ),
    )
