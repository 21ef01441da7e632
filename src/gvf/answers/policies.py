"""The policies of a question file, and what it names of the user's own.

Tables, mixtures, log-odds and the layers of a state dict are data. Functions of modules and
TorchScript files run code, and need a plan that is trusted.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gvf.answers.facts import Facts
from gvf.answers.functions import Layers, Linear, Script, Softmax, layers
from gvf.answers.plan import Plan, Table
from gvf.common.checks import brief
from gvf.common.names import find, look_in
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

NUMBERED = ("uniform", "always", "favour", "fixed", "table", "softmax")
"""The kinds of policies that are for actions 0, 1, ... only."""


def _found(reference: str, plan: Plan, kind: str) -> Any:
    """Import what a reference names, if the plan is trusted; a file beside the plan comes first."""
    assert plan.trust, reference
    look_in(plan.folder)
    return find(reference, kind)


def function(reference: str, plan: Plan, kind: str) -> Any:
    """Import the function that a reference names."""
    found = _found(reference, plan, kind)
    if not callable(found):
        raise ValueError(f"{kind} {reference!r} is {brief(found)}, not a function")
    return found


def policy(given: Table, plan: Plan, facts: Facts) -> Policy:
    """Make a policy."""
    kind = given["kind"]
    actions = given.get("actions") or facts.actions
    if facts.actions is None and kind in NUMBERED:
        raise ValueError(f"policy {kind!r} is for numbered actions, and {facts.not_numbered}")
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
        raise ValueError(f"the policy is for numbered actions, and {facts.not_numbered}")
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
    weights: Any = np.empty(0)
    with suppress(ValueError):  # rows of different lengths
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
