"""The bias of importance resampling: Theorem 3.1 and its corollary.

Given a window, the average of IR is WIS-Optimal. That is a quotient of two means, which is biased.
BC-IR multiplies IR by the window's mean ratio r. Its average is a plain mean, which is unbiased.

Windows and batches are enumerated, and none is sampled. Windows of the Markov chain are few enough
up to a length of 5. Windows of hundreds of independent transitions are counted by the multinomial
distribution, with three kinds of transition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf import RatioRing
from gvf.common.arrays import Floats
from gvf.common.colours import METHOD_COLOURS
from gvf.corrections import BCIR, IR, Correction, WISOptimal
from gvf_lab.theory.chain import DETERMINISTIC_CHAIN, EASY_CHAIN, HARD_CHAIN, Chain
from gvf_lab.theory.enumeration import MakeRing, enumerated_moments, squared_norms
from gvf_lab.theory.finding import BLACK, Finding, FindingRow, exactly, label_axis

MU, PI = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
"""The probabilities of three kinds of independent transitions."""
UPDATE = np.array([[1.0, 0.7], [-2.0, 1.2], [0.7, -0.5]])
"""The updates of these kinds, [3, d]."""
SIZES = 2 ** np.arange(10)
"""Lengths of windows of independent transitions."""
CHAINS = {"easy": EASY_CHAIN, "hard": HARD_CHAIN, "only right": DETERMINISTIC_CHAIN}
CHAIN_SIZES = np.arange(1, 6)
"""Lengths of windows of the chain."""


def means_in_windows(ir: Correction, wis: Correction, ring: MakeRing) -> tuple[Floats, Floats]:
    """Return E[IR | B] and WIS-Optimal of all windows B of 1 to 4 steps of two chains, [W, d]."""
    drawn, whole = [], []
    for chain in (HARD_CHAIN, DETERMINISTIC_CHAIN):
        for n in range(1, 5):
            kinds, _ = chain.windows(n)
            window = chain.ratio[kinds], chain.update[kinds]
            drawn.append(enumerated_moments(ir, *window, ring=ring).mean)
            whole.append(enumerated_moments(wis, *window).mean)
    return np.concatenate(drawn), np.concatenate(whole)


@dataclass(frozen=True)
class BiasBySize:
    """The bias of an update in windows of n independent parts, for n of SIZES.

    Attributes:
        bias: E[X] minus its limit, [sizes, d].
        limit: the limit of n times the bias by theory, [d].
        next_term: the coefficient of the next term, 1/n^2, [d].
    """

    bias: Floats
    limit: Floats
    next_term: Floats

    @classmethod
    def of_quotient(
        cls, bias: Floats, chance: Floats, excess: Floats, centred: Floats
    ) -> BiasBySize:
        """Expand the mean of (mean of y) / (mean of h) over n parts of several kinds in 1/n.

        Args:
            bias: the bias itself, [sizes, d].
            chance: the probability of each kind, [kinds].
            excess: h - 1 of each kind, where h is 1 on average, [kinds].
            centred: y minus h times the limit of the quotient, [kinds, d].
        """
        limit = -(chance * excess) @ centred
        next_term = (chance * excess**2) @ centred + 3.0 * limit * (chance @ excess**2)
        return cls(bias, limit, next_term)

    @property
    def distance(self) -> Floats:
        """The distance |n * bias - limit|, [sizes, d]."""
        return np.abs(SIZES[:, None] * self.bias - self.limit)


def bias_by_size(wis: Correction) -> BiasBySize:
    """Compute E[X_WIS] - E_pi[Delta]; n times it tends to -Cov_pi(rho, Delta)."""
    rho, expected = PI / MU, PI @ UPDATE
    bias = np.array([expected_wis(MU, rho, UPDATE, n, wis) for n in SIZES.tolist()]) - expected
    return BiasBySize.of_quotient(bias, MU, rho - 1.0, rho[:, None] * (UPDATE - expected))


def means_with_equal_ratios(wis: Correction) -> tuple[Floats, Floats]:
    """Return E[X_WIS], predicted and measured, if rho is constant over all that pi does, [16, d].

    Rows are n = 1 to 16. The prediction is P(mass) E_pi[Delta], since only windows without mass
    cause a bias.
    """
    mu, rho, sizes = np.array([0.15, 0.1, 0.75]), np.array([4.0, 4.0, 0.0]), np.arange(1, 17)
    measured = np.array([expected_wis(mu, rho, UPDATE, n, wis) for n in sizes.tolist()])
    with_mass = 1.0 - mu[2] ** sizes
    return with_mass[:, None] * ((mu * rho) @ UPDATE), measured


def expected_wis(
    mu: Floats,
    rho: Floats,
    update: Floats,
    n: int,
    wis: Correction = WISOptimal(),  # noqa: B008 (frozen)
) -> Floats:
    """Return E[X_WIS] over all windows of n independent transitions of three kinds, [d].

    WIS-Optimal depends only on the number of each kind in a window. So windows are counted by the
    multinomial distribution, and a kind's ratios are weighted as one.

    Example:
        >>> import numpy as np
        >>> from gvf_lab.theory.bias import expected_wis
        >>> mu, rho = np.array([0.5, 0.25, 0.25]), np.array([1.0, 2.0, 0.0])
        >>> expected_wis(mu, rho, np.array([[0.0], [4.0], [9.0]]), 1)
        array([1.])
    """
    counts, chance = multinomial_windows(mu, n)
    rows = np.arange(counts.size).reshape(counts.shape)
    masses: Floats = counts * rho
    w = wis.weigh_rows(masses.reshape(1, -1), np.empty(0), rows, np.ones((len(rows), 2)))
    return chance @ (w @ update)


def multinomial_windows(mu: Floats, n: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the counts [W, 3] of three kinds in windows of n, and their probabilities [W].

    Example:
        >>> import numpy as np
        >>> from gvf_lab.theory.bias import multinomial_windows
        >>> counts, chance = multinomial_windows(np.array([0.5, 0.25, 0.25]), 1)
        >>> counts.tolist(), chance.round(12)
        ([[0, 0, 1], [0, 1, 0], [1, 0, 0]], array([0.25, 0.25, 0.5 ]))
    """
    first, second = np.indices((n + 1, n + 1)).reshape(2, -1)
    counts = np.column_stack([first, second, n - first - second])[first + second <= n]
    logarithms = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, n + 1.0)))])
    chance = np.exp(logarithms[n] - logarithms[counts].sum(axis=1) + counts @ np.log(mu))
    return counts, chance


