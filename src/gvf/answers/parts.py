"""The parts of a question, made of what a plan says: policies, signals, features.

A plan is data. What it leaves open, such as the number of actions or the bounds of tile coding, is
taken from the :class:`Facts` of the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gvf.answers.functions import Constant, Entry, Layers, Linear, Scaled, Script, Softmax, layers
from gvf.answers.plan import Asked, Plan, Table
from gvf.answers.section import placed
from gvf.common.arrays import Array, Floats
from gvf.common.checks import brief
from gvf.common.names import find, is_reference, known, look_in, nearest
from gvf.features import Dense, FeatureMap, OneHot, TileCoder
from gvf.log import Log
from gvf.policy import (
    Always,
    DiscretePolicy,
    Favour,
    Fixed,
    FunctionPolicy,
    Gaussian,
    Mixture,
    Policy,
    Uniform,
)
from gvf.policy import Table as TablePolicy
from gvf.question import GVF

NUMBERED = ("uniform", "always", "favour", "fixed", "table", "softmax")
"""The kinds of policies that are for actions 0, 1, ... only."""
SAMPLE = 100_000
"""The number of states, at least, from which ranges are taken; a smaller log gives all of its."""
QUANTILES = (0.005, 0.995)
"""The quantiles of the states' dimensions that bound tile coding and scaled features."""


