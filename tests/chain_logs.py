"""A log of a chain whose values are known, and a question file about it.

Five states in a row; left and right end the episode, and leaving at the right gives a reward of 1.
"""

from pathlib import Path

import numpy as np

STATES = 5
QUESTION = """
[[question]]
name = "goes right"
policy = {kind = "favour", action = 1, probability = 0.7}
continuation = 0.9

[learn]
corrections = ["IR", "IS"]
step_sizes = [0.02, 0.2]
epochs = 4

[judge]
folds = 2

[intervals]
replicates = 39
"""


def walks(episodes: int = 120, seed: int = 0) -> dict[str, np.ndarray]:
    """The columns of a log: a walk that goes left or right with equal probability."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, float, bool, float]] = []
    for episode in range(episodes):
        state, over = int(rng.integers(STATES)), False
        while not over:
            action = int(rng.integers(2))
            reached = state + 2 * action - 1
            over = reached in (-1, STATES)
            rows.append((episode, state, action, float(reached == STATES), over, 0.5))
            state = reached
    names = ("episode", "obs", "action", "reward", "terminated", "action_prob")
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


def write(path: Path, columns: dict[str, np.ndarray]) -> Path:
    """Write columns to a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)
    return path


def values(right: float = 0.7, continuation: float = 0.9) -> np.ndarray:
    """The true values, [STATES]."""
    moves = right * np.eye(STATES, k=1) + (1 - right) * np.eye(STATES, k=-1)
    reward = right * (np.arange(STATES) == STATES - 1)
    return np.linalg.solve(np.eye(STATES) - continuation * moves, reward)
