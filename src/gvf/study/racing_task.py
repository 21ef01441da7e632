"""A run of the racing car, from a recorded stream to errors: draw, learn, measure.

    stream -> ratio, cumulant, continuation -> draws (rows, weights) -> lanes of networks -> errors

With recordings and returns in the cache (:mod:`gvf.study.racing_material`) this needs no simulator
and no Gymnasium, only PyTorch. Every few minutes a run leaves a checkpoint beside them, and goes on
from there when it is interrupted.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

import gvf
from gvf.correction import Draw
from gvf.domain.racing import policy
from gvf.domain.racing.recording import FRAME, Recording
from gvf.learner.linear import Array
from gvf.study.base import Interrupted, Stop, Task, seed_for
from gvf.study.draws import Draws, draw
from gvf.study.racing import RacingStudy
from gvf.study.racing_material import Material, folder, take
from gvf.study.task import Outcome
from gvf.trace import carried
from gvf.transition import Transitions

if TYPE_CHECKING:
    import torch

    from gvf.neural import Lanes

CHECKPOINT_EVERY = 120.0
"""Seconds between checkpoints."""


@dataclass(frozen=True)
class RacingOutcome(Outcome):
    """Errors of one method, and what it predicts in the end along the film: float64[L, m]."""

    film: Array


def material(study: RacingStudy) -> Material:
    """What a study needs; see :func:`gvf.study.racing_material.take`.

    Where networks cannot learn on the study's device, that is said first: recording takes long.
    """
    try:
        import torch
    except ModuleNotFoundError:
        needed = 'the racing car needs PyTorch: pip install "gvf[torch]"'
        raise ModuleNotFoundError(needed, name="torch") from None
    if study.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device 'cuda': PyTorch finds no CUDA device here; choose 'cpu'")
    return take(study)


@dataclass(frozen=True)
class _Lesson:
    """All that the updates of a run see, for U updates, L lanes and G ways to draw.

    Attributes:
        frame: number of each drawn transition's first frame, int64[U, G, k].
        cumulant: float32[U, G, k].
        continuation: float32[U, G, k].
        weight: float32[U, L, k].
        group: which way each lane draws, one of G.
    """

    frame: Array
    cumulant: Array
    continuation: Array
    weight: Array
    group: list[int]


def _lesson(task: Task, stream: Recording) -> _Lesson:
    study = task.study
    begin = study.begins(task.run)
    end = begin + study.steps
    question = policy.towards_middle(policy.simulator(study.simulator).near)
    first = stream.first[begin:end]
    # The target looks at no image, so a frame's number can stand for it.
    transitions = Transitions(
        state=first,
        action=stream.action[begin:end],
        behaviour_log_probability=stream.log_mu[begin:end],
        next_lateral=stream.lateral[first + 1],
    )
    ratio, cumulant, continuation = question.evaluate(transitions)
    drawn: dict[Draw, Draws] = {}
    weights, group = [], []
    for name in study.methods:
        correction = study.method(name).make(1.0)
        if correction.draw not in drawn:
            drawn[correction.draw] = draw(
                correction,
                carried(correction, ratio, continuation),
                window=study.window,
                batch_size=study.batch_size,
                seed=seed_for(study.seed, task.run, "draws"),
                warm_up=study.warm_up,
                gap=study.gap,
            )
        w = drawn[correction.draw].weights(correction).astype(np.float32)
        weights += [w] * len(study.lanes(name))
        group += [list(drawn).index(correction.draw)] * len(study.lanes(name))
    # Where a window has no mass, any of its rows will do: it weighs nothing.
    rows = np.stack(
        [np.where(one.rows < 0, one.last[:, None] - 1, one.rows) for one in drawn.values()], axis=1
    )
    return _Lesson(
        first[rows],
        cumulant[rows].astype(np.float32),
        continuation[rows].astype(np.float32),
        np.stack(weights, axis=1),
        group,
    )


def run_racing(task: Task, stop: Stop = lambda: False) -> list[RacingOutcome]:
    """Do a task; `stop` is asked between updates. On a CPU it takes one processor."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # runs are what several processors are for
    try:
        return _run(task, stop)
    finally:
        torch.set_num_threads(threads)


def _run(task: Task, stop: Stop) -> list[RacingOutcome]:
    import torch

    study = task.study
    here = material(study)
    lesson, device = _lesson(task, here.stream), torch.device(study.device)
    low = int(lesson.frame.min())
    frames = _on(device, here.stream.frames[low : int(lesson.frame.max()) + 2])
    index = torch.as_tensor(lesson.frame - low, device=device)
    cumulant, continuation, weight = (
        torch.as_tensor(column, device=device)
        for column in (lesson.cumulant, lesson.continuation, lesson.weight)
    )
    states, values = _on(device, here.states.frames), here.states.value
    lanes = _lanes(task, lesson.group)
    checkpoint = _Checkpoint(task, [here.stream.hash, here.states.hash])
    start, errors = checkpoint.load(lanes)
    for u in range(start, study.updates):
        if stop():
            checkpoint.save(u, lanes, errors)
            raise Interrupted(task.name)
        lanes.update(
            frames[index[u]], frames[index[u] + 1], cumulant[u], continuation[u], weight[u]
        )
        if (u + 1) % study.measure_every == 0:
            difference = lanes.predict(states).cpu().numpy().astype(np.float64) - values
            with np.errstate(over="ignore", invalid="ignore"):
                squared = (difference**2).mean(axis=1)
            alive = np.isfinite(squared) & ~lanes.diverged.cpu().numpy()
            errors.append(np.where(alive, squared, np.inf))
            checkpoint.save_sometimes(u + 1, lanes, errors)
    shown = lanes.predict(_on(device, here.film.frames)).cpu().numpy().astype(np.float64)
    checkpoint.remove()
    return _outcomes(study, np.array(errors), shown)


