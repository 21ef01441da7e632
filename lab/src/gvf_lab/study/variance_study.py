"""The variance of updates: how much mini-batches differ at given weights.

The weights are those that WIS-Optimal passes through on a fixed buffer. At each of them many
mini-batches are drawn from the buffer, and each gives an update ``g = sum_i w_i delta_i x_i``. The
study measures the variance of |g|_1, of |g|_2, and of the signed sum of ``w_i delta_i``, and the
trace of the covariance of g, which is the V(X | B) of the paper's Section 3.3. Methods that draw
alike see the same mini-batches.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numba import njit

from gvf import Method
from gvf import draw_batches as draw
from gvf.common.arrays import Array
from gvf.common.compiled import unowned
from gvf.jobs import Interrupted
from gvf.kernels import Draw, Draws, Experience, add_at, carried, td_error_at
from gvf.updates import TD
from gvf_lab.study.base_study import BaseStudy, Columns, Stop, Task, seed_for
from gvf_lab.study.settings import (
    check_masses,
    check_numbers,
    check_pairs,
    check_several,
    check_shared,
)
from gvf_lab.study.study_loop import experience_of
from gvf_lab.study.task import initial_weights

NORMS = ("l1", "l2", "scalar")
"""The sizes of an update: its L1 and L2 norms, and the signed sum."""
KINDS = (*NORMS, "trace")
"""The kinds of variance: those of the sizes, and the trace of the covariance."""


@njit(cache=True, nogil=True)
def update_sizes(weights, experience, rows, w, sizes):
    """Write L1 norm, L2 norm and signed sum of the updates of batches [B, k] into sizes [B, 3].

    Returns the sum of the updates' squared distances from their mean: the trace of their covariance
    times B - 1.
    """
    experience = unowned(experience)  # counting references would take longer than the sums
    direction = np.zeros((weights.shape[0], 1))
    mean, squares = np.zeros(weights.shape[0]), 0.0
    unit, error = np.ones(1), np.empty((1, 1))
    for b in range(rows.shape[0]):
        direction[:] = 0.0
        scalar = 0.0
        for i in range(rows.shape[1]):
            td_error_at(weights, experience, rows[b, i], w[b, i], error, 0)
            scalar += error[0, 0]
            add_at(direction, unit, experience.x, experience.share, rows[b, i], error, 0)
        first, second = 0.0, 0.0
        for row in range(weights.shape[0]):
            first += abs(direction[row, 0])
            second += direction[row, 0] * direction[row, 0]
            # Welford's recursion: the plain difference of squares would lose digits.
            apart = direction[row, 0] - mean[row]
            mean[row] += apart / (b + 1)
            squares += apart * (direction[row, 0] - mean[row])
        sizes[b, 0], sizes[b, 1], sizes[b, 2] = first, np.sqrt(second), scalar
    return squares


@dataclass(frozen=True, repr=False)
class VarianceStudy(BaseStudy):
    """A study of the variance of updates.

    Attributes:
        name: the study's name.
        domain: the domain's name, id or reference.
        methods: names, tables or corrections; they must learn state values.
        pairs: the (question, behaviour) pairs; by default all that belong together.
        buffer: transitions in the buffer.
        iterations: the iterations of WIS-Optimal at which variances are measured.
        step_size: the step size of WIS-Optimal.
        batches: mini-batches at each iteration.
        batch_size: transitions in a mini-batch.
        runs: the number of runs.
        seed: the seed of everything random.
        own: the methods that are not built in; follows from `methods`.

    Example:
        >>> from gvf_lab.study import VarianceStudy, run_variance
        >>> study = VarianceStudy("v", iterations=(0, 5), batches=50, buffer=500, runs=1)
        >>> task = next(study.tasks())
        >>> task.name, run_variance(task)["IR"].shape
        ('v/easy/easy/run-0', (2, 4))
    """

    kind = "variance"
    keys = ("iteration",)
    grid = {"iteration": "iterations"}  # noqa: RUF012
    least = {  # noqa: RUF012
        "buffer": 1, "batches": 1, "batch_size": 1, "runs": 1, "iterations": 0, "seed": 0,
    }  # fmt: skip
    measures = {  # noqa: RUF012
        "l1": "variance of the update's L1 norm",
        "l2": "variance of its L2 norm",
        "scalar": "variance of its signed sum",
        "trace": "trace of its covariance",
    }
    pictures = ("variance",)
    quantity = "variance of the update"

    name: str
    domain: str = "markov-chain"
    methods: tuple[Any, ...] = (
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
    own: tuple[Method, ...] = ()

    def __post_init__(self) -> None:
        check_shared(self)
        check_numbers(self)
        check_several(iterations=self.iterations)
        if sorted(self.iterations) != list(self.iterations):
            raise ValueError(f"iterations must increase, got {list(self.iterations)}")
        if not 0.0 <= self.step_size < float("inf"):
            raise ValueError(f"step_size must be finite and not negative, got {self.step_size}")
        for name in self.methods:
            method = self.method(name)
            if method.update or method.draws.whole:
                raise ValueError(f"methods: {name} makes no updates from weighed mini-batches")
            if method.on_policy:
                raise ValueError(f"methods: {name} has data of its own, not the buffer's")
            check_masses(method)

    def __repr__(self) -> str:
        return (
            f"VarianceStudy {self.name!r} in {self.domain}\n"
            f"  pairs: {', '.join('/'.join(pair) for pair in self.pairs)}\n"
            f"  methods: {', '.join(self.methods)}\n"
            f"  {self.batches} batches of {self.batch_size} from {self.buffer} transitions, at "
            f"{len(self.iterations)} iterations, {self.runs} runs, seed {self.seed}"
        )

    def parts(self, method: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield one part: the method at all iterations."""
        yield method, {"methods": (method,)}

    def count(self) -> int:
        """Return the number of methods, since one pass measures all iterations."""
        return len(self.methods)

    @property
    def generation(self) -> int:
        """The domain's generation, plus one, since earlier results have no trace."""
        return self.world.generation + 1

    def check(self) -> None:
        """Refuse a pair that cannot be learned, or a method that cannot be made for it."""
        check_pairs(self)

    def compute(self, task: Task, stop: Stop) -> Columns:
        """Compute the variance at each iteration, for all methods."""
        values = np.concatenate(list(run_variance(task, stop).values()))
        return {kind: values[:, i].copy() for i, kind in enumerate(KINDS)}

    def tiny(self) -> Self:
        """Return the study with one run of a few batches from a small buffer."""
        return self.with_(buffer=50, iterations=(0, 1), batches=2, runs=1)

    def probe(self) -> dict[int, float]:
        """Time one task."""
        task = next(self.tasks())
        run_variance(task)  # the first call compiles
        began = time.thread_time()
        run_variance(task)
        return {1: time.thread_time() - began}


