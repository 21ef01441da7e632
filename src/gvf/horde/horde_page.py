"""The page of a horde: one HTML file for all its questions.

It shows the distribution of errors, the best and the worst questions by name, predictions against
returns over a stretch of time, a map of errors by policy, cumulant and continuation, and the ratios
of the policies. The functions here prepare plain data; the template lays them out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gvf.common.arrays import Array, Floats
from gvf.common.page_parts import css, templates
from gvf.common.plot_style import embed
from gvf.common.version import __version__
from gvf.estimate import percent
from gvf.horde import horde_plots
from gvf.horde.horde_report import HordeDiagnosis, PolicyDiagnosis, unchecked_text
from gvf.horde.horde_returns import HordeReturnError, followed, returns_along
from gvf.horde.layout import Ints, Layout, distinct
from gvf.policies.policy import describe
from gvf.transition import Transitions

HIGH = 0.3
"""A larger UDE is counted; chance alone seldom gives it, even among thousands of questions."""
SHOWN = 10
"""The number of questions in a table of the best or the worst."""
POLICIES = 30
"""The number of policies in the table."""
LISTED = 20
"""The number of paused questions that are listed."""
PANELS, STEPS = 6, 500
"""The numbers of questions and of steps in a stretch of time."""
CUTOFF = 0.01
"""The share of a value that a return in a stretch of time may leave out."""


@dataclass(frozen=True)
class Stretch:
    """Predictions and returns of some questions over a stretch of time.

    Attributes:
        names: the names of the questions.
        predictions: the predictions, [T, questions].
        returns: the returns, [T, questions]; nan where the stretch is too short.
        on_policy: True if the target of all these questions acted; None if it is not known.
    """

    names: Sequence[str]
    predictions: Floats
    returns: Floats
    on_policy: bool | None


def page(
    layout: Layout,
    diagnosis: HordeDiagnosis,
    errors: HordeReturnError | None,
    stretch: Stretch | None,
    settings: Mapping[str, Any],
    title: str,
) -> str:
    """Write one self-contained HTML page.

    Args:
        layout: the layout of the questions.
        diagnosis: the diagnosis of the horde.
        errors: the errors against held-out returns of all or some questions.
        stretch: predictions and returns over a stretch of time.
        settings: the arguments of the horde.
        title: the title of the page.
    """
    report, parts = diagnosis.report, _Parts(layout)
    explained = None if errors is None else by_question(layout, errors)
    order = sorted(
        range(len(diagnosis.policies)),
        key=lambda g: diagnosis.policies[g].ratios.effective_sample_size,
    )
    policies = [diagnosis.policies[g] for g in order]
    names = [parts.group(g) for g in order]
    return (
        templates("gvf.horde")
        .get_template("horde.html.jinja")
        .render(
            title=title,
            css=css(),
            version=__version__,
            report=report,
            settings=_settings(settings),
            counts=_counts(diagnosis, errors),
            distributions=embed(horde_plots.distributions(report.ude, explained)),
            checked=_checked(diagnosis, SHOWN),
            warnings=[*report.warnings, *(errors.warnings if errors else ())],
            unchecked=unchecked_text(report),
            surprising=_surprising(diagnosis, SHOWN),
            best=_explained(errors, report.ude, layout, best=True) if errors else [],
            worst=_explained(errors, report.ude, layout, best=False) if errors else [],
            errors=errors,
            stretch=None if stretch is None else _stretch(stretch),
            maps=[
                _map(parts, numbers, what)
                for what, numbers in (("variance explained", explained), ("UDE", report.ude))
                if numbers is not None and not np.isnan(numbers).all()
            ],
            ratios=embed(horde_plots.ratios(policies, names)),
            policies=_policies(policies[:POLICIES], names),
            more_policies=max(len(policies) - POLICIES, 0),
            paused=dict(list(report.paused.items())[:LISTED]),
            more_paused=max(len(report.paused) - LISTED, 0),
        )
    )


def by_question(layout: Layout, errors: HordeReturnError) -> Floats:
    """Return the variance explained of each question, [G]; nan if it was not measured."""
    place = {name: i for i, name in enumerate(layout.names)}
    explained = np.full(len(layout), np.nan)
    known = [(place[name], i) for i, name in enumerate(errors.names) if name in place]
    for at, i in known:
        explained[at] = errors.variance_explained[i]
    return explained


def stretch_of(
    layout: Layout,
    predict: Callable[[Any], Array],
    transitions: Transitions,
    chosen: Sequence[int] | None,
    ranks: Floats,
) -> Stretch:
    """Return predictions and returns along the first part of a stream.

    Args:
        layout: the layout of the questions.
        predict: the function of states that predicts for all questions.
        transitions: consecutive transitions; of several streams, the first is shown.
        chosen: the numbers of the questions. None: some about the policy that acted, if there are
            any, from the best to the worst.
        ranks: the error of each question, [G], by which they are ranked; nan if it is not known.
    """
    if "stream" in transitions:
        transitions = transitions[transitions["stream"] == transitions["stream"][0]]
    acted = followed(layout, transitions)
    picked = chosen
    if picked is None:
        some = np.flatnonzero(acted) if acted is not None and acted.any() else np.arange(len(ranks))
        known = some[~np.isnan(ranks[some])]
        some = known if len(known) else some
        ranked = some[np.argsort(ranks[some], kind="stable")]
        picked = [int(i) for i in ranked[_spaced(len(ranked), PANELS)]]
    rows = np.arange(min(len(transitions), STEPS))
    predictions = predict(transitions["state"][rows])[:, picked]
    returns, _ = returns_along([layout.questions[i] for i in picked], transitions, rows, CUTOFF)
    on_policy = None if acted is None else bool(acted[picked].all())
    return Stretch([layout.names[i] for i in picked], predictions, returns, on_policy)


def _spaced(count: int, some: int) -> Ints:
    """Return some positions of so many, evenly spaced from the first to the last."""
    return np.unique(np.linspace(0, count - 1, some).astype(np.int64))


class _Parts:
    """The names of the policies, cumulants and continuations of a layout's questions.

    Questions made by :func:`gvf.question_grid` are named after their parts. If all names are of
    this kind, they name the parts, and otherwise the parts describe themselves.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout, asked = layout, layout.questions
        kinds = [
            distinct(getattr(question, kind) for question in asked)
            for kind in ("policy", "cumulant", "continuation")
        ]
        pieces = [name.split(", ") for name in layout.names]
        self.numbers: list[Ints] = []
        self.names: list[list[str]] = []
        for axis, (parts, numbers) in enumerate(kinds):
            names = [describe(part) for part in parts]
            if all(len(piece) == 3 for piece in pieces):
                named = {(int(i), p[axis]) for i, p in zip(numbers, pieces, strict=True)}
                if len(named) == len(parts):
                    names = [name for _, name in sorted(named)]
            self.numbers.append(numbers)
            self.names.append(names)

    def group(self, group: int) -> str:
        """Return the name of the policy of a group."""
        return self.names[0][int(self.numbers[0][self._layout.group_question[group]])]


