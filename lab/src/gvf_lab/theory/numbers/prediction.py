"""The theory's mean and variance of one mini-batch's update, given the window.

The formula is the paper's variance lemma, for any correction. It is in
:mod:`gvf.diagnosis.batch_law`, whose code also tells users which correction to choose. This module
applies it to many small windows. Its neighbour :mod:`gvf_lab.theory.numbers.enumeration` sums over
all batches of the same windows.
"""

from __future__ import annotations

from typing import NamedTuple

from gvf.common.arrays import Floats
from gvf.corrections import Correction
from gvf.kernels import law_of


class PredictedMoments(NamedTuple):
    """Mean and variance of the update X of G windows, by the lemma."""

    mean: Floats
    """E[X | B], [G, d]."""
    variance: Floats
    """V(X | B), the trace of the covariance, [G]."""


def squared_norms(updates: Floats) -> Floats:
    """Return the squared lengths g = |Delta|^2 [...] of updates [..., d]."""
    return (updates**2).sum(axis=-1)


def predicted_moments(
    correction: Correction, ratios: Floats, updates: Floats, k: int = 1
) -> PredictedMoments:
    """Predict the mean and variance of a correction's update in each of G windows.

    If nothing can be drawn from a window, its update is 0.

    Args:
        correction: the correction; a row's weight must not depend on the rest of the batch.
        ratios: the ratios, [G, n].
        updates: the updates, [G, n, d].
        k: the size of a batch; the mean does not depend on it.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf_lab.theory.numbers.prediction import predicted_moments
        >>> predicted_moments(
        ...     gvf.corrections.IS(), np.array([[0.0, 2.0]]), np.array([[[1.0], [1.0]]])
        ... )
        PredictedMoments(mean=array([[1.]]), variance=array([1.]))
    """
    law = law_of(correction, ratios[None], k)
    if not law.exact:
        raise ValueError(f"{correction.name} weighs by batch, and the lemma is about single rows")
    mean = (law.expected[:, :, None] * updates).sum(axis=1)
    variance = law.variance(squared_norms(updates), squared_norms(mean))
    return PredictedMoments(law.unit[:, None] * mean, law.unit**2 * variance)
