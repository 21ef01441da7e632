"""A small world without loops, whose trajectories can all be listed with their probabilities."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from gvf.policies import Table
from gvf.question import GVF
from gvf.transition import Transitions

STATES, ACTIONS, LAYERS = 6, 2, 3
"""States 2 l and 2 l + 1 are in layer l; from the last layer episodes end."""

rng = np.random.default_rng(3)
MU = rng.dirichlet([2.0, 2.0], STATES)
PI = rng.dirichlet([1.0, 1.0], STATES)
CHANCE = rng.dirichlet([1.0, 1.0], (STATES, ACTIONS))
"""The probabilities of the two states of the next layer, [S, A, 2]; in the last, of two ends."""
CUMULANT = rng.normal(size=(STATES, ACTIONS, 2))
CONTINUATION = rng.uniform(0.5, 1.0, (STATES, ACTIONS, 2))

question = GVF(
    Table(PI),
    cumulant=lambda t: CUMULANT[t.state, t.action, t.next_state % 2],
    continuation=lambda t: CONTINUATION[t.state, t.action, t.next_state % 2],
)


def values() -> np.ndarray:
    """The value of every state, from the last layer back."""
    v = np.zeros(STATES + 2)
    for state in reversed(range(STATES)):
        for action, outcome in product(range(ACTIONS), range(2)):
            after = 2 * (state // 2 + 1) + outcome
            weight = PI[state, action] * CHANCE[state, action, outcome]
            later = CONTINUATION[state, action, outcome] * v[after] * (state < STATES - 2)
            v[state] += weight * (CUMULANT[state, action, outcome] + later)
    return v


def trajectories(start: int, layers: int = LAYERS) -> Iterator[tuple[float, Transitions]]:
    """All trajectories from a state, with their probabilities under mu, cut after some layers."""
    first = start // 2
    for choices in product(product(range(ACTIONS), range(2)), repeat=layers - first):
        state, chance, rows = start, 1.0, []
        for layer, (action, outcome) in enumerate(choices, first):
            after = 2 * (layer + 1) + outcome
            chance *= MU[state, action] * CHANCE[state, action, outcome]
            rows.append((state, action, after, layer == LAYERS - 1, MU[state, action]))
            state = after
        columns = map(np.array, zip(*rows, strict=True))
        names = ("state", "action", "next_state", "terminated", "behaviour_probability")
        yield chance, Transitions(**dict(zip(names, columns, strict=True)))