def _lanes(task: Task, group: Sequence[int] | None = None) -> Lanes:
    """The networks of a run, as they begin."""
    from gvf.neural import Lanes, driving_network

    study = task.study
    rates = [rate for name in study.methods for rate in study.lanes(name)]
    initial = int(seed_for(study.seed, task.run, "weights").generate_state(1)[0])
    # On a GPU a stack of matrix products is more than twice as fast as convolutions in groups.
    how = "unfold" if study.device == "cuda" else "native"
    return Lanes(
        partial(driving_network, convolution=how),
        _optimiser(study.optimiser),
        rates,
        [initial] * len(rates),
        group=group,
        device=study.device,
    )


def seconds_of_an_update(study: RacingStudy, several: int = 3) -> float:
    """How long an update of all lanes takes here, from images without meaning."""
    import torch

    lanes, shape = _lanes(next(study.tasks())), (1, study.batch_size)
    frames, numbers = torch.zeros(*shape, *FRAME, dtype=torch.uint8), torch.zeros(shape)
    weights = torch.zeros(len(lanes), study.batch_size)
    began = 0.0
    for u in range(several + 1):
        if u == 1:  # the first takes longer
            began = time.perf_counter()
        lanes.update(frames, frames, numbers, numbers, weights)
    lanes.predict(frames[0]).sum().item()  # waits for the device
    return (time.perf_counter() - began) / several


def _on(device: torch.device, frames: Array) -> torch.Tensor:
    import torch

    return torch.from_numpy(np.ascontiguousarray(frames)).to(device)


def _optimiser(name: str) -> Callable[..., torch.optim.Optimizer]:
    import torch

    return {"sgd": torch.optim.SGD, "rmsprop": torch.optim.RMSprop, "adam": torch.optim.Adam}[name]


def _outcomes(study: RacingStudy, errors: Array, shown: Array) -> list[RacingOutcome]:
    """One for each method, from errors [J, L] and predictions along the film [L, m]."""
    points = min(study.points, len(errors))
    bins = np.arange(len(errors)) * points // len(errors)
    curve = np.stack([errors[bins == point].mean(axis=0) for point in range(points)], axis=1)
    outcomes, first = [], 0
    for name in study.methods:
        at = slice(first, first + len(study.lanes(name)))
        first = at.stop
        mean, final = errors[:, at].mean(axis=0), errors[-1, at]
        outcomes.append(
            RacingOutcome(name, study.lanes(name), mean, final, curve[at], film=shown[at])
        )
    return outcomes


DIGEST = 32
"""Bytes at the beginning of a checkpoint that tell whether the others are as they were."""


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


class _Checkpoint:
    """What a run has got to, in a file beside the recordings."""

    def __init__(self, task: Task, hashes: list[str]) -> None:
        # However many runs there are to be, this one is the same.
        settings = asdict(task.study) | {"runs": None}
        versions = [gvf.__version__, metadata.version("torch")]
        key = json.dumps([settings, task.run, hashes, versions], sort_keys=True)
        name = f"{task.study.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.checkpoint"
        self.path = folder() / name
        self._last = time.monotonic()

    def load(self, lanes: Any) -> tuple[int, list[Array]]:
        """Updates done and errors measured; the lanes go on from there."""
        import torch

        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return 0, []
        if _digest(content[DIGEST:]) != content[:DIGEST]:  # damaged: begin anew
            return 0, []
        kept = torch.load(
            io.BytesIO(content[DIGEST:]), map_location=lanes.device, weights_only=True
        )
        lanes.load_state_dict(kept["lanes"])
        return kept["updates"], [np.array(row) for row in kept["errors"]]

    def save_sometimes(self, updates: int, lanes: Any, errors: list[Array]) -> None:
        """Save, if the last time is long ago."""
        if time.monotonic() - self._last > CHECKPOINT_EVERY:
            self.save(updates, lanes, errors)

    def save(self, updates: int, lanes: Any, errors: list[Array]) -> None:
        """Write beside and rename."""
        import torch

        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        rows = [row.tolist() for row in errors]
        file = io.BytesIO()
        torch.save({"updates": updates, "errors": rows, "lanes": lanes.state_dict()}, file)
        try:
            beside.write_bytes(_digest(file.getvalue()) + file.getvalue())
            beside.replace(self.path)
        finally:
            beside.unlink(missing_ok=True)
        self._last = time.monotonic()

    def remove(self) -> None:
        """It is no longer needed."""
        with suppress(FileNotFoundError):
            self.path.unlink()
