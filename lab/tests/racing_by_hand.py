"""A tiny study of the racing car, with a recording and values made by hand."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from gvf_lab import paper
from gvf_lab.racing import RacingStudy
from gvf_lab.racing.driving_rollouts import EvaluationSet
from gvf_lab.racing.racing_task import folder
from gvf_lab.racing.recording import Recording

TARGET, SD, NEAR, GAMMA = 0.15, 0.0075, 0.1, 0.9
METHODS = ("IR", "BC-IR", "IS", "WIS-Minibatch", "V-trace(1.0)")
TINY: dict[str, Any] = {
    "steps": 40, "warm_up": 10, "gap": 3, "window": 20, "batch_size": 4,
    "measure_every": 2, "points": 3, "evaluation_states": 5, "rollouts": 2, "runs": 2,
    "step_sizes": (0.01, 0.1), "optimiser": "sgd",
}  # fmt: skip
STUDY = RacingStudy("tiny", **TINY)
"""Ten updates of ten lanes, twice."""
FIGURE = "racing-step-size"


def images(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 64, 128), np.uint8)


def recording(steps: int = 40, seed: int = 0) -> Recording:
    """Of two episodes; actions near the target's mean, so that ratios are not all 0."""
    rng = np.random.default_rng(seed)
    count = steps + 2
    first = np.delete(np.arange(count - 1), steps // 2)
    action = rng.normal(TARGET, 2 * SD, steps)
    angle, speed, distance = rng.normal(size=(3, count))
    return Recording(
        images(count, seed), first, action, rng.normal(0.5, 0.3, steps),
        rng.uniform(-0.3, 0.3, count), angle, speed, distance, {"simulator": "torcs"},
    )  # fmt: skip


def states(count: int, seed: int, **settings: Any) -> EvaluationSet:
    value, lateral = np.random.default_rng(seed).uniform(0, 1, (2, count))
    told = {"simulator": "torcs", **settings}
    return EvaluationSet(images(count, seed), value, 0 * value, lateral, told)


PLACE = Path("racing-2") / "seed-0"
"""The folder of the material in the cache."""


def put_material(where: Path, simulator: str = "torcs") -> None:
    for run in range(3):
        for steps in (20, 40):
            name = f"{simulator}-stream-{run}-part-0-{steps}"
            recording(steps, seed=run).save(where / PLACE / name)
    states(5, 2).save(where / PLACE / f"{simulator}-states-5x2")
    states(8, 3, every=3).save(where / PLACE / f"{simulator}-film-300")


def small_network(convolution: str = "native") -> nn.Module:
    """Sees every 16th row and column."""

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(32, 8), nn.ReLU(), nn.Linear(8, 1))

        def forward(self, frames: torch.Tensor) -> torch.Tensor:
            return self.layers(frames[:, ::16, ::16].flatten(1) / 255).squeeze(-1)

    return Network()


def checkpoints() -> list[Path]:
    return [path for path in folder().iterdir() if "checkpoint" in path.name]


@contextmanager
def tiny_figure() -> Iterator[None]:
    """The figure with a tiny study and a small network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(paper.FIGURES, FIGURE, replace(paper.get(FIGURE), quick=TINY))
        patch.setattr("gvf_lab.racing.driving_network.driving_network", small_network)
        yield
