"""The default behaviour for a space of actions: a policy that takes every action."""

from __future__ import annotations

from typing import Any

import numpy as np

from gvf.common.arrays import Floats
from gvf.common.gymnasium import gym
from gvf.policies.discrete import Uniform
from gvf.policies.gaussian import Gaussian
from gvf.policies.policy import Policy

LARGEST_BOUND = 1e6
"""A bound beyond it, or an infinite one, counts as none."""


def default_behaviour(space: gym.Space[Any]) -> Policy:
    """Make a policy that takes every action of a space.

    For discrete actions it is uniform. For real actions it is normal, centred in their range, with
    a quarter of the range as standard deviation; without a range these are 0 and 1.

    Example:
        >>> from gvf.policies import default_behaviour
        >>> from gymnasium.spaces import Box, Discrete
        >>> default_behaviour(Discrete(3)), default_behaviour(Box(-2.0, 2.0, (1,)))
        (Uniform(3), Gaussian((0.0,), (1.0,)))
    """
    if isinstance(space, gym.spaces.Box):
        return Gaussian(*middle_and_spread(space))
    return Uniform(count_actions(space))


def count_actions(space: gym.Space[Any]) -> int:
    """Return the number of actions; 1 for unsupported spaces, which raise an error elsewhere."""
    return int(space.n) if isinstance(space, gym.spaces.Discrete) else 1


def middle_and_spread(space: gym.spaces.Box) -> tuple[Floats, Floats]:
    """Return each dimension's centre and a quarter of its range, [d]; 0 and 1 without bounds."""
    low, high = (np.asarray(bound, np.float64).ravel() for bound in (space.low, space.high))
    bounded = (np.abs(low) <= LARGEST_BOUND) & (np.abs(high) <= LARGEST_BOUND) & (low < high)
    low, high = np.where(bounded, low, -2.0), np.where(bounded, high, 2.0)
    return (low + high) / 2, (high - low) / 4
