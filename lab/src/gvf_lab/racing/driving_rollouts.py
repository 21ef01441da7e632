"""Ground truth for the racing car: returns of the target policy from states the behaviour visits.

The value of a state is the mean of

    G = gamma^(tau - 1), with tau the first step at which the car is near the middle, else 0,

over rollouts of the target. The simulators cannot be put into a state, but they are deterministic:
a reset and the same actions, without drawing, lead to the state again. From there the target
drives. A rollout ends when gamma^t falls below 1e-4, or when the simulator ends the episode; then
its return is 0.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import cycle, islice
from threading import Event
from typing import Any, Self

import numpy as np

from gvf.common.arrays import Floats
from gvf.common.checks import set_frozen
from gvf.jobs import Interrupted
from gvf_lab.racing import driving_policies as policy
from gvf_lab.racing import simulators
from gvf_lab.racing.driving import Drive, execute, seeds
from gvf_lab.racing.recording import (
    Frames,
    Progress,
    check_frames,
    check_hash,
    described,
    digest,
    read,
    write,
)

LONGEST = math.ceil(math.log(1e-4) / math.log(policy.CONTINUATION))
"""The largest number of steps of a rollout; later cumulants are discounted by less than 1e-4."""
_NUMBERS = ("value", "stderr", "lateral")


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationSet:
    """States as images, with the mean returns of the target policy from them.

    Args:
        frames: uint8[m, 64, 128].
        value: float64[m], the mean return.
        stderr: float64[m], its standard error over rollouts (nan if there was only one).
        lateral: float64[m], distance to the middle in half-widths of the road, left positive.
        settings: the arguments and versions that made it, in types of JSON.

    Example:
        >>> import numpy as np
        >>> from gvf_lab.racing.driving_rollouts import EvaluationSet
        >>> EvaluationSet(
        ...     frames=np.zeros((2, 64, 128), np.uint8), value=[0.5, 0.0], stderr=[0.1, 0.0],
        ...     lateral=[-0.2, 0.4], settings={"simulator": "torcs"},
        ... )
        EvaluationSet(2 states, torcs, mean value 0.250, hash 1ecf...)
    """

    frames: Frames
    value: Floats
    stderr: Floats
    lateral: Floats
    settings: dict[str, Any]

    def __post_init__(self) -> None:
        check_frames(self.frames)
        for name in _NUMBERS:
            numbers = np.asarray(getattr(self, name), np.float64)
            if numbers.shape != (len(self.frames),):
                raise ValueError(f"{name} has shape {numbers.shape} for {len(self.frames)} frames")
            set_frozen(self, **{name: numbers})

    def __len__(self) -> int:
        return len(self.frames)

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the numbers, in hexadecimal, without settings and compression."""
        return digest({"frames": self.frames, **self._numbers()})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one compressed file, which is complete when it appears at ``path``."""
        write(path, "evaluation set", self.frames, self._numbers(), self.settings, self.hash)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file back, and check its hash.

        Raises:
            ValueError: if the file is no evaluation set, or is damaged.
        """
        frames, columns, settings, expected = read(path, "evaluation set")
        loaded = cls(frames=frames, settings=settings, **columns)
        check_hash(path, loaded.hash, expected)
        return loaded

    def _numbers(self) -> dict[str, Floats]:
        return {name: getattr(self, name) for name in _NUMBERS}

    def __repr__(self) -> str:
        simulator = self.settings.get("simulator", "unknown simulator")
        mean = self.value.mean() if len(self) else math.nan
        return (
            f"EvaluationSet({len(self)} states, {simulator}, mean value {mean:.3f}, "
            f"hash {self.hash[:4]}...)"
        )


