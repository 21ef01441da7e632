"""One task, from its seed to its errors: walk, draw, learn, measure.

Results are a pure function of the task: the stream of a run is the same for all gaps, the draws of
a pair and gap for all methods, and each method learns alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gvf import domain as domains
from gvf.correction import Correction
from gvf.correction import Draw as HowToDraw
from gvf.domain.continuous_four_rooms import ContinuousDomain, cells_of
from gvf.entry import address_of
from gvf.learner.linear import Array, Experience
from gvf.learner.update import LearnerState
from gvf.study.draws import Draws, draw
from gvf.study.loop import compiled
from gvf.study.method import METHODS, Method
from gvf.study.study import ERRORS, Study, Task
from gvf.study.walk import Walk, seed_for, walk
from gvf.trace import carried
from gvf.truth import TrueValues

SLICE = 0.2
"""Seconds of a slice, about: how long an interrupt waits."""


VECTOR, LINE = 8, 64
"""Numbers in the widest vectors of today's processors, and bytes in a line of their caches."""


class Interrupted(Exception):  # noqa: N818 (it is no error)
    """A task was told to stop; nothing of it is kept."""


@dataclass(frozen=True)
class Schedule:
    """When errors are measured.

    Attributes:
        upto: updates done before each measurement, int64[J].
        held: how many measurements it stands for, float64[J] (weights do not change in between).
        bins: to which point of the learning curve it counts, int64[J].
        points: how many of these there are.
    """

    upto: Array
    held: Array
    bins: Array
    points: int


def schedule(study: Study, gap: int) -> Schedule:
    """Measurements after every `measure_every` steps (or updates, with a fixed buffer)."""
    last = study.updates or study.steps
    times = np.arange(study.measure_every, last + 1, study.measure_every)
    done = times if study.updates else np.maximum(times - study.warm_up, 0) // gap
    points = min(study.points, len(times))
    bins = (np.arange(len(times)) * points) // len(times)
    # Measurements between two updates are the same: one stands for all that share a bin.
    change = np.flatnonzero(np.diff(done, prepend=-1) | np.diff(bins, prepend=-1))
    held = np.diff(change, append=len(times)).astype(np.float64)
    return Schedule(done[change].astype(np.int64), held, bins[change], points)


@dataclass(frozen=True)
class Outcome:
    """Errors of one method: one row a lane.

    Attributes:
        method: its name.
        lanes: step sizes, or (u0, eta).
        error: averaged over the run, float64[L]; inf where it diverged.
        final: the last one measured, float64[L].
        curve: averages over equal parts of the run, float64[L, points].
    """

    method: str
    lanes: tuple[Any, ...]
    error: Array
    final: Array
    curve: Array


@dataclass(frozen=True)
class RacingOutcome(Outcome):
    """Errors of one method, and what it predicts in the end along the film: float64[L, m]."""

    film: Array


def run_task(task: Task, stop: Callable[[], bool] = lambda: False) -> list[Outcome]:
    """Do a task; `stop` is asked between slices."""
    bench = Bench(task)
    return [run_method(task, name, stop, bench) for name in task.study.methods]


class Bench:
    """What the methods of a task share: streams, draws, truth. Made when first asked for."""

    def __init__(self, task: Task) -> None:
        study = task.study
        self.task, self.study = task, study
        self.domain = domains.get(study.domain, study.protocol)
        self.pi = self.domain.table(self.domain.target(task.question))
        self.plan = schedule(study, task.gap)
        self._draws: dict[tuple[bool, HowToDraw], Draws] = {}

    def _seed(self, purpose: str) -> np.random.SeedSequence:
        task = self.task
        return seed_for(self.study.seed, task.run, purpose, task.question, task.behaviour)

    @cached_property
    def truth(self) -> TrueValues:
        """Values to compare with."""
        if isinstance(self.domain, ContinuousDomain):
            return self.domain.truth(
                self.task.question,
                self.task.behaviour,
                states=self.study.evaluation_states,
                seed=int(self._seed("evaluation").generate_state(1)[0]),
            )
        return self.domain.truth(self.task.question)

    @cached_property
    def off_policy(self) -> tuple[Walk, Array]:
        """The behaviour's walk, and its ratios."""
        behaviour = self.domain.table(self.domain.behaviour(self.task.behaviour))
        return self._walk(behaviour, *self._purpose(on_policy=False))

    @cached_property
    def on_policy(self) -> tuple[Walk, Array]:
        """The same for a walk of the target itself."""
        return self._walk(self.pi, *self._purpose(on_policy=True))

    def draws(self, correction: Correction, *, on_policy: bool = False) -> Draws:
        """The draws of a correction, the same for all that draw alike."""
        task, study, key = self.task, self.study, (on_policy, correction.draw)
        if key not in self._draws:
            path, ratio = self.on_policy if on_policy else self.off_policy
            self._draws[key] = draw(
                correction,
                carried(correction, ratio, path.continuation),
                window=study.window,
                batch_size=study.batch_size,
                seed=seed_for(
                    study.seed, task.run, "draws", *self._purpose(on_policy),
                    task.question, task.behaviour, task.gap,
                ),
                updates=study.updates,
                warm_up=study.warm_up,
                gap=task.gap,
            )  # fmt: skip
        return self._draws[key]

    def _purpose(self, on_policy: bool) -> tuple[str, str]:
        if on_policy:
            return "on-policy walk", self.task.question
        return "walk", self.task.behaviour

    def _walk(self, mu: Array, *purpose: str) -> tuple[Walk, Array]:
        task, study = self.task, self.study
        path = walk(
            self.domain, task.question, mu, study.steps, seed_for(study.seed, task.run, *purpose)
        )
        cell, action = path.cell[:, 0], path.action
        return path, self.pi[cell, action] / mu[cell, action]


