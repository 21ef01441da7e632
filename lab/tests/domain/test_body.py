"""The body in the continuous rooms: it moves as described and never into a wall."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from maps import is_wall
from numba import njit

from gvf_lab.domain.body import NOISE, RESTING_PLACES, SOLID_CELLS, move_body, start_body

# As generators make them: smaller ones than these make no difference to 1 - u.
UNIT = st.integers(0, 2**53 - 1).map(lambda i: i / 2**53)


def overlaps(y: float, x: float) -> bool:
    extremes = [(y - 0.1, x), (y + 0.1, x), (y, x - 0.1), (y, x + 0.1)]
    return any(is_wall(*point) for point in extremes)


def moved(y, x, action, uniforms, protocol):
    u_length, u_radius, u_angle = uniforms
    return move_body(y, x, action, u_length, u_radius, u_angle, SOLID_CELLS, NOISE[protocol])


def dumb_move(y, x, action, length, drift):
    """Ten sub-steps, the four extreme points looked up one by one."""
    dy, dx = {0: (-length, drift), 1: (drift, length), 2: (length, drift), 3: (drift, -length)}[
        action
    ]
    for i in range(1, 11):
        at_y, at_x = y + i / 10 * dy, x + i / 10 * dx
        flush_y, flush_x = at_y, at_x
        if is_wall(at_y + 0.1, at_x):
            flush_y = math.floor(at_y + 0.1) - 0.1
        if is_wall(at_y - 0.1, at_x):
            flush_y = math.floor(at_y - 0.1) + 1.1
        if is_wall(at_y, at_x + 0.1):
            flush_x = math.floor(at_x + 0.1) - 0.1
        if is_wall(at_y, at_x - 0.1):
            flush_x = math.floor(at_x - 0.1) + 1.1
        if overlaps(at_y, at_x):
            return flush_y, flush_x, True
    return y + dy, x + dx, False


@pytest.mark.parametrize("protocol", ["paper", "authors"])
@given(
    start=st.tuples(UNIT, UNIT, UNIT),
    steps=st.lists(st.tuples(st.integers(0, 3), UNIT, UNIT, UNIT), max_size=30),
)
def test_no_extreme_point_of_the_body_is_ever_in_a_wall(protocol, start, steps) -> None:
    y, x = start_body(start[0], start[1], start[2], RESTING_PLACES)
    assert not overlaps(y, x)
    for action, *uniforms in steps:
        y, x, _ = moved(y, x, action, uniforms, protocol)
        assert not overlaps(y, x)


@njit
def count_overlaps(steps, rng, solid, noise, resting):
    """How often an extreme point is in a wall, in a long random walk."""
    y, x = start_body(rng.random(), rng.random(), rng.random(), resting)
    count = 0
    for _ in range(steps):
        action = int(4 * rng.random())
        y, x, _ = move_body(y, x, action, rng.random(), rng.random(), rng.random(), solid, noise)
        row, column = math.floor(y) + 1, math.floor(x) + 1
        count += (
            solid[math.floor(y - 0.1) + 1, column]
            or solid[math.floor(y + 0.1) + 1, column]
            or solid[row, math.floor(x - 0.1) + 1]
            or solid[row, math.floor(x + 0.1) + 1]
        )
    return count


@pytest.mark.parametrize("noise", [*NOISE.values(), np.array([0.6, 0.2, 0.1])])
def test_no_extreme_point_is_in_a_wall_in_two_million_steps(noise) -> None:
    # The last noise drifts ten times as far as the paper's, so that corners are met more often.
    assert (
        count_overlaps(2_000_000, np.random.default_rng(5), SOLID_CELLS, noise, RESTING_PLACES) == 0
    )


@pytest.mark.parametrize("protocol", ["paper", "authors"])
@given(
    start=st.tuples(UNIT, UNIT, UNIT),
    steps=st.lists(st.tuples(st.integers(0, 3), UNIT, UNIT, UNIT), min_size=1, max_size=10),
)
def test_the_body_moves_as_described(protocol, start, steps) -> None:
    y, x = start_body(start[0], start[1], start[2], RESTING_PLACES)
    for action, *uniforms in steps:
        if protocol == "paper":
            length, sd = 0.5 + 0.1 * (1 - 2 * uniforms[0]), 0.01
        else:
            length, sd = 0.5 - 0.1 * uniforms[0], 0.001
        normal = math.sqrt(-2 * math.log1p(-uniforms[1])) * math.cos(2 * math.pi * uniforms[2])
        expected = dumb_move(y, x, action, length, sd * normal)
        y, x, collided = moved(y, x, action, uniforms, protocol)
        assert (y, x) == pytest.approx(expected[:2], abs=1e-11)
        assert collided == expected[2]


def test_noise_has_the_stated_moments() -> None:
    uniforms = np.random.default_rng(0).random((20_000, 3))
    for protocol, low, high, sd in (("paper", 0.4, 0.6, 0.01), ("authors", 0.4, 0.5, 0.001)):
        moves = np.array([moved(3.0, 2.5, 1, u, protocol) for u in uniforms])
        length, drift = moves[:, 1] - 2.5, moves[:, 0] - 3.0
        assert low <= length.min() < low + 1e-4
        assert high - 1e-4 < length.max() <= high
        # 5 standard errors each.
        assert abs(length.mean() - (low + high) / 2) < 5 * (high - low) / math.sqrt(12 * 20_000)
        assert abs(drift.mean()) < 5 * sd / math.sqrt(20_000)
        assert abs(drift.std() - sd) < 5 * sd / math.sqrt(2 * 20_000)
