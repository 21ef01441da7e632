"""Held-out episodes: the numbers of a log that judging needs.

The log is read once. What is kept of n transitions with L candidates are a few arrays [n], and the
predictions [n, L]. Squared errors are summed in each episode, the independent unit of
a log. Scores, and their resampling, need no more (:mod:`gvf.judging.compare`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from gvf.common.arrays import Array, Bools, Floats
from gvf.common.checks import brief
from gvf.common.errors import positions_counted_from
from gvf.judging.candidates import Candidate, candidates, distinct, predictions
from gvf.links import in_order
from gvf.log import Log
from gvf.policies import DiscretePolicy, Policy
from gvf.question import GVF, OnConflict
from gvf.rows import RowMaker
from gvf.transition import Transitions, as_transitions, ended_rows


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The transitions of held-out episodes, in order, and the predictions for their states.

    Attributes:
        ratio: the ratios, float64[n].
        cumulant: the cumulants, float64[n].
        continuation: the continuations, float64[n].
        interest: the interest in the states, float64[n].
        last: True for the last transition of an episode, bool[n].
        predicted: the predictions of L candidates, float64[n, L].
        after: their predictions for the state after an episode that was cut, float64[n, L]; 0 in
            all other rows.
        part: the number of the part of the log in which it was held out, int64[n].
        action: the number of the action, int64[n]; 0 if actions are continuous.
        target: the target's probability of each action, float64[n, A]; float64[n, 0] if actions are
            continuous.
        estimated: True where the behaviour's probability is an estimate, bool[n].
    """

    ratio: Floats
    cumulant: Floats
    continuation: Floats
    interest: Floats
    last: Bools
    predicted: Floats
    after: Floats
    part: Array
    action: Array
    target: Floats
    estimated: Bools

    @property
    def cut(self) -> Bools:
        """True for the last transition of an episode after which more would have followed."""
        return self.last & (self.continuation > 0.0)

    @property
    def episode(self) -> Array:
        """The number of each transition's episode, int64[n], from 0."""
        return np.cumsum(self.last) - self.last

    @property
    def starts(self) -> Array:
        """The first transition of each episode, int64[E]."""
        return np.flatnonzero(np.concatenate([[True], self.last[:-1]]))

    @classmethod
    def joined(cls, parts: Iterable[HeldOut]) -> Self:
        """Join the held-out parts of a log."""
        listed = list(parts)
        columns = {f.name: [getattr(part, f.name) for part in listed] for f in fields(cls)}
        columns["part"] = [np.full(len(part.ratio), at) for at, part in enumerate(listed)]
        return cls(**{name: np.concatenate(arrays) for name, arrays in columns.items()})


def gather(
    learners: Mapping[str, Any],
    log: Any,
    question: GVF,
    behaviour: Policy | None,
    on_conflict: OnConflict,
) -> tuple[HeldOut, list[Candidate]]:
    """Read held-out episodes, and predict for their states."""
    batches: list[dict[str, Array]] = []
    named: list[Candidate] = []
    row_count, maker = 0, RowMaker(question, on_conflict)
    for batch, last in _batches(log):
        if not len(batch):
            continue
        if not named:
            named = candidates(learners, batch["state"][:1])
        sorted_by = ", sorted by stream" if "stream" in batch else ""
        with positions_counted_from(row_count, f"the log{sorted_by}"):
            rows = maker.many(batch, behaviour)
        predicted = _all(learners, batch["state"])
        after = np.zeros_like(predicted)
        cut = np.flatnonzero(last & (rows.continuation > 0.0))
        if len(cut):
            after[cut] = _all(learners, batch["next_state"][cut])
        actions, target = np.zeros(len(batch), np.int64), np.zeros((len(batch), 0))
        if isinstance(question.policy, DiscretePolicy):
            actions = batch["action"].astype(np.int64)
            target = question.policy.probabilities(batch["state"])
        batches.append({
            "action": actions, "target": target, "ratio": rows.ratio,
            "cumulant": rows.cumulant, "continuation": rows.continuation,
            "interest": rows.interest, "last": last, "predicted": predicted, "after": after,
            "part": np.zeros(len(batch), np.int64), "estimated": rows.origin.estimated,
        })  # fmt: skip
        row_count += len(batch)
    if not batches:
        raise ValueError("there are no held-out transitions to judge by")
    whole = {name: np.concatenate([part[name] for part in batches]) for name in batches[0]}
    if not whole["interest"].any():
        raise ValueError("the interest is 0 in all held-out states")
    return HeldOut(**whole), named


def side_by_side(
    columns: Sequence[tuple[HeldOut, list[Candidate]]],
) -> tuple[HeldOut, list[Candidate]]:
    """Join the candidates of several learners that were judged by the same episodes."""
    predictions_by_name = {
        name: np.column_stack([getattr(held, name) for held, _ in columns])
        for name in ("predicted", "after")
    }
    named = [candidate for _, listed in columns for candidate in listed]
    return replace(columns[0][0], **predictions_by_name), distinct(named)


def _all(learners: Mapping[str, Any], states: Any) -> Floats:
    """Return the predictions of all candidates, float64[m, L]."""
    return np.concatenate(
        [predictions(learner, states, name) for name, learner in learners.items()], 1
    )


def _batches(log: Any) -> Iterator[tuple[Transitions, Bools]]:
    """Yield batches, with True where an episode ends, in the order of their episodes."""
    if isinstance(log, list) and log and isinstance(log[0], Mapping):
        log = as_transitions(log)
    items: Iterable[Any] = [log] if isinstance(log, Transitions) else log
    if isinstance(items, Mapping | str) or not isinstance(items, Iterable):
        raise TypeError(
            f"cannot judge by a {type(log).__name__}: give a gvf.Log (gvf.read_log makes one), "
            "gvf.Transitions, or a list of these, one for each episode"
        )
    for item in items:
        if not isinstance(item, Transitions):
            raise TypeError(f"expected gvf.Transitions, got {brief(item)}")
        if isinstance(log, Log):  # whose rows are in order, and whose episodes cross batches
            yield item, item["terminated"] | item["truncated"]
            continue
        alone = item is log and "stream" not in item  # so more rows may have followed
        if alone and not ended_rows(item.columns, len(item))[-1:].all():
            raise ValueError("the last episode of the log has no end: mark it as truncated")
        yield in_order(item, refuse_gaps=True)


@dataclass(frozen=True, eq=False)
class Sums:
    """The squared errors of L candidates, summed in each of E episodes.

    Attributes:
        error: the sums of squared errors, weighted by interest, float64[E, L].
        weight: the sums of interests, float64[E].
    """

    error: Floats
    weight: Floats

    @property
    def scores(self) -> Floats:
        """The score of each candidate, float64[L]."""
        return self.error.sum(axis=0) / self.weight.sum()


def squared_errors(held: HeldOut, returns: Floats, predicted: Floats) -> Sums:
    """Sum squared errors by episode; those of predictions that are not finite are infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = (predicted - returns[:, None]) ** 2
        square[np.isnan(square)] = np.inf
        square *= held.interest[:, None]
        square[np.isnan(square)] = 0.0  # no interest in a state, and no prediction
        error = np.add.reduceat(square, held.starts, axis=0)
    return Sums(error, np.add.reduceat(held.interest, held.starts))
