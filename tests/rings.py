"""How rings are filled, searched and compared."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from oracles import Numbers, RingOracle

from gvf import RatioRing

LEVEL = 1e-5  # of each chi-square test: there are some 150 of them, their seeds are fixed
DRAWS = 1_000_000


def filled(capacity: int, ratios: Any, seed: int = 0) -> tuple[RatioRing, RingOracle]:
    """A ring and its oracle after the same insertions."""
    ring, oracle = RatioRing(capacity, seed=seed), RingOracle(capacity, seed=seed)
    ring.extend(ratios)
    oracle.extend(np.asarray(ratios).tolist())
    return ring, oracle


def search(ring: RatioRing, uniforms: Any) -> list[int]:
    """What the ring draws with the given numbers."""
    return ring.sample(len(uniforms), rng=Numbers(uniforms)).tolist()


def assert_same(a: dict[str, Any], b: dict[str, Any]) -> None:
    """Two checkpoints are the same, bit for bit."""
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], strict=True)


@contextmanager
def unchanged(ring: RatioRing, rng: np.random.Generator | None = None) -> Iterator[None]:
    """The ring, its streams and the generator are afterwards as they were before."""
    before, numbers = ring.checkpoint(), copy.deepcopy(rng)
    yield
    assert_same(ring.checkpoint(), before)
    if rng is not None and numbers is not None:
        assert rng.random() == numbers.random()
