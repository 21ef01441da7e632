"""Consistency: the limits of importance resampling, as windows grow and as time goes on.

As the window grows, a draw by ratio becomes a draw from d_mu pi P (the paper's proposition). With a
window of fixed length, BC-IR's average over time converges to the right update (Theorem 3.2), and
IR keeps the bias of its window. The numbers are those of :mod:`gvf.theory.numbers.consistency`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gvf.common.arrays import Floats
from gvf.correction import BCIR, IR, Correction
from gvf.study.draws import draw
from gvf.theory import pictures
from gvf.theory.finding import Finding, FindingRow, sampled
from gvf.theory.numbers import consistency as numbers
from gvf.theory.numbers.simulation import Draw, stream


def proposition(*, seed: int = 0, draw: Draw = draw) -> Finding:
    """Test that draws by ratio become draws from d_mu pi P, at the rate n^(-1/2).

    Let Q_n be the distribution of a draw by ratio, given a window of n independent transitions from
    p = d_mu mu P, and q = d_mu pi P. Then Q_n tends to q, and (by the delta method)::

        n E|Q_n - q|^2  tends to  sum_x E_pi[rho (1{X = x} - q(x))^2],

    so that the distance falls as n^(-1/2). Its square is estimated without bias from n draws.

    Example:
        >>> from gvf.theory import proposition
        >>> all(row.holds for row in proposition().rows)
        True
    """
    found = numbers.resampling_distance(seed, draw)
    first, n = int(numbers.SIZES[numbers.SLOPE_START]), int(numbers.SIZES[-1])
    rows = (
        sampled(
            f"frequency of each kind of transition, n = {n}",
            found.target,
            found.frequency,
            found.frequency_error,
            "2 % of the draws made uniformly",
        ),
        sampled(
            f"n * mean |Q_n - q|^2, n = {n}",
            found.limit,
            found.scaled[-1],
            found.error[-1],
            "6 % of the draws made uniformly",
        ),
        sampled(
            f"the distance falls as n to the power, n = {first} to {n}",
            -0.5,
            *found.slope,
            "6 % of the draws made uniformly",
        ),
    )
    return Finding(
        "Proposition",
        "draws by ratio become draws from d_mu pi P",
        rows,
        partial(pictures.draw_proposition, found),
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
        >>> from gvf.theory import theorem_3_2
        >>> all(row.holds for row in theorem_3_2().rows)
        True
    """
    limits = numbers.sliding_limits()
    found = numbers.sliding_averages(seed, bcir, ir, draw, stream)
    return Finding(
        "Theorem 3.2",
        "with a sliding window, BC-IR averages to the right update",
        _rows_3_2(limits, found),
        partial(pictures.draw_theorem_3_2, limits, found),
    )


def _rows_3_2(
    limits: numbers.SlidingLimits, found: numbers.SlidingAverages
) -> tuple[FindingRow, ...]:
    of_ir = found.mean["IR"], found.error["IR"]
    return (
        sampled(
            f"average of BC-IR, n = {numbers.WINDOW}, {numbers.RUNS * numbers.STEPS:,} updates",
            limits.expected,
            found.mean["BC-IR"],
            found.error["BC-IR"],
            "weights wrong by 1 %",
        ),
        sampled(
            f"T * variance of the average, T = {numbers.BLOCK}",
            limits.variance_limit,
            *found.variances[numbers.BLOCK],
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
