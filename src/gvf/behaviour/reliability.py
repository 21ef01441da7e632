"""The reliability of probabilities: whether what has probability p happens a share p of the time.

For discrete actions all pairs of a row and an action (of two actions, only the second) are sorted
into bins b of equal size by their probability. With the mean probability p_b and the share y_b of
pairs whose action was taken,

    calibration error = sum_b (n_b / n) |p_b - y_b|.

For densities the probability integral transform u of each action, the share of the policy's own
actions below it, is uniform if the density is right; the error is the mean of |P(u <= q) - q| over
levels q. Neither is 0 for a perfect estimate, because the log is finite: the error by chance comes
from actions that the estimate itself draws. Intervals are of a bootstrap over episodes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.estimate import Estimate
from gvf.policies import Policy
from gvf.policies.policy import draw, thresholds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 15
"""The number of bins of probabilities."""
LEVELS = 20
"""The number of levels of a density's transform."""
_DRAWS = 99
"""The number of the policy's own actions that each action is compared with."""
_MOST_ROWS = 20_000
"""The largest number of rows whose actions are compared in this way."""
_REPLICATES = 200
_MOST_GROUPS = 2000
"""The largest number of groups of episodes that the bootstrap draws."""


@dataclass(frozen=True, eq=False, repr=False)
class Reliability:
    """The reliability of estimated probabilities; the result of ``estimated.reliability()``.

    Attributes:
        kind: "probability" for discrete actions, "transform" for densities.
        expected: the mean probability of each bin, [B]; for densities the upper bounds of levels.
        observed: the share of the pairs in each bin whose action was taken, [B]; for densities the
            share of the actions up to the level.
        low: the lower bounds of 95 % intervals of `observed` over episodes, [B].
        high: the upper bounds.
        counts: the number of pairs, or actions, in each bin.
        error: the calibration error, with a 95 % interval over episodes.
        by_chance: the mean calibration error of a perfect estimate with this log's size.
        limit: the calibration error that a perfect estimate exceeds in 2.5 % of such logs.
    """

    kind: str
    expected: Floats
    observed: Floats
    low: Floats
    high: Floats
    counts: NDArray[np.int64]
    error: Estimate
    by_chance: float
    limit: float

    def __repr__(self) -> str:
        first = "probability" if self.kind == "probability" else "level"
        lines = [
            f"Reliability: calibration error {self.error}, {self.by_chance:.2g} by chance",
            f"  {first:>11}  {'observed':>8}  {'95 % interval':>16}  {'count':>9}",
        ]
        for p, y, low, high, n in zip(
            self.expected, self.observed, self.low, self.high, self.counts, strict=True
        ):
            lines.append(f"  {p:11.3f}  {y:8.3f}  {f'{low:.3f} to {high:.3f}':>16}  {n:9,}")
        return "\n".join(lines)

    def plot(self, axes: Any = None) -> Figure:
        """Draw what was observed over what was estimated, on matplotlib axes or new ones."""
        from gvf.behaviour.behaviour_plots import reliability_picture

        return reliability_picture(self, axes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file; its ending says the format."""
        from gvf.behaviour.behaviour_plots import save

        save(self.plot(), Path(path))


def of_probabilities(
    p: Floats, actions: NDArray[Any], episode: NDArray[Any], rng: np.random.Generator
) -> Reliability:
    """Return the reliability of probabilities [m, A] of all actions, given those taken [m]."""
    m, count = p.shape
    sums = thresholds(p)
    first = 1 if count == 2 else 0  # of two actions, one tells all
    p = p[:, first:]
    edges = np.unique(np.quantile(p, np.linspace(0, 1, BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, p, side="right")
    size = len(edges) + 1
    episode, episodes = _numbered(episode)
    at = (episode[:, None] * size + bins).ravel()
    expected: Any = np.bincount(at, p.ravel(), episodes * size).reshape(episodes, size)

    def observed(actions: NDArray[Any], base: Any) -> Floats:
        rows = np.flatnonzero(actions >= first)
        at = (base * size)[rows] + bins[rows, actions[rows] - first]
        return np.bincount(at, minlength=(int(base.max()) + 1) * size).astype(np.float64)

    taken = observed(actions, episode).reshape(episodes, size)
    counts = np.bincount(at, minlength=episodes * size).reshape(episodes, size)

    def errors(n: Any, e: Floats, y: Floats) -> Floats:
        return np.abs(e - y).sum(axis=1) / n.sum(axis=1)

    together = np.zeros(m, np.int64)
    chance = [observed(draw(sums, rng), together) for _ in range(_REPLICATES // 2)]
    total = expected.sum(axis=0)[None]
    by_chance = errors(np.full((1, 1), p.size), total, np.stack(chance))
    return _judged("probability", expected, taken, counts, errors, by_chance, rng)


def of_densities(transform: Floats, episode: NDArray[Any], rng: np.random.Generator) -> Reliability:
    """Return the reliability of a density from the transforms [m, d] of actions."""
    m, d = transform.shape
    episode, episodes = _numbered(episode)
    levels = np.arange(1, LEVELS + 1) / LEVELS

    def cumulative(u: Floats) -> NDArray[np.int64]:
        bins = np.minimum((u * LEVELS).astype(np.int64), LEVELS - 1)
        at = (episode[:, None] * LEVELS + bins).ravel()
        histogram = np.bincount(at, minlength=episodes * LEVELS).reshape(episodes, LEVELS)
        return histogram.cumsum(axis=1)

    def errors(n: Any, e: Floats, y: Floats) -> Floats:
        return np.abs(y / n - e / n).mean(axis=1)

    counts = np.repeat(np.bincount(episode, minlength=episodes)[:, None] * d, LEVELS, axis=1)
    expected, observed = counts * levels, cumulative(transform).astype(np.float64)
    chance = np.stack([cumulative(rng.random((m, d))).sum(axis=0) for _ in range(_REPLICATES // 2)])
    total = expected.sum(axis=0)[None]
    by_chance = errors(np.full((1, 1), m * d), total, chance)
    return _judged("transform", expected, observed, counts, errors, by_chance, rng)


def transforms(policy: Policy, states: Any, actions: Floats, rng: np.random.Generator) -> Floats:
    """Return the share of the policy's own actions below each dimension of actions [m, d]."""
    below = np.zeros(actions.shape)
    for _ in range(_DRAWS):
        sample = np.asarray(policy.sample(states, rng=rng), np.float64).reshape(actions.shape)
        below += sample < actions
    return (below + rng.random(actions.shape)) / (_DRAWS + 1)


def few_rows(count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows whose actions are compared with the policy's own, ascending."""
    if count <= _MOST_ROWS:
        return np.arange(count)
    return np.sort(rng.choice(count, _MOST_ROWS, replace=False))


def _judged(
    kind: str,
    expected: Floats,
    observed: Floats,
    counts: NDArray[np.int64],
    errors: Any,
    by_chance: Floats,
    rng: np.random.Generator,
) -> Reliability:
    """Join sums of episodes [E, B] to a result, with intervals of a bootstrap over episodes."""
    has_rows = counts.any(axis=0)  # equal probabilities leave bins empty
    expected, observed, counts = expected[:, has_rows], observed[:, has_rows], counts[:, has_rows]
    episodes = len(counts)
    e, y, n = expected.sum(axis=0), observed.sum(axis=0), counts.sum(axis=0)
    whole = float(errors(n[None], e[None], y[None])[0])
    low = high = np.full(len(n), np.nan)
    error = Estimate(whole, np.nan, np.nan)
    if episodes > 1:
        weights = np.stack(
            [
                np.bincount(rng.integers(episodes, size=episodes), minlength=episodes)
                for _ in range(_REPLICATES)
            ]
        ).astype(np.float64)
        ns, es, ys = weights @ counts, weights @ expected, weights @ observed
        replicates = errors(ns, es, ys)
        # Resampling adds noise, which makes every error larger; the spread is what counts.
        spread = np.quantile(replicates - replicates.mean(), [0.025, 0.975])
        error = Estimate(whole, *np.maximum(whole + spread, 0.0).tolist())
        with np.errstate(invalid="ignore"):
            low, high = np.nanquantile(np.where(ns > 0, ys / ns, y / n), [0.025, 0.975], axis=0)
    limit = float(np.quantile(by_chance, 0.975))
    return Reliability(kind, e / n, y / n, low, high, n, error, float(by_chance.mean()), limit)


def _numbered(episode: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Return episodes as numbers from 0, and how many they are; very many are put in groups."""
    names, number = np.unique(episode, return_inverse=True)
    groups = min(len(names), _MOST_GROUPS)
    return number % groups, groups
