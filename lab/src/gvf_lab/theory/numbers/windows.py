"""Windows of ratios and updates, some constructed to meet a theorem's condition.

The size of an update is its squared length g = |Delta|^2. Its direction is random.
"""

from __future__ import annotations

import numpy as np

from gvf.common.arrays import Floats
from gvf.kernels import covariance
from gvf_lab.study.base_study import seed_for
from gvf_lab.theory.numbers.prediction import squared_norms


def random_windows(count: int, n: int, *, seed: int, purpose: str) -> tuple[Floats, Floats]:
    """Draw ratios [count, n], some of them 0 and some large, and updates [count, n, 3].

    Example:
        >>> from gvf_lab.theory.numbers.windows import random_windows
        >>> ratios, updates = random_windows(5, 6, seed=0, purpose="example")
        >>> ratios.shape, updates.shape, bool((ratios.max(axis=1) > 0).all())
        ((5, 6), (5, 6, 3), True)
    """
    rng = np.random.default_rng(seed_for(seed, n, "theory", purpose))
    ratios = rng.lognormal(-0.5, 1.0, (count, n))
    ratios[:, 1:] *= rng.random((count, n - 1)) > 0.15
    return ratios, rng.normal(size=(count, n, 3))


def with_sizes(vectors: Floats, squared: Floats) -> Floats:
    """Give vectors [..., n, d] these squared lengths [..., n], and keep their directions."""
    return vectors * np.sqrt(squared / squared_norms(vectors))[..., None]


def rising_sizes(ratios: Floats) -> Floats:
    """Return squared lengths that meet the condition of Theorem 3.3, with c = 1."""
    above = ratios >= ratios.mean(axis=1, keepdims=True)
    return np.where(above, 1.1, 0.9) / np.maximum(ratios, 0.05)


def uncorrelated_sizes(ratios: Floats, squared: Floats) -> Floats:
    """Return positive g [..., n] near those given, uncorrelated with the ratios of each window."""
    centred = ratios - ratios.mean(axis=1, keepdims=True)
    slope = covariance(ratios, squared) / centred.var(axis=1)
    squared = squared - slope[:, None] * centred
    return squared - np.minimum(squared.min(axis=1, keepdims=True), 0.0) + 0.01
