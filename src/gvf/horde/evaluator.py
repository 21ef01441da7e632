"""The numbers of all questions at once: P ratios, C cumulants and Z continuations a transition.

Thousands of questions have few distinct parts, and a distinct part is evaluated once for a batch.
Policies that are given by numbers are stacked, and evaluated in one operation: probabilities [P, A]
or tables [P, S, A], and normal distributions with means [P, d]. So are the members of a bank. Only
policies and signals that are functions of their own cost a call each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gvf.common.arrays import Array, Floats
from gvf.common.checks import as_array, as_numbers, brief
from gvf.horde.layout import Ints, Layout
from gvf.horde.question_grid import Column, numbers_of
from gvf.policies import (
    Always,
    DiscretePolicy,
    Favour,
    Fixed,
    Gaussian,
    Policy,
    Table,
    Uniform,
    ratio,
)
from gvf.policies.action_checks import indices
from gvf.policies.policy import describe, log
from gvf.policies.policy_bank import Member
from gvf.policies.ratio import quotient
from gvf.question import OnConflict, Signal, behaviour_source
from gvf.transition import RECORDED, Transitions

_LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)

Likelihood = Callable[[Any, Any, bool], Floats]
"""A function of states, actions and "as logarithms?" to likelihoods [P, m]."""


class DistinctSignals:
    """Distinct cumulants or continuations, evaluated together.

    Args:
        parts: names of columns, functions of transitions, and columns of banks.
        what: the kind of part, for messages.
    """

    def __init__(self, parts: Sequence[str | Signal], what: str) -> None:
        self._count, self._what = len(parts), what
        self._single = [(i, part) for i, part in enumerate(parts) if not isinstance(part, Column)]
        banks: dict[Any, list[tuple[int, int]]] = {}
        for i, part in enumerate(parts):
            if isinstance(part, Column):
                banks.setdefault(part.source, []).append((i, part.index))
        self._banks = [
            (source, *map(list, zip(*pairs, strict=True))) for source, pairs in banks.items()
        ]

    def __call__(self, transitions: Transitions) -> Floats:
        """Return the numbers of m transitions, float64[m, parts]."""
        m = len(transitions)
        out = np.empty((m, self._count))
        for at, part in self._single:
            values = transitions[part] if isinstance(part, str) else part(transitions)
            try:
                numbers = as_numbers(values, describe(part))
            except ValueError as error:
                raise SignalError(at, str(error)) from None
            if numbers.shape not in ((), (m,)):
                raise ShapeError(at, describe(part), numbers.shape, m)
            # A row may be None, for a sensor without a reading.
            if numbers.dtype.kind not in ("biufO" if numbers.ndim else "biuf"):
                raise SignalError(at, f"{describe(part)} must be numbers, got {brief(values)}")
            out[:, at] = numbers
        for source, places, columns in self._banks:
            numbers = numbers_of(source, transitions)
            if max(columns) >= numbers.shape[1]:
                at = places[int(np.argmax(columns))]
                raise ShapeError(at, describe(source), numbers.shape, m)
            out[:, places] = numbers[:, columns]
        return out


class SignalError(ValueError):
    """The error of a signal that cannot be used; `part` is its number among the parts."""

    def __init__(self, part: int, message: str) -> None:
        super().__init__(message)
        self.part = part


class ShapeError(SignalError):
    """The error of a signal with a wrong shape."""

    def __init__(self, part: int, shape_text: str, shape: tuple[int, ...], m: int) -> None:
        super().__init__(part, f"{shape_text} has shape {shape} for {m} transitions")


class Evaluator:
    """The ratios, cumulants and continuations of all questions of a layout."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._cumulants = DistinctSignals(layout.cumulants, "cumulant")
        self._signals = DistinctSignals(layout.signals, "continuation")
        self._stacks = _stacks(layout.policies)

    def cumulants(self, transitions: Transitions) -> Floats:
        """Return the distinct cumulants of m transitions, float64[m, C]; some may not be finite."""
        try:
            return self._cumulants(transitions)
        except SignalError as error:
            name = self._layout.first_with(self._layout.cumulant == error.part)
            raise ValueError(f"question {name!r}: its cumulant {error}") from None

    def continuations(self, transitions: Transitions, alive: NDArray[np.bool_]) -> Floats:
        """Return columns of m transitions, [m, 1 + signals]: `alive`, then each signal times it."""
        out = np.empty((len(transitions), 1 + len(self._layout.signals)))
        out[:, 0] = alive
        try:
            out[:, 1:] = self._signals(transitions)
        except SignalError as error:
            name = self._named(error.part)
            raise ValueError(f"question {name!r}: its continuation {error}") from None
        bad = (out < 0.0) | (out > 1.0)
        if bad.any():
            at, column = np.argwhere(bad)[0]
            raise ValueError(
                f"question {self._named(column - 1)!r}: its continuation is {out[at, column]} at "
                f"position {at}; it must be in [0, 1]"
            )
        out[~alive] = 0.0
        return out

    def _named(self, signal: int) -> str:
        return self._layout.first_with(self._layout.source == signal + 1)

    def ratios(
        self, transitions: Transitions, behaviour: Policy | None, on_conflict: OnConflict
    ) -> Floats:
        """Return pi(a|s) / mu(a|s) of m transitions for all distinct policies, float64[P, m].

        The behaviour mu is found as in :meth:`gvf.GVF.ratios`.
        """
        layout = self._layout
        first = layout.questions[int(layout.group_question[0])]
        # One question checks whatever does not depend on the policy, with its messages.
        first.ratios(transitions, behaviour=behaviour, on_conflict=on_conflict)
        states, actions = transitions["state"], transitions["action"]
        source = behaviour_source(transitions, behaviour, on_conflict)
        assert source is not None
        divides = source == RECORDED[1] or isinstance(source, DiscretePolicy)
        out = np.empty((len(layout.policies), len(transitions)))
        mu: dict[bool, Array] = {}
        for discrete, numbers, likelihood in self._stacks:
            logs = not (discrete and divides)
            if logs not in mu:
                mu[logs] = _behaviour(source, transitions, logs)
            out[numbers] = quotient(likelihood(states, actions, logs), mu[logs], logs=logs)
        good = np.isfinite(out).all(axis=1)
        if not good.all():
            policy = int(good.argmin())
            known: dict[str, Any] = {"behaviour": source}
            if isinstance(source, str):
                known = {source: transitions[source]}
            ratio(layout.policies[policy], states, actions, **known)  # raises, with the reason
            raise ValueError(f"the ratios of {layout.policies[policy]!r} are not finite")
        return out


