"""The law of a mini-batch given the window: mean and variance of its update, for any correction.

A batch has k independent draws. Each is row i with probability P_i, and adds ``a_i Delta_i / k`` to
the update X. With ``g_i = |Delta_i|^2`` (the paper's variance lemma),

    E[X | B] = sum_i P_i a_i Delta_i,        V(X | B) = (1/k) (sum_i P_i a_i^2 g_i - |E[X | B]|^2).

P comes from the masses of the correction, a from its weights of batches of k. The lemma holds if
the weight of a row is the same in every batch. This is tested by weighing more batches; if it is
not so, as for WIS-Minibatch, :attr:`Law.exact` is False. A batch of the whole window is the limit
of infinitely many uniform draws: it has no variance.

:mod:`gvf.diagnosis.moments` uses this for one large window,
:mod:`gvf_lab.theory.enumeration` for many small ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.corrections import RATIO, Correction

Places = NDArray[np.int64]

ROUNDING = 1e-9
"""Weights within this relative difference count as equal."""
BATCHES = 16
"""The number of random batches of each window that test whether weights are constant."""
PROBE_ROWS = 32
"""The least number of rows that test whether weights depend on the scale of the ratios."""
SCALES = 2.0 ** np.array([-10, 0, 10])
"""The factors of the ratios that test whether weights depend on their scale."""
WEIGHT_TOLERANCE = 1e-6
"""A total weight counts as constant up to this relative change."""


class Law(NamedTuple):
    """The probabilities and weights of a batch from each of G windows of n rows."""

    chance: Floats
    """The probabilities P [G, n]; all 0 in a window without mass, whose update is 0."""
    weight: Floats
    """The weights a [G, n], k times that of a drawn row, in units of `unit`; at most 1."""
    unit: Floats
    """Powers of 2 [G]; without these units, squares of large weights would overflow."""
    draws: float
    """The number of draws k; infinite if the batch is the whole window."""
    exact: bool
    """True if a row's weight is the same in every batch, so that the lemma holds."""

    @property
    def expected(self) -> Floats:
        """The products P a [G, n], in units; their sum with the updates is the expected update."""
        return self.chance * self.weight

    def variance(self, squares: Floats, square_of_mean: Floats | float) -> Floats:
        """Compute V(X | B) [G] by the lemma, in units squared.

        Args:
            squares: the squared lengths g of the updates, [G, n].
            square_of_mean: the squared length of the expected update, in units squared, [G].
        """
        second = np.sum(self.expected * self.weight * squares, axis=1)
        return np.maximum(second - square_of_mean, 0.0) / self.draws