def _settings(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the arguments that matter to a reader, without addresses of functions."""
    named = (
        "correction",
        "update",
        "features",
        "behaviour",
        "window",
        "batch_size",
        "update_every",
    )
    return {
        name.replace("_", " ").capitalize(): re.sub(r" at 0x\w+", "", repr(arguments[name]))
        for name in named
        if arguments[name] is not None
    }


def _counts(diagnosis: HordeDiagnosis, errors: HordeReturnError | None) -> list[dict[str, str]]:
    """Return badges with the most important numbers."""
    report, warned = (
        diagnosis.report,
        sum(bool(policy.ratios.warnings) for policy in diagnosis.policies),
    )
    known = report.ude[np.isfinite(report.ude)]
    high = int((known > HIGH).sum())
    counts = [
        ("bad" if high else "good", f"{high:,} of {len(known):,} questions with UDE above {HIGH}"),
        ("bad" if report.paused else "good", f"{len(report.paused):,} paused"),
        (
            "quick" if warned else "good",
            f"{warned:,} of {len(diagnosis.policies):,} policies warned of",
        ),
    ]
    explained = report.variance_explained[~np.isnan(report.variance_explained)]
    if len(explained):
        worse = int(report.worse.sum())
        text = f"{worse:,} of {len(explained):,} checked questions worse than a constant"
        counts.append(("bad" if worse else "good", text))
    if report.estimated:
        counts.append(("open", "ratios are estimated"))
    if errors is not None:
        with_value = errors.variance_explained[~np.isnan(errors.variance_explained)]
        above = int((with_value > 0.0).sum())
        counts.insert(
            0,
            (
                "open",
                f"{above:,} of {len(with_value):,} questions better than a constant prediction",
            ),
        )
    return [{"kind": kind, "text": text} for kind, text in counts]


def _surprising(diagnosis: HordeDiagnosis, count: int) -> list[dict[str, str]]:
    """Return the questions with the largest UDE."""
    report = diagnosis.report
    place = {name: i for i, name in enumerate(report.names)}
    rows = []
    for name, ude in report.worst(count).items():
        row = {"name": name, "UDE": f"{ude:.3g}"}
        if report.rupee is not None:
            row["RUPEE"] = f"{report.rupee[place[name]]:.3g}"
        if report.paused:
            row["Paused"] = report.paused.get(name, "no")
        rows.append(row)
    return rows


def _checked(diagnosis: HordeDiagnosis, count: int) -> list[dict[str, str]]:
    """Return the worst of the questions that were checked by returns while they learned."""
    report = diagnosis.report
    known = np.flatnonzero(~np.isnan(report.variance_explained))
    order = known[np.argsort(report.variance_explained[known], kind="stable")]
    return [
        {
            "name": report.names[i],
            "Variance explained": f"{report.variance_explained[i]:.3g}",
            "Returns": f"{report.returns[i]:,}",
            "Returns cut": f"{report.cut[i]:,}",
            "UDE": f"{report.ude[i]:.2g}",
        }
        for i in order[:count]
    ]


def _explained(
    errors: HordeReturnError, ude: Floats, layout: Layout, *, best: bool
) -> list[dict[str, str]]:
    """Return the best or the worst questions by variance explained."""
    at = {name: i for i, name in enumerate(errors.names)}
    place = {name: i for i, name in enumerate(layout.names)}
    rows = []
    for name, value in (errors.best(SHOWN) if best else errors.worst(SHOWN)).items():
        i = at[name]
        rows.append(
            {
                "name": name,
                "Variance explained": f"{value:.3g} ± {errors.standard_error[i]:.2g}",
                "Error (r.m.s.)": f"{errors.root_mean_square[i]:.3g}",
                "Spread of returns": f"{errors.spread[i]:.3g}",
                "Returns": f"{errors.returns[i]:,}",
                "UDE": f"{ude[place[name]]:.2g}",
            }
        )
    return rows


def _stretch(part_of_log: Stretch) -> dict[str, Any]:
    """Return the picture of a stretch of time, with the words on its lines."""
    whose = {
        True: "return (the target acted)",
        False: "return of the policy that acted",
        None: "return of whoever acted",
    }[part_of_log.on_policy]
    picture = horde_plots.stretch(
        part_of_log.names, part_of_log.predictions, part_of_log.returns, whose
    )
    return {
        **embed(picture),
        "on_policy": part_of_log.on_policy,
        "steps": len(part_of_log.predictions),
    }


def _map(parts: _Parts, errors: Floats, what: str) -> dict[str, Any]:
    """Return the map of errors, without rows and columns that have none."""
    known = ~np.isnan(errors)
    # If several questions share a cell, it shows the worst.
    order = np.flatnonzero(known)[np.argsort(errors[known] * (1 if what == "UDE" else -1))]
    axes = [np.unique(numbers[known], return_inverse=True) for numbers in parts.numbers]
    names = [[of[i] for i in places] for of, (places, _) in zip(parts.names, axes, strict=True)]
    at = [np.zeros(len(known), np.int64) for _ in axes]
    for numbers, (_, inverse) in zip(at, axes, strict=True):
        numbers[known] = inverse
    kinds = ["policies", "cumulants"]
    rows, groups = (0, 1) if len(names[0]) > len(names[1]) else (1, 0)
    cells = np.full((len(names[rows]), len(names[groups]), len(names[2])), np.nan)
    cells[at[rows][order], at[groups][order], at[2][order]] = errors[order]
    picture = horde_plots.error_map(cells, names[rows], names[groups], names[2], what)
    return {
        **embed(picture, "png"),
        "what": what,
        "rows": kinds[rows],
        "groups": kinds[groups],
    }


def _policies(policies: Sequence[PolicyDiagnosis], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the policies with the statistics of their ratios and the warnings."""
    rows = []
    for diagnosed, name in zip(policies, names, strict=False):
        statistics, policy = diagnosed.ratios, diagnosed.policy
        share = 100 * statistics.effective_sample_size / statistics.window
        rows.append(
            {
                "name": name,
                "policy": horde_plots.short(policy, 60) if policy != name else "",
                "warnings": statistics.warnings,
                "Questions": f"{diagnosed.questions:,}",
                "Effective sample size": f"{statistics.effective_sample_size:,.0f} ({share:.2g} %)",
                "Mean ratio": f"{statistics.mean_ratio:.3g} ± {statistics.mean_ratio_error:.2g}",
                "Largest ratio": f"{statistics.max_ratio:.3g}",
                "Zeros": percent(statistics.zero_ratios, ".0f"),
                "Skipped updates": f"{diagnosed.skipped:,}",
            }
        )
    return rows
