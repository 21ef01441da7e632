"""Packaged prioritised replay buffers, and ours, behind one small interface.

Each draws whole transitions exactly in proportion to a ratio (exponent alpha 1, no epsilon; beta 0,
the least work on weights) and is used in the fastest way that its interface offers. Transitions are
converted beforehand to the form that its insertion needs, so that only the buffer itself is timed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

import gvf
from benchmarks import torchrl_extension

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Buffer:
    """A full buffer, with functions that prepare a transition and do one step of the work."""

    name: str
    record: Callable[[dict[str, Any], float], Any]
    """A function of (transition, ratio) that makes the record for `step`; not timed."""
    step: Callable[[Any, int], Any]
    """A function that inserts a record, then draws k whole transitions, columns [k, ...]; timed."""
    note: str = ""


def columns(count: int) -> Columns:
    """Make transitions as NumPy columns: two float32[4], an int, a float, a bool."""
    rng = np.random.default_rng(1)
    return {
        "state": rng.random((count, 4), np.float32),
        "action": rng.integers(0, 4, count),
        "reward": rng.random(count),
        "next_state": rng.random((count, 4), np.float32),
        "terminated": rng.random(count) < 0.05,
    }


def row(columns: Columns, i: int) -> dict[str, Any]:
    """Return one transition as an environment gives it: arrays, and plain Python numbers."""
    values = {name: column[i] for name, column in columns.items()}
    return {name: v if np.ndim(v) else v.item() for name, v in values.items()}


def ours(columns: Columns, ratios: np.ndarray) -> Buffer:
    """Make ours: a window of columns with a ring of prefix sums."""
    window, ring = gvf.Window(len(ratios)), gvf.RatioRing(len(ratios), seed=0)
    window.extend(**columns)
    ring.extend(ratios)

    def record(row: dict[str, Any], ratio: float) -> Any:
        return row, ratio

    def step(record: Any, k: int) -> Any:
        row, ratio = record
        window.append(row)
        _, slots = ring.append_and_sample(ratio, k)
        return window[slots]

    return Buffer("gvf", record, step)


def cpprb(columns: Columns, ratios: np.ndarray) -> Buffer:
    """Make cpprb's, C++ behind Cython: sum tree (stratified draws), minimum tree, columns."""
    from cpprb import PrioritizedReplayBuffer

    layout = {
        name: {"dtype": column.dtype, "shape": column.shape[1:] or 1}
        for name, column in columns.items()
    }
    buffer = PrioritizedReplayBuffer(len(ratios), layout, alpha=1.0, eps=0.0)
    buffer.add(**columns, priorities=ratios)

    def record(row: dict[str, Any], ratio: float) -> Any:
        return {**row, "priorities": ratio}

    def step(record: Any, k: int) -> Any:
        buffer.add(**record)
        return buffer.sample(k, beta=0.0)

    return Buffer(f"cpprb {version('cpprb')}", record, step)


def tianshou(columns: Columns, ratios: np.ndarray) -> Buffer:
    """Make tianshou's: NumPy columns with a sum tree in Numba."""
    from tianshou.data import Batch, PrioritizedReplayBuffer, ReplayBuffer

    terminated = columns["terminated"]
    source = ReplayBuffer.from_data(
        obs=columns["state"],
        act=columns["action"],
        rew=columns["reward"],
        terminated=terminated,
        truncated=np.zeros_like(terminated),
        done=terminated,
        obs_next=columns["next_state"],
    )
    buffer = PrioritizedReplayBuffer(len(ratios), alpha=1.0, beta=0.0, weight_norm=False)
    buffer.update(source)
    buffer.weight[np.arange(len(ratios))] = ratios

    def record(row: dict[str, Any], ratio: float) -> Any:
        batch = Batch(
            obs=row["state"],
            act=row["action"],
            rew=row["reward"],
            terminated=row["terminated"],
            truncated=False,
            obs_next=row["next_state"],
        )
        return batch, ratio

    def step(record: Any, k: int) -> Any:
        batch, ratio = record
        # Faster than `update_weight`, and exact, because that adds an epsilon.
        buffer.weight[buffer.add(batch)[0]] = ratio
        return buffer.sample(k)[0]

    return Buffer(f"tianshou {version('tianshou')}", record, step)


def torchrl(columns: Columns, ratios: np.ndarray) -> Buffer:
    """Make TorchRL's: tensors, and C++ sum and minimum trees (float32; float64 fails)."""
    _, note = torchrl_extension.load()
    import torch
    from tensordict import TensorDict
    from torchrl.data import LazyTensorStorage, PrioritizedReplayBuffer

    logging.getLogger("torchrl").setLevel(logging.WARNING)  # its import sets INFO
    n = len(ratios)
    buffer = PrioritizedReplayBuffer(alpha=1.0, beta=0.0, eps=0.0, storage=LazyTensorStorage(n))
    tensors = {name: torch.from_numpy(column) for name, column in columns.items()}
    buffer.extend(TensorDict(tensors, batch_size=[n]))
    buffer.update_priority(torch.arange(n), torch.from_numpy(ratios).float())

    def record(row: dict[str, Any], ratio: float) -> Any:
        tensors = {
            name: torch.as_tensor(value, dtype=torch.float64 if name == "reward" else None)
            for name, value in row.items()
        }
        return TensorDict(tensors, batch_size=[]), torch.tensor(ratio, dtype=torch.float32)

    def step(record: Any, k: int) -> Any:
        transition, ratio = record
        buffer.update_priority(buffer.add(transition), ratio)
        return buffer.sample(k)

    return Buffer(f"TorchRL {version('torchrl')}", record, step, note)


PACKAGED = (cpprb, tianshou, torchrl)
