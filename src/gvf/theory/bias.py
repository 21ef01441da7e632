"""The bias of importance resampling: Theorem 3.1 and its corollary, enumerated.

Given a window, IR is on average WIS-Optimal, a quotient of two means, and a quotient of means is
biased; multiplied by the window's mean ratio r it becomes BC-IR, whose average is a plain mean, and
that is not. Nothing here is sampled: windows and batches are enumerated, with the probabilities
that the library's ring gives to them (:mod:`gvf.theory.exact`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf.correction import BCIR, IR, Correction, WISOptimal
from gvf.sampling import RatioRing
from gvf.theory.chain import EASY, HARD, ONLY_RIGHT, Chain
from gvf.theory.exact import moments
from gvf.theory.moments import squared_norms
from gvf.theory.pictures import BLACK, BLUE, GREEN, ORANGE, panel
from gvf.theory.row import Finding, Row, exactly

MU, PI = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
"""Three kinds of independent transitions: few enough for windows of hundreds."""
UPDATE = np.array([[1.0, 0.7], [-2.0, 1.2], [0.7, -0.5]])
SIZES = 2 ** np.arange(10)


def theorem_3_1(
    *,
    ir: Correction = IR(),  # noqa: B008 (frozen)
    wis: Correction = WISOptimal(),  # noqa: B008
    ring: Callable[..., RatioRing] = RatioRing,
) -> Finding:
    """IR has the bias of WIS-Optimal, and it falls as 1/n.

    For every window B with mass, the average of IR over its draws is WIS-Optimal,

        E[X_IR | B] = sum_i rho_i Delta_i / sum_j rho_j,

    so both have the same bias. For n independent transitions it is, to first order,

        E[X_IR] - E_pi[Delta] = -Cov_pi(rho, Delta) / n + O(1 / n^2).

    With y = rho (Delta - E_pi[Delta]) the next term is (E[y (rho-1)^2] - 3 E[y (rho-1)] Var(rho)) /
    n^2, so n times the bias approaches its limit as slowly as 1/n, and may change sign on the way.
    At n = 1 there is no correction, and the bias is E_mu[Delta] - E_pi[Delta]. Where rho is the
    same wherever pi goes, there is no bias but for windows without mass, whose update is 0.

    Example:
        >>> from gvf.theory import theorem_3_1
        >>> all(row.holds for row in theorem_3_1().rows)
        True
    """
    drawn, whole = [], []
    for chain in (HARD, ONLY_RIGHT):
        for n in range(1, 5):
            kinds, _ = chain.windows(n)
            window = chain.ratio[kinds], chain.update[kinds]
            drawn.append(moments(ir, *window, ring=ring).mean)
            whole.append(moments(wis, *window).mean)
    count = sum(map(len, drawn))

    rho, expected = PI / MU, PI @ UPDATE
    bias = np.array([expected_wis(MU, rho, UPDATE, n, wis) for n in SIZES.tolist()]) - expected
    y, excess = rho[:, None] * (UPDATE - expected), rho - 1.0
    limit = -(MU * excess) @ y
    next_term = (MU * excess**2) @ y + 3.0 * limit * (MU @ excess**2)
    off = np.abs(SIZES[:, None] * bias - limit)
    worst = int(np.argmax(off[-1] / np.abs(next_term)))
    n = int(SIZES[-1])

    lucky, same = np.array([0.15, 0.1, 0.75]), np.array([4.0, 4.0, 0.0])
    sizes = np.arange(1, 17)
    found = np.array([expected_wis(lucky, same, UPDATE, n, wis) for n in sizes.tolist()])
    with_mass = 1.0 - lucky[2] ** sizes
    halved = off[-1, worst] / off[-2, worst]

    def picture(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for component, colour in enumerate((BLUE, ORANGE)):
            label = f"component {component + 1}"
            left.plot(SIZES, SIZES * bias[:, component], "o-", color=colour, label=label)
            left.axhline(limit[component], color=colour, linestyle="--", linewidth=1)
            right.loglog(SIZES, off[:, component], "o", color=colour, label=label)
            line = np.abs(next_term[component]) / SIZES
            right.loglog(SIZES, line, "--", color=colour, linewidth=1)
        for axis in (left, right):
            axis.set_xscale("log", base=2)
        panel(left, "window size n", "n × bias of IR", "dashed: −Cov$_π$(ρ, Δ)")
        panel(right, "window size n", "|n × bias − limit|", "dashed: the next term, ∝ 1/n")

    return Finding(
        "Theorem 3.1",
        "IR has the bias of WIS-Optimal, which falls as 1/n",
        (
            exactly(
                f"E[IR | window] is WIS-Optimal, in {count:,} windows",
                np.concatenate(whole),
                np.concatenate(drawn),
                "weights wrong by 2e-12, a ratio by 1e-11; a window of n + 1",
            ),
            exactly(
                "at n = 1 the bias is E_mu - E_pi",
                MU @ UPDATE - expected,
                bias[0],
                "weights wrong by 2e-12",
                scale=UPDATE,
            ),
            exactly(
                "rho constant where pi goes: P(mass) E_pi[Delta], n = 1 to 16",
                with_mass[:, None] * ((lucky * same) @ UPDATE),
                found,
                "weights wrong by 2e-12",
            ),
            Row(
                f"n * bias tends to -Cov_pi(rho, Delta); n = {n}",
                float(limit[worst]),
                float(n * bias[-1, worst]),
                2.0 * abs(float(next_term[worst])) / n,
                "2 next terms",
                "weights wrong by 1e-4",
            ),
            Row(
                f"|n * bias - limit| halves from n = {n // 2} to {n}",
                0.5,
                float(halved),
                0.005,
                "1 %",
                "weights wrong by 1e-6",
            ),
        ),
        picture,
    )


def corollary_3_1_1(
    *,
    bcir: Correction = BCIR(),  # noqa: B008
    ir: Correction = IR(),  # noqa: B008
    ring: Callable[..., RatioRing] = RatioRing,
) -> Finding:
    """BC-IR is unbiased, whatever the window's length.

    Given the window, BC-IR is on average a plain mean, and the mean of that over windows

        E[X_BC] = E[(1/n) sum_i rho_i Delta_i] = E_pi[Delta]

    for every n, also when the transitions of a window follow each other, if the values are frozen,
    the states stationary, mu > 0 wherever pi > 0, and a window without mass counts as an update of
    0. IR is biased in the same windows. (While learning, values depend on the window, and neither
    BC-IR nor IS is unbiased.)

    Example:
        >>> from gvf.theory import corollary_3_1_1
        >>> all(row.holds for row in corollary_3_1_1().rows)
        True
    """
    sizes = np.arange(1, 6)
    chains = {"easy": EASY, "hard": HARD, "only right": ONLY_RIGHT}
    means = {
        correction: np.array(
            [
                [_mean_over_windows(correction, chain, n, ring) for n in sizes.tolist()]
                for chain in chains.values()
            ]
        )
        for correction in (bcir, ir)
    }
    expected = np.array([chain.expected_update for chain in chains.values()])[:, None]
    off = np.sqrt(squared_norms(means[ir] - expected) / squared_norms(expected))

    def picture(figure: Any) -> None:
        axis = figure.subplots()
        zero = np.sqrt(squared_norms(means[bcir] - expected) / squared_norms(expected))
        for name, biased, none, colour in zip(
            chains, off, zero, (BLUE, ORANGE, GREEN), strict=True
        ):
            axis.plot(sizes, biased, "o-", color=colour, label=f"IR, {name}")
            axis.plot(sizes, none, "s", color=colour, markerfacecolor="none")
        axis.plot([], [], "s", color=BLACK, markerfacecolor="none", label="BC-IR, all three")
        axis.set_xticks(sizes)
        panel(axis, "window size n", "|bias| / |E$_π$[Δ]|", "all windows of a Markov chain")

    return Finding(
        "Corollary 3.1.1",
        "BC-IR is unbiased for every n",
        (
            exactly(
                "E[BC-IR] is E_pi[Delta], n = 1 to 5, 3 pairs of policies",
                np.broadcast_to(expected, means[bcir].shape),
                means[bcir],
                "weights or a mean ratio wrong by 2e-12",
            ),
            Row(
                "IR is biased there: least |bias| / |E_pi[Delta]|, hard pair",
                0.0,
                float(off[1].min()),
                0.01,
                "1 %",
                "IR with the factor of BC-IR",
                ">",
            ),
        ),
        picture,
    )


def expected_wis(
    mu: Array,
    rho: Array,
    update: Array,
    n: int,
    wis: Correction = WISOptimal(),  # noqa: B008
) -> Array:
    """E[X_WIS] over all windows of n independent transitions of three kinds, [d].

    Windows with the same number of each kind are the same to WIS-Optimal, so they are counted by
    the multinomial distribution, and a kind's ratios are weighed as one.

    Example:
        >>> import numpy as np
        >>> from gvf.theory.bias import expected_wis
        >>> mu, rho = np.array([0.5, 0.25, 0.25]), np.array([1.0, 2.0, 0.0])
        >>> expected_wis(mu, rho, np.array([[0.0], [4.0], [9.0]]), 1)
        array([1.])
    """
    first, second = np.indices((n + 1, n + 1)).reshape(2, -1)
    counts = np.column_stack([first, second, n - first - second])[first + second <= n]
    logarithms = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, n + 1.0)))])
    chance = np.exp(logarithms[n] - logarithms[counts].sum(axis=1) + counts @ np.log(mu))
    rows = np.arange(counts.size).reshape(counts.shape)
    masses: Array = counts * rho
    w = wis.weigh_rows(masses.reshape(1, -1), np.empty(0), rows, np.ones((len(rows), 2)))
    return chance @ (w @ update)


def _mean_over_windows(
    correction: Correction, chain: Chain, n: int, ring: Callable[..., RatioRing]
) -> Array:
    kinds, probability = chain.windows(n)
    found = moments(correction, chain.ratio[kinds], chain.update[kinds], ring=ring)
    return probability @ found.mean