@dataclass(frozen=True)
class Facts:
    """What a plan leaves open, from the log.

    Attributes:
        actions: the number of actions, if they are whole numbers; otherwise None.
        states: the number of states, if they are whole numbers; otherwise None.
        last_action: the largest action and its place, in words.
        last_state: the largest state and its place, in words.
        names: the names of the dimensions of a state.
        sample: states of the log, [n, ...].
    """

    actions: int | None
    states: int | None
    last_action: str
    last_state: str
    names: tuple[str, ...]
    sample: Array

    @classmethod
    def of(cls, log: Log) -> Facts:
        """Look through a log."""
        stride = max(1, len(log) // SAMPLE)
        most, place, sample, before = {"action": -1, "state": -1}, {}, [], 0
        action = state = np.zeros(0)
        for batch in log:
            action, state = batch.action, batch.state
            for name, column in (("action", action), ("state", state)):
                if column.dtype.kind in "iub" and column.ndim == 1 and column.max() > most[name]:
                    most[name] = int(column.max())
                    place[name] = before + int(column.argmax())
            sample.append(state[(-before) % stride :: stride])
            before += len(batch)
        told = {name: f"{log.place(at)} has {name} {most[name]}" for name, at in place.items()}
        width = int(np.prod(state.shape[1:]))
        columns = log.meanings.get("state", ())
        names = columns if len(columns) == width else [f"state[{i}]" for i in range(width)]
        return cls(
            actions=most["action"] + 1 if "action" in place else None,
            states=most["state"] + 1 if "state" in place else None,
            last_action=told.get("action", ""),
            last_state=told.get("state", ""),
            names=tuple(names),
            sample=np.concatenate(sample),
        )

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The range of each dimension of the states, [d] and [d], without rare outliers."""
        flat = self.sample.reshape(len(self.sample), -1).astype(np.float64)
        flat = np.where(np.isfinite(flat), flat, np.nan)
        low, high = np.nanquantile(flat, QUANTILES, axis=0)
        same = high <= low
        least, most = np.nanmin(flat, axis=0), np.nanmax(flat, axis=0)
        low, high = np.where(same, least, low), np.where(same, most, high)
        still = high <= low  # a dimension that never changes
        return np.where(still, low - 0.5, low), np.where(still, high + 0.5, high)


def question(asked: Asked, plan: Plan, facts: Facts, columns: tuple[str, ...]) -> GVF:
    """Make a question."""
    with placed(f"question {asked.name!r}"):
        return GVF(
            policy(asked.policy, plan, facts),
            _cumulant(asked.cumulant, plan, columns),
            _rate(asked.continuation, plan, columns, "continuation"),
            asked.name,
            None if asked.interest is None else _rate(asked.interest, plan, columns, "interest"),
        )


def _cumulant(given: Any, plan: Plan, columns: tuple[str, ...]) -> Any:
    if isinstance(given, int | float):
        return Constant(float(given))
    if isinstance(given, dict):
        return Entry(_column(given["column"], columns, "cumulant"), given["index"])
    if is_reference(given):
        return _function(given, plan, "cumulant")
    return _column(given, columns, "cumulant")


def _rate(given: Any, plan: Plan, columns: tuple[str, ...], what: str) -> Any:
    if isinstance(given, int | float):
        return given
    if isinstance(given, dict):
        return Entry(_column(given["column"], columns, what), given["index"])
    return (
        _function(given, plan, what)
        if is_reference(given)
        else Entry(_column(given, columns, what))
    )


def _column(name: str, columns: tuple[str, ...], what: str) -> str:
    if name not in columns:
        raise ValueError(f"{what}: the log has no column {name!r}; {nearest(name, columns)}")
    return name


def _found(reference: str, plan: Plan, kind: str) -> Any:
    """Import what a reference names, if the plan is trusted; a file beside the plan comes first."""
    assert plan.trust, reference
    look_in(plan.folder)
    return find(reference, kind)


def _function(reference: str, plan: Plan, kind: str) -> Any:
    found = _found(reference, plan, kind)
    if not callable(found):
        raise ValueError(f"{kind} {reference!r} is {brief(found)}, not a function")
    return found


def policy(given: Table, plan: Plan, facts: Facts) -> Policy:
    """Make a policy."""
    kind = given["kind"]
    actions = given.get("actions") or facts.actions
    if facts.actions is None and kind in NUMBERED:
        raise ValueError(f"policy {kind!r} is for numbered actions, and the log's are not")
    match kind:
        case "uniform":
            return Uniform(_at_least(actions, facts))
        case "always":
            return Always(given["action"], _at_least(actions, facts))
        case "favour":
            return Favour(given["action"], given["probability"], _at_least(actions, facts))
        case "fixed":
            return _covering(Fixed(given["probabilities"]), facts)
        case "table":
            return _covering(_table(given, plan, facts), facts)
        case "softmax":
            weights, bias = _linear(given, facts)
            return _covering(FunctionPolicy(Softmax(Linear(weights, bias)), len(weights)), facts)
        case "gaussian":
            return _gaussian(given, facts)
        case "mixture":
            first, second = (policy(given[part], plan, facts) for part in ("first", "second"))
            return Mixture(first, second, given["share"])
        case "function":
            return _own(given, plan, facts)
        case _:
            return _network(given, plan, facts)


def _at_least(actions: int | None, facts: Facts) -> int:
    """Return the number of actions; it must cover those of the log."""
    assert actions is not None
    assert facts.actions is not None
    if actions < facts.actions:
        raise ValueError(f"actions = {actions}, and {facts.last_action}")
    return actions


def _covering(made: Any, facts: Facts) -> Policy:
    if facts.actions is None:
        raise ValueError("the policy is for numbered actions, and the log's are not")
    if made.actions < facts.actions:
        raise ValueError(
            f"the policy has the actions 0 to {made.actions - 1}, and {facts.last_action}"
        )
    return made


def _table(given: Table, plan: Plan, facts: Facts) -> TablePolicy:
    if facts.states is None:
        raise ValueError("policy 'table' is for numbered states, and the log's are not")
    rows = given.get("probabilities")
    if rows is None:
        file = plan.folder / given["file"]
        try:
            rows = np.loadtxt(file, delimiter=",", ndmin=2)
        except ValueError as error:
            raise ValueError(f"{file} is not a table of numbers: {error}") from None
    made = TablePolicy(rows)
    if len(made.rows) < facts.states:
        raise ValueError(f"the policy has rows for {len(made.rows)} states, and {facts.last_state}")
    return made


def _linear(given: Table, facts: Facts) -> tuple[tuple[tuple[float, ...], ...], Any]:
    weights = np.array(given["weights"], float)
    if weights.ndim != 2 or weights.shape[1] != len(facts.names):
        raise ValueError(
            f"weights must be a row for each action, of {len(facts.names)} numbers each (the "
            f"state is {', '.join(facts.names)})"
        )
    bias = given.get("bias")
    bias = np.zeros(len(weights)) if bias is None else np.array(bias, float)
    if bias.shape != (len(weights),):
        raise ValueError(f"bias must be {len(weights)} numbers, one for each action")
    return tuple(tuple(row) for row in weights.tolist()), tuple(bias.tolist())


def _gaussian(given: Table, facts: Facts) -> Gaussian:
    if facts.actions is not None:
        raise ValueError("policy 'gaussian' is for real-valued actions, and the log's are numbered")
    if given["weights"] is None:
        return Gaussian(given["mean"], given["sd"])
    mean = np.atleast_1d(np.array(given["mean"], float))
    weights = np.atleast_2d(np.array(given["weights"], float))
    bias = np.broadcast_to(mean, len(weights)).tolist()
    return Gaussian(Linear(*_linear({"weights": weights, "bias": bias}, facts)), given["sd"])


def _own(given: Table, plan: Plan, facts: Facts) -> Policy:
    found = _found(given["of"], plan, "policy")
    if isinstance(found, type) and issubclass(found, Policy):
        raise ValueError(f"{given['of']} is a class; name an instance of it")
    if isinstance(found, Policy):
        return _covering(found, facts) if isinstance(found, DiscretePolicy) else found
    if not callable(found):
        raise ValueError(f"{given['of']} is {brief(found)}, neither a gvf.Policy nor a function")
    return FunctionPolicy(found, given["actions"] or facts.actions)


def _network(given: Table, plan: Plan, facts: Facts) -> Policy:
    file = plan.folder / given["file"]
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    network: Layers | Script
    if given["kind"] == "state-dict":
        network = layers(file, given["activation"])
        actions = len(network.weights[-1])
    else:
        network = _checked_script(file)
        actions = int(network(facts.sample[:1]).shape[-1])
    function = Softmax(network) if given["output"] == "logits" else network
    return _covering(FunctionPolicy(function, actions), facts)


def _checked_script(file: Path) -> Script:
    from gvf.answers.functions import _script

    try:
        _script(str(file.absolute()))
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f'{file} is a file of PyTorch: pip install "gvf[torch]"', name="torch"
        ) from None
    except RuntimeError as error:
        raise ValueError(f"{file} is not a TorchScript file") from error
    return Script(str(file.absolute()))


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
            return Dense(given["size"], _function(given["of"], plan, "feature function"))
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
