"""The diagnosis of a horde: which policies the window covers, and which questions to doubt."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from gvf.diagnosis import Diagnosis
from gvf.diagnosis.diagnose import diagnose_updates
from gvf.diagnosis.show_diagnosis import ESTIMATED
from gvf.diagnosis.window_updates import Updates
from gvf.horde.horde_report import HordeReport, checked_text, listed, unchecked_text
from gvf.ratios import RatioStatistics
from gvf.sampling.prefix_sums import HEADER, SIZE

if TYPE_CHECKING:
    from gvf.horde.horde_core import Core


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


def diagnose_policies(core: Core, report: HordeReport) -> HordeDiagnosis:
    """Diagnose the ratios of all groups; the window is not empty."""
    layout, diagnoses = core.layout, []
    for g, name in enumerate(report.policies):
        ratios = RatioStatistics.of(_ratios(core, g)[0], core.options.batch_size)
        questions = int(layout.starts[g + 1] - layout.starts[g])
        diagnoses.append(PolicyDiagnosis(name, questions, int(core.skipped[g]), ratios))
    return HordeDiagnosis(tuple(diagnoses), report)


def diagnose_question(core: Core, place: int, **options: Any) -> Diagnosis:
    """Diagnose the updates of one question as :meth:`gvf.Learner.diagnose` does."""
    layout, engine, columns = core.layout, core.engine, core.window.columns
    assert engine is not None
    inputs = _ratios(core, int(layout.group[place]))
    rows = core.window.oldest_first[-inputs.shape[1] :]
    x, x_next = columns["x"][rows], columns["x_next"][rows]
    values, after = (engine.predict(part)[:, place] for part in (x, x_next))
    gamma = layout.scale[place] * columns["continuation"][rows, layout.source[place]]
    errors = columns["cumulant"][rows, layout.cumulant[place]] + gamma * after - values
    x = x.astype(np.float64) if x.dtype.kind == "f" else x
    share = np.ones((len(x), 1))
    updates = Updates(errors.astype(np.float64), x, share, np.zeros(len(x)), x, share)
    options = {"batch_size": core.options.batch_size, "corrections": None, **options}
    return diagnose_updates(
        inputs,
        updates,
        core.options.features.size,
        estimated=core.estimated,
        **{"batches": 1000, "rng": None, **options},
    )


def _ratios(core: Core, group: int) -> Any:
    """Return the correction's inputs of a group, oldest first, float64[C, rows it knows]."""
    draws, since = core.draws, core.layout.since[core.layout.group_question[group]]
    n = core.options.window
    count = max(int(min(draws.place[SIZE], draws.steps - since)), 1)
    slots = (draws.steps - count + np.arange(count)) % n
    return np.ascontiguousarray(
        draws.rings[group, : core.options.correction.rows, HEADER:][:, slots]
    )
