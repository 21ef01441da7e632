"""A run of the racing car, from a recorded stream to errors: draw, learn, measure.

    stream -> ratio, cumulant, continuation -> draws (rows, weights) -> lanes of networks -> errors

If recordings and returns are in the cache (:mod:`gvf_lab.racing.recorded_inputs`), a run needs
PyTorch, but no simulator and no Gymnasium. It writes a checkpoint beside them every few minutes,
and after an interrupt it continues from there.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from gvf import Transitions
from gvf import draw_batches as draw
from gvf.common.arrays import Array
from gvf.common.distribution import how_to_install
from gvf.common.files import replaced
from gvf.common.version import __version__
from gvf.jobs import Interrupted
from gvf.kernels import Draw, Draws, carried
from gvf_lab.racing import driving_policies as policy
from gvf_lab.racing import simulators
from gvf_lab.racing.racing_study import RacingStudy
from gvf_lab.racing.recorded_inputs import Material, folder
from gvf_lab.racing.recording import Recording, hash_of
from gvf_lab.study.base_study import Stop, Task, seed_for
from gvf_lab.study.task import Outcome

if TYPE_CHECKING:
    import torch

    from gvf_lab.racing.network_lanes import Lanes

CHECKPOINT_EVERY = 120.0
"""Seconds between checkpoints."""


@dataclass(frozen=True)
class RacingOutcome(Outcome):
    """The errors of one method, and its last predictions for the film.

    Attributes:
        film: float64[L, m].
        constant: the error of the best constant prediction, the same in all rows, float64[L].
        zero: the error of predicting 0, likewise.
    """

    film: Array
    constant: Array
    zero: Array


def material(study: RacingStudy) -> Material:
    """Return a study's material; PyTorch and its device are checked, since recording takes long."""
    try:
        import torch
    except ModuleNotFoundError:
        needed = f"the racing car needs PyTorch; {how_to_install('gvf[torch]')}"
        raise ModuleNotFoundError(needed, name="torch") from None
    if study.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device 'cuda': PyTorch finds no CUDA device here; choose 'cpu'")
    return Material(study)


@dataclass(frozen=True)
class _Batches:
    """The mini-batches of a run, for U updates, L lanes and G ways to draw.

    Attributes:
        frame: the number of each drawn transition's first frame, int64[U, G, k].
        cumulant: float32[U, G, k].
        continuation: float32[U, G, k].
        weight: float32[U, L, k].
        group: the number of each lane's way to draw, less than G.
    """

    frame: Array
    cumulant: Array
    continuation: Array
    weight: Array
    group: list[int]


def _batches(task: Task, stream: Recording) -> _Batches:
    study = task.study
    question = policy.towards_middle(simulators.get(study.simulator).near)
    # The target does not depend on the image, so frame numbers can stand for images.
    transitions = Transitions(
        state=stream.first,
        action=stream.action,
        behaviour_log_probability=stream.log_mu,
        next_lateral=stream.lateral[stream.first + 1],
    )
    ratio, cumulant, continuation, interest = question.evaluate(transitions)
    drawn: dict[Draw, Draws] = {}
    weights, group = [], []
    for name in study.methods:
        correction = study.method(name).make(1.0)
        if correction.draw not in drawn:
            drawn[correction.draw] = draw(
                correction,
                carried(correction, ratio, continuation, stream.ended, interest),
                window=study.window,
                batch_size=study.batch_size,
                seed=seed_for(study.seed, task.run, "draws"),
                warm_up=study.warm_up,
                gap=study.gap,
            )
        w = drawn[correction.draw].weights(correction).astype(np.float32)
        weights += [w] * len(study.choices(name))
        group += [list(drawn).index(correction.draw)] * len(study.choices(name))
    # If a window has no mass, any of its rows will do, since its weight is 0.
    rows = np.stack(
        [np.where(draws.rows < 0, draws.last[:, None] - 1, draws.rows) for draws in drawn.values()],
        axis=1,
    )
    return _Batches(
        stream.first[rows],
        cumulant[rows].astype(np.float32),
        continuation[rows].astype(np.float32),
        np.stack(weights, axis=1),
        group,
    )


def try_batches(task: Task) -> None:
    """Make a task's mini-batches from a made-up stream; corrections are used nowhere else."""
    steps, rng = task.study.steps, np.random.default_rng(0)
    nothing = np.zeros(steps + 1, np.float32)
    stream = Recording(
        frames=np.zeros((steps + 1, *simulators.FRAME), np.uint8),
        first=np.arange(steps),
        action=policy.TARGET.sample(np.zeros(steps), rng=rng),
        log_mu=np.zeros(steps),
        lateral=rng.uniform(-1.0, 1.0, steps + 1),
        angle=nothing,
        speed=nothing,
        distance=nothing,
        settings={},
    )
    _batches(task, stream)


class _OneThread:
    """A context in which PyTorch uses one thread; the last run to leave it restores the number."""

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, 1

    def __enter__(self) -> None:
        import torch

        with self._lock:
            if not self._inside:
                self._before = torch.get_num_threads()
            self._inside += 1
            torch.set_num_threads(1)  # by every run, since each thread has a number of its own

    def __exit__(self, *error: object) -> None:
        import torch

        with self._lock:
            self._inside -= 1
            if not self._inside:
                torch.set_num_threads(self._before)


_ONE_THREAD = _OneThread()


def run_racing(task: Task, stop: Stop = lambda: False) -> list[RacingOutcome]:
    """Do a task, on one processor or a GPU; `stop` is called between updates.

    A checkpoint of the task stays until :func:`remove_checkpoint` is called.
    """
    with _ONE_THREAD:  # other processors do other runs
        return _run(task, stop)


