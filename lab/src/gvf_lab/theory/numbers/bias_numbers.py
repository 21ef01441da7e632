"""The bias of IR, WIS-Optimal and BC-IR, with windows and batches enumerated and none sampled.

Windows of the Markov chain are few enough to enumerate up to a length of 5. Windows of hundreds of
independent transitions are counted by the multinomial distribution, with three kinds of transition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.corrections import Correction, WISOptimal
from gvf_lab.theory.numbers.chain import DETERMINISTIC_CHAIN, EASY_CHAIN, HARD_CHAIN, Chain
from gvf_lab.theory.numbers.enumeration import MakeRing, enumerated_moments
from gvf_lab.theory.numbers.prediction import squared_norms

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
        >>> from gvf_lab.theory.numbers.bias_numbers import expected_wis
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
        >>> from gvf_lab.theory.numbers.bias_numbers import multinomial_windows
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
