"""Random problems with known truth: logs, questions, features, and the true error of predictions.

A problem is drawn by its number alone. Errors are over the states that the behaviour visits, in
proportion to its visits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import gymnasium
import numpy as np

import gvf
import gvf_lab
from gvf.common.arrays import Array, Floats
from gvf_lab.domain import TabularDomain, get
from gvf_lab.worlds import cartpole_tiles, leaning, mean_squared_error

KINDS = ("chain", "rooms", "CartPole")
HALLWAYS = [11 * 2 + 5, 11 * 9 + 5, 11 * 5 + 1, 11 * 6 + 8]
"""The cells between the four rooms."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A log, a question, and what is true.

    Attributes:
        kind: the world.
        log: the log.
        question: the question.
        features: the features of the learners.
        error: a function of predictions [S] in ``states`` that returns the true mean squared error.
        states: the states whose values are known.
        tilings: the number of active features; step sizes are divided by it.
        about: what was drawn, in words.
    """

    kind: str
    log: gvf.Log
    question: gvf.GVF
    features: gvf.features.FeatureMap
    error: Callable[[Floats], float]
    states: Array
    tilings: int
    about: str


def problem(number: int) -> Problem:
    """Draw a problem by its number; the three kinds take turns."""
    kind = KINDS[number % len(KINDS)]
    rng = np.random.default_rng([20, number])
    return cartpole(rng, number) if kind == "CartPole" else tabular(kind, rng)


def tabular(kind: str, rng: np.random.Generator) -> Problem:
    """Draw a problem of the chain, whose episodes end, or of Four Rooms, where they are cut."""
    domain = get("markov-chain" if kind == "chain" else "four-rooms")
    assert isinstance(domain, TabularDomain)
    count = int(rng.choice([25, 50, 100, 200]))
    continuation, noise = float(rng.choice([0.8, 0.9, 0.95])), float(rng.choice([0.0, 0.1, 0.3]))
    if kind == "chain":
        right = rng.uniform([0.25, 0.6], [0.6, 0.95])  # of behaviour and target
        mu, pi = (gvf.policies.Fixed([1 - p, p]) for p in right)
        question = gvf.GVF(pi, noisy(lambda t: t.reward), continuation)
        limit, about = 100, f"right {right[0]:.2f} / {right[1]:.2f}"
    else:
        direction, share = int(rng.integers(4)), float(rng.uniform(0.4, 0.9))
        mu, pi = (
            gvf.policies.Fixed(rng.dirichlet([4.0] * 4)),
            gvf.policies.Favour(direction, share, 4),
        )
        to_hallway = bool(rng.integers(2))

        def reached(transitions: gvf.Transitions) -> Floats:
            """Return 1 on a collision, or on entering a hallway."""
            if to_hallway:
                return np.isin(transitions.next_state, HALLWAYS).astype(float)
            return transitions.reward

        question = gvf.GVF(
            pi, noisy(reached), lambda t: np.where(reached(t) == 1, 0.0, continuation)
        )
        limit = 40
        aim = "hallway" if to_hallway else "collision"
        about = f"{aim}, direction {direction} with {share:.2f}"
    log = walks(domain, mu, count, limit, noise, rng)
    values, weights = gvf_lab.exact_values(domain.model, question), visited(domain, mu, limit)
    states = np.flatnonzero(weights)
    weights = weights[states]
    return Problem(
        kind,
        log,
        question,
        gvf.features.OneHot(len(values)),
        lambda given: float(weights @ (given - values[states]) ** 2),
        states,
        1,
        f"{count} episodes, continuation {continuation}, noise {noise}, {about}",
    )


def noisy(signal: Callable[[gvf.Transitions], Floats]) -> Callable[[gvf.Transitions], Floats]:
    """Add the log's noise to a cumulant; a model has none."""
    return lambda t: signal(t) + (t.noise if "noise" in t else 0.0)


def walks(
    domain: TabularDomain,
    mu: gvf.policies.DiscretePolicy,
    count: int,
    limit: int,
    noise: float,
    rng: np.random.Generator,
) -> gvf.Log:
    """Walk through a world where each action has one outcome, for at most `limit` steps."""
    model, state = domain.model, rng.choice(domain.starts, size=count)
    walking, rows = np.arange(count), []
    for step in range(limit):
        action = mu.sample(state, rng=rng)
        after = model.next_state[state, action, 0]
        rows.append({
            "episode": walking,
            "step": np.full(len(walking), step),
            "state": state,
            "action": action,
            "reward": model.reward[state, action, 0],
            "noise": noise * rng.normal(size=len(walking)),
            "next_state": after,
            "terminated": model.terminal[after],
            "behaviour_probability": mu.probability(state, action),
        })  # fmt: skip
        going = ~model.terminal[after]
        walking, state = walking[going], after[going]
    whole = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    order = np.lexsort((whole["step"], whole["episode"]))
    return gvf.read_log({name: column[order] for name, column in whole.items()}, quiet=True)


def visited(domain: TabularDomain, mu: gvf.policies.DiscretePolicy, limit: int) -> Floats:
    """Compute the share of each state among those that such episodes visit, float64[S]."""
    model = domain.model
    policy = mu.probabilities(np.arange(len(model.terminal)))
    now = np.zeros(len(model.terminal))
    now[domain.starts] = 1.0 / len(domain.starts)
    total = np.zeros(len(now))
    for _ in range(limit):
        total += now
        moved = np.zeros(len(now))
        np.add.at(moved, model.next_state[:, :, 0], now[:, None] * policy)
        now = np.where(model.terminal, 0.0, moved)
    return total / total.sum()


def falling(transitions: gvf.Transitions) -> Floats:
    """Return 1 when the pole falls."""
    return transitions.terminated.astype(float)


CASES = [
    (share, cumulant, continuation)
    for share in (0.75, 0.9)
    for cumulant, continuation in (("reward", 0.9), ("reward", 0.95), (falling, 0.9))
]
"""The questions about CartPole: the target's share, the cumulant and the continuation."""
PUSH = gvf.policies.Fixed([0.4, 0.6])
STATES, ROLLOUTS = 2000, 4


def question_of(case: int) -> gvf.GVF:
    """Return a question about CartPole."""
    share, cumulant, continuation = CASES[case]
    return gvf.GVF(leaning(1 - share), cumulant, continuation)


@cache
def truth_of(case: int) -> gvf.HeldOutReturns:
    """Sample the true values of a question about CartPole, once."""
    env = gymnasium.make("CartPole-v1", max_episode_steps=40)
    options = {"states": STATES, "rollouts": ROLLOUTS, "run_length": 200, "cutoff": 1e-3}
    return gvf.held_out_returns(env, question_of(case), behaviour=PUSH, seed=case, **options)


def cartpole(rng: np.random.Generator, number: int) -> Problem:
    """Draw a problem of CartPole, in episodes of at most 40 steps."""
    case, steps = int(rng.integers(len(CASES))), int(rng.choice([500, 1000, 2000, 5000]))
    env = gymnasium.make("CartPole-v1", max_episode_steps=40)
    (batch,) = gvf.collect(env, PUSH, steps=steps, batch=steps, seed=number)
    truth = truth_of(case)

    error = mean_squared_error(truth)
    share, cumulant, continuation = CASES[case]
    name = cumulant if isinstance(cumulant, str) else cumulant.__name__
    about = f"{steps} steps, continuation {continuation}, {name}, target leans with {share}"
    log = gvf.read_log(batch.columns, quiet=True)
    return Problem(
        "CartPole", log, question_of(case), cartpole_tiles(), error, truth.states, 8, about
    )
