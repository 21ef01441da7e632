"""Rooms and High Variance Rooms: eight questions about one walk (Ghiassian and Sutton, 2021).

Map, states and actions are those of :mod:`gvf_lab.domain.four_rooms`. Each of the four rooms has
two hallways, and for each of them there is a question: how soon is the hallway reached on the
shortest way from the room,

    C = 1 on entering the hallway, else 0;    gamma = .9 if the next state is active, else 0.

A question is active in the cells of its room and in the room's other hallway. Its target goes to
the hallway, by either action if two shorten the way. In other states the probabilities of the
target are 0, so ratios are 0 and nothing is learned. The value of a state that is d steps away is
.9^(d - 1).

The walk begins in the lower left corner and has no episodes. In Rooms the behaviour is uniform. In
High Variance Rooms it goes left or right with probability .97 in one cell of each room, so that
ratios reach 100. Places are written (x, y), with (0, 0) in the lower left corner.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf import GVF, Transitions
from gvf.common.arrays import Bools, Floats
from gvf.kernels import ActiveTable
from gvf.policies import DiscretePolicy, Table, Uniform
from gvf_lab.domain import four_rooms
from gvf_lab.domain.four_rooms import ACTIONS, LEFT, RIGHT, SIDE, MapEnvironment
from gvf_lab.domain.tabular import TabularDomain
from gvf_lab.truth import Model

CONTINUATION = 0.9
HALLWAYS = {"H0": (5, 1), "H1": (1, 5), "H2": (5, 8), "H3": (8, 4)}
"""The place of each hallway."""
ROOMS = {
    "SW": ((0, 0), (4, 4)),
    "NW": ((0, 6), (4, 10)),
    "NE": ((6, 5), (10, 10)),
    "SE": ((6, 0), (10, 3)),
}
"""The lower left and the upper right cell of each room."""
WAYS = (
    ("SW", "H0"),
    ("SW", "H1"),
    ("NW", "H1"),
    ("NW", "H2"),
    ("NE", "H2"),
    ("NE", "H3"),
    ("SE", "H3"),
    ("SE", "H0"),
)
"""The room and the hallway of each question."""
PULLED = {(1, 1): LEFT, (1, 8): LEFT, (8, 1): RIGHT, (8, 8): RIGHT}
"""The places where the behaviour of High Variance Rooms nearly always takes one action."""
PULL = 0.97
SPLITS = (9, 6, 3)
"""The last coordinate of the lower tiles of each tiling, in both directions."""


def state_of(x: int, y: int) -> int:
    """Return the state of a place."""
    return SIDE * (SIDE - 1 - y) + x


START = state_of(0, 0)


class Rooms(MapEnvironment):
    """The rooms as an environment, ``gvf/Rooms-v0`` and ``gvf/HighVarianceRooms-v0``.

    The two ids are the same environment, because the tasks differ in the behaviour only. The reward
    is 1 on entering a hallway.

    Example:
        >>> from gvf_lab.domain.rooms import Rooms
        >>> env = Rooms(render_mode="ansi")
        >>> env.reset(seed=0)
        (110, {})
        >>> env.step(0)
        (99, 0.0, False, False, {})
        >>> print(env.render()[-23:])
        A..........
        .....#.....
    """

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(model(), np.array([START]), ACTIONS, render_mode)


@dataclass(frozen=True)
class Entering:
    """The cumulant of a question: 1 on entering a hallway, else 0.

    Example:
        >>> import gvf
        >>> from gvf_lab.domain.rooms import Entering
        >>> Entering("H0")(gvf.Transitions(state=[103, 104], next_state=[104, 104]))
        array([1., 0.])
    """

    hallway: str

    def __call__(self, transitions: Transitions) -> Floats:
        """Compute the cumulants, float64[m]."""
        goal = state_of(*HALLWAYS[self.hallway])
        entered = (transitions["next_state"] == goal) & (transitions["state"] != goal)
        return entered.astype(np.float64)


@dataclass(frozen=True)
class Inside:
    """The continuation of a question: .9 if it is active in the next state, else 0.

    Example:
        >>> import gvf
        >>> from gvf_lab.domain.rooms import Inside
        >>> Inside("SW", "H0")(gvf.Transitions(next_state=[103, 104]))
        array([0.9, 0. ])
    """

    room: str
    hallway: str

    def __call__(self, transitions: Transitions) -> Floats:
        """Compute the continuations, float64[m]."""
        active = active_states(self.room, self.hallway)
        return np.where(active[transitions["next_state"]], CONTINUATION, 0.0)


@dataclass(frozen=True, repr=False)
class Towards(DiscretePolicy):
    """The target of a question: the shortest way from a room, or its other hallway, to a hallway.

    In other states all probabilities are 0, and the policy cannot act.

    Example:
        >>> from gvf_lab.domain.rooms import Towards, state_of
        >>> Towards("SW", "H0").probabilities([state_of(0, 0), state_of(4, 1), state_of(9, 9)])
        array([[0.5, 0.5, 0. , 0. ],
               [0. , 1. , 0. , 0. ],
               [0. , 0. , 0. , 0. ]])
    """

    room: str
    hallway: str
    actions = len(ACTIONS)

    def probabilities(self, states: Any) -> Floats:
        """Return the probability of every action in each state: float64[m, 4]."""
        return _shortest_ways(self.room, self.hallway)[np.asarray(states)]

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw one action for each state, int64[m]."""
        active = active_states(self.room, self.hallway)[np.asarray(states)]
        if not active.all():
            state = np.asarray(states)[~active][0]
            raise ValueError(f"{self} has no action in state {state}, where it is not active")
        return super().sample(states, rng=rng)


