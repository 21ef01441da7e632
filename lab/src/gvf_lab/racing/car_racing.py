"""CarRacing: Gymnasium's game of that name as a second simulator, for machines without TORCS.

The observation, action and information are those of TORCS (``torcs_lockstep.Torcs``), so the same
code drives, records and learns in both. The camera looks down on the car from above and turns with
it, so that the car always points up. :mod:`.road` computes the car's place on the road. The physics
and the drawing are those of ``CarRacing-v3``, which comes with
``gvf-lab[racing]``.
"""

from __future__ import annotations

import math
import os
import warnings
from numbers import Real
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ClosedEnvironmentError, DependencyNotInstalled, ResetNeeded
from numpy.typing import ArrayLike, NDArray

from gvf.common.distribution import how_to_install
from gvf_lab.domain.domain import check_render_mode
from gvf_lab.racing.road import Road
from gvf_lab.racing.simulators import FRAME, HEIGHT, WIDTH

SCALE = 4
"""The colour picture's size, as a multiple of the observation's."""
PERIOD = 0.02
"""Seconds of one step of the game; a step of the environment is a whole number of these."""
STEER_LOCK = 0.4
"""The largest angle of the wheels, in radians."""
GAS = 0.05
"""Throttle per m/s below the wanted speed; the brake is twice that per m/s above it."""
SLOWEST = 1.0
"""Speed in m/s below which the car counts as stuck, after :data:`PATIENCE` seconds."""
PATIENCE = 3.0
FARTHEST = 2.0
"""Half-widths from the middle of the road at which an episode is truncated; the edge is at 1."""
_CROP = (0, 200, 1000, 500)
"""Left, top, width and height of the part of the game's picture above the indicators."""

Frame = NDArray[np.uint8]
Columns = dict[str, NDArray[Any]]


class CarRacing(gymnasium.Env[Frame, Any]):
    """A road seen from above the car, ``gvf/CarRacing-v0``.

    The observation is a grey picture, uint8[64, 128]. The action is the steering, float32[1] in
    [-1, 1], where 1 is fully to the left. An action outside is clipped, since a gaussian policy may
    draw one. Throttle and brake keep a speed. The reward is the progress along the road in metres.
    An episode never terminates, not even after a lap. It is truncated when the car is more than 2
    half-widths from the middle of the road, or slower than 1 m/s for 3 s.

    Every ``info`` has ``to_middle`` (metres from the middle of the road, > 0 is left of it),
    ``half_width`` (of the road, metres), ``lateral`` = to_middle / half_width, ``angle`` (direction
    of the road minus heading of the car, radians; > 0: the road points left of the car), ``speed``
    (m/s), ``segment`` (number of the piece of road), ``distance`` (metres along the road),
    ``time`` (simulated seconds since the start), ``steer_lock`` (angle of the wheels at steering 1,
    radians).

    The car starts at rest on a track that the seed of the reset chooses. The same seed and actions
    give the same episode, whatever was driven before.

    Attributes:
        draw: True if steps and resets are drawn, the default. Without drawing they are many times
            faster, and observations are all 0.

    Args:
        seconds: the length of a step, a multiple of .02.
        speed: the speed to keep, in m/s.
        render_mode: "rgb_array", or None.

    Example:
        >>> from gvf_lab.racing.car_racing import CarRacing
        >>> env = CarRacing()  # doctest: +SKIP
        >>> frame, info = env.reset(seed=0)  # doctest: +SKIP
        >>> frame, reward, terminated, truncated, info = env.step([0.1])  # doctest: +SKIP
        >>> frame.shape, info["time"]  # doctest: +SKIP
        ((64, 128), 0.1)
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self, seconds: float = 0.1, speed: float = 15.0, render_mode: str | None = None
    ) -> None:
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"])
        self._periods = _periods(seconds)
        if not (isinstance(speed, Real) and 2 <= speed <= 100):
            raise ValueError(f"speed must be from 2 to 100 m/s, got {speed!r}")
        self.observation_space = gymnasium.spaces.Box(0, 255, FRAME, np.uint8)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.draw = True
        self._seconds, self._speed = seconds, speed
        self._patience = math.ceil(PATIENCE / seconds)
        self._make_game = _game()
        self._game: Any = None
        self._closed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Frame, dict[str, Any]]:
        """Put the car at rest on a track that the seed chooses."""
        super().reset(seed=seed)
        self._check_open()
        # A new game each time, so that no state of the last one is left.
        self._game = self._make_game()
        self._game.reset(seed=int(self.np_random.integers(2**31)) if seed is None else seed)
        self._road = Road(np.array(self._game.track)[:, 2:])
        self._steps = self._slow = 0
        self._place = self._road.find(self._position())
        return self._frame(), self._info()

    def step(self, action: Any) -> tuple[Frame, float, bool, bool, dict[str, Any]]:
        """Steer for one step."""
        self._check_running()
        before = self._place.distance
        (steer,) = _steering([action])
        info = self._drive(steer)
        # The road is closed, so there are two ways along it; the car took the shorter.
        progress = math.remainder(info["distance"] - before, self._road.length)
        lost = self._slow >= self._patience or abs(info["lateral"]) > FARTHEST
        return self._frame(), progress, False, lost, info

    def replay(self, actions: ArrayLike) -> Columns:
        """Steer for many steps without drawing, whatever ``draw`` is.

        Args:
            actions: the actions in order, [m, 1].

        Returns:
            The entries of ``info`` after every action, each [m].
        """
        self._check_running()
        infos = [self._drive(steer) for steer in _steering(actions)]
        return {name: np.array([info[name] for info in infos]) for name in self._info()}

    def render(self) -> Any:
        """Draw the camera's view, in colour and larger, uint8[256, 512, 3]."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                'nothing is rendered: make the environment with render_mode="rgb_array"'
            )
            return None
        self._check_running()
        return self._picture(SCALE)

    def close(self) -> None:
        """Release the game; closing twice is no error."""
        self._closed = True
        self._game = None

    def _drive(self, steer: np.float32) -> dict[str, Any]:
        """Steer for one step and return the information after it."""
        for _ in range(self._periods):
            missing = self._speed - self._velocity()
            controls = np.array([-STEER_LOCK * steer, GAS * missing, -2 * GAS * missing - 0.1])
            self._game.step(np.clip(controls, (-1, 0, 0), (1, 1, 1)))
        self._place = self._road.find(self._position(), self._place.piece)
        self._steps += 1
        info = self._info()
        self._slow = self._slow + 1 if info["speed"] < SLOWEST else 0
        return info

    def _info(self) -> dict[str, Any]:
        place = self._place
        # The game measures angles from the y axis, the road from the x axis.
        heading = self._game.car.hull.angle + math.pi / 2
        return {
            "to_middle": place.to_middle,
            "half_width": self._game.half_width,
            "lateral": place.to_middle / self._game.half_width,
            "angle": math.remainder(place.direction - heading, 2 * math.pi),
            "speed": self._velocity(),
            "segment": place.piece,
            "distance": place.distance,
            "time": round(self._steps * self._seconds, 9),
            "steer_lock": STEER_LOCK,
        }

    def _position(self) -> tuple[float, float]:
        x, y = self._game.car.hull.position
        return float(x), float(y)

    def _velocity(self) -> float:
        return float(self._game.car.hull.linearVelocity.length)

    def _frame(self) -> Frame:
        if not self.draw:
            return np.zeros(FRAME, np.uint8)
        # The usual weights of red, green and blue for brightness.
        return (self._picture(1) @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)

    def _picture(self, scale: int) -> Frame:
        import pygame

        picture = pygame.transform.smoothscale(
            self._game.drawn().subsurface(_CROP), (scale * WIDTH, scale * HEIGHT)
        )
        return np.ascontiguousarray(pygame.surfarray.array3d(picture).swapaxes(0, 1))

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedEnvironmentError("this environment is closed: make a new one")

    def _check_running(self) -> None:
        self._check_open()
        if self._game is None:
            raise ResetNeeded("there is no car to drive: call reset()")


