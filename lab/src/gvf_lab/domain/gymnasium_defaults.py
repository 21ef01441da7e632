"""Default behaviours, questions and features for an environment, made from its spaces.

:mod:`gvf_lab.domain.gymnasium_domain` uses them for everything that its user leaves out. The
densities of the Gaussian policies have bounded ratios: both have the same mean, and the target has
half the standard deviation in each of d dimensions, so

    rho = pi(a|s) / mu(a|s) <= 2^d.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf import GVF
from gvf.common.arrays import Floats
from gvf.common.gymnasium import gym
from gvf.features import Dense, FeatureMap, OneHot, TileCoder
from gvf.kernels import LARGEST_BOUND, count_actions, middle_and_spread
from gvf.policies import Favour, Gaussian, Policy, default_behaviour

TILINGS = 8
MOST_FEATURES = 8192
"""The largest number of features of a tile coder."""
MOST_TILES = 16
"""The largest number of tiles along a dimension."""
MOST_TILED = 6
"""The largest number of dimensions that are tile-coded."""
MOST_NUMBERS = 1000
"""The largest size of an observation; larger ones, such as images, need the user's features."""


def default_behaviours(space: gym.Space[Any]) -> dict[str, Policy]:
    """Make one behaviour that takes every action of a space.

    It is "uniform" for discrete actions. For real actions it is "gaussian", centred in their range,
    with a quarter of the range as standard deviation; without a range these are 0 and 1.

    Example:
        >>> from gvf_lab.domain.gymnasium_defaults import default_behaviours
        >>> from gymnasium.spaces import Box, Discrete
        >>> default_behaviours(Discrete(3)), default_behaviours(Box(-2.0, 2.0, (1,)))
        ({'uniform': Uniform(3)}, {'gaussian': Gaussian((0.0,), (1.0,))})
    """
    policy = default_behaviour(space)
    return {"gaussian" if isinstance(policy, Gaussian) else "uniform": policy}


def default_questions(space: gym.Space[Any]) -> dict[str, GVF]:
    """Make questions about the reward with continuation 0.9, for targets near the behaviour.

    For discrete actions "favour-0" takes action 0 with probability 0.9, and so on for the first
    four. For real actions "steady" has half the standard deviation of the default behaviour.

    Example:
        >>> from gvf_lab.domain.gymnasium_defaults import default_questions
        >>> from gymnasium.spaces import Box, Discrete
        >>> default_questions(Discrete(2))["favour-1"]
        GVF(Favour(1, 0.9, 2), 'reward', 0.9)
        >>> default_questions(Box(-2.0, 2.0, (1,)))
        {'steady': GVF(Gaussian((0.0,), (0.5,)), 'reward', 0.9)}
    """
    if isinstance(space, gym.spaces.Box):
        mean, sd = middle_and_spread(space)
        return {"steady": GVF(Gaussian(mean, sd / 2), "reward", 0.9)}
    count = count_actions(space)
    share = 0.9 if count > 1 else 1.0
    targets = [Favour(action, share, count) for action in range(min(count, 4))]
    return {f"favour-{target.action}": GVF(target, "reward", 0.9) for target in targets}


def default_features(space: gym.Space[Any], probe: Callable[[], NDArray[Any]]) -> FeatureMap:
    """Make features of the observations of a space.

    Discrete observations are one-hot. All others become d numbers, those of a Dict field by field.
    Up to 6 numbers are tile-coded by 8 tilings. The number of tiles along each dimension is the
    largest that gives at most 8,192 features, but at most 16. The tiles lie between the bounds of
    the space. A dimension without bounds, or with bounds beyond a million, gets those of a short
    walk: from the 1st to the 99th percentile of its states, widened by a quarter of that range on
    each side. With more than 6 numbers, the features are the numbers themselves, standardised by
    the mean and standard deviation of the walk, and a constant. More than 1,000 are an error.

    Args:
        space: the observation space.
        probe: a function that returns the states of a short walk, [m, ...]; called only if needed.

    Example:
        >>> from gvf_lab.domain.gymnasium_defaults import default_features
        >>> from gymnasium.spaces import Box, Dict, Discrete
        >>> import numpy as np
        >>> default_features(Discrete(16), probe=lambda: np.arange(16))
        OneHot(size=16)
        >>> default_features(Box(-1.0, np.inf, (2,)), probe=lambda: np.array([[0, 0], [1, 2]]))
        TileCoder(8 tilings of 16 x 16 tiles over [-0.235, 1.235] x [-0.47, 2.47], size 2312)
        >>> default_features(Dict(door=Discrete(2), speed=Box(0.0, 1.0)), probe=lambda: None)
        Flattened(TileCoder(8 tilings of 16 x 16 tiles over [0, 1] x [0, 1], size 2312))
    """
    if isinstance(space, gym.spaces.Discrete):
        if space.start >= 0:
            return OneHot(int(space.start + space.n))
        raise ValueError(f"the observations of {space} are negative; give features=")
    low, high = _bounds(space)
    dimensions = len(low)
    if dimensions > MOST_NUMBERS:
        raise ValueError(
            f"an observation has {dimensions} numbers, and default features are for at most "
            f"{MOST_NUMBERS}; give features="
        )
    if dimensions > MOST_TILED:
        return _standardised(_probed(probe))
    loose = ~((np.abs(low) <= LARGEST_BOUND) & (np.abs(high) <= LARGEST_BOUND))
    if loose.any():
        low[loose], high[loose] = _range(_probed(probe)[:, loose])
    level = low == high
    low[level], high[level] = low[level] - 0.5, high[level] + 0.5
    tiles = int((MOST_FEATURES / TILINGS) ** (1 / dimensions) + 1e-9) - 1
    coder = TileCoder(low, high, tiles=min(tiles, MOST_TILES), tilings=TILINGS)
    rows = not isinstance(space, gym.spaces.Dict) and space.shape == (dimensions,)
    return coder if rows else Flattened(coder)


