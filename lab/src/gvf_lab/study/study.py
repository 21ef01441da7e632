"""A study of errors: a grid of (pair, method, step size, gap) x runs.

A task does all methods and step sizes of one pair, gap and run, which share its stream and its
draws. Every task and every part of the grid has a name, and gives the same bits alone as in the
grid. :mod:`gvf_lab.study.task` does the work.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gvf import Method
from gvf.common.part_names import is_reference, known
from gvf.kernels import UPDATES
from gvf_lab.study.base_study import BaseStudy, Columns, Stop, Task
from gvf_lab.study.settings import (
    check_distinct,
    check_masses,
    check_numbers,
    check_pairs,
    check_several,
    check_shared,
)

ERRORS = {"absolute": False, "root mean square": True}
"""The ways to average |V - v| over states, each with True if the difference is squared."""
EVERY_STEP, ACTIVE = "every step", "active"
"""The steps after which updates come: all, or only those at which the question is active."""
PROBE = 0.3
"""Seconds that a probe should take at least, if the task is long enough."""


@dataclass(frozen=True, repr=False)
class Study(BaseStudy):
    """A study of errors: the methods, their choices, and the settings of its runs.

    Attributes:
        name: the study's name, also that of its folder of results.
        domain: the domain's name, id or reference, see :func:`gvf_lab.domain.get`.
        methods: names, tables or corrections, see :class:`gvf_lab.study.Method`.
        step_sizes: the step sizes of every method but WIS-TD(0).
        protocol: "paper" or "authors".
        pairs: the (question, behaviour) pairs, by name; by default all that belong together.
        update: "sgd", "rmsprop", "adam", "incremental", "tdc", "tdrc", or "module:Class".
        steps: the length of the stream, or the number of transitions in a fixed buffer.
        updates: the number of updates from a fixed buffer; 0: online, every ``gap`` steps.
        gaps: steps between updates.
        warm_up: steps before the first of these intervals.
        window: the number of recent transitions that draws are made from, n.
        batch_size: the number of transitions drawn for an update, k.
        error: "absolute" or "root mean square".
        measure_every: steps between measurements of the error, which is averaged over the run.
        points: the number of points of a learning curve.
        u0: the values of u0 for WIS-TD(0).
        mu: the values of mu for WIS-TD(0); eta = mu / u0.
        evaluation_states: the number of states that errors are averaged over, if they are sampled.
        runs: the number of runs.
        seed: the seed of everything random.
        when: "every step", or "active": updates come only after steps at which the question is
            active, and a gap is a number of such steps.
        own: the methods that are not built in; follows from `methods`.

    Example:
        >>> from gvf_lab.study import Study
        >>> study = Study("mine", "markov-chain", ("IR", "IS"), (0.5, 1.0), updates=100, runs=3)
        >>> len(list(study.tasks())), next(study.tasks()).name
        (9, 'mine/easy/easy/gap-1/run-0')
        >>> study
        Study 'mine' (protocol 'paper') in markov-chain
          pairs: easy/easy, hard/hard, hardest/hardest
          methods: IR, IS
          update: sgd, step sizes 0.5, 1
          15000 steps, window 15000, batches of 16, 100 updates
          absolute error, 3 runs, seed 0
    """

    kind = "errors"
    keys = ("step_size", "u0", "eta")
    grid = {"step_size": "step_sizes", "u0": "u0", "mu": "mu"}  # noqa: RUF012
    least = dict.fromkeys(
        ("steps", "gaps", "window", "batch_size", "measure_every", "points", "evaluation_states",
         "runs"), 1,
    ) | {"warm_up": 0, "updates": 0, "seed": 0}  # fmt: skip
    measures = {  # noqa: RUF012
        "error": "mean over the run",
        "final": "the last one measured",
        "curve": "means over equal parts of the run",
        "curve_steps": "the middle of each part, in steps; with a fixed buffer, in updates",
    }

    name: str
    domain: str
    methods: tuple[Any, ...]
    step_sizes: tuple[float, ...] = ()
    protocol: str = "paper"  # pyright: ignore[reportIncompatibleMethodOverride]
    pairs: tuple[tuple[str, str], ...] = ()
    update: str = "sgd"
    steps: int = 15_000
    updates: int = 0
    gaps: tuple[int, ...] = (1,)  # pyright: ignore[reportIncompatibleMethodOverride]
    warm_up: int = 0
    window: int = 15_000
    batch_size: int = 16
    error: str = "absolute"
    measure_every: int = 1
    points: int = 100
    u0: tuple[float, ...] = ()
    mu: tuple[float, ...] = ()
    evaluation_states: int = 1000
    runs: int = 30
    seed: int = 0
    when: str = EVERY_STEP
    own: tuple[Method, ...] = ()

    def __post_init__(self) -> None:
        domain = check_shared(self)
        if not is_reference(self.update):
            known(self.update, UPDATES, "update")
        known(self.error, ERRORS, "error")
        known(self.when, (EVERY_STEP, ACTIVE), "when")
        self._check_numbers()
        for method in self.methods:
            self._check_method(self.method(method), domain.repeats)

    def _check_numbers(self) -> None:
        check_numbers(self)
        check_several(gaps=self.gaps)
        for name, least in (("step_sizes", 0.0), ("u0", 1e-300), ("mu", 1e-300)):
            check_distinct(**{name: getattr(self, name)})
            for value in getattr(self, name):
                if not least <= value < float("inf"):
                    sign = "not negative" if least == 0.0 else "positive"
                    raise ValueError(f"{name} must be finite and {sign}, got {value}")
        if self.updates and self.gaps != (1,):
            raise ValueError("a fixed buffer (updates > 0) has no gaps")
        if self.updates and self.when == ACTIVE:
            raise ValueError(
                f"a fixed buffer (updates > 0) is learned from after its last step: when must be "
                f"{EVERY_STEP!r}, got {self.when!r}"
            )
        if not self.updates and self.warm_up + max(self.gaps) > self.steps:
            raise ValueError(
                f"no update would come in {self.steps} steps, after a warm_up of {self.warm_up} "
                f"and with gaps of up to {max(self.gaps)}"
            )
        if self.measure_every > (self.updates or self.steps):
            raise ValueError(
                f"nothing would be measured: measure_every is {self.measure_every}, and there are "
                f"{self.updates or self.steps} steps or updates"
            )

    def _check_method(self, method: Method, repeats: bool) -> None:
        if method.update == "wis-td":
            if not (self.u0 and self.mu):
                raise ValueError(f"{method.name} needs u0 and mu instead of step sizes")
        elif not self.step_sizes:
            raise ValueError(f"{method.name} needs step_sizes")
        try:
            update = method.make_update(self.update, self.choices(method.name)[:1])
        except TypeError as error:
            raise ValueError(f"the update of {method.name}: {error}") from None
        check_masses(method)
        if method.draws.whole:
            if (method.update or self.update) == "incremental":
                raise ValueError(f"{method.name} has no draws to go through: no incremental update")
            if update.next_action == "sampled":
                raise ValueError(
                    f"{method.name} needs a next action for each draw, and has no draws"
                )
            if not repeats:
                raise ValueError(
                    f"{method.name} needs the whole window in every update: affordable in a table, "
                    "where transitions repeat, not with continuous states"
                )

    @property
    def generation(self) -> int:
        """The domain's generation under this protocol."""
        return self.world.generation

    def check(self) -> None:
        """Refuse a pair that cannot be learned, or a method that cannot be made for it."""
        check_pairs(self)

    def varied(self, method: str) -> tuple[str, ...]:
        """Return "step_size", or "u0" and "mu" for WIS-TD(0)."""
        return ("u0", "mu") if self.method(method).update == "wis-td" else ("step_size",)

    def choice(self, **point: Any) -> Any:
        """Return the step size, or the pair (u0, eta) of WIS-TD(0), with eta = mu / u0."""
        return (point["u0"], point["mu"] / point["u0"]) if "mu" in point else point["step_size"]

    def key(self, choice: Any) -> Columns:
        """Return the step size, or u0 and eta."""
        if isinstance(choice, tuple):
            return {"u0": choice[0], "eta": choice[1]}
        return {"step_size": choice}

    def compute(self, task: Task, stop: Stop) -> Columns:
        """Compute the errors of all methods and step sizes."""
        from gvf_lab.study.task import run_task

        outcomes = run_task(task, stop)
        steps = self.curve_steps(outcomes[0].curve.shape[1])
        return {
            "error": np.concatenate([outcome.error for outcome in outcomes]),
            "final": np.concatenate([outcome.final for outcome in outcomes]),
            "curve": np.concatenate([outcome.curve for outcome in outcomes]),
            "curve_steps": np.tile(steps, (sum(len(o.choices) for o in outcomes), 1)),
        }

    @property
    def pictures(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Sensitivity, errors against updates if there are several gaps, and learning curves."""
        several = ("updates",) if len(self.gaps) > 1 and self.when == EVERY_STEP else ()
        curves = ("learning-curves",) if self.points > 1 else ()
        return ("sensitivity", *several, *curves)

    @property
    def quantity(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The kind of error."""
        return f"{self.error} error"

    def curve_steps(self, points: int) -> np.ndarray:
        """Return the middle of each part of a learning curve, in steps or updates."""
        return (np.arange(points) + 0.5) * ((self.updates or self.steps) / points)

    @property
    def curve_unit(self) -> str:
        """The unit of a learning curve's x axis."""
        return "updates" if self.updates else "steps"

    def updates_at(self, gap: int) -> int:
        """Return the number of updates in a run with this gap, if every step counts."""
        return self.updates or (self.steps - self.warm_up) // gap

    def tiny(self) -> Self:
        """Return the study with one run of a few steps, evaluated in a few states."""
        gap = min(self.gaps)
        updates = {"updates": 2} if self.updates else {"warm_up": 0, "gaps": (gap,)}
        return self.with_(
            steps=max(50, 2 * gap),
            measure_every=1,
            points=1,
            evaluation_states=3,
            runs=1,
            **updates,
        )

    def probe(self) -> dict[int, float]:
        """Time the beginning of a task at the smallest and the largest gap, and scale it up."""
        known = {}
        for gap in sorted({min(self.gaps), max(self.gaps)}):
            share = 0.01
            self._seconds(gap, share)  # compiles, and computes the true values
            while (seconds := self._seconds(gap, share)) < PROBE and share < 1.0:
                share = min(1.0, 4.0 * share)
            known[gap] = seconds / share
        return known

    def _seconds(self, gap: int, share: float) -> float:
        if self.updates:
            part = self.with_(updates=max(1, round(share * self.updates)))
        else:
            steps = self.warm_up + round(share * (self.steps - self.warm_up))
            part = self.with_(steps=max(steps, self.warm_up + gap, self.measure_every))
        began = time.thread_time()
        part.compute(Task(part, *part.pairs[0], 0, gap), lambda: False)
        return time.thread_time() - began

    def under(self, protocol: str | None) -> Self:
        """Return the same study under a protocol."""
        return self if protocol is None else self.with_(protocol=protocol)

    def __repr__(self) -> str:
        sizes = self.step_sizes
        if len(sizes) > 6:
            sizes_text = f"{len(sizes)} from {sizes[0]:g} to {sizes[-1]:g}"
        else:
            sizes_text = ", ".join(f"{size:g}" for size in sizes)
        when = f"{self.updates} updates" if self.updates else f"gaps {_short(self.gaps)}"
        when += " of active steps" if self.when == ACTIVE else ""
        return (
            f"Study {self.name!r} (protocol {self.protocol!r}) in {self.domain}\n"
            f"  pairs: {', '.join('/'.join(pair) for pair in self.pairs)}\n"
            f"  methods: {', '.join(self.methods)}\n"
            f"  update: {self.update}, step sizes {sizes_text}\n"
            f"  {self.steps} steps, window {self.window}, batches of {self.batch_size}, {when}\n"
            f"  {self.error} error, {self.runs} runs, seed {self.seed}"
        )


def _short(numbers: tuple[int, ...]) -> str:
    if len(numbers) > 6:
        return f"{numbers[0]} to {numbers[-1]} ({len(numbers)})"
    return ", ".join(map(str, numbers))
