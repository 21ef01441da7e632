"""Answers: from a log and a question file to predictions with intervals.

For every question, each correction learns with each step size from parts of the log, and held-out
episodes judge (:mod:`gvf.judging`). What wins learns from the whole log, and a bootstrap over
episodes gives the intervals. :mod:`gvf.answers.outcome` writes files and the page.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gvf.answers.cells import Cell, folds, held_out, intervals, methods, side_by_side
from gvf.answers.engine import Engine
from gvf.answers.material import Material, prepare
from gvf.answers.plan import Plan
from gvf.answers.store import Store
from gvf.answers.support import support_of, warnings_of, warnings_of_material
from gvf.behaviour import Support
from gvf.common.arrays import Array, Floats
from gvf.diagnosis import Diagnosis
from gvf.diagnosis.ratios import RatioStatistics
from gvf.intervals.counts import Units
from gvf.judging.held_out import HeldOut
from gvf.judging.judgement import Judgement, Score, judged
from gvf.question import GVF

RETURNS = "doubly-robust"
SAMPLES = 2000
"""The number of bootstrap samples of a judgement."""
TOGETHER = 100
"""The number of replicates in a cell; their lanes share the work of a draw."""


@dataclass(frozen=True, eq=False)
class Answered:
    """The answer to one question.

    Attributes:
        question: the question.
        ratios: the statistics of its ratios in the log.
        support: how far the behaviour covers the target.
        judgement: the scores of all corrections and step sizes on held-out episodes.
        method: the name of the correction that was chosen.
        step_size: the step size that was chosen; None if it has none.
        learner: the learner that learned from the whole log.
        intervals: the bootstrap's intervals, or None.
        diagnosis: the diagnosis of the learner's window, or None if it needs no ratios.
    """

    question: GVF
    ratios: RatioStatistics
    support: Support
    judgement: Judgement
    method: str
    step_size: float | None
    learner: Any
    intervals: Any
    diagnosis: Diagnosis | None

    @property
    def chosen(self) -> Score:
        """The score of what was chosen."""
        return self.judgement.best

    @property
    def sure(self) -> bool:
        """True if the log can tell that what was chosen predicts better than a constant."""
        return not self.judgement.verdict.startswith("cannot tell")

    def predict(self, states: Any) -> tuple[Floats, Floats, Floats]:
        """Return predictions and the ends of their intervals, or nan for the ends, [m] each."""
        predicted = np.asarray(self.learner.predict(states), np.float64)
        if self.intervals is None:
            unknown = np.full(len(predicted), np.nan)
            return predicted, unknown, unknown
        _, low, high = self.intervals.predict(states)
        return predicted, low, high


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The answers to the questions of a file, from one log.

    Attributes:
        material: the log, and what was made for it.
        answers: an answer for each question.
    """

    material: Material
    answers: tuple[Answered, ...]

    @property
    def plan(self) -> Plan:
        """The plan: all that the question file says."""
        return self.material.plan

    def __repr__(self) -> str:
        estimated = self.material.source == "estimated"
        lines = [f"ratios {self.material.ratios_from}"] if estimated else []
        lines += [f"  warning: {warning}" for warning in warnings_of_material(self.material)]
        for one in self.answers:
            lines += [f"{one.question.name}: {one.judgement.verdict}", *_support(one)]
            if edge := edge_of(self.plan, one):
                lines.append(f"  {edge}")
        return "\n".join(lines)


def edge_of(plan: Plan, one: Answered) -> str:
    """Tell that a step size was chosen beyond which none was tried; empty if it was not."""
    sizes = plan.step_sizes
    if len(sizes) < 2 or one.step_size not in (min(sizes), max(sizes)):
        return ""
    smallest = one.step_size == min(sizes)
    most, other = ("smallest", "smaller") if smallest else ("largest", "larger")
    return f"{one.step_size:g} is the {most} of the step sizes: a {other} one may be better"


def _support(one: Answered) -> list[str]:
    found = one.ratios
    size, window = found.effective_sample_size, found.window
    lines = [
        f"  {window:,} ratios, worth {size:,.0f} transitions of the target "
        f"({100 * size / window:.0f} %); largest {found.max_ratio:.3g}"
    ]
    warnings = warnings_of(found, one.support)
    return [*lines, *(f"  warning: {warning}" for warning in warnings)]


