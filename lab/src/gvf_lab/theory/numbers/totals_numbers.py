"""The variance of updates over windows and draws of the Markov chain, enumerated and simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gvf.common.arrays import Floats
from gvf.corrections import BCIR, IR, IS, Correction, WISOptimal
from gvf_lab.theory.numbers.chain import DETERMINISTIC_CHAIN, HARD_CHAIN, Chain
from gvf_lab.theory.numbers.enumeration import MakeRing, enumerated_moments
from gvf_lab.theory.numbers.prediction import predicted_moments, squared_norms
from gvf_lab.theory.numbers.simulation import Draw, mean_and_error, sliding, stream

WINDOW, BATCH = 3, 2
STEPS, BLOCK = 1_000_000, 250
"""Updates in the stream, and in a block; blocks are nearly independent of each other."""
METHODS: Mapping[str, Correction] = {c.name: c for c in (BCIR(), IS(), IR(), WISOptimal())}
"""The corrections of the paper, which the theory is about."""


@dataclass(frozen=True)
class TotalVariances:
    """V(update) of the METHODS in windows of some chains.

    Attributes:
        within: E[V(update | B)] by formula, [chains, methods].
        between: V(E[update | B]) by formula, [chains, methods].
        measured: V(update) by enumeration, [chains, methods].
        printed_noise: E|X_IR - mean of Delta|^2 in the first chain, about the unweighted mean of
            the window's updates, as printed in the paper.
    """

    within: Floats
    between: Floats
    measured: Floats
    printed_noise: float


def total_variances(
    corrections: Mapping[str, Correction], chain: Chain, ring: MakeRing
) -> TotalVariances:
    """Predict the variances of METHODS, and enumerate those of `corrections` of the same names."""
    chains = (chain, HARD_CHAIN, DETERMINISTIC_CHAIN)
    within, between, measured = (np.empty((len(chains), len(METHODS))) for _ in range(3))
    for i, each in enumerate(chains):
        kinds, probability = each.windows(WINDOW)
        window = each.ratio[kinds], each.update[kinds]
        for j, (name, method) in enumerate(METHODS.items()):
            predicted = predicted_moments(method, *window, BATCH)
            within[i, j] = probability @ predicted.variance
            centred = predicted.mean - probability @ predicted.mean
            between[i, j] = probability @ squared_norms(centred)
            enumerated = enumerated_moments(corrections[name], *window, BATCH, ring=ring)
            second, mean = probability @ enumerated.second, probability @ enumerated.mean
            measured[i, j] = second - mean @ mean
    return TotalVariances(within, between, measured, _printed_noise(chain))


def _printed_noise(chain: Chain) -> float:
    kinds, probability = chain.windows(WINDOW)
    window = chain.ratio[kinds], chain.update[kinds]
    resampled = predicted_moments(IR(), *window, BATCH)
    shift = resampled.mean - window[1].mean(axis=1)
    return float(probability @ (resampled.variance + squared_norms(shift)))


@dataclass(frozen=True)
class StreamVariances:
    """The squared distances of updates from their expectation along a stream of the chain.

    Attributes:
        blocks: means over blocks of time, by name of the method, [blocks].
    """

    blocks: Mapping[str, Floats]

    def variance(self, name: str) -> tuple[float, float]:
        """Return V(update) of a method, and its standard error."""
        return mean_and_error(self.blocks[name])

    def difference(self, name: str, other: str) -> tuple[float, float]:
        """Return V(update) of one method minus that of another, and its standard error."""
        return mean_and_error(self.blocks[name] - self.blocks[other])


def stream_variances(
    corrections: Mapping[str, Correction], chain: Chain, seed: int, draw: Draw
) -> StreamVariances:
    """Simulate one stream, with an update of each correction after every step."""
    kinds, probability = chain.windows(WINDOW)
    window = chain.ratio[kinds], chain.update[kinds]
    path = stream(chain, STEPS, seed=seed, run=99)
    blocks = {}
    for name, correction in corrections.items():
        x = sliding(correction, *path, WINDOW, BATCH, seed=seed, run=99, draw=draw)
        expected = probability @ predicted_moments(METHODS[name], *window).mean
        blocks[name] = squared_norms(x - expected).reshape(-1, BLOCK).mean(axis=1)
    return StreamVariances(blocks)