@dataclass(frozen=True)
class BiasInChains:
    """The means of BC-IR and IR over all windows of each of CHAINS, for each n of CHAIN_SIZES.

    Attributes:
        expected: E_pi[Delta], [chains, 1, d].
        bcir: E[X_BC], [chains, sizes, d].
        ir: E[X_IR], [chains, sizes, d].
    """

    expected: Floats
    bcir: Floats
    ir: Floats

    def relative(self, means: Floats) -> Floats:
        """Return |bias| / |E_pi[Delta]| of such means, [chains, sizes]."""
        return np.sqrt(squared_norms(means - self.expected) / squared_norms(self.expected))


def bias_in_chains(bcir: Correction, ir: Correction, ring: MakeRing) -> BiasInChains:
    """Average the updates of BC-IR and IR over all batches and windows."""

    def means(correction: Correction) -> Floats:
        return np.array(
            [
                [_mean_over_windows(correction, chain, n, ring) for n in CHAIN_SIZES.tolist()]
                for chain in CHAINS.values()
            ]
        )

    expected = np.array([chain.expected_update for chain in CHAINS.values()])[:, None]
    return BiasInChains(expected, means(bcir), means(ir))


def _mean_over_windows(correction: Correction, chain: Chain, n: int, ring: MakeRing) -> Floats:
    kinds, probability = chain.windows(n)
    moments = enumerated_moments(correction, chain.ratio[kinds], chain.update[kinds], ring=ring)
    return probability @ moments.mean


def theorem_3_1(
    *,
    ir: Correction = IR(),  # noqa: B008 (frozen)
    wis: Correction = WISOptimal(),  # noqa: B008
    ring: MakeRing = RatioRing,
) -> Finding:
    """Test that IR has the bias of WIS-Optimal, and that it falls as 1/n.

    For every window B with mass, the average of IR over its draws is WIS-Optimal,

        E[X_IR | B] = sum_i rho_i Delta_i / sum_j rho_j,

    so both have the same bias. For n independent transitions it is, to first order,

        E[X_IR] - E_pi[Delta] = -Cov_pi(rho, Delta) / n + O(1 / n^2).

    With y = rho (Delta - E_pi[Delta]) the next term is (E[y (rho-1)^2] - 3 E[y (rho-1)] Var(rho)) /
    n^2. So n times the bias approaches its limit only as 1/n, and may change sign on the way. At
    n = 1 nothing is corrected, and the bias is E_mu[Delta] - E_pi[Delta]. If rho is constant over
    all that pi does, the only bias is that of windows without mass, whose update is 0.

    Example:
        >>> from gvf_lab.theory import theorem_3_1
        >>> all(row.holds for row in theorem_3_1().rows)
        True
    """
    drawn, whole = means_in_windows(ir, wis, ring)
    by_size = bias_by_size(wis)
    rows = (
        exactly(
            f"E[IR | window] is WIS-Optimal, in {len(drawn):,} windows",
            whole,
            drawn,
            "weights wrong by 2e-12, a ratio by 1e-11; a window of n + 1",
        ),
        *_rows_by_size(by_size, means_with_equal_ratios(wis)),
    )
    return Finding(
        "Theorem 3.1",
        "IR has the bias of WIS-Optimal, which falls as 1/n",
        rows,
        partial(draw_theorem_3_1, by_size),
    )


