"""Benchmark of answers from a log whose truth is known, ours beside those of other libraries.

Two errors: of predictions, over the states that the behaviour visits, as a share of the spread of
the true values (100 % is what their mean would get); and of the mean value of the states in which
episodes begin, the only number that SCOPE-RL's estimators give, as a share of its size. All are
means over logs. Step sizes and regularisers are selected by :func:`gvf.select_learner` from the log
alone, and the time of that is shown. FQE keeps d3rlpy's default settings. All use one thread.

    make bench-logs                                         in an environment of its own
    python -m benchmarks --only logs [--quick]              the same, where d3rlpy is installed
    python -m benchmarks.logs docs/logs [--logs 5]          write the table of the documentation

d3rlpy 2.8.1 demands Gymnasium 1.0.0 exactly, and so 2.8.0 is installed. SCOPE-RL brings the old
package `gym`, which warns when it is imported, and works.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import gvf
from benchmarks import log_peers as peers
from benchmarks.measure import QUICK, Effort, Row
from gvf.common.arrays import Floats
from gvf_lab.worlds import World, cartpole, four_rooms, pendulum

ROWS, EPOCHS = 10_000, 4
TITLE = f"Answers from a log of {ROWS:,} rows with known truth (discount .9, 1 thread)"
STEP_SIZES = (0.1, 0.3, 1.0, 3.0, 10.0)
"""The step sizes to select from, divided by the number of active features."""
REGULARISERS = (None, 0.01, 0.1, 1.0, 10.0)
CORRECTIONS = {
    "IR": gvf.corrections.IR(),
    "emphatic IR": gvf.corrections.EmphaticIR(),
    "IS": gvf.corrections.IS(),
}


class Answer(NamedTuple):
    """The answer of a method to one log; nan where it gives none.

    Attributes:
        error: the error of predictions, in % of the spread of the true values.
        start: the error of the start value, in % of its size, with its sign.
        fit: the seconds of one fit.
        whole: the seconds from the log to the answer, with selection.
    """

    error: float
    start: float
    fit: float
    whole: float


@dataclass(frozen=True)
class Line:
    """A line of the table: means over logs, and the standard errors of both errors.

    `error` and `start` are nan if the method gives no such answer. `start` is the root of the mean
    squared error of the start value.
    """

    world: str
    method: str
    error: float = math.nan
    error_noise: float = math.nan
    start: float = math.nan
    start_noise: float = math.nan
    fit: float = math.nan
    whole: float = math.nan
    note: str = ""


def rows(effort: Effort) -> list[Row]:
    """Measure all methods in all worlds."""
    found = measured(2 if effort == QUICK else 5 if effort.slow else 3)
    return [
        Row(line.world, line.method, None if math.isnan(line.error) else line.error, "% of spread",
            reached=line.note or f"start {line.start:.2g} %, {line.fit:.2g} s, "
            f"with selection {line.whole:.2g} s")
        for line in found
    ]  # fmt: skip


def measured(logs: int) -> list[Line]:
    """Answer logs of all worlds."""
    if not peers.missing("d3rlpy"):
        peers.quiet()
    worlds = (four_rooms(), cartpole(600, 8), pendulum(600, 8))
    return [line for world in worlds for line in _world(world, logs)]


def _world(world: World, logs: int) -> Iterator[Line]:
    found: dict[str, list[Answer]] = defaultdict(list)
    for seed in range(-1, logs):  # the first one compiles
        log = world.log(1000 if seed < 0 else ROWS, seed + 1)
        answers = dict(_ours(world, log, seed + 1))
        if seed < 0:
            continue
        answers |= _theirs(world, log, seed + 1)
        for name, answer in answers.items():
            found[name].append(answer)
    for name, all_answers in found.items():
        yield _line(world.name, name, np.array(all_answers))
    yield from _without(world)


def _line(world: str, method: str, answers: Floats) -> Line:
    """Average answers [logs, 4]; the start's noise is that of a root mean square."""
    logs = len(answers)
    error, start, fit, whole = answers.T
    squares = start**2
    root = math.sqrt(squares.mean())
    return Line(
        world,
        method,
        error.mean(),
        error.std(ddof=1) / math.sqrt(logs),
        root,
        squares.std(ddof=1) / math.sqrt(logs) / (2 * root),
        fit.mean(),
        whole.mean(),
    )


def _without(world: World) -> Iterator[Line]:
    """Yield a line for each method that gives no answer, with the reason."""
    if world.actions is None:
        yield Line(world.name, "Expected Sarsa", note="needs discrete actions")
    for package, method in (("d3rlpy", "FQE"), ("scope-rl", "weights")):
        if why := peers.missing(package):
            yield Line(world.name, f"{package}: {method}", note=why)
    if world.actions is None and not peers.missing("scope-rl"):
        why = "with real actions only for targets that do not draw"
        yield Line(world.name, f"{peers.named('scope-rl')}: weights", note=why)
    why = "for single decisions, so not comparable"
    yield Line(world.name, peers.named("obp"), note=why)


