"""The theory as experiments: each formal result is tested with the library's own parts.

Each function here states one result and tests it. It takes the parts under test (corrections, the
ring, the draws of the studies) as arguments, and returns a :class:`Finding`: rows of predicted,
measured and tolerance, and a picture. :func:`verify` runs them all, as ``gvf verify`` does. All
results are the paper's, except those about emphasis.

A result is one file: the numbers that the theory predicts and that the library gives, the rows that
compare them, and their picture.

    bias, consistency, variance_lemma, variance, totals     the paper's results
    emphasis                    our own result about emphatic resampling
    finding                     rows, tables of rows, and what pictures share
    chain, corridor             the two worlds that the results are about
    enumeration, simulation     updates by formula and over all batches, or in many drawn batches
"""

from __future__ import annotations

from collections.abc import Iterator

from gvf_lab.theory.bias import corollary_3_1_1, theorem_3_1
from gvf_lab.theory.consistency import proposition, theorem_3_2
from gvf_lab.theory.emphasis import emphatic_resampling
from gvf_lab.theory.finding import Finding, FindingRow
from gvf_lab.theory.totals import total_variance
from gvf_lab.theory.variance import theorem_3_3, theorem_3_4
from gvf_lab.theory.variance_lemma import lemma

__all__ = [
    "Finding",
    "FindingRow",
    "corollary_3_1_1",
    "emphatic_resampling",
    "lemma",
    "proposition",
    "theorem_3_1",
    "theorem_3_2",
    "theorem_3_3",
    "theorem_3_4",
    "total_variance",
    "verify",
]


def verify(*, seed: int = 0) -> Iterator[Finding]:
    """Run all experiments, one after the other; the seed is that of their simulations.

    Example:
        >>> from gvf_lab.theory import verify
        >>> finding = next(verify())
        >>> finding.result, all(row.holds for row in finding.rows)
        ('Theorem 3.1', True)
    """
    yield theorem_3_1()
    yield corollary_3_1_1()
    yield proposition(seed=seed)
    yield theorem_3_2(seed=seed)
    yield lemma(seed=seed)
    yield theorem_3_3(seed=seed)
    yield theorem_3_4(seed=seed)
    yield total_variance(seed=seed)
    yield emphatic_resampling(seed=seed)
