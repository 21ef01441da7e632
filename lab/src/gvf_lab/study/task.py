"""One task, from its seed to its errors: walk, draw, learn, measure.

Results are a pure function of the task. All gaps of a run share its stream, all methods share the
draws of a pair and gap, and each method learns alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from warnings import warn

import numpy as np
from numba import njit

from gvf import GVF, Method
from gvf import draw_batches as draw
from gvf.common.arrays import Array
from gvf.common.part_names import is_reference
from gvf.corrections import RATIO, Correction
from gvf.jobs import Interrupted
from gvf.kernels import Draw as HowToDraw
from gvf.kernels import Draws, Experience, TraceOverflowError, carried, features_of, update_times
from gvf.policies import DiscretePolicy
from gvf.updates import Update
from gvf_lab.domain import Domain, Trajectory
from gvf_lab.study.base_study import Stop, Task, seed_for
from gvf_lab.study.measure import Target, sum_tree
from gvf_lab.study.study import ERRORS, EVERY_STEP, Study
from gvf_lab.study.study_loop import (
    VECTOR,
    StudyLanes,
    compiled,
    experience_of,
    update_address,
)
from gvf_lab.truth import TrueValues

SLICE = 0.2
"""Approximate seconds of a slice, and so the longest wait of an interrupt."""


@dataclass(frozen=True)
class Schedule:
    """The times at which errors are measured.

    Attributes:
        upto: updates done before each measurement, int64[J].
        held: the number of equal measurements that each one stands for, float64[J].
        bins: the point of the learning curve that each measurement belongs to, int64[J].
        points: the number of points of the learning curve.
    """

    upto: Array
    held: Array
    bins: Array
    points: int


def schedule(study: Study, gap: int, active: Array | None = None) -> Schedule:
    """Plan a measurement after every `measure_every` steps (or updates, with a fixed buffer).

    A gap counts the steps at which `active`, bool[T], is True; by default it counts all steps.
    """
    last = study.updates or study.steps
    times = np.arange(study.measure_every, last + 1, study.measure_every)
    done = times
    if not study.updates:
        done = np.searchsorted(
            update_times(study.steps, study.warm_up, gap, active), times, side="right"
        )
    points = min(study.points, len(times))
    bins = (np.arange(len(times)) * points) // len(times)
    # Weights do not change between updates, so one measurement stands for all that share a bin.
    change = np.flatnonzero(np.diff(done, prepend=-1) | np.diff(bins, prepend=-1))
    held = np.diff(change, append=len(times)).astype(np.float64)
    return Schedule(done[change].astype(np.int64), held, bins[change], points)


@dataclass(frozen=True)
class Outcome:
    """The errors of one method, one row for each choice.

    Attributes:
        method: the method's name.
        choices: step sizes, or (u0, eta) pairs.
        error: the error averaged over the run, float64[L]; inf if the run diverged.
        final: the last error measured, float64[L].
        curve: averages of the error over equal parts of the run, float64[L, points].
    """

    method: str
    choices: tuple[Any, ...]
    error: Array
    final: Array
    curve: Array


def run_task(task: Task, stop: Stop = lambda: False) -> list[Outcome]:
    """Do a task; it stops between slices once `stop` returns True."""
    shared = TaskInputs(task)
    return [run_method(task, name, stop, shared) for name in task.study.methods]


class TaskInputs:
    """The streams, draws and true values that a task's methods share, each made on first use."""

    def __init__(self, task: Task) -> None:
        study: Study = task.study
        self.task, self.study = task, study
        self.gap = task.gap or 1
        self.domain = task.world
        self.question: GVF = self.domain.question(task.question)
        self._plans: dict[bool, Schedule] = {}
        self._draws: dict[tuple[bool, HowToDraw], Draws] = {}
        self._experience: dict[tuple[str, bool], tuple[Experience, Target]] = {}
        self._learned: dict[int, Array] = {}

    def _seed(self, purpose: str) -> np.random.SeedSequence:
        task = self.task
        return seed_for(self.study.seed, task.run, purpose, task.question, task.behaviour)

    @cached_property
    def truth(self) -> TrueValues:
        """The true values of the evaluation states."""
        truth = self.domain.truth(
            self.task.question,
            self.task.behaviour,
            states=self.study.evaluation_states,
            seed=int(self._seed("evaluation").generate_state(1)[0]),
        )
        truth.check()
        return truth

    @cached_property
    def off_policy(self) -> Trajectory:
        """The walk of the behaviour."""
        return self.task.walk(self.domain, [self.task.question], self.study.steps)

    @cached_property
    def on_policy(self) -> Trajectory:
        """A walk of the target policy."""
        task, seed = self.task, seed_for(self.study.seed, self.task.run, *self._purpose(True))
        path = self.domain.walk(self.question.policy, [task.question], self.study.steps, seed)
        path.check(task.question, self.domain.features.size)
        return path

    def walk(self, on_policy: bool) -> Trajectory:
        """Return the walk that a method learns from."""
        return self.on_policy if on_policy else self.off_policy

    def active(self, on_policy: bool) -> Array | None:
        """Return True for the steps that gaps count, bool[T]; None if they count all."""
        if self.study.when == EVERY_STEP:
            return None
        return self.walk(on_policy).signals[self.task.question].active

    def plan(self, on_policy: bool) -> Schedule:
        """Return the schedule of measurements along a walk."""
        if on_policy not in self._plans:
            self._plans[on_policy] = schedule(self.study, self.gap, self.active(on_policy))
        return self._plans[on_policy]

    def draws(self, correction: Correction, *, on_policy: bool = False) -> Draws:
        """Return the draws of a correction, the same for all that draw alike."""
        task, study, key = self.task, self.study, (on_policy, correction.draw)
        if key not in self._draws:
            path = self.walk(on_policy)
            asked = path.signals[task.question]
            self._draws[key] = draw(
                correction,
                carried(
                    correction, asked.ratio, asked.continuation, path.ended, asked.interest
                ),
                window=study.window,
                batch_size=study.batch_size,
                seed=seed_for(
                    study.seed, task.run, "draws", *self._purpose(on_policy),
                    task.question, task.behaviour, self.gap,
                ),
                updates=study.updates,
                warm_up=study.warm_up,
                gap=self.gap,
                active=self.active(on_policy),
            )  # fmt: skip
        return self._draws[key]

    def _purpose(self, on_policy: bool) -> tuple[str, str]:
        if on_policy:
            return "on-policy walk", self.task.question
        return "walk", self.task.behaviour

    @cached_property
    def largest_ratio(self) -> float:
        """The largest possible ratio of the pair."""
        return self.domain.largest_ratio(self.task.question, self.task.behaviour)

    def experience(self, update: Update, on_policy: bool) -> tuple[Experience, Target]:
        """Return the columns that an update reads, and the evaluation states.

        With action values, each action has a block of weights, and a value is the sum over the
        blocks weighted by the shares of the actions.
        """
        key = update.next_action if update.action_values else "state values", on_policy
        if key not in self._experience:
            path, question = self.walk(on_policy), self.task.question
            if update.action_values:
                share, share_next, of_truth = self._shares(update, path)
                columns = experience_of(path, question, share, share_next)
            else:
                columns, of_truth = (
                    experience_of(path, question),
                    np.ones((len(self.truth.states), 1)),
                )
            self._experience[key] = columns, self._target(of_truth, path)
        return self._experience[key]

    def _shares(self, update: Update, path: Trajectory) -> tuple[Array, Array, Array]:
        """Return each action's share of a transition's two values, and of the states' values."""
        policy = self.question.policy
        if not isinstance(policy, DiscretePolicy):
            raise ValueError(
                f"action values need a number of actions, and {policy} has a continuum of them"
            )
        blocks, following = np.eye(policy.actions), policy.probabilities(path.next_state)
        if update.next_action == "sampled":
            uniform = np.random.default_rng(self._seed("next action")).random(len(following))
            chosen = (np.cumsum(following, axis=1)[:, :-1] <= uniform[:, None]).sum(axis=1)
            following = blocks.take(chosen, axis=0)
        taken = blocks.take(path.action, axis=0)
        return taken, following, policy.probabilities(self.truth.states)

    def _target(self, share: Array, path: Trajectory) -> Target:
        truth, size = self.truth, self.domain.features.size
        counts = np.empty(0) if truth.weights is None else truth.weights / truth.weights.mean()
        x = features_of(self.domain.features, size, truth.states)
        if id(path) not in self._learned:
            self._learned[id(path)] = occurring(path, size)
        hidden = rows_outside_evaluation(x, share, self._learned[id(path)])
        return x, share, hidden, truth.values, counts, *sum_tree(x, share)