def evaluation(
    simulator: str,
    states: int = 100,
    rollouts: int = 5,
    *,
    seed: int = 1,
    episodes: int = 15,
    workers: int = 2,
    progress: Progress | None = None,
    **options: Any,
) -> EvaluationSet:
    """Choose states from episodes of the behaviour, and measure the target's returns from them.

    The states are spread evenly over ``episodes`` episodes that no learner sees, and are chosen
    uniformly from a stretch of each. The episodes take turns on the tracks of a stream
    (:func:`gvf_lab.racing.driving.behaviour_steps`). The same arguments give the same numbers,
    with any number of workers.

    Args:
        simulator: "torcs" or "car-racing".
        states: the number of states, m.
        rollouts: the number of rollouts of the target from each state.
        seed: the seed of goals, noise, states and, in CarRacing, tracks; take another than the
            stream's.
        episodes: the number of episodes that the states come from.
        workers: the number of threads, each with a simulator.
        progress: a function that is called with the states done and ``states``.
        **options: options of the environment; ``track="g-track-1"`` makes it the only track.
    """
    if states < 1 or rollouts < 1 or episodes < 1:
        raise ValueError(
            "states, rollouts and episodes must be at least 1, got "
            f"{states}, {rollouts} and {episodes}"
        )
    stretch = simulators.get(simulator).stretch
    if states > stretch * episodes:
        raise ValueError(
            f"{episodes} episodes of {simulator} have at most {stretch * episodes} states, got "
            f"states={states}; take more episodes"
        )
    jobs = []
    shares = np.array_split(np.arange(states), episodes)
    roads = cycle(simulators.roads(simulator, options))
    for share, sequence, road in zip(shares, islice(seeds(seed), episodes), roads, strict=False):
        chooser, drive, returns = sequence.spawn(3)
        steps = np.sort(np.random.default_rng(chooser).choice(stretch, len(share), replace=False))
        jobs.append(_Job(simulator, road, steps.tolist(), rollouts, drive, returns))
    settings = {"states": states, "rollouts": rollouts, "seed": seed, "episodes": episodes}
    return _collect(simulator, options, jobs, settings, workers, progress)


def film(
    simulator: str,
    steps: int = 300,
    rollouts: int = 5,
    *,
    every: int = 3,
    seed: int = 2,
    workers: int = 2,
    progress: Progress | None = None,
    **options: Any,
) -> EvaluationSet:
    """Keep every few frames of one drive, in order, with returns as in :func:`evaluation`.

    The drive is on the first of the simulator's tracks.

    Args:
        simulator: "torcs" or "car-racing".
        steps: the number of steps of the drive.
        rollouts: the number of rollouts of the target from each kept frame.
        every: the number of steps from one kept frame to the next.
        seed: the seed of goals, noise and, in CarRacing, the track.
        workers: the number of threads, each with a simulator.
        progress: a function that is called with the frames done and the number of all.
        **options: options of the environment.
    """
    if steps < 1 or rollouts < 1 or every < 1:
        raise ValueError(
            f"steps, rollouts and every must be at least 1, got {steps}, {rollouts} and {every}"
        )
    drive, returns = next(seeds(seed)).spawn(2)
    road = simulators.roads(simulator, options)[0]
    kept = list(range(0, steps, every))
    # A piece has few states, so that the workers have about equal shares.
    pieces = [kept[i : i + 10] for i in range(0, len(kept), 10)]
    streams = returns.spawn(len(pieces))
    jobs = [
        _Job(simulator, road, piece, rollouts, drive, stream)
        for piece, stream in zip(pieces, streams, strict=True)
    ]
    settings = {"film": steps, "every": every, "rollouts": rollouts, "seed": seed}
    return _collect(simulator, road, jobs, settings, workers, progress)


@dataclass(frozen=True)
class _Job:
    """The states of one episode to evaluate: those after ``steps`` of the behaviour, in order."""

    simulator: str
    options: dict[str, Any]
    steps: list[int]
    rollouts: int
    drive_seed: np.random.SeedSequence
    return_seed: np.random.SeedSequence