def run_method(
    task: Task,
    name: str,
    stop: Callable[[], bool] = lambda: False,
    bench: Bench | None = None,
) -> Outcome:
    """Do one method of a task: the same bits alone as among others."""
    bench = bench or Bench(task)
    study, method, domain, pi = task.study, METHODS[name], bench.domain, bench.pi
    path, _ = bench.on_policy if method.on_policy else bench.off_policy
    correction = method.correction(domain.largest_ratio(task.question, task.behaviour))
    draws = bench.draws(correction, on_policy=method.on_policy)
    lanes = study.lanes(name)
    # Whole vectors are quickest, so the last lane is repeated; its copies are left out in the end.
    update = method.update(study.update, lanes + lanes[-1:] * (-len(lanes) % VECTOR))
    experience, blocks = _experience(task, method, path, pi)
    state = LearnerState(*map(aligned, update.start(domain.features.size * blocks)))
    state.weights[...] = np.tile(domain.initial_weights, blocks)[:, None]
    states = domain.features(bench.truth.states)
    share = np.ones((len(states), 1)) if blocks == 1 else pi[_cells(bench.truth.states)]
    target = (states, share, unseen(states, share, domain.features.size), bench.truth.values)
    plan, width = bench.plan, state.weights.shape[1]
    dead, sums = np.zeros(width, np.bool_), aligned(np.zeros((2 + plan.points, width)))
    error, total, curve = sums[0], sums[1], sums[2:]
    whole = correction.draw.whole
    loop, update_type = compiled(experience.x.dtype.kind == "f", whole)
    kernels = (address_of(update.kernel, update_type), correction.address("weigh"))
    if whole:
        assert path.kind is not None
        # One row for each kind that occurs, and each row of the walk points to it.
        _, rows, kind = np.unique(path.kind, return_index=True, return_inverse=True)
        experience = Experience(*(np.ascontiguousarray(column[rows]) for column in experience))
        drawn = (draws.inputs, draws.means, kind.astype(np.int64), draws.first, draws.last)
    else:
        drawn = (draws.inputs, draws.p, draws.means, draws.rows)
    arrays = (
        state, experience, drawn, (plan.upto, plan.held, plan.bins), target,
        (dead, error, total, curve),
    )  # fmt: skip
    parameters = correction.parameters
    start, size = 0, 1
    while start < len(plan.upto):
        if stop():
            raise Interrupted(task.name)
        end = min(start + size, len(plan.upto))
        began = time.perf_counter()
        loop(kernels, arrays, draws.mass, parameters, ERRORS[study.error], start, end)
        start = end
        # Slices decide when an interrupt is heard, never a result.
        size = max(1, int(size * min(8.0, SLICE / max(time.perf_counter() - began, 1e-6))))
    held = np.bincount(plan.bins, plan.held, plan.points)
    mean, curve = total / plan.held.sum(), (curve / held[:, None]).T
    return Outcome(name, lanes, *(column[: len(lanes)] for column in (mean, error, curve)))


def unseen(x: Array, share: Array, size: int) -> Array:
    """The rows of weights that no value of these states depends on, int64[n]."""
    rows = np.ones((share.shape[1], size), np.bool_)
    for block, used in zip(rows, share.T != 0.0, strict=True):
        block[x[used] if x.dtype.kind == "i" else slice(None)] = False
    return np.flatnonzero(rows)


def aligned(array: Array) -> Array:
    """A copy that begins with a line of the cache: then no vector of a row is in two of them."""
    memory = np.empty(array.nbytes + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _experience(task: Task, method: Method, path: Walk, pi: Array) -> tuple[Experience, int]:
    """The columns, with blocks of weights for actions where the method learns action values."""
    steps, actions = len(path.action), pi.shape[1]
    if method.kind not in ("sarsa", "expected sarsa"):
        ones = np.ones((steps, 1))
        return path.experience(ones, ones), 1
    following = pi[path.cell[:, 1]]
    if method.kind == "sarsa":
        seed = seed_for(task.study.seed, task.run, "next action", task.question, task.behaviour)
        uniform = np.random.default_rng(seed).random(steps)
        chosen = (np.cumsum(following, axis=1)[:, :-1] <= uniform[:, None]).sum(axis=1)
        following = np.eye(actions)[chosen]
    return path.experience(np.eye(actions)[path.action], following), actions


def _cells(states: Array) -> Array:
    return cells_of(states) if states.ndim > 1 else states
