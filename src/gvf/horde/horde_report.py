"""The report of a horde, and its diagnosis.

A report has counts, the ratios of the policies, errors, and the questions that pause. A diagnosis
says which policies the window covers, and which questions to doubt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Bools, Floats
from gvf.diagnosis import Diagnosis
from gvf.diagnosis.diagnose import diagnose_updates
from gvf.diagnosis.show_diagnosis import ESTIMATED
from gvf.diagnosis.window_updates import Updates
from gvf.learners.learner_report import MANY_STATES, Problem, clipped
from gvf.ratios import RatioStatistics
from gvf.sampling.prefix_sums import HEADER, SIZE
from gvf.truth.held_out_returns import MOST_CUT

if TYPE_CHECKING:
    from gvf.horde.shard import Shard

FEWEST = 20
"""The number of returns from which on a running variance explained is shown."""
_NAMED = 3
"""The number of names that a line of text shows."""

_UNCHECKED: Mapping[str, str] = {
    "off-policy": (
        "about other policies (return_error in an environment, or stream_error along a stream in "
        "which their policy acted, checks them)"
    ),
    "too few returns": f"with fewer than {FEWEST} returns so far",
    "returns cut": "with returns that were cut",
    "on a GPU": "on a GPU",
}
Unchecked = Literal["off-policy", "too few returns", "returns cut", "on a GPU"]


@dataclass(frozen=True)
class HordeWarning:
    """A warning about the predictions of some questions of a horde.

    Attributes:
        problem: ``WORSE`` if the running variance explained is below 0 by more than its noise, or
            ``CUT`` if so many returns were cut that those which are left may be a biased sample.
        questions: the names of the questions, the worst first.
        value: the smallest variance explained, or the largest share of returns that were cut.

    Example:
        >>> import gvf
        >>> print(gvf.HordeWarning(gvf.learners.Problem.WORSE, ("a", "b"), -7.0))
        2 questions predict worse than a constant: a; b (variance explained down to -7)
    """

    problem: Problem
    questions: tuple[str, ...]
    value: float

    def __str__(self) -> str:
        names = listed(dict.fromkeys(self.questions))
        count = _count(len(self.questions), "question", "questions")
        if self.problem is Problem.CUT:
            return (
                f"up to {self.value:.0%} of the returns of {count} were cut, and those of short "
                f"episodes stay, so errors may be biased: {names}"
            )
        verb = "predicts" if len(self.questions) == 1 else "predict"
        return (
            f"{count} {verb} worse than a constant: {names} (variance explained down to "
            f"{self.value:.2g})"
        )


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
            0.05 if nothing changes, and rises if a sensor or the world has changed. It is no
            measure of quality: predictions that stay wrong may have a small one. It is nan in the
            first 64 steps. See :mod:`gvf.horde.watch`.
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
        variance_explained: the running variance explained of each question, [G]: 1 - mean (v - G)^2
            / var G over the returns G that followed its last hundred or so predictions v. 1 is
            perfect, and 0 is as good as a constant. Only questions about the behaviour can be
            checked, and it is nan for others; :attr:`unchecked` counts them by the reason.
        returns: the number of returns that have checked each question, int64[G].
        cut: the number of returns of each question that were cut, int64[G].
        on_policy: True for questions about the behaviour: all ratios in the window are 1. bool[G].
        worse: True for questions that predict worse than a constant, by three standard errors of
            their running errors, bool[G].
        on_device: True if the horde is on a GPU, where predictions are not checked.

    Example:
        >>> import gvf
        >>> policies = {
        ...     "left": gvf.policies.Always(0, actions=2),
        ...     "right": gvf.policies.Always(1, actions=2),
        ... }
        >>> horde = gvf.Horde(
        ...     gvf.question_grid(policies, {"reward": "reward"}, [0.9]),
        ...     gvf.features.OneHot(3),
        ...     gvf.updates.TD(0.5),
        ...     behaviour=gvf.policies.Uniform(2),
        ...     seed=0,
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
    estimated: bool
    diverged: tuple[str, ...]
    outside_bounds: float | None
    outside_returns: tuple[str, ...]
    endless: tuple[str, ...]
    variance_explained: Floats
    returns: NDArray[np.int64]
    cut: NDArray[np.int64]
    on_policy: Bools
    worse: Bools
    on_device: bool

    @property
    def unchecked(self) -> dict[Unchecked, int]:
        """The numbers of questions that were not checked by returns, for each reason."""
        known = ~np.isnan(self.variance_explained) & ~self._cut
        few = self.on_policy & ~self._cut & ~known
        reasons: dict[Unchecked, Any] = {
            "on a GPU": few & self.on_device,
            "off-policy": ~self.on_policy,
            "too few returns": few & (not self.on_device),
            "returns cut": self.on_policy & self._cut,
        }
        return {reason: int(some.sum()) for reason, some in reasons.items() if some.any()}

    @property
    def _cut(self) -> Bools:
        """True for questions with too many returns that were cut."""
        return (share_cut(self.returns, self.cut) > MOST_CUT) & (self.returns + self.cut >= FEWEST)

    @property
    def warnings(self) -> tuple[HordeWarning, ...]:
        """The warnings about predictions that were checked by returns."""
        explained, share = self.variance_explained, share_cut(self.returns, self.cut)
        return (
            *warned(Problem.WORSE, self.names, self.worse & ~self._cut, explained),
            *warned(Problem.CUT, self.names, self._cut, share),
        )

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems that the report names."""
        checks = {
            Problem.DIVERGED: bool(self.diverged),
            Problem.OUTSIDE_BOUNDS: (self.outside_bounds or 0.0) >= MANY_STATES,
            Problem.OUTSIDE_RETURNS: bool(self.outside_returns),
            Problem.ENDLESS: bool(self.endless),
        }
        some = tuple(problem for problem, is_found in checks.items() if is_found)
        return (*some, *(warning.problem for warning in self.warnings))

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
        return [*sentences, *map(str, self.warnings)]

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
        if checked := checked_text(self):
            text += f"; {checked}"
        if self.skipped:
            count = _count(len(self.skipped), "policy", "policies")
            text += f"; {count} without mass skipped updates: {listed(self.skipped)}"
        if self.missing:
            text += f"; {self.missing} transitions left out for a NaN"
        if self.paused:
            reasons = {f"{name} ({reason})": reason for name, reason in self.paused.items()}
            text += f"; {len(self.paused)} paused: {listed(reasons)}"
        text += "".join(f"; {sentence}" for sentence in self.sentences)
        return f"HordeReport({text})"


