"""Benchmark of learners from Python: from a log, from an environment, one transition at a time.

The slow version is the learner's own loop in Python (``gvf.learners.update_loop.observe``), which
gives the same bits. An environment cannot be faster than its own step.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

import gvf
from benchmarks.measure import Effort, Row, Run, at_most, interleave
from gvf.learners import update_loop as loop

TITLE = "Learners: 16 tilings, k = 16, n = 15,000, one step size, an update a step"
ROWS = 2048
LOG_LIMIT, ENVIRONMENT_LIMIT = 5.0, 1e6 / 30_000  # microseconds: 200,000 and 30,000 a second
ONE_LIMIT = 20.0
"""Microseconds for one transition, given by its values, of which the update takes a fifth."""
LOW, HIGH = np.array([-2.4, -3.0, -0.21, -3.0]), np.array([2.4, 3.0, 0.21, 3.0])


def rows(effort: Effort) -> list[Row]:
    """Measure microseconds a transition."""
    log = _log()
    one_by_one = [log[i : i + 1] for i in range(64)]
    plain = [{name: column[i] for name, column in log.columns.items()} for i in range(64)]
    plain = [{**row, "terminated": bool(row["terminated"])} for row in plain]
    slow, fast, single, alone, acting = (_learner(log) for _ in range(5))
    slow.values.observe = lambda *given: loop.observe(slow.values, *given)  # pyright: ignore[reportAttributeAccessIssue]
    env, bare = gym.make("CartPole-v1"), gym.make("CartPole-v1")
    times = interleave(
        {
            "the loop in Python": _learn(slow, log),
            "gvf": _learn(fast, log),
            "one by one": _observe(single, one_by_one),
            "one transition": _observe_one(alone, plain),
            "CartPole-v1": lambda count: acting.learn(env, steps=count * ROWS, seed=0),
            "env.step alone": _step(bare),
        },
        effort,
    )
    per = {"one by one": len(one_by_one), "one transition": len(plain)}
    us = {name: time / per.get(name, ROWS) * 1e6 for name, time in times.items()}
    python = us["the loop in Python"]
    return [
        Row("a log", "the loop in Python", python, "us", python / us["gvf"]),
        at_most("a log", "gvf", us["gvf"], "us", LOG_LIMIT),
        Row("a log, observe of a batch of one", "gvf", us["one by one"], "us"),
        at_most("a log, observe of one transition", "gvf", us["one transition"], "us", ONE_LIMIT),
        Row("CartPole-v1", "env.step alone", us["env.step alone"], "us"),
        at_most("CartPole-v1", "gvf", us["CartPole-v1"], "us", ENVIRONMENT_LIMIT),
    ]


def _log() -> gvf.Transitions:
    rng = np.random.default_rng(0)
    states = rng.uniform(LOW, HIGH, (ROWS + 1, 4))
    return gvf.Transitions(
        state=states[:-1],
        action=rng.integers(0, 2, ROWS),
        reward=np.ones(ROWS),
        next_state=states[1:],
        terminated=rng.random(ROWS) < 0.05,
    )


def _learner(log: gvf.Transitions) -> gvf.Learner:
    question = gvf.GVF(gvf.policies.Favour(1, 0.9, actions=2), "reward", 0.9)
    features = gvf.features.TileCoder(LOW.tolist(), HIGH.tolist(), tiles=4, tilings=16)
    learner = gvf.Learner(
        question,
        features,
        gvf.updates.TD(0.1),
        gvf.corrections.IR(),
        behaviour=gvf.policies.Uniform(2),
        seed=0,
    )
    for _ in range(15_000 // ROWS + 1):  # until the window is full
        learner.observe(log)
    return learner


def _learn(learner: gvf.Learner, log: gvf.Transitions) -> Run:
    def run(count: int) -> None:
        for _ in range(count):
            learner.fit(log, order="log")

    return run


def _observe(learner: gvf.Learner, batches: list[gvf.Transitions]) -> Run:
    def run(count: int) -> None:
        for _ in range(count):
            for batch in batches:
                learner.observe(batch)

    return run


def _observe_one(learner: gvf.Learner, rows: list[dict[str, Any]]) -> Run:
    def run(count: int) -> None:
        for _ in range(count):
            for row in rows:
                learner.observe(**row)

    return run


def _step(env: gym.Env[Any, Any]) -> Run:
    def run(count: int) -> None:
        env.reset(seed=0)
        for i in range(count * ROWS):
            _, _, terminated, truncated, _ = env.step(i % 2)
            if terminated or truncated:
                env.reset()

    return run