def run_method(
    task: Task, name: str, stop: Stop = lambda: False, shared: TaskInputs | None = None
) -> Outcome:
    """Do one method of a task, with the same bits alone as among others.

    If the trace of its correction overflows, all of its errors are infinite.
    """
    shared = shared or TaskInputs(task)
    study, domain, choices = shared.study, shared.domain, shared.study.choices(name)
    method = study.method(name)
    correction, path = method.make(shared.largest_ratio), shared.walk(method.on_policy)
    update, plan = _update(method, study.update, choices), shared.plan(method.on_policy)
    _check_activity(path, task.question, correction, update)
    try:
        draws = shared.draws(correction, on_policy=method.on_policy)
    except TraceOverflowError as error:
        warn(f"question {task.question!r}, run {task.run}: {error}", RuntimeWarning, stacklevel=2)
        lost = np.full(len(choices), np.inf)
        curve = np.full((len(choices), plan.points), np.inf)
        return Outcome(name, choices, lost, lost, curve)
    experience, target = shared.experience(update, method.on_policy)
    blocks = experience.share.shape[1]
    state = update.start(domain.features.size * blocks)
    state.weights[...] = np.tile(initial_weights(domain), blocks)[:, None]
    lanes = StudyLanes.start(state, len(choices), plan.points)
    results = np.zeros((2 + plan.points, len(choices)))
    # An update of the user's own may have numbers that belong to lanes, so it keeps all lanes.
    is_own = is_reference(method.update or study.update)
    whole = correction.draw.whole
    dense = experience.x.dtype.kind == "f"
    loop = compiled(dense, whole)
    kernels = (update_address(update.kernel, dense), correction.address("weigh"))
    if whole:
        assert path.kind is not None
        # Keep one row of experience for each kind, and point each row of the walk to it.
        rows, kind = distinct_transitions(path.kind)
        experience = Experience(*(np.ascontiguousarray(column[rows]) for column in experience))
        drawn = (draws.inputs, draws.means, kind, draws.first, draws.last)
        if correction.skips_zeros:
            kept = np.flatnonzero(draws.inputs[RATIO])
            first, last = np.searchsorted(kept, (draws.first, draws.last))
            inputs = np.ascontiguousarray(draws.inputs[:, kept])
            drawn = (inputs, draws.means, kind[kept], first, last)
    else:
        drawn = (draws.inputs, draws.p, draws.means, draws.rows)
    measurements = (plan.upto, plan.held, plan.bins)
    parameters = correction.parameters
    start, size = 0, 1
    while start < len(plan.upto) and len(lanes.choice) > 0:
        if stop():
            raise Interrupted(task.name)
        end = min(start + size, len(plan.upto))
        began = time.perf_counter()
        errors = (lanes.dead, lanes.sums[0], lanes.sums[1], lanes.sums[2:])
        arrays = (lanes.state, experience, drawn, measurements, target, errors)
        loop(kernels, arrays, draws.mass, parameters, ERRORS[study.error], start, end)
        start = end
        results[:, lanes.choice] = lanes.sums
        # A lane that has diverged may be dropped, so its later errors are filled in.
        results[2 + plan.bins[end - 1] + 1 :, lanes.choice[lanes.dead]] = np.inf
        lanes = lanes if is_own else lanes.without_dead()
        # The length of a slice never changes a result.
        size = max(1, int(size * min(32.0, SLICE / max(time.perf_counter() - began, 1e-6))))
    held = np.bincount(plan.bins, plan.held, plan.points)
    final, total, curve = results[0], results[1], results[2:]
    return Outcome(name, choices, total / plan.held.sum(), final, (curve / held[:, None]).T)