@dataclass(frozen=True, repr=False)
class Flattened:
    """Features of states that :func:`flat` first turns into rows of numbers.

    Args:
        features: a feature map of float64[m, d].

    Example:
        >>> from gvf_lab.domain.gymnasium_defaults import Flattened
        >>> import gvf, numpy as np
        >>> coder = gvf.features.TileCoder([0.0] * 4, [1.0] * 4, tiles=1, tilings=1)
        >>> Flattened(coder)(np.zeros((1, 2, 2)))
        array([[0]], dtype=int32)
    """

    features: FeatureMap

    @property
    def size(self) -> int:
        """The number of features."""
        return self.features.size

    def __call__(self, states: Any) -> NDArray[Any]:
        """Compute the features of states [m, ...]."""
        return self.features(flat(states))

    def __repr__(self) -> str:
        return f"Flattened({self.features!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Standardised:
    """Features that are a constant 1 and the standardised numbers of each state.

    Args:
        mean: the mean of each number, float64[d].
        sd: the standard deviation of each number, float64[d], positive.

    Example:
        >>> from gvf_lab.domain.gymnasium_defaults import Standardised
        >>> import numpy as np
        >>> Standardised(np.array([1.0, 1.0]), np.array([1.0, 2.0]))(np.array([[2.0, 5.0]]))
        array([[1., 1., 2.]])
    """

    mean: Floats
    sd: Floats

    def __call__(self, states: Any) -> Floats:
        """Compute the features of states [m, ...], float64[m, 1 + d]."""
        return np.insert((flat(states) - self.mean) / self.sd, 0, 1.0, axis=1)

    def __repr__(self) -> str:
        return f"Standardised({len(self.mean)} numbers)"


def flat(states: Any) -> Floats:
    """Turn states [m, ...] into rows of numbers, float64[m, d]; fields stand side by side.

    Example:
        >>> from gvf_lab.domain.gymnasium_defaults import flat
        >>> import numpy as np
        >>> flat(np.array([(1, (0.5, 2.0))], [("door", int), ("place", float, 2)]))
        array([[1. , 0.5, 2. ]])
    """
    array = np.asarray(states)
    if array.dtype.names is not None:
        return np.concatenate([flat(array[name]) for name in array.dtype.names], axis=1)
    return array.reshape(len(array), math.prod(array.shape[1:])).astype(np.float64)


def _bounds(space: gym.Space[Any]) -> tuple[Floats, Floats]:
    """Return the bounds of the numbers that :func:`flat` makes of a state, each float64[d]."""
    if isinstance(space, gym.spaces.Dict):
        parts = [_bounds(part) for part in space.spaces.values()]
        return np.concatenate([low for low, _ in parts]), np.concatenate(
            [high for _, high in parts]
        )
    if isinstance(space, gym.spaces.Box):
        low, high = space.low, space.high
    elif isinstance(space, gym.spaces.Discrete):
        low, high = space.start, space.start + space.n - 1
    elif isinstance(space, gym.spaces.MultiDiscrete):
        low, high = space.start, space.start + space.nvec - 1
    else:
        low, high = np.zeros(space.shape or ()), np.ones(space.shape or ())
    return np.array(low, np.float64).ravel(), np.array(high, np.float64).ravel()


def _probed(probe: Callable[[], NDArray[Any]]) -> Floats:
    numbers = flat(probe())
    if not np.isfinite(numbers).all():
        row, column = np.argwhere(~np.isfinite(numbers))[0]
        raise ValueError(
            f"number {column} of the observation is {numbers[row, column]} at step {row} of a "
            "short walk; give features="
        )
    return numbers


def _range(numbers: Floats) -> tuple[Floats, Floats]:
    """Compute the range of nearly all numbers [m, d] in each dimension, widened."""
    low, high = np.percentile(numbers, [1, 99], axis=0)
    margin = (high - low) / 4
    return low - margin, high + margin


def _standardised(numbers: Floats) -> Dense:
    varies = np.ptp(numbers, axis=0) > 0  # the deviation of equal numbers may not be exactly 0
    mean, sd = numbers.mean(axis=0), np.where(varies, numbers.std(axis=0), 1.0)
    return Dense(1 + len(mean), Standardised(mean, sd))
