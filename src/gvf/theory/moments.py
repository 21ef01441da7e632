"""What the theory predicts of one mini-batch's update, given the window: its mean and variance.

The formula is the paper's variance lemma, for any correction, and stands in
:mod:`gvf.diagnosis.law`: the same code tells a user which correction to choose. Here it is for many
small windows, whose updates are written out; what becomes of all their batches is counted next
door, in :mod:`gvf.theory.exact`.
"""

from __future__ import annotations

from typing import NamedTuple

from gvf.common.arrays import Array
from gvf.correction import Correction
from gvf.diagnosis.law import law_of


class Predicted(NamedTuple):
    """Of the update X of G windows."""

    mean: Array
    """E[X | B], [G, d]."""
    variance: Array
    """V(X | B), the trace of the covariance, [G]."""


def squared_norms(updates: Array) -> Array:
    """The squared lengths g = |Delta|^2 [...] of updates [..., d]."""
    return (updates**2).sum(axis=-1)


def predict(correction: Correction, ratios: Array, updates: Array, k: int = 1) -> Predicted:
    """The lemma's mean and variance of a correction's update, given the window, for G windows.

    A window from which nothing can be drawn has the update 0.

    Args:
        correction: any whose weight of a row does not depend on the rest of the batch.
        ratios: [G, n].
        updates: [G, n, d].
        k: the size of a batch; the mean does not depend on it.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.theory.moments import predict
        >>> predict(gvf.IS(), np.array([[0.0, 2.0]]), np.array([[[1.0], [1.0]]]))
        Predicted(mean=array([[1.]]), variance=array([1.]))
    """
    law = law_of(correction, ratios[None], k)
    if not law.exact:
        raise ValueError(f"{correction.name} weighs by batch, and the lemma is about single rows")
    mean = (law.expected[:, :, None] * updates).sum(axis=1)
    variance = law.variance(squared_norms(updates), squared_norms(mean))
    return Predicted(law.unit[:, None] * mean, law.unit**2 * variance)
