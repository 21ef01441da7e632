"""What the cars of both simulators have in common: how they are steered, and when they are lost.

:class:`Car` is the environment without its simulator, which :mod:`gvf.domain.racing.torcs` and
:mod:`gvf.domain.racing.car_racing` bring. It can be imported without Gymnasium, so that what reads
recordings knows the shape of a picture.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gvf.common.gym import gym
from gvf.domain.domain import check_render_mode

FRAME = HEIGHT, WIDTH = 64, 128
"""The shape of a picture; the bridge to TORCS has the same numbers."""
SCALE = 4
"""How many times larger the colour picture is."""
PERIOD = 0.02
"""Seconds after which a simulator can be steered anew: a step is a whole number of them."""
SLOWEST = 1.0
"""m/s below which the car counts as stuck, after :data:`PATIENCE` seconds."""
PATIENCE = 3.0
FARTHEST = 2.0
"""Half-widths from the middle of the road at which an episode is cut off; the edge is at 1."""

Frame = NDArray[np.uint8]


class Car(gym.Env[Frame, Any], ABC):
    """A car on a road that is closed, steered by the action.

    Attributes:
        draw: whether steps and resets are drawn (True). If not, they are many times faster, and
            observations are all 0.

    Args:
        seconds: of a step, a multiple of .02.
        speed: to keep, in m/s.
        render_mode: "rgb_array", or None.

    Example:
        >>> from gvf.domain.racing.car import Car
        >>> from gvf.domain.racing.car_racing import CarRacing
        >>> from gvf.domain.racing.torcs import Torcs
        >>> issubclass(Torcs, Car) and issubclass(CarRacing, Car)
        True
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, seconds: float, speed: float, render_mode: str | None) -> None:
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"])
        self._periods = periods(seconds)
        if not (isinstance(speed, Real) and 2 <= speed <= 100):
            raise ValueError(f"speed must be from 2 to 100 m/s, got {speed!r}")
        self._seconds, self._speed = seconds, speed
        self._patience = math.ceil(PATIENCE / seconds)
        self._slow, self._distance, self._around = 0, 0.0, math.inf
        self._closed = False
        self.draw = True
        self.observation_space = gym.spaces.Box(0, 255, FRAME, np.uint8)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Frame, dict[str, Any]]:
        """The car at rest, where the simulator begins."""
        super().reset(seed=seed)
        self._check_open()
        info, self._around = self._start(seed)
        self._slow, self._distance = 0, info["distance"]
        return self._frame(), info

    def step(self, action: Any) -> tuple[Frame, float, bool, bool, dict[str, Any]]:
        """Steer for one step."""
        before = self._distance
        columns = self._advance([action], draw=self.draw)
        info = {name: column.item() for name, column in columns.items()}
        # The road is closed: of the two ways along it, the shorter.
        progress = math.remainder(self._distance - before, self._around)
        lost = self._slow >= self._patience or abs(info["lateral"]) > FARTHEST
        return self._frame(), progress, False, lost or not self._running, info

    def replay(self, actions: ArrayLike) -> dict[str, NDArray[Any]]:
        """Steer for many steps, undrawn, whatever ``draw`` says.

        With ``draw`` off, m calls of :meth:`step` do the same, more slowly.

        Args:
            actions: one after the other, [m, 1].

        Returns:
            The entries of ``info`` after every action, each [m].
        """
        return self._advance(actions, draw=False)

    def render(self) -> Any:
        """What the camera sees, in colour and larger, uint8[256, 512, 3]."""
        if self.render_mode is None:
            gym.logger.warn(
                'nothing is rendered: make the environment with render_mode="rgb_array"'
            )
            return None
        self._check_running()
        return self._colour()

    def close(self) -> None:
        """Let the simulator go. Again is no error."""
        self._closed = True
        self._end()

    @property
    @abstractmethod
    def _running(self) -> bool:
        """Whether there is a car that can be steered."""

    @abstractmethod
    def _start(self, seed: int | None) -> tuple[dict[str, Any], float]:
        """Put the car where it begins: the info there, and the metres once around the road."""

    @abstractmethod
    def _drive(self, told: NDArray[np.float32], draw: bool) -> dict[str, NDArray[Any]]:
        """Steer as told [m]; what the info is after each, [m]. Drawing is for the last one only."""

    @abstractmethod
    def _grey(self) -> Frame:
        """The observation, uint8[64, 128]."""

    @abstractmethod
    def _colour(self) -> Frame:
        """The same in colour, uint8[256, 512, 3]."""

    @abstractmethod
    def _end(self) -> None:
        """End the simulator, if there is one."""

    def _advance(self, actions: ArrayLike, *, draw: bool) -> dict[str, NDArray[Any]]:
        self._check_running()
        columns = self._drive(steering(actions), draw)
        for speed in columns["speed"].tolist():
            self._slow = self._slow + 1 if abs(speed) < SLOWEST else 0
        if len(columns["distance"]):
            self._distance = float(columns["distance"][-1])
        return columns

    def _frame(self) -> Frame:
        return self._grey() if self.draw and self._running else np.zeros(FRAME, np.uint8)

    def _check_open(self) -> None:
        if self._closed:
            raise gym.error.ClosedEnvironmentError("this environment is closed: make a new one")

    def _check_running(self) -> None:
        self._check_open()
        if not self._running:
            raise gym.error.ResetNeeded("there is no car to drive: call reset()")


def periods(seconds: float) -> int:
    """How many :data:`PERIOD` a step has.

    Example:
        >>> from gvf.domain.racing.car import periods
        >>> periods(0.1)
        5
    """
    asked = seconds / PERIOD if isinstance(seconds, Real) else math.nan
    if not (1 <= asked <= 100 and abs(asked - round(asked)) < 1e-6):
        raise ValueError(f"seconds must be a multiple of .02 from .02 to 2, got {seconds!r}")
    return round(asked)


def steering(actions: ArrayLike) -> NDArray[np.float32]:
    """What the driver is told, float32[m], from actions [m, 1].

    Example:
        >>> from gvf.domain.racing.car import steering
        >>> steering([[0.5], [-7.0]])
        array([ 0.5, -1. ], dtype=float32)
    """
    numbers = np.asarray(actions, np.float32)
    if numbers.ndim != 2 or numbers.shape[1] != 1:
        raise ValueError(
            f"an action is the steering in an array of shape (1,), got shape {numbers.shape[1:]}"
        )
    if not np.isfinite(numbers).all():
        row = int(np.isfinite(numbers[:, 0]).argmin())
        raise ValueError(f"steering must be a finite number, got {numbers[row, 0]} in row {row}")
    return np.clip(numbers[:, 0], -1, 1)