def model() -> Model:
    """Make the model: the moves of Four Rooms, with reward 1 on entering a hallway."""
    moves = four_rooms.model()
    halls = [state_of(*place) for place in HALLWAYS.values()]
    stays = moves.next_state == np.arange(SIDE * SIDE)[:, None, None]
    entered = np.isin(moves.next_state, halls) & ~stays
    return replace(moves, reward=entered.astype(np.float64))


@cache
def active_states(room: str, hallway: str) -> Bools:
    """Return True for the states in which a question is active, bool[121].

    Example:
        >>> from gvf_lab.domain.rooms import active_states
        >>> int(active_states("NE", "H2").sum())
        31
    """
    (left, bottom), (right, top) = ROOMS[room]
    (other,) = (end for inside, end in WAYS if inside == room and end != hallway)
    active = np.zeros(SIDE * SIDE, bool)
    for x in range(left, right + 1):
        for y in range(bottom, top + 1):
            active[state_of(x, y)] = True
    active[state_of(*HALLWAYS[other])] = True
    active.setflags(write=False)
    return active


@cache
def _shortest_ways(room: str, hallway: str) -> Floats:
    """Compute the probabilities of the target in every state, float64[121, 4]."""
    following, active = four_rooms.model().next_state[:, :, 0], active_states(room, hallway)
    distance = np.full(SIDE * SIDE, np.inf)
    distance[state_of(*HALLWAYS[hallway])] = 0
    for _ in range(SIDE * SIDE):
        distance[active] = 1 + distance[following[active]].min(axis=1)
    shorter = (distance[following] < distance[:, None]) & active[:, None]
    rows = shorter / np.maximum(shorter.sum(axis=1, keepdims=True), 1)
    rows.setflags(write=False)
    return rows


def features() -> ActiveTable:
    """Make the features: three tilings of 2 x 2 tiles, which ignore walls.

    The tiles of a tiling are numbered lower left, lower right, upper left, upper right.

    Example:
        >>> from gvf_lab.domain.rooms import features, state_of
        >>> features()([state_of(0, 0), state_of(8, 4), state_of(10, 10)])
        array([[ 0,  4,  8],
               [ 0,  5, 11],
               [ 3,  7, 11]], dtype=int32)
    """
    row, x = np.divmod(np.arange(SIDE * SIDE), SIDE)
    y = SIDE - 1 - row
    tiles = [4 * k + (x > last) + 2 * (y > last) for k, last in enumerate(SPLITS)]
    return ActiveTable(np.stack(tiles, axis=1), 4 * len(SPLITS))


def pulled() -> Floats:
    """Make the behaviour of High Variance Rooms, float64[121, 4]."""
    rows = np.full((SIDE * SIDE, len(ACTIONS)), 0.25)
    for place, action in PULLED.items():
        rows[state_of(*place)] = (1 - PULL) / 3
        rows[state_of(*place), action] = PULL
    return rows


def domain(protocol: str) -> TabularDomain:
    """Make Rooms with its eight questions; the protocols do not differ here."""
    questions = {
        f"{room}-{hallway}": GVF(
            Towards(room, hallway), Entering(hallway), Inside(room, hallway), f"{room}-{hallway}"
        )
        for room, hallway in WAYS
    }
    return TabularDomain(
        name="rooms",
        protocol=protocol,
        environment="gvf/Rooms-v0",
        behaviours={"uniform": Uniform(len(ACTIONS))},
        questions=questions,
        features=features(),
        model=model(),
        starts=np.array([START]),
        counted=four_rooms.FREE,
        active={f"{room}-{hallway}": active_states(room, hallway) for room, hallway in WAYS},
        weighting="visits",
    )


def high_variance(protocol: str) -> TabularDomain:
    """Make High Variance Rooms: the same questions and features, with another behaviour."""
    return replace(
        domain(protocol),
        name="high-variance-rooms",
        environment="gvf/HighVarianceRooms-v0",
        behaviours={"pulled": Table(pulled())},
        pairs=(),
    )
