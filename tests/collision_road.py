"""A road that ends at a wall, with features that cannot represent the values, and fixed points.

Episodes begin in states 0 to 3. From state 4 on the behaviour turns away half of the time, which
ends the episode; forward in state 7 hits the wall, with reward 1. The target goes forward.
"""

from itertools import product
from typing import Any

import gymnasium
import numpy as np
from charts_reference import REPRESENTATIONS, Floats, collision_features

import gvf

FORWARD, TURN, END = 0, 1, 8
QUESTION = gvf.GVF(gvf.policies.Always(FORWARD, actions=2), "reward", 0.9)
BEHAVIOUR = gvf.policies.Table(np.r_[4 * [[1.0, 0.0]], 5 * [[0.5, 0.5]]])
SHARES = np.array([2, 4, 6, 8, 8, 4, 2, 1]) / 35
"""The behaviour's visits to the eight states in the long run."""
_ACTIVE = [[int(feature) for feature in word] for word in REPRESENTATIONS[0].split()]
FEATURES = gvf.features.ActiveTable(np.array([*_ACTIVE, _ACTIVE[-1]]), 6)
"""The terminal state has the features of state 7, which do not matter."""
X = np.vstack([collision_features(0), collision_features(0)[-1:]])


class Road(gymnasium.Env[Any, Any]):
    """The road as an environment."""

    observation_space = gymnasium.spaces.Discrete(9)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = int(self.np_random.integers(4))
        return self.state, {}

    def step(self, action):
        turns, hits = self.state >= 4 and action == TURN, self.state == 7 and action == FORWARD
        self.state = END if turns or hits else self.state + 1
        return self.state, float(hits), turns or hits, False, {}


def enumerated() -> gvf.Transitions:
    """Every episode as often as the behaviour makes it in 64: a start, then where it turns."""
    rows = []
    for start, (turn, copies) in product(range(4), [(4, 8), (5, 4), (6, 2), (7, 1), (8, 1)]):
        for _ in range(copies):
            last = min(turn, 7)
            for state in range(start, last + 1):
                turns, hits = state == turn, state == 7 and turn == 8
                ends = turns or hits
                rows.append((state, int(turns), float(hits), 8 if ends else state + 1, ends))
    names = ("state", "action", "reward", "next_state", "terminated")
    columns = map(np.array, zip(*rows, strict=True))
    return gvf.Transitions(**dict(zip(names, columns, strict=True)))


def fixed(trace_decay: float, emphatic: bool) -> Floats:
    """The values at which the expected update of TD(lambda) or emphatic TD(lambda) is 0."""
    onward = 0.9 * np.eye(8, k=1)
    follow_on = np.linalg.solve(np.eye(8) - onward.T, SHARES)
    m = trace_decay * SHARES + (1 - trace_decay) * follow_on if emphatic else SHARES
    z = np.linalg.solve(np.eye(8) - trace_decay * onward.T, m[:, None] * X[:8])
    weights = np.linalg.lstsq(z.T @ (X[:8] - onward @ X[:8]), z[7], rcond=1e-12)[0]
    return X[:8] @ weights