def _collect(
    simulator: str,
    options: dict[str, Any],
    jobs: Sequence[_Job],
    settings: dict[str, Any],
    workers: int,
    progress: Progress | None,
) -> EvaluationSet:
    """Do the jobs, each in a simulator of its own, and collect their results in order."""
    total = sum(len(job.steps) for job in jobs)
    done = 0
    frames, lateral, returns = [], [], []
    # Threads are enough for TORCS, which is a process of its own. CarRacing gains nothing by them.
    stop = Event()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for rollouts in pool.map(partial(_work, stop), jobs):
                for each, more in zip((frames, lateral, returns), rollouts, strict=True):
                    each.append(more)
                done += len(rollouts[0])
                if progress is not None:
                    progress(done, total)
        except BaseException:  # an interrupt should not wait for all rollouts of a job
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    samples = np.concatenate(returns)
    count = samples.shape[1]
    spread = samples.std(axis=1, ddof=1) if count > 1 else np.full(total, np.nan)
    return EvaluationSet(
        np.concatenate(frames),
        samples.mean(axis=1),
        spread / math.sqrt(count),
        np.concatenate(lateral),
        {"simulator": simulator, **settings, **described(options)},
    )


def _work(stop: Event, job: _Job) -> tuple[Frames, Floats, Floats]:
    """Compute a job's frames, lateral positions and returns [states, rollouts], unless stopped."""
    frames = np.zeros((len(job.steps), *simulators.FRAME), np.uint8)
    lateral, returns = np.zeros(len(job.steps)), np.zeros((len(job.steps), job.rollouts))
    near = simulators.get(job.simulator).near
    env = simulators.make(job.simulator, **job.options)
    try:
        drive, visited = _drive(env, job, stop)
        before = len(drive.actions) - len(visited) + 1
        streams = job.return_seed.spawn(len(job.steps))
        for row, (step, stream) in enumerate(zip(job.steps, streams, strict=True)):
            actions, lateral[row] = drive.actions[: before + step], visited[step]
            for rollout, rng in enumerate(map(np.random.default_rng, stream.spawn(job.rollouts))):
                _check_stop(stop)
                drawn, reached = replay(env, drive.reset_seed, actions, draw=rollout == 0)
                if reached["lateral"] != visited[step]:
                    raise RuntimeError(
                        f"{job.simulator} is not deterministic: the same {len(actions)} actions "
                        f"led to {visited[step]} and to {reached['lateral']} half-widths from the "
                        "middle"
                    )
                if rollout == 0:
                    frames[row] = drawn
                returns[row, rollout] = target_return(env, near, rng=rng)
    finally:
        env.close()
    return frames, lateral, returns


def _check_stop(stop: Event) -> None:
    if stop.is_set():
        raise Interrupted("rollouts")


def _drive(env: Any, job: _Job, stop: Event) -> tuple[Drive, list[float]]:
    """Drive to the job's last state; return the drive and the lateral positions on the way."""
    drive = Drive(env, job.simulator, seed=job.drive_seed, draw=False)
    visited = [drive.info["lateral"]]
    for step in range(max(job.steps, default=0)):
        _check_stop(stop)
        if drive.step()[2]:
            raise RuntimeError(
                f"the behaviour lost the car after {step + 1} steps; choose another seed"
            )
        visited.append(drive.info["lateral"])
    return drive, visited


def replay(
    env: Any, seed: int, actions: Iterable[float], *, draw: bool = False
) -> tuple[Frames, dict[str, Any]]:
    """Reset and execute actions; return the image, if it is drawn, and the info after the last.

    Args:
        env: a simulator.
        seed: the seed of the reset.
        actions: the steering, one number a step.
        draw: True if the last step is drawn; the others never are.
    """
    steering = np.array([*actions], np.float32)[:, None]
    env.draw = draw and not len(steering)
    frame, info = env.reset(seed=seed)
    if len(steering):
        env.replay(steering[:-1])
        env.draw = draw
        frame, _, _, _, info = env.step(steering[-1])
    env.draw = False
    return frame, info


def target_return(env: Any, near: float, *, rng: np.random.Generator) -> float:
    """Compute the return of one rollout of the target from the simulator's present state."""
    env.draw = False
    discount = 1.0
    for action in policy.TARGET.sample(np.zeros(LONGEST), rng=rng):
        _, _, terminated, truncated, info = execute(env, float(action))
        if abs(info["lateral"]) < near:
            return discount
        if terminated or truncated:
            break
        discount *= policy.CONTINUATION
    return 0.0
