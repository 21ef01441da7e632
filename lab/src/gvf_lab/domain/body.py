"""The movement of a body through Continuous Four Rooms, as compiled kernels.

A step goes a length L along an axis and drifts sideways, in ten sub-steps,

    L = longest - spread u_1,    drift = sd sqrt(-2 log(1 - u_2)) cos(2 pi u_3),

with u uniform in [0, 1) (the drift is Gaussian by Box and Muller). After each sub-step the body's
four extreme points are looked up in the map. The first that lies in a wall ends the step, with the
body flush with that wall. The kernels are pure functions of position, action and uniform numbers.
The environment (:mod:`gvf_lab.domain.continuous_four_rooms`), rollouts
(:mod:`gvf_lab.domain.room_rollouts`) and learning loops share them.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gvf_lab.domain.four_rooms import SIDE, WALLS

RADIUS = 0.1
SUBSTEPS = 10

NOISE = {"paper": np.array([0.6, 0.2, 0.01]), "authors": np.array([0.5, 0.1, 0.001])}
"""(longest, spread, sd of drift). Lengths are .5 +- U(0, .1), and .5 - U(0, .1) for "authors"."""

LEAD_SHARE = {"paper": 0.0, "authors": 1.0 / SUBSTEPS}
"""The share of a step by which its stored state is ahead of its start. The authors' buffer holds
the simulator's own array, which has moved by one sub-step when its features are computed."""

SOLID_CELLS = np.pad(WALLS, 1, constant_values=True)
"""The map with a wall around it, bool[13, 13], because the border collides too."""

_GAP = 2.0**-40  # a distance to the wall that keeps a flush body outside in spite of rounding


def _resting_places() -> np.ndarray:
    """Compute where a body fits in each free cell: (top, left, height, width), [104, 4]."""
    places = []
    for row, column in np.argwhere(~WALLS):
        above, below = SOLID_CELLS[row, column + 1], SOLID_CELLS[row + 2, column + 1]
        left, right = SOLID_CELLS[row + 1, column], SOLID_CELLS[row + 1, column + 2]
        margin = RADIUS + _GAP
        places.append(
            (
                row + margin * above,
                column + margin * left,
                1 - margin * above - margin * below,
                1 - margin * left - margin * right,
            )
        )
    return np.array(places)


RESTING_PLACES = _resting_places()


@njit(cache=True, nogil=True)
def start_body(u_cell, u_y, u_x, resting):
    """Draw an initial position (y, x) in any free cell, anywhere in it where the body fits."""
    place = resting[int(u_cell * resting.shape[0])]
    return place[0] + u_y * place[2], place[1] + u_x * place[3]


@njit(cache=True, nogil=True, forceinline=True)
def cell_of(y, x):
    """Return the cell, 11 * row + column, of a position."""
    return SIDE * min(int(y), SIDE - 1) + min(int(x), SIDE - 1)


@njit(cache=True, nogil=True, forceinline=True)
def displacement(action, u_length, u_radius, u_angle, noise):
    """Compute the length of a step in y and x if there is no collision."""
    length = noise[0] - noise[1] * u_length
    drift = noise[2] * math.sqrt(-2.0 * math.log(1.0 - u_radius))
    drift *= math.cos(2.0 * math.pi * u_angle)
    forward = length if action == 1 or action == 2 else -length  # x grows right, y down
    return (drift, forward) if action % 2 else (forward, drift)


@njit(cache=True, nogil=True)
def move_body(y, x, action, u_length, u_radius, u_angle, solid, noise):
    """Take one step from (y, x); return the next y and x, and True if there was a collision."""
    dy, dx = displacement(action, u_length, u_radius, u_angle, noise)

    # The step can only touch a box of at most 2 x 2 cells, and these are usually free.
    top, bottom = int(min(y, y + dy) + (1.0 - RADIUS)), int(max(y, y + dy) + (1.0 + RADIUS))
    left, right = int(min(x, x + dx) + (1.0 - RADIUS)), int(max(x, x + dx) + (1.0 + RADIUS))
    if not (solid[top, left] | solid[top, right] | solid[bottom, left] | solid[bottom, right]):
        return y + dy, x + dx, False

    for substep in range(1, SUBSTEPS + 1):
        part = substep / SUBSTEPS
        new_y, new_x = y + part * dy, x + part * dx
        # The map is padded, so its indices are larger by 1.
        row, column = int(new_y + 1.0), int(new_x + 1.0)
        above, below = int(new_y + (1.0 - RADIUS)), int(new_y + (1.0 + RADIUS))
        before, after = int(new_x + (1.0 - RADIUS)), int(new_x + (1.0 + RADIUS))
        hit_above, hit_below = solid[above, column], solid[below, column]
        hit_before, hit_after = solid[row, before], solid[row, after]
        if hit_above | hit_below | hit_before | hit_after:
            if hit_above:
                new_y = above + (RADIUS + _GAP)
            elif hit_below:
                new_y = below - 1 - (RADIUS + _GAP)
            if hit_before:
                new_x = before + (RADIUS + _GAP)
            elif hit_after:
                new_x = after - 1 - (RADIUS + _GAP)
            return new_y, new_x, True
    return y + dy, x + dx, False
