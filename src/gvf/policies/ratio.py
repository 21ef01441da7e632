"""Importance ratios of the target and the behaviour policy.

    rho = pi(a|s) / mu(a|s) = exp(log pi(a|s) - log mu(a|s))

Ratios are computed by division for discrete actions, and in log space for densities, which
underflow long before their ratio does. If pi is 0 the ratio is 0, whatever mu is. If only mu is 0
there is no ratio, and the error names the transition. Samplers and corrections use only ratios,
never the policies.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gvf.common.arrays import Floats
from gvf.common.checks import as_numbers, brief
from gvf.common.errors import DataCode, DataError, Place, Words, place
from gvf.policies.action_checks import batch_size, numpy_array
from gvf.policies.policy import DiscretePolicy, Policy, check_same_actions, log

_RECORDED_TOLERANCE = 1e-6  # a probability of 1, recorded in single precision, may exceed 1
CONFLICT_TOLERANCE = 1e-5
"""The relative difference up to which a record and a policy agree; much is in single precision."""


def ratio(
    target: Policy,
    states: Any,
    actions: Any,
    *,
    behaviour: Policy | None = None,
    behaviour_probability: ArrayLike | None = None,
    behaviour_log_probability: ArrayLike | None = None,
) -> Floats:
    """Compute the importance ratios rho = pi(a|s) / mu(a|s) of m state-action pairs.

    The behaviour mu is given in exactly one of three ways: as a policy, or as the probabilities or
    log probabilities (densities, for continuous actions) recorded when the actions were chosen.

    Args:
        target: the target policy pi.
        states: the states, [m, ...].
        actions: the actions, [m] or [m, d].
        behaviour: the policy that chose the actions.
        behaviour_probability: the recorded mu(a|s), [m].
        behaviour_log_probability: the recorded log mu(a|s), [m]; better for densities, which may
            underflow.

    Returns:
        The ratios, float64[m], all finite; 0 wherever pi is 0.

    Raises:
        ValueError: if mu is 0 where pi is not, or a ratio is too large for a float64.

    Example:
        >>> import gvf
        >>> target, behaviour = gvf.policies.Fixed([0.1, 0.9]), gvf.policies.Uniform(2)
        >>> gvf.policies.ratio(target, states=[0, 0], actions=[0, 1], behaviour=behaviour)
        array([0.2, 1.8])
        >>> gvf.policies.ratio(
        ...     target, states=[0, 0], actions=[0, 1], behaviour_probability=[0.9, 0.1]
        ... )
        array([0.11111111, 9.        ])
    """
    ways = (behaviour, behaviour_probability, behaviour_log_probability)
    if sum(way is not None for way in ways) != 1:
        raise TypeError(
            "give the behaviour in exactly one way: behaviour=, behaviour_probability= or "
            "behaviour_log_probability="
        )
    if behaviour is not None and not isinstance(behaviour, Policy):
        raise TypeError(
            f"behaviour must be a policy, not {brief(behaviour)}; recorded probabilities go in "
            "behaviour_probability="
        )
    discrete = isinstance(target, DiscretePolicy)
    divide = discrete and (
        isinstance(behaviour, DiscretePolicy) or behaviour_probability is not None
    )

    def evaluate(policy: Policy) -> Floats:
        return (policy.probability if divide else policy.log_probability)(states, actions)

    count, most = batch_size(states), 1.0 if discrete else np.inf
    pi = evaluate(target)
    if behaviour is not None:
        mu = evaluate(behaviour)
    elif behaviour_probability is not None:
        mu = _recorded(behaviour_probability, "behaviour_probability", count, 0.0, most)
        mu = mu if divide else log(mu)
    else:
        name = "behaviour_log_probability"
        mu = _recorded(behaviour_log_probability, name, count, -np.inf, math.log(most))
    rho = quotient(pi, mu, logs=not divide)
    if not np.isfinite(rho).all():
        at = int(np.isfinite(rho).argmin())
        where = _transition(at, np.asarray(actions)[at])
        raise _no_ratio(where, float(pi[at]), float(mu[at]), logs=not divide)
    return rho


def check_recorded(
    behaviour: Policy,
    states: Any,
    actions: Any,
    *,
    behaviour_probability: ArrayLike | None = None,
    behaviour_log_probability: ArrayLike | None = None,
) -> None:
    """Raise ValueError if recorded probabilities are not those of a behaviour policy.

    The relative tolerance is 1e-5. For logarithms between -1 and 1 the absolute tolerance is 1e-5.
    An estimated policy is not compared.

    Args:
        behaviour: the policy that should have chosen the actions.
        states: the states, [m, ...].
        actions: the actions, [m] or [m, d].
        behaviour_probability: the recorded mu(a|s), [m].
        behaviour_log_probability: the recorded log mu(a|s), [m]; give one of the two.

    Raises:
        ValueError: if they differ; the message names the first such transition.
    """
    if not isinstance(behaviour, Policy):
        raise TypeError(f"behaviour must be a policy, not {brief(behaviour)}")
    if behaviour.is_estimated:  # from other episodes than the record's, so it never agrees
        return
    count, most = batch_size(states), 1.0 if isinstance(behaviour, DiscretePolicy) else np.inf
    if behaviour_log_probability is not None:
        name, most = "behaviour_log_probability", math.log(most)
        recorded = _recorded(behaviour_log_probability, name, count, -np.inf, most)
        mu = behaviour.log_probability(states, actions)
        # The smaller magnitude, so that -inf does not match a finite number.
        scale = np.maximum(1.0, np.minimum(np.abs(recorded), np.abs(mu)))
    else:
        name = "behaviour_probability"
        recorded = _recorded(behaviour_probability, name, count, 0.0, most)
        scale = mu = behaviour.probability(states, actions)
    with np.errstate(invalid="ignore"):
        near = np.abs(recorded - mu) <= CONFLICT_TOLERANCE * scale
    agree = near | (recorded == mu)
    if not agree.all():
        at = int(agree.argmin())
        raise DataError(
            _transition(at, np.asarray(actions)[at]),
            f"{name} is recorded as {recorded[at]}, but {brief(behaviour)} gives {mu[at]}. If the "
            "behaviour has changed since it acted, ",
            Words(
                'use what was recorded: on_conflict="recorded". If the record is wrong, use the '
                'policy: on_conflict="behaviour"',
                "leave out [behaviour]: then what was recorded is used",
            ),
            code=DataCode.CONFLICT,
            column=name,
            value=recorded[at],
        )


def largest_ratio(target: DiscretePolicy, behaviour: DiscretePolicy, states: Any) -> float:
    """Compute the largest ratio of any action in the given states.

    :class:`gvf.corrections.NormIS` divides by this constant. If neither policy depends on the
    state, one state is enough.

    Args:
        target: the target policy pi.
        behaviour: the behaviour policy mu, with the same actions.
        states: the states, [m, ...].

    Returns:
        The largest ratio.

    Raises:
        ValueError: if mu is 0 where pi is not.

    Example:
        >>> import gvf
        >>> gvf.policies.largest_ratio(
        ...     gvf.policies.Fixed([0.1, 0.9]), gvf.policies.Fixed([0.9, 0.1]), states=[0]
        ... )
        9.0
    """
    for policy in (target, behaviour):
        if not isinstance(policy, DiscretePolicy):
            raise TypeError(
                f"{brief(policy)} is not discrete, and ratios of densities may have no bound "
                "(a Function is discrete when it is given its number of actions)"
            )
    check_same_actions(target, behaviour)
    if batch_size(states) == 0:
        raise ValueError("give at least one state")
    pi, mu = target.probabilities(states), behaviour.probabilities(states)
    rho = quotient(pi, mu)
    row, action = divmod(int(rho.argmax()), target.actions)
    if not np.isfinite(rho[row, action]):
        where = place(row, "state at position ", f" (action {action}): ", f"action {action}: ")
        raise _no_ratio(where, pi[row, action], mu[row, action])
    return float(rho[row, action])


def _recorded(values: Any, name: str, count: int, least: float, most: float) -> Floats:
    """Return a recorded column of probabilities or logarithms, checked, float64[m]."""
    array = np.asarray(as_numbers(numpy_array(values, name), name), np.float64)
    if array.shape != (count,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({count},)")
    good = (array >= least) & (array <= most + _RECORDED_TOLERANCE) & (array < np.inf)
    if not good.all():
        at = int(good.argmin())
        limits = f"in [{least}, {most}]" if most < np.inf else f"at least {least}, and finite"
        limits = f" is {array[at]}; it must be {limits}"
        raise DataError(name, place(at), limits, column=name, value=array[at])
    return array


def quotient(pi: Floats, mu: Floats, *, logs: bool = False) -> Floats:
    """Return pi / mu, and 0 wherever pi is 0; with `logs`, from their logarithms.

    All ratios of gvf are formed here. Those that are not finite are the caller's to refuse.

    Example:
        >>> import numpy as np
        >>> from gvf.policies.ratio import quotient
        >>> quotient(np.array([0.0, 0.5]), np.array([0.0, 0.25]))
        array([0., 2.])
        >>> quotient(np.log([0.5]), np.log([0.25]), logs=True)
        array([2.])
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if logs:
            return np.where(pi == -np.inf, 0.0, np.exp(pi - mu))
        return np.where(pi == 0, 0.0, pi / mu)


def _transition(at: int, action: Any) -> Place:
    """Return the place of a transition, with its action."""
    return place(at, "transition ", f" (action {action}): ", f"action {action}: ")


def _no_ratio(where: Place, pi: float, mu: float, logs: bool = False) -> DataError:
    """Return the error for pi and mu, or their logarithms, without a finite ratio."""
    prefix = "log " if logs else ""
    if math.isnan(pi) or math.isnan(mu) or pi == np.inf:
        reason = "no ratio can be formed of these"
    elif mu == (-np.inf if logs else 0.0):
        reason = (
            "the behaviour never takes this action but the target does, and no ratio corrects for "
            "that. Give the behaviour that chose the actions, or ask about a policy that takes "
            "only actions the behaviour also takes"
        )
    else:
        reason = "their ratio is too large for a float64. Is the behaviour the right one?"
    values = f"{prefix}pi = {pi}, {prefix}mu = {mu}; {reason}"
    return DataError(where, values, code=DataCode.NO_RATIO, column="ratio", value=(pi, mu))
