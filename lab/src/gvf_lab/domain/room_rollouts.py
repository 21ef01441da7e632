"""Ground truth of Continuous Four Rooms: positions, and rollouts from them.

The value of a position is the mean of R returns of the target policy from there,

    G = C_1 + gamma_1 C_2 + gamma_1 gamma_2 C_3 + ...,

cut when the product of continuations falls below 1e-6. Positions are drawn as the behaviour visits
them, or by emphasis. The steps are those of :mod:`gvf_lab.domain.body`. Each state has its own
random stream, so its value does not depend on the number of states.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit

from gvf.common.arrays import Floats
from gvf.kernels import streams, thresholds, uniform
from gvf_lab.domain.body import (
    NOISE,
    RESTING_PLACES,
    SOLID_CELLS,
    cell_of,
    displacement,
    move_body,
    start_body,
)
from gvf_lab.domain.tabular import first_above

SPACING = 5000
"""Steps between the positions of a long run. At this distance positions are nearly independent: the
correlation of coordinates, and of being in a room, is about .01 for the behaviours uniform and
random-state, and .05 for random-state-weight, whose favoured actions slow the body down."""
RUN = 1000
"""Steps of the authors' runs."""
CUTOFF = 1e-6

_BLOCK = 50  # states in one compiled call; calls stay short, so that Ctrl-C works


@njit(cache=True, nogil=True)
def walk_body(mu, solid, noise, ahead, resting, stream, position, kept, cell, action, collision):
    """Fill positions [T + 1, 2], cells [T + 1], actions and collisions [T] of a body's walk.

    If `ahead` is not 0, the start of each step, moved on by that share of the step, goes to `kept`
    [T, 2].
    """
    u_cell, u_y, u_x = uniform(stream), uniform(stream), uniform(stream)
    y, x = start_body(u_cell, u_y, u_x, resting)
    for t in range(action.size):
        position[t, 0], position[t, 1] = y, x
        cell[t] = cell_of(y, x)
        a = first_above(mu, cell[t], uniform(stream))
        u1, u2, u3 = uniform(stream), uniform(stream), uniform(stream)
        if ahead > 0.0:
            dy, dx = displacement(a, u1, u2, u3, noise)
            kept[t, 0], kept[t, 1] = y + ahead * dy, x + ahead * dx
        y, x, collided = move_body(y, x, a, u1, u2, u3, solid, noise)
        action[t], collision[t] = a, collided
    position[action.size, 0], position[action.size, 1] = y, x
    cell[action.size] = cell_of(y, x)


@njit(cache=True, nogil=True)
def wander(y, x, steps, sums, stream, solid, noise):
    """Follow a policy, given by its thresholds [121, 4], for some steps; return the last y, x."""
    for _ in range(steps):
        action = first_above(sums, cell_of(y, x), uniform(stream))
        u_length, u_radius, u_angle = uniform(stream), uniform(stream), uniform(stream)
        y, x, _ = move_body(y, x, action, u_length, u_radius, u_angle, solid, noise)
    return y, x


@njit(cache=True, nogil=True)
def _long_run(out, y, x, spacing, sums, stream, solid, noise):
    for i in range(out.shape[0]):
        y, x = wander(y, x, spacing, sums, stream, solid, noise)
        out[i, 0], out[i, 1] = y, x


@njit(cache=True, nogil=True)
def _cells_after_runs(out, steps, sums, many, solid, noise, resting):
    for i in range(out.shape[0]):
        stream = many[i]
        u_cell, u_y, u_x = uniform(stream), uniform(stream), uniform(stream)
        y, x = start_body(u_cell, u_y, u_x, resting)
        y, x = wander(y, x, steps, sums, stream, solid, noise)
        out[i, 0], out[i, 1] = int(y) + uniform(stream), int(x) + uniform(stream)


@njit(cache=True, nogil=True)
def _roll_out(out, starts, sums, cumulants, continuations, cutoff, many, solid, noise):
    for i in range(out.shape[0]):
        stream = many[i]
        for j in range(out.shape[1]):
            y, x = starts[i, 0], starts[i, 1]
            total, product = 0.0, 1.0
            while product > cutoff:
                action = first_above(sums, cell_of(y, x), uniform(stream))
                u_length, u_radius, u_angle = uniform(stream), uniform(stream), uniform(stream)
                y, x, collided = move_body(y, x, action, u_length, u_radius, u_angle, solid, noise)
                total += product * cumulants[int(collided)]
                product *= continuations[int(collided)]
            out[i, j] = total


@njit(cache=True, nogil=True)
def _follow(out, weights, starts, sums, continuations, cutoff, many, solid, noise):
    for i in range(weights.size):
        stream, y, x, product = many[i], starts[i, 0], starts[i, 1], 1.0
        weights[i] = 0.0
        while product > cutoff:
            weights[i] += product
            if uniform(stream) * weights[i] < product:
                out[i, 0], out[i, 1] = y, x
            action = first_above(sums, cell_of(y, x), uniform(stream))
            u_length, u_radius, u_angle = uniform(stream), uniform(stream), uniform(stream)
            y, x, collided = move_body(y, x, action, u_length, u_radius, u_angle, solid, noise)
            product *= continuations[int(collided)]


