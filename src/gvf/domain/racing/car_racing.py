"""CarRacing: Gymnasium's game of that name as a second simulator, for machines without TORCS.

The observation, action and information are those of :class:`gvf.domain.racing.torcs.Torcs`, so what
drives, records and learns in one does so in the other. The camera looks down on the car from above,
turned so that the car points up. Where the car is follows from the points p_i of the middle line:

    lateral = signed distance to the nearest piece p_i p_{i+1}, left positive, / half-width.

The game itself, with its physics and its drawing, is ``CarRacing-v3``, which comes with
``gvf[racing]``.
"""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import ArrayLike, NDArray

from gvf.domain.racing.car import HEIGHT, SCALE, WIDTH, Car, Frame

STEER_LOCK = 0.4
"""The largest angle of the wheels, in radians."""
GAS = 0.05
"""For each m/s that the car is too slow; twice as much brake for each that it is too fast."""
NEARBY = 12
"""Pieces of road, forwards and backwards, among which the car is looked for again."""
_CROP = (0, 200, 1000, 500)
"""Of the game's picture: left, top, width and height, above the indicators and as wide as ours."""


class CarRacing(Car):
    """A road seen from above the car, ``gvf/CarRacing-v0``.

    The observation is a grey picture, uint8[64, 128]. The action is the steering, float32[1] in
    [-1, 1], where 1 is fully to the left; what lies beyond is clipped, since a gaussian may draw
    it. Throttle and brake keep a speed. The reward is the progress along the road in metres. An
    episode never terminates, also not after a lap; it is truncated when the car is more than 2
    half-widths from the middle of the road, or slower than 1 m/s for 3 s. Every ``info`` is as in
    :class:`gvf.domain.racing.torcs.Torcs`.

    The car begins at rest on a track that the seed of the reset chooses; a seed and the same
    actions give the same episode, whatever was driven before.

    Attributes:
        draw: whether steps and resets are drawn (True). If not, they are many times faster, and
            observations are all 0.

    Args:
        seconds: of a step, a multiple of .02.
        speed: to keep, in m/s.
        render_mode: "rgb_array", or None.

    Example:
        >>> from gvf.domain.racing.car_racing import CarRacing
        >>> env = CarRacing()  # doctest: +SKIP
        >>> frame, info = env.reset(seed=0)  # doctest: +SKIP
        >>> frame, reward, terminated, truncated, info = env.step([0.1])  # doctest: +SKIP
        >>> frame.shape, info["time"]  # doctest: +SKIP
        ((64, 128), 0.1)
    """

    def __init__(
        self, seconds: float = 0.1, speed: float = 15.0, render_mode: str | None = None
    ) -> None:
        super().__init__(seconds, speed, render_mode)
        self._make_game = _game()
        self._game: Any = None

    @property
    def _running(self) -> bool:
        return self._game is not None

    def _start(self, seed: int | None) -> tuple[dict[str, Any], float]:
        # A new game each time, so that nothing can be left of the last.
        self._game = self._make_game()
        self._game.reset(seed=int(self.np_random.integers(2**31)) if seed is None else seed)
        self._road = Road(np.array(self._game.track)[:, 2:])
        self._steps = 0
        self._where = self._road.find(self._position())
        return self._info(), self._road.length

    def _drive(self, told: NDArray[np.float32], draw: bool) -> dict[str, NDArray[Any]]:
        infos = []
        for steer in told:
            for _ in range(self._periods):
                missing = self._speed - self._velocity()
                controls = -STEER_LOCK * steer, GAS * missing, -2 * GAS * missing - 0.1
                self._game.step(np.clip(controls, (-1, 0, 0), (1, 1, 1)))
            self._where = self._road.find(self._position(), self._where.piece)
            self._steps += 1
            infos.append(self._info())
        return {name: np.array([info[name] for info in infos]) for name in self._info()}

    def _info(self) -> dict[str, Any]:
        where = self._where
        # The game counts angles from pointing up, the road from pointing right.
        heading = self._game.car.hull.angle + math.pi / 2
        return {
            "to_middle": where.to_middle,
            "half_width": self._game.half_width,
            "lateral": where.to_middle / self._game.half_width,
            "angle": math.remainder(where.direction - heading, 2 * math.pi),
            "speed": self._velocity(),
            "segment": where.piece,
            "distance": where.distance,
            "time": round(self._steps * self._seconds, 9),
            "steer_lock": STEER_LOCK,
        }

    def _position(self) -> tuple[float, float]:
        x, y = self._game.car.hull.position
        return float(x), float(y)

    def _velocity(self) -> float:
        return float(self._game.car.hull.linearVelocity.length)

    def _grey(self) -> Frame:
        # The usual weights of red, green and blue in brightness.
        return (self._picture(1) @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)

    def _colour(self) -> Frame:
        return self._picture(SCALE)

    def _picture(self, scale: int) -> Frame:
        import pygame

        picture = pygame.transform.smoothscale(
            self._game.drawn().subsurface(_CROP), (scale * WIDTH, scale * HEIGHT)
        )
        return np.ascontiguousarray(pygame.surfarray.array3d(picture).swapaxes(0, 1))

    def _end(self) -> None:
        self._game = None


