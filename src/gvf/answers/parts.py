"""The parts of a question, made of what a plan says: policies, signals, features.

A plan is data. What it leaves open, such as the number of actions or the bounds of tile coding, is
taken from the :class:`gvf.answers.facts.Facts` of the log.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gvf.answers.facts import Facts
from gvf.answers.functions import Constant, Entry, Scaled
from gvf.answers.plan import Asked, Plan
from gvf.answers.policies import function, policy
from gvf.answers.section import placed
from gvf.common.names import is_reference, known, nearest
from gvf.features import Dense, FeatureMap, OneHot, TileCoder
from gvf.log.names import MEANINGS
from gvf.question import GVF

LARGEST = 2**22
"""The largest number of richer features."""


def question(asked: Asked, plan: Plan, facts: Facts, columns: tuple[str, ...]) -> GVF:
    """Make a question."""
    with placed(f"question {asked.name!r}"):
        return GVF(
            policy(asked.policy, plan, facts),
            _cumulant(asked.cumulant, plan, columns, facts),
            _rate(asked.continuation, plan, columns, facts, "continuation"),
            asked.name,
            None
            if asked.interest is None
            else _rate(asked.interest, plan, columns, facts, "interest"),
        )


def _cumulant(given: Any, plan: Plan, columns: tuple[str, ...], facts: Facts) -> Any:
    if isinstance(given, int | float):
        return Constant(float(given))
    if isinstance(given, dict):
        return Entry(_column(given["column"], columns, "cumulant", facts), given["index"])
    if is_reference(given):
        return function(given, plan, "cumulant")
    return _column(given, columns, "cumulant", facts)


def _rate(given: Any, plan: Plan, columns: tuple[str, ...], facts: Facts, what: str) -> Any:
    if isinstance(given, int | float):
        return given
    if isinstance(given, dict):
        return Entry(_column(given["column"], columns, what, facts), given["index"])
    if is_reference(given):
        return function(given, plan, what)
    return Entry(_column(given, columns, what, facts))


def _column(name: str, columns: tuple[str, ...], what: str, facts: Facts) -> str:
    """Return the name of a column of the log, which may be given by its name in the file."""
    if name in columns:
        return name
    if name in facts.renamed:
        return facts.renamed[name]
    if name in facts.names:
        at = facts.names.index(name)
        raise ValueError(
            f'{what}: {name!r} is a part of the state: say {{column = "next_state", index = {at}}} '
            f'for its value after the step, or {{column = "state", index = {at}}} for that before'
        )
    hint = f', or name it in [log]: {name} = "..."' if name in MEANINGS else ""
    raise ValueError(f"{what}: the log has no column {name!r}; {nearest(name, columns)}{hint}")


def features(plan: Plan, facts: Facts) -> FeatureMap:
    """Make the features."""
    given = plan.features
    with placed("[features]"):
        kind = given["kind"]
        if kind == "auto":
            kind = "tiles" if facts.states is None else "one-hot"
        if kind == "one-hot":
            if facts.states is None:
                raise ValueError(
                    "kind 'one-hot' is for states that are whole numbers from 0, and the log's "
                    f"are {facts.sample.dtype} ({', '.join(facts.names)}): use 'tiles'"
                )
            size = given["states"] or facts.states
            if size < facts.states:
                raise ValueError(f"states = {size}, and {facts.last_state}")
            return OneHot(size)
        if kind == "function":
            return Dense(given["size"], function(given["of"], plan, "feature function"))
        if facts.sample.ndim != 2:
            raise ValueError(
                f"kind {kind!r} is for states that are rows of numbers, and the log's have shape "
                f"{facts.sample.shape[1:]}"
            )
        low, high = (
            found if given[side] is None else np.broadcast_to(given[side], found.shape)
            for side, found in zip(("low", "high"), facts.bounds, strict=True)
        )
        if kind == "dense":
            return Dense(1 + len(low), Scaled(tuple(low.tolist()), tuple(high.tolist())))
        return TileCoder(low, high, tiles=given["tiles"], tilings=given["tilings"])


def richer(features: FeatureMap, facts: Facts, times: int) -> TileCoder | None:
    """Return features that can represent more: so many times the tilings; None if there are none.

    Features that are not tiles are compared with tiles. A table of states can represent everything.
    """
    if isinstance(features, TileCoder):
        made = {"low": features.low, "high": features.high, "tiles": features.tiles}
        tilings = features.tilings
    elif isinstance(features, Dense) and facts.sample.ndim == 2 and not facts.sample.dtype.names:
        low, high = facts.bounds
        made, tilings = {"low": low, "high": high, "tiles": 4}, 4
    else:
        return None
    cells = math.prod(int(n) + 1 for n in np.broadcast_to(made["tiles"], len(made["low"])))
    if tilings * times * cells > LARGEST:
        return None
    return TileCoder(**made, tilings=tilings * times)


def dimensions(plan: Plan, facts: Facts) -> list[int]:
    """Return the numbers of the dimensions that the plan names for the map."""
    found = []
    with placed("[page]"):
        for given in plan.dimensions or ():
            if isinstance(given, str):
                found.append(facts.names.index(known(given, facts.names, "dimension")))
            elif 0 <= given < len(facts.names):
                found.append(given)
            else:
                raise ValueError(
                    f"there are {len(facts.names)} dimensions, and none of number {given}"
                )
    return found
