"""Winners: what the judgement chose learns from the whole log.

With intervals, replicate 0 of the bootstrap is the answer: point, replicates and interval come from
one computation. A candidate whose replicates diverge cannot win, and the next best is taken.
Without intervals a learner goes through the log by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gvf.answers import cells, parts
from gvf.answers.cells import Arrays, Cell
from gvf.answers.engine import Engine
from gvf.answers.material import Material
from gvf.answers.remarks import Diverged, FeaturesMatter, FewEvents, Remark, Tied
from gvf.answers.store import Store
from gvf.features import TileCoder
from gvf.intervals import Intervals, count_events
from gvf.judging.judgement import Judgement, Score

MORE = (4, 2)
"""How many times the tilings richer features have, if they are not too many."""
MOST_SOLVED = 5000
"""The largest number of richer features for least squares."""
TOGETHER = 50
"""The number of replicates in a cell."""


@dataclass(frozen=True, eq=False)
class Winner:
    """What was chosen for a question, and what it learned.

    Attributes:
        score: the score of the candidate.
        learner: the learner.
        intervals: the intervals, or None.
        remarks: what was noticed.
    """

    score: Score
    learner: Any
    intervals: Intervals | None
    remarks: tuple[Remark, ...]


class _Search:
    """The candidate of a question that is tried, and those that have failed.

    Args:
        material: the material of the answer.
        question: the number of the question.
        judgement: the judgement of its candidates.
    """

    def __init__(self, material: Material, question: int, judgement: Judgement) -> None:
        self.material, self.question, self.judgement = material, question, judgement
        self.failed: list[tuple[Score, Intervals]] = []
        self.intervals: Intervals | None = None
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

    def cell(self, kind: str, start: int = 0, count: int = 0) -> Cell:
        """Return a cell of the candidate."""
        step_size = cells.step_size_of(self.material.plan, self.score)
        return Cell(kind, self.question, self.score.learner, step_size, start, count)

    def replicates(self) -> list[Cell]:
        """Return the cells of the candidate's replicates."""
        count = self.material.plan.replicates + 1
        return [
            self.cell("replicates", start, min(TOGETHER, count - start))
            for start in range(0, count, TOGETHER)
        ]

    def take(self, found: dict[Cell, Arrays]) -> None:
        """Take the intervals of the candidate, or try the next one if replicates diverged."""
        listed = self.replicates()
        intervals = cells.intervals(self.material, listed, [found[cell] for cell in listed])
        if not intervals.diverged.any():
            self.intervals = intervals
        else:
            self.failed.append((self.score, intervals))
            chosen = self._next()
            usable = [pair for pair in self.failed if not pair[1].lost.any()]
            if chosen is not None:
                self.score = chosen
                return
            if not usable:
                raise ValueError(
                    f"question {self.material.questions[self.question].name!r}: replicates of all "
                    "corrections diverge with all step sizes: give smaller step_sizes in [learn]"
                )
            self.score, self.intervals = usable[0]
        if self.failed:
            names = tuple(score.name for score, _ in self.failed)
            lost = self.failed[0][1].diverged[0]
            taken = None if self.score.name in names else self.score.name
            self.remarks.append(Diverged(names, int(lost.sum()), len(lost) - 1, taken))

    def _next(self) -> Score | None:
        """Choose a candidate that has not failed, nor has a larger step size than one that has."""
        out = {
            other.name
            for score, _ in self.failed
            for other in self.judgement.scores
            if other.learner == score.learner and self._step_size(other) >= self._step_size(score)
        }
        return self.judgement.choose(self._step_size, out)

    def _step_size(self, score: Score) -> float:
        return cells.step_size_of(self.material.plan, score) or 0.0

    def richer(self) -> Cell | None:
        """Return the cell that answers with richer features; None if there are none."""
        if self.intervals is None:
            return None
        features, facts = self.material.features, self.material.facts
        for times in MORE:
            made = parts.richer(features, facts, times)
            tiles = isinstance(features, TileCoder)
            count = times * int(self.intervals.known.sum()) if tiles else getattr(made, "size", 0)
            if made is not None and (self.score.lane is not None or count <= MOST_SOLVED):
                return self.cell("richer", 0, times)
        return None

    def compare(self, cell: Cell, arrays: Arrays) -> None:
        """Remark if richer features move the mean prediction out of its interval."""
        features = parts.richer(self.material.features, self.material.facts, cell.count)
        assert self.intervals is not None
        assert features is not None
        tiles = " x ".join(map(str, features.tiles))
        in_words = f"{features.tilings} tilings of {tiles} tiles"
        states = zip(("first", "sample"), cells.looked_at(self.material), strict=True)
        for name, looked_at in states:
            value, low, high = (float(number) for number in self.intervals.mean(looked_at))
            richer, half_width = float(arrays[name].mean()), (high - low) / 2.0
            if abs(richer - value) > half_width:
                words = "first states" if name == "first" else "states"
                remark = FeaturesMatter(words, value, half_width, richer, in_words)
                self.remarks.append(remark)
                return

    def winner(self, learned: dict[Cell, Arrays]) -> Winner:
        """Return what was chosen, with a learner that knows the whole log."""
        cell = self.cell("final")
        if self.intervals is None:
            learner = cells.learned(cell, self.material, learned[cell])
        else:
            learner = cells.point(cell, self.material, self.intervals)
        best = self.judgement.best.name
        tied = self.score.name != best and not self.failed
        remarks = [*([Tied(best, self.score.name)] if tied else []), *self.remarks]
        return Winner(self.score, learner, self.intervals, tuple(remarks))


def learn(
    material: Material, judgements: Sequence[Judgement], store: Store, engine: Engine
) -> list[Winner]:
    """Let the winner of each question learn from the whole log."""
    searches = [_Search(material, question, one) for question, one in enumerate(judgements)]
    for search in searches:
        if search.wants_intervals:
            search.count_events()
    while trying := [search for search in searches if search.wants_intervals]:
        listed = [cell for search in trying for cell in search.replicates()]
        found = engine.run(listed, material, store, "intervals")
        for search in trying:
            search.take(found)
    checks = [(search, cell) for search in searches if (cell := search.richer()) is not None]
    found = engine.run([cell for _, cell in checks], material, store, "checking features")
    for search, cell in checks:
        search.compare(cell, found[cell])
    alone = [search.cell("final") for search in searches if search.intervals is None]
    learned = engine.run(alone, material, store, "learning from all")
    return [search.winner(learned) for search in searches]
