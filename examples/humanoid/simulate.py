"""Simulation: the stream that the behaviour makes, and held-out returns of the targets."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gvf
from examples.humanoid.robot import CONTINUATIONS, Robot

COLUMNS = ("state", "action", "reward", "next_state", "terminated", "truncated")


def stream(robot: Robot, steps: int, seed: int) -> dict[str, NDArray[Any]]:
    """Return the columns of transitions of the behaviour, and the seconds that they took.

    States are in single precision.
    """
    start = perf_counter()
    batches = gvf.collect(robot.make(), robot.behaviour, steps, seed=seed, batch=256)
    found = gvf.Transitions.concatenate(batches)
    columns = {name: found[name] for name in COLUMNS}
    columns = {n: c.astype(np.float32) if "state" in n else c for n, c in columns.items()}
    return {**columns, "seconds": np.array(perf_counter() - start)}


def held_out(robot: Robot, rollouts: int, longest: int, seed: int) -> dict[str, NDArray[Any]]:
    """Return a state that the behaviour visits, and returns of the checked targets from there.

    Each rollout begins in this state of the simulator. It ends after `longest` steps, or where the
    environment terminates.

    Args:
        robot: the robot.
        rollouts: the number of rollouts of each target, R.
        longest: the number of steps of a rollout.
        seed: the seed; another one gives an independent state.

    Returns:
        The state [channels]; the returns float32[targets, R, continuations, channels]; and the sum
        of discounts over the steps of each rollout, [targets, R, continuations].
    """
    env, rng = robot.make(), np.random.default_rng(seed)
    state, _ = env.reset(seed=seed)
    limit = env.spec.max_episode_steps if env.spec else None
    low, high = env.action_space.low, env.action_space.high  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(int(rng.integers(limit or longest))):
        (action,) = robot.behaviour.sample(state[None], rng=rng)
        state, *_ = env.step(np.clip(action, low, high))
    start = robot.saved(env)
    targets = [robot.targets[name] for name in robot.checked]
    shape = (len(targets), rollouts, len(CONTINUATIONS))
    returns, discounts = np.zeros((*shape, len(state)), np.float32), np.zeros(shape)
    for t, target in enumerate(targets):
        for r in range(rollouts):
            robot.restore(env, start)
            actions = target.sample(np.zeros((longest, 1)), rng=rng)
            sensors = []
            for action in np.clip(actions, low, high):
                after, _, terminated, *_ = env.unwrapped.step(action)  # without the time limit
                sensors.append(after)
                if terminated:
                    break
            powers = np.power.outer(np.array(CONTINUATIONS), np.arange(len(sensors)))
            returns[t, r], discounts[t, r] = powers @ np.array(sensors), powers.sum(axis=1)
    return {"state": np.asarray(state), "returns": returns, "discounts": discounts}
