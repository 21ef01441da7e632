"""Intervals from replicates: the predictions of a log, and of many resamples of it.

With the prediction v of the log, and v*_1, ..., v*_B of its replicates, the interval for a state is

    v - h ... v + h,    h = the r-th smallest of |v*_b - v|,    r = level (B + 1), rounded up.

Of the ways to make an interval from replicates this one covered the truth about as often as it
says with 10 to 200 episodes; ends at the quantiles of the replicates, or at those reflected about
v, covered it less often with few (docs/intervals.md).

An interval says how far the prediction may be off because other episodes could have happened.
Errors that all logs share are not in it: features that cannot represent the values, learning that
is not done, ratios that are estimates.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from gvf.common import checkpoint, describe
from gvf.common.arrays import Bools, Floats
from gvf.common.checks import is_number
from gvf.common.fields import as_states
from gvf.estimate import percent
from gvf.features import FeatureMap
from gvf.learners.linear_values import LinearPrediction
from gvf.policies import DiscretePolicy

UNFINISHED = 0.1
"""The mean drift of predictions, in half widths of their intervals, above which learning was not
finished."""
_TOGETHER = 2**22
"""The number of predictions in memory at a time, over states and replicates."""
_KIND = "bootstrap"
_KINDS = {"weights": np.float64, "change": np.float64, "known": np.bool_, "diverged": np.bool_}
"""The arrays of a file, with their types."""


class Interval(NamedTuple):
    """Predictions with their intervals, float64[m] each; [m, G] for the G questions of a horde.

    Example:
        >>> import gvf, numpy as np
        >>> point, low, high = gvf.intervals.Interval(
        ...     np.array([1.0]), np.array([0.5]), np.array([1.5])
        ... )
        >>> high - low
        array([1.])
    """

    point: Floats
    """The predictions of the log itself."""
    low: Floats
    """The lower ends."""
    high: Floats
    """The upper ends."""


@dataclass(frozen=True, eq=False, repr=False)
class BootstrapResult:
    """Predictions with an interval for every state (and question); :func:`bootstrap` makes them.

    Attributes:
        questions: the questions, as text; the names of those of a horde.
        features: the representation.
        policies: for each question, the policy over whose actions action values are averaged, or
            None.
        weights: the weights of the log (lane 0) and of each replicate,
            float64[G, rows, 1 + replicates].
        known: True for weights that the log tells about, bool[G, rows].
        horde: True if predictions are [m, G].
        level: the share of intervals that should cover the value.
        method: "td" or "lstd".
        units: the number of units that were resampled, in words.
        episodes: the number of units.
        updates: the number of updates; 0 for least squares.
        empty: the number of replicates without a row of positive mass, which predict 0.
        diverged: True for lanes that have diverged, bool[G, 1 + replicates], by the limit of
            :class:`gvf.LearnerReport`: a weight is not finite, or a prediction is more than 1000
            times the largest possible return. Lane 0 is the log itself.
        change: the mean change of the lanes' weights in the second half of learning,
            float64[G, rows]; 0 for least squares, and if a lane has diverged.
        estimated: True if the behaviour's probabilities are estimates. Their error is not in the
            intervals.

    Example:
        >>> import gvf
        >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "terminated": True}
        >>> walks = [walk | {"reward": [0.0, number % 3]} for number in range(30)]
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(
        ...     question,
        ...     gvf.features.OneHot(3),
        ...     gvf.updates.TD(0.1),
        ...     behaviour=gvf.policies.Uniform(2),
        ... )
        >>> intervals = gvf.bootstrap(
        ...     learner, gvf.read_log(walks, quiet=True), method="lstd", seed=1
        ... )
        >>> intervals
        Intervals(GVF(Always(1, 2), 'reward', 0.9): 95 %, 199 replicates of 30 episodes, lstd)
        >>> point, low, high = intervals.predict([0, 1])
        >>> for state in range(2):
        ...     print(f"{point[state]:.2f} from {low[state]:.2f} to {high[state]:.2f}")
        0.90 from 0.63 to 1.17
        1.00 from 0.70 to 1.30
    """

    questions: tuple[str, ...]
    features: FeatureMap
    policies: tuple[DiscretePolicy | None, ...]
    weights: Floats
    known: Bools
    horde: bool
    level: float
    method: str
    units: str
    episodes: int
    updates: int
    empty: int
    diverged: Bools
    change: Floats
    estimated: bool

    @property
    def replicates(self) -> int:
        """The number of replicates, B."""
        return self.weights.shape[2] - 1

    @property
    def lost(self) -> Bools:
        """True for questions whose intervals are infinite because a lane has diverged, bool[G].

        One lane is enough. On a log that could have been recorded, the same learning diverges, so
        the other lanes may only be on their way.
        """
        return np.asarray(self.diverged.any(axis=1))

    def drift(self, states: Any) -> Floats:
        """Return how far predictions moved late in learning, [m], or [m, G] for a horde.

        It is the mean change of the predictions of all replicates in the second half of learning,
        without its sign, in half widths of the interval, less the part that the noise of draws can
        explain. A half width is about two standard deviations of a replicate, so the mean change of
        B replicates that learn no more has a standard error of up to sqrt(2 / B) / 2 half widths.
        The drift is 0 for least squares, and where the interval is infinite.
        """
        return np.concatenate([self._drift(part) for part in self._pieces(states)])

    def unfinished(self, states: Any) -> Bools:
        """Return True if learning was not finished, for these states, [] or [G] for a horde.

        Then all replicates are wrong alike, and the intervals are too narrow. Take more epochs, a
        larger step size, or ``method="lstd"``. It is never True for least squares. The limit is a
        mean :meth:`drift` of 0.1 half widths; experiments/intervals/sweep.py measures why.
        """
        return self.drift(states).mean(axis=0) > UNFINISHED

    def _drift(self, states: Any) -> Floats:
        moved = [
            LinearPrediction(self.features, policy, False, change[:, None]).predict(states)
            for policy, change in zip(self.policies, self.change, strict=True)
        ]
        point, _, high = self._ends(states, rank_of(self.level, self.replicates))
        half = np.where(np.isfinite(high), high - point, np.inf)
        share = np.abs(np.stack(moved, axis=1) if self.horde else moved[0]) / half
        return np.maximum(share - np.sqrt(2.0 / self.replicates) / 2.0, 0.0)

    def predict(self, states: Any, *, level: float | None = None) -> Interval:
        """Predict for a batch of states [m, ...].

        Args:
            states: the states.
            level: another level than that of the intervals.

        Returns:
            The point, the lower and the upper end, [m] each; [m, G] for a horde. The interval is
            infinite for a state most of whose features are in no row of the log (of ratio above 0);
            for a state that no event of the log reaches, so that replicates agree exactly; and
            everywhere if the log itself or a replicate has diverged (:attr:`lost`).
        """
        rank = rank_of(self.level if level is None else level, self.replicates)
        parts = [self._ends(part, rank) for part in self._pieces(as_states(states))]
        return Interval(*(np.concatenate(ends) for ends in zip(*parts, strict=True)))

    def mean(self, states: Any, *, level: float | None = None) -> Interval:
        """Predict the mean over a batch of states [m, ...], such as the first of all episodes.

        Its interval is narrower than those of the states, whose errors partly cancel. It is about
        these states, not about others that could have been drawn.

        Args:
            states: the states.
            level: another level than that of the intervals.

        Returns:
            The point, the lower and the upper end, one number each; [G] for a horde. The interval
            is infinite if that of a state is.

        Example:
            >>> import gvf
            >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "terminated": True}
            >>> walks = [walk | {"reward": [0.0, number % 3]} for number in range(30)]
            >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
            >>> learner = gvf.LSTDLearner(
            ...     question, gvf.features.OneHot(3), behaviour=gvf.policies.Uniform(2)
            ... )
            >>> intervals = gvf.bootstrap(learner, gvf.read_log(walks, quiet=True), seed=1)
            >>> print("{:.2f} from {:.2f} to {:.2f}".format(*intervals.mean([0, 1])))
            0.95 from 0.67 to 1.23
        """
        rank = rank_of(self.level if level is None else level, self.replicates)
        states = as_states(states)
        if not len(states):
            raise ValueError("a mean over no states is not a number: give at least one")
        pieces = list(self._pieces(states))
        lanes = sum(self._all(part).sum(axis=0) for part in pieces) / len(states)
        unknown = np.any([self._unknown(part).any(axis=0) for part in pieces], axis=0)
        return Interval(*_around(np.asarray(lanes), unknown, rank))

    def _pieces(self, states: Any) -> Iterator[Any]:
        """Yield the states in batches whose predictions in all lanes fit into memory."""
        count = len(np.asarray(states)) if not hasattr(states, "__len__") else len(states)
        step = max(_TOGETHER // (self.weights.shape[2] * len(self.questions)), 1)
        for start in range(0, max(count, 1), step):
            yield states[start : start + step]

    def replicate(self, states: Any) -> Floats:
        """Predict by every replicate: [m, B], or [m, G, B] for a horde; nan if it has diverged.

        They are for intervals of anything that is computed from predictions: a difference of two
        states, a mean over states, the state with the largest value.

        Example:
            >>> import gvf, numpy as np
            >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "terminated": True}
            >>> walks = [walk | {"reward": [number % 2, number % 3]} for number in range(30)]
            >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.5)
            >>> learner = gvf.Learner(
            ...     question,
            ...     gvf.features.OneHot(3),
            ...     gvf.updates.TD(0.1),
            ...     behaviour=gvf.policies.Uniform(2),
            ... )
            >>> log = gvf.read_log(walks, quiet=True)
            >>> intervals = gvf.bootstrap(learner, log, method="lstd", seed=1)
            >>> here, there = intervals.replicate([0, 1])
            >>> print(f"{np.mean(here < there):.2f} of the replicates prefer state 1")
            0.56 of the replicates prefer state 1
        """
        return self._all(states)[..., 1:]

    def _all(self, states: Any) -> Floats:
        """Predict in all lanes, [m, lanes] or [m, G, lanes]; nan in replicates that diverged."""
        by_question = [
            LinearPrediction(self.features, policy, True, weights).predict(states)
            for policy, weights in zip(self.policies, self.weights, strict=True)
        ]
        for predictions, diverged in zip(by_question, self.diverged, strict=True):
            predictions[:, 1:][:, diverged[1:]] = np.nan
        return np.stack(by_question, axis=1) if self.horde else by_question[0]

    def _ends(self, states: Any, rank: int) -> tuple[Floats, Floats, Floats]:
        return _around(self._all(states), self._unknown(states), rank)

    def _unknown(self, states: Any) -> Bools:
        """Return True where most of the features are in no row, [m] or [m, G]."""
        features = _Levels(self.features)
        shares = []
        for policy, known in zip(self.policies, self.known, strict=True):
            columns = np.stack([known, np.ones_like(known)], axis=1).astype(np.float64)
            known_weight, all_weight = (
                LinearPrediction(features, policy, True, columns).predict(states).T
            )
            shares.append(known_weight < 0.5 * all_weight)
        unknown = np.stack(shares, axis=1) | self.lost
        return unknown if self.horde else unknown[:, 0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the intervals to one file; :meth:`load` reads it."""
        arrays: dict[str, Any] = {}
        named = {name: getattr(self, name) for name in self.__dataclass_fields__}
        typed_arrays = {name: named.pop(name) for name in _KINDS}
        description = {name: describe.describe(part, arrays) for name, part in named.items()}
        checkpoint.write(path, _KIND, arrays | typed_arrays, description)

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
            parts = describe.build(named, arrays, trusted)
            typed_arrays = {
                name: np.array(arrays[name], kind, order="C") for name, kind in _KINDS.items()
            }
            return cls(**typed_arrays, **parts)

    def __repr__(self) -> str:
        asked = f"{len(self.questions)} questions" if self.horde else self.questions[0]
        notes = [f"{percent(self.level, 'g')}, {self.replicates} replicates of {self.units}"]
        notes.append(self.method)
        if self.empty:
            notes.append(f"{self.empty} replicates without mass")
        if self.diverged.any():
            notes.append(self._divergence)
        if self.estimated:
            notes.append("estimated ratios")
        return f"Intervals({asked}: {', '.join(notes)})"

    @property
    def _divergence(self) -> str:
        """The diverged lanes of the question with most of them, in words."""
        itself = "the log's own learner and " if self.diverged[:, 0].any() else ""
        count = self.diverged[:, 1:].sum(axis=1).max()
        some = f" of {self.lost.sum()} questions" if self.horde else ""
        several = "s" if count != 1 else ""
        return f"{itself}{count} replicate{several} DIVERGED: intervals{some} are infinite"


