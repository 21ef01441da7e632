"""Normally distributed actions.

The log density of an action of d independent dimensions is a sum over them,

    log pi(a|s) = sum_j [ -z_j^2 / 2 - log sd_j - log(2 pi) / 2 ],    z_j = (a_j - mean_j) / sd_j,

where mean and sd are constants or functions of the state. Far from the mean the density underflows
to 0 but its logarithm is finite, so :mod:`gvf.policies.ratio` uses the logarithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gvf.common.arrays import Floats
from gvf.common.checks import as_numbers, set_frozen
from gvf.common.errors import DataError, place
from gvf.common.fields import as_states
from gvf.policies.action_checks import batch_size, generator, numpy_array
from gvf.policies.policy import Choice, FunctionOfStates, Policy

_LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, repr=False)
class Gaussian(Policy):
    """A policy with normally distributed actions of one or more independent dimensions.

    The density is that of the action as drawn. If an environment clips actions, record them before
    clipping.

    Args:
        mean: a number (scalar actions, drawn as [m]), an array [d] (drawn as [m, d]), or a
            function of states that returns [m] or [m, d].
        sd: the standard deviation, positive; given in the same ways.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> policy = gvf.policies.Gaussian(mean=lambda states: 2 * states, sd=0.1)
        >>> policy.probability(states=np.array([0.0, 1.0]), actions=[0.1, 2.0]).round(3)
        array([2.42 , 3.989])
        >>> policy.sample(np.zeros(3), rng=np.random.default_rng(0)).shape
        (3,)
    """

    mean: ArrayLike | FunctionOfStates
    sd: ArrayLike | FunctionOfStates

    def __post_init__(self) -> None:
        for name in ("mean", "sd"):
            value = getattr(self, name)
            if not callable(value):
                # A number or a tuple, so that policies can be compared, hashed and printed.
                plain = np.asarray(value, np.float64).tolist()
                set_frozen(self, **{name: tuple(plain) if isinstance(plain, list) else plain})
        if len(self._constants) == 2:  # check that their dimensions agree
            self._law(states=())

    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Return the log density of each action, summed over its dimensions: float64[m].

        Actions are [m, d]; actions of one dimension may also be [m].
        """
        return self._law(states).log_density(actions)

    def sample(self, states: Any, *, rng: np.random.Generator) -> Floats:
        """Draw one action for each state: [m] if mean and sd are scalar there, else [m, d]."""
        return self._law(states).sample(rng)

    def _choice(self, states: Any) -> Choice:
        law = self._law(states)
        return Choice(law.sample, law.log_density)

    @cached_property
    def _constants(self) -> dict[str, tuple[Floats, bool]]:
        names = [name for name in ("mean", "sd") if not callable(getattr(self, name))]
        return {name: _parameter(name, getattr(self, name)) for name in names}

    def _law(self, states: Any) -> _Normal:
        states = as_states(states)
        count = batch_size(states)
        (mean, mean_scalar), (sd, sd_scalar) = (
            self._constants.get(name) or _parameter(name, getattr(self, name)(states), (count,))
            for name in ("mean", "sd")
        )
        if len({1, mean.shape[1], sd.shape[1]}) > 2:
            raise ValueError(f"mean has {mean.shape[1]} action dimensions, sd has {sd.shape[1]}")
        shape = count, max(mean.shape[1], sd.shape[1])
        return _Normal(mean, sd, shape, mean_scalar and sd_scalar)


class _Normal(NamedTuple):
    """Independent normal distributions, one for each dimension of the action in each state."""

    mean: Floats
    """Means, [m or 1, d or 1]."""
    sd: Floats
    """Standard deviations, [m or 1, d or 1]."""
    shape: tuple[int, int]
    """The shape of the actions, (m, d)."""
    scalar: bool
    """True if actions are drawn as [m], without the dimension of length d = 1."""

    def sample(self, rng: np.random.Generator) -> Floats:
        actions = self.mean + self.sd * generator(rng).standard_normal(self.shape)
        return actions[:, 0] if self.scalar else actions

    def log_density(self, actions: Any) -> Floats:
        actions = np.asarray(as_numbers(actions, "the actions"), np.float64)
        flat = self.shape[1] == 1 and actions.shape == self.shape[:1]
        if not flat and actions.shape != self.shape:
            raise ValueError(
                f"actions have shape {actions.shape}, expected {self.shape}: a row for each state, "
                "a column for each dimension of an action"
            )
        standard = (actions.reshape(self.shape) - self.mean) / self.sd
        return (-0.5 * standard * standard - np.log(self.sd) - _LOG_ROOT_TWO_PI).sum(axis=1)


def _parameter(name: str, value: Any, batch: tuple[int, ...] = ()) -> tuple[Floats, bool]:
    """Return a mean or sd as checked rows [m or 1, d], and True if it is scalar in each state.

    ``batch`` is (m,) for the result of a function, () for a constant.
    """
    array = np.asarray(numpy_array(value, name), np.float64)
    if array.shape[: len(batch)] != batch or array.ndim > len(batch) + 1:
        raise ValueError(
            f"{name} has shape {array.shape}, expected {batch} for scalar actions, or "
            f"({', '.join(map(str, (*batch, 'd')))}) for actions of d dimensions"
        )
    rows = array.reshape(*(batch or (1,)), *(array.shape[len(batch) :] or (1,)))
    good = (rows > 0) & (rows < np.inf) if name == "sd" else np.isfinite(rows)
    if not good.all():
        row, column = np.argwhere(~good)[0]
        value = rows[row, column]
        raise DataError(
            f"{name} is {value}",
            *([place(row, " in the state at position ")] if batch else []),
            f"; it must be {'positive and ' if name == 'sd' else ''}finite",
            column=name,
            value=value,
        )
    return rows, array.shape == batch