def run_variance(task: Task, stop: Stop = lambda: False) -> dict[str, Array]:
    """Compute the variance over batches, [iterations, 4] for each method; columns are `KINDS`."""
    study = task.study
    domain, purpose = task.world, (task.question, task.behaviour)
    path = task.walk(domain, [task.question], study.buffer)
    asked, experience = path.signals[task.question], experience_of(path, task.question)
    largest = domain.largest_ratio(task.question, task.behaviour)
    out = {name: np.empty((len(study.iterations), len(KINDS))) for name in study.methods}
    sizes = np.empty((study.batches, len(NORMS)))
    corrections = {name: study.method(name).make(largest) for name in study.methods}
    for i, weights in enumerate(
        _trajectory(study, experience, asked.ratio, initial_weights(domain))
    ):
        if stop():
            raise Interrupted(task.name)
        seed = seed_for(study.seed, task.run, "batches", *purpose, study.iterations[i])
        drawn: dict[Draw, Draws] = {}
        for name, correction in corrections.items():
            if correction.draw not in drawn:
                drawn[correction.draw] = draw(
                    correction,
                    carried(
                        correction, asked.ratio, asked.continuation, path.ended, asked.interest
                    ),
                    window=study.buffer,
                    batch_size=study.batch_size,
                    updates=study.batches,
                    seed=seed,
                )
            draws = drawn[correction.draw]
            w = draws.weights(correction)
            squares = update_sizes(weights, experience, draws.rows, w, sizes)
            out[name][i, :-1] = sizes.var(axis=0, ddof=1)
            out[name][i, -1] = np.divide(squares, study.batches - 1)
    return out


def _trajectory(
    study: VarianceStudy, experience: Experience, ratio: Array, initial: Array
) -> Iterator[Array]:
    """Yield WIS-Optimal's weights [size, 1] at the study's iterations."""
    update = TD(study.step_size)
    state = update.start(len(initial))
    state.weights[:, 0] = initial
    # NumPy sums in another order than WISOptimal(), so the last bit of its weights differs. Late in
    # learning the variance is so small that 1e-16 here is 5e-12 there.
    slots, w = np.arange(len(ratio)), ratio / ratio.sum()
    done = 0
    for iteration in study.iterations:
        for _ in range(iteration - done):
            update.apply(state, experience, slots, w)
        done = iteration
        yield state.weights