@dataclass(frozen=True)
class _Levels:
    """The absolute values of features."""

    features: FeatureMap

    @property
    def size(self) -> int:
        return self.features.size

    def __call__(self, states: Any) -> Any:
        x = self.features(states)
        return np.abs(x) if np.asarray(x).dtype.kind == "f" else x


def _around(lanes: Floats, unknown: Bools, rank: int) -> tuple[Floats, Floats, Floats]:
    """Return the predictions of lane 0, and the ends of their intervals, from all lanes."""
    point = lanes[..., 0]
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(lanes[..., 1:] - lanes[..., :1])
    distance[np.isnan(distance)] = np.inf
    half = np.partition(distance, rank, axis=-1)[..., rank]
    # Replicates that agree exactly have seen no event, and know nothing of chance.
    half = np.where(unknown | ~np.isfinite(point) | (half == 0.0), np.inf, half)
    middle = np.where(np.isfinite(point), point, 0.0)
    return point, middle - half, middle + half


def rank_of(level: float, replicates: int) -> int:
    """Return the position, from 0, of the distance that an interval reaches, among all in order.

    Raises:
        ValueError: if the level is not between 0 and 1, or needs more replicates.

    Example:
        >>> from gvf.intervals.bootstrap_result import rank_of
        >>> rank_of(0.95, 199), rank_of(0.8, 199)
        (189, 159)
    """
    if not (is_number(level) and 0.0 < level < 1.0):
        raise ValueError(f"level must be between 0 and 1, got {level}")
    rank = int(np.ceil((replicates + 1) * level - 1e-9))
    if rank > replicates:
        least = int(np.ceil(level / (1.0 - level) - 1e-9))
        raise ValueError(
            f"level {level:g} needs at least {least} replicates, and there are {replicates}"
        )
    return rank - 1
