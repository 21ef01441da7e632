"""The diagnosis of a window: what its ratios are like, and what each correction makes of them.

    effective sample size   (sum rho)^2 / sum rho^2
    mean ratio              r = (1/n) sum rho, with standard error sd(rho) / sqrt(n); rho - 1 is a
                            martingale difference, so that this holds for a Markov stream too

The tail index is in :mod:`gvf.diagnosis.tail`, variance and bias in :mod:`gvf.diagnosis.moments`,
IS against BC-IR in :mod:`gvf.diagnosis.comparison`, the advice in :mod:`gvf.diagnosis.advice`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from gvf.diagnosis.comparison import compare
from gvf.diagnosis.moments import Floats, all_moments
from gvf.diagnosis.record import Diagnosis
from gvf.diagnosis.show import histogram
from gvf.diagnosis.tail import tail_index, trusted_up_to
from gvf.diagnosis.updates import Updates, squared_distances, updates_of_array
from gvf.policy.checks import generator, numpy_array
from gvf.sampling.prefix_sums import LARGEST_RATIO
from gvf.sampling.ring import bad_weight


def diagnose(
    ratios: Any,
    updates: Any,
    *,
    batch_size: int = 16,
    clips: Sequence[float] = (1.0,),
    batches: int = 1000,
    rng: np.random.Generator | None = None,
) -> Diagnosis:
    """Which correction suits a window, and can it be trusted?

    All is given the window: means and variances are over the draws of a mini-batch, exact but for
    WIS-Minibatch. A learner diagnoses itself: :meth:`gvf.Learner.diagnose`.

    Args:
        ratios: importance ratios of the window's transitions, [n].
        updates: the update that each transition would make on-policy, [n, d]: for example TD error
            times features, or a gradient. One number each, [n], will do.
        batch_size: how many transitions an update draws, k.
        clips: of V-trace, one or more.
        batches: how many mini-batches to simulate for WIS-Minibatch.
        rng: of that simulation; by default the same numbers every time.

    Raises:
        ValueError: if all ratios are 0, or something does not fit.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> ratios, updates = rng.lognormal(-0.5, 1.0, 4000), rng.normal(size=(4000, 2))
        >>> found = gvf.diagnose(ratios, updates)
        >>> found.recommendation
        IR()
        >>> round(found.effective_sample_size), round(found.k_hat, 2), found.k_threshold
        (1597, 0.11, 0.7)
        >>> round(found.moments["IS"].variance / found.moments["BC-IR"].variance, 1)
        2.4
    """
    rho = np.asarray(numpy_array(ratios), np.float64)
    if rho.ndim != 1:
        raise ValueError(f"ratios must be [n], one for each transition, got shape {rho.shape}")
    vectors, dimensions = updates_of_array(updates)
    if len(vectors.x) != len(rho):
        raise ValueError(
            f"updates has {len(vectors.x)} rows, but the window has {len(rho)} ratios; "
            "give one update for each ratio"
        )
    return diagnose_updates(
        rho, vectors, dimensions, batch_size=batch_size, clips=clips, batches=batches, rng=rng
    )


def diagnose_updates(
    ratios: Floats,
    updates: Updates,
    dimensions: int,
    *,
    batch_size: int,
    clips: Sequence[float],
    batches: int,
    rng: np.random.Generator | None,
) -> Diagnosis:
    """:func:`diagnose`, for updates that are not written out."""
    if index(batch_size) < 1:
        raise ValueError(f"batch_size, the k of a mini-batch, must be at least 1, got {batch_size}")
    if index(batches) < 2:
        raise ValueError(f"batches, how many to simulate, must be at least 2, got {batches}")
    rng = np.random.default_rng(0) if rng is None else generator(rng)
    _check_mass(ratios)
    n, largest = len(ratios), float(ratios.max())
    # Not the sum over n, which may differ in the last digit, where all ratios are the same.
    mean = float(ratios.mean()) if ratios.min() < largest else largest
    each, ones = np.arange(n)[:, None], np.ones((n, 1))
    squares = squared_distances(*updates, dimensions, each, ones, np.zeros(dimensions))
    if not np.isfinite(squares).all():
        at = int(np.argmin(np.isfinite(squares)))
        raise ValueError(f"the update in row {at} is too long: its squared length is not finite")
    moments, bias_windows = all_moments(
        ratios, mean, updates, dimensions, squares,
        batch_size=batch_size, clips=clips, batches=batches, rng=rng,
    )  # fmt: skip
    shares = ratios / (n * mean)
    return Diagnosis(
        window=n,
        batch_size=batch_size,
        effective_sample_size=1.0 / float(np.sum(shares * shares)),
        zero_ratios=float(np.mean(ratios == 0.0)),
        max_ratio=largest,
        max_share=float(shares.max()),
        mean_ratio=mean,
        mean_ratio_error=float(ratios.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan,
        k_hat=tail_index(ratios),
        k_threshold=trusted_up_to(n),
        moments=moments,
        comparison=compare(ratios, mean, squares, batch_size),
        bias_windows=bias_windows,
        histogram=histogram(ratios),
    )


def _check_mass(ratios: Floats) -> None:
    if not len(ratios):
        raise ValueError("the window is empty: collect some transitions first")
    good = (ratios >= 0.0) & (ratios <= LARGEST_RATIO)
    if not good.all():
        at = int(np.argmin(good))
        raise ValueError(bad_weight(ratios[at], str(at)))
    if not ratios.any():
        raise ValueError(
            f"all {len(ratios)} ratios in the window are 0, so nothing in it tells of the target "
            "policy; collect transitions with actions that the target takes"
        )
