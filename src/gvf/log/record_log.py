"""Recording: a policy acts in an environment, and its transitions become a log.

A recording has the probability of each action, from the moment in which it was chosen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gvf.common.gymnasium import gym
from gvf.common.interrupts import postponed_interrupt
from gvf.common.version import __version__
from gvf.log.write_log import parquet_writer
from gvf.policies import Policy
from gvf.stream import collect
from gvf.transition import Transitions

ROWS = 64
"""The number of transitions after which the progress is told, and Ctrl-C is heard."""
GROUP = 65_536
"""The number of transitions of a row group."""


def record_log(
    env: gym.Env[Any, Any],
    policy: Policy,
    steps: int,
    path: str | os.PathLike[str],
    *,
    seed: int | None = None,
    info: Iterable[str] = (),
    notes: Mapping[str, str] | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> None:
    """Let a policy act in an environment, and write its transitions to a Parquet file.

    After Ctrl-C the file has the steps so far, and then KeyboardInterrupt is raised. A second
    Ctrl-C stops at once, and no file is written.

    Args:
        env: a Gymnasium environment; not a vector environment.
        policy: the behaviour.
        steps: the number of transitions.
        path: the file, which :func:`gvf.read_log` reads.
        seed: the seed of the environment and of the actions.
        info: names of entries of ``info`` that become columns.
        notes: facts that are stored in the file.
        progress: a function that is called now and then with the number of new transitions.

    Example:
        >>> import gvf
        >>> import gymnasium as gym
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "log.parquet")
        ...     env, policy = gym.make("FrozenLake-v1"), gvf.policies.Uniform(4)
        ...     gvf.record_log(env, policy, 100, path, seed=0)
        ...     gvf.read_log(path, quiet=True)
        Log(100 transitions, 16 episodes: state int64, action int64, reward float64, ...)
    """
    facts = {"policy": repr(policy), "seed": str(seed), "gvf": __version__, **(notes or {})}
    stream = _numbered(collect(env, policy, steps, seed=seed, batch=ROWS, info=info))
    waiting: list[Transitions] = []
    with postponed_interrupt() as interrupted, parquet_writer(path, facts) as write:
        for batch in stream:
            waiting.append(batch)
            progress(len(batch))
            if interrupted():
                break
            if sum(map(len, waiting)) >= GROUP:
                ready, waiting = waiting, []
                write(Transitions.concatenate(ready))
        if waiting:
            write(Transitions.concatenate(waiting))


def _numbered(batches: Iterable[Transitions]) -> Iterator[Transitions]:
    """Add the number of each transition's episode."""
    before = 0
    for batch in batches:
        ended = np.cumsum(batch.terminated | batch.truncated)
        episode = before + np.concatenate([[0], ended[:-1]])
        before += int(ended[-1])
        yield Transitions(**batch.columns, episode=episode)
