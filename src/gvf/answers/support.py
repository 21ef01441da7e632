"""Support: whether a log can answer a question, told before anything is compared.

The ratios of the whole log tell how many transitions of the target it is worth, and
:func:`gvf.support` how much of the target the behaviour covers. A learner that goes through the log
once tells which correction has updates of low variance. And the weights of whole episodes tell
whether held-out episodes will be able to judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gvf.answers.material import Material
from gvf.behaviour import Support, support
from gvf.common.arrays import Floats
from gvf.correction import IR
from gvf.diagnosis import Diagnosis
from gvf.diagnosis.advice import percent
from gvf.diagnosis.ratios import RatioStatistics
from gvf.judging import judge
from gvf.learner import TD, Learner
from gvf.learner.report import MANY_STATES, clipped
from gvf.question import GVF

WINDOW = 200_000
"""The number of transitions, at most, that the diagnosis of updates is about."""
_OF_A_WINDOW = {
    "The window is": "The log is",
    "the window misses": "the log misses",
    "enlarge the window, or choose": "record more, or choose",
    "choose a behaviour": "record a behaviour",
}


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosed:
    """The support that a log gives a question. Print it.

    Attributes:
        name: the name of the question.
        ratios: the statistics of the ratios.
        support: how far the behaviour covers the target.
        diagnosis: the diagnosis of a learner's window.
        doubts: reasons why held-out episodes cannot tell which correction and step size are best.
        episodes: the number of episodes.
        worth: the number of episodes of the target that they are worth.
    """

    name: str
    ratios: RatioStatistics
    support: Support
    diagnosis: Diagnosis
    doubts: tuple[str, ...]
    episodes: int
    worth: float

    def __repr__(self) -> str:
        judging = f"  held-out episodes: worth {self.worth:,.3g} of {self.episodes:,}; " + (
            "; ".join(f"CANNOT TELL: {doubt}" for doubt in self.doubts) or "they can judge"
        )
        lost = self.support.lost[self.support.least].value
        cover = (
            f"  cover: {percent(min(lost, 1.0))} of the target's actions are hardly taken (below "
            f"{self.support.least:g})"
        )
        warnings = warnings_of(self.ratios, self.support)
        lines = [f"{self.name}: {self.diagnosis!r}", cover, judging]
        return "\n".join([*lines, *(f"  warning: {warning}" for warning in warnings)])


class _Nothing:
    """A predictor that knows nothing."""

    def predict(self, states: Any) -> Floats:
        return np.zeros(len(states))


def support_of(material: Material, question: GVF) -> Support:
    """Tell how far the behaviour covers the target of a question."""
    if material.estimated is not None:
        return material.estimated.support(question.policy, seed=material.plan.seed)
    return support(
        material.log, question.policy, behaviour=material.behaviour, seed=material.plan.seed
    )


def warnings_of(ratios: RatioStatistics, found: Support) -> list[str]:
    """Return all warnings about a question's ratios, each once, in words for a log."""
    told = list(ratios.warnings)
    for words, instead in _OF_A_WINDOW.items():
        told = [warning.replace(words, instead) for warning in told]
    return [*told, *(warning for warning in found.warnings if "k-hat" not in warning)]


def warnings_of_material(material: Material) -> list[str]:
    """Return the warnings about an estimated behaviour and about the bounds of the features."""
    found = material.estimated
    told = [] if found is None else [*found.warnings, *found.doubts]
    told = [warning.replace(".reliability()", "its reliability") for warning in told]
    return [*told, clipped(material.outside)] if material.outside >= MANY_STATES else told


def diagnose(material: Material) -> list[Diagnosed]:
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
            Diagnosed(
                question.name,
                RatioStatistics.of(ratios, material.plan.learn["batch_size"]),
                support_of(material, question),
                diagnosis,
                judged.doubts,
                judged.episodes,
                judged.effective_sample_size,
            )
        )
    return found
