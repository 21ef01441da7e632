"""Benchmark of studies: one update of one step size, errors included, against plain NumPy.

All but the whole chain is work of one thread and is given in processor time, which hardly depends
on other processes.
"""

from __future__ import annotations

from collections.abc import Callable
from tempfile import TemporaryDirectory
from time import perf_counter, thread_time
from typing import Any

import numpy as np

import gvf
from benchmarks.measure import LIMITS, Effort, Row, at_most
from gvf.common.arrays import Array
from gvf.updates.linear_kernels import Experience
from gvf_lab.catalogue import study_of
from gvf_lab.study import Study, run, run_method
from gvf_lab.study.measure import measure, sum_tree
from gvf_lab.study.study_loop import aligned, experience_of
from gvf_lab.study.task import TaskInputs, rows_outside_evaluation

TITLE = "Studies: an update of one lane (16 transitions)"
ROOMS = (("favoured-down", "uniform"),)
MOST = LIMITS["studies"]


def rows(effort: Effort) -> list[Row]:
    """Measure the chain, the rooms, and the continuous rooms with every update."""
    return [*_chain(effort), *_rooms(effort), *_tiles(effort)]


def _best(work: Callable[[], object], effort: Effort) -> float:
    """Measure the seconds of the fastest round; long work has fewer rounds."""
    work()
    times: list[float] = []
    while len(times) < 3 or (len(times) < effort.rounds and sum(times) < 1.0):
        start = thread_time()
        work()
        times.append(thread_time() - start)
    return min(times)


def _chain(effort: Effort) -> list[Row]:
    study = study_of("markov-step-size-all")
    assert isinstance(study, Study)
    with TemporaryDirectory() as folder:
        run(study.with_(runs=1, seed=1), folder, workers=2)  # so that everything is compiled
        start = perf_counter()
        run(study, folder, workers=2)
        whole = perf_counter() - start
    task = list(study.tasks())[1]
    shared = TaskInputs(task)
    ours = _best(lambda: run_method(task, "IR", shared=shared), effort) / (1000 * 121)
    plain = _numpy(shared, "sgd", study.choices("IR"), updates=100) / (100 * 121)
    name = f"chain, all {study.runs} runs, files written"
    return [
        Row("chain, 121 lanes", "NumPy", plain * 1e9, "ns", plain / ours),
        Row("chain, 121 lanes", "gvf", ours * 1e9, "ns"),
        at_most(name, "gvf, 2 threads", whole, "s", MOST["chain"]),
    ]


def _rooms(effort: Effort) -> list[Row]:
    sizes = tuple(np.linspace(0.1, 8.0, 32))
    methods = ("IR", "WIS-Minibatch", "Sarsa", "WIS-Optimal")
    study = Study("rooms", "four-rooms", methods, sizes, pairs=ROOMS, steps=100_000, gaps=(4,),
                  window=2500, warm_up=1000, runs=1)  # fmt: skip
    task = next(study.tasks())
    shared, updates = TaskInputs(task), 24_750
    walked = _walk(shared, 100_000, effort)
    times = {
        name: _best(lambda: run_method(task, name, shared=shared), effort) / (updates * 32)  # noqa: B023
        for name in methods
    }
    ours = times.pop("IR")
    plain = _numpy(shared, "sgd", sizes, updates=200) / (200 * 32)
    return [
        at_most("four rooms, a step", "gvf", walked * 1e9, "ns", MOST["rooms-step"]),
        Row("four rooms, 32 lanes", "NumPy", plain * 1e9, "ns", plain / ours),
        at_most("four rooms, 32 lanes", "gvf", ours * 1e9, "ns", MOST["rooms-lane"]),
        *(Row(f"four rooms, 32 lanes, {m}", "gvf", t * 1e9, "ns") for m, t in times.items()),
    ]


def _tiles(effort: Effort) -> list[Row]:
    lines = []
    for update, method in (
        ("sgd", "IR"),
        ("rmsprop", "IR"),
        ("incremental", "IR"),
        ("sgd", "WIS-TD(0)"),
    ):
        study = Study(
            "tiles", "continuous-four-rooms", (method,), tuple(np.linspace(1e-4, 1e-2, 24)),
            pairs=ROOMS, update=update, steps=3000, warm_up=1000, measure_every=3000,
            u0=(64.0,), mu=tuple(np.linspace(0.01, 0.1, 24)), evaluation_states=100, runs=1,
        )  # fmt: skip
        task = next(study.tasks())
        shared = TaskInputs(task)
        ours = _best(lambda: run_method(task, method, shared=shared), effort) / (2000 * 24)  # noqa: B023
        name = method if method != "IR" else update
        case = f"continuous rooms, 24 lanes, {name}"
        plain = _numpy(shared, name, study.choices(method), updates=20) / (20 * 24)
        lines.append(Row(case, "NumPy", plain * 1e6, "us", plain / ours))
        lines.append(at_most(case, "gvf", ours * 1e6, "us", MOST["tiles"][name]))
    walked = _walk(shared, 20_000, effort)
    lines.append(at_most("continuous rooms, a step", "gvf", walked * 1e9, "ns", MOST["tiles-step"]))
    return [*lines, *_errors(shared, effort)]


