"""The parts of a question, made of what a plan says: policies, signals, features.

A plan is data. What it leaves open, such as the number of actions or the bounds of tile coding, is
taken from the :class:`gvf.answers.plan.Facts` of the log.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gvf.answers.build_policies import Constant, Entry, Scaled, function, policy
from gvf.answers.plan import Asked, Facts, Plan
from gvf.answers.toml_table import placed
from gvf.common.part_names import is_reference, known, nearest
from gvf.features import Dense, FeatureMap, OneHot, TileCoder
from gvf.log.column_meanings import MEANINGS
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


def _cumulant(signal: Any, plan: Plan, columns: tuple[str, ...], facts: Facts) -> Any:
    if isinstance(signal, int | float):
        return Constant(float(signal))
    if isinstance(signal, dict):
        return Entry(_column(signal["column"], columns, "cumulant", facts), signal["index"])
    if is_reference(signal):
        return function(signal, plan, "cumulant")
    return _column(signal, columns, "cumulant", facts)


def _rate(signal: Any, plan: Plan, columns: tuple[str, ...], facts: Facts, what: str) -> Any:
    if isinstance(signal, int | float):
        return signal
    if isinstance(signal, dict):
        return Entry(_column(signal["column"], columns, what, facts), signal["index"])
    if is_reference(signal):
        return function(signal, plan, what)
    return Entry(_column(signal, columns, what, facts))


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
    table = plan.features
    with placed("[features]"):
        kind = table["kind"]
        if kind == "auto":
            kind = "tiles" if facts.states is None else "one-hot"
        if kind == "one-hot":
            if facts.states is None:
                raise ValueError(
                    "kind 'one-hot' is for states that are whole numbers from 0, and the log's "
                    f"are {facts.sample.dtype} ({', '.join(facts.names)}): use 'tiles'"
                )
            size = table["states"] or facts.states
            if size < facts.states:
                raise ValueError(f"states = {size}, and {facts.last_state}")
            return OneHot(size)
        if kind == "function":
            return Dense(table["size"], function(table["of"], plan, "feature function"))
        if facts.sample.ndim != 2:
            raise ValueError(
                f"kind {kind!r} is for states that are rows of numbers, and the log's have shape "
                f"{facts.sample.shape[1:]}"
            )
        low, high = (
            bound if table[side] is None else np.broadcast_to(table[side], bound.shape)
            for side, bound in zip(("low", "high"), facts.bounds, strict=True)
        )
        if kind == "dense":
            return Dense(1 + len(low), Scaled(tuple(low.tolist()), tuple(high.tolist())))
        return TileCoder(low, high, tiles=table["tiles"], tilings=table["tilings"])


def richer(features: FeatureMap, facts: Facts, times: int) -> TileCoder | None:
    """Return features that can represent more: so many times the tilings; None if there are none.

    Features that are not tiles are compared with tiles. A table of states can represent everything.
    """
    if isinstance(features, TileCoder):
        grid = {"low": features.low, "high": features.high, "tiles": features.tiles}
        tilings = features.tilings
    elif isinstance(features, Dense) and facts.sample.ndim == 2 and not facts.sample.dtype.names:
        low, high = facts.bounds
        grid, tilings = {"low": low, "high": high, "tiles": 4}, 4
    else:
        return None
    cells = math.prod(int(n) + 1 for n in np.broadcast_to(grid["tiles"], len(grid["low"])))
    if tilings * times * cells > LARGEST:
        return None
    return TileCoder(**grid, tilings=tilings * times)


def dimensions(plan: Plan, facts: Facts) -> list[int]:
    """Return the numbers of the dimensions that the plan names for the map."""
    numbers = []
    with placed("[page]"):
        for name in plan.dimensions or ():
            if isinstance(name, str):
                numbers.append(facts.names.index(known(name, facts.names, "dimension")))
            elif 0 <= name < len(facts.names):
                numbers.append(name)
            else:
                raise ValueError(
                    f"there are {len(facts.names)} dimensions, and none of number {name}"
                )
    return numbers
