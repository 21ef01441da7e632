"""The place of a car on a road: the nearest point of the middle line through points p_i.

    to_middle = signed distance to the nearest piece p_i p_{i+1}, left positive.

:mod:`.car_racing` needs it, since the game gives only the car's coordinates in the plane.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

NEARBY = 12
"""The number of pieces, ahead and behind the car's last one, among which it is searched for."""


@dataclass(frozen=True)
class Place:
    """A place on a road: piece, direction, distance along the road, and distance to the middle."""

    piece: int
    direction: float
    distance: float
    to_middle: float


class Road:
    """The middle line of a closed road, through points float64[m, 2].

    Example:
        >>> from gvf_lab.racing.road import Road
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
        """Find the nearest place on the road; if the last piece is given, only near that one."""
        pieces = np.arange(len(self._points))
        if last is not None:
            # Two stretches of a road may be close, and a car does not jump between them.
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