def unchecked_text(report: HordeReport) -> str:
    """Return which questions were not checked by returns, and why; empty if all were."""
    return "; ".join(f"{count:,} {_UNCHECKED[why]}" for why, count in report.unchecked.items())


def checked_text(report: HordeReport) -> str:
    """Return between which numbers the running variance explained lies; empty if none is known."""
    known = np.flatnonzero(~np.isnan(report.variance_explained))
    if not len(known):
        return ""
    values = report.variance_explained[known]
    worst, best = (report.names[known[at]] for at in (values.argmin(), values.argmax()))
    return (
        f"variance explained of {_count(len(known), 'question', 'questions')} about the behaviour "
        f"{values.min():.2g} ({worst}) to {values.max():.2g} ({best})"
    )


def share_cut(returns: NDArray[np.int64], cut: NDArray[np.int64]) -> Floats:
    """Return the share of the returns of each question that were cut, [G]."""
    return cut / np.maximum(cut + returns, 1)


def warned(
    problem: Problem, names: tuple[str, ...], which: Bools, values: Floats
) -> tuple[HordeWarning, ...]:
    """Return a warning about some questions, or none if there are none."""
    some = np.flatnonzero(which)
    if not len(some):
        return ()
    sign = -1.0 if problem is Problem.CUT else 1.0
    order = some[np.argsort(sign * values[some], kind="stable")]
    return (HordeWarning(problem, tuple(names[i] for i in order), float(values[order[0]])),)


def _count(count: int, singular: str, many: str) -> str:
    return f"{count} {singular if count == 1 else many}"


def listed(names: Collection[str]) -> str:
    """List the first names, and the number of the others."""
    first_names = list(names)[:_NAMED]
    rest = len(names) - len(first_names)
    return "; ".join(first_names) + (f"; and {rest} more" if rest else "")


@dataclass(frozen=True)
class PolicyDiagnosis:
    """The ratios of a group of questions that share a policy and its draws.

    Attributes:
        policy: the name of the policy.
        questions: the number of its questions.
        skipped: the number of updates that it skipped because its window had no mass.
        ratios: the statistics of its ratios.
    """

    policy: str
    questions: int
    skipped: int
    ratios: RatioStatistics


