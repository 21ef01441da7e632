"""Support: whether a log can answer a question, told before anything is compared.

The ratios of the whole log tell how many transitions of the target it is worth. A learner that goes
through the log once tells which correction has updates of low variance. And the weights of whole
episodes tell whether held-out episodes will be able to judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gvf.answers.material import Material
from gvf.common.arrays import Floats
from gvf.correction import IR
from gvf.diagnosis import Diagnosis
from gvf.diagnosis.ratios import RatioStatistics
from gvf.judging import judge
from gvf.learner import TD, Learner

WINDOW = 200_000
"""The number of transitions, at most, that the diagnosis of updates is about."""


@dataclass(frozen=True, eq=False, repr=False)
class Support:
    """How far a log supports a question. Print it.

    Attributes:
        name: the name of the question.
        ratios: the statistics of the ratios.
        diagnosis: the diagnosis of a learner's window.
        doubts: reasons why held-out episodes cannot tell which correction and step size are best.
        episodes: the number of episodes.
        worth: the number of episodes of the target that they are worth.
    """

    name: str
    ratios: RatioStatistics
    diagnosis: Diagnosis
    doubts: tuple[str, ...]
    episodes: int
    worth: float

    def __repr__(self) -> str:
        judging = f"  held-out episodes: worth {self.worth:,.3g} of {self.episodes:,}; " + (
            "; ".join(f"CANNOT TELL: {doubt}" for doubt in self.doubts) or "they can judge"
        )
        warnings = [f"  warning: {warning}" for warning in self.ratios.warnings]
        return "\n".join([f"{self.name}: {self.diagnosis!r}", judging, *warnings])


class _Nothing:
    """A predictor that knows nothing."""

    def predict(self, states: Any) -> Floats:
        return np.zeros(len(states))


def diagnose(material: Material) -> list[Support]:
    """Tell for each question how far the log supports it."""
    log, found = material.log, []
    window = min(len(log), WINDOW)
    for question, ratios in zip(material.questions, material.ratios, strict=True):
        learner = Learner(
            question,
            material.features,
            TD(),
            IR(),
            behaviour=material.behaviour,
            window=window,
            batch_size=material.plan.learn["batch_size"],
            seed=material.plan.seed,
        )
        learner.fit(log, order="log", progress=False)
        diagnosis = learner.diagnose()
        assert isinstance(diagnosis, Diagnosis)  # of one step size
        judged = judge(
            {"nothing": _Nothing()}, log, question=question, behaviour=material.behaviour,
            replicates=2, seed=material.plan.seed,
        )  # fmt: skip
        found.append(
            Support(
                question.name,
                RatioStatistics.of(ratios, material.plan.learn["batch_size"]),
                diagnosis,
                judged.doubts,
                judged.episodes,
                judged.effective_sample_size,
            )
        )
    return found
