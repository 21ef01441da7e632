"""Five states, as a random stream and as a chain, with every correction and every update."""

import gymnasium
import numpy as np

import gvf

TARGET = gvf.policies.Table([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5], [0.0, 1.0], [0.6, 0.4]])
BEHAVIOUR = gvf.policies.Table([[0.5, 0.5], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3], [0.25, 0.75]])
QUESTION = gvf.GVF(TARGET, "reward", 0.9)
LANES = (0.11, 0.3)

CORRECTIONS = [
    gvf.corrections.IS(),
    gvf.corrections.NormIS(2.5),
    gvf.corrections.VTrace(1.0),
    gvf.corrections.WISMinibatch(),
    gvf.corrections.WISBuffer(),
    gvf.corrections.WISOptimal(),
    gvf.corrections.IR(),
    gvf.corrections.BCIR(),
    gvf.corrections.Interpolated(0.4),
    gvf.corrections.BCInterpolated(0.4),
    gvf.corrections.OnPolicy(),
]
UPDATES = {
    "sgd": (gvf.updates.TD(LANES), {"kind": "sgd"}),
    "rmsprop": (gvf.updates.TD(LANES, gvf.updates.RMSProp()), {"kind": "rmsprop"}),
    "adam": (gvf.updates.TD(LANES, gvf.updates.Adam()), {"kind": "adam"}),
    "incremental": (gvf.updates.IncrementalTD(LANES), {"kind": "incremental"}),
    "wis_td": (gvf.updates.WISTD(u0=5.0, eta=LANES), {"kind": "wis_td", "u0": 5.0}),
    "sarsa": (gvf.updates.Sarsa(LANES), {"kind": "sgd"}),
    "expected_sarsa": (
        gvf.updates.ExpectedSarsa(LANES, gvf.updates.RMSProp()),
        {"kind": "rmsprop"},
    ),
    "tdc": (gvf.updates.TDC(LANES, secondary=0.5), {"kind": "tdc", "ratio": 0.5, "beta": 0.0}),
    "tdrc": (gvf.updates.TDRC(LANES), {"kind": "tdc", "ratio": 1.0, "beta": 1.0}),
}


def stream(steps, seed):
    """Random transitions that the behaviour could have made."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        s = rng.integers(5)
        a = BEHAVIOUR.sample([s], rng=rng)[0]
        yield s, a, rng.normal(), rng.integers(5), rng.random() < 0.2


def chain_values(policy, gamma, states=5):
    """True values of a chain: left, right; reward 1 on leaving to the right; ends at both ends."""
    p = policy.probabilities(np.arange(states))
    transition, reward = np.zeros((states, states)), np.zeros(states)
    for s in range(states):
        if s > 0:
            transition[s, s - 1] = p[s, 0]
        if s < states - 1:
            transition[s, s + 1] = p[s, 1]
        else:
            reward[s] = p[s, 1]
    return np.linalg.solve(np.eye(states) - gamma * transition, reward)


def chain_visits(policy):
    """The share of steps that a policy spends in each state, float64[5]; starts are uniform."""
    p = policy.probabilities(np.arange(5))
    moves = np.diag(p[1:, 0], -1) + np.diag(p[:-1, 1], 1)
    moves += (1 - moves.sum(axis=1, keepdims=True)) / 5
    return np.linalg.matrix_power(moves, 1000)[0]


def chain_stream(policy, steps, seed, states=5):
    """Transitions of the chain, restarted uniformly."""
    rng = np.random.default_rng(seed)
    columns = {name: [] for name in ("state", "action", "reward", "next_state", "terminated")}
    s = rng.integers(states)
    for _ in range(steps):
        a = policy.sample([s], rng=rng)[0]
        after = s + (1 if a else -1)
        terminated = not 0 <= after < states
        row = (s, a, float(after == states), min(max(after, 0), states - 1), terminated)
        for name, value in zip(columns, row, strict=True):
            columns[name].append(value)
        s = rng.integers(states) if terminated else after
    return gvf.Transitions(**columns)


CHAIN = gvf.GVF(gvf.policies.Fixed([0.25, 0.75]), "reward", 0.9)
CHAIN_BEHAVIOUR = gvf.policies.Fixed([0.6, 0.4])


class Chain(gymnasium.Env):
    """The five-state chain of the tests as an environment."""

    observation_space = gymnasium.spaces.Discrete(5)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = int(self.np_random.integers(5))
        return self.state, {}

    def step(self, action):
        after = self.state + (1 if action else -1)
        terminated = not 0 <= after < 5
        self.state = min(max(after, 0), 4)
        return self.state, float(after == 5), terminated, False, {}
