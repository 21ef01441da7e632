"""The report of a horde: counts, the ratios of its policies, errors, and questions that pause."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from gvf.common.arrays import Floats
from gvf.learner.report import MANY_STATES, Problem, clipped

_NAMED = 3
"""The number of names that a line of text shows."""


@dataclass(frozen=True, eq=False)
class HordeReport:
    """The state of a :class:`gvf.Horde`.

    Attributes:
        questions: the number of questions.
        policies: the names of the groups of questions that share draws, with their policies.
        steps: the number of transitions observed.
        updates: the number of updates due so far, for each group.
        skipped: the number of updates that each group skipped because its window had no mass,
            without those that skipped none.
        window: the number of transitions in the window.
        mean_ratio: the mean ratio of each group over the window, [groups]; nan if it is empty.
        effective_sample_size: (sum rho)^2 / sum rho^2 of each group over the window, [groups].
        missing: the number of transitions left out because of a NaN.
        paused: the questions that do not learn at present, with the reason.
        names: the names of the questions.
        ude: the unexpected demon error of each question, [G]: the size of the recent average of its
            TD errors, weighed by the ratio, over their long-run standard deviation. It is about
            0.05 if nothing changes, and rises if a sensor or the world has changed. It is nan in
            the first 64 steps. See :mod:`gvf.horde.watch`.
        rupee: an estimate of the root of the projected Bellman error of each question, [G], in the
            unit of the cumulant; None unless the horde was asked for it.
        diverged: the names of the questions that pause because they have diverged.
        outside_bounds: the share of all states observed so far that were outside the bounds of the
            features, as in :class:`gvf.LearnerReport`; None if features have no bounds.
        outside_returns: the names of the questions with a prediction, for one of the latest 32
            states, above twice the largest possible return, without those that have diverged.
        endless: the names of the questions whose continuation is 1 in all of the window's
            transitions, at least 100.
        estimated: True if a ratio was formed with an estimated probability of the behaviour; see
            :func:`gvf.estimate_behaviour`.

    Example:
        >>> import gvf
        >>> policies = {"left": gvf.Always(0, actions=2), "right": gvf.Always(1, actions=2)}
        >>> horde = gvf.Horde(
        ...     gvf.questions(policies, {"reward": "reward"}, [0.9]), gvf.OneHot(3), gvf.TD(0.5),
        ...     behaviour=gvf.Uniform(2), seed=0
        ... )
        >>> horde.observe(0, 1, 1.0, 2, False)
        >>> horde.report()
        HordeReport(2 questions about 2 policies, 1 steps, 1 updates; window 1, mean ratio 0 to 2,
        effective sample size 0 to 1; 1 policy without mass skipped updates: Always(0, 2))
    """

    questions: int
    policies: tuple[str, ...]
    steps: int
    updates: int
    skipped: Mapping[str, int]
    window: int
    mean_ratio: Floats
    effective_sample_size: Floats
    missing: int
    paused: Mapping[str, str]
    names: tuple[str, ...]
    ude: Floats
    rupee: Floats | None
    estimated: bool = False
    diverged: tuple[str, ...] = ()
    outside_bounds: float | None = None
    outside_returns: tuple[str, ...] = ()
    endless: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems that the report names."""
        there = {
            Problem.DIVERGED: bool(self.diverged),
            Problem.OUTSIDE_BOUNDS: (self.outside_bounds or 0.0) >= MANY_STATES,
            Problem.OUTSIDE_RETURNS: bool(self.outside_returns),
            Problem.ENDLESS: bool(self.endless),
        }
        return tuple(problem for problem, is_there in there.items() if is_there)

    @property
    def sentences(self) -> list[str]:
        """The sentences about problems that are not those of paused questions."""
        sentences = []
        if Problem.OUTSIDE_BOUNDS in self.problems:
            sentences.append(clipped(self.outside_bounds or 0.0))
        if self.outside_returns:
            count = f"{len(self.outside_returns)} of {self.questions} questions"
            sentences.append(
                f"{count} predict more than twice the largest possible return: "
                f"{listed(self.outside_returns)}"
            )
        if self.endless:
            count = f"{len(self.endless)} of {self.questions} questions"
            sentences.append(
                f"{count} have continuation 1, and no transition ends: {listed(self.endless)}"
            )
        return sentences

    def worst(self, n: int = 10) -> dict[str, float]:
        """Return the n questions with the largest UDE, the largest first."""
        known = np.flatnonzero(~np.isnan(self.ude))
        order = known[np.argsort(-self.ude[known], kind="stable")]
        return {self.names[i]: float(self.ude[i]) for i in order[:n]}

    def __repr__(self) -> str:
        text = (
            f"{self.questions} questions about {_count(len(self.policies), 'policy', 'policies')}, "
            f"{self.steps} steps, {self.updates} updates; window {self.window}"
        )
        if self.window:
            mean, size = self.mean_ratio, self.effective_sample_size
            text += (
                f", mean ratio {mean.min():.3g} to {mean.max():.3g}, effective sample size "
                f"{size.min():.3g} to {size.max():.3g}"
            )
        if self.estimated:
            text += "; ratios are estimated"
        if worst := self.worst(1):
            ((name, ude),) = worst.items()
            text += f"; largest UDE {ude:.2g} ({name})"
        if self.skipped:
            count = _count(len(self.skipped), "policy", "policies")
            text += f"; {count} without mass skipped updates: {listed(self.skipped)}"
        if self.missing:
            text += f"; {self.missing} transitions left out for a NaN"
        if self.paused:
            shown = {f"{name} ({reason})": reason for name, reason in self.paused.items()}
            text += f"; {len(self.paused)} paused: {listed(shown)}"
        text += "".join(f"; {sentence}" for sentence in self.sentences)
        return f"HordeReport({text})"


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def listed(names: Collection[str]) -> str:
    """List the first names, and the number of the others."""
    shown = list(names)[:_NAMED]
    rest = len(names) - len(shown)
    return "; ".join(shown) + (f"; and {rest} more" if rest else "")