@dataclass(frozen=True)
class Place:
    """Where on a road something is: the nearest piece, and how far along it and to its left."""

    piece: int
    direction: float
    distance: float
    to_middle: float


class Road:
    """The middle line of a road that is closed, through points float64[m, 2].

    Example:
        >>> from gvf.domain.racing.car_racing import Road
        >>> Road([[0, 0], [10, 0], [10, 10], [0, 10]]).find((4.0, 1.0))
        Place(piece=0, direction=0.0, distance=4.0, to_middle=1.0)
    """

    def __init__(self, points: ArrayLike) -> None:
        self._points = np.asarray(points, np.float64)
        along = np.roll(self._points, -1, axis=0) - self._points
        self._lengths = np.hypot(*along.T)
        self._along = along / self._lengths[:, None]
        self._starts = np.concatenate([[0.0], self._lengths.cumsum()])
        self.length = float(self._starts[-1])

    def find(self, position: tuple[float, float], last: int | None = None) -> Place:
        """The nearest place on the road; if it was on a piece before, then near that one."""
        pieces = np.arange(len(self._points))
        if last is not None:
            # Roads come near themselves, and a car does not change from one part to another.
            pieces = np.unique(np.arange(last - NEARBY, last + NEARBY + 1) % len(pieces))
        offset = np.array(position) - self._points[pieces]
        along = self._along[pieces]
        ahead = np.clip((offset * along).sum(axis=1), 0.0, self._lengths[pieces])
        away = np.hypot(*(offset - ahead[:, None] * along).T)
        nearest = int(away.argmin())
        (x, y), (dx, dy) = offset[nearest], along[nearest]
        piece = int(pieces[nearest])
        return Place(
            piece=piece,
            direction=math.atan2(dy, dx),
            distance=float(self._starts[piece] + ahead[nearest]),
            to_middle=math.copysign(float(away[nearest]), dx * y - dy * x),
        )


def _game() -> type[Any]:
    """The class of Gymnasium's game, changed to draw only when it is asked to."""
    # Else pygame greets whoever imports it.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        # Box2D's types have no module, which Python warns of; as an error, that ends the process.
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            from gymnasium.envs.box2d import car_racing
    except DependencyNotInstalled as error:
        raise ModuleNotFoundError(
            'CarRacing needs Box2D and pygame, which are not installed: pip install "gvf[racing]"'
        ) from error

    class Game(car_racing.CarRacing):
        half_width = car_racing.TRACK_WIDTH

        def _render(self, mode: str) -> Any:
            """Nothing: the game would draw in every step of its physics."""

        def drawn(self) -> Any:
            """The whole picture, with the indicators; it needs no screen."""
            super()._render("state_pixels")
            return self.surf

    return Game
