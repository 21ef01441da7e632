"""Predictions with estimated and with true probabilities, on logs whose true values are known.

    python -m benchmarks.estimated_ratios --write docs/no-probabilities/errors.markdown

On a chain of eight states LSTD is exact up to the log, so its error shows what the ratios do. On
CartPole a tile-coded learner is compared with returns of the target. Each line has the mean over
logs, and the mean difference to the true probabilities on the same logs. It takes minutes, and
needs scikit-learn (``gvf[sklearn]``).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import gvf
from gvf.online import LSTD

STATES = 8
Errors = dict[str, list[float]]


def estimates() -> dict[str, Callable[[gvf.Log], gvf.Log]]:
    """Return ways to give a log its probabilities, by name."""
    return {
        "estimated by default": lambda log: gvf.estimate_behaviour(log).log,
        "not cross-fitted": lambda log: gvf.estimate_behaviour(log, folds=1).log,
        "the same in every state": lambda log: gvf.estimate_behaviour(log, model=same).log,
    }


def same(states: Any, actions: Any) -> gvf.policies.Policy:
    """Return the frequencies of the actions, whatever the state."""
    return gvf.policies.Fixed(np.bincount(actions) / len(actions))


def chain(logs: int, episodes: int) -> Errors:
    """Return the root mean squared error over the states of a chain, for each log."""
    right = 1 - np.linspace(0.5, 0.85, STATES)
    mu, target = (
        gvf.policies.Table(np.column_stack([1 - right, right])),
        gvf.policies.Fixed([0.1, 0.9]),
    )
    question = gvf.GVF(target, "reward", 0.9)
    moves = 0.9 * (0.1 * np.eye(STATES, k=-1) + 0.9 * np.eye(STATES, k=1))
    truth = np.linalg.solve(np.eye(STATES) - moves, 0.9 * (np.arange(STATES) == STATES - 1))

    def error(log: gvf.Log, behaviour: gvf.policies.Policy | None = None) -> float:
        learner = gvf.OnlineLearner(
            question, gvf.features.OneHot(STATES), LSTD(0.0), behaviour=behaviour
        )
        learner.fit(log, order="log")
        return float(np.sqrt(np.mean((learner.predict(np.arange(STATES)) - truth) ** 2)))

    found: Errors = {}
    for seed in range(logs):
        log = _chain_log(mu, episodes, np.random.default_rng(seed))
        found.setdefault("true", []).append(error(log, mu))
        for name, with_probabilities in estimates().items():
            found.setdefault(name, []).append(error(with_probabilities(log)))
    return found


def _chain_log(mu: gvf.policies.Policy, episodes: int, rng: np.random.Generator) -> gvf.Log:
    walks: list[dict[str, Any]] = []
    for _ in range(episodes):
        states, actions = [int(rng.integers(STATES))], []
        while 0 <= states[-1] < STATES and len(actions) < 50:
            actions.append(int(mu.sample(np.array(states[-1:]), rng=rng)[0]))
            states.append(states[-1] + 2 * actions[-1] - 1)
        ended = not 0 <= states[-1] < STATES
        reward = np.zeros(len(actions))
        reward[-1] = states[-1] == STATES
        states[-1] = min(max(states[-1], 0), STATES - 1)
        walks.append({"state": states, "action": actions, "reward": reward, "terminated": ended})
    return gvf.read_log(walks, ends="truncated", quiet=True)


def cartpole(logs: int, steps: int) -> Errors:
    """Return the mean squared error of values in CartPole, for each log."""

    def hesitant(states: Any) -> Any:
        right = 0.02 + 0.96 / (1 + np.exp(-40 * states[:, 2] - 2 * states[:, 0]))
        return np.column_stack([1 - right, right])

    def with_the_lean(states: Any) -> Any:
        return np.where(states[:, 2:3] > 0, [0.1, 0.9], [0.9, 0.1])

    env = gymnasium.make("CartPole-v1", max_episode_steps=40)
    mu = gvf.policies.Function(hesitant, actions=2)
    question = gvf.GVF(gvf.policies.Function(with_the_lean, actions=2), "reward", 0.9)
    features = gvf.features.TileCoder(
        low=[-2.4, -2.5, -0.21, -2.5], high=[2.4, 2.5, 0.21, 2.5], tiles=[2, 2, 6, 4], tilings=16
    )
    held_out = gvf.held_out_returns(
        env, question, behaviour=mu, states=300, rollouts=10, run_length=40, seed=99
    )

    def error(log: gvf.Log, behaviour: gvf.policies.Policy | None = None) -> float:
        learner = gvf.Learner(question, features, gvf.updates.TD(0.3), behaviour=behaviour, seed=0)
        for _ in range(4):
            learner.fit(log, order="log")
        found = held_out.error(learner.predict).mean_squared_value
        assert found is not None
        return found.value

    found: Errors = {}
    for seed in range(logs):
        (batch,) = gvf.collect(env, mu, steps=steps, batch=steps, seed=seed)
        over = batch.terminated | batch.truncated
        columns = {**batch.columns, "episode": np.cumsum(over) - over}
        del columns["behaviour_probability"]
        log = gvf.read_log(columns, quiet=True)
        found.setdefault("true", []).append(error(log, mu))
        for name, with_probabilities in estimates().items():
            found.setdefault(name, []).append(error(with_probabilities(log)))
    return found


def table(worlds: dict[str, Errors]) -> str:
    """Return mean errors, and the differences to those with true probabilities, as Markdown."""
    lines = [f"| probabilities | {' | '.join(worlds)} |", "|---" * (1 + len(worlds)) + "|"]
    for name in next(iter(worlds.values())):
        cells = []
        for errors in worlds.values():
            difference = np.array(errors[name]) - errors["true"]
            mean = difference.mean()
            half = 1.96 * difference.std(ddof=1) / math.sqrt(len(difference))
            cell = f"{np.mean(errors[name]):.4f}"
            if name != "true":
                cell += f", difference {mean:+.4f} ({mean - half:+.4f} to {mean + half:+.4f})"
            cells.append(cell)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Run both comparisons, print them, and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=200, help="the number of logs of each kind")
    parser.add_argument("--write", type=Path, help="a file for the table, in Markdown")
    arguments = parser.parse_args()
    text = table(
        {
            "chain of 8 states, root mean squared error": chain(arguments.logs, 400),
            "CartPole, mean squared error": cartpole(arguments.logs, 5000),
        }
    )
    print(text)
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
