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
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.names import known
from gvf.domain.racing import child, installation
from gvf.domain.racing.car import PERIOD, Car, Frame
from gvf.domain.racing.race import Race

CAMERAS = {"road": (0, 4), "bonnet": (0, 3), "side": (2, 0)}
"""Those of TORCS whose picture depends on nothing but where the car is; "road" is the driver's view
without the car. The ones that follow the car are left out: they move with a memory of their own."""


class Torcs(Car):
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
        super().__init__(seconds, speed, render_mode)
        if not (isinstance(timeout, Real) and 0 < timeout < math.inf):
            raise ValueError(f"timeout must be a positive number of seconds, got {timeout!r}")
        view = CAMERAS[known(camera, CAMERAS, "camera")]
        self._installation = installation.find()
        self._race = Race(
            track=track,
            kind=self._installation.kind(track),
            car=self._installation.check_car(car),
            camera=view,
            # TORCS asks its drivers once in a period.
            ticks=self._periods * round(PERIOD / child.TICK),
            speed=speed,
        )
        self._bridge = installation.bridge()
        self._timeout = timeout
        self._child: child.Child | None = None
        self._over = True

    @property
    def _running(self) -> bool:
        return self._child is not None and self._child.alive and not self._over

    @property
    def _torcs(self) -> child.Child:
        assert self._child is not None, "asked for only while it runs"
        return self._child

    def _start(self, seed: int | None) -> tuple[dict[str, Any], float]:
        if self._child is None or not self._child.alive:
            self._child = child.Child(
                self._installation, self._bridge, self._race, timeout=self._timeout
            )
        states = self._child.reset(child.GREY if self.draw else child.NOTHING)
        self._over = False
        info = {name: column.item() for name, column in _columns(states).items()}
        return info, self._child.length

    def _drive(self, told: NDArray[np.float32], draw: bool) -> dict[str, NDArray[Any]]:
        states = [np.empty(0, child.STATE)]
        for start in range(0, len(told), child.BLOCK):
            block = told[start : start + child.BLOCK]
            states.append(self._torcs.drive(block, child.GREY if draw else child.NOTHING))
            self._over = bool(states[-1]["over"][-1])
        return _columns(np.concatenate(states))

    def _grey(self) -> Frame:
        return self._torcs.grey

    def _colour(self) -> Frame:
        self._torcs.drive([], child.COLOUR)
        return self._torcs.colour

    def _end(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


def _columns(states: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """What ``info`` has, each [m], from states [m]."""
    columns = {name: states[name] for name in child.STATE.names or () if name != "over"}
    columns["segment"] = states["segment"].astype(np.int64)
    return columns | {"lateral": states["to_middle"] / states["half_width"]}
