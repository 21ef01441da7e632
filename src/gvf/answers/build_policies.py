"""The policies of a question file, and what it names of the user's own.

Tables, mixtures, log-odds and the layers of a state dict are data. Functions of modules and
TorchScript files run code, and need a plan that is trusted.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gvf.answers.described_functions import Layers, Linear, Script, Softmax, layers
from gvf.answers.log_facts import Facts
from gvf.answers.plan import Plan, Table
from gvf.common.checks import brief
from gvf.common.distribution import how_to_install
from gvf.common.part_names import find, look_in
from gvf.policies import (
    Always,
    DiscretePolicy,
    Favour,
    Fixed,
    Function,
    Gaussian,
    Mixture,
    Policy,
    Uniform,
)
from gvf.policies import Table as TablePolicy
from gvf.policies.function import as_policy

NUMBERED = ("uniform", "always", "favour", "fixed", "table", "softmax")
"""The kinds of policies that are for actions 0, 1, ... only."""


def _find(reference: str, plan: Plan, kind: str) -> Any:
    """Import what a reference names, if the plan is trusted; a file beside the plan comes first."""
    assert plan.trust, reference
    look_in(plan.folder)
    return find(reference, kind)


def function(reference: str, plan: Plan, kind: str) -> Any:
    """Import the function that a reference names."""
    value = _find(reference, plan, kind)
    if not callable(value):
        raise ValueError(f"{kind} {reference!r} is {brief(value)}, not a function")
    return value


def policy(table: Table, plan: Plan, facts: Facts) -> Policy:
    """Make a policy."""
    kind = table["kind"]
    actions = table.get("actions") or facts.actions
    if facts.actions is None and kind in NUMBERED:
        raise ValueError(f"policy {kind!r} is for numbered actions, and {facts.not_numbered}")
    match kind:
        case "uniform":
            return Uniform(_at_least(actions, facts))
        case "always":
            return Always(table["action"], _at_least(actions, facts))
        case "favour":
            return Favour(table["action"], table["probability"], _at_least(actions, facts))
        case "fixed":
            return _covering(Fixed(table["probabilities"]), facts)
        case "table":
            return _covering(_table(table, plan, facts), facts)
        case "softmax":
            weights, bias = _linear(table, facts)
            return _covering(Function(Softmax(Linear(weights, bias)), len(weights)), facts)
        case "gaussian":
            return _gaussian(table, facts)
        case "mixture":
            first, second = (policy(table[part], plan, facts) for part in ("first", "second"))
            return Mixture(first, second, table["share"])
        case "function":
            return _user_policy(table, plan, facts)
        case _:
            return _network(table, plan, facts)


def _at_least(actions: int | None, facts: Facts) -> int:
    """Return the number of actions; it must cover those of the log."""
    assert actions is not None
    assert facts.actions is not None
    if actions < facts.actions:
        raise ValueError(f"actions = {actions}, and {facts.last_action}")
    return actions


def _covering(target: Any, facts: Facts) -> Policy:
    if facts.actions is None:
        raise ValueError(f"the policy is for numbered actions, and {facts.not_numbered}")
    if target.actions < facts.actions:
        raise ValueError(
            f"the policy has the actions 0 to {target.actions - 1}, and {facts.last_action}"
        )
    return target


def _table(table: Table, plan: Plan, facts: Facts) -> TablePolicy:
    if facts.states is None:
        raise ValueError("policy 'table' is for numbered states, and the log's are not")
    rows = table.get("probabilities")
    if rows is None:
        file = plan.folder / table["file"]
        try:
            rows = np.loadtxt(file, delimiter=",", ndmin=2)
        except ValueError as error:
            raise ValueError(f"{file} is not a table of numbers: {error}") from None
    policy = TablePolicy(rows)
    if len(policy.rows) < facts.states:
        raise ValueError(
            f"the policy has rows for {len(policy.rows)} states, and {facts.last_state}"
        )
    return policy


def _linear(table: Table, facts: Facts) -> tuple[tuple[tuple[float, ...], ...], Any]:
    weights: Any = np.empty(0)
    with suppress(ValueError):  # rows of different lengths
        weights = np.array(table["weights"], float)
    if weights.ndim != 2 or weights.shape[1] != len(facts.names):
        raise ValueError(
            f"weights must be a row for each action, of {len(facts.names)} numbers each (the "
            f"state is {', '.join(facts.names)})"
        )
    bias = table.get("bias")
    bias = np.zeros(len(weights)) if bias is None else np.array(bias, float)
    if bias.shape != (len(weights),):
        raise ValueError(f"bias must be {len(weights)} numbers, one for each action")
    return tuple(tuple(row) for row in weights.tolist()), tuple(bias.tolist())


def _gaussian(table: Table, facts: Facts) -> Gaussian:
    if facts.actions is not None:
        raise ValueError("policy 'gaussian' is for real-valued actions, and the log's are numbered")
    if table["weights"] is None:
        return Gaussian(table["mean"], table["sd"])
    mean = np.atleast_1d(np.array(table["mean"], float))
    weights = np.atleast_2d(np.array(table["weights"], float))
    bias = np.broadcast_to(mean, len(weights)).tolist()
    return Gaussian(Linear(*_linear({"weights": weights, "bias": bias}, facts)), table["sd"])


def _user_policy(table: Table, plan: Plan, facts: Facts) -> Policy:
    value = _find(table["of"], plan, "policy")
    policy = as_policy(value, table["of"], table["actions"] or facts.actions)
    return _covering(policy, facts) if isinstance(value, DiscretePolicy) else policy


def _network(table: Table, plan: Plan, facts: Facts) -> Policy:
    file = plan.folder / table["file"]
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    network: Layers | Script
    if table["kind"] == "state-dict":
        network = layers(file, table["activation"])
        actions = len(network.weights[-1])
    else:
        network = _checked_script(file)
        actions = int(network(facts.sample[:1]).shape[-1])
    function = Softmax(network) if table["output"] == "logits" else network
    return _covering(Function(function, actions), facts)


def _checked_script(file: Path) -> Script:
    from gvf.answers.described_functions import _script

    try:
        _script(str(file.absolute()))
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{file} is a file of PyTorch; {how_to_install('gvf[torch]')}", name="torch"
        ) from None
    except RuntimeError as error:
        raise ValueError(f"{file} is not a TorchScript file") from error
    return Script(str(file.absolute()))