def law_of(correction: Correction, inputs: Floats, k: int) -> Law:
    """Compute the law of a correction's batches.

    Args:
        correction: the correction.
        inputs: the inputs of the rows of G windows, [C, G, n]; the first are the ratios.
        k: the size of a batch.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.diagnosis.batch_law import law_of
        >>> ratios = np.array([[[1.0, 3.0]]])
        >>> law = law_of(gvf.corrections.BCIR(), ratios, k=4)
        >>> law.chance, law.unit * law.weight, law.exact
        (array([[0.25, 0.75]]), array([[2., 2.]]), True)
        >>> law_of(gvf.corrections.WISMinibatch(), ratios, k=4).exact
        False
    """
    windows, n = inputs.shape[1:]
    rows = np.ascontiguousarray(inputs.reshape(len(inputs), -1))
    p = correction.masses(rows)
    masses = p.reshape(windows, n)
    total = masses.sum(axis=1, keepdims=True)
    full = total[:, 0] > 0.0
    if not full.all():
        return _scattered(law_of(correction, inputs[:, full], k), full)
    # Rows without mass are never drawn and may have no weight: the likeliest row replaces them.
    row, columns = np.arange(windows * n).reshape(windows, n), [*inputs, masses]
    if not masses.all():
        row = np.where(masses > 0.0, row, row[:, :1] + masses.argmax(axis=1, keepdims=True))
        columns = [x.reshape(-1)[row] for x in columns]
    # Every row once, with the last row repeated to fill the last batch; then the test batches.
    whole = correction.draw.whole
    size = n if whole else k
    first = -(-n // size) * size
    each = np.broadcast_to(np.minimum(np.arange(first), n - 1), (windows, first))
    slots = each if whole else np.concatenate([each, _other_batches(columns, size)], axis=1)
    batches = np.take_along_axis(row, slots, axis=1)
    means = np.column_stack([*inputs.mean(axis=2), masses.mean(axis=1)])
    w = size * _weigh(correction, rows, p, batches, means, size)
    weight, again = w[:, :n], w[:, first:]
    before = weight.reshape(-1)[batches[:, first:]]
    exact = bool((np.abs(again - before) <= ROUNDING * np.abs(before)).all())
    unit = np.ldexp(1.0, np.frexp(np.maximum(weight.max(axis=1), -weight.min(axis=1)))[1])
    return Law(masses / total, weight / unit[:, None], unit, math.inf if whole else k, exact)


def _weigh(
    correction: Correction, rows: Floats, p: Floats, batches: Places, means: Floats, size: int
) -> Floats:
    """Compute the weights [G, m] of rows [G, m] in batches of `size`, with given window means."""
    count = batches.shape[1] // size
    w = correction.weigh_rows(rows, p, batches.reshape(-1, size), means.repeat(count, axis=0))
    if not np.isfinite(w).all():
        at = int(np.argmin(np.isfinite(w)))
        raise ValueError(
            f"{correction.name} gives the weight {w.flat[at]} to a row whose ratio is "
            f"{rows[RATIO, batches.flat[at]]}; weights must be finite"
        )
    return w.reshape(batches.shape)


@cache
def self_normalised(correction: Correction, k: int) -> bool:
    """Return True if the mean total weight of a batch does not depend on the scale of the ratios.

    Such a correction estimates the weighted mean of the updates; others estimate the mean of rho
    times the update. The test multiplies the ratios of made-up rows by about a thousand.

    Example:
        >>> import gvf
        >>> from gvf.diagnosis.batch_law import self_normalised
        >>> self_normalised(gvf.corrections.IR(), 16), self_normalised(gvf.corrections.BCIR(), 16)
        (True, False)
    """
    # Only whole batches, so that the mean of all weights is that of batches.
    made_up = np.random.default_rng(0).lognormal(size=(correction.rows, 1, k * -(-PROBE_ROWS // k)))
    inputs = np.repeat(made_up, len(SCALES), axis=1)
    inputs[RATIO] *= SCALES[:, None]
    try:
        law = law_of(correction, inputs, k)
    except ValueError:
        return False  # the correction does not take such ratios
    total = law.unit * (law.expected.sum(axis=1) if law.exact else law.weight.mean(axis=1))
    return bool(np.ptp(total) <= WEIGHT_TOLERANCE * np.abs(total).max())


def _scattered(law: Law, full: NDArray[np.bool_]) -> Law:
    """Extend the law of windows [F] to all windows [G]; nothing is drawn from the others."""
    shape = len(full), law.chance.shape[1]
    chance, weight, unit = np.zeros(shape), np.zeros(shape), np.ones(len(full))
    chance[full], weight[full], unit[full] = law.chance, law.weight, law.unit
    return law._replace(chance=chance, weight=weight, unit=unit)


def _other_batches(columns: Sequence[Floats], size: int) -> Places:
    """Return slots [G, m] of rows in windows for the test batches: random rows, and extremes.

    A batch of copies of the row with the least or largest number in a column [G, n] shows the
    effect of one large ratio among many equal ones, which random batches would miss.
    """
    ends = np.array([slot for x in columns for slot in (x.argmin(axis=1), x.argmax(axis=1))]).T
    anywhere = (_random(size) * columns[0].shape[1]).astype(np.int64)
    anywhere = np.broadcast_to(anywhere, (len(ends), len(anywhere)))
    return np.concatenate([anywhere, ends.repeat(size, axis=1)], axis=1)


@lru_cache(maxsize=8)
def _random(size: int) -> Floats:
    """Return uniform numbers for the random batches, always the same."""
    return np.random.default_rng(0).random(BATCHES * size)
