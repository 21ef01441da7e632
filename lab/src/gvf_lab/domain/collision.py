"""Collision: a car drives towards a wall and may turn away (Ghiassian and Sutton, 2021).

        0 -- 1 -- 2 -- 3 -- 4 -- 5 -- 6 -- 7 |     actions: 0 forward, 1 turn

Episodes begin in states 0 to 3, where the car can only go forward. In states 4 to 7 the behaviour
turns away half of the time, which ends the episode. Forward in state 7 hits the wall: the reward is
1 and the episode ends. The target always goes forward, so the value of state s is .9^(7 - s).

There are six binary features for eight states, three of them 1 in each, so values can only be
approximated. They differ from run to run: run r has the representation r mod 50 of those that the
authors drew. The other task of the same authors is :mod:`gvf_lab.domain.rooms`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from gvf import GVF
from gvf.kernels import ActiveTable
from gvf.policies import Always, Table
from gvf_lab.domain.small_pictures import (
    BLUE,
    GRID,
    INK,
    ORANGE,
    PAPER,
    Image,
    blank,
    disc,
    segment,
)
from gvf_lab.domain.tabular import TabularDomain, TabularEnvironment
from gvf_lab.truth import Model

STATES, FREE, END = 8, 4, 8
"""The number of states, of those in which the car cannot turn, and the terminal state."""
FEATURES, ONES = 6, 3
ACTIONS = ("forward", "turn")
FORWARD, TURN = range(2)
CONTINUATION = 0.9
_STARTS = np.arange(FREE)


class Collision(TabularEnvironment):
    """The road as a Gymnasium environment, ``gvf/Collision-v0``.

    State 8 ends the episode: after a reward of 1 the car has hit the wall, else it has turned. In
    states 0 to 3 both actions go forward.

    Example:
        >>> from gvf_lab.domain.collision import Collision
        >>> env = Collision(render_mode="ansi")
        >>> env.reset(seed=0)
        (2, {})
        >>> env.step(0)
        (3, 0.0, False, False, {})
        >>> print(env.render())
        . . . A . . . . [.]
    """

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(model(), _STARTS, ACTIONS, render_mode)

    def _text(self) -> str:
        marks = ["A" if state == self._state else "." for state in range(END + 1)]
        return " ".join([*marks[:END], f"[{marks[END]}]"])

    def _picture(self) -> Image:
        spacing = 48
        image = blank(2 * spacing, (END + 1) * spacing)
        places = [(spacing, (state + 0.5) * spacing) for state in range(END + 1)]
        segment(image, places[0], places[-1], 2, GRID)
        for state, (y, x) in enumerate(places):
            disc(image, y, x, 17, INK if state == END else GRID)
            disc(image, y, x, 14, PAPER)
            if state == self._state:
                disc(image, y, x, 10, ORANGE if self._reward else BLUE)
        return image


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CollisionDomain(TabularDomain):
    """The domain "collision", whose features are those of the run."""

    def for_run(self, run: int, seed: int) -> CollisionDomain:
        """Return the domain with the representation ``run`` mod 50, whatever the seed."""
        return replace(self, features=_feature_map(run))


def model() -> Model:
    """Make the model: one outcome for each state and action; the terminal state is absorbing."""
    state = np.arange(END + 1)
    forward = np.minimum(state + 1, END)
    following = np.stack([forward, np.where(state < FREE, forward, END)], axis=1)[:, :, None]
    reward = np.zeros(following.shape)
    reward[STATES - 1, FORWARD] = 1
    return Model(np.ones(following.shape), following, reward, state == END)


@cache
def representations() -> NDArray[np.int32]:
    """Read the 50 representations: the features that are 1 in each state, int32[50, 8, 3].

    Example:
        >>> from gvf_lab.domain.collision import representations
        >>> representations()[0, :2]
        array([[2, 4, 5],
               [0, 1, 2]], dtype=int32)
    """
    text = files("gvf_lab.domain").joinpath("collision_features.txt").read_text("utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    rows = np.array([[list(map(int, word)) for word in line] for line in lines], np.int32)
    rows.setflags(write=False)
    return rows


def draw_representation(rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw a new representation as the authors drew theirs, int32[8, 3].

    Any three of the six features are 1 in a state. Several states may have the same three.

    Example:
        >>> from gvf_lab.domain.collision import draw_representation
        >>> import numpy as np
        >>> draw_representation(np.random.default_rng(0)).shape
        (8, 3)
    """
    order = rng.permuted(np.tile(np.arange(FEATURES, dtype=np.int32), (STATES, 1)), axis=1)
    return np.sort(order[:, :ONES], axis=1)


def features(rows: NDArray[np.int32]) -> ActiveTable:
    """Make the feature map of a representation int32[8, 3].

    The terminal state has the features of state 7. They do not matter, since its continuation is 0.
    """
    return ActiveTable(np.vstack([rows, rows[-1:]]), FEATURES)


def domain(protocol: str) -> CollisionDomain:
    """Make the road with the features of run 0; the protocols do not differ here."""
    mu = np.full((END + 1, len(ACTIONS)), 0.5)
    mu[:FREE] = 1, 0
    return CollisionDomain(
        name="collision",
        protocol=protocol,
        environment="gvf/Collision-v0",
        behaviours={"turning": Table(mu)},
        questions={"wall": GVF(Always(FORWARD, len(ACTIONS)), "reward", CONTINUATION, "wall")},
        features=_feature_map(0),
        model=model(),
        starts=_STARTS,
        weighting="visits",
    )


def _feature_map(run: int) -> ActiveTable:
    released = representations()
    return features(released[run % len(released)])