def remove_checkpoint(task: Task) -> None:
    """Remove the checkpoint of a task, if there is one."""
    _Checkpoint(task, material(task.study)).remove()


def _run(task: Task, stop: Stop) -> list[RacingOutcome]:
    import torch

    study = task.study
    here = material(study)
    stream, device = here.stream(task.run), torch.device(study.device)
    batches = _batches(task, stream)
    frames = _on(device, stream.frames)
    index = torch.as_tensor(batches.frame, device=device)
    cumulant, continuation, weight = (
        torch.as_tensor(column, device=device)
        for column in (batches.cumulant, batches.continuation, batches.weight)
    )
    states, values = _on(device, here.states.frames), here.states.value
    lanes = _lanes(task, batches.group)
    checkpoint = _Checkpoint(task, here)
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
    film_values = lanes.predict(_on(device, here.film.frames)).cpu().numpy().astype(np.float64)
    return _outcomes(study, np.array(errors), film_values, values)


def _lanes(task: Task, group: Sequence[int] | None = None) -> Lanes:
    """Make the networks of a run, with their initial weights."""
    from gvf_lab.racing.driving_network import driving_network
    from gvf_lab.racing.network_lanes import Lanes

    study = task.study
    rates = [rate for name in study.methods for rate in study.choices(name)]
    initial = int(seed_for(study.seed, task.run, "weights").generate_state(1)[0])
    # On a GPU a stack of matrix products is more than twice as fast as convolutions in groups.
    how = "unfold" if study.device == "cuda" else "native"
    return Lanes(
        partial(driving_network, convolution=how),
        optimiser_named(study.optimiser),
        rates,
        [initial] * len(rates),
        group=group,
        device=study.device,
    )


def seconds_of_an_update(study: RacingStudy, several: int = 3) -> float:
    """Measure the seconds of an update of all lanes on this machine, with blank images."""
    import torch

    lanes, shape = _lanes(next(study.tasks())), (1, study.batch_size)
    frames, numbers = torch.zeros(*shape, *simulators.FRAME, dtype=torch.uint8), torch.zeros(shape)
    weights = torch.zeros(len(lanes), study.batch_size)
    began = 0.0
    for u in range(several + 1):
        if u == 1:  # the first update takes longer
            began = time.perf_counter()
        lanes.update(frames, frames, numbers, numbers, weights)
    lanes.predict(frames[0]).sum().item()  # waits for the device
    return (time.perf_counter() - began) / several


def _on(device: torch.device, frames: Array) -> torch.Tensor:
    import torch

    return torch.from_numpy(np.ascontiguousarray(frames)).to(device)


def optimiser_named(name: str) -> Callable[..., torch.optim.Optimizer]:
    """Return the function that makes the optimiser of this name, one of ``OPTIMISERS``."""
    import torch

    return {
        "sgd": torch.optim.SGD,
        "momentum": partial(torch.optim.SGD, momentum=0.9),
        "rmsprop": torch.optim.RMSprop,
        "adam": torch.optim.Adam,
    }[name]


def _outcomes(
    study: RacingStudy, errors: Array, film_values: Array, values: Array
) -> list[RacingOutcome]:
    """Make the outcome of each method.

    Args:
        study: the study.
        errors: the errors that were measured, [J, L].
        film_values: predictions for the film, [L, m].
        values: the mean returns from the evaluation states.
    """
    points = min(study.points, len(errors))
    bins = np.arange(len(errors)) * points // len(errors)
    curve = np.stack([errors[bins == point].mean(axis=0) for point in range(points)], axis=1)
    outcomes, first = [], 0
    for name in study.methods:
        at = slice(first, first + len(study.choices(name)))
        first = at.stop
        mean, final = errors[:, at].mean(axis=0), errors[-1, at]
        outcomes.append(
            RacingOutcome(
                name,
                study.choices(name),
                mean,
                final,
                curve[at],
                film=film_values[at],
                constant=np.full(len(mean), values.var()),
                zero=np.full(len(mean), (values**2).mean()),
            )
        )
    return outcomes


DIGEST = 32
"""The number of bytes at the start of a checkpoint that are the digest of the rest."""


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


class _Checkpoint:
    """The progress of a run, in a file beside the recordings."""

    def __init__(self, task: Task, here: Material) -> None:
        # A run does not depend on the number of runs.
        settings = asdict(task.study) | {"runs": None}
        hashes = [here.stream_hash(task.run), hash_of(here.states_file.path)]
        versions = [__version__, metadata.version("torch")]
        key = json.dumps([settings, task.run, hashes, versions], sort_keys=True)
        name = f"{task.study.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.checkpoint"
        self.path = folder() / name
        self._last = time.monotonic()

    def load(self, lanes: Any) -> tuple[int, list[Array]]:
        """Load the lanes; return the number of updates done and the errors measured."""
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
        """Save if the last checkpoint is old enough."""
        if time.monotonic() - self._last > CHECKPOINT_EVERY:
            self.save(updates, lanes, errors)

    def save(self, updates: int, lanes: Any, errors: list[Array]) -> None:
        """Write the file, which is never incomplete."""
        import torch

        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [row.tolist() for row in errors]
        file = io.BytesIO()
        torch.save({"updates": updates, "errors": rows, "lanes": lanes.state_dict()}, file)
        with replaced(self.path) as unfinished:
            unfinished.write_bytes(_digest(file.getvalue()) + file.getvalue())
        self._last = time.monotonic()

    def remove(self) -> None:
        """Remove the file, if there is one."""
        with suppress(FileNotFoundError):
            self.path.unlink()
