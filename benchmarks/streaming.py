"""Benchmark of a log that is larger than memory: rows a second, and the most memory in use.

A Parquet file is read in every pass, a batch at a time, and its rows go through a learner's window.
Beside it stands what nothing can beat, pyarrow alone reading the same columns of the same file in
batches as large. Each contender has a process of its own, which tells its peak memory.

    python -m benchmarks --only streaming           10,000,000 rows
    python -m benchmarks --only streaming --slow    100,000,000 rows, 1.2 GB in a temporary folder
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

import gvf
from benchmarks.measure import LIMITS, QUICK, Effort, Row, at_most
from gvf.log.tables import BATCH

TITLE = "Streaming: a Parquet log through a window of 15,000, IR, k = 16"
RATE, MEMORY = LIMITS["streaming"]["rate"], LIMITS["streaming"]["memory"]
CELLS, CHUNK = 1000, 1_000_000
EPISODE = 200

QUESTION = gvf.GVF(gvf.policies.Fixed([0.3, 0.7]), "reward", 0.9)
TILES = gvf.features.TileCoder([0.0, -1.0], [1.0, 1.0], tiles=8, tilings=8)
SETTINGS: dict[str, tuple[Any, Any, int]] = {
    "one-hot, 1000 states, every = 16": ("cell", gvf.features.OneHot(CELLS), 16),
    "one-hot, 1000 states, every = 1": ("cell", gvf.features.OneHot(CELLS), 1),
    "8 tilings of 8 x 8, every = 16": (["x", "v"], TILES, 16),
    "8 tilings of 8 x 8, every = 1": (["x", "v"], TILES, 1),
    "8 tilings of 8 x 8, LSTD": (["x", "v"], TILES, 0),
}
READERS = ("pyarrow alone", "gvf.read_log, and a pass")


def rows(effort: Effort) -> list[Row]:
    """Measure reading alone, and learning, from one file."""
    count = 100_000_000 if effort.slow else 1_000_000 if effort == QUICK else 10_000_000
    case, found = f"{count:,} rows", []
    with TemporaryDirectory() as folder:
        path = Path(folder, "log.parquet")
        write(path, count)
        learning = [n for n in SETTINGS if "every = 16" in n] if effort.slow else SETTINGS
        for name in (*READERS, *learning):
            rate, memory = _measured(name, path)
            target = {"target": f">= {RATE:,} rows/s", "met": rate >= RATE}
            found.append(
                Row(case, name, rate, "rows/s", **(target if "every = 16" in name else {}))
            )
            line = at_most(case, f"{name}, peak memory", memory, "MB", MEMORY)
            found.append(Row(case, line.name, memory, "MB") if name in READERS else line)
    return found


def write(path: Path, count: int) -> None:
    """Write a log of random states in episodes of at most 200 steps, a chunk at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    for first in range(0, count, CHUNK):
        m = min(CHUNK, count - first)
        x, v = rng.random(m, np.float32), 2 * rng.random(m, np.float32) - 1
        right = rng.random(m) < 0.4
        last = (first + np.arange(m) + 1) % EPISODE == 0
        columns = {
            "x": x,
            "v": v,
            "cell": (x * np.float32(CELLS)).astype(np.int16).clip(0, CELLS - 1),
            "action": right.astype(np.int8),
            "reward": (x > 0.9).astype(np.float32),
            "terminated": ~last & (rng.random(m) < 0.005),
            "truncated": last,
            "behaviour_probability": np.where(right, np.float32(0.4), np.float32(0.6)),
        }
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def _measured(name: str, path: Path) -> tuple[float, float]:
    """Return rows a second and the peak memory in MB, of a process of its own."""
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.streaming", name, str(path)],
        env={**os.environ, **single},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    rate, memory = json.loads(done.stdout)
    return rate, memory


def _pyarrow(path: Path) -> int:
    import pyarrow.dataset as ds

    names = ["x", "v", "action", "reward", "terminated", "truncated", "behaviour_probability"]
    batches = ds.dataset(str(path)).to_batches(columns=names, batch_size=BATCH, batch_readahead=1)
    return sum(batch.num_rows for batch in batches)


def _learned(path: Path, state: Any, features: gvf.features.FeatureMap, every: int) -> int:
    """Open the log and learn from it; without `every` by least squares."""
    log = gvf.read_log(path, state=state, in_memory=False, quiet=True)
    learner = (
        gvf.Learner(
            QUESTION,
            features,
            gvf.updates.TD(0.1),
            gvf.corrections.IR(),
            update_every=every,
            seed=0,
        )
        if every
        else gvf.LSTDLearner(QUESTION, features)
    )
    return learner.fit(log, order="log").steps


def _work(name: str, path: Path) -> int:
    if name == READERS[0]:
        return _pyarrow(path)
    if name == READERS[1]:
        return sum(map(len, gvf.read_log(path, state=["x", "v"], in_memory=False, quiet=True)))
    return _learned(path, *SETTINGS[name])


def main(name: str, path: Path) -> None:
    """Measure one contender, and print its rate and its peak memory."""
    import pyarrow.dataset  # noqa: F401

    if name in SETTINGS:  # compile first, from a short log
        short = path.with_name("short.parquet")
        write(short, 2000)
        _learned(short, *SETTINGS[name])
    start = perf_counter()
    count = _work(name, path)
    rate = count / (perf_counter() - start)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([rate, kilobytes * 1024 / 1e6]))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
