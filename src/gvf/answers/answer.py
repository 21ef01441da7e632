"""Answers: from a log and a question file to predictions with intervals.

For every question, each correction learns with each step size from parts of the log, and held-out
episodes judge (:mod:`gvf.judging`). What wins learns from the whole log, and a bootstrap over
episodes gives the intervals. :mod:`gvf.answers.write_answer` writes files and the page.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gvf.answers import cells
from gvf.answers.cell_jobs import CellJobs
from gvf.answers.cells import Cell
from gvf.answers.plan import Plan
from gvf.answers.read_inputs import Material, prepare
from gvf.answers.remarks import FewEvents, Remark, Unfinished, value_lines, values_of
from gvf.answers.support_of_log import lacking, support_of, warnings_of, warnings_of_material
from gvf.answers.toml_table import placed
from gvf.answers.winners import learn
from gvf.behaviour import Support
from gvf.common.arrays import Floats
from gvf.common.grid_edge import edge_text
from gvf.diagnosis import Diagnosis
from gvf.estimate import Estimate, percent
from gvf.findings import Code, Finding
from gvf.intervals import BootstrapResult
from gvf.intervals.resampling import Units
from gvf.jobs import Store, Workers, place_of
from gvf.judging.compare import judged
from gvf.judging.comparison import Comparison, Outcome, Score, Verdict
from gvf.judging.held_out import HeldOut, side_by_side
from gvf.judging.policy_value import Estimator
from gvf.question import GVF
from gvf.ratios import RatioStatistics

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
    judgement: Comparison
    chosen: Score
    step_size: float | None
    epochs: int | None
    learner: Any
    intervals: BootstrapResult | None
    diagnosis: Diagnosis | None
    remarks: tuple[Remark, ...]
    values: Mapping[Estimator, Estimate]

    @property
    def method(self) -> str:
        """The name of the correction that was chosen."""
        return self.chosen.learner

    @property
    def verdict(self) -> Verdict:
        """The judgement's verdict, unless the log lacks events or the target's actions."""
        verdict, untried = self.judgement.verdict, sum(self.support.untried.values())
        findings = [
            Finding(Code.FEW_EVENTS, "stops", {"events": remark.events})
            for remark in self.remarks
            if isinstance(remark, FewEvents)
        ]
        if untried > MOST_UNTRIED:
            findings.append(Finding(Code.ACTIONS_MISSING, "stops", {"share": untried}))
        if not findings or verdict.outcome is Outcome.ALL_DIVERGED:
            return verdict
        findings = (*verdict.findings, *findings)
        return replace(verdict, outcome=Outcome.CANNOT_TELL, findings=findings)

    @property
    def sure(self) -> bool:
        """True if what was chosen predicts better than a constant, and learning is finished."""
        return self.verdict.outcome.sure and self.finished

    @property
    def finished(self) -> bool:
        """True if nothing tells that more learning would change the predictions."""
        return not any(isinstance(remark, Unfinished) for remark in self.remarks)

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
        for result in self.answers:
            lines.append(f"{result.question.name}: {result.verdict}")
            lines += [
                *value_lines(result.values, result.judgement, result.verdict),
                *_support(result),
            ]
            lines += [f"  {'warning: ' * remark.warns}{remark}" for remark in result.remarks]
            if edge := edge_of(self.plan, result):
                lines.append(f"  {edge}")
        return "\n".join(lines)


def edge_of(plan: Plan, result: Answered) -> str:
    """Tell that a step size was chosen beyond which none was tried; empty if it was not."""
    return edge_text(result.step_size, plan.step_sizes)


def _support(result: Answered) -> list[str]:
    ratios = result.ratios
    size, window = ratios.effective_sample_size, ratios.window
    lines = [
        f"  {window:,} ratios, worth {size:,.0f} transitions of the target "
        f"({percent(size / window, '.0f')}); largest {ratios.max_ratio:.3g}"
        + (f"; {without}" if (without := lacking(result.support)) else "")
    ]
    warnings = warnings_of(ratios, result.support)
    return [*lines, *(f"  warning: {warning}" for warning in warnings)]


def answer(
    plan: Plan,
    source: Any,
    out: str | Path,
    *,
    workers: Workers = None,
    progress: bool | None = None,
    quiet: bool = False,
) -> Answer:
    """Answer the questions of a plan from a log.

    Args:
        plan: what the question file says.
        source: the log, or what :func:`gvf.read_log` takes.
        out: the folder in which cells that are done are kept.
        workers: the number of pieces of work that are done at once, by default one for each
            processor, or a :class:`gvf.jobs.RayCluster`.
        progress: False to show none. By default it is a bar in a terminal, and elsewhere a line now
            and then. True adds a line at the end there.
        quiet: True to print nothing about the log.
    """
    place, store = place_of(workers), Store(Path(out) / "cells")
    material = prepare(plan, source, quiet=quiet)
    _check(material)
    if not quiet and (costly := cells.cost(material)) is not None:
        print(f"warning: {costly}", file=sys.stderr)
    jobs = CellJobs(material, store, place, progress)
    names, questions = list(cells.methods(material)), range(len(material.questions))
    judging = [
        Cell("judge", question, name, None, part)
        for question in questions
        for name in names
        for part in range(plan.folds)
    ]
    arrays = jobs.run(judging, "judging")
    judgements = [
        _judgement(material, [cell for cell in judging if cell.question == question], arrays)
        for question in questions
    ]
    winners = learn(judgements, jobs)
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


def _judgement(material: Material, judging: list[Cell], arrays: dict[Cell, Any]) -> Comparison:
    """Judge all candidates of a question by all of its held-out parts."""
    parts, candidates = [], []
    for part in range(material.plan.folds):
        held, candidates = side_by_side(
            [cells.held_out(arrays[cell]) for cell in judging if cell.part == part]
        )
        parts.append(held)
    level, seed = material.plan.level, material.plan.seed
    return judged(HeldOut.joined(parts), candidates, RETURNS, level, SAMPLES, seed)


def _diagnosis(learner: Any) -> Diagnosis | None:
    if not hasattr(learner, "diagnose") or not learner.correction.needs_ratios:
        return None
    diagnosis = learner.diagnose()
    return diagnosis if isinstance(diagnosis, Diagnosis) else None
