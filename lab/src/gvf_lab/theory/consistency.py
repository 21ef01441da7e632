"""Consistency: the limits of importance resampling, as windows grow and as time goes on.

As the window grows, a draw by ratio becomes a draw from d_mu pi P (the paper's proposition). With a
window of fixed length, BC-IR's average over time converges to the right update (Theorem 3.2), and
IR keeps the bias of its window. Draws are simulated with the code of the studies. Their limits are
enumerated with :mod:`gvf_lab.theory.chain`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf import draw_batches as draw
from gvf.common.arrays import Floats
from gvf.common.colours import METHOD_COLOURS
from gvf.corrections import BCIR, IR, Correction
from gvf_lab.study.base_study import seed_for
from gvf_lab.theory.chain import EASY_CHAIN, Chain
from gvf_lab.theory.enumeration import predicted_moments, squared_norms
from gvf_lab.theory.finding import BLACK, Finding, FindingRow, draw_points, label_axis, sampled
from gvf_lab.theory.simulation import Draw, mean_and_error, sliding, stream

TRANSITIONS = 3_000_000
"""The number of transitions in all windows of one size together."""
SIZES = 4 ** np.arange(2, 7)
"""Lengths of windows of independent transitions."""
SLOPE_START = SIZES.tolist().index(256)
"""The index in SIZES from which the slope is measured."""

RUNS, STEPS, BLOCK = 8, 500_000, 500
"""Streams, updates in each, and updates in a block, which are averaged."""
WINDOW, BATCH = 3, 2
SHORT_BLOCKS = (5, 25)
"""Lengths of shorter blocks, which show how the variance of an average approaches its limit."""
LENGTHS = np.array([1, 2, 3, 4, 5, 7, 10, 20, 50, 100, BLOCK])
"""Numbers of updates for which the variance of their average is enumerated."""


@dataclass(frozen=True)
class ResamplingDistance:
    """The distance of Q_n, the distribution of a draw by ratio, to q = d_mu pi P.

    Attributes:
        limit: the limit of n E|Q_n - q|^2 by theory.
        scaled: n E|Q_n - q|^2 for each n of SIZES, measured without bias, [sizes].
        error: the standard errors of `scaled`, [sizes].
        target: q of the kinds that occur, [kinds].
        frequency: the share of draws of each kind, from windows of the last of SIZES, [kinds].
        frequency_error: the standard errors of `frequency`, [kinds].
    """

    limit: float
    scaled: Floats
    error: Floats
    target: Floats
    frequency: Floats
    frequency_error: Floats

    @property
    def slope(self) -> tuple[float, float]:
        """The exponent of n with which the distance falls, and its standard error."""
        near, far = SLOPE_START, len(SIZES) - 1
        span = np.log(SIZES[far] / SIZES[near])
        slope = 0.5 * np.log(self.scaled[far] / self.scaled[near]) / span - 0.5
        relative = np.hypot(
            self.error[near] / self.scaled[near], self.error[far] / self.scaled[far]
        )
        return slope, 0.5 * relative / span

    @property
    def distance(self) -> tuple[Floats, Floats]:
        """The root of E|Q_n - q|^2, and its standard error, [sizes]."""
        distance = np.sqrt(self.scaled / SIZES)
        return distance, 0.5 * distance * self.error / self.scaled


def resampling_distance(seed: int, draw: Draw) -> ResamplingDistance:
    """Measure the distance for each of SIZES, in windows of independent transitions."""
    p, q, rho = EASY_CHAIN.kind, EASY_CHAIN.target, EASY_CHAIN.ratio
    limit = float(q @ (rho * ((np.eye(len(q)) - q) ** 2).sum(axis=1)))
    scaled, error = np.empty(len(SIZES)), np.empty(len(SIZES))
    frequency, frequency_error = q, q
    for i, n in enumerate(SIZES):
        counts = _drawn_kinds(p, rho, int(n), seed, draw)
        pairs = (counts * (counts - 1)).sum(axis=1) / (n * (n - 1))
        distance = n * (pairs - 2.0 * (counts @ q) / n + q @ q)
        scaled[i], error[i] = mean_and_error(distance)
        frequency, frequency_error = mean_and_error(counts / n)
    seen = q > 0.0
    return ResamplingDistance(limit, scaled, error, q[seen], frequency[seen], frequency_error[seen])


def _drawn_kinds(p: Floats, rho: Floats, n: int, seed: int, draw: Draw) -> NDArray[np.int64]:
    """Count how often n draws by ratio give each kind, in many windows of n, [W, K]."""
    rng = np.random.default_rng(seed_for(seed, n, "theory", "proposition"))
    windows = TRANSITIONS // max(n, 64)
    edges = np.cumsum(p)
    kind = np.searchsorted(edges / edges[-1], rng.random(windows * n), side="right")
    draws = draw(
        IR(),
        rho[kind],
        window=n,
        batch_size=n,
        gap=n,
        seed=seed_for(seed, n, "theory", "proposition draws"),
    )
    place = np.arange(windows)[:, None] * len(p) + kind[draws.rows]
    return np.bincount(place.ravel(), minlength=windows * len(p)).reshape(windows, len(p))


@dataclass(frozen=True)
class SlidingLimits:
    """The limits of averages over a sliding window of the chain, enumerated.

    Attributes:
        expected: E_pi[Delta], the limit of BC-IR's average, [d].
        ir: the limit of IR's average, [d].
        ir_if_independent: the same limit if transitions were independent, [d].
        variances: T times the variance of BC-IR's average, for each T of LENGTHS, [lengths].
        variance_limit: the limit of `variances` as T grows.
    """

    expected: Floats
    ir: Floats
    ir_if_independent: Floats
    variances: Floats
    variance_limit: float


def sliding_limits() -> SlidingLimits:
    """Enumerate all windows of the chain, and the covariances along a stream."""
    kinds, probability = EASY_CHAIN.windows(WINDOW)
    window = EASY_CHAIN.ratio[kinds], EASY_CHAIN.update[kinds]
    covariances = EASY_CHAIN.covariances(1000)
    of_draws = float(probability @ predicted_moments(BCIR(), *window, BATCH).variance)
    return SlidingLimits(
        EASY_CHAIN.expected_update,
        probability @ predicted_moments(IR(), *window).mean,
        _mean_of_independent(EASY_CHAIN, WINDOW),
        np.array([scaled_variance(covariances, int(t)) + of_draws for t in LENGTHS]),
        float(covariances[0] + 2.0 * covariances[1:].sum()) + of_draws,
    )


def _mean_of_independent(chain: Chain, n: int) -> Floats:
    """Return E[X_IR] over windows of n independent transitions, [d]."""
    seen = np.flatnonzero(chain.kind)
    kinds = seen[np.indices((len(seen),) * n).reshape(n, -1).T]
    probability = chain.kind[kinds].prod(axis=1)
    return probability @ predicted_moments(IR(), chain.ratio[kinds], chain.update[kinds]).mean


def scaled_variance(covariances: Floats, updates: int) -> float:
    """Return T V((1/T) sum_t mu_t), where mu_t is the mean of rho Delta over the window at t.

    The covariances are those of y = rho Delta along the stream, at lags from 0 to T + n - 2.
    """
    # Each transition is in 1, 2, ..., n, n, ..., 2 or 1 of the T windows.
    times = np.convolve(np.ones(updates), np.ones(WINDOW) / WINDOW)
    pairs = np.correlate(times, times, "full")[len(times) - 1 :]
    return (
        float(pairs[0] * covariances[0] + 2.0 * pairs[1:] @ covariances[1 : len(pairs)]) / updates
    )


@dataclass(frozen=True)
class SlidingAverages:
    """Averages of BC-IR's and IR's updates along streams, by name of the method.

    Attributes:
        blocks: averages over blocks of updates, [RUNS, blocks, d].
        mean: averages over all updates, [d].
        error: their standard errors, [d].
        variances: T times the variance of BC-IR's average over T updates, and its standard error,
            for some T.
    """

    blocks: Mapping[str, Floats]
    mean: Mapping[str, Floats]
    error: Mapping[str, Floats]
    variances: Mapping[int, tuple[float, float]]


def sliding_averages(
    seed: int,
    bcir: Correction,
    ir: Correction,
    draw: Draw,
    stream: Callable[..., tuple[Floats, Floats]],
) -> SlidingAverages:
    """Simulate RUNS streams, with an update of each method after every step."""
    blocks: dict[str, list[Floats]] = {"BC-IR": [], "IR": []}
    shorter: dict[int, list[Floats]] = {length: [] for length in SHORT_BLOCKS}
    for run in range(RUNS):
        path = stream(EASY_CHAIN, STEPS, seed=seed, run=run)
        for name, correction in (("BC-IR", bcir), ("IR", ir)):
            x = sliding(correction, *path, WINDOW, BATCH, seed=seed, run=run, draw=draw)
            blocks[name].append(_averages(x, BLOCK))
            for length in SHORT_BLOCKS if name == "BC-IR" else ():
                shorter[length].append(_averages(x, length))
    averages = {name: mean_and_error(np.concatenate(each)) for name, each in blocks.items()}
    centre = averages["BC-IR"][0]
    return SlidingAverages(
        {name: np.array(each) for name, each in blocks.items()},
        {name: mean for name, (mean, _) in averages.items()},
        {name: error for name, (_, error) in averages.items()},
        {
            length: mean_and_error(length * squared_norms(np.concatenate(each) - centre))
            for length, each in (shorter | {BLOCK: blocks["BC-IR"]}).items()
        },
    )


def _averages(x: Floats, length: int) -> Floats:
    """Average x [T, d] over blocks of a length, [T / length, d]."""
    return x.reshape(-1, length, x.shape[1]).mean(axis=1)


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
    distance = resampling_distance(seed, draw)
    first, n = (
        int(SIZES[SLOPE_START]),
        int(SIZES[-1]),
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
        partial(draw_proposition, distance),
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
    limits = sliding_limits()
    averages = sliding_averages(seed, bcir, ir, draw, stream)
    return Finding(
        "Theorem 3.2",
        "with a sliding window, BC-IR averages to the right update",
        _rows_3_2(limits, averages),
        partial(draw_theorem_3_2, limits, averages),
    )


def _rows_3_2(limits: SlidingLimits, averages: SlidingAverages) -> tuple[FindingRow, ...]:
    of_ir = averages.mean["IR"], averages.error["IR"]
    updates = RUNS * STEPS
    return (
        sampled(
            f"average of BC-IR, n = {WINDOW}, {updates:,} updates",
            limits.expected,
            averages.mean["BC-IR"],
            averages.error["BC-IR"],
            "weights wrong by 1 %",
        ),
        sampled(
            f"T * variance of the average, T = {BLOCK}",
            limits.variance_limit,
            *averages.variances[BLOCK],
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


def draw_proposition(resampling: ResamplingDistance, figure: Any) -> None:
    """Draw the distance of the resampling distribution to the target's, against n."""
    axis, sizes = figure.subplots(), SIZES
    predicted = np.sqrt(resampling.limit / sizes)
    axis.loglog(sizes, predicted, "--", color=BLACK, label="predicted, ∝ n$^{-1/2}$")
    measured, error = resampling.distance
    draw_points(axis, sizes, measured, error, METHOD_COLOURS["IR"], "measured, ± 5 standard errors")
    axis.set_xscale("log", base=2)
    y = "distance of Q$_n$ to d$_μ$ π P (r.m.s.)"
    label_axis(axis, "window size n", y, "draws by ratio, given the window")


