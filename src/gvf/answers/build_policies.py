"""The policies of a question file, and the functions that it describes as data or names.

Tables, mixtures, log-odds and the layers of a state dict are data. They become frozen dataclasses
of numbers, so :func:`gvf.load` makes them again without running code of anybody else. With x the
state, as a row of numbers,

    Linear       f(x) = W x + b
    Layers       f(x) = W_n g( ... g(W_1 x + b_1) ... ) + b_n,     g the activation
    Softmax      pi(a | x) = exp f_a(x) / sum_b exp f_b(x)
    Scaled       1, and 2 (x_j - low_j) / (high_j - low_j) - 1 for each dimension j

Functions of modules and TorchScript files run code, and need a plan that is trusted.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gvf.answers.plan import Facts, Plan, Table
from gvf.common.arrays import Array, Floats
from gvf.common.checks import brief
from gvf.common.distribution import how_to_install
from gvf.common.fields import as_matrix
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
from gvf.policies.discrete import softmax
from gvf.policies.function import as_policy
from gvf.transition import Transitions

Row = tuple[float, ...]
_ACTIVATIONS = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "none": lambda x: x,
}


@dataclass(frozen=True)
class Linear:
    """A linear function of the state, one row of weights for each output.

    Example:
        >>> from gvf.answers.build_policies import Linear
        >>> Linear(((1.0, 2.0), (0.0, 1.0)), (0.0, 10.0))([[3.0, 4.0]])
        array([[11., 14.]])
    """

    weights: tuple[Row, ...]
    bias: Row

    def __call__(self, states: Any) -> Floats:
        """Map states [m, d] to outputs [m, n]."""
        x, weights = as_matrix(states), np.array(self.weights)
        _check_width(x, weights.shape[1])
        return x @ weights.T + self.bias


@dataclass(frozen=True, eq=False, repr=False)
class Layers:
    """A network of linear layers with an activation between them.

    Args:
        weights: the weights of each layer, [outputs, inputs].
        biases: the biases of each layer, [outputs].
        activation: "tanh", "relu", "sigmoid" or "none".
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    activation: str

    def __call__(self, states: Any) -> Floats:
        """Map states [m, d] to the outputs of the last layer."""
        x = as_matrix(states)
        _check_width(x, self.weights[0].shape[1])
        for i, (weights, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = x @ weights.T + bias
            if i + 1 < len(self.weights):
                x = _ACTIVATIONS[self.activation](x)
        return x

    def __repr__(self) -> str:
        sizes = [self.weights[0].shape[1], *(len(layer) for layer in self.weights)]
        return f"Layers({' x '.join(map(str, sizes))}, {self.activation})"


@dataclass(frozen=True)
class Softmax:
    """The probabilities of actions from their log-odds.

    Example:
        >>> from gvf.answers.build_policies import Linear, Softmax
        >>> Softmax(Linear(((0.0,), (1.0,)), (0.0, 0.0)))([[0.0], [2.0]]).round(3)
        array([[0.5  , 0.5  ],
               [0.119, 0.881]])
    """

    of: Any

    def __call__(self, states: Any) -> Floats:
        """Map states [m, ...] to probabilities [m, actions]."""
        return softmax(np.asarray(self.of(states), np.float64))


@dataclass(frozen=True)
class Script:
    """A TorchScript network from a file. Loading it runs its code."""

    file: str

    def __call__(self, states: Any) -> Floats:
        """Map states [m, ...] to the outputs of the network."""
        import torch

        with torch.no_grad():
            tensor = torch.as_tensor(np.array(states, np.float32))
            return _script(self.file)(tensor).double().numpy()


@cache
def _script(file: str) -> Any:
    import torch

    return torch.jit.load(file, map_location="cpu").eval()


@dataclass(frozen=True)
class Scaled:
    """A constant, and each dimension of the state from -1 to 1 over its range.

    Example:
        >>> from gvf.answers.build_policies import Scaled
        >>> Scaled((0.0,), (10.0,))([[0.0], [5.0], [10.0]])
        array([[ 1., -1.],
               [ 1.,  0.],
               [ 1.,  1.]])
    """

    low: Row
    high: Row

    def __call__(self, states: Any) -> Floats:
        """Map states [m, d] to features [m, 1 + d]."""
        x = as_matrix(states)
        _check_width(x, len(self.low))
        low, high = np.array(self.low), np.array(self.high)
        return np.column_stack([np.ones(len(x)), 2.0 * (x - low) / (high - low) - 1.0])


@dataclass(frozen=True)
class Entry:
    """One entry of a column that is a matrix; without an index, the column itself."""

    column: str
    index: int | None = None

    def __call__(self, transitions: Transitions) -> Array:
        """Return the numbers [m]."""
        values = transitions[self.column]
        if self.index is None:
            return values
        if values.ndim != 2 or self.index >= values.shape[1]:
            raise ValueError(
                f"column {self.column!r} has shape {values.shape[1:]} for each transition, and no "
                f"entry {self.index}"
            )
        # Nothing follows a terminated step, so a log without next states has NaN there.
        entry = values[:, self.index]
        if self.column == "next_state" and "terminated" in transitions:
            return np.where(np.isnan(entry) & transitions["terminated"], 0.0, entry)
        return entry


@dataclass(frozen=True)
class Constant:
    """The same number for every transition.

    Example:
        >>> import gvf
        >>> from gvf.answers.build_policies import Constant
        >>> Constant(1.0)(gvf.Transitions(state=[0, 1], action=[0, 0]))
        array([1., 1.])
    """

    value: float

    def __call__(self, transitions: Transitions) -> Floats:
        """Return the numbers [m]."""
        return np.full(len(transitions), self.value)


def layers(file: Path, activation: str) -> Layers:
    """Read the linear layers of a PyTorch state dict. No code of the file runs."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{file} is a file of PyTorch; {how_to_install('gvf[torch]')}", name="torch"
        ) from error
    try:
        contents = torch.load(file, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{file} is not a state dict of PyTorch that is safe to load") from error
    if not isinstance(contents, dict):
        raise ValueError(f"{file} holds a {type(contents).__name__}, not a state dict of PyTorch")
    weights, biases = [], []
    for name, value in contents.items():
        if not hasattr(value, "detach"):
            raise ValueError(f"{file}: {name!r} is a {type(value).__name__}, not a tensor")
        array = value.detach().double().numpy()
        if name.endswith("weight") and array.ndim == 2:
            weights.append(array)
            biases.append(np.zeros(len(array)))
        elif name.endswith("bias") and array.ndim == 1 and weights:
            biases[-1] = array
        else:
            raise ValueError(
                f"{file}: {name!r} of shape {array.shape} is no part of a linear layer; a network "
                'of another kind is a policy {kind = "function", of = "module:name"}'
            )
    if not weights:
        raise ValueError(f"{file} holds no linear layers")
    for i, (before, after) in enumerate(pairwise(weights)):
        if after.shape[1] != len(before):
            raise ValueError(
                f"{file}: layer {i} gives {len(before)} numbers, and layer {i + 1} takes "
                f"{after.shape[1]}: they do not follow each other"
            )
    return Layers(tuple(weights), tuple(biases), activation)


def _check_width(x: Floats, width: int) -> None:
    if x.shape[1] != width:
        raise ValueError(f"states have {x.shape[1]} dimensions, and the function takes {width}")


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
    try:
        _script(str(file.absolute()))
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{file} is a file of PyTorch; {how_to_install('gvf[torch]')}", name="torch"
        ) from None
    except RuntimeError as error:
        raise ValueError(f"{file} is not a TorchScript file") from error
    return Script(str(file.absolute()))
