"""Answers: from a log and a question file to predictions with intervals.

For every question, each correction learns with each step size from parts of the log, and held-out
episodes judge (:mod:`gvf.judging`). What wins learns from the whole log, and a bootstrap over
episodes gives the intervals. :mod:`gvf.answers.outcome` writes files and the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gvf.answers import cells
from gvf.answers.cells import Cell
from gvf.answers.engine import Engine
from gvf.answers.material import Material, prepare
from gvf.answers.plan import Plan
from gvf.answers.remarks import FewEvents, Remark
from gvf.answers.section import placed
from gvf.answers.store import Store
from gvf.answers.support import support_of, warnings_of, warnings_of_material
from gvf.answers.values import value_lines, values_of
from gvf.answers.winners import learn
from gvf.behaviour import Support
from gvf.common.arrays import Floats
from gvf.common.means import Interval
from gvf.diagnosis import Diagnosis
from gvf.diagnosis.ratios import RatioStatistics
from gvf.intervals import Intervals
from gvf.intervals.counts import Units
from gvf.judging.held_out import HeldOut
from gvf.judging.judgement import Judgement, Score, judged
from gvf.judging.policy_value import Estimator
from gvf.judging.verdict import Outcome, Verdict
from gvf.question import GVF
from gvf.study.edge import edge_text

RETURNS = "doubly-robust"
SAMPLES = 2000
"""The number of bootstrap samples of a judgement."""
MOST_UNTRIED = 0.1
"""The largest share of the target's actions that a log may lack and still tell of the target."""


@dataclass(frozen=True, eq=False)
class Answered:
    """The answer to one question.

    Attributes:
        question: the question.
        ratios: the statistics of its ratios in the log.
        support: how far the behaviour covers the target.
        judgement: the scores of all corrections and step sizes on held-out episodes.
        chosen: the score of what was chosen.
        step_size: the step size that was chosen; None if it has none.
        epochs: the number of passes over the log; None for least squares.
        learner: the learner that learned from the whole log. With intervals it has the weights of
            their replicate 0, so its predictions are theirs.
        intervals: the bootstrap's intervals, or None.
        diagnosis: the diagnosis of the learner's window, or None if it needs no ratios.
        remarks: what is wrong with the answer, or was done about it.
        values: the value of the policy by several estimators, each with its interval.

    Example:
        ``answered.values["learned"]`` is the mean prediction over the first states of the log's
        episodes. :class:`gvf.judging.Estimator` has the other names.
    """

    question: GVF
    ratios: RatioStatistics
    support: Support
    judgement: Judgement
    chosen: Score
    step_size: float | None
    epochs: int | None
    learner: Any
    intervals: Intervals | None
    diagnosis: Diagnosis | None
    remarks: tuple[Remark, ...]
    values: Mapping[Estimator, Interval]

    @property
    def method(self) -> str:
        """The name of the correction that was chosen."""
        return self.chosen.learner

    @property
    def verdict(self) -> Verdict:
        """The judgement's verdict, unless the log lacks events or the target's actions."""
        verdict, untried = self.judgement.verdict, sum(self.support.untried.values())
        doubts = [
            f"there are only {remark.events}"
            for remark in self.remarks
            if isinstance(remark, FewEvents)
        ]
        if untried > MOST_UNTRIED:
            doubts.append(f"the log never has {100 * untried:.0f} % of the target's actions")
        if not doubts or verdict.outcome is Outcome.ALL_DIVERGED:
            return verdict
        doubts = [*verdict.doubts, *doubts]
        return replace(verdict, outcome=Outcome.CANNOT_TELL, doubts=tuple(doubts))

    @property
    def sure(self) -> bool:
        """True if the log can tell that what was chosen predicts better than a constant."""
        return self.verdict.outcome.sure

    def predict(self, states: Any) -> tuple[Floats, Floats, Floats]:
        """Return predictions and the ends of their intervals, or nan for the ends, [m] each."""
        if self.intervals is not None:
            return self.intervals.predict(states)
        predicted = np.asarray(self.learner.predict(states), np.float64)
        unknown = np.full(len(predicted), np.nan)
        return predicted, unknown, unknown


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
            lines.append(f"{one.question.name}: {one.verdict}")
            lines += [*value_lines(one.values, one.judgement, one.verdict), *_support(one)]
            lines += [f"  {'warning: ' * remark.warns}{remark}" for remark in one.remarks]
            if edge := edge_of(self.plan, one):
                lines.append(f"  {edge}")
        return "\n".join(lines)


def edge_of(plan: Plan, one: Answered) -> str:
    """Tell that a step size was chosen beyond which none was tried; empty if it was not."""
    return edge_text(one.step_size, plan.step_sizes)


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
    names, questions = list(cells.methods(material)), range(len(material.questions))
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
    winners = learn(material, judgements, store, engine)
    return Answer(
        material,
        tuple(
            Answered(
                question=material.questions[question],
                ratios=RatioStatistics.of(material.ratios[question], plan.learn["batch_size"]),
                support=support_of(material, material.questions[question]),
                judgement=judgements[question],
                chosen=winner.score,
                step_size=cells.step_size_of(plan, winner.score),
                epochs=winner.epochs,
                learner=winner.learner,
                intervals=winner.intervals,
                diagnosis=_diagnosis(winner.learner),
                remarks=winner.remarks,
                values=values_of(
                    material.log, winner.learner, winner.intervals, judgements[question]
                ),
            )
            for question, winner in enumerate(winners)
        ),
    )


def _check(material: Material) -> None:
    """Raise ValueError for what would fail later, before anything is learned."""
    plan, log = material.plan, material.log
    cells.folds(material)
    if cells.has_intervals(material):
        try:
            Units(log)
        except ValueError:
            raise ValueError(
                f"{log.source}: {len(log.episodes)} episodes are too few for intervals: say "
                "replicates = 0 in [intervals]"
            ) from None
        if plan.learn["order"] in ("log", "shuffled"):
            raise ValueError(
                f"order = {plan.learn['order']!r} in [learn], and intervals draw from the whole "
                "log: leave out order, or say replicates = 0 in [intervals]"
            )
    for number, question in enumerate(material.questions):
        for method in cells.methods(material):
            with placed(f"question {question.name!r}"):
                cells.check_saved(cells.learner(material, number, method, plan.step_sizes))


def _judgement(material: Material, judging: list[Cell], found: dict[Cell, Any]) -> Judgement:
    """Judge all candidates of a question by all of its held-out parts."""
    parts, candidates = [], []
    for part in range(material.plan.folds):
        held, candidates = cells.side_by_side(
            [cells.held_out(found[cell]) for cell in judging if cell.part == part]
        )
        parts.append(held)
    level, seed = material.plan.level, material.plan.seed
    return judged(HeldOut.joined(parts), candidates, RETURNS, level, SAMPLES, seed)


def _diagnosis(learner: Any) -> Diagnosis | None:
    if not hasattr(learner, "diagnose") or not learner.correction.needs_ratios:
        return None
    found = learner.diagnose()
    return found if isinstance(found, Diagnosis) else None
