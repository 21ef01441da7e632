"""The work in pieces. Each piece is kept in a file, so that an interrupted run goes on."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from examples.humanoid.learn import CORRECTIONS, Scale, answers, sensors
from examples.humanoid.robot import Calibration, Robot
from examples.humanoid.simulate import COLUMNS, held_out, stream
from gvf.common.arrays import Arrays

CALIBRATION, FIRST, OTHERS = 0, 1, (2, 3)
"""The seeds of streams: for the scales; for the horde and to choose step sizes; for results."""
HELD_OUT = 1_000
"""The seed of the first held-out state."""


class Piece(NamedTuple):
    """A piece of work: the name of its file, and a function with its arguments."""

    name: str
    function: Callable[..., Arrays]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Folder:
    """The folder of the files of all pieces.

    Attributes:
        path: the folder.
        robot: the robot.
        scale: the sizes.
    """

    path: Path
    robot: Robot
    scale: Scale

    def do(self, pieces: Sequence[Piece]) -> None:
        """Do those pieces whose files are not there, in several processes."""
        self.path.mkdir(parents=True, exist_ok=True)
        left = [piece for piece in pieces if not (self.path / f"{piece.name}.npz").exists()]
        if self.scale.workers == 1:
            for piece in left:
                _do(self.path, piece)
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.scale.workers, mp_context=context) as pool:
            running = [pool.submit(_do, self.path, piece) for piece in left]
            for count, done in enumerate(as_completed(running), 1):
                print(f"\r{count} of {len(left)}: {done.result():40}", end="", flush=True)
        print()

    def read(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the arrays of a piece."""
        with np.load(self.path / f"{name}.npz") as file:
            return dict(file)

    def simulate(self) -> None:
        """Make the streams and the held-out returns."""
        robot, scale = self.robot, self.scale
        steps = {CALIBRATION: scale.calibration, **dict.fromkeys((FIRST, *OTHERS), scale.steps)}
        streams = [Piece(f"stream {s}", stream, (robot, n, s)) for s, n in steps.items()]
        rollouts = [
            Piece(f"held out {i}", held_out, (robot, scale.rollouts, scale.longest, HELD_OUT + i))
            for i in range(scale.states)
        ]
        self.do([*streams, *rollouts])

    def stream(self, seed: int) -> dict[str, NDArray[Any]]:
        """Return the columns of a stream."""
        arrays = self.read(f"stream {seed}")
        return {name: arrays[name] for name in COLUMNS}

    @property
    def calibration(self) -> Calibration:
        """The scales of sensors and features."""
        return Calibration(self.stream(CALIBRATION)["state"].astype(float))

    @property
    def held_out(self) -> dict[str, NDArray[Any]]:
        """The held-out states and returns, each with a first axis for the state."""
        found = [self.read(f"held out {i}") for i in range(self.scale.states)]
        return {name: np.stack([one[name] for one in found]) for name in found[0]}

    def compare(self, seed: int, tried: Sequence[tuple[str, float]]) -> None:
        """Let small hordes learn from a stream, with pairs of a correction and a step size."""
        pieces = [Piece(compared(seed, *one), _compare, (self, seed, *one)) for one in tried]
        self.do(pieces)

    def learn_all(self, step_size: float) -> None:
        """Let the horde of all questions learn from the first stream, on all processors."""
        name = "horde"
        if not (self.path / f"{name}.npz").exists():
            _do(self.path, Piece(name, _all, (self, step_size)))


def compared(seed: int, correction: str, step_size: float) -> str:
    """Return the name of the answers of a small horde."""
    return f"{correction}, {step_size:g}, stream {seed}"


def _do(folder: Path, piece: Piece) -> str:
    """Do a piece, and write its file at once, so that none is there in part."""
    arrays = piece.function(*piece.arguments)
    unfinished = folder / f"unfinished {piece.name}.npz"
    np.savez(unfinished, **arrays)  # pyright: ignore[reportArgumentType]
    unfinished.replace(folder / f"{piece.name}.npz")
    return piece.name


def _compare(folder: Folder, seed: int, correction: str, step_size: float) -> Arrays:
    robot, calibration = folder.robot, folder.calibration
    every = sensors(robot, calibration)
    return answers(
        robot,
        folder.scale,
        folder.stream(seed),
        calibration,
        folder.held_out["state"],
        {name: robot.targets[name] for name in robot.checked},
        {name: every[name] for name in list(every)[:: folder.scale.apart]},
        CORRECTIONS[correction],
        step_size,
        threads=1,
    )


def _all(folder: Folder, step_size: float) -> Arrays:
    robot, calibration, scale = folder.robot, folder.calibration, folder.scale
    later = folder.stream(OTHERS[-1])["state"][: scale.stretch]
    found = answers(
        robot,
        scale,
        folder.stream(FIRST),
        calibration,
        np.concatenate([folder.held_out["state"], later]),
        robot.targets,
        sensors(robot, calibration),
        CORRECTIONS["IR"],
        step_size,
        threads=scale.workers,
    )
    return {**found, "step_size": np.array(step_size)}