def _update(method: Method, rule: str, choices: tuple[Any, ...]) -> Update:
    # A reload replaces the user's own class, so only our own updates are remembered.
    make = _new_update if is_reference(method.update or rule) else _remembered_update
    return make(method, rule, choices)


def _new_update(method: Method, rule: str, choices: tuple[Any, ...]) -> Update:
    # Whole vectors are fastest, so the last choice is repeated and its copies are dropped.
    return method.make_update(rule, choices + choices[-1:] * (-len(choices) % VECTOR))


_remembered_update = lru_cache(maxsize=64)(_new_update)


def _check_activity(
    path: Trajectory, question: str, correction: Correction, update: Update
) -> None:
    """Refuse to learn from transitions in which the question is not asked."""
    active = path.signals[question].active
    everywhere = active is None or bool(active.all())
    if not everywhere and (update.action_values or not correction.needs_ratios):
        raise ValueError(
            f"{correction.name} learns from every transition, and question {question!r} is not "
            "asked in every state: choose methods with ratios"
        )


def initial_weights(domain: Domain) -> Array:
    """Return the weights that learning starts from in a domain, float64[features.size]."""
    initial, size = domain.initial_weights, domain.features.size
    if initial is None:
        return np.zeros(size)
    if np.shape(initial) != (size,):
        raise ValueError(f"initial_weights must be [{size}], got shape {np.shape(initial)}")
    return np.asarray(initial, np.float64)