def _ours(world: World, log: gvf.Log, seed: int) -> Iterator[tuple[str, Answer]]:
    rates = [rate / world.active for rate in STEP_SIZES]
    for name, correction in CORRECTIONS.items():
        learner = gvf.Learner(
            world.question, world.features, gvf.updates.TD(rates), correction, seed=seed
        )
        yield name, _selected(world, log, {name: learner}, seed)
    if world.actions is not None:
        sarsa = gvf.Learner(
            world.question,
            world.features,
            gvf.updates.ExpectedSarsa(rates),
            gvf.corrections.OnPolicy(),
            seed=seed,
        )
        yield "Expected Sarsa", _selected(world, log, {"Expected Sarsa": sarsa}, seed)
    yield "LSTD, no regulariser", _solved(world, log)
    solvers = {
        f"LSTD, {value}": gvf.LSTDLearner(world.question, world.features, regulariser=value)
        for value in REGULARISERS
    }
    yield "LSTD, regulariser selected", _selected(world, log, solvers, seed)


def _selected(world: World, log: gvf.Log, learners: dict[str, Any], seed: int) -> Answer:
    """Select from the log alone, and answer with the learner that won."""
    times: list[float] = []

    def learn(learner: Any, part: gvf.Log) -> None:
        start = perf_counter()
        if isinstance(learner, gvf.LSTDLearner):
            learner.fit(part)
            assert len(learner.weights)  # solves
        else:
            learner.fit(part, epochs=EPOCHS, seed=seed, progress=False)
        times.append(perf_counter() - start)

    start = perf_counter()
    selection = gvf.select_learner(learners, log, learn=learn, seed=seed, progress=False)
    whole = perf_counter() - start
    return _answer(world, log, selection.predict, times[-1], whole)


def _solved(world: World, log: gvf.Log) -> Answer:
    """Answer by least squares, which leaves nothing to select."""
    start = perf_counter()
    solver = gvf.LSTDLearner(world.question, world.features)
    solver.fit(log)
    assert len(solver.weights)  # solves
    taken = perf_counter() - start
    return _answer(world, log, solver.predict, taken, taken)


def _theirs(world: World, log: gvf.Log, seed: int) -> dict[str, Answer]:
    """Answer by other libraries, as far as they are installed."""
    if peers.missing("d3rlpy"):
        return {}
    found: dict[str, Answer] = {}
    fitted, taken = peers.Fitted(world, log, seed), 0.0
    for steps, taken in fitted.fit(log):
        name = f"{peers.named('d3rlpy')}: FQE, {steps:,} steps"
        found[name] = _answer(world, log, fitted.predict, taken, taken)
    if world.actions is None or peers.missing("scope-rl"):
        return found
    for name, (value, seconds) in peers.scope_rl(world, log, fitted).items():
        whole = seconds + (taken if "FQE" in name else 0.0)
        found[f"{peers.named('scope-rl')}: {name}"] = Answer(
            math.nan, _start(world, value), whole, whole
        )
    return found


def _answer(world: World, log: gvf.Log, predict: Any, fit: float, whole: float) -> Answer:
    """Compare predictions with the truth."""
    steps = log.transitions()
    first = np.concatenate([[True], (steps.terminated | steps.truncated)[:-1]])
    value = float(np.mean(predict(steps.state[first])))
    error = 100.0 * world.relative_error(predict(world.states))
    return Answer(error, _start(world, value), fit, whole)


def _start(world: World, value: float) -> float:
    return 100.0 * (value - world.start) / abs(world.start)


def write(lines: list[Line], folder: Path) -> None:
    """Write the table as CSV, and as Markdown for the documentation."""
    names = list(Line.__dataclass_fields__)
    with (folder / "peers.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(names)
        for line in lines:
            values = [getattr(line, name) for name in names]
            table.writerow([f"{v:.4g}" if isinstance(v, float) else v for v in values])
    text = ["| world | method | error of predictions | error of the start value | fit | whole |",
            "|---|---|---|---|---|---|"]  # fmt: skip
    world = ""
    for line in lines:
        seconds = [_seconds(line.fit), _seconds(line.whole)]
        cells = [line.note, "", "", ""] if line.note else [
            _share(line.error, line.error_noise), _share(line.start, line.start_noise), *seconds
        ]  # fmt: skip
        shown = line.world if line.world != world else ""
        text.append(f"| {' | '.join([shown, line.method, *cells])} |")
        world = line.world
    (folder / "peers.markdown").write_text("\n".join(text) + "\n", "utf-8")


def _share(value: float, noise: float) -> str:
    return "–" if math.isnan(value) else f"{value:.1f} ± {noise:.1f} %"


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 1.0 else f"{value:.2f} s"


def main() -> None:
    """Measure, and write both files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.logs", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--logs", type=int, default=5, help="the number of logs of each world")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    write(measured(options.logs), options.folder)
    print((options.folder / "peers.markdown").read_text("utf-8"))


if __name__ == "__main__":
    main()