def _rows_by_size(
    by_size: BiasBySize, equal_ratios: tuple[Floats, Floats]
) -> tuple[FindingRow, ...]:
    n = int(SIZES[-1])
    return (
        exactly(
            "at n = 1 the bias is E_mu - E_pi",
            MU @ UPDATE - PI @ UPDATE,
            by_size.bias[0],
            "weights wrong by 2e-12",
            scale=UPDATE,
        ),
        exactly(
            "rho constant where pi goes: P(mass) E_pi[Delta], n = 1 to 16",
            *equal_ratios,
            "weights wrong by 2e-12",
        ),
        *first_order(f"-Cov_pi(rho, Delta); n = {n}", by_size, n),
    )


def first_order(limit: str, by_size: BiasBySize, n: int) -> tuple[FindingRow, ...]:
    """Return the rows that test that n times a bias tends to a limit, and how fast."""
    off = by_size.distance
    worst = int(np.argmax(off[-1] / np.abs(by_size.next_term)))
    return (
        FindingRow(
            f"n * bias tends to {limit}",
            float(by_size.limit[worst]),
            float(n * by_size.bias[-1, worst]),
            2.0 * abs(float(by_size.next_term[worst])) / n,
            "2 next terms",
            "weights wrong by 1e-4",
        ),
        FindingRow(
            f"|n * bias - limit| halves from n = {n // 2} to {n}",
            0.5,
            float(off[-1, worst] / off[-2, worst]),
            0.005,
            "1 %",
            "weights wrong by 1e-6",
        ),
    )


def corollary_3_1_1(
    *,
    bcir: Correction = BCIR(),  # noqa: B008
    ir: Correction = IR(),  # noqa: B008
    ring: MakeRing = RatioRing,
) -> Finding:
    """Test that BC-IR is unbiased, whatever the window's length.

    Given the window, the average of BC-IR is a plain mean. Its mean over windows is

        E[X_BC] = E[(1/n) sum_i rho_i Delta_i] = E_pi[Delta]

    for every n, also if the transitions of a window follow each other. The values must be frozen,
    the states stationary, mu > 0 wherever pi > 0, and a window without mass must count as an update
    of 0. IR is biased in the same windows. While learning, values depend on the window, and neither
    BC-IR nor IS is unbiased.

    Example:
        >>> from gvf_lab.theory import corollary_3_1_1
        >>> all(row.holds for row in corollary_3_1_1().rows)
        True
    """
    in_chains = bias_in_chains(bcir, ir, ring)
    hard = list(CHAINS).index("hard")
    rows = (
        exactly(
            "E[BC-IR] is E_pi[Delta], n = 1 to 5, 3 pairs of policies",
            np.broadcast_to(in_chains.expected, in_chains.bcir.shape),
            in_chains.bcir,
            "weights or a mean ratio wrong by 2e-12",
        ),
        FindingRow(
            "IR is biased there: least |bias| / |E_pi[Delta]|, hard pair",
            0.0,
            float(in_chains.relative(in_chains.ir)[hard].min()),
            0.01,
            "1 %",
            "IR with the factor of BC-IR",
            ">",
        ),
    )
    return Finding(
        "Corollary 3.1.1",
        "BC-IR is unbiased for every n",
        rows,
        partial(draw_corollary_3_1_1, in_chains),
    )


def draw_theorem_3_1(by_size: BiasBySize, figure: Any) -> None:
    """Draw n times the bias of IR against n, and its distance to the limit."""
    left, right = figure.subplots(1, 2)
    sizes, ir = SIZES, METHOD_COLOURS["IR"]
    for component, (marker, face) in enumerate((("o", ir), ("s", "white"))):
        drawn = {
            "color": ir, "marker": marker, "markerfacecolor": face,
            "label": f"component {component + 1}",
        }  # fmt: skip
        left.plot(sizes, sizes * by_size.bias[:, component], **drawn)
        left.axhline(by_size.limit[component], color=BLACK, linestyle="--", linewidth=1)
        right.loglog(sizes, by_size.distance[:, component], linestyle="none", **drawn)
        line = np.abs(by_size.next_term[component]) / sizes
        right.loglog(sizes, line, "--", color=BLACK, linewidth=1)
    for axis in (left, right):
        axis.set_xscale("log", base=2)
    label_axis(left, "window size n", "n × bias of IR", "dashed: −Cov$_π$(ρ, Δ)")
    label_axis(right, "window size n", "|n × bias − limit|", "dashed: the next term, ∝ 1/n")


def draw_corollary_3_1_1(in_chains: BiasInChains, figure: Any) -> None:
    """Draw the bias of IR and BC-IR against the length of the window."""
    axis = figure.subplots()
    sizes = CHAIN_SIZES
    looks = "o-", "^--", "D:"
    for name, biased, look in zip(CHAINS, in_chains.relative(in_chains.ir), looks, strict=True):
        axis.plot(sizes, biased, look, color=METHOD_COLOURS["IR"], label=f"IR, {name}")
    labels = ["BC-IR, all three", None, None]
    for unbiased, label in zip(in_chains.relative(in_chains.bcir), labels, strict=True):
        colour = METHOD_COLOURS["BC-IR"]
        axis.plot(sizes, unbiased, "s", color=colour, markerfacecolor="none", label=label)
    axis.set_xticks(sizes)
    label_axis(axis, "window size n", "|bias| / |E$_π$[Δ]|", "all windows of a Markov chain")
