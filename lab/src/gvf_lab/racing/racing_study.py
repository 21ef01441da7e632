"""The racing car as a study: networks that learn from images, for many learning rates at once.

A stream of images is recorded for every run (:mod:`gvf_lab.racing.recorded_inputs`), and the run
learns online from its stream, with an update every ``gap`` steps. Streams have their own seeds, so
runs are independent. A task is one run. Its lanes are all methods and learning rates; they share
the draws and the network's initial weights. Predictions are compared with returns of the target
policy from states outside all streams, which are recorded too. :mod:`gvf_lab.racing.racing_task`
runs a task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gvf import Method
from gvf.common.part_names import known
from gvf.jobs import Place, RayCluster, Threads
from gvf_lab.racing import simulators
from gvf_lab.study.base_study import BaseStudy, Columns, Stop, Task
from gvf_lab.study.settings import (
    check_masses,
    check_name,
    check_numbers,
    check_several,
    check_types,
    resolve_methods,
    try_methods,
)

OPTIMISERS = ("sgd", "momentum", "rmsprop", "adam")
"""Optimisers of PyTorch, by name; "momentum" is SGD with momentum .9."""
DEVICES = ("cpu", "cuda")
"""Devices on which networks learn."""


@dataclass(frozen=True, repr=False)
class RacingStudy(BaseStudy):
    """A grid of methods and learning rates, with a recorded stream for every run.

    Attributes:
        name: the name of the study.
        simulator: "torcs" or "car-racing".
        methods: methods that learn state values from mini-batches; names, tables or corrections.
        step_sizes: the learning rates.
        optimiser: "sgd", "momentum" (SGD with momentum .9), "rmsprop" or "adam".
        steps: the number of transitions of a run's stream.
        warm_up: the number of steps before the first gap.
        gap: the number of steps between updates.
        window: the number of recent transitions from which draws are made, n.
        batch_size: the number of transitions drawn for an update, k.
        measure_every: the number of updates between measurements, whose mean is the error.
        points: the number of points of a learning curve.
        evaluation_states: the number of states over which the error is averaged.
        rollouts: the number of rollouts of the target policy from each evaluation state.
        device: "cpu" or "cuda"; results agree up to rounding.
        runs: the number of runs.
        seed: the seed of everything random, recordings included.
        own: the methods that are not ours, by name; it follows from `methods`.

    Example:
        >>> from gvf_lab.racing import RacingStudy
        >>> study = RacingStudy("r", step_sizes=(0.01, 0.1), runs=2)
        >>> study.updates, [task.name for task in study.tasks()]
        (20000, ['r/left/wander/gap-1/run-0', 'r/left/wander/gap-1/run-1'])
        >>> study
        RacingStudy 'r' in torcs
          methods: IR, BC-IR, IS, WIS-Minibatch, V-trace(1.0)
          adam, learning rates 0.01, 0.1
          45000 steps, window 45000, batches of 16, 20000 updates
          300 evaluation states, 2 runs, seed 0, on cpu
    """

    kind = "gvf_lab.racing:RacingStudy"
    keys = ("step_size",)
    grid = {"step_size": "step_sizes"}  # noqa: RUF012
    least = dict.fromkeys(
        ("steps", "gap", "window", "batch_size", "measure_every", "points", "runs",
         "evaluation_states", "rollouts"), 1,
    ) | {"warm_up": 0, "seed": 0}  # fmt: skip
    measures = {  # noqa: RUF012
        "error": "mean over the run",
        "final": "the last one measured",
        "curve": "means over equal parts of the run",
        "curve_steps": "the middle of each part, in updates",
        "film": "predictions along a drive",
        "constant": "of the best constant",
        "zero": "of predicting 0",
    }
    pictures = ("sensitivity", "learning-curves")
    quantity = "mean squared return error"
    own_threads = True
    patience = 60.0  # a task writes a checkpoint when it stops
    curve_unit = "updates"

    name: str
    simulator: str = "torcs"
    methods: tuple[Any, ...] = ("IR", "BC-IR", "IS", "WIS-Minibatch", "V-trace(1.0)")
    step_sizes: tuple[float, ...] = ()
    optimiser: str = "adam"
    steps: int = 45_000
    warm_up: int = 25_000
    gap: int = 1
    window: int = 45_000
    batch_size: int = 16
    measure_every: int = 100
    points: int = 25
    evaluation_states: int = 300
    rollouts: int = 5
    device: str = "cpu"
    runs: int = 10
    seed: int = 0
    own: tuple[Method, ...] = ()

    def __post_init__(self) -> None:
        resolve_methods(self)
        check_types(self)
        check_name(self.name)
        simulators.get(self.simulator)
        known(self.optimiser, OPTIMISERS, "optimiser")
        known(self.device, DEVICES, "device")
        check_several(step_sizes=self.step_sizes)
        for name in self.methods:
            method = self.method(name)
            if method.update or method.on_policy or method.draws.whole:
                raise ValueError(f"methods: {name} learns from no mini-batches of this stream")
            if method.needs_largest:
                raise ValueError(f"methods: {name} needs a largest ratio, and densities have none")
            check_masses(method)
        for size in self.step_sizes:
            if not 0.0 <= size < float("inf"):
                raise ValueError(f"step_sizes must be finite and not negative, got {size}")
        check_numbers(self)
        if self.updates < self.measure_every:
            raise ValueError(
                f"nothing would be measured: there are {self.updates} updates, and measure_every "
                f"is {self.measure_every}"
            )

    @property
    def domain(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The simulator."""
        return self.simulator

    @property
    def updates(self) -> int:
        """The number of updates in a run."""
        return (self.steps - self.warm_up) // self.gap

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The one pair: the target steers left, and the behaviour wanders."""
        return (("left", "wander"),)

    @property
    def gaps(self) -> tuple[int, ...]:
        """The one gap of the study."""
        return (self.gap,)

    def updates_at(self, gap: int) -> int:
        """Return the number of updates in a run."""
        return self.updates

    def compute(self, task: Task, stop: Stop) -> Columns:
        """Compute the errors of all methods and learning rates, and predictions for the film."""
        from gvf_lab.racing.racing_task import run_racing

        outcomes = run_racing(task, stop)
        points = outcomes[0].curve.shape[1]
        middle = (np.arange(points) + 0.5) * (self.updates / points)
        return {
            "error": np.concatenate([outcome.error for outcome in outcomes]),
            "final": np.concatenate([outcome.final for outcome in outcomes]),
            "curve": np.concatenate([outcome.curve for outcome in outcomes]),
            "curve_steps": np.tile(middle, (len(self.methods) * len(self.step_sizes), 1)),
            "film": np.concatenate([outcome.film for outcome in outcomes]),
            "constant": np.concatenate([outcome.constant for outcome in outcomes]),
            "zero": np.concatenate([outcome.zero for outcome in outcomes]),
        }

    def check(self) -> None:
        """Refuse a method of the user's own that fails in a trial, before anything is recorded."""
        from gvf_lab.racing.racing_task import try_batches

        if self.own:
            try_methods(self.tiny(), try_batches)

    def facts(self) -> dict[str, Any]:
        """Return the hashes of the evaluation states, the film, and the streams."""
        from gvf_lab.racing.racing_task import material

        return material(self).facts()

    def finished(self, task: Task) -> None:
        """Remove the checkpoint of a task whose result is stored."""
        from gvf_lab.racing.racing_task import remove_checkpoint

        remove_checkpoint(task)

    def place(self, place: Place) -> Place:
        """Return threads of this process: one on a GPU, otherwise as many as wanted."""
        if isinstance(place, RayCluster):
            raise ValueError("the racing car learns where its recordings are: no engine 'ray'")
        return super().place(Threads(1) if self.device == "cuda" else place)

    def tiny(self) -> Self:
        """Return the study with one run of a few steps."""
        steps = max(50, 2 * self.gap)
        return self.with_(steps=steps, warm_up=0, measure_every=1, points=1, runs=1)

    def probe(self) -> dict[int, float]:
        """Estimate the seconds of a task, by gap, from a few updates with blank images."""
        from gvf_lab.racing.racing_task import seconds_of_an_update

        return {self.gap: self.updates * seconds_of_an_update(self)}

    def __repr__(self) -> str:
        return (
            f"RacingStudy {self.name!r} in {self.simulator}\n"
            f"  methods: {', '.join(self.methods)}\n"
            f"  {self.optimiser}, learning rates {', '.join(f'{s:g}' for s in self.step_sizes)}\n"
            f"  {self.steps} steps, window {self.window}, batches of "
            f"{self.batch_size}, {self.updates} updates\n"
            f"  {self.evaluation_states} evaluation states, {self.runs} runs, seed {self.seed}, "
            f"on {self.device}"
        )
