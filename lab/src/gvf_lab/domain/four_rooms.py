"""Four Rooms: a grid of 11 x 11 cells with walls (the paper's Figure 1).

The state is 11 * row + column, with row 0 on top; actions are up, right, down, left. A move into a
wall or off the grid is a collision and leaves the state unchanged. The questions ask how soon there
is a collision:

    C = 1 and gamma = 0 on a collision, else C = 0 and gamma = .9.

Episodes never end, and begin in any of the 104 free cells. Map, cells and questions are shared with
:mod:`gvf_lab.domain.continuous_four_rooms`, map and moves with :mod:`gvf_lab.domain.rooms`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf import GVF, Transitions
from gvf.common.arrays import Floats
from gvf.features import OneHot
from gvf.policies import Always, Favour, Table, Uniform
from gvf_lab.domain.small_pictures import BLUE, ORANGE, Image, board, disc, text_map
from gvf_lab.domain.tabular import TabularDomain, TabularEnvironment
from gvf_lab.truth import Model

MAP = """
.....#.....
.....#.....
...........
.....#.....
.....#.....
#.####.....
.....###.##
.....#.....
.....#.....
...........
.....#.....
"""
WALLS: NDArray[np.bool_] = np.array([[mark == "#" for mark in line] for line in MAP.split()])
SIDE = len(WALLS)
FREE = np.flatnonzero(~WALLS)
"""The states that are not walls, int64[104]."""

ACTIONS = ("up", "right", "down", "left")
UP, RIGHT, DOWN, LEFT = range(4)
MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])
"""(rows, columns) of each action."""

# fmt: off
SPECIAL = np.array([
    (5, 6), (3, 7), (5, 8), (2, 10), (1, 9), (5, 1), (7, 0), (4, 1), (10, 7), (0, 1), (9, 0),
    (0, 4), (3, 6), (9, 10), (1, 8), (5, 4), (8, 3), (2, 5), (3, 0), (2, 1), (6, 4), (2, 8),
    (4, 5), (9, 8), (1, 0),
])
# fmt: on
"""Cells (row, column) in which the behaviour "random-state" rarely goes down; two are walls."""

CONTINUATION = 0.9


class MapEnvironment(TabularEnvironment):
    """An environment on the map, in whose pictures the agent is orange when the reward is 1."""

    def _text(self) -> str:
        return text_map(WALLS, *divmod(self._state, SIDE))

    def _picture(self) -> Image:
        cell = 40
        image = board(WALLS, cell)
        row, column = divmod(self._state, SIDE)
        colour = ORANGE if self._reward == 1 else BLUE
        disc(image, (row + 0.5) * cell, (column + 0.5) * cell, 0.3 * cell, colour)
        return image


class FourRooms(MapEnvironment):
    """The rooms as a Gymnasium environment, ``gvf/FourRooms-v0``.

    The reward is 1 on a collision, which is also in ``info["collision"]``.

    Example:
        >>> from gvf_lab.domain.four_rooms import FourRooms
        >>> env = FourRooms(render_mode="ansi")
        >>> env.reset(seed=0)
        (80, {'collision': False})
        >>> env.step(1)
        (81, 0.0, False, False, {'collision': False})
        >>> env.step(3)
        (80, 0.0, False, False, {'collision': False})
        >>> print("|" + env.render().splitlines()[7])
        |...A.#.....
    """

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(model(), FREE, ACTIONS, render_mode)

    def _information(self) -> dict[str, Any]:
        return {"collision": self._reward == 1}


def model() -> Model:
    """Make the model: one outcome for each state and action, with reward 1 for a collision."""
    solid = np.pad(WALLS, 1, constant_values=True)
    row, column = np.divmod(np.arange(SIDE * SIDE)[:, None], SIDE)
    to_row, to_column = row + MOVES[:, 0], column + MOVES[:, 1]
    collides = solid[to_row + 1, to_column + 1]
    stay, move = np.broadcast_to(SIDE * row + column, collides.shape), SIDE * to_row + to_column
    following = np.where(collides, stay, move)[:, :, None]
    return Model(
        probability=np.ones(following.shape),
        next_state=following,
        reward=collides.astype(np.float64)[:, :, None],
        terminal=np.zeros(SIDE * SIDE, bool),
    )


def until_collision(transitions: Transitions) -> Floats:
    """Return the continuation: 0 on a collision (when the reward is 1), else .9."""
    return np.where(transitions["reward"] == 1, 0.0, CONTINUATION)


def questions() -> dict[str, GVF]:
    """Make the questions: how soon there is a collision, going down or mostly down."""
    targets = {"down": Always(DOWN, 4), "favoured-down": Favour(DOWN, 0.9, 4)}
    return {name: GVF(pi, "reward", until_collision, name) for name, pi in targets.items()}


def seldom_down(probability: float) -> Floats:
    """Make the behaviour "random-state", uniform except in the special cells: a table [121, 4]."""
    rows = np.full((SIDE * SIDE, 4), 0.25)
    special = SIDE * SPECIAL[:, 0] + SPECIAL[:, 1]
    rows[special] = (1 - probability) / 3
    rows[special, DOWN] = probability
    return rows


def domain(protocol: str) -> TabularDomain:
    """Make the rooms with two behaviours and two questions; the protocols do not differ here."""
    behaviours = {"uniform": Uniform(4), "random-state": Table(seldom_down(0.05))}
    return TabularDomain(
        name="four-rooms",
        protocol=protocol,
        environment="gvf/FourRooms-v0",
        behaviours=behaviours,
        questions=questions(),
        features=OneHot(SIDE * SIDE),
        model=model(),
        starts=FREE,
        counted=FREE,
    )


def left_column(protocol: str) -> TabularDomain:
    """Make the same rooms with errors over the left column only, as in the authors' talk."""
    left = FREE[FREE % SIDE == 0]
    return replace(domain(protocol), name="four-rooms-left-column", counted=left)
