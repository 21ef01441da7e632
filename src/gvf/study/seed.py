"""Seeds: each random purpose of a run has one of its own, whatever else is running."""

from __future__ import annotations

import zlib

import numpy as np


def seed_for(seed: int, run: int, *purpose: object) -> np.random.SeedSequence:
    """The seed of one purpose in one run, made from the study's seed, the run and what it is for.

    Example:
        >>> from gvf.study.seed import seed_for
        >>> seed_for(0, 1, "walk", "uniform").spawn_key
        (1, 3836136024)
    """
    key = zlib.crc32("/".join(map(str, purpose)).encode())
    return np.random.SeedSequence(seed, spawn_key=(run, key))
