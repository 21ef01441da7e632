"""Cells: the independent pieces of work of an answer, each a pure function of plan and log.

    judge        one question, one correction, one part held out: learn from the other parts with
                 all step sizes, and predict for the held-out episodes
    replicates   one question, some replicates of the bootstrap, with what was chosen; replicate 0
                 is the answer itself
    solved       one question: what learning tends to, by least squares, to see if it is finished
    richer       one question: the answer itself with richer features, to see if it depends on them
    final        one question without intervals: learn from the whole log with what was chosen

A cell gives arrays. :mod:`gvf.answers.cell_jobs` stores them, and does cells in any order, on
threads or on a Ray cluster, with the same bits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from gvf.answers import build_question
from gvf.answers.plan import Plan
from gvf.answers.question_file import LEAST_SQUARES
from gvf.answers.read_inputs import Material
from gvf.answers.remarks import Costly
from gvf.common import describe
from gvf.common.arrays import Array
from gvf.corrections import IS, Correction
from gvf.features import FeatureMap
from gvf.intervals import BootstrapResult
from gvf.intervals.bootstrap import intervals_of
from gvf.intervals.replicates import ReplicateArguments, Replicates
from gvf.jobs import Stop
from gvf.judging.candidates import Candidate
from gvf.judging.comparison import Score
from gvf.judging.held_out import HeldOut, gather
from gvf.learners import Learner
from gvf.learners.batches import Order
from gvf.learners.method import Method
from gvf.learners.update_loop import UPDATES
from gvf.log import Log
from gvf.online import LSTDLearner
from gvf.online.least_squares import least_norm
from gvf.updates import TD

Arrays = dict[str, Array]
EPOCHS = 10
"""The number of passes over a log with which learning begins, if the plan does not say."""
FEW_FEATURES, FEW_TERMS = 2000, 10**9
"""The numbers of features, and of terms of their equations, up to which what learning tends to is
solved for."""
FEW_TIMED, COSTLY_SECONDS = 800, 60.0
"""The number of features of the equations that are timed, and the seconds of processor time above
which least squares is costly."""
LOOKED_AT = 2000
"""The number of states, about, by which answers are compared."""
WINDOW = 15_000
"""The number of transitions that a learner keeps by default of a log beyond memory."""
MOST_JUDGED = 1_000_000
"""The largest number of transitions of a part that judge; of more, the first episodes do."""


@dataclass(frozen=True)
class Cell:
    """One piece of work.

    Attributes:
        kind: "judge", "replicates", "solved", "richer" or "final".
        question: the number of the question.
        method: the name of the method.
        step_size: the step size; None for all of the plan.
        part: the number of the part that is held out, or the first replicate.
        count: the number of replicates; of richer features, how many times the tilings.
        epochs: the number of passes over the log; None for the plan's.
    """

    kind: str
    question: int
    method: str
    step_size: float | None = None
    part: int = 0
    count: int = 0
    epochs: int | None = None


def methods(material: Material) -> dict[str, Method | None]:
    """Return the methods of a plan by name; LSTD has none of a study."""
    by_name: dict[str, Method | None] = {}
    for entry in material.plan.methods:
        method = None if entry == LEAST_SQUARES else Method.of(entry)
        by_name[LEAST_SQUARES if method is None else method.name] = method
    return by_name


def epochs_of(plan: Plan) -> int:
    """Return the number of passes with which learning begins."""
    return plan.learn["epochs"] or EPOCHS


def step_size_of(plan: Plan, score: Score) -> float | None:
    """Return the step size of a candidate; None if it has none."""
    return None if score.lane is None else plan.step_sizes[score.lane]


def learner(
    material: Material,
    question: int,
    method: str,
    step_sizes: Any,
    part: int = 0,
    features: FeatureMap | None = None,
) -> Learner | LSTDLearner:
    """Make a learner that has learned nothing."""
    features = material.features if features is None else features
    plan, asked = material.plan, material.questions[question]
    recipe = methods(material)[method]
    if recipe is None:
        return LSTDLearner(asked, features, behaviour=material.behaviour)
    update = recipe.make_update("sgd", step_sizes)
    correction: Correction = recipe.make(1.0)
    learn = plan.learn
    return Learner(
        asked,
        features,
        update,
        correction,
        behaviour=material.behaviour,
        window=learn["window"] or (len(material.log) if material.log.in_memory else WINDOW),
        batch_size=learn["batch_size"],
        update_every=learn["every"],
        seed=np.random.SeedSequence(plan.seed, spawn_key=(part,)),
    )


def has_intervals(material: Material) -> bool:
    """Return True if the answers of a plan have intervals."""
    return material.plan.replicates > 0 and material.log.in_memory


def order_of(material: Material) -> Order | None:
    """Return the order of learning; None for a choice by the learner.

    Replicates draw from the whole log. What is judged then learns in the same way.
    """
    return "drawn" if has_intervals(material) else material.plan.learn["order"]


def fit(model: Any, log: Log, material: Material) -> None:
    """Let a learner learn from a log; it stops by itself when the job that it belongs to does."""
    plan, least_squares = material.plan, isinstance(model, LSTDLearner)
    model.fit(
        log,
        epochs=1 if least_squares else epochs_of(plan),
        order="log" if least_squares else order_of(material),
        seed=plan.seed,
        progress=False,
    )


def cost(material: Material) -> Costly | None:
    """Estimate the cost of least squares; None if it is low, or if the plan does without."""
    plan, features, states = material.plan, material.features, material.facts.sample
    if LEAST_SQUARES not in methods(material) or features.size < FEW_TIMED:
        return None
    x = features(states)
    known = int((x != 0).any(axis=0).sum()) if x.dtype.kind == "f" else len(np.unique(x))
    each = plan.folds + (plan.replicates if has_intervals(material) else 0) + 1
    some = np.random.default_rng(0).random((FEW_TIMED, FEW_TIMED))
    some[0] = some[1]  # tiles make equations with several solutions
    began = time.perf_counter()
    least_norm(some, some[0])
    seconds = (time.perf_counter() - began) * (known / FEW_TIMED) ** 3
    costly = Costly(known, each * len(material.questions), each * len(material.questions) * seconds)
    return costly if costly.seconds > COSTLY_SECONDS else None


def check_saved(model: Any) -> None:
    """Raise ValueError if a learner could be saved, but not loaded.

    A lambda, for example, has no name by which it could be found again.
    """
    try:
        describe.references(model.arguments())
    except describe.LostError as error:
        *_, part = [name for name in error.part.split(".") if name in _PARTS]
        raise ValueError(
            f"{_PARTS[part]} uses {error.what}, which cannot be saved: define it at the top of a "
            "module, a function by def (a lambda has no name, even if it is assigned to one)"
        ) from None


_PARTS = {
    "policy": "the policy",
    "cumulant": "the cumulant",
    "continuation": "the continuation",
    "interest": "the interest",
    "features": "[features]",
    "behaviour": "[behaviour]",
    "correction": "a correction of [learn]",
    "update": "an update of [learn]",
}
"""The parts of a learner, in words of the question file."""


def folds(material: Material) -> Array:
    """Return the part in which each episode is held out, int64[E]."""
    plan, count = material.plan, len(material.log.episodes)
    if count < plan.folds:
        alone = (
            "one episode cannot be held out; cut it into pieces, many horizons long each, by a "
            "column that numbers them: name it as episode in [log]"
        )
        many = f"{count} episodes cannot be held out in {plan.folds} parts; say folds in [judge]"
        raise ValueError(f"{material.log.source}: {alone if count == 1 else many}")
    return np.random.default_rng(plan.seed).permutation(count) % plan.folds


def compute(cell: Cell, material: Material, stop: Stop = lambda: False) -> Arrays:
    """Do a cell."""
    kinds = {
        "judge": _judge, "replicates": _replicates, "solved": _solved, "richer": _richer,
        "final": _final,
    }  # fmt: skip
    return kinds[cell.kind](cell, material, stop)


def _judge(cell: Cell, material: Material, stop: Stop) -> Arrays:
    log, part = material.log, folds(material)
    rest, out = log.select(np.flatnonzero(part != cell.part)), _held_out(cell, material)
    model = learner(material, cell.question, cell.method, material.plan.step_sizes, 1 + cell.part)
    fit(model, rest, material)
    held, candidates = gather(
        {cell.method: model}, out, material.questions[cell.question], material.behaviour, "error"
    )
    names = json.dumps([list(candidate) for candidate in candidates])
    arrays = {field.name: getattr(held, field.name) for field in fields(HeldOut)}
    return {**arrays, "candidates": np.frombuffer(names.encode(), np.uint8)}


def _held_out(cell: Cell, material: Material) -> Log:
    chosen = np.flatnonzero(folds(material) == cell.part)
    lengths = material.log.lengths[chosen]
    few = max(1, int(np.searchsorted(np.cumsum(lengths), MOST_JUDGED, "right")))
    return material.log.select(chosen[:few])


def held_out(arrays: Arrays) -> tuple[HeldOut, list[Candidate]]:
    """Return what a cell that judges has found."""
    held = HeldOut(**{field.name: arrays[field.name] for field in fields(HeldOut)})
    names = json.loads(arrays["candidates"].tobytes().decode())
    return held, [Candidate(*candidate) for candidate in names]


def _final(cell: Cell, material: Material, stop: Stop) -> Arrays:
    model = learner(material, cell.question, cell.method, cell.step_size)
    fit(model, material.log, material)
    return model.state_dict()


def learned(cell: Cell, material: Material, arrays: Arrays) -> Learner | LSTDLearner:
    """Return the learner that a final cell has found."""
    model = learner(material, cell.question, cell.method, cell.step_size)
    model.load_state_dict(arrays)
    return model


def point(cell: Cell, material: Material, result: BootstrapResult) -> Learner | LSTDLearner:
    """Return a learner that has seen the whole log and has the weights of replicate 0."""
    model = learner(material, cell.question, cell.method, cell.step_size)
    waiting = nullcontext() if isinstance(model, LSTDLearner) else model.without_updates()
    with waiting:
        model.fit(material.log, order="log", progress=False)
    model.weights[:] = result.weights[0, :, 0]
    if isinstance(model, Learner):
        model.schedule.counts[UPDATES] = result.updates
    return model


def can_solve(cell: Cell, material: Material) -> bool:
    """Return True if least squares takes little time for what the learner of a cell tends to."""
    model = learner(material, cell.question, cell.method, cell.step_size)
    if isinstance(model, LSTDLearner) or model.update.action_values:
        return False
    active = model.features(material.facts.sample[:1]).shape[1]
    return model.features.size <= FEW_FEATURES and len(material.log) * active**2 <= FEW_TERMS


def _solved(cell: Cell, material: Material, stop: Stop) -> Arrays:
    """Predict a sample of states by what learning tends to, which is solved for."""
    model = learner(material, cell.question, cell.method, cell.step_size)
    tends = LSTDLearner(model.question, model.features, model.correction, behaviour=model.behaviour)
    fit(tends, material.log, material)
    return {"sample": tends.predict(looked_at(material)[1])}


def _richer(cell: Cell, material: Material, stop: Stop) -> Arrays:
    """Predict the first states of episodes, and a sample of all, with richer features."""
    features = build_question.richer(material.features, material.facts, cell.count)
    assert features is not None
    if cell.step_size is None:
        model = learner(material, cell.question, cell.method, None, features=features)
        fit(model, material.log, material)
        predict = model.predict
    else:
        # The same step in predictions: features whose squares sum up to more need less.
        sample = material.facts.sample[:1000]
        sums = [_squares(each(sample)) for each in (material.features, features)]
        smaller = replace(cell, step_size=cell.step_size * sums[0] / sums[1])
        job, model = _resampled(material, smaller, features)
        model.weights[:] = job.run(model, [0], stop).weights[:, 0]
        predict = model.predict
    first, sample = looked_at(material)
    return {"first": predict(first), "sample": predict(sample)}


def _squares(x: Array) -> float:
    """Return the mean sum of squares of features [m, ...]."""
    return float((x**2).sum(axis=1).mean()) if x.dtype.kind == "f" else float(x.shape[1])


def looked_at(material: Material) -> tuple[Array, Array]:
    """Return the first states of all episodes of a log in memory, and a sample of all states."""
    whole, sample = material.log.transitions(), material.facts.sample
    first = np.flatnonzero(np.diff(whole.episode, prepend=-1))
    return whole.state[first], sample[:: max(1, len(sample) // LOOKED_AT)]


def _resampled(
    material: Material, cell: Cell, features: FeatureMap | None = None
) -> tuple[ReplicateArguments, Learner]:
    """Return the job of the replicates of a cell, and the learner that they repeat."""
    plan = material.plan
    model = learner(material, cell.question, cell.method, cell.step_size, features=features)
    least_squares = isinstance(model, LSTDLearner)
    if isinstance(model, LSTDLearner):
        model = Learner(model.question, model.features, TD(1.0), IS(), behaviour=model.behaviour)
    method = "lstd" if least_squares else "td"
    return ReplicateArguments(
        material.log, None, cell.epochs or epochs_of(plan), method, plan.seed
    ), model


def _replicates(cell: Cell, material: Material, stop: Stop) -> Arrays:
    job, model = _resampled(material, cell)
    replicates = job.run(model, range(cell.part, cell.part + cell.count), stop)
    return {field.name: np.asarray(getattr(replicates, field.name)) for field in fields(Replicates)}


def intervals(
    material: Material, listed: Sequence[Cell], arrays: Sequence[Arrays], level: float
) -> BootstrapResult:
    """Make the intervals of a question from the cells of its replicates."""
    job, model = _resampled(material, listed[0])
    each = []
    for part in arrays:
        named: dict[str, Any] = {field.name: part[field.name] for field in fields(Replicates)}
        each.append(Replicates(**named))
    return intervals_of(job, [model], [Replicates.joined(each)], level)
