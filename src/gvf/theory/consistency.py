"""Consistency: what importance resampling tends to, as windows grow and as time goes on.

As the window grows, a draw by ratio becomes a draw from d_mu pi P (the paper's proposition). With a
window of fixed length, it is the average over time that converges, if BC-IR is used (Theorem 3.2);
IR keeps the bias of its window. Both are simulated with the draws of the studies, and compared with
what :mod:`gvf.theory.chain` enumerates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf.correction import BCIR, IR, Correction
from gvf.study.base import seed_for
from gvf.study.draws import draw
from gvf.theory.chain import EASY, Chain
from gvf.theory.moments import predict, squared_norms
from gvf.theory.pictures import BLACK, COLOURS, panel
from gvf.theory.row import Finding, sampled
from gvf.theory.simulate import Draw, sliding, stream

TRANSITIONS = 3_000_000
"""In all windows of one size."""
RUNS, STEPS, BLOCK = 8, 500_000, 500
WINDOW, BATCH = 3, 2


def proposition(*, seed: int = 0, draw: Draw = draw) -> Finding:
    """Draws by ratio become draws from d_mu pi P, at the rate n^(-1/2).

    Let Q_n be the distribution of a draw by ratio, given a window of n independent transitions from
    p = d_mu mu P, and q = d_mu pi P. Then Q_n tends to q, and (by the delta method)::

        n E|Q_n - q|^2  tends to  sum_x E_pi[rho (1{X = x} - q(x))^2],

    so that the distance falls as n^(-1/2). Its square is estimated without bias from n draws.

    Example:
        >>> from gvf.theory import proposition
        >>> all(row.holds for row in proposition().rows)
        True
    """
    p, q, rho = EASY.kind, EASY.target, EASY.ratio
    constant = float(q @ (rho * ((np.eye(len(q)) - q) ** 2).sum(axis=1)))
    sizes = 4 ** np.arange(2, 7)
    scaled, errors = np.empty(len(sizes)), np.empty(len(sizes))
    frequency, frequency_error = q, q
    for i, n in enumerate(sizes):
        counts = _drawn_kinds(p, rho, int(n), seed, draw)
        pairs = (counts * (counts - 1)).sum(axis=1) / (n * (n - 1))
        distance = n * (pairs - 2.0 * (counts @ q) / n + q @ q)
        scaled[i], errors[i] = _mean_and_error(distance)
        frequency, frequency_error = _mean_and_error(counts / n)
    seen = q > 0.0
    near, far = sizes.tolist().index(256), len(sizes) - 1
    slope = 0.5 * np.log(scaled[far] / scaled[near]) / np.log(sizes[far] / sizes[near]) - 0.5
    relative = np.hypot(errors[near] / scaled[near], errors[far] / scaled[far])
    slope_error = 0.5 * relative / np.log(sizes[far] / sizes[near])

    def picture(figure: Any) -> None:
        axis = figure.subplots()
        axis.loglog(
            sizes, np.sqrt(constant / sizes), "--", color=BLACK, label="predicted, ∝ n$^{-1/2}$"
        )
        distance = np.sqrt(scaled / sizes)
        bars = 0.5 * distance * errors / scaled
        axis.errorbar(
            sizes, distance, 5 * bars, fmt="o", color=COLOURS["IR"], capsize=3,
            label="measured, ± 5 standard errors",
        )  # fmt: skip
        axis.set_xscale("log", base=2)
        panel(
            axis,
            "window size n",
            "distance of Q$_n$ to d$_μ$ π P (r.m.s.)",
            "draws by ratio, given the window",
        )

    n = int(sizes[far])
    return Finding(
        "Proposition",
        "draws by ratio become draws from d_mu pi P",
        (
            sampled(
                f"frequency of each kind of transition, n = {n}",
                q[seen],
                frequency[seen],
                frequency_error[seen],
                "2 % of the draws made uniformly",
            ),
            sampled(
                f"n * mean |Q_n - q|^2, n = {n}",
                constant,
                scaled[far],
                errors[far],
                "6 % of the draws made uniformly",
            ),
            sampled(
                f"the distance falls as n to the power, n = {sizes[near]} to {n}",
                -0.5,
                slope,
                slope_error,
                "6 % of the draws made uniformly",
            ),
        ),
        picture,
    )


def _drawn_kinds(p: Array, rho: Array, n: int, seed: int, draw: Draw) -> Array:
    """How often n draws by ratio give each kind, in many windows of n, [W, K]."""
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


def theorem_3_2(
    *,
    seed: int = 0,
    bcir: Correction = BCIR(),  # noqa: B008 (frozen)
    ir: Correction = IR(),  # noqa: B008
    draw: Draw = draw,
    stream: Callable[..., tuple[Array, Array]] = stream,
) -> Finding:
    """With a sliding window of any fixed length, BC-IR averages to the right update; IR does not.

    For a window of n transitions that slides along the stream, and frozen values::

        (1/T) sum_t X_BC(t)  tends to  E_pi[Delta]  almost surely, and
        T V((1/T) sum_t X_BC(t))  tends to  sum over all lags h of Cov(rho_0 Delta_0, rho_h Delta_h)
                                            + E[V(X_BC | B)],

    since every transition is in n windows, and draws are independent given the stream. The average
    of IR keeps the bias of IR in windows of n transitions *that follow each other*, which is not
    that of Theorem 3.1 for independent ones.

    Example:
        >>> from gvf.theory import theorem_3_2
        >>> all(row.holds for row in theorem_3_2().rows)
        True
    """
    kinds, probability = EASY.windows(WINDOW)
    window = EASY.ratio[kinds], EASY.update[kinds]
    plateau = probability @ predict(IR(), *window).mean
    covariances = EASY.covariances(1000)
    given = float(probability @ predict(BCIR(), *window, BATCH).variance)
    rate = float(covariances[0] + 2.0 * covariances[1:].sum()) + given
    expected, independent = EASY.expected_update, _independent_plateau(EASY, WINDOW)

    blocks: dict[str, list[Array]] = {"BC-IR": [], "IR": []}
    shorter: dict[int, list[Array]] = {5: [], 25: []}
    for run in range(RUNS):
        path = stream(EASY, STEPS, seed=seed, run=run)
        for name, correction in (("BC-IR", bcir), ("IR", ir)):
            x = sliding(correction, *path, WINDOW, BATCH, seed=seed, run=run, draw=draw)
            blocks[name].append(_averages(x, BLOCK))
            for length in shorter if name == "BC-IR" else ():
                shorter[length].append(_averages(x, length))
    means = {name: np.concatenate(found) for name, found in blocks.items()}
    bc, bc_error = _mean_and_error(means["BC-IR"])
    no, no_error = _mean_and_error(means["IR"])
    spread = {
        length: _mean_and_error(length * squared_norms(np.concatenate(found) - bc))
        for length, found in (shorter | {BLOCK: blocks["BC-IR"]}).items()
    }

    def picture(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        time = BLOCK * np.arange(1, 1 + STEPS // BLOCK)
        for name, found in blocks.items():
            sums = np.cumsum([x[:, 1] for x in found], axis=1)
            average = sums / np.arange(1, 1 + len(time))
            left.plot(time, average.mean(axis=0), color=COLOURS[name], label=name)
            left.fill_between(
                time, average.min(axis=0), average.max(axis=0), color=COLOURS[name], alpha=0.25,
                linewidth=0.0,
            )  # fmt: skip
        for level, style, label in (
            (expected, "-", "E$_π$[Δ]"),
            (plateau, "--", "IR, enumerated"),
            (independent, ":", "IR, if independent"),
        ):
            left.axhline(level[1], color=BLACK, linestyle=style, linewidth=1, label=label)
        left.set_xscale("log")
        title = f"sliding window, n = {WINDOW}; band: {RUNS} runs"
        panel(left, "updates T", "average update, component 2", title, legend="lower right")
        lengths = np.array([1, 2, 3, 4, 5, 7, 10, 20, 50, 100, BLOCK])
        exact = [_scaled_variance(covariances, int(t)) + given for t in lengths]
        right.plot(lengths, exact, "--", color=COLOURS["BC-IR"], label="predicted")
        right.axhline(rate, color=BLACK, linewidth=1, label="predicted, T → ∞")
        found, errors = np.array(list(spread.values())).T
        right.errorbar(
            list(spread), found, 5 * errors, fmt="o", color=COLOURS["BC-IR"], capsize=3,
            label="measured, ± 5 s.e.",
        )  # fmt: skip
        right.set_xscale("log")
        right.set_ylim(bottom=0.0)
        panel(right, "updates T", "T × variance of the average", "BC-IR")

    return Finding(
        "Theorem 3.2",
        "with a sliding window, BC-IR averages to the right update",
        (
            sampled(
                f"average of BC-IR, n = {WINDOW}, {RUNS * STEPS:,} updates",
                expected,
                bc,
                bc_error,
                "weights wrong by 1 %",
            ),
            sampled(
                f"T * variance of the average, T = {BLOCK}",
                rate,
                *spread[BLOCK],
                "weights wrong by 5 %; stratified draws",
            ),
            sampled(
                "average of IR: the bias of its windows, enumerated",
                plateau,
                no,
                no_error,
                "weights wrong by 1 %; a window of n + 1 or n - 1",
            ),
            sampled(
                "... which is not E_pi[Delta]",
                expected,
                no,
                no_error,
                "IR with the factor of BC-IR",
                relation="!=",
            ),
            sampled(
                "... nor that of independent transitions",
                independent,
                no,
                no_error,
                "a stream of independent transitions",
                relation="!=",
            ),
        ),
        picture,
    )


def _independent_plateau(chain: Chain, n: int) -> Array:
    """E[X_IR] over windows of n independent transitions, [d]."""
    seen = np.flatnonzero(chain.kind)
    kinds = seen[np.indices((len(seen),) * n).reshape(n, -1).T]
    probability = chain.kind[kinds].prod(axis=1)
    return probability @ predict(IR(), chain.ratio[kinds], chain.update[kinds]).mean


def _scaled_variance(covariances: Array, updates: int) -> float:
    """T V((1/T) sum_t mu_t), where mu_t is the mean of rho Delta over the window at t, exactly."""
    # In how many of the T windows each transition is: 1, 2, ..., n, n, ..., 2, 1.
    times = np.convolve(np.ones(updates), np.ones(WINDOW) / WINDOW)
    pairs = np.correlate(times, times, "full")[len(times) - 1 :]
    return (
        float(pairs[0] * covariances[0] + 2.0 * pairs[1:] @ covariances[1 : len(pairs)]) / updates
    )


def _averages(x: Array, length: int) -> Array:
    """Averages of x [T, d] over stretches of time, [T / length, d]."""
    return x.reshape(-1, length, x.shape[1]).mean(axis=1)


def _mean_and_error(values: Array) -> tuple[Any, Any]:
    """Mean over the first axis, and its standard error."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
