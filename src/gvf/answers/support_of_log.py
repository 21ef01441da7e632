"""Support: whether a log can answer a question, told before anything is compared.

The ratios of the whole log tell how many transitions of the target it is worth, and
:func:`gvf.check_support` how much of the target the behaviour covers. A learner that goes through
the log once tells which correction has updates of low variance. And the weights of whole episodes
tell whether held-out episodes will be able to judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gvf.answers.read_inputs import Material
from gvf.behaviour import Support, check_support
from gvf.common.arrays import Floats
from gvf.corrections import IR
from gvf.diagnosis import Diagnosis
from gvf.estimate import percent
from gvf.findings import Code, Finding, sentence
from gvf.judging import compare_learners
from gvf.learners import Learner
from gvf.learners.learner_report import MANY_STATES
from gvf.question import GVF
from gvf.ratios import RatioStatistics
from gvf.updates import TD

WINDOW = 200_000
"""The number of transitions, at most, that the diagnosis of updates is about."""


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosed:
    """The support that a log gives a question. Print it.

    Attributes:
        name: the name of the question.
        ratios: the statistics of the ratios.
        support: how far the behaviour covers the target.
        diagnosis: the diagnosis of a learner's window.
        findings: reasons why held-out episodes cannot tell which correction and step size are best.
        episodes: the number of episodes.
        worth: the number of episodes of the target that they are worth.
    """

    name: str
    ratios: RatioStatistics
    support: Support
    diagnosis: Diagnosis
    findings: tuple[Finding, ...]
    episodes: int
    worth: float

    def __repr__(self) -> str:
        doubts = "; ".join(f"CANNOT TELL: {sentence(finding)}" for finding in self.findings)
        worth = f"worth {self.worth:,.3g} of {self.episodes:,}"
        judging = f"  held-out episodes: {worth}; {doubts or 'they can judge'}"
        cover = f"  cover: {hardly_taken(self.support, 'are hardly taken ')}"
        warnings = warnings_of(self.ratios, self.support)
        lines = [f"{self.name}: {self.diagnosis!r}", cover, judging]
        return "\n".join([*lines, *(f"  warning: {warning}" for warning in warnings)])


def hardly_taken(support: Support, words: str = "") -> str:
    """Tell how many of the target's actions are hardly taken, and how many never."""
    lost, untried = support.lost[support.least].value, sum(support.untried.values())
    never = f", and {percent(untried)} never" if untried else ""
    share = percent(min(lost, 1.0))
    return f"{share} of the target's actions {words}(below {support.least:g}){never}"


def lacking(support: Support) -> str:
    """Tell which of the target's actions the ratios of a log cannot know of; empty if none."""
    untried = sum(support.untried.values())
    return f"without the {percent(untried)} of its actions that the log never has" * bool(untried)


class _Nothing:
    """A predictor that knows nothing."""

    def predict(self, states: Any) -> Floats:
        return np.zeros(len(states))


def support_of(material: Material, question: GVF) -> Support:
    """Tell how far the behaviour covers the target of a question."""
    if material.estimated is not None:
        return material.estimated.support(question.policy, seed=material.plan.seed)
    return check_support(
        material.log, question.policy, behaviour=material.behaviour, seed=material.plan.seed
    )


def findings_of(ratios: RatioStatistics, support: Support) -> list[Finding]:
    """Return all findings about a question's ratios, each once."""
    return [
        *ratios.findings,
        *(finding for finding in support.findings if finding.code is not Code.HEAVY_TAIL),
    ]


def warnings_of(ratios: RatioStatistics, support: Support) -> list[str]:
    """Return all findings about a question's ratios in words for a log."""
    findings = findings_of(ratios, support)
    return [sentence(finding, "log", support.estimated) for finding in findings]


def findings_of_material(material: Material) -> list[Finding]:
    """Return the findings about an estimated behaviour and about the bounds of the features."""
    findings = [] if material.estimated is None else [*material.estimated.findings]
    if material.outside >= MANY_STATES:
        findings.append(Finding(Code.OUTSIDE_BOUNDS, "warning", {"share": material.outside}))
    return findings


def warnings_of_material(material: Material) -> list[str]:
    """Return these findings in words."""
    return [sentence(finding, "log") for finding in findings_of_material(material)]


def diagnose(material: Material) -> list[Diagnosed]:
    """Tell for each question how far the log supports it."""
    log, supports = material.log, []
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
        judged = compare_learners(
            {"nothing": _Nothing()}, log, question=question, behaviour=material.behaviour,
            replicates=2, seed=material.plan.seed,
        )  # fmt: skip
        supports.append(
            Diagnosed(
                question.name,
                RatioStatistics.of(ratios, material.plan.learn["batch_size"]),
                support_of(material, question),
                diagnosis,
                judged.findings,
                judged.episodes,
                judged.effective_sample_size,
            )
        )
    return supports
