"""Continuous Four Rooms: a body that moves through the map of Four Rooms (Figure 2).

The state is the position (y, x) of a body of radius .1; actions up, right, down, left move it by
about .5. As in :mod:`gvf_lab.domain.four_rooms`, the questions ask how soon there is a collision,

    C = 1 and gamma = 0 on a collision, else C = 0 and gamma = .9,

and policies depend only on the cell of the body. Its movement is in :mod:`gvf_lab.domain.body`, the
estimation of values in :mod:`gvf_lab.domain.room_rollouts`. Protocol "authors" has their noise,
which only shortens steps; their truth, whose rollouts begin in the wrong place; and in studies
their stored states, which are one sub-step ahead.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gvf import Transitions
from gvf.common.arrays import Floats
from gvf.common.checks import set_frozen
from gvf.common.gymnasium import gym
from gvf.common.part_names import known
from gvf.features import TileCoder
from gvf.kernels import streams, thresholds
from gvf.policies import DiscretePolicy, Table, Uniform
from gvf_lab.cache import remembered
from gvf_lab.domain import body
from gvf_lab.domain.domain import (
    PROTOCOLS,
    CellDomain,
    Signals,
    Trajectory,
    check_action,
    check_render_mode,
)
from gvf_lab.domain.four_rooms import ACTIONS, SIDE, SPECIAL, WALLS, questions, seldom_down
from gvf_lab.domain.room_rollouts import (
    CUTOFF,
    RUN,
    SPACING,
    followed_states,
    roll_out,
    visited_states,
    walk_body,
)
from gvf_lab.domain.small_pictures import BLUE, ORANGE, board, disc, text_map
from gvf_lab.truth import TrueValues

RARE_DOWN = {"paper": 0.1, "authors": 0.05}
"""The probability of "down" in the special cells under the behaviour "random-state"."""
WEIGHT_SEED = 3
"""The seed of the probabilities of "random-state-weight"; the authors' own are lost. The largest
ratio to "down" is 123 in this draw; the median over draws is 144."""
TRUTH_VERSION = 1
"""The version of cached truths; raise it when the movement or the rollouts change."""


class ContinuousFourRooms(gym.Env[Floats, Any]):
    """The continuous rooms as a Gymnasium environment, ``gvf/ContinuousFourRooms-v0``.

    The reward is 1 on a collision, which is also in ``info["collision"]``. Episodes never end.
    Every step and every reset takes three uniform numbers from ``np_random``.

    Args:
        protocol: "paper" (steps of .5 plus or minus up to .1, drift of sd .01) or "authors" (steps
            of .5 minus up to .1, drift of sd .001).
        render_mode: "ansi", "rgb_array", or None.

    Example:
        >>> from gvf_lab.domain.continuous_four_rooms import ContinuousFourRooms
        >>> env = ContinuousFourRooms()
        >>> position, info = env.reset(seed=0)
        >>> position.round(2), info
        (array([7.27, 3.04]), {'collision': False})
        >>> position, reward, terminated, truncated, info = env.step(2)
        >>> position.round(2), reward, info
        (array([7.87, 3.06]), 0.0, {'collision': False})
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(self, protocol: str = "paper", render_mode: str | None = None) -> None:
        self.protocol = known(protocol, PROTOCOLS, "protocol")
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"])
        self.observation_space = gym.spaces.Box(0.0, float(SIDE), (2,), np.float64)
        self.action_space = gym.spaces.Discrete(len(ACTIONS))
        self._position: tuple[float, float] | None = None
        self._collision = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin in a random position where the body fits."""
        super().reset(seed=seed)
        self._position = body.start_body(*self._uniforms(), body.RESTING_PLACES)
        self._collision = False
        return np.array(self._position), {"collision": False}

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Act once."""
        chosen = check_action(action, ACTIONS)
        if self._position is None:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        noise = body.NOISE[self.protocol]
        y, x, collision = body.move_body(
            *self._position, chosen, *self._uniforms(), body.SOLID_CELLS, noise
        )
        self._position, self._collision = (y, x), bool(collision)
        information = {"collision": self._collision}
        return np.array(self._position), float(self._collision), False, False, information

    def render(self) -> Any:
        """Return a picture uint8[height, width, 3] or a text, depending on ``render_mode``."""
        if self.render_mode is None:
            gym.logger.warn('nothing is rendered: make the environment with render_mode="ansi"')
            return None
        if self._position is None:
            raise gym.error.ResetNeeded("call reset() before render()")
        y, x = self._position
        if self.render_mode == "ansi":
            return text_map(WALLS, int(y), int(x))
        cell = 60
        image = board(WALLS, cell)
        disc(image, y * cell, x * cell, body.RADIUS * cell, ORANGE if self._collision else BLUE)
        return image

    def _uniforms(self) -> tuple[float, float, float]:
        first, second, third = self.np_random.random(3).tolist()
        return first, second, third


