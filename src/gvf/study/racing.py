"""The racing car, as a study: networks that learn from images, for many learning rates at once.

A stream of images is recorded once (:mod:`gvf.domain.racing`); run r learns from the ``steps``
transitions that begin with number ``r * apart`` of it, online, with an update every ``gap`` steps.
A task is one run: all methods and learning rates are lanes of one program, share its draws and the
network's initial weights. What it compares with, returns of the target policy from states that the
stream has not seen, is made once too. :mod:`gvf.study.racing_task` does the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gvf.domain.domain import known
from gvf.domain.racing import policy
from gvf.study.check import check_at_least, check_name, check_several, check_types
from gvf.study.method import METHODS
from gvf.study.study import no_such_name

SIMULATORS = tuple(policy.SIMULATORS)
"""The real TORCS, or Gymnasium's CarRacing."""
OPTIMISERS = ("sgd", "rmsprop", "adam")
"""Of PyTorch, by name."""
DEVICES = ("cpu", "cuda")
"""Where networks learn."""


@dataclass(frozen=True, repr=False)
class RacingStudy:
    """What to run.

    Attributes:
        name: of the study.
        simulator: "torcs" or "car-racing".
        methods: those that learn state values from mini-batches, by name.
        step_sizes: learning rates.
        optimiser: "sgd", "rmsprop" or "adam".
        stream: transitions that are recorded, for all runs together.
        steps: transitions that a run sees.
        apart: how many transitions later in the stream each run begins than the one before.
        warm_up: steps before the first of the intervals between updates.
        gap: steps between updates.
        window: how many recent transitions draws are made from, n.
        batch_size: how many are drawn for an update, k.
        measure_every: updates between measurements of the error, which is averaged over the run.
        points: of a learning curve.
        evaluation_states: how many states count.
        rollouts: of the target policy from each of them.
        device: "cpu" or "cuda"; results agree but for rounding.
        runs: how many.
        seed: of everything random.

    Example:
        >>> from gvf.study import RacingStudy
        >>> study = RacingStudy("r", step_sizes=(0.01, 0.1), runs=2)
        >>> study.updates, [task.name for task in study.tasks()]
        (5000, ['r/left/wander/run-0', 'r/left/wander/run-1'])
        >>> study
        RacingStudy 'r' in torcs
          methods: IR, BC-IR, IS, WIS-Minibatch, V-trace(1.0)
          adam, learning rates 0.01, 0.1
          20000 of 38000 steps, window 15000, batches of 16, 5000 updates
          100 evaluation states, 2 runs, seed 0, on cpu
    """

    name: str
    simulator: str = "torcs"
    methods: tuple[str, ...] = ("IR", "BC-IR", "IS", "WIS-Minibatch", "V-trace(1.0)")
    step_sizes: tuple[float, ...] = ()
    optimiser: str = "adam"
    stream: int = 38_000
    steps: int = 20_000
    apart: int = 2000
    warm_up: int = 5000
    gap: int = 3
    window: int = 15_000
    batch_size: int = 16
    measure_every: int = 100
    points: int = 25
    evaluation_states: int = 100
    rollouts: int = 5
    device: str = "cpu"
    runs: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        check_name(self.name)
        known(self.simulator, SIMULATORS, "simulator")
        known(self.optimiser, OPTIMISERS, "optimiser")
        known(self.device, DEVICES, "device")
        check_several(methods=self.methods, step_sizes=self.step_sizes)
        for name in self.methods:
            method = METHODS[known(name, METHODS, "method")]
            if method.kind != "td" or method.on_policy or method.correction(1.0).draw.whole:
                raise ValueError(f"methods: {name} learns from no mini-batches of this stream")
            if method.correction(1.0) != method.correction(2.0):
                raise ValueError(f"methods: {name} needs a largest ratio, and densities have none")
        for size in self.step_sizes:
            if not 0.0 <= size < float("inf"):
                raise ValueError(f"step_sizes must be finite and not negative, got {size}")
        for name in ("steps", "gap", "window", "batch_size", "measure_every", "points", "runs"):
            check_at_least(1, **{name: getattr(self, name)})
        check_at_least(0, warm_up=self.warm_up, apart=self.apart, seed=self.seed)
        check_at_least(1, evaluation_states=self.evaluation_states, rollouts=self.rollouts)
        check_at_least(self.steps, stream=self.stream)
        if self.updates < self.measure_every:
            raise ValueError(
                f"nothing would be measured: there are {self.updates} updates, and measure_every "
                f"is {self.measure_every}"
            )

    @property
    def domain(self) -> str:
        """The simulator."""
        return self.simulator

    @property
    def updates(self) -> int:
        """Updates in a run."""
        return (self.steps - self.warm_up) // self.gap

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Steer left until the middle of the road; wander over it."""
        return (("left", "wander"),)

    @property
    def gaps(self) -> tuple[int, ...]:
        """Only one."""
        return (self.gap,)

    def lanes(self, method: str) -> tuple[float, ...]:
        """The learning rates, the same for every method."""
        return self.step_sizes

    def begins(self, run: int) -> int:
        """The number of the transition that a run begins with."""
        return run * self.apart % (self.stream - self.steps + 1)

    def tasks(self) -> Iterator[RacingTask]:
        """One for each run."""
        (pair,) = self.pairs
        return (RacingTask(self, *pair, self.gap, run) for run in range(self.runs))

    def cell(self, name: str) -> RacingTask:
        """The task that is one cell of the grid, by its name: one method, one learning rate."""
        for task in self.tasks():
            for method in self.methods:
                for size in self.step_sizes:
                    if name == f"{task.name}/{method}/{size!r}":
                        only = replace(self, methods=(method,), step_sizes=(size,))
                        return replace(task, study=only)
        raise no_such_name(self, name)

    def with_(self, **changes: Any) -> RacingStudy:
        """The same study with other values."""
        return replace(self, **changes)

    def __repr__(self) -> str:
        return (
            f"RacingStudy {self.name!r} in {self.simulator}\n"
            f"  methods: {', '.join(self.methods)}\n"
            f"  {self.optimiser}, learning rates {', '.join(f'{s:g}' for s in self.step_sizes)}\n"
            f"  {self.steps} of {self.stream} steps, window {self.window}, batches of "
            f"{self.batch_size}, {self.updates} updates\n"
            f"  {self.evaluation_states} evaluation states, {self.runs} runs, seed {self.seed}, "
            f"on {self.device}"
        )


@dataclass(frozen=True)
class RacingTask:
    """One run: all methods and learning rates of a study."""

    study: RacingStudy
    question: str
    behaviour: str
    gap: int
    run: int

    @property
    def name(self) -> str:
        """Unique in all studies, and a path."""
        return f"{self.study.name}/{self.question}/{self.behaviour}/run-{self.run}"

    def cells(self) -> Iterator[str]:
        """The names of the cells: this task's, the method's, the learning rate's."""
        study = self.study
        return (f"{self.name}/{m}/{size!r}" for m in study.methods for size in study.step_sizes)
