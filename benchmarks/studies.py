"""Studies: one update of one step size, errors included, against straightforward NumPy."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from benchmarks.measure import Effort, Row, at_most
from gvf.study import Study, get, run, run_method
from gvf.study.loop import measure
from gvf.study.task import Bench
from gvf.study.walk import walk

TITLE = "Studies: an update of one lane (16 transitions)"
ROOMS = (("favoured-down", "uniform"),)


def rows(effort: Effort) -> list[Row]:
    """The chain, the rooms, and the continuous rooms with every update."""
    return [*_chain(effort), *_rooms(effort), *_tiles(effort)]


def _best(work: Callable[[], object], effort: Effort, rounds: int = 5) -> float:
    work()
    times = []
    for _ in range(min(rounds, effort.rounds)):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def _chain(effort: Effort) -> list[Row]:
    study = get("markov-step-size-all")
    assert isinstance(study, Study)
    with TemporaryDirectory() as folder:
        run(study.with_(runs=1, seed=1), folder, workers=2)  # compiles what is not yet compiled
        start = perf_counter()
        run(study, folder, workers=2)
        whole = perf_counter() - start
    task = list(study.tasks())[1]
    bench = Bench(task)
    ours = _best(lambda: run_method(task, "IR", bench=bench), effort) / (1000 * 121)
    plain = _numpy(bench, study.step_sizes, updates=100) / (100 * 121)
    name = f"chain, all {study.runs} runs, files written"
    return [
        Row("chain, 121 lanes", "NumPy", plain * 1e9, "ns", plain / ours),
        Row("chain, 121 lanes", "gvf", ours * 1e9, "ns"),
        at_most(name, "gvf, 2 threads", whole, "s", 12.0),
    ]


def _rooms(effort: Effort) -> list[Row]:
    sizes = tuple(np.linspace(0.1, 8.0, 32))
    methods = ("IR", "WIS-Minibatch", "Sarsa", "WIS-Optimal")
    study = Study("rooms", "four-rooms", methods, sizes, pairs=ROOMS, steps=100_000, gaps=(4,),
                  window=2500, warm_up=1000, runs=1)  # fmt: skip
    task = next(study.tasks())
    bench, updates = Bench(task), 24_750
    mu, seed = bench.domain.table(bench.domain.behaviour("uniform")), np.random.SeedSequence(0)
    walked = _best(lambda: walk(bench.domain, "down", mu, 100_000, seed), effort) / 100_000
    times = {
        name: _best(lambda: run_method(task, name, bench=bench), effort, 3) / (updates * 32)  # noqa: B023
        for name in methods
    }
    ours = times.pop("IR")
    plain = _numpy(bench, sizes, updates=200) / (200 * 32)
    return [
        at_most("four rooms, a step", "gvf", walked * 1e9, "ns", 50.0),
        Row("four rooms, 32 lanes", "NumPy", plain * 1e9, "ns", plain / ours),
        at_most("four rooms, 32 lanes", "gvf", ours * 1e9, "ns", 30.0),
        *(Row(f"four rooms, 32 lanes, {m}", "gvf", t * 1e9, "ns") for m, t in times.items()),
    ]


def _tiles(effort: Effort) -> list[Row]:
    lines = []
    for update, method, limit in (
        ("sgd", "IR", 1.0),
        ("rmsprop", "IR", 2.0),
        ("incremental", "IR", 1.2),
        ("sgd", "WIS-TD(0)", 2.5),
    ):
        study = Study(
            "tiles", "continuous-four-rooms", (method,), tuple(np.linspace(1e-4, 1e-2, 24)),
            pairs=ROOMS, update=update, steps=3000, warm_up=1000, measure_every=3000,
            u0=(64.0,), mu=tuple(np.linspace(0.01, 0.1, 24)), evaluation_states=100, runs=1,
        )  # fmt: skip
        task = next(study.tasks())
        bench = Bench(task)
        ours = _best(lambda: run_method(task, method, bench=bench), effort) / (2000 * 24)  # noqa: B023
        name = method if method != "IR" else update
        case = f"continuous rooms, 24 lanes, {name}"
        if name == "sgd":
            plain = _numpy(bench, study.step_sizes, updates=20) / (20 * 24)
            lines.append(Row(case, "NumPy", plain * 1e6, "us", plain / ours))
        lines.append(at_most(case, "gvf", ours * 1e6, "us", limit))
    mu, seed = bench.domain.table(bench.domain.behaviour("uniform")), np.random.SeedSequence(0)
    walked = _best(lambda: walk(bench.domain, "down", mu, 20_000, seed), effort) / 20_000
    lines.append(at_most("continuous rooms, a step", "gvf", walked * 1e9, "ns", 250.0))
    rng = np.random.default_rng(0)
    states = bench.domain.features(rng.uniform(0, 11, (1000, 2)))
    weights, share, truth = rng.normal(size=(5184, 24)), np.ones((1000, 1)), np.zeros(1000)
    dead, error = np.zeros(24, np.bool_), np.zeros(24)
    evaluation = _best(
        lambda: measure(weights, states, share, truth, False, dead, error), effort, 25
    )
    lines.append(
        at_most("continuous rooms, errors in 1000 states", "gvf", evaluation / 24 * 1e6, "us", 15.0)
    )
    return lines


def _numpy(bench: Bench, step_sizes: tuple[float, ...], updates: int) -> float:
    """Seconds for some updates and errors of IR, written as one would in NumPy."""
    path, _, draws = bench.off_policy
    features, truth = bench.domain.features, bench.truth
    alpha = np.array(step_sizes)
    weights = np.zeros((features.size, len(alpha)))
    states = features(truth.states)
    k = draws.by_ratio.shape[1]
    start = perf_counter()
    for rows in draws.by_ratio[:updates]:
        x, x_next = path.x[rows], path.x_next[rows]
        value, following = weights[x].sum(axis=1), weights[x_next].sum(axis=1)
        delta = path.cumulant[rows, None] + path.continuation[rows, None] * following - value
        np.add.at(weights, x, (alpha * delta / k)[:, None, :])
        if x.shape[1] == 1:
            np.abs(weights[states].sum(axis=1) - truth.values[:, None]).mean(axis=0)
    return perf_counter() - start