def _periods(seconds: float) -> int:
    """Return the number of periods, :data:`PERIOD`, in a step."""
    asked = seconds / PERIOD if isinstance(seconds, Real) else math.nan
    if not (1 <= asked <= 100 and abs(asked - round(asked)) < 1e-6):
        raise ValueError(f"seconds must be a multiple of .02 from .02 to 2, got {seconds!r}")
    return round(asked)


def _steering(actions: ArrayLike) -> NDArray[np.float32]:
    """Check and clip actions [m, 1]; return the steering, float32[m]."""
    numbers = np.asarray(actions, np.float32)
    if numbers.ndim != 2 or numbers.shape[1] != 1:
        raise ValueError(
            f"an action is the steering in an array of shape (1,), got shape {numbers.shape[1:]}"
        )
    if not np.isfinite(numbers).all():
        row = int(np.isfinite(numbers[:, 0]).argmin())
        raise ValueError(f"steering must be a finite number, got {numbers[row, 0]} in row {row}")
    return np.clip(numbers[:, 0], -1, 1)


def _game() -> type[Any]:
    """Return a subclass of Gymnasium's game that draws only on request."""
    # Without this, importing pygame prints a greeting.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        # Python warns that Box2D's types have no module; as an error, the warning ends the process.
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            from gymnasium.envs.box2d import car_racing
    except DependencyNotInstalled as error:
        raise ModuleNotFoundError(
            "CarRacing needs Box2D and pygame, which are not installed; "
            + how_to_install("gvf-lab[racing]")
        ) from error

    class Game(car_racing.CarRacing):
        half_width = car_racing.TRACK_WIDTH

        def _render(self, mode: str) -> Any:
            """Draw nothing, since the game would draw in every step of its physics."""

        def drawn(self) -> Any:
            """Draw the whole picture with the indicators; no screen is needed."""
            super()._render("state_pixels")
            return self.surf

    return Game