def visited_states(behaviour: Floats, count: int, *, protocol: str, seed: Any) -> Floats:
    """Draw positions [count, 2] as a behaviour visits them.

    Protocol "paper" takes every 5000th position of one long run. Protocol "authors" takes a uniform
    point of the cell in which a run of 1000 steps ends, one run a state (the authors draw from a
    table of such cells); the body may overlap a wall there.

    Args:
        behaviour: the behaviour's probabilities, float64[121, 4].
        count: the number of states.
        protocol: "paper" or "authors".
        seed: a ``numpy.random.SeedSequence`` or anything it accepts.

    Example:
        >>> from gvf_lab.domain.room_rollouts import visited_states
        >>> import numpy as np
        >>> visited_states(np.full((121, 4), 0.25), 1000, protocol="paper", seed=0).shape
        (1000, 2)
    """
    sums, noise, out = thresholds(behaviour), NOISE[protocol], np.empty((count, 2))
    if protocol == "authors":
        many = streams(count, seed)
        for rows in _blocks(count):
            _cells_after_runs(out[rows], RUN, sums, many[rows], SOLID_CELLS, noise, RESTING_PLACES)
        return out
    stream = streams(1, seed)[0]
    y, x = start_body(uniform(stream), uniform(stream), uniform(stream), RESTING_PLACES)
    for rows in _blocks(count):
        _long_run(out[rows], y, x, SPACING, sums, stream, SOLID_CELLS, noise)
        y, x = out[rows][-1]
    return out


def followed_states(
    states: Floats, target: Floats, continuations: Floats, *, protocol: str, seed: Any
) -> tuple[Floats, Floats]:
    """Draw positions [S, 2] with weights [S] by emphasis, from positions that a behaviour visits.

    With equal interest in all states, emphasis, d_mu E[F], is the sum of where the target would be
    0, 1, 2, ... steps after a visit of the behaviour, each multiplied by the product of
    continuations up to there. So the target walks from every position, and one position of each
    walk is drawn in proportion to this product. Its weight is the sum of the products. This avoids
    the variance of the trace F itself.

    Args:
        states: positions that the behaviour visits.
        target: the target's probabilities, float64[121, 4].
        continuations: continuations without and with a collision, float64[2].
        protocol: "paper" or "authors".
        seed: a ``numpy.random.SeedSequence`` or anything it accepts.

    Example:
        From just above the border, going down ends the walk at once:

        >>> from gvf_lab.domain.room_rollouts import followed_states
        >>> import numpy as np
        >>> down, continuations = np.eye(4)[[2] * 121], np.array([0.9, 0.0])
        >>> starts = np.array([[10.8, 0.5], [9.6, 0.5]])
        >>> positions, weights = followed_states(
        ...     starts, down, continuations, protocol="paper", seed=0
        ... )
        >>> positions[0], weights.round(2)
        (array([10.8,  0.5]), array([1.  , 2.71]))
    """
    sums, noise, many = thresholds(target), NOISE[protocol], streams(len(states), seed)
    out, weights = np.empty_like(states), np.empty(len(states))
    for rows in _blocks(len(states)):
        _follow(
            out[rows], weights[rows], states[rows], sums, continuations, CUTOFF, many[rows],
            SOLID_CELLS, noise,
        )  # fmt: skip
    return out, weights


def roll_out(
    states: Floats,
    target: Floats,
    signals: tuple[Floats, Floats],
    rollouts: int,
    *,
    protocol: str,
    seed: Any,
) -> Floats:
    """Sample returns [S, rollouts] of a target policy from positions [S, 2].

    Protocol "authors" repeats the defect of the authors' rollouts, which take the first step from
    (y, y) instead of (y, x).

    Args:
        states: the positions.
        target: the policy's probabilities, float64[121, 4].
        signals: cumulants and continuations, each without and with a collision: float64[2].
        rollouts: the number of returns from each state.
        protocol: "paper" or "authors".
        seed: a ``numpy.random.SeedSequence`` or anything it accepts.

    Example:
        Always down, from just above the border and from further away:

        >>> from gvf_lab.domain.room_rollouts import roll_out
        >>> import numpy as np
        >>> states = np.array([[10.8, 0.5], [9.6, 0.5]])
        >>> down, signals = np.eye(4)[[2] * 121], (np.array([0.0, 1.0]), np.array([0.9, 0.0]))
        >>> roll_out(states, down, signals, 2, protocol="paper", seed=0)
        array([[1.  , 1.  ],
               [0.81, 0.81]])
    """
    starts = states[:, [0, 0]] if protocol == "authors" else np.ascontiguousarray(states)
    sums, noise, many = thresholds(target), NOISE[protocol], streams(len(states), seed)
    out = np.empty((len(states), rollouts))
    for rows in _blocks(len(states)):
        _roll_out(out[rows], starts[rows], sums, *signals, CUTOFF, many[rows], SOLID_CELLS, noise)
    return out


def _blocks(count: int) -> Iterator[slice]:
    return (slice(first, first + _BLOCK) for first in range(0, count, _BLOCK))
