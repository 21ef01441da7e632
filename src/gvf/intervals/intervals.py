"""Intervals from replicates: the predictions of a log, and of many resamples of it.

With the prediction v of the log and v*_1, ..., v*_B of its replicates, in order, and a the share
of misses that is allowed (0.05 for the level 0.95), the interval for a state is

    percentile    [ v*_l, v*_u ],    l = (B + 1) a / 2,    u = B + 1 - l.

It says how far the prediction may be off because other episodes could have happened. Errors that
all logs would share are not in it: features that cannot represent the values, steps too few or too
large, a wrong behaviour policy.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from gvf.common import checkpoint, spec
from gvf.common.arrays import Floats
from gvf.common.checks import is_number
from gvf.features import FeatureMap
from gvf.learner.values import LinearPrediction
from gvf.policy import DiscretePolicy

_TOGETHER = 2**22
"""The number of predictions in memory at a time, over states and replicates."""
_KIND = "intervals"


class Interval(NamedTuple):
    """Predictions with their intervals, float64[m] each; [m, G] for the G questions of a horde."""

    point: Floats
    """The predictions of the log itself."""
    low: Floats
    """The lower ends."""
    high: Floats
    """The upper ends."""


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Predictions with an interval for every state (and question); :func:`bootstrap` makes them.

    Attributes:
        questions: the questions, as text; the names of those of a horde.
        features: the representation.
        policies: for each question, the policy over whose actions action values are averaged, or
            None.
        weights: the weights of the log (lane 0) and of each replicate,
            float64[G, rows, 1 + replicates].
        horde: True if predictions are [m, G].
        level: the share of intervals that should cover the value.
        method: "td" or "lstd".
        units: the number of units that were resampled, in words.
        episodes: the number of units.
        updates: the number of updates; 0 for least squares.
        empty: the number of replicates without a row of positive mass, which predict 0.
        estimated: True if the behaviour's probabilities are estimates. Their error is not in the
            intervals.

    Example:
        >>> import gvf
        >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "terminated": True}
        >>> walks = [walk | {"reward": [0.0, number % 3]} for number in range(30)]
        >>> question = gvf.GVF(gvf.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(
        ...     question, gvf.OneHot(3), gvf.TD(0.1), behaviour=gvf.Uniform(2)
        ... )
        >>> intervals = gvf.bootstrap(learner, gvf.read(walks, quiet=True), method="lstd", seed=1)
        >>> intervals
        Intervals(GVF(Always(1, 2), 'reward', 0.9): 95 %, 199 replicates of 30 episodes, lstd)
        >>> point, low, high = intervals.predict([0, 1])
        >>> for state in range(2):
        ...     print(f"{point[state]:.2f} from {low[state]:.2f} to {high[state]:.2f}")
        0.90 from 0.68 to 1.18
        1.00 from 0.75 to 1.31
    """

    questions: tuple[str, ...]
    features: FeatureMap
    policies: tuple[DiscretePolicy | None, ...]
    weights: Floats
    horde: bool
    level: float
    method: str
    units: str
    episodes: int
    updates: int
    empty: int
    estimated: bool

    @property
    def replicates(self) -> int:
        """The number of replicates, B."""
        return self.weights.shape[2] - 1

    def predict(self, states: Any, *, level: float | None = None) -> Interval:
        """Predict for a batch of states [m, ...].

        Args:
            states: the states.
            level: another level than that of the intervals.

        Returns:
            The point, the lower and the upper end, [m] each; [m, G] for a horde. An end is infinite
            if too many replicates have diverged.
        """
        level = self.level if level is None else level
        rank = rank_of(level, self.replicates)
        count = len(np.asarray(states)) if not hasattr(states, "__len__") else len(states)
        step = max(_TOGETHER // (self.weights.shape[2] * len(self.questions)), 1)
        parts = [
            self._ends(states[start : start + step], rank) for start in range(0, count, step)
        ] or [self._ends(states, rank)]
        return Interval(*(np.concatenate(ends) for ends in zip(*parts, strict=True)))

    def replicate(self, states: Any) -> Floats:
        """Predict by every replicate: [m, B], or [m, G, B] for a horde.

        They are for intervals of anything that is computed from predictions: a difference of two
        states, a mean over states, the state with the largest value.

        Example:
            >>> import gvf, numpy as np
            >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "terminated": True}
            >>> walks = [walk | {"reward": [number % 2, number % 3]} for number in range(30)]
            >>> question = gvf.GVF(gvf.Always(1, actions=2), "reward", 0.5)
            >>> learner = gvf.Learner(
            ...     question, gvf.OneHot(3), gvf.TD(0.1), behaviour=gvf.Uniform(2)
            ... )
            >>> log = gvf.read(walks, quiet=True)
            >>> intervals = gvf.bootstrap(learner, log, method="lstd", seed=1)
            >>> here, there = intervals.replicate([0, 1])
            >>> print(f"{np.mean(here < there):.2f} of the replicates prefer state 1")
            0.97 of the replicates prefer state 1
        """
        return self._all(states)[..., 1:]

    def _all(self, states: Any) -> Floats:
        """Predict in all lanes, [m, lanes] or [m, G, lanes]."""
        found = [
            LinearPrediction(self.features, policy, True, weights).predict(states)
            for policy, weights in zip(self.policies, self.weights, strict=True)
        ]
        return np.stack(found, axis=1) if self.horde else found[0]

    def _ends(self, states: Any, rank: int) -> tuple[Floats, Floats, Floats]:
        lanes = self._all(states)
        drawn = lanes[..., 1:]
        unknown = np.isnan(drawn)
        low = np.partition(np.where(unknown, -np.inf, drawn), rank, axis=-1)[..., rank]
        high = np.partition(np.where(unknown, np.inf, drawn), -1 - rank, axis=-1)[..., -1 - rank]
        return lanes[..., 0], low, high

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the intervals to one file; :meth:`load` reads it."""
        arrays: dict[str, Any] = {}
        named = {name: getattr(self, name) for name in self.__dataclass_fields__}
        weights = named.pop("weights")
        description = {name: spec.describe(part, arrays) for name, part in named.items()}
        checkpoint.write(path, _KIND, arrays | {"weights": weights}, description)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, trust: Iterable[str] = ()) -> Self:
        """Read the intervals that :meth:`save` wrote.

        Args:
            path: the file.
            trust: modules whose functions and classes the file may name, as in :func:`gvf.load`.
        """
        description, arrays = checkpoint.read(path, _KIND)
        with checkpoint.damage_named(path):
            named = {"dict": [[name, part] for name, part in description.items()]}
            trusted = (trust,) if isinstance(trust, str) else tuple(trust)
            parts = spec.build(named, arrays, trusted)
            return cls(weights=np.array(arrays["weights"], np.float64, order="C"), **parts)

    def __repr__(self) -> str:
        asked = f"{len(self.questions)} questions" if self.horde else self.questions[0]
        notes = [f"{100 * self.level:g} %, {self.replicates} replicates of {self.units}"]
        notes.append(self.method)
        if self.empty:
            notes.append(f"{self.empty} replicates without mass")
        if self.estimated:
            notes.append("estimated ratios")
        return f"Intervals({asked}: {', '.join(notes)})"


def rank_of(level: float, replicates: int) -> int:
    """Return the position of the lower end among the replicates in order, from 0.

    Raises:
        ValueError: if the level is not between 0 and 1, or needs more replicates.

    Example:
        >>> from gvf.intervals.intervals import rank_of
        >>> rank_of(0.95, 199), rank_of(0.8, 199)
        (4, 19)
    """
    if not (is_number(level) and 0.0 < level < 1.0):
        raise ValueError(f"level must be between 0 and 1, got {level}")
    rank = int((replicates + 1) * (1.0 - level) / 2.0 + 1e-9)
    if rank < 1:
        least = int(np.ceil(2.0 / (1.0 - level) - 1e-9)) - 1
        raise ValueError(
            f"level {level:g} needs at least {least} replicates, and there are {replicates}"
        )
    return rank - 1