def _behaviour(source: Policy | str, transitions: Transitions, logs: bool) -> Array:
    """Return mu(a|s), or its logarithm, of m transitions."""
    if isinstance(source, Policy):
        likelihood = source.log_probability if logs else source.probability
        return likelihood(transitions["state"], transitions["action"])
    column = transitions[source]
    return log(column) if logs and source == RECORDED[1] else np.asarray(column)


def _stacks(policies: Sequence[Policy]) -> list[tuple[bool, Ints, Likelihood]]:
    """Return the stacks of policies: "discrete?", the policies' numbers, and their likelihoods."""
    kinds: dict[Any, list[int]] = {}
    for i, policy in enumerate(policies):
        kinds.setdefault(_kind(policy) or i, []).append(i)
    stacks = []
    for kind, numbers in kinds.items():
        members = [policies[i] for i in numbers]
        likelihood = _STACK[kind[0]](members) if isinstance(kind, tuple) else _alone(members[0])
        discrete = isinstance(members[0], DiscretePolicy)
        stacks.append((discrete, np.array(numbers), likelihood))
    return stacks


def _kind(policy: Policy) -> tuple[Any, ...] | None:
    """Return the same for policies that can be stacked; None for one that has to be called."""
    if type(policy) in (Uniform, Fixed, Always, Favour):
        return ("rows",)
    if type(policy) is Table:
        return "tables", policy.rows.shape
    if type(policy) is Gaussian and not callable(policy.mean) and not callable(policy.sd):
        return "normal", max(np.size(policy.mean), np.size(policy.sd))
    if isinstance(policy, Member):
        return "bank", policy.bank
    return None


def _rows(members: Sequence[Any]) -> Likelihood:
    table = np.stack([policy.probabilities([0])[0] for policy in members])

    def likelihood(states: Any, actions: Any, logs: bool) -> Floats:
        pi = table[:, indices(actions, table.shape[1], len(states), "action")]
        return log(pi) if logs else pi

    return likelihood


def _tables(members: Sequence[Any]) -> Likelihood:
    tables = np.stack([policy.rows for policy in members])

    def likelihood(states: Any, actions: Any, logs: bool) -> Floats:
        _, some, many = tables.shape
        rows = indices(states, some, len(states), "state")
        pi = tables[:, rows, indices(actions, many, len(states), "action")]
        return log(pi) if logs else pi

    return likelihood


def _normal(members: Sequence[Any]) -> Likelihood:
    size = max(max(np.size(p.mean), np.size(p.sd)) for p in members)
    mean, sd = (
        np.stack([np.broadcast_to(getattr(p, name), size) for p in members], dtype=np.float64)
        for name in ("mean", "sd")
    )
    constant = np.log(sd) + _LOG_ROOT_TWO_PI

    def likelihood(states: Any, actions: Any, logs: bool) -> Floats:
        members[0].log_probability(states, actions)  # checks the shape
        columns = np.ascontiguousarray(np.reshape(actions, (len(states), size)).T, np.float64)
        out = np.zeros((len(members), len(states)))
        _add_log_densities(columns, mean, sd, constant, out)
        return out

    return likelihood


@njit(cache=True, nogil=True)
def _add_log_densities(actions, mean, sd, constant, out):
    """Add the logarithms of normal densities of actions [d, m] to out [P, m]."""
    for p in range(out.shape[0]):
        for j in range(actions.shape[0]):
            for i in range(out.shape[1]):
                standard = (actions[j, i] - mean[p, j]) / sd[p, j]
                out[p, i] -= 0.5 * standard * standard + constant[p, j]


def _bank(members: Sequence[Any]) -> Likelihood:
    bank, columns = members[0].bank, [member.index for member in members]

    def likelihood(states: Any, actions: Any, logs: bool) -> Floats:
        pi = as_array(bank.log_probabilities(states, actions), f"what {type(bank).__name__} gave")
        if pi.shape != (len(states), len(bank)):
            raise ValueError(
                f"{type(bank).__name__}.log_probabilities gave shape {pi.shape}, expected "
                f"{(len(states), len(bank))}"
            )
        return pi.T[columns]

    return likelihood


def _alone(policy: Policy) -> Likelihood:
    def likelihood(states: Any, actions: Any, logs: bool) -> Floats:
        return (policy.log_probability if logs else policy.probability)(states, actions)[None]

    return likelihood


_STACK = {"rows": _rows, "tables": _tables, "normal": _normal, "bank": _bank}