def answer(plan: Plan, source: Any, out: Path, engine: Engine, *, quiet: bool = False) -> Answer:
    """Answer the questions of a plan from a log.

    Args:
        plan: what the question file says.
        source: the log, or what :func:`gvf.read` takes.
        out: the folder in which cells that are done are kept.
        engine: where cells are done.
        quiet: True to print nothing about the log.
    """
    material = prepare(plan, source, quiet=quiet)
    _check(material)
    store = Store(out, material)
    names, questions = list(methods(material)), range(len(material.questions))
    judging = [
        Cell("judge", question, name, None, part)
        for question in questions
        for name in names
        for part in range(plan.folds)
    ]
    found = engine.run(judging, material, store, "judging")
    judgements = [
        _judgement(material, [cell for cell in judging if cell.question == question], found)
        for question in questions
    ]
    chosen = [_chosen(plan, judgement) for judgement in judgements]
    final = [Cell("final", question, *chosen[question]) for question in questions]
    learned = engine.run(final, material, store, "learning from all")
    intervals = _intervals(material, chosen, store, engine)
    answers = []
    for question in questions:
        learner = _loaded(learned[final[question]]["learner"], plan)
        answers.append(
            Answered(
                question=material.questions[question],
                ratios=RatioStatistics.of(material.ratios[question], plan.learn["batch_size"]),
                support=support_of(material, material.questions[question]),
                judgement=judgements[question],
                method=chosen[question][0],
                step_size=chosen[question][1],
                learner=learner,
                intervals=intervals[question],
                diagnosis=_diagnosis(learner),
            )
        )
    return Answer(material, tuple(answers))


def _check(material: Material) -> None:
    """Raise ValueError if the log has too few episodes, before anything is learned."""
    folds(material)
    if material.plan.replicates and material.log.in_memory:
        try:
            Units(material.log)
        except ValueError:
            raise ValueError(
                f"{material.log.source}: {len(material.log.episodes)} episodes are too few for "
                "intervals: say replicates = 0 in [intervals]"
            ) from None


def _judgement(material: Material, cells: list[Cell], found: dict[Cell, Any]) -> Judgement:
    """Judge all candidates of a question by all of its held-out parts."""
    parts, candidates = [], []
    for part in range(material.plan.folds):
        held, candidates = side_by_side(
            [held_out(found[cell]) for cell in cells if cell.part == part]
        )
        parts.append(held)
    level, seed = material.plan.level, material.plan.seed
    return judged(HeldOut.joined(parts), candidates, RETURNS, level, SAMPLES, seed)


def _chosen(plan: Plan, judgement: Judgement) -> tuple[str, float | None]:
    best = judgement.best
    if best.standing == "diverged":
        raise ValueError(
            "all corrections have diverged with all step sizes: give smaller step_sizes in [learn]"
        )
    return best.learner, None if best.lane is None else plan.step_sizes[best.lane]


def _loaded(content: Array, plan: Plan) -> Any:
    from gvf.answers.store import references
    from gvf.saved import load

    handle, file = tempfile.mkstemp(suffix=".gvf")
    os.close(handle)
    try:
        Path(file).write_bytes(content.tobytes())
        return load(file, trust=[name.partition(":")[0] for name in references(plan)])
    finally:
        Path(file).unlink()


def _diagnosis(learner: Any) -> Diagnosis | None:
    if not hasattr(learner, "diagnose") or not learner.correction.needs_ratios:
        return None
    found = learner.diagnose()
    return found if isinstance(found, Diagnosis) else None


def _intervals(
    material: Material, chosen: list[tuple[str, float | None]], store: Store, engine: Engine
) -> list[Any]:
    """Compute the replicates of all questions, and join them; None for a log beyond memory."""
    count = material.plan.replicates
    if not count or not material.log.in_memory:
        return [None for _ in chosen]
    cells = [
        [
            Cell("replicates", question, *of, start, min(TOGETHER, count + 1 - start))
            for start in range(0, count + 1, TOGETHER)
        ]
        for question, of in enumerate(chosen)
    ]
    found = engine.run([cell for some in cells for cell in some], material, store, "intervals")
    return [intervals(material, some, [found[cell] for cell in some]) for some in cells]
