"""Benchmark of the stream: the cost of a transition beyond the environment's own step.

The bare loop steps and resets the same environment with the same seed and the same actions, so both
have the same episodes. The difference is the cost of the stream: drawing the action, computing its
probability, and writing the columns.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

import gvf
from benchmarks.measure import LIMITS, Effort, Row, Run, at_most, interleave
from gvf.stream import environment_seed

TITLE = "Stream: CartPole-v1, microseconds a transition beyond env.step"
STEPS = 1000
POLICIES = (gvf.policies.Uniform(2), gvf.policies.Fixed([0.3, 0.7]), gvf.policies.Favour(1, 0.8, 2))


def rows(effort: Effort) -> list[Row]:
    """Measure the cost of batches of 1 and of 64, for policies that ignore the state."""
    env = gym.make("CartPole-v1")
    result = []
    for policy in POLICIES:
        times = interleave(
            {
                "env.step alone": _bare(env, policy),
                "batch = 1": _stream(env, policy, 1),
                "batch = 64": _stream(env, policy, 64),
            },
            effort,
        )
        microseconds = {name: seconds / STEPS * 1e6 for name, seconds in times.items()}
        bare = microseconds.pop("env.step alone")
        result.append(Row(repr(policy), "env.step alone", bare, "us"))
        result.append(Row(repr(policy), "batch = 1", microseconds["batch = 1"] - bare, "us"))
        added = microseconds["batch = 64"] - bare
        result.append(at_most(repr(policy), "batch = 64", added, "us", LIMITS["stream"]["act"]))
    return result


def _stream(env: gym.Env[Any, Any], policy: gvf.policies.Policy, batch: int) -> Run:
    def run(count: int) -> None:
        for _ in range(count):
            for _ in gvf.collect(env, policy, STEPS, seed=0, batch=batch):
                pass

    return run


def _bare(env: gym.Env[Any, Any], policy: gvf.policies.Policy) -> Run:
    batches = gvf.collect(env, policy, STEPS, seed=0, batch=STEPS)
    actions = next(iter(batches)).action.tolist()
    seed = environment_seed(np.random.SeedSequence(0).spawn(2)[0])

    def run(count: int) -> None:
        for _ in range(count):
            env.reset(seed=seed)
            for action in actions:
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()

    return run
