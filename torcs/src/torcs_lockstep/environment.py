# SPDX-License-Identifier: GPL-2.0-or-later

"""TORCS as a Gymnasium environment: the observation is the driver's view, the action is steering.

The simulator waits between steps, and a step advances it by an exact time (.1 s, 50 steps of its
physics). It is deterministic to the last bit: the same actions after a reset give the same states
and pictures, in any process, whether or not earlier steps were drawn. So :meth:`Torcs.replay`
reaches a state again, at many times the speed. :mod:`torcs_lockstep.child` is the process in which
TORCS runs.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from numpy.typing import ArrayLike, NDArray

from torcs_lockstep import installation
from torcs_lockstep.child import Child
from torcs_lockstep.exchange import BLOCK, COLOUR, FRAME, GREY, NOTHING, STATE, TICK
from torcs_lockstep.race import Race

CAMERAS = {"road": (0, 4), "bonnet": (0, 3), "side": (2, 0)}
"""Cameras of TORCS whose picture depends only on the car's place; "road" is the driver's view
without the car. Cameras that follow the car are left out, since they depend on earlier steps."""
PERIOD = 0.02
"""Seconds between two calls of a driver in TORCS; a step is a whole number of these."""
SLOWEST = 1.0
"""Speed in m/s below which the car counts as stuck, after :data:`PATIENCE` seconds."""
PATIENCE = 3.0
FARTHEST = 2.0
"""Half-widths from the middle of the road at which an episode is truncated; the edge is at 1."""

Frame = NDArray[np.uint8]
Columns = dict[str, NDArray[Any]]


class Torcs(gymnasium.Env[Frame, Any]):
    """The road as the driver sees it, ``torcs_lockstep:Torcs-v0``.

    The observation is a grey picture, uint8[64, 128]. The action is the steering, float32[1] in
    [-1, 1], where 1 is fully to the left. An action outside is clipped, since a gaussian policy may
    draw one. TORCS reads the steering every .02 s, so an action may take effect that much later.
    Gears, throttle and brake keep a speed. The reward is the progress along the road in metres. An
    episode never terminates. It is truncated when the car is more than 2 half-widths from the
    middle of the road, or slower than 1 m/s for 3 s.

    Every ``info`` has ``to_middle`` (metres from the middle of the road, > 0 is left of it),
    ``half_width`` (of the road, metres), ``lateral`` = to_middle / half_width, ``angle`` (direction
    of the road minus heading of the car, radians; > 0: the road points left of the car), ``speed``
    (m/s), ``segment`` (number of the piece of road), ``distance`` (metres along the road from the
    starting line), ``time`` (simulated seconds since the start), ``steer_lock`` (angle of the
    wheels at steering 1, radians).

    The car always starts at rest, on the grid a hundred metres before the starting line; the seed
    of a reset has no effect. TORCS starts at the first reset. If it dies or hangs, a step raises
    ``RuntimeError``, and the next reset starts it again.

    Attributes:
        draw: True if steps and resets are drawn, the default. Without drawing they are many times
            faster, and observations are all 0.

    Args:
        track: the name of a road or oval in TORCS.
        car: the name of a car in TORCS.
        camera: "road" (without the car), "bonnet" (with a little of the car) or "side".
        seconds: the length of a step, a multiple of .02.
        speed: the speed to keep, in m/s.
        render_mode: "rgb_array", or None.
        timeout: the seconds after which TORCS counts as hanging.

    Example:
        >>> from torcs_lockstep import Torcs
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
        timeout: float = 9.0,
    ) -> None:
        if render_mode is not None:
            _check_name("render_mode", render_mode, self.metadata["render_modes"])
        self.render_mode = render_mode
        asked = periods(seconds)
        if not (isinstance(speed, Real) and 2 <= speed <= 100):
            raise ValueError(f"speed must be from 2 to 100 m/s, got {speed!r}")
        if not (isinstance(timeout, Real) and 0 < timeout < math.inf):
            raise ValueError(f"timeout must be a positive number of seconds, got {timeout!r}")
        _check_name("camera", camera, CAMERAS)
        self.observation_space = gymnasium.spaces.Box(0, 255, FRAME, np.uint8)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.draw = True
        self._installation = installation.find()
        self._race = Race(
            track=track,
            kind=self._installation.kind(track),
            car=self._installation.check_car(car),
            camera=CAMERAS[camera],
            ticks=asked * round(PERIOD / TICK),
            speed=speed,
        )
        self._bridge = installation.bridge()
        self._timeout = timeout
        self._patience = math.ceil(PATIENCE / seconds)
        self._slow, self._distance = 0, 0.0
        self._child: Child | None = None
        self._over, self._closed = True, False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Frame, dict[str, Any]]:
        """Put the car at rest on the grid."""
        super().reset(seed=seed)
        self._check_open()
        if self._child is None or not self._child.alive:
            self._child = Child(self._installation, self._bridge, self._race, self._timeout)
        state = self._child.reset(GREY if self.draw else NOTHING)
        self._over = False
        info = _last(_columns(state))
        self._slow, self._distance = 0, info["distance"]
        return self._frame(), info

    def step(self, action: Any) -> tuple[Frame, float, bool, bool, dict[str, Any]]:
        """Steer for one step."""
        before = self._distance
        info = _last(self._advance([action], draw=self.draw))
        # The road is closed, so there are two ways along it; the car took the shorter.
        progress = math.remainder(self._distance - before, self._running_child().length)
        lost = self._slow >= self._patience or abs(info["lateral"]) > FARTHEST
        return self._frame(), progress, False, lost or self._over, info

    def replay(self, actions: ArrayLike) -> Columns:
        """Steer for many steps without drawing, whatever ``draw`` is.

        With ``draw`` off, m calls of :meth:`step` do the same, more slowly.

        Args:
            actions: the actions in order, [m, 1].

        Returns:
            The entries of ``info`` after every action, each [m].
        """
        return self._advance(actions, draw=False)

    def render(self) -> Any:
        """Draw the camera's view, in colour and larger, uint8[256, 512, 3]."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                'nothing is rendered: make the environment with render_mode="rgb_array"'
            )
            return None
        self._check_running()
        child = self._running_child()
        child.drive([], COLOUR)
        return child.colour

    def close(self) -> None:
        """End TORCS; closing twice is no error."""
        self._closed = True
        if self._child is not None:
            self._child.close()
            self._child = None

    def _advance(self, actions: ArrayLike, *, draw: bool) -> Columns:
        """Execute actions [m, 1] and return ``info`` after each, in columns [m]."""
        self._check_running()
        steered, drawing = steering(actions), GREY if draw else NOTHING
        states = [np.empty(0, STATE)]
        for start in range(0, len(steered), BLOCK):
            states.append(self._running_child().drive(steered[start : start + BLOCK], drawing))
            self._over = bool(states[-1]["over"][-1])
        columns = _columns(np.concatenate(states))
        for speed in columns["speed"].tolist():
            self._slow = self._slow + 1 if abs(speed) < SLOWEST else 0
        if len(steered):
            self._distance = float(columns["distance"][-1])
        return columns

    def _frame(self) -> Frame:
        if not self.draw or self._over:
            return np.zeros(FRAME, np.uint8)
        return self._running_child().grey

    def _running_child(self) -> Child:
        assert self._child is not None, "asked for only while it runs"
        return self._child

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedEnvironmentError("this environment is closed: make a new one")

    def _check_running(self) -> None:
        self._check_open()
        if self._child is None or not self._child.alive or self._over:
            raise ResetNeeded("there is no car to drive: call reset()")


def _check_name(what: str, name: str, known: Any) -> None:
    if name not in known:
        raise ValueError(f"unknown {what}: {name!r}; known are {', '.join(map(repr, known))}")


def _columns(states: NDArray[Any]) -> Columns:
    """Make the entries of ``info``, each [m], from states STATE[m]."""
    columns = {name: states[name] for name in STATE.names or () if name != "over"}
    columns["segment"] = states["segment"].astype(np.int64)
    return columns | {"lateral": states["to_middle"] / states["half_width"]}


def _last(columns: Columns) -> dict[str, Any]:
    """Return the last row of columns."""
    return {name: column[-1].item() for name, column in columns.items()}


def periods(seconds: float) -> int:
    """Return the number of periods, :data:`PERIOD`, in a step.

    Example:
        >>> from torcs_lockstep.environment import periods
        >>> periods(0.1)
        5
    """
    asked = seconds / PERIOD if isinstance(seconds, Real) else math.nan
    if not (1 <= asked <= 100 and abs(asked - round(asked)) < 1e-6):
        raise ValueError(f"seconds must be a multiple of .02 from .02 to 2, got {seconds!r}")
    return round(asked)


def steering(actions: ArrayLike) -> NDArray[np.float32]:
    """Check and clip actions [m, 1]; return the steering, float32[m].

    Example:
        >>> from torcs_lockstep.environment import steering
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