@dataclass(frozen=True, repr=False)
class CellTable(DiscretePolicy):
    """A policy that depends only on the cell, 11 * row + column, of a position (y, x).

    Args:
        cells: a policy over cells.

    Example:
        >>> from gvf_lab.domain.continuous_four_rooms import CellTable
        >>> from gvf.policies import Table
        >>> import numpy as np
        >>> rows = np.full((121, 4), 0.25)
        >>> rows[12] = 0.7, 0.1, 0.1, 0.1
        >>> policy = CellTable(Table(rows))
        >>> policy
        CellTable(Table(121 states, 4 actions))
        >>> policy.probability(states=np.array([[0.5, 0.5], [1.2, 1.9]]), actions=[0, 0])
        array([0.25, 0.7 ])
    """

    cells: Table

    def __post_init__(self) -> None:
        set_frozen(self, actions=self.cells.actions)

    def probabilities(self, states: ArrayLike) -> Floats:
        """Return the probability of every action at positions [m, 2], float64[m, A]."""
        return self.cells.probabilities(cells_of(states))

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw one action for each state, int64[m]."""
        return self.cells.sample(cells_of(states), rng=rng)


def cells_of(states: ArrayLike) -> NDArray[np.int64]:
    """Return the cells of positions [m, 2], int64[m].

    Example:
        >>> from gvf_lab.domain.continuous_four_rooms import cells_of
        >>> cells_of([[0.5, 10.9], [1.0, 0.0]])
        array([10, 11])
    """
    positions = np.asarray(states, np.float64)
    if positions.ndim != 2 or positions.shape[1] != 2:
        raise ValueError(f"positions (y, x) are a batch [m, 2], got shape {positions.shape}")
    inside = ((positions >= 0) & (positions <= SIDE)).all(axis=1)
    if not inside.all():
        row = int(inside.argmin())
        raise ValueError(f"the position in row {row}, {positions[row]}, is not in [0, {SIDE}]^2")
    row, column = np.minimum(positions.astype(np.int64), SIDE - 1).T
    return SIDE * row + column


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ContinuousDomain(CellDomain):
    """A domain whose values are sampled in states that the behaviour visits.

    Attributes:
        noise: (longest step, spread, sd of the drift), float64[3], for the kernels.
        weighting: the weights of the states in errors: "visits" of the behaviour, or "emphasis",
            the visits times the mean of the follow-on trace of emphatic TD(0).

    Example:
        >>> from gvf_lab.domain import get
        >>> rooms = get("continuous-four-rooms")
        >>> rooms.largest_ratio("down", "random-state")
        10.0
        >>> rooms.signals("down")
        (array([0., 1.]), array([0.9, 0. ]))
    """

    noise: Floats
    weighting: str = "visits"

    def __post_init__(self) -> None:
        super().__post_init__()
        known(self.weighting, ("visits", "emphasis"), "weighting")

    @property
    def generation(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """2 for "authors", since its stored states are one sub-step ahead; else 1."""
        return 2 if self.protocol == "authors" else 1

    @property
    def cells(self) -> Floats:
        """The centre of every cell, float64[121, 2]."""
        return np.argwhere(np.ones_like(WALLS)).astype(np.float64) + 0.5

    @property
    def reachable(self) -> NDArray[np.bool_]:
        """True for cells that a body can be in, bool[121]."""
        return ~WALLS.ravel()

    def signals(self, question: str) -> tuple[Floats, Floats]:
        """Return cumulant and continuation, each without and with a collision, float64[2]."""
        asked = self.question(question)
        both = Transitions(reward=np.array([0.0, 1.0]))
        return asked.cumulants(both), asked.continuations(both)

    def _interests(
        self, question: str, position: Floats, action: NDArray[np.int64]
    ) -> Floats | None:
        asked = self.question(question)
        if asked.interest is None:
            return None
        walk = Transitions(state=position[:-1], action=action, next_state=position[1:])
        return asked.interests(walk)

    def walk(
        self,
        policy: DiscretePolicy,
        questions: Sequence[str],
        steps: int,
        seed: np.random.SeedSequence,
    ) -> Trajectory:
        """Let a policy walk for some steps."""
        mu, stream = self.table(policy), streams(1, seed)[0]
        action, collision = np.empty(steps, np.int64), np.empty(steps, np.int64)
        position, cell = np.empty((steps + 1, 2)), np.empty(steps + 1, np.int64)
        ahead = body.LEAD_SHARE[self.protocol]
        kept = np.empty((steps, 2)) if ahead else position
        walk_body(
            thresholds(mu), body.SOLID_CELLS, self.noise, ahead, body.RESTING_PLACES,
            stream, position, kept, cell, action, collision,
        )  # fmt: skip
        signals = {}
        for name in questions:
            cumulant, continuation = self.signals(name)
            ratio = self.ratios_along(name, mu, cell[:-1], action)
            signals[name] = Signals(
                ratio,
                cumulant[collision],
                continuation[collision],
                self._interests(name, position, action),
            )
        seen = self.features(position)
        x = self.features(kept) if ahead else seen[:-1]
        return Trajectory(x, seen[1:], action, position[1:], signals)

    def truth(
        self,
        question: str,
        behaviour: str | None = None,
        *,
        states: int = 1000,
        rollouts: int = 100,
        seed: int = 0,
        folder: str | os.PathLike[str] | None = None,
    ) -> TrueValues:
        """Sample the values of a question, or read them from a file if they were sampled before.

        Args:
            question: the question's name.
            behaviour: the name of the behaviour whose visits determine the positions.
            states: the number of positions.
            rollouts: the number of returns whose mean is the value of a position.
            seed: the seed of positions and rollouts.
            folder: the folder of the file; by default ``GVF_CACHE_DIR`` if that environment
                variable is set, else ``gvf`` in the user's cache folder.
        """
        if behaviour is None:
            raise ValueError(
                "errors are averaged over positions that a behaviour visits: name one of "
                f"{', '.join(map(repr, self.behaviours))}"
            )
        for name, number in (("states", states), ("rollouts", rollouts)):
            if number < 1:
                raise ValueError(f"{name} must be at least 1, got {number}")
        mu, pi = self.table(self.behaviour(behaviour)), self.table(self.target(question))
        cumulant, continuation = self.signals(question)
        key = {
            "version": TRUTH_VERSION,
            "protocol": self.protocol,
            "behaviour": mu,
            "target": pi,
            "cumulant": cumulant,
            "continuation": continuation,
            "map": WALLS,
            "noise": self.noise,
            "states": states,
            "rollouts": rollouts,
            "spacing": RUN if self.protocol == "authors" else SPACING,
            "cutoff": CUTOFF,
            "seed": seed,
        }
        by_emphasis = self.weighting == "emphasis"
        if by_emphasis:
            key["weighting"] = self.weighting

        def sample() -> dict[str, NDArray[Any]]:
            for_states, for_rollouts, for_walks = np.random.SeedSequence(seed).spawn(3)
            positions = visited_states(mu, states, protocol=self.protocol, seed=for_states)
            weights: dict[str, NDArray[Any]] = {}
            if by_emphasis:
                positions, weights["weights"] = followed_states(
                    positions, pi, continuation, protocol=self.protocol, seed=for_walks
                )
            returns = roll_out(
                positions,
                pi,
                (cumulant, continuation),
                rollouts,
                protocol=self.protocol,
                seed=for_rollouts,
            )
            spread = returns.std(axis=1, ddof=1) if rollouts > 1 else np.full(states, math.nan)
            noise = spread / math.sqrt(rollouts)
            arrays = {"states": positions, "values": returns.mean(axis=1), "noise": noise}
            return arrays | weights

        arrays = remembered(self.name, key, sample, folder)
        positions, values, noise = (arrays[name] for name in ("states", "values", "noise"))
        return TrueValues(positions, values, noise, arrays.get("weights"))


def random_weights() -> Floats:
    """Compute the behaviour "random-state-weight" as a table [121, 4].

    It is uniform, except that in each special cell a random action has probability .5 (1 + U) and
    the others share the rest. U may be close to 1, so over all draws ratios have no bound, but in
    this one draw they have.
    """
    # NumPy guarantees that the numbers of a seed sequence never change.
    words = np.random.SeedSequence(WEIGHT_SEED).generate_state(2 * len(SPECIAL), np.uint64)
    uniforms = (words >> np.uint64(11)) * 2.0**-53
    rows = np.full((SIDE * SIDE, 4), 0.25)
    for (row, column), (which, weight) in zip(SPECIAL, uniforms.reshape(-1, 2), strict=True):
        favoured = 0.5 * (1 + weight)
        rows[SIDE * row + column] = (1 - favoured) / 3
        rows[SIDE * row + column, int(4 * which)] = favoured
    return rows


def domain(protocol: str) -> ContinuousDomain:
    """Make the continuous rooms with three behaviours and two questions."""
    behaviours = {
        "uniform": Uniform(4),
        "random-state": CellTable(Table(seldom_down(RARE_DOWN[protocol]))),
        "random-state-weight": CellTable(Table(random_weights())),
    }
    features = TileCoder([0.0, 0.0], [SIDE, SIDE], tiles=8, tilings=64)
    return ContinuousDomain(
        name="continuous-four-rooms",
        protocol=protocol,
        environment="gvf/ContinuousFourRooms-v0",
        behaviours=behaviours,
        questions=questions(),
        features=features,
        arguments={"protocol": protocol},
        noise=body.NOISE[protocol],
    )