def distinct_transitions(kind: Array) -> tuple[Array, Array]:
    """Return one row of each kind that occurs, ascending, and each row's index among these."""
    if not 0 <= kind.min() <= kind.max() < 10 * len(kind):
        _, rows, which = np.unique(kind, return_index=True, return_inverse=True)
        return rows, which.astype(np.int64)
    # Small numbers need no sorting.
    last = np.full(kind.max() + 1, -1)
    last[kind] = np.arange(len(kind))
    occurs = last >= 0
    return last[occurs], (np.cumsum(occurs) - 1).take(kind)


def rows_outside_evaluation(x: Array, share: Array, learned: Array) -> Array:
    """Return the rows of weights that change but do not affect the states' values, int64[n].

    Args:
        x: the features of the states.
        share: the shares of the blocks of weights in each state.
        learned: True for the features that occur in the experience, bool[size].
    """
    rows = np.tile(learned, (share.shape[1], 1))
    for block, used in zip(rows, share.T != 0.0, strict=True):
        block[x[used] if x.dtype.kind == "i" else slice(None)] = False
    return np.flatnonzero(rows)


def occurring(path: Trajectory, size: int) -> Array:
    """Return which features occur in a trajectory, bool[size]."""
    if path.x.dtype.kind != "i":
        return np.ones(size, np.bool_)
    rows = np.zeros(size, np.bool_)
    for x in (path.x, path.x_next):
        _mark(x, rows)
    return rows


@njit(cache=True, nogil=True)
def _mark(x, rows):
    # NumPy takes ten times as long, because it first copies x as int64.
    for index in x.flat:
        rows[np.uint64(index)] = True
