"""Make the log of examples/logs: a careless hand balances a pole, and its choices are recorded.

The hand pushes to the side to which the pole leans and falls, but often errs:

    mu(right | s) = 1 / (1 + exp(-(2 angle + 0.5 spin)))

Run it with ``python examples/logs/make_log.py``; it needs the library alone. The same file comes
out, bit for bit, with the versions of NumPy, Gymnasium and pyarrow that ``constraints.txt`` pins.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gymnasium
import numpy as np

import gvf

GAIN = (0.0, 0.0, 2.0, 0.5)
"""The slope of the logarithm of the odds of a push to the right, by dimension of the state."""


def careless(states: np.ndarray) -> np.ndarray:
    """Return the probabilities of a push to the left and to the right, [m, 2]."""
    right = 1.0 / (1.0 + np.exp(-np.asarray(states, float) @ GAIN))
    return np.column_stack([1.0 - right, right])


def main(path: Path) -> None:
    """Record 8000 steps, and write them in the columns that a user might have."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    env = gymnasium.make("CartPole-v1", max_episode_steps=100)
    policy = gvf.policies.Function(careless, actions=2)
    walk = gvf.Transitions.concatenate(gvf.collect(env, policy, 8000, seed=0))
    ended = walk.terminated | walk.truncated
    run = np.cumsum(ended) - ended
    last = int(np.flatnonzero(ended)[-1]) + 1  # whole episodes only
    columns = {"run": run, **dict(zip(("x", "speed", "angle", "spin"), walk.state.T, strict=True))}
    columns |= {"push": walk.action, "probability": walk.behaviour_probability}
    columns |= {"reward": walk.reward, "fell": walk.terminated}
    table = {
        name: column[:last].round(4).astype(np.float32)
        if column.dtype.kind == "f"
        else column[:last]
        for name, column in columns.items()
    }
    pq.write_table(pa.table(table), path, compression="zstd", compression_level=19)


if __name__ == "__main__":
    main(Path(*sys.argv[1:]) if sys.argv[1:] else Path(__file__).parent / "cartpole.parquet")
