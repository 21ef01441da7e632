"""The robot: its behaviour, the targets that are asked about, its sensors and its features.

The behaviour draws 17 torques, each normally distributed around 0 with the standard deviation SD.
A target pushes some joints in one direction, or acts with less noise. Ratios of all dimensions
multiply, so the expected number of effective samples among n falls with the distance d of the mean,
counted in standard deviations, as ``n exp(-d^2)``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import gvf

SD = 0.15
"""The standard deviation of the behaviour's actions, whose limits are -0.4 and 0.4."""
DISTANCES = (0.5, 1.0, 2.0, 3.0)
"""The distances of the means of targets from the behaviour's, in standard deviations."""
CALM = (0.9, 0.8, 0.7, 0.5)
"""The standard deviations of targets with less noise, as shares of the behaviour's."""
CHECKED = 2
"""The number of directions whose targets also act in the simulator, as the calm ones do."""
CONTINUATIONS = (0.5, 0.9, 0.97)
CLIP = 5.0
"""The largest number of standard deviations of a sensor that features see."""


@dataclass(frozen=True)
class Robot:
    """A robot in a simulator.

    Attributes:
        make: a function that makes the environment.
        saved: a function that returns a copy of the state of the simulation.
        restore: a function that sets an environment to such a copy.
        actions: the number of actuators.
        directions: the actuators that the targets of each direction push.
        parts: the kinds of sensors in order, with the number of channels of each.
        shown: the channels whose predictions are drawn over time, with a title.
        step: the length of a step in milliseconds.
    """

    make: Callable[[], gym.Env[Any, Any]]
    saved: Callable[[gym.Env[Any, Any]], Any]
    restore: Callable[[gym.Env[Any, Any], Any], None]
    actions: int
    directions: Mapping[str, tuple[int, ...]]
    parts: Mapping[str, int]
    shown: Mapping[str, str]
    step: float

    @property
    def behaviour(self) -> gvf.policies.Gaussian:
        """The policy that acts."""
        return gvf.policies.Gaussian(np.zeros(self.actions), SD)

    @property
    def targets(self) -> dict[str, gvf.policies.Gaussian]:
        """The policies that are asked about; the first of them are checked in the simulator."""
        found = {"behaviour": self.behaviour}
        for share in CALM:
            found[f"calm {share:g}"] = gvf.policies.Gaussian(np.zeros(self.actions), share * SD)
        for name, pushed in self.directions.items():
            for distance in DISTANCES:
                mean = np.zeros(self.actions)
                mean[list(pushed)] = distance * SD / np.sqrt(len(pushed))
                found[f"{name} {distance:g}"] = gvf.policies.Gaussian(mean, SD)
        return found

    @property
    def checked(self) -> list[str]:
        """The names of the targets that act in the simulator."""
        return list(self.targets)[: 1 + len(CALM) + CHECKED * len(DISTANCES)]

    @property
    def channels(self) -> list[str]:
        """The names of all channels of an observation."""
        return [f"{part} {i}" for part, count in self.parts.items() for i in range(count)]


def distance_of(target: str) -> float | None:
    """Return the distance of a target that pushes; None for another."""
    kind, _, number = target.rpartition(" ")
    return float(number) if kind not in ("", "calm") else None


def expected_share(policy: gvf.policies.Gaussian) -> float:
    """Return the expected share of effective samples, 1 / E[rho^2], under the behaviour."""
    mean, sd = (np.asarray(part, float) / SD for part in cast(Any, (policy.mean, policy.sd)))
    left = 2.0 - sd**2
    return float(np.prod(sd * np.sqrt(left) * np.exp(-(mean**2) / left)))


def make_humanoid() -> gym.Env[Any, Any]:
    """Make the humanoid. It falls, goes on lying on the floor, and is put up after 3 seconds."""
    return gym.make("Humanoid-v5", terminate_when_unhealthy=False, max_episode_steps=200)


def saved_data(env: gym.Env[Any, Any]) -> Any:
    """Return a copy of the data of MuJoCo; a deep copy of the environment would begin anew."""
    return copy.copy(cast(Any, env.unwrapped).data)


def restore_data(env: gym.Env[Any, Any], data: Any) -> None:
    """Copy the data of MuJoCo into an environment."""
    world = cast(Any, env.unwrapped)
    import_module("mujoco").mj_copyData(world.data, world.model, data)


HUMANOID = Robot(
    make_humanoid,
    saved_data,
    restore_data,
    actions=17,
    directions={
        "trunk": (0, 1, 2),
        "right leg": (5, 6),
        "left leg": (9, 10),
        "hips": (3, 4, 7, 8),
        "arms": (11, 12, 14, 15),
    },
    parts={
        "qpos": 22,
        "qvel": 23,
        "cinert": 130,
        "cvel": 78,
        "qfrc_actuator": 17,
        "cfrc_ext": 78,
    },
    shown={
        "qpos 0": "height of the torso",
        "qvel 2": "vertical velocity of the torso",
        "cfrc_ext 5": "vertical contact force on the torso",
    },
    step=15.0,
)


class Calibration:
    """Scales of sensors, and features, from states of a separate run of the behaviour.

    Channels that do not vary are left out. Features are a constant and the first principal
    components of the scaled sensors, each divided by ``sqrt(variance + 1)``. So large components
    have a variance of about 1 and one step size serves them all, and small ones stay small.

    Args:
        states: states, [m, channels].
        most: the largest number of features.

    Attributes:
        varying: the channels that vary, int[C].
        mean: their means.
        sd: their standard deviations.
        size: the number of features.
        length: the mean of the squared length of feature vectors.
    """

    def __init__(self, states: NDArray[Any], most: int = 256) -> None:
        mean, sd = states.mean(axis=0), states.std(axis=0)
        self.varying = np.flatnonzero(sd > 1e-6 * (1.0 + np.abs(mean)))
        self.mean, self.sd = mean[self.varying], sd[self.varying]
        scaled = self._clipped(states)
        self._centre = scaled.mean(axis=0)
        variance, vectors = np.linalg.eigh(np.cov(scaled.T))
        largest = slice(None, -most, -1)
        self._components = vectors[:, largest] / np.sqrt(variance[largest] + 1.0)
        self.size = 1 + self._components.shape[1]
        self.length = float(np.square(self.features(states)).sum(axis=1).mean())

    def scaled(self, states: NDArray[Any]) -> NDArray[Any]:
        """Return the sensors of states in standard deviations around their means, [m, C]."""
        return (states[:, self.varying] - self.mean) / self.sd

    def sensors(self, transitions: gvf.Transitions) -> NDArray[Any]:
        """Return the sensors after m transitions, [m, C]; cumulants are columns of it."""
        return self.scaled(transitions.next_state)

    def features(self, states: NDArray[Any]) -> NDArray[Any]:
        """Return the features of states, [m, size]."""
        components = (self._clipped(states) - self._centre) @ self._components
        return np.column_stack([np.ones(len(states)), components])

    def _clipped(self, states: NDArray[Any]) -> NDArray[Any]:
        return np.clip(self.scaled(states), -CLIP, CLIP)