def _walk(shared: TaskInputs, steps: int, effort: Effort) -> float:
    """Measure the seconds of a step of the uniform behaviour, with a question's signals."""
    domain, seed = shared.domain, np.random.SeedSequence(0)
    policy = domain.behaviour("uniform")
    return _best(lambda: domain.walk(policy, ["down"], steps, seed), effort) / steps


def _errors(shared: TaskInputs, effort: Effort) -> list[Row]:
    rng, size = np.random.default_rng(0), shared.domain.features.size
    states, truth = shared.domain.features(rng.uniform(0, 11, (1000, 2))), rng.normal(size=1000)
    weights, share = aligned(rng.normal(size=(size, 24))), np.ones((1000, 1))
    hidden = rows_outside_evaluation(states, share, np.ones(size, bool))
    target = (states, share, hidden, truth, np.empty(0), *sum_tree(states, share))
    dead, error = np.zeros(24, np.bool_), aligned(np.zeros(24))
    ours = _best(lambda: measure(weights, target, False, dead, error), effort) / 24
    plain = _best(lambda: _numpy_errors(weights, states, truth), effort) / 24
    case = "continuous rooms, errors in 1000 states"
    return [
        Row(case, "NumPy", plain * 1e6, "us", plain / ours),
        at_most(case, "gvf", ours * 1e6, "us", MOST["errors"]),
    ]


def _numpy(shared: TaskInputs, name: str, lanes: tuple[Any, ...], updates: int) -> float:
    """Measure the seconds of some updates in plain NumPy, and in a table also of their errors."""
    question, path = shared.task.question, shared.off_policy
    ratio, experience = path.signals[question].ratio, experience_of(path, question)
    k = shared.study.batch_size
    weigh: Callable[[Array], Array]
    if name == "WIS-TD(0)":
        drawn, weigh = shared.draws(gvf.corrections.IS()).rows, lambda rows: ratio[rows, None] / k
    else:
        drawn, weigh = shared.draws(gvf.corrections.IR()).rows, lambda rows: np.full((k, 1), 1 / k)
    values = np.array(lanes).T
    weights = np.zeros((shared.domain.features.size, len(lanes)))
    memory = weights + values[0] if name == "WIS-TD(0)" else np.zeros_like(weights)
    states, truth = shared.domain.features(shared.truth.states), shared.truth.values
    start = thread_time()
    for rows in drawn[:updates]:
        NUMPY[name](experience, rows, weigh(rows), weights, memory, values)
        if path.kind is not None:
            _numpy_errors(weights, states, truth)
    return thread_time() - start


def _numpy_errors(weights: Array, states: Array, truth: Array) -> Array:
    return np.abs(weights[states].sum(axis=1) - truth[:, None]).mean(axis=0)


def _delta(seen: Experience, rows: Array, weights: Array) -> Array:
    value, following = (weights[x[rows]].sum(axis=1) for x in (seen.x, seen.x_next))
    return seen.cumulant[rows, None] + seen.continuation[rows, None] * following - value


def _sgd(
    seen: Experience, rows: Array, w: Array, weights: Array, memory: Array, alpha: Array
) -> None:
    np.add.at(weights, seen.x[rows], (alpha * w * _delta(seen, rows, weights))[:, None])


def _rmsprop(
    seen: Experience, rows: Array, w: Array, weights: Array, memory: Array, alpha: Array
) -> None:
    g = np.zeros_like(weights)
    np.add.at(g, seen.x[rows], (w * _delta(seen, rows, weights))[:, None])
    memory *= 0.9
    memory += 0.1 * g**2
    weights += alpha * g / np.sqrt(memory + 1e-8)


def _incremental(
    seen: Experience, rows: Array, w: Array, weights: Array, memory: Array, alpha: Array
) -> None:
    for row, r in zip(rows[:, None], len(rows) * w, strict=True):
        weights[seen.x[row]] += alpha * r * _delta(seen, row, weights)


def _wis_td(
    seen: Experience, rows: Array, w: Array, weights: Array, memory: Array, lanes: Array
) -> None:
    for row, r in zip(rows[:, None], len(rows) * w, strict=True):
        x = seen.x[row]
        memory[x] = (1.0 - lanes[1]) * memory[x] + r
        weights[x] += r * _delta(seen, row, weights) / memory[x]


NUMPY = {"sgd": _sgd, "rmsprop": _rmsprop, "incremental": _incremental, "WIS-TD(0)": _wis_td}
