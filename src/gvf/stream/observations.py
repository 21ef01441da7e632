"""Observations as states: arrays stay arrays, and mappings become structured arrays.

Policies, features and cumulants are functions of a batch of m states. The observations of an array
space are such a batch, [m, ...]. Those of a ``Dict`` space become a structured array [m] with a
field for each key, so that ``states["position"]`` is [m, d]; a Dict in a Dict becomes a nested
field. A structured array is indexed, concatenated and saved like any other, so windows and files
need no special case. :mod:`gvf.stream` reads observations with this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.fields import aligned
from gvf.common.gymnasium import gym


class Observations:
    """A converter of observations of a space into states.

    Args:
        space: the observation space of a single environment: ``Box``, ``Discrete``,
            ``MultiBinary``, ``MultiDiscrete``, or a ``Dict`` of these and of Dicts.

    Example:
        >>> import gvf
        >>> from gymnasium.spaces import Box, Dict, Discrete
        >>> space = Dict(position=Box(-1.0, 1.0, (2,)), door=Discrete(2))
        >>> observations = gvf.stream.observations.Observations(space)
        >>> observations.one({"position": [0.5, -0.5], "door": 1})["position"]
        array([[ 0.5, -0.5]], dtype=float32)
        >>> states = observations.many({"position": [[0.0, 0.0], [1.0, 1.0]], "door": [0, 1]}, 2)
        >>> states["door"]
        array([0, 1])
    """

    dtype: np.dtype[Any]
    """The type of a state; structured if the space is a Dict."""

    def __init__(self, space: gym.Space[Any]) -> None:
        self.structured = isinstance(space, gym.spaces.Dict)
        self.dtype = _fields(space, ()) if self.structured else _array_type(space)

    def one(self, observation: Any) -> NDArray[Any]:
        """Copy one observation into a batch of 1 state."""
        if not self.structured:
            return np.array(observation, self.dtype)[None]
        state = np.empty((), self.dtype)
        _fill(state, observation, ())
        return state[None]

    def many(self, observations: Any, count: int) -> NDArray[Any]:
        """Convert the observations of ``count`` environments to states; arrays are not copied.

        Args:
            observations: the observations of a vector environment: an array [m, ...], or for a
                Dict a mapping of such arrays.
            count: the number of environments, m.
        """
        if not self.structured:
            return np.asarray(observations)
        states = np.empty(count, self.dtype)
        _fill(states, observations, ())
        return states


def _array_type(space: gym.Space[Any]) -> np.dtype[Any]:
    if _is_array(space):
        return np.dtype(space.dtype)
    raise ValueError(
        f"the observation space {space} is no array; wrap the environment in "
        + (
            "gymnasium.wrappers.FlattenObservation"
            if isinstance(space, gym.spaces.Tuple)
            else "gymnasium.wrappers.TransformObservation with a function that makes it a Box"
        )
    )


def _is_array(space: gym.Space[Any]) -> bool:
    arrays = gym.spaces
    return isinstance(
        space, arrays.Box | arrays.Discrete | arrays.MultiBinary | arrays.MultiDiscrete
    )


def _fields(space: gym.Space[Any], path: tuple[Any, ...]) -> np.dtype[Any]:
    """Return the type of a field: a number, a subarray or a structure."""
    if _is_array(space):
        return np.dtype((space.dtype, space.shape or ()))
    if not isinstance(space, gym.spaces.Dict):
        raise ValueError(
            f"the observation's {_named(path)} is {space}, which is no array; wrap the environment "
            "in gymnasium.wrappers.TransformObservation with a function that makes it a Box, or "
            "leave it out with gymnasium.wrappers.FilterObservation"
        )
    if not space.spaces:
        raise ValueError(f"the observation{_of(path)} is a Dict without keys, so there is no state")
    for key in space.spaces:
        if not isinstance(key, str) or not key:
            raise ValueError(
                f"the observation{_of(path)} has the key {key!r}, and the name of a field must be "
                "text; wrap the environment in gymnasium.wrappers.TransformObservation to rename it"
            )
    fields = [(key, _fields(part, (*path, key))) for key, part in space.spaces.items()]
    return aligned(np.dtype(fields))


def _fill(states: NDArray[Any], observation: Any, path: tuple[str, ...]) -> None:
    """Write a mapping of values [*states.shape, ...] into structured states."""
    if not isinstance(observation, Mapping):
        raise ValueError(
            f"the observation{_of(path)} is a {type(observation).__name__}, and its space is a "
            f"Dict with the keys {', '.join(states.dtype.names or ())}"
        )
    for key in states.dtype.names or ():
        if key not in observation:
            raise ValueError(
                f"the observation{_of(path)} lacks {key!r}, a key of its space; it has: "
                f"{', '.join(map(str, observation))}"
            )
        field, value = states[key], observation[key]
        if field.dtype.names:
            _fill(field, value, (*path, key))
            continue
        if np.shape(value) != field.shape:
            raise ValueError(
                f"the observation's {_named((*path, key))} has shape {np.shape(value)}; by its "
                f"space it should be {field.shape}"
            )
        states[key] = value


def _named(path: tuple[Any, ...]) -> str:
    return "".join(map(repr, path[:1])) + "".join(f"[{key!r}]" for key in path[1:])


def _of(path: tuple[Any, ...]) -> str:
    return f"'s {_named(path)}" if path else ""
