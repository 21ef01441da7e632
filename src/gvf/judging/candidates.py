"""Candidates: the predictors that are compared, one for each learner and lane.

A learner with L step sizes has L lanes, and each lane is a candidate of its own. A learner is any
object with a method ``predict``; those of this library also tell the names of their candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gvf.common.arrays import Floats
from gvf.common.checks import brief
from gvf.question import GVF


@runtime_checkable
class PredictorLike(Protocol):
    """The interface of a learner that can be judged."""

    def predict(self, states: Any) -> Any:
        """Predict for a batch of states [m, ...]: [m], or [m, lanes]."""
        ...


class Candidate(NamedTuple):
    """A learner, or one lane of it."""

    name: str
    """The name, unique among the candidates."""
    learner: str
    """The name of the learner."""
    lane: int | None
    """The number of the lane; None if the learner has no lanes."""


def named(learners: Any) -> dict[str, Any]:
    """Return the learners by name: names that were given, or such as tell them apart.

    Example:
        >>> import gvf
        >>> from gvf.judging.candidates import named
        >>> question, x = gvf.GVF(gvf.policies.Uniform(2)), gvf.features.OneHot(3)
        >>> list(
        ...     named(
        ...         [
        ...             gvf.Learner(question, x, gvf.updates.TD(0.1), c)
        ...             for c in (gvf.corrections.IR(), gvf.corrections.IS())
        ...         ]
        ...     )
        ... )
        ['TD, IR', 'TD, IS']
    """
    if isinstance(learners, PredictorLike):
        learners = [learners]
    if not isinstance(learners, Mapping):
        if isinstance(learners, str) or not isinstance(learners, Iterable):
            raise TypeError(f"learners must be a learner, or several, got {brief(learners)}")
        listed = list(learners)
        names = _different([_title(learner) for learner in listed])
        learners = dict(zip(names, listed, strict=True))
    if not learners:
        raise ValueError("give at least one learner")
    for name, learner in learners.items():
        if not isinstance(learner, PredictorLike):
            raise TypeError(f"learner {name!r} has no method predict: {brief(learner)}")
    if len({id(learner) for learner in learners.values()}) < len(learners):
        raise ValueError("the same learner is given twice")
    return {str(name): learner for name, learner in learners.items()}


def _title(learner: Any) -> str:
    """Name a learner by what differs most often: its update or algorithm, and its correction."""
    rule = getattr(learner, "update", None) or getattr(learner, "algorithm", None) or learner
    correction = getattr(getattr(learner, "correction", None), "name", "")
    return f"{type(rule).__name__}{', ' if correction else ''}{correction}"


def _different(names: list[str]) -> list[str]:
    """Number the names that occur more than once."""
    count: dict[str, int] = {}
    for at, name in enumerate(names):
        count[name] = count.get(name, 0) + 1
        if names.count(name) > 1:
            names = [*names[:at], f"{name} ({count[name]})", *names[at + 1 :]]
    return names


def question_of(learners: Mapping[str, Any], question: GVF | None) -> GVF:
    """Return the question that all learners answer."""
    if question is not None:
        if not isinstance(question, GVF):
            raise TypeError(f"question must be a gvf.GVF, got {brief(question)}")
        return question
    first: GVF | None = None
    for name, learner in learners.items():
        asked = getattr(learner, "question", None)
        if not isinstance(asked, GVF):
            raise ValueError(f"learner {name!r} does not tell its question: give question=")
        first = asked if first is None else first
        if asked is not first and asked != first:
            raise ValueError(
                f"learner {name!r} answers {asked}, and the first one {first}: only errors of the "
                "same question can be compared. If they are the same, give question="
            )
    assert first is not None
    return first


def predictions(learner: Any, states: Any, name: str) -> Floats:
    """Return predictions as float64[m, lanes], with one lane if the learner has none."""
    with np.errstate(over="ignore", invalid="ignore"):  # lanes that have diverged
        values = np.asarray(learner.predict(states), np.float64)
    if values.ndim not in (1, 2) or len(values) != len(states):
        raise ValueError(
            f"learner {name!r} predicts an array of shape {values.shape} for {len(states)} states, "
            f"expected ({len(states)},) or ({len(states)}, lanes)"
        )
    return values.reshape(len(values), -1)


def candidates(learners: Mapping[str, Any], state: Any) -> list[Candidate]:
    """List the candidates of learners, in order; one state is predicted to count lanes."""
    lanes: list[Candidate] = []
    for name, learner in learners.items():
        values = np.asarray(learner.predict(state))
        if values.ndim == 1:
            lanes.append(Candidate(name, name, None))
            continue
        labels = _lanes(learner, values.shape[1])
        lanes += [Candidate(f"{name}, {label}", name, at) for at, label in enumerate(labels)]
    return distinct(lanes)


def distinct(lanes: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates with names that differ."""
    names = _different([candidate.name for candidate in lanes])
    return [candidate._replace(name=name) for candidate, name in zip(lanes, names, strict=True)]


def _lanes(learner: Any, count: int) -> list[str]:
    """Name the lanes of a learner by the values in which they differ."""
    rule = getattr(learner, "update", None) or getattr(learner, "algorithm", None)
    varied = {
        field.replace("_", " "): getattr(rule, field)
        for field in getattr(rule, "lane_fields", ())
        if isinstance(getattr(rule, field), tuple) and len(getattr(rule, field)) == count
    }
    if not varied:
        return [f"lane {at}" for at in range(count)]
    return [", ".join(f"{field} {v[at]:.4g}" for field, v in varied.items()) for at in range(count)]
