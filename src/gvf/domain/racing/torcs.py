"""The real TORCS as an environment: the driver's view in, steering out.

The simulator stands still between steps, then goes on for exactly as long as a step is (.1 s, 50
steps of its physics), and repeats itself bit for bit: the same actions after a reset give the same
states and pictures, in any process, and whether or not the steps before were drawn. So a state is
reached again by :meth:`Torcs.replay`, at many times the speed. The child process is
:mod:`gvf.domain.racing.child`; :mod:`gvf.domain.racing.car_racing` has the same interface for
machines without TORCS.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from gvf.domain.domain import check_render_mode, known
from gvf.domain.racing import child, installation
from gvf.domain.racing.car import FARTHEST, PATIENCE, SLOWEST, steering
from gvf.domain.racing.race import HEIGHT, WIDTH, Race

CAMERAS = {"road": (0, 4), "bonnet": (0, 3), "side": (2, 0)}
"""Those of TORCS whose picture depends on nothing but where the car is; "road" is the driver's view
without the car. The ones that follow the car are left out: they move with a memory of their own."""
ROBOT_TICKS = 10
"""TORCS asks its drivers every 10 ticks of .002 s: a step is a whole number of such questions."""

Frame = NDArray[np.uint8]


class Torcs(gym.Env[Frame, Any]):
    """The road as the driver sees it, ``gvf/Torcs-v0``.

    The observation is a grey picture, uint8[64, 128]. The action is the steering, float32[1] in
    [-1, 1], where 1 is fully to the left; what lies beyond is clipped, since a gaussian may draw
    it. TORCS asks for it every .02 s, so it may act that much later. Gears, throttle and brake keep
    a speed. The reward is the progress along the road in metres. An episode never terminates; it is
    truncated when the car is more than 2 half-widths from the middle of the road, or slower than
    1 m/s for 3 s.

    Every ``info`` has ``to_middle`` (metres from the middle of the road, > 0 is left of it),
    ``half_width`` (of the road, metres), ``lateral`` = to_middle / half_width, ``angle`` (direction
    of the road minus heading of the car, radians; > 0: the road is turned to the left), ``speed``
    (m/s), ``segment`` (number of the piece of road), ``distance`` (metres along the road from the
    starting line), ``time`` (simulated seconds since the start), ``steer_lock`` (angle of the
    wheels at steering 1, radians).

    A car always begins at rest, on the grid a hundred metres before the starting line: the seed of
    a reset changes nothing. TORCS starts at the first reset. If it dies or hangs, a step raises
    ``RuntimeError``, and the next reset starts it again.

    Attributes:
        draw: whether steps and resets are drawn (True). If not, they are many times faster, and
            observations are all 0.

    Args:
        track: the name of a road or oval in TORCS.
        car: the name of a car in TORCS.
        camera: "road" (without the car), "bonnet" (a little of it in sight) or "side".
        seconds: of a step, a multiple of .02.
        speed: to keep, in m/s.
        render_mode: "rgb_array", or None.
        timeout: seconds after which TORCS counts as hanging.

    Example:
        >>> from gvf.domain.racing.torcs import Torcs
        >>> with Torcs(track="e-track-1") as env:  # doctest: +SKIP
        ...     frame, info = env.reset()
        ...     frame, reward, terminated, truncated, info = env.step([0.1])
        >>> frame.shape, info["time"]  # doctest: +SKIP
        ((64, 128), 0.1)
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self,
        track: str = "e-track-1",
        car: str = "car1-trb1",
        camera: str = "road",
        seconds: float = 0.1,
        speed: float = 15.0,
        render_mode: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        self._child: child.Child | None = None
        self._closed = False
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"])
        if not 2 <= speed <= 100:
            raise ValueError(f"speed must be from 2 to 100 m/s, got {speed}")
        if not (timeout > 0 and math.isfinite(timeout)):
            raise ValueError(f"timeout must be a positive number of seconds, got {timeout}")
        view = CAMERAS[known(camera, CAMERAS, "camera")]
        self._installation = installation.find()
        self._race = Race(
            track=track,
            kind=self._installation.kind(track),
            car=self._installation.check_car(car),
            camera=view,
            ticks=_ticks(seconds),
            speed=speed,
        )
        self._bridge = installation.bridge()
        self._timeout = timeout
        self._patience = math.ceil(PATIENCE / seconds)
        self.draw = True
        self.observation_space = Box(0, 255, (HEIGHT, WIDTH), np.uint8)
        self.action_space = Box(-1.0, 1.0, (1,), np.float32)
        self._slow = 0
        self._distance = 0.0
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Frame, dict[str, Any]]:
        """The car on the grid, at rest. The seed changes nothing."""
        super().reset(seed=seed)
        self._check_open()
        if self._child is None or not self._child.alive:
            self._child = child.Child(
                self._installation, self._bridge, self._race, timeout=self._timeout
            )
        states = self._child.reset(self._drawing)
        self._slow, self._over, self._distance = 0, False, float(states["distance"][0])
        return self._frame(self._child), _last(states)

    def step(self, action: Any) -> tuple[Frame, float, bool, bool, dict[str, Any]]:
        """Steer for one step."""
        running = self._running()
        before = self._distance
        states = self._drive(running, steering([action]), self._drawing)
        info = _last(states)
        # The road is closed: of the two ways along it, the shorter.
        progress = math.remainder(self._distance - before, running.length)
        truncated = self._over or self._slow >= self._patience or abs(info["lateral"]) > FARTHEST
        return self._frame(running), progress, False, truncated, info

    def replay(self, actions: ArrayLike) -> dict[str, NDArray[Any]]:
        """Steer for many steps, undrawn, whatever ``draw`` says.

        With ``draw`` off, m calls of :meth:`step` do the same, more slowly.

        Args:
            actions: one after the other, [m, 1].

        Returns:
            The entries of ``info`` after every action, each [m].
        """
        running = self._running()
        told = steering(actions)
        states = [
            self._drive(running, told[start : start + child.BLOCK], child.NOTHING)
            for start in range(0, len(told), child.BLOCK)
        ]
        return _columns(np.concatenate([np.empty(0, child.STATE), *states]))

    def render(self) -> Any:
        """What the camera sees, in colour and larger, uint8[256, 512, 3]."""
        if self.render_mode is None:
            gym.logger.warn(
                'nothing is rendered: make the environment with render_mode="rgb_array"'
            )
            return None
        running = self._running()
        running.drive([], child.COLOUR)
        return running.colour

    def close(self) -> None:
        """End TORCS and remove what it left. Again is no error."""
        self._closed = True
        if self._child is not None:
            self._child.close()
            self._child = None

    @property
    def _drawing(self) -> int:
        return child.GREY if self.draw else child.NOTHING

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedEnvironmentError("this environment is closed: make a new one")

    def _running(self) -> child.Child:
        self._check_open()
        if self._child is None or not self._child.alive or self._over:
            raise ResetNeeded("TORCS has no race to go on with: call reset()")
        return self._child

    def _drive(
        self, running: child.Child, steering: NDArray[np.float32], draw: int
    ) -> NDArray[Any]:
        """States [m] after m actions, at most a block of them."""
        states = running.drive(steering, draw)
        for speed in states["speed"].tolist():
            self._slow = self._slow + 1 if abs(speed) < SLOWEST else 0
        self._distance, self._over = float(states["distance"][-1]), bool(states["over"][-1])
        return states

    def _frame(self, running: child.Child) -> Frame:
        if self.draw and not self._over:
            return running.grey
        return np.zeros((HEIGHT, WIDTH), np.uint8)


def _ticks(seconds: float) -> int:
    """The steps of the physics in a step of the environment."""
    asked = seconds / (ROBOT_TICKS * child.TICK)
    if not (1 <= asked <= 100 and abs(asked - round(asked)) < 1e-6):
        raise ValueError(f"seconds must be a multiple of .02 from .02 to 2, got {seconds}")
    return ROBOT_TICKS * round(asked)


def _columns(states: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """What ``info`` has, each [m], from states [m]."""
    columns = {name: states[name] for name in child.STATE.names or () if name != "over"}
    columns["segment"] = states["segment"].astype(np.int64)
    return columns | {"lateral": states["to_middle"] / states["half_width"]}


def _last(states: NDArray[Any]) -> dict[str, Any]:
    """The ``info`` of the last of some states."""
    return {name: column.item() for name, column in _columns(states[-1:]).items()}