@dataclass(frozen=True, eq=False, repr=False)
class HordeDiagnosis:
    """The result of :meth:`gvf.Horde.diagnose`: the ratios of each policy, and the errors.

    Attributes:
        policies: the policies in the order of :attr:`gvf.HordeReport.policies`.
        report: the report, with UDE, RUPEE and the variance explained of each question, its
            warnings about them, and those that pause.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> policies = {"left": gvf.policies.Always(0, actions=2), "any": gvf.policies.Uniform(2)}
        >>> horde = gvf.Horde(
        ...     gvf.question_grid(policies, {"reward": "reward"}, [0.9]),
        ...     gvf.features.OneHot(3),
        ...     gvf.updates.TD(0.5),
        ...     behaviour=gvf.policies.Uniform(2),
        ...     seed=0,
        ... )
        >>> rng = np.random.default_rng(0)
        >>> states = rng.integers(3, size=151)
        >>> horde.observe(gvf.Transitions(
        ...     state=states[:-1], action=rng.integers(2, size=150), reward=rng.normal(size=150),
        ...     next_state=states[1:], terminated=np.zeros(150, bool)
        ... ))
        >>> horde.diagnose()
        HordeDiagnosis of 2 questions about 2 policies, window 150
          mean ratio 0.933 to 1, effective sample size 70 to 150
          largest UDE: any, reward, 0.9 (0.084); left, reward, 0.9 (0.033)
          not checked by returns: 1 about other policies (return_error in an environment, or
            stream_error along a stream in which their policy acted, checks them); 1 with fewer
            than 20 returns so far
          Always(0, 2): The window is worth 70 transitions from the target, and one of them
            holds 1.4 % of the mass: enlarge the window, or choose a behaviour closer to the
            target.
    """

    policies: tuple[PolicyDiagnosis, ...]
    report: HordeReport

    @property
    def warnings(self) -> dict[str, tuple[str, ...]]:
        """The warnings about each policy that has some, those with the smallest samples first."""
        order = sorted(self.policies, key=lambda diagnosis: diagnosis.ratios.effective_sample_size)
        return {
            diagnosis.policy: diagnosis.ratios.warnings
            for diagnosis in order
            if diagnosis.ratios.warnings
        }

    def __repr__(self) -> str:
        report, sizes = (
            self.report,
            [diagnosis.ratios.effective_sample_size for diagnosis in self.policies],
        )
        means = [diagnosis.ratios.mean_ratio for diagnosis in self.policies]
        worst = {f"{name} ({ude:.2g})": ude for name, ude in report.worst(3).items()}
        lines = [
            f"HordeDiagnosis of {report.questions:,} questions about {len(self.policies):,} "
            f"policies, window {report.window:,}",
            f"  mean ratio {min(means):.3g} to {max(means):.3g}, effective sample size "
            f"{min(sizes):.3g} to {max(sizes):.3g}",
            *([f"  {ESTIMATED}"] if report.estimated else []),
            *([f"  largest UDE: {listed(worst)}"] if worst else []),
            *([f"  {checked}"] if (checked := checked_text(report)) else []),
            *([f"  not checked by returns: {rest}"] if (rest := unchecked_text(report)) else []),
            *([f"  paused: {listed(report.paused)}"] if report.paused else []),
            *(f"  {sentence}" for sentence in report.sentences),
        ]
        warnings = self.warnings
        for name in list(warnings)[:3]:
            lines.append(f"  {name}: {' '.join(warnings[name])}")
        if len(warnings) > 3:
            lines.append(f"  and {len(warnings) - 3} more policies with warnings")
        return "\n".join(fill(line, 88, subsequent_indent="    ") for line in lines)


def diagnose_policies(shard: Shard, report: HordeReport) -> HordeDiagnosis:
    """Diagnose the ratios of all groups; the window is not empty."""
    layout, diagnoses = shard.layout, []
    for g, name in enumerate(report.policies):
        ratios = RatioStatistics.of(_inputs(shard, g)[0], shard.options.batch_size)
        questions = int(layout.starts[g + 1] - layout.starts[g])
        diagnoses.append(PolicyDiagnosis(name, questions, int(shard.skipped[g]), ratios))
    return HordeDiagnosis(tuple(diagnoses), report)


def diagnose_question(shard: Shard, place: int, estimated: bool, **options: Any) -> Diagnosis:
    """Diagnose the updates of one question as :meth:`gvf.Learner.diagnose` does."""
    layout, weights, columns = shard.layout, shard.weights, shard.window.columns
    assert weights is not None
    inputs = _inputs(shard, int(layout.group[place]))
    rows = shard.window.oldest_first[-inputs.shape[1] :]
    x, x_next = columns["x"][rows], columns["x_next"][rows]
    values, after = (weights.predict(part)[:, place] for part in (x, x_next))
    gamma = layout.scale[place] * columns["continuation"][rows, layout.source[place]]
    errors = columns["cumulant"][rows, layout.cumulant[place]] + gamma * after - values
    x = x.astype(np.float64) if x.dtype.kind == "f" else x
    share = np.ones((len(x), 1))
    updates = Updates(errors.astype(np.float64), x, share, np.zeros(len(x)), x, share)
    defaults = {"batch_size": shard.options.batch_size, "corrections": None, "batches": 1000}
    return diagnose_updates(
        inputs,
        updates,
        shard.options.weights.size,
        estimated=estimated,
        **{**defaults, "rng": None, **options},
    )


def _inputs(shard: Shard, group: int) -> Any:
    """Return the correction's inputs of a group, oldest first, float64[inputs, rows it knows]."""
    draws, since = shard.draws, shard.layout.since[shard.layout.group_question[group]]
    n = shard.options.window
    count = max(int(min(draws.place[SIZE], draws.steps - since)), 1)
    slots = (draws.steps - count + np.arange(count)) % n
    rings = draws.rings[group, : shard.options.correction.rows, HEADER:]
    return np.ascontiguousarray(rings[:, slots])
