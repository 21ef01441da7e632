"""Measure how often intervals of the value of a policy hold it.

It takes about a minute: ``python -m experiments judge decisions episodes`` writes two tables.
``decisions.markdown`` is about single decisions, by the rewards behind them: 1,000, 3,000 or 10,000
with 5 or 34 actions, whose rewards are 0 or 1, and rarely 1; policies and chances are drawn at
random. ``episodes.markdown`` is about episodes of a walk over ten states.
"""

from itertools import pairwise, product

import numpy as np

import gvf
import gvf_lab
from gvf.common.arrays import Floats
from gvf.judging import Estimator
from gvf.judging.held_out import HeldOut
from gvf.judging.policy_value import effective_rewards, policy_values
from gvf_lab.domain.markov_chain import model

GROUPS = (0, 3, 5, 10, 20, 50, 100, np.inf)
QUESTION = gvf.GVF(gvf.policies.Fixed([0.3, 0.7]), "reward", 0.9)
VALUES = gvf_lab.exact_values(model(), QUESTION)


def decisions(ratio: Floats, reward: Floats) -> HeldOut:
    """Return single decisions as held-out episodes."""
    n, nothing = len(ratio), np.zeros((len(ratio), 0))
    return HeldOut(
        ratio=ratio, cumulant=reward, continuation=np.zeros(n), interest=np.ones(n),
        last=np.ones(n, bool), predicted=nothing, after=nothing, part=np.zeros(n, int),
        action=np.zeros(n, int), target=nothing, estimated=np.zeros(n, bool),
    )  # fmt: skip


def of_decisions(logs: int) -> list[list[str]]:
    """Return the table of single decisions, by the effective number of rewards.

    There are so many logs of each kind.
    """
    rng, names = np.random.default_rng(0), (Estimator.PLAIN, Estimator.SELF_NORMALISED)
    kinds = product((1000, 3000, 10_000), (0.002, 0.005, 0.02, 0.1), ((5, 1.0), (34, 0.3)))
    found = []
    for count, chance, (actions, spread) in kinds:
        mu = rng.dirichlet(np.full(actions, 3.0))
        pi = rng.dirichlet(np.full(actions, spread))
        rewarded = np.minimum(chance * rng.gamma(2.0, 0.5, size=actions), 1.0)
        for _ in range(logs):
            action = rng.choice(actions, size=count, p=mu)
            reward = (rng.random(count) < rewarded[action]).astype(np.float64)
            held = decisions(np.asarray((pi / mu)[action], np.float64), reward)
            values = policy_values(held, np.zeros(count), "doubly-robust", 0.95)
            holds = [values[name].low <= pi @ rewarded <= values[name].high for name in names]
            found.append([effective_rewards(held), *holds])
    rows = np.array(found)
    lines = [["effective rewards", "logs", "plain", "self-normalised"]]
    for least, most in pairwise(GROUPS):
        inside = rows[(rows[:, 0] >= least) & (rows[:, 0] < most)]
        label = f"{least:g} to {most:g}" if np.isfinite(most) else f"{least:g} and more"
        lines.append([label, f"{len(inside):,}", *shares(inside[:, 1:])])
    return lines


class Guess:
    """A candidate that knows the values up to a factor."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def predict(self, states: np.ndarray) -> Floats:
        """Predict for a batch of states [m]: [m]."""
        return self.factor * VALUES[states]


def walks(count: int, rng: np.random.Generator) -> gvf.Transitions:
    """Return episodes that begin anywhere, go left or right, and end beyond both ends."""
    rows = []
    for _ in range(count):
        state = int(rng.integers(1, 9))
        while state not in (0, 9):
            action = int(rng.random() < 0.4)
            after = state + 2 * action - 1
            rows.append((state, action, float(after == 9), after in (0, 9)))
            state = after
    state, action, reward, ended = map(np.array, zip(*rows, strict=True))
    return gvf.Transitions(
        state=state, action=action, reward=reward, next_state=state + 2 * action - 1,
        terminated=ended, behaviour_probability=np.where(action, 0.4, 0.6),
    )  # fmt: skip


def of_episodes(logs: int) -> list[list[str]]:
    """Return the table of episodes."""
    many = walks(20_000, np.random.default_rng(1))
    truth = {
        Estimator.DOUBLY_ROBUST: VALUES[1:9].mean(),
        Estimator.CONSTANT: VALUES[many.state].mean(),
    }
    lines = [["episodes", "doubly robust", "constant"]]
    for episodes in (10, 20, 60, 200):
        found = []
        for seed in range(logs):
            log = walks(episodes, np.random.default_rng([episodes, seed]))
            learners = {"near": Guess(0.8), "nothing": Guess(0.0)}
            made = gvf.compare_learners(learners, log, question=QUESTION, replicates=2, seed=seed)
            found.append([made.values[n].low <= v <= made.values[n].high for n, v in truth.items()])
        lines.append([str(episodes), *shares(np.array(found))])
    return lines


def shares(holds: np.ndarray) -> list[str]:
    """Return the share of each column as cells of a table; nothing of no rows."""
    if not len(holds):
        return [""] * holds.shape[1]
    return [f"{100 * share:.0f} %" for share in holds.mean(axis=0)]
