"""The units that a bootstrap resamples, and how often each replicate has each of them.

A unit is an episode, or a block of consecutive steps of one. Units are what repeats independently:
the rows within one are correlated, so rows are never resampled one by one. In replicate b unit e
counts

    N[e, b] ~ Poisson(1),    N[e, 0] = 1,

so replicate 0 is the log itself. Poisson counts are independent of each other, so the counts of a
replicate follow from the seed and its number alone, and replicates can be computed apart. (The
classic bootstrap draws as many units as there are, which gives nearly the same counts.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array
from gvf.log import Log
from gvf.transition import Transitions

LEAST = 5
"""The least number of units. Fewer have too few different resamples to say anything."""


def counts(units: int, replicates: Sequence[int], seed: int) -> NDArray[np.uint8]:
    """Draw how often each replicate has each unit, uint8[units, replicates].

    A replicate has at least one unit: counts that are all 0 are drawn again.

    Args:
        units: the number of units.
        replicates: the numbers of the replicates; number 0 has every unit once.
        seed: the seed. The counts of a replicate depend on it and on its number only.

    Example:
        >>> from gvf.intervals.resampling import counts
        >>> counts(4, [0, 1, 2], seed=0)
        array([[1, 4, 0],
               [1, 0, 1],
               [1, 1, 0],
               [1, 2, 0]], dtype=uint8)
        >>> (counts(4, [2], seed=0)[:, 0] == counts(4, [0, 1, 2], seed=0)[:, 2]).all()
        np.True_
    """
    drawn = np.ones((units, len(replicates)), np.uint8)
    for lane, number in enumerate(replicates):
        if number == 0:
            continue
        rng = np.random.default_rng([seed, number])
        drawn[:, lane] = rng.poisson(1.0, units)
        while not drawn[:, lane].any():
            drawn[:, lane] = rng.poisson(1.0, units)
    return drawn


class Units:
    """The units of a log, which are numbered in its order.

    Args:
        log: the log.
        block: the number of steps of a block; None for whole episodes.

    Example:
        >>> import gvf
        >>> from gvf.intervals.resampling import Units
        >>> walk = {"obs": [0, 1, 2, 3], "action": [1, 1, 1], "terminated": True}
        >>> log = gvf.read_log([walk] * 5, quiet=True)
        >>> len(Units(log)), len(Units(log, block=2))
        (5, 10)
        >>> Units(log, block=2).of(log.transitions())[:7]
        array([0, 0, 1, 2, 2, 3, 4])
    """

    def __init__(self, log: Log, block: int | None = None) -> None:
        self.block, self._numbers, self._lengths = block, log.numbers, log.lengths
        blocks = np.ones_like(self._lengths) if block is None else -(-self._lengths // block)
        self._first = np.cumsum(blocks) - blocks
        self._count = int(blocks.sum())
        self._seen = np.zeros(len(self._numbers), np.int64)  # the rows of each episode so far
        if self._count < LEAST:
            raise ValueError(_few(self._count, log, block))

    def __len__(self) -> int:
        return self._count

    @property
    def name(self) -> str:
        """The number of units, in words."""
        return f"{self._count} " + (
            "episodes" if self.block is None else f"blocks of {self.block} steps"
        )

    def of(self, transitions: Transitions) -> Array:
        """Return the unit of each transition, int64[m]; those of an episode come in order."""
        place = np.searchsorted(self._numbers, transitions["episode"])
        if self.block is None:
            return place
        # The position in the episode: rows before these, and rows of the same episode among these.
        order = np.argsort(place, kind="stable")
        starts = np.flatnonzero(np.diff(place[order], prepend=-1))
        lengths = np.diff(starts, append=len(place))
        within = np.empty(len(place), np.int64)
        within[order] = np.arange(len(place)) - np.repeat(starts, lengths)
        position = self._seen[place] + within
        self._seen[place[order][starts]] += lengths
        return self._first[place] + position % self._lengths[place] // self.block


def _few(count: int, log: Log, block: int | None) -> str:
    """Return the error message for a log with too few units."""
    what = "episode" if block is None else f"block of {block} steps"
    length = max(len(log) // 50, 1)
    return (
        f"the log has {count} {what}{'s' * (count != 1)}, and intervals need at least {LEAST} that "
        "differ by chance; for a long stream give block=..., a number of steps after which it has "
        f"forgotten where it was (block={length} makes about 50 blocks)"
    )
