"""The bias of importance resampling: Theorem 3.1 and its corollary.

Given a window, the average of IR is WIS-Optimal. That is a quotient of two means, which is biased.
BC-IR multiplies IR by the window's mean ratio r. Its average is a plain mean, which is unbiased.
The numbers are those of :mod:`gvf_lab.theory.numbers.bias_numbers`; nothing is sampled.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gvf import RatioRing
from gvf.common.arrays import Floats
from gvf.corrections import BCIR, IR, Correction, WISOptimal
from gvf_lab.theory import theory_pictures
from gvf_lab.theory.finding import Finding, FindingRow, exactly
from gvf_lab.theory.numbers import bias_numbers
from gvf_lab.theory.numbers.enumeration import MakeRing


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
    drawn, whole = bias_numbers.means_in_windows(ir, wis, ring)
    by_size = bias_numbers.bias_by_size(wis)
    rows = (
        exactly(
            f"E[IR | window] is WIS-Optimal, in {len(drawn):,} windows",
            whole,
            drawn,
            "weights wrong by 2e-12, a ratio by 1e-11; a window of n + 1",
        ),
        *_rows_by_size(by_size, bias_numbers.means_with_equal_ratios(wis)),
    )
    return Finding(
        "Theorem 3.1",
        "IR has the bias of WIS-Optimal, which falls as 1/n",
        rows,
        partial(theory_pictures.draw_theorem_3_1, by_size),
    )


def _rows_by_size(
    by_size: bias_numbers.BiasBySize, equal_ratios: tuple[Floats, Floats]
) -> tuple[FindingRow, ...]:
    n = int(bias_numbers.SIZES[-1])
    return (
        exactly(
            "at n = 1 the bias is E_mu - E_pi",
            bias_numbers.MU @ bias_numbers.UPDATE - bias_numbers.PI @ bias_numbers.UPDATE,
            by_size.bias[0],
            "weights wrong by 2e-12",
            scale=bias_numbers.UPDATE,
        ),
        exactly(
            "rho constant where pi goes: P(mass) E_pi[Delta], n = 1 to 16",
            *equal_ratios,
            "weights wrong by 2e-12",
        ),
        *first_order(f"-Cov_pi(rho, Delta); n = {n}", by_size, n),
    )


def first_order(limit: str, by_size: bias_numbers.BiasBySize, n: int) -> tuple[FindingRow, ...]:
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
    in_chains = bias_numbers.bias_in_chains(bcir, ir, ring)
    hard = list(bias_numbers.CHAINS).index("hard")
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
        partial(theory_pictures.draw_corollary_3_1_1, in_chains),
    )
