"""Benchmark of hordes: steps a second with thousands of questions, beside plain PyTorch.

A step inserts a transition, computes the ratios of all policies, draws k rows for each policy and
updates all questions. The peer does the same step by step in plain PyTorch, with ``multinomial``
for the draws and batched products for the values, or sums of rows of weights for active features.
For dense features a line shows the machine's own limit: the products alone, at the speed of the
fastest product of large matrices that was found (ours, PyTorch's, NumPy's). Further parts show how
the rate falls with questions, policies, features and horizons, and the rate with one and two
workers of a Ray cluster on this machine beside one process, with one thread each.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numba import njit

import gvf
from benchmarks.measure import Effort, Row, Run, interleave
from gvf.common.tiles import add_product
from gvf.features import ActiveTable
from gvf.horde.group_draws import Pool
from gvf.horde.shard import Shard

TITLE = "Hordes (n = 10,000, SGD, float32, two cores)"
N, POOL, ACTIONS = 10_000, 4_096, 4


@dataclass(frozen=True)
class Case:
    """One kind of horde: P policies with Q questions each, and features."""

    name: str
    policies: int
    questions: int
    size: int
    active: int | None = None
    """The number of active features; None for dense ones."""
    k: int = 16
    target: float | None = None
    """Steps a second."""
    horizons: int = 1
    """The number of continuations, each with as many of the Q questions."""

    @property
    def features(self) -> gvf.features.FeatureMap:
        """The representation; states are numbers of rows for active features."""
        if self.active is None:
            return gvf.features.Dense(self.size)
        rng = np.random.default_rng(0)
        # One feature of each of as many parts, as in tile coding.
        width = self.size // self.active
        parts = rng.integers(width, size=(2_000, self.active))
        return ActiveTable(parts + np.arange(self.active) * width, self.size)

    def stream(self, count: int) -> gvf.Transitions:
        """Return transitions with a cumulant for each question of a policy."""
        rng = np.random.default_rng(1)
        if self.active is None:
            states = rng.normal(size=(count + 1, self.size)) / np.sqrt(self.size)
        else:
            states = rng.integers(2_000, size=count + 1)
        return gvf.Transitions(
            state=states[:-1],
            action=rng.integers(ACTIONS, size=count),
            next_state=states[1:],
            terminated=rng.random(count) < 0.01,
            signals=rng.normal(size=(count, self.questions // self.horizons)),
        )

    @property
    def targets(self) -> np.ndarray:
        """The probabilities of the target policies, [P, A]."""
        return np.random.default_rng(2).dirichlet(np.full(ACTIONS, 2.0), size=self.policies)

    @property
    def products(self) -> int:
        """The multiplications and additions that the two products of a step need."""
        return 4 * self.k * self.size * self.policies * self.questions

    @property
    def step_size(self) -> float:
        """A step size at which nothing diverges."""
        return 0.1 / (self.active or 1)


CASES = (
    Case("10,000: 10 x 1,000, 256 dense", 10, 1_000, 256, target=1_000),
    Case("10,000: 100 x 100, 256 dense", 100, 100, 256, target=900),
    Case("1,000: 10 x 100, 16 of 4,096", 10, 100, 4_096, 16, target=5_000),
    Case("1,000: 1,000 x 1, 16 of 4,096", 1_000, 1, 4_096, 16, target=1_000),
    Case("6,000: 1 x 6,000, 457 of 6,000, k = 1", 1, 6_000, 6_000, 457, k=1, target=300),
    Case("6,000: 1 x 6,000, 457 of 6,000, k = 16", 1, 6_000, 6_000, 457, target=30),
    Case("65,536: 64 x 1,024, 16 dense", 64, 1_024, 16, target=4e7 / 65_536),
)
FALL = (
    Case("10 x 10, 64 dense", 10, 10, 64),
    Case("10 x 100, 64 dense", 10, 100, 64),
    Case("10 x 1,000, 64 dense", 10, 1_000, 64),
    Case("100 x 100, 64 dense", 100, 100, 64),
    Case("1,000 x 10, 64 dense", 1_000, 10, 64),
    Case("10 x 100, 256 dense", 10, 100, 256),
    Case("10 x 100, 1,024 dense", 10, 100, 1_024),
    Case("10 x 1,000, 256 dense, 10 horizons", 10, 1_000, 256, horizons=10),
    Case("10 x 1,000, 256 dense, 100 horizons", 10, 1_000, 256, horizons=100),
)
SPREAD = (
    Case("10 x 100, 64 dense", 10, 100, 64),
    Case("10 x 1,000, 256 dense", 10, 1_000, 256),
    Case("10 x 100, 16 of 4,096", 10, 100, 4_096, 16),
)


def rows(effort: Effort) -> list[Row]:
    """Measure steps a second of ours and of plain PyTorch, the delay of a step, and memory."""
    longer = replace(effort, rounds=max(3, effort.rounds // 5), seconds=10 * effort.seconds)
    found: list[Row] = []
    fastest = max(1.0 / taken for taken in interleave(products(), longer).values())
    for case in CASES:
        times = interleave({"gvf": ours(case), "plain torch": plain(case)}, longer)
        rate = 1.0 / times["gvf"]
        assert case.target is not None
        target = f">= {case.target:,.0f} Hz"
        found.append(Row(case.name, "gvf", rate, "Hz", target=target, met=rate >= case.target))
        slower = times["plain torch"] / times["gvf"]
        found.append(Row(case.name, "plain torch", 1.0 / times["plain torch"], "Hz", ratio=slower))
        if case.active is None:
            found.append(Row(case.name, "limit of products", fastest / case.products, "Hz"))
    for case in FALL:
        rate = 1.0 / interleave({"gvf": ours(case)}, longer)["gvf"]
        found.append(Row(case.name, "gvf", rate, "Hz"))
    found += spread(longer)
    return [*found, delay(CASES[1]), memory(CASES[1])]


def spread(effort: Effort) -> list[Row]:
    """Measure steps a second with workers on Ray beside one process, with one thread each."""
    found: list[Row] = []
    for case in SPREAD:
        runs = {
            # First, because it starts the cluster.
            "2 workers": ours(case, workers=gvf.jobs.RayCluster(workers=2)),
            "1 worker": ours(case, workers=gvf.jobs.RayCluster(workers=1)),
            "one process": ours(case, threads=1),
        }
        times = interleave(runs, effort)
        for kind, taken in times.items():
            ratio = taken / times["one process"]
            found.append(Row(f"{case.name}, one thread", kind, 1.0 / taken, "Hz", ratio=ratio))
    return found


def products(side: int = 960) -> dict[str, Run]:
    """Return products of large matrices on two cores; a unit of work is an operation."""
    import torch

    numbers = np.random.default_rng(0).normal(size=(2, side, side)).astype(np.float32)
    left, right = (matrix.ravel() for matrix in numbers)
    out, pool = np.zeros(side * side, np.float32), Pool(2)
    other = torch.as_tensor(numbers)

    def ours(count: int) -> None:
        for _ in range(-(-count // (2 * side**3))):
            work = partial(_rows_of_product, left, right, out, side)
            pool.over(side, work, worth=True)

    def repeated(work: Callable[[], object]) -> Run:
        return lambda count: [work() for _ in range(-(-count // (2 * side**3)))]

    return {
        "gvf": ours,
        "numpy": repeated(lambda: np.matmul(*numbers)),
        "torch": repeated(lambda: torch.matmul(*other)),
    }


@njit(nogil=True)
def _rows_of_product(left, right, out, side, first, last):
    a, c = (left, first * side, side, 1), (out, first * side, side)
    add_product(c, a, (right, 0, side), last - first, side, side)


def horde_of(case: Case, **options: Any) -> gvf.Horde:
    """Return a horde with a full window."""
    policies = {str(i): gvf.policies.Fixed(row) for i, row in enumerate(case.targets)}
    horizons = [1 - 0.1 / (i + 1) for i in range(case.horizons)]
    horde = gvf.Horde(
        gvf.question_grid(
            policies, gvf.SignalBank("signals", case.questions // case.horizons), horizons
        ),
        case.features,
        gvf.updates.TD(case.step_size),
        gvf.corrections.IR(),
        behaviour=gvf.policies.Uniform(ACTIONS),
        window=N,
        batch_size=case.k,
        warm_up=N,
        dtype="float32",
        seed=0,
        **options,
    )
    horde.observe(case.stream(N))
    return horde


def ours(case: Case, **options: Any) -> Run:
    """Return a run of a horde with a full window."""
    horde, data = horde_of(case, **options), case.stream(POOL)

    def run(count: int) -> None:
        for start in range(0, count, POOL):
            horde.observe(data[: min(POOL, count - start)])
        if "workers" in options:  # which may be behind
            horde.predict(data.state[:1])

    return run


def plain(case: Case) -> Run:
    """Return a run of the same steps in plain PyTorch."""
    import torch

    torch.manual_seed(0)
    data, old, features = case.stream(POOL), case.stream(N), case.features
    table = torch.as_tensor(case.targets * ACTIONS, dtype=torch.float32)
    x, x_next, new, new_next = (
        torch.as_tensor(features(states))
        for batch in (old, data)
        for states in (batch.state, batch.next_state)
    )
    if case.active is None:
        x, x_next, new, new_next = (part.float() for part in (x, x_next, new, new_next))
    signals, new_signals = (torch.as_tensor(b.signals).float() for b in (old, data))
    alive, new_alive = (torch.as_tensor(~b.terminated).float() for b in (old, data))
    ratios = table[:, torch.as_tensor(old.action)].contiguous()
    new_ratios = table[:, torch.as_tensor(data.action)]
    weights = torch.zeros(case.policies, case.size, case.questions)
    flat, first = weights.view(-1, case.questions), torch.arange(case.policies)[:, None, None]
    alpha, place = case.step_size / case.k, 0

    def step(at: int) -> None:
        nonlocal place
        x[place], x_next[place] = new[at], new_next[at]
        signals[place], alive[place], ratios[:, place] = (
            new_signals[at], new_alive[at], new_ratios[:, at],
        )  # fmt: skip
        place = (place + 1) % N
        slots = torch.multinomial(ratios, case.k, replacement=True)  # [P, k]
        gamma = 0.9 * alive[slots][:, :, None]
        if case.active is None:
            near, far = x[slots], x_next[slots]
            delta = signals[slots] + torch.bmm(gamma * far - near, weights)
            weights.baddbmm_(near.transpose(1, 2), delta, alpha=alpha)
            return
        # A block of rows of weights for each policy; [P, k, active] rows are summed.
        near, far = (part[slots].long() + case.size * first for part in (x, x_next))
        value, after = (
            torch.nn.functional.embedding_bag(rows.flatten(0, 1), flat, mode="sum")
            for rows in (near, far)
        )
        shape = (case.policies, case.k, case.questions)
        delta = signals[slots] + gamma * after.view(shape) - value.view(shape)
        spread = delta[:, :, None].expand(-1, -1, near.shape[2], -1).reshape(-1, case.questions)
        flat.index_add_(0, near.flatten(), spread, alpha=alpha)

    def run(count: int) -> None:
        with torch.no_grad():
            for i in range(count):
                step(i % POOL)

    return run


def delay(case: Case, steps: int = 300) -> Row:
    """Measure the 99th percentile of the time of one step and one prediction of all questions."""
    horde, data = horde_of(case, steps_per_call=1), case.stream(steps)
    times = []
    for i in range(steps):
        start = perf_counter()
        horde.observe(data[i : i + 1])
        horde.predict(data.next_state[i : i + 1])
        times.append(1e3 * (perf_counter() - start))
    late = float(np.percentile(times[steps // 10 :], 99))
    name = f"{case.name}: observe and predict, 99 %"
    return Row(name, "gvf", late, "ms", target="<= 10 ms", met=late <= 10.0)


def memory(case: Case) -> Row:
    """Measure the memory beside weights, window and rings, in percent of these."""
    horde, data = horde_of(case), case.stream(512)
    shard = horde._shard
    assert isinstance(shard, Shard)
    assert shard.weights is not None
    kept = shard.draws.rings.nbytes + shard.weights.take(np.arange(10_000))["weights"].nbytes
    kept += sum(column.nbytes for column in shard.window.columns.values())
    more = _peak(lambda: horde.observe(data))
    share = 100 * more / kept
    name = f"{case.name}: memory beside weights, window and rings"
    return Row(name, "gvf", share, "%", target="<= 10 %", met=share <= 10.0)


def _peak(work: Callable[[], object]) -> int:
    """Return the largest number of bytes that some work has allocated at a time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
