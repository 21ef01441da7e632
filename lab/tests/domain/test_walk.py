"""Walks of the continuous rooms: the columns of each step that learners see."""

import numpy as np
import pytest

from gvf.policies.policy import thresholds
from gvf.sampling import xoshiro
from gvf_lab import domain
from gvf_lab.domain import body

STEPS = 2000


def step_by_step(rooms, mu):
    """The walk again, one step after the other: where each began, and how far it wanted to go."""
    stream = xoshiro.streams(1, np.random.SeedSequence(7))[0]
    u_cell, u_y, u_x = (xoshiro.uniform(stream) for _ in range(3))
    y, x = body.start_body(u_cell, u_y, u_x, body.RESTING_PLACES)
    began, wanted = np.empty((STEPS + 1, 2)), np.empty((STEPS, 2))
    for t in range(STEPS):
        began[t] = y, x
        row = thresholds(mu)[body.cell_of(y, x)]
        action = int(np.searchsorted(row, xoshiro.uniform(stream), side="right"))
        u1, u2, u3 = (xoshiro.uniform(stream) for _ in range(3))
        wanted[t] = body.displacement(action, u1, u2, u3, rooms.noise)
        y, x, _ = body.move_body(y, x, action, u1, u2, u3, body.SOLID_CELLS, rooms.noise)
    began[STEPS] = y, x
    return began, wanted


@pytest.mark.parametrize(("protocol", "share"), [("paper", 0.0), ("authors", 0.1)])
def test_the_authors_buffer_holds_states_that_are_one_sub_step_ahead(protocol, share):
    rooms = domain.get("continuous-four-rooms", protocol)
    assert isinstance(rooms, domain.ContinuousDomain)
    policy = rooms.behaviour("uniform")
    seen = rooms.walk(policy, ["down"], STEPS, np.random.SeedSequence(7))
    began, wanted = step_by_step(rooms, rooms.table(policy))
    kept = began[:-1] + share * wanted
    np.testing.assert_array_equal(seen.x, rooms.features(kept))
    np.testing.assert_array_equal(seen.x_next, rooms.features(began[1:]))
    np.testing.assert_array_equal(seen.next_state, began[1:])
    ahead = (seen.x != rooms.features(began[:-1])).any(axis=1).mean()
    assert ahead == 0.0 if protocol == "paper" else ahead > 0.5
