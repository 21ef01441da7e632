"""The cover of a target's actions, row by row: the numbers that a support report averages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.policies import DiscretePolicy, Policy
from gvf.policies.policy import check_same_actions
from gvf.question import GVF, RECORDED, OnConflict
from gvf.transition import Transitions, nan_rows

Laws = Callable[[Transitions], list[tuple[NDArray[Any], Policy]]]
"""A function from transitions to the behaviour that chose each: rows, and their policy."""
_DRAWS = 16
"""The number of the target's actions in each state, if they are continuous."""


@dataclass(frozen=True, eq=False)
class Cover:
    """The cover of the target's actions in the states of m rows.

    Attributes:
        ratio: the ratios of the recorded actions, [m].
        value: the cover of each of n actions in each state, [m, n]: all actions of a discrete
            policy, some draws of a continuous target, or the recorded action alone.
        mass: the target's mass on each of them, [m, n]. Rows sum to 1, or to the ratio for
            recorded actions, whose mean is the mass.
        behaviour_mass: the behaviour's mass on each of them, [m, n]; None unless all of it is
            known.
        cost: the number of the behaviour's rows that are worth one of the target's, in each state,
            E_pi[rho | s]; the ratio itself for recorded actions.
        discrete: True for discrete actions.
    """

    ratio: Floats
    value: Floats
    mass: Floats
    behaviour_mass: Floats | None
    cost: Floats
    discrete: bool

    def lost(self, threshold: float) -> Floats:
        """Return the target's mass with a smaller cover, in each state, [m]."""
        return (self.mass * (self.value < threshold)).sum(axis=1)


def cover_of(
    batch: Transitions, target: Policy, laws: Laws | None, on_conflict: OnConflict, *, seed: int
) -> Cover:
    """Return the cover of a target's actions.

    Args:
        batch: the rows, without NaN.
        target: the target policy.
        laws: the behaviour as policies; None if only recorded probabilities are known.
        on_conflict: as in :meth:`gvf.GVF.evaluate`.
        seed: the seed of the target's draws, if actions are continuous.
    """
    rho = _ratios(batch, target, laws, on_conflict)
    if laws is None:
        return _recorded(batch, target, rho)
    parts = laws(batch)
    if isinstance(target, DiscretePolicy):
        pi = target.probabilities(batch["state"])
        mu = np.empty_like(pi)
        for rows, policy in parts:
            if not isinstance(policy, DiscretePolicy):
                raise ValueError(f"the target is discrete, and the behaviour is {policy!r}")
            check_same_actions(target, policy)
            mu[rows] = policy.probabilities(batch["state"][rows])
        with np.errstate(divide="ignore", invalid="ignore"):
            cost = np.where(pi == 0, 0.0, pi * pi / mu).sum(axis=1)
        return Cover(rho, mu, pi, mu, cost, True)
    return _drawn(batch, target, parts, rho, seed)


def _drawn(
    batch: Transitions,
    target: Policy,
    parts: list[tuple[NDArray[Any], Policy]],
    rho: Floats,
    seed: int,
) -> Cover:
    """Return the cover of actions that the target draws."""
    rng = np.random.default_rng(seed)
    m = len(batch)
    logs = np.empty((m, _DRAWS))
    for rows, policy in parts:
        states = batch["state"][rows]
        for k in range(_DRAWS):
            actions = np.asarray(target.sample(states, rng=rng))
            with np.errstate(divide="ignore"):
                mu = policy.log_probability(states, actions)
                logs[rows, k] = target.log_probability(states, actions) - mu
    with np.errstate(over="ignore"):
        cost, value = np.exp(logs).mean(axis=1), np.exp(np.minimum(-logs, 0.0))
    return Cover(rho, value, np.full((m, _DRAWS), 1 / _DRAWS), None, cost, False)


def _recorded(batch: Transitions, target: Policy, rho: Floats) -> Cover:
    """Return the cover of the recorded actions alone."""
    discrete = isinstance(target, DiscretePolicy)
    if discrete:
        if "behaviour_probability" in batch:
            value = batch["behaviour_probability"]
        else:
            value = np.exp(batch["behaviour_log_probability"])
    else:
        value = 1.0 / np.maximum(rho, 1.0)
    return Cover(rho, np.asarray(value)[:, None], rho[:, None], None, rho, discrete)


def _ratios(
    batch: Transitions, target: Policy, laws: Laws | None, on_conflict: OnConflict
) -> Floats:
    """Return the ratios of the recorded actions, as a learner forms them."""
    question = GVF(target)
    if laws is None:
        if not any(name in batch for name in RECORDED):
            raise ValueError(
                "the behaviour is not known: give the policy that chose the actions, "
                "behaviour=..., or estimate it, gvf.estimate_behaviour(log).support(target)"
            )
        return question.ratios(batch, on_conflict=on_conflict)
    out = np.empty(len(batch))
    for rows, policy in laws(batch):
        out[rows] = question.ratios(batch[rows], behaviour=policy, on_conflict=on_conflict)
    return out


def usable(batch: Transitions) -> NDArray[np.bool_]:
    """Return True for rows without a NaN in what ratios need."""
    bad = nan_rows(batch["state"])
    for name in ("action", *RECORDED):
        if name in batch:
            bad |= nan_rows(batch[name])
    return ~bad