def draw_theorem_3_2(
    limits: SlidingLimits,
    averages: SlidingAverages,
    figure: Any,
) -> None:
    """Draw averages of BC-IR and IR over time, and T times the variance of BC-IR's average."""
    left, right = figure.subplots(1, 2)
    _draw_averages(left, limits, averages)
    colour = METHOD_COLOURS["BC-IR"]
    right.plot(LENGTHS, limits.variances, "--", color=colour, label="predicted")
    right.axhline(limits.variance_limit, color=BLACK, linewidth=1, label="predicted, T → ∞")
    variances, errors = np.array(list(averages.variances.values())).T
    draw_points(right, list(averages.variances), variances, errors, colour, "measured, ± 5 s.e.")
    right.set_xscale("log")
    right.set_ylim(bottom=0.0)
    label_axis(right, "updates T", "T × variance of the average", "BC-IR")


def _draw_averages(
    axis: Any,
    limits: SlidingLimits,
    averages: SlidingAverages,
) -> None:
    time = BLOCK * np.arange(1, 1 + STEPS // BLOCK)
    for name, blocks in averages.blocks.items():
        average = np.cumsum(blocks[:, :, 1], axis=1) / np.arange(1, 1 + len(time))
        colour = METHOD_COLOURS[name]
        axis.plot(time, average.mean(axis=0), color=colour, label=name)
        low, high = average.min(axis=0), average.max(axis=0)
        axis.fill_between(time, low, high, color=colour, alpha=0.25, linewidth=0.0)
    for level, style, label in (
        (limits.expected, "-", "E$_π$[Δ]"),
        (limits.ir, "--", "IR, enumerated"),
        (limits.ir_if_independent, ":", "IR, if independent"),
    ):
        axis.axhline(level[1], color=BLACK, linestyle=style, linewidth=1, label=label)
    axis.set_xscale("log")
    title = f"sliding window, n = {WINDOW}; band: {RUNS} runs"
    label_axis(axis, "updates T", "average update, component 2", title, legend="lower right")
