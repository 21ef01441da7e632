"""The variance of updates: at given weights, how much does one mini-batch differ from the next?

Weights are those that WIS-Optimal passes through on a fixed buffer. At each of them many
mini-batches are drawn from that buffer, and each gives an update ``g = sum_i w_i delta_i x_i``.
What varies is its norm, |g|_1 or |g|_2, or the signed sum of ``w_i delta_i``. Methods that draw
alike see the same mini-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from gvf import domain as domains
from gvf.correction import Draw
from gvf.domain.domain import known
from gvf.domain.tabular import TabularDomain
from gvf.learner import TD
from gvf.learner.linear import Array, Experience, add_at, td_error_at
from gvf.study.draws import Draws, draw
from gvf.study.method import METHODS
from gvf.study.study import check_at_least, check_several, check_shared, no_such_name
from gvf.study.task import Interrupted
from gvf.study.walk import seed_for, walk
from gvf.trace import carried

NORMS = ("l1", "l2", "scalar")
"""What is measured of an update: its two norms, and the signed sum."""


@njit(cache=True, nogil=True)
def update_sizes(weights, experience, rows, w, sizes):
    """Write L1 norm, L2 norm and signed sum of the updates of batches [B, k] into sizes [B, 3]."""
    direction = np.zeros((weights.shape[0], 1))
    one, error = np.ones(1), np.empty((1, 1))
    for b in range(rows.shape[0]):
        direction[:] = 0.0
        scalar = 0.0
        for i in range(rows.shape[1]):
            td_error_at(weights, experience, rows[b, i], w[b, i], error, 0)
            scalar += error[0, 0]
            add_at(direction, one, experience.x, experience.share, rows[b, i], error, 0)
        first, second = 0.0, 0.0
        for row in range(weights.shape[0]):
            first += abs(direction[row, 0])
            second += direction[row, 0] * direction[row, 0]
        sizes[b, 0], sizes[b, 1], sizes[b, 2] = first, np.sqrt(second), scalar


@dataclass(frozen=True, repr=False)
class VarianceStudy:
    """What to measure.

    Attributes:
        name: of the study.
        domain: a tabular one, by name.
        methods: those that learn state values, by name.
        pairs: (question, behaviour); by default all that belong together.
        buffer: transitions in the buffer.
        iterations: of WIS-Optimal with `step_size`, at which weights are taken.
        step_size: of these.
        batches: mini-batches at each of them.
        batch_size: transitions in a mini-batch.
        runs: how many.
        seed: of everything random.

    Example:
        >>> from gvf.study import VarianceStudy, run_variance
        >>> study = VarianceStudy("v", iterations=(0, 5), batches=50, buffer=500, runs=1)
        >>> task = next(study.tasks())
        >>> task.name, run_variance(task)["IR"].shape
        ('v/easy/easy/run-0', (2, 3))
    """

    name: str
    domain: str = "markov-chain"
    methods: tuple[str, ...] = (
        "IR", "BC-IR", "IS", "WIS-Minibatch", "WIS-Buffer",
        "V-trace(1.0)", "V-trace(0.5 max)", "V-trace(0.9 max)",
    )  # fmt: skip
    pairs: tuple[tuple[str, str], ...] = ()
    buffer: int = 15_000
    iterations: tuple[int, ...] = tuple(range(0, 251, 5))
    step_size: float = 1.0
    batches: int = 1000
    batch_size: int = 16
    runs: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        domain = check_shared(self)
        for name in ("buffer", "batches", "batch_size", "runs"):
            check_at_least(1, **{name: getattr(self, name)})
        check_several(iterations=self.iterations)
        check_at_least(0, seed=self.seed, iterations=min(self.iterations))
        if sorted(self.iterations) != list(self.iterations):
            raise ValueError(f"iterations must increase, got {list(self.iterations)}")
        if not 0.0 <= self.step_size < float("inf"):
            raise ValueError(f"step_size must be finite and not negative, got {self.step_size}")
        if not isinstance(domain, TabularDomain):
            raise ValueError(f"domain must be one with a table of states, not {self.domain!r}")
        for name in self.methods:
            method = METHODS[name]
            if method.kind != "td" or method.correction(1.0).draw.whole:
                raise ValueError(f"methods: {name} makes no updates from weighed mini-batches")
            if method.on_policy:
                raise ValueError(f"methods: {name} has data of its own, not the buffer's")

    def __repr__(self) -> str:
        return (
            f"VarianceStudy {self.name!r} in {self.domain}\n"
            f"  pairs: {', '.join('/'.join(pair) for pair in self.pairs)}\n"
            f"  methods: {', '.join(self.methods)}\n"
            f"  {self.batches} batches of {self.batch_size} from {self.buffer} transitions, at "
            f"{len(self.iterations)} iterations, {self.runs} runs, seed {self.seed}"
        )

    def tasks(self) -> Iterator[VarianceTask]:
        """One for each run and pair."""
        for run in range(self.runs):
            for question, behaviour in self.pairs:
                yield VarianceTask(self, question, behaviour, run)

    def cell(self, name: str) -> VarianceTask:
        """The task that is one cell of the grid, by its name: one method.

        Example:
            >>> from gvf.study import VarianceStudy, run_variance
            >>> study = VarianceStudy("v", iterations=(0, 5), batches=50, buffer=500, runs=1)
            >>> list(run_variance(study.cell("v/hard/hard/run-0/BC-IR")))
            ['BC-IR']
        """
        for task in self.tasks():
            if name.startswith(task.name + "/"):
                method = name.removeprefix(f"{task.name}/")
                known(method, self.methods, f"method in the name {name!r}")
                return replace(task, study=replace(self, methods=(method,)))
        raise no_such_name(self, name)


@dataclass(frozen=True)
class VarianceTask:
    """One pair and run of a study."""

    study: VarianceStudy
    question: str
    behaviour: str
    run: int

    @property
    def name(self) -> str:
        """Unique in all studies, and a path."""
        return f"{self.study.name}/{self.question}/{self.behaviour}/run-{self.run}"

    def cells(self) -> Iterator[str]:
        """The names of the cells: this task's, the method's."""
        return (f"{self.name}/{method}" for method in self.study.methods)


def run_variance(task: VarianceTask, stop: Callable[[], bool] = lambda: False) -> dict[str, Array]:
    """The variance over batches, [iterations, 3] for each method; the columns are `NORMS`."""
    study = task.study
    domain = domains.get(study.domain)
    mu = domain.table(domain.behaviour(task.behaviour))
    pi = domain.table(domain.target(task.question))
    purpose = (task.question, task.behaviour)
    seed = seed_for(study.seed, task.run, "walk", task.behaviour)
    path = walk(domain, task.question, mu, study.buffer, seed)
    ratio = (pi / mu)[path.cell[:, 0], path.action]
    ones = np.ones((study.buffer, 1))
    experience = path.experience(ones, ones)
    largest = domain.largest_ratio(task.question, task.behaviour)
    out = {name: np.empty((len(study.iterations), len(NORMS))) for name in study.methods}
    sizes = np.empty((study.batches, len(NORMS)))
    corrections = {name: METHODS[name].correction(largest) for name in study.methods}
    for i, weights in enumerate(_trajectory(study, experience, ratio, domain.features.size)):
        if stop():
            raise Interrupted(task.name)
        seed = seed_for(study.seed, task.run, "batches", *purpose, study.iterations[i])
        drawn: dict[Draw, Draws] = {}
        for name, correction in corrections.items():
            if correction.draw not in drawn:
                drawn[correction.draw] = draw(
                    correction,
                    carried(correction, ratio, path.continuation),
                    window=study.buffer,
                    batch_size=study.batch_size,
                    updates=study.batches,
                    seed=seed,
                )
            draws = drawn[correction.draw]
            update_sizes(weights, experience, draws.rows, draws.weights(correction), sizes)
            out[name][i] = sizes.var(axis=0, ddof=1)
    return out


def _trajectory(
    study: VarianceStudy, experience: Experience, ratio: Array, size: int
) -> Iterator[Array]:
    """WIS-Optimal's weights [size, 1] at the study's iterations."""
    update = TD(study.step_size)
    state = update.start(size)
    # The weights of WISOptimal() but for the last bit: NumPy sums in another order, and late in
    # learning the variance is so small that 1e-16 here is 5e-12 there.
    slots, w = np.arange(len(ratio)), ratio / ratio.sum()
    done = 0
    for iteration in study.iterations:
        for _ in range(iteration - done):
            update.apply(state, experience, slots, w)
        done = iteration
        yield state.weights
