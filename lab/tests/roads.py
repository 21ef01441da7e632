"""A straight road for a car, a recording of nothing, and a tiny network that learns from both."""

from __future__ import annotations

import importlib.util
import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gvf
from gvf_lab.racing import get
from gvf_lab.racing.recording import Recording

BOX2D = all(importlib.util.find_spec(name) for name in ("Box2D", "pygame"))


class Flat:
    """A straight road without pictures to draw: the interface of the simulators, in a few lines."""

    def __init__(self, end: int = 10**9, wobble: float = 0.0) -> None:
        self.draw, self.end, self.wobble, self.resets = True, end, wobble, 0
        self.closed = False

    def reset(self, *, seed: int) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        self.seed, self.time, self.lateral, self.angle = seed, 0, 0.0, 0.0
        self.resets += 1
        return self._see()

    def step(self, action: NDArray[Any]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action.dtype == np.float32
        assert action.shape == (1,)
        self.time += 1
        self.angle -= 0.1 * float(np.clip(action[0], -1, 1))
        self.lateral -= 0.2 * math.sin(self.angle) + self.wobble * self.resets
        frame, info = self._see()
        return frame, 0.0, False, self.time >= self.end or abs(self.lateral) > 2, info

    def replay(self, actions: NDArray[np.float32]) -> None:
        drawing, self.draw = self.draw, False
        for action in actions:
            self.step(action)
        self.draw = drawing

    def close(self) -> None:
        self.closed = True

    def _see(self) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        frame = np.zeros((64, 128), np.uint8)
        if self.draw:
            frame[:] = np.random.default_rng(self.time).integers(0, 256, frame.shape)
        info = {"lateral": self.lateral, "angle": self.angle, "steer_lock": 0.4, "speed": 15.0}
        return frame, info | {"distance": 1.5 * self.time}


def same(ours: gvf.Transitions, theirs: gvf.Transitions) -> bool:
    """Whether two batches have the same columns, bit for bit."""
    return list(ours.columns) == list(theirs.columns) and all(
        column.dtype == theirs[name].dtype and np.array_equal(column, theirs[name])
        for name, column in ours.columns.items()
    )


def sketch(rows: int = 9, seed: int = 0) -> Recording:
    """A recording of nothing, with two ends of episodes."""
    rng = np.random.default_rng(seed)
    return Recording(
        frames=rng.integers(0, 256, (rows + 3, 64, 128), np.uint8),
        first=np.r_[0:3, 4:7, 8 : rows + 2],
        action=rng.normal(size=rows),
        log_mu=rng.normal(size=rows),
        lateral=rng.normal(size=rows + 3),
        angle=rng.random(rows + 3, np.float32),
        speed=rng.random(rows + 3, np.float32),
        distance=rng.random(rows + 3, np.float32),
        settings={"simulator": "torcs", "seed": seed},
    )


def learned(source: Any, steps: int) -> NDArray[Any]:
    """What a tiny network predicts after it learned from a source of transitions."""
    torch = pytest.importorskip("torch")
    from gvf.neural import NeuralLearner

    class Tiny(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(64, 1)

        def forward(self, frames: Any) -> Any:
            return self.layer(frames[:, ::8, ::16].flatten(1) / 255)

    torch.manual_seed(0)
    question = get("torcs").question("left")
    network, optimiser = Tiny(), partial(torch.optim.Adam, lr=1e-3)
    learner = NeuralLearner(question, network, optimiser, window=gvf.FrameWindow(50), seed=0)
    frames = np.random.default_rng(0).integers(0, 256, (5, 64, 128), np.uint8)
    with pytest.warns(gvf.NotLearnedWarning):
        before = learner.predict(frames)
    report = learner.learn(source, steps=steps)
    assert report.updates > steps / 2
    after = learner.predict(frames)
    assert np.isfinite(after).all()
    assert not np.allclose(before, after)
    return after
