"""Winners: what the judgement chose learns from the whole log.

With intervals, replicate 0 of the bootstrap is the answer: point, replicates and interval come from
one computation. Some replicates are tried first. If one diverges, the candidate cannot win, and the
next best is tried. If learning is not finished, a larger step size is tried that is not known to be
worse. If there is none, learning takes twice as long, unless the plan says how long. Without
intervals a learner goes through the log by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gvf.answers import build_question, cells
from gvf.answers.cell_jobs import CellJobs
from gvf.answers.cells import Arrays, Cell
from gvf.answers.read_inputs import Material
from gvf.answers.remarks import (
    Diverged,
    Faster,
    FeaturesMatter,
    FewEvents,
    Remark,
    Tied,
    Unfinished,
)
from gvf.features import TileCoder
from gvf.intervals import BootstrapResult, count_events
from gvf.judging.compare import Comparison, Score

MORE = (4, 2)
"""Richer features have so many times the tilings, if they are not too many."""
MOST_SOLVED = 5000
"""The largest number of richer features for least squares."""
TOGETHER = 50
"""The number of replicates in a cell, and of those that are tried first."""
TRIED_LEVEL = 0.95
"""The largest level of their intervals, for which they suffice."""
MOST_EPOCHS = 160
"""The number of passes over the log after which learning does not go on by itself."""
DRIFT = 0.05
"""The mean drift of predictions, in half widths of intervals, above which learning is not finished.
In 14 logs of 50 episodes of CartPole (experiments/intervals) 95 % intervals held what learning
tends to in 90 % of states with 0.05, and in 87 % with 0.1; least squares in 91 %."""
FAR = 0.25
"""The mean distance from what learning tends to, in half widths of intervals, above which learning
is not finished."""


@dataclass(frozen=True, eq=False)
class Winner:
    """The choice for a question, and what it learned.

    Attributes:
        score: the score of the candidate.
        learner: the learner.
        intervals: the intervals, or None.
        epochs: the number of passes over the log; None for least squares.
        remarks: what was noticed.
    """

    score: Score
    learner: Any
    intervals: BootstrapResult | None
    epochs: int | None
    remarks: tuple[Remark, ...]


class _Search:
    """The candidate of a question that is tried, and those that have failed.

    Args:
        material: the material of the answer.
        question: the number of the question.
        judgement: the judgement of its candidates.
    """

    def __init__(self, material: Material, question: int, judgement: Comparison) -> None:
        self.material, self.question, self.judgement = material, question, judgement
        self.failed: list[tuple[Score, BootstrapResult]] = []
        self.slow: dict[Score, Unfinished] = {}
        self.unfinished: Unfinished | None = None
        self.epochs, self.tried = cells.epochs_of(material.plan), False
        self.intervals: BootstrapResult | None = None
        self.remarks: list[Remark] = []
        chosen = self._next()
        if chosen is None:
            raise ValueError(
                "all corrections have diverged with all step sizes: give smaller step_sizes in "
                "[learn]"
            )
        self.score = chosen

    @property
    def wants_intervals(self) -> bool:
        """True if the question has intervals, and they are not there yet."""
        few = any(isinstance(remark, FewEvents) for remark in self.remarks)
        return cells.has_intervals(self.material) and not few and self.intervals is None

    def count_events(self) -> None:
        """Remark that there are too few events for intervals, if there are."""
        cell = self.cell("final")
        learner = cells.learner(self.material, self.question, cell.method, cell.step_size)
        events = count_events(learner, self.material.log)
        if events.few:
            self.remarks.append(FewEvents(events))

    def cell(self, kind: str, start: int = 0, count: int = 0, epochs: int | None = None) -> Cell:
        """Return a cell of the candidate."""
        step_size = cells.step_size_of(self.material.plan, self.score)
        return Cell(kind, self.question, self.score.learner, step_size, start, count, epochs)

    def replicates(self) -> list[Cell]:
        """Return the cells of the candidate's replicates: those tried first, then all."""
        count = self.material.plan.replicates + 1
        return [
            self.cell("replicates", start, min(TOGETHER, count - start), self.epochs)
            for start in (range(0, count, TOGETHER) if self.tried else [0])
        ]

    def solved(self) -> list[Cell]:
        """Return the cell of what learning tends to, if it can be solved for."""
        cell = self.cell("solved")
        return [cell] if cells.can_solve(cell, self.material) else []

    def take(self, arrays: dict[Cell, Arrays]) -> None:
        """Take replicates: try the next candidate, go on learning, or have the intervals."""
        plan, listed = self.material.plan, self.replicates()
        level = plan.level if self.tried else min(plan.level, TRIED_LEVEL)
        intervals = cells.intervals(self.material, listed, [arrays[cell] for cell in listed], level)
        if intervals.lost.any():
            self._fail(intervals)
            return
        if self.tried:
            self._end(intervals)
            return
        unfinished = self._unfinished(intervals, [arrays[cell] for cell in self.solved()])
        if unfinished is not None:
            self.slow[self.score] = unfinished
            self._go_on()
        else:
            self.tried, self.unfinished = True, None

    def _unfinished(self, intervals: BootstrapResult, solved: list[Arrays]) -> Unfinished | None:
        """Tell whether predictions still move, or are far from what learning tends to."""
        sample = cells.looked_at(self.material)[1]
        drift, distance = float(intervals.drift(sample).mean()), None
        if solved:
            point, _, high = intervals.predict(sample)
            known = np.isfinite(high) & (high > point)
            away = np.abs(intervals.replicate(sample).mean(axis=1) - solved[0]["sample"])
            distance = float((away[known] / (high - point)[known]).mean()) if known.any() else 0.0
        if drift > DRIFT or (distance is not None and distance > FAR):
            return Unfinished(self.epochs, drift, distance)
        return None

    def _go_on(self) -> None:
        """Try a larger step size, or more passes over the log."""
        faster = self._faster()
        if faster is not None:
            self.score = faster
            return
        self.score, self.unfinished = list(self.slow.items())[-1]
        if self.material.plan.learn["epochs"] or self.epochs >= MOST_EPOCHS:
            self.tried = True
        else:
            self.epochs = min(2 * self.epochs, MOST_EPOCHS)

    def _faster(self) -> Score | None:
        """Return the next larger step size that is not known to be worse; None if there is none."""
        first, out = next(iter(self.slow)), self._out()
        larger = [
            other
            for other in self.judgement.scores
            if other.learner == first.learner
            and other.standing not in ("reference", "diverged")
            and other.name not in out
            and self._step_size(other) > max(map(self._step_size, self.slow))
            and not self.judgement.compare(other.name, first.name).low > 0.0
        ]
        return min(larger, key=self._step_size, default=None)

    def _fail(self, intervals: BootstrapResult) -> None:
        """Try the next candidate."""
        self.failed.append((self.score, intervals))
        self.slow.pop(self.score, None)
        if self.slow:
            self._go_on()
            return
        chosen = self._next()
        if chosen is None:
            raise ValueError(
                f"question {self.material.questions[self.question].name!r}: replicates of all "
                "corrections diverge with all step sizes: give smaller step_sizes or other "
                "corrections in [learn], or say replicates = 0 in [intervals]"
            )
        self.score, self.epochs = chosen, cells.epochs_of(self.material.plan)
        self.tried = False

    def _end(self, intervals: BootstrapResult) -> None:
        self.intervals = intervals
        if self.failed:
            names = tuple(score.name for score, _ in self.failed)
            lost = self.failed[0][1].diverged[0]
            self.remarks.append(Diverged(names, int(lost.sum()), len(lost) - 1, self.score.name))
        if self.unfinished is not None:
            self.remarks.append(self.unfinished)

    def _next(self) -> Score | None:
        """Choose a candidate that is not out."""
        return self.judgement.choose(self._step_size, self._out())

    def _out(self) -> set[str]:
        """Return the names of those that have failed, and of larger step sizes of the same."""
        return {
            other.name
            for score, _ in self.failed
            for other in self.judgement.scores
            if other.learner == score.learner and self._step_size(other) >= self._step_size(score)
        }

    def _step_size(self, score: Score) -> float:
        return cells.step_size_of(self.material.plan, score) or 0.0

    def richer(self) -> list[Cell]:
        """Return the cell that answers with richer features, if there are any."""
        features, facts = self.material.features, self.material.facts
        for times in MORE if self.intervals is not None else ():
            finer = build_question.richer(features, facts, times)
            if finer is not None and (self.score.lane is not None or self._solvable(finer, times)):
                return [self.cell("richer", 0, times, self.epochs)]
        return []

    def _solvable(self, finer: TileCoder, times: int) -> bool:
        """Return True if about so many of the richer features occur as least squares can take."""
        assert self.intervals is not None
        tiles = isinstance(self.material.features, TileCoder)
        return (times * self.intervals.known.sum() if tiles else finer.size) <= MOST_SOLVED

    def compare(self, arrays: dict[Cell, Arrays]) -> None:
        """Remark if richer features move the mean prediction out of its interval."""
        for cell in self.richer():
            finer = build_question.richer(self.material.features, self.material.facts, cell.count)
            assert finer is not None
            assert self.intervals is not None
            words = f"{finer.tilings} tilings of {' x '.join(map(str, finer.tiles))} tiles"
            states = zip(("first states", "states"), cells.looked_at(self.material), strict=True)
            for (name, looked_at), predicted in zip(states, arrays[cell].values(), strict=True):
                value, low, high = (float(number) for number in self.intervals.mean(looked_at))
                richer, half_width = float(predicted.mean()), (high - low) / 2.0
                if abs(richer - value) > half_width:
                    self.remarks.append(FeaturesMatter(name, value, half_width, richer, words))
                    break

    def winner(self, learned: dict[Cell, Arrays]) -> Winner:
        """Return what was chosen, with a learner that knows the whole log."""
        cell = self.cell("final")
        if self.intervals is None:
            learner = cells.learned(cell, self.material, learned[cell])
        else:
            learner = cells.point(cell, self.material, self.intervals)
        best, taken, notes = self.judgement.best.name, self.score.name, list[Remark]()
        slow = next(iter(self.slow), self.score)
        if slow.name != taken:
            notes.append(Faster(slow.name, taken))
        elif taken != best and not self.failed:
            notes.append(Tied(best, taken))
        epochs = None if self.score.lane is None else self.epochs
        return Winner(self.score, learner, self.intervals, epochs, (*notes, *self.remarks))


def learn(judgements: Sequence[Comparison], jobs: CellJobs) -> list[Winner]:
    """Let the winner of each question learn from the whole log."""
    searches = [
        _Search(jobs.material, question, judgement) for question, judgement in enumerate(judgements)
    ]

    def run(title: str, listed: Sequence[list[Cell]]) -> dict[Cell, Arrays]:
        return jobs.run([cell for some in listed for cell in some], title)

    for search in searches:
        if search.wants_intervals:
            search.count_events()
    while trying := [search for search in searches if search.wants_intervals]:
        title = "intervals" if all(search.tried for search in trying) else "trying"
        arrays = run(title, [[*search.replicates(), *search.solved()] for search in trying])
        for search in trying:
            search.take(arrays)
    arrays = run("checking features", [search.richer() for search in searches])
    for search in searches:
        search.compare(arrays)
    alone = [[search.cell("final")] for search in searches if search.intervals is None]
    learned = run("learning from all", alone)
    return [search.winner(learned) for search in searches]
