"""The page of an answer: one HTML file, for all questions.

It tells what the log is, whether it supports each question, which correction and step size won and
by how much, the predictions along episodes, and the values over two dimensions of the state. The
functions here prepare plain data; the template lays them out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gvf.answers import answer_plots
from gvf.answers.answer import Answer, Answered, edge_of
from gvf.answers.cells import methods
from gvf.answers.plan import Asked, setting_text
from gvf.answers.read_inputs import Material, described
from gvf.answers.remarks import value_remarks, value_rows
from gvf.answers.support_of_log import (
    Diagnosed,
    hardly_taken,
    lacking,
    warnings_of,
    warnings_of_material,
)
from gvf.behaviour import Support
from gvf.common.arrays import Array
from gvf.common.page_parts import css, templates
from gvf.common.plot_style import embed
from gvf.common.version import __version__
from gvf.diagnosis import Diagnosis
from gvf.estimate import percent
from gvf.findings import sentence
from gvf.judging import Outcome
from gvf.judging.comparison import Comparison
from gvf.ratios import LARGEST_K_HAT, RatioStatistics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = 12
"""The number of candidates in a table."""
SHOWN_LOSS = 0.001
"""The share of the target's actions from which on a picture shows where they are lost."""


def page(answer: Answer, files: Sequence[str]) -> str:
    """Write the page of an answer.

    Args:
        answer: the answer.
        files: the names of the files that lie beside the page.
    """
    material = answer.material
    return _render(
        material,
        kind="answer",
        verdict_badges=[
            _verdict_badge(result) | {"text": _short(result)} for result in answer.answers
        ],
        questions=[
            {
                **_question(material, asked, result.ratios, result.support, result.diagnosis),
                **_judged(material, result),
                "tracks": _tracks(material, result),
                "map": _map(material, result),
            }
            for asked, result in zip(material.plan.questions, answer.answers, strict=True)
        ],
        settings=_settings(material),
        files=list(files),
    )


def diagnosis_page(material: Material, supports: Sequence[Diagnosed]) -> str:
    """Write the page of `gvf diagnose`: what the log is, and whether it supports each question.

    Args:
        material: the log, and what was made for it.
        supports: the support of each question.
    """
    questions = [
        {
            **_question(material, asked, support.ratios, support.support, support.diagnosis),
            "doubts": [sentence(finding) for finding in support.findings],
        }
        for asked, support in zip(material.plan.questions, supports, strict=True)
    ]
    return _render(
        material,
        kind="diagnosis",
        verdict_badges=[],
        questions=questions,
        settings=_settings(material),
        files=[],
    )


def _render(material: Material, **more: Any) -> str:
    log = material.log
    template = templates("gvf.answers").get_template("answer.html.jinja")
    return template.render(
        css=css(),
        version=__version__,
        title=_title(material, more["kind"]),
        log=described(log, material.plan),
        transitions=len(log),
        episodes=len(log.episodes),
        ended=int(log.terminated.sum()),
        lengths=_between(log.lengths),
        source=log.source,
        estimated=material.source == "estimated",
        behaviour=_behaviour(material),
        ratios_from=material.ratios_from,
        level=percent(material.plan.level, "g"),
        replicates=material.plan.replicates,
        in_memory=log.in_memory,
        **more,
    )


def _behaviour(material: Material) -> dict[str, Any] | None:
    """Return what is told of an estimated behaviour."""
    estimate = material.estimated
    if estimate is None:
        return None
    return {
        "summary": repr(estimate),
        "reliability": embed(answer_plots.reliability(estimate.reliability())),
    }


def _title(material: Material, kind: str) -> str:
    asked = material.plan.questions
    what = asked[0].name if len(asked) == 1 else f"{len(asked)} questions"
    start = "" if kind == "answer" else "Diagnosis: "
    return f"{start}{what}, asked of {Path(material.log.source).name}"


def _between(lengths: Array) -> str:
    low, high = int(lengths.min()), int(lengths.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _question(
    material: Material,
    asked: Asked,
    ratios: RatioStatistics,
    support: Support,
    diagnosis: Diagnosis | None,
) -> dict[str, Any]:
    """Return what is told of a question and of its support."""
    warnings = [*warnings_of_material(material), *warnings_of(ratios, support)]
    lost = support.lost[support.least]
    return {
        "name": asked.name,
        "facts": {
            "Policy": setting_text(asked.policy),
            "Cumulant": setting_text(asked.cumulant),
            "Continuation": setting_text(asked.continuation),
        },
        "support": {
            "Worth": f"{ratios.effective_sample_size:,.0f} of {ratios.window:,} transitions "
            f"({percent(ratios.effective_sample_size / ratios.window)})"
            + (f" of the target, {without}" if (without := lacking(support)) else ""),
            "Mean ratio": f"{ratios.mean_ratio:.3g} ± {ratios.mean_ratio_error:.1g} "
            "(1 if the behaviour's probabilities are right)",
            "Largest ratio": f"{ratios.max_ratio:.3g}, {percent(ratios.max_share)} of the sum",
            "Ratios of 0": percent(ratios.zero_ratios),
            "Hardly taken": hardly_taken(support),
        },
        "warnings": warnings,
        "supported": not warnings,
        "cover": embed(answer_plots.cover(support)) if lost.value > SHOWN_LOSS else None,
        "diagnosis": None if diagnosis is None else embed(answer_plots.ratios(diagnosis)),
        "advice": "" if diagnosis is None else diagnosis.reason,
        "recommended": "" if diagnosis is None else diagnosis.recommendation.name,
    }


def _verdict_badge(result: Answered) -> dict[str, str]:
    verdict = result.verdict
    kinds = {Outcome.BEST: "good", Outcome.TIED: "open"} if result.finished else {}
    return {"kind": kinds.get(verdict.outcome, "bad"), "text": verdict.outcome}


def _short(result: Answered) -> str:
    doubt = "" if result.sure else "not finished"
    if not result.verdict.outcome.sure:
        doubt = result.verdict.outcome
    return f"{result.question.name}: {doubt or result.chosen.name}"


def _judged(material: Material, result: Answered) -> dict[str, Any]:
    """Return the verdict, the picture of scores, and the table of the best candidates."""
    judgement = result.judgement
    size, episodes = judgement.effective_sample_size, judgement.episodes
    k_hat = "unknown" if math.isnan(judgement.k_hat) else f"{judgement.k_hat:.2g}"
    scores = [score for score in judgement.scores if score.standing != "reference"]
    rows = [_score(judgement, score) for score in scores[:ROWS]]
    return {
        "verdict": _verdict_badge(result),
        "sentence": str(result.verdict),
        "chosen": result.chosen.name,
        "sure": result.sure,
        "values": value_rows(result.values),
        "value_remarks": value_remarks(judgement, result.verdict),
        "edge": edge_of(material.plan, result),
        "remarks": [str(remark) for remark in result.remarks],
        "epochs": result.epochs,
        "has_intervals": result.intervals is not None,
        "unknown": answer_plots.unknown(material, result),
        "scores": _picture(answer_plots.scores_of(material, result)),
        "candidates": rows,
        "left_out": len(scores) - len(rows),
        "constant": _number(judgement.constant.score),
        "weights": f"{size:,.3g} of {episodes:,} episodes; k-hat {k_hat}, trusted up to "
        f"{LARGEST_K_HAT}; {percent(judgement.beyond)} of the values lie beyond the "
        "ends of cut episodes",
    }


def _score(judgement: Comparison, score: Any) -> dict[str, str]:
    d = score.difference
    best = score is judgement.best
    interval = "–" if best or not math.isfinite(d.value) else f"{d.low:.3g} to {d.high:.3g}"
    kinds = {"best": "good", "as good": "open", "worse": "quick", "diverged": "bad"}
    words = {"as good": "cannot be told from the best"}
    verdict = judgement.verdict
    if verdict.outcome is not Outcome.BEST or not verdict.others:  # nothing was shown to win
        kinds["best"], words["best"] = "open", "lowest error"
    return {
        "name": score.name,
        "error": _number(score.score),
        "above": "–" if best else _number(d.value),
        "interval": interval,
        "chance": percent(score.chance, ".0f"),
        "kind": kinds[score.standing],
        "standing": words.get(score.standing) or score.standing,
    }


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "infinite"


def _picture(figure: Figure | None) -> dict[str, Any] | None:
    return None if figure is None else embed(figure)


def _tracks(material: Material, result: Answered) -> dict[str, Any] | None:
    """Return the picture of predictions along episodes; None if all are single steps."""
    return (
        embed(answer_plots.tracks_of(material, result)) if material.log.lengths.max() > 1 else None
    )


def _map(material: Material, result: Answered) -> dict[str, Any] | None:
    drawn = answer_plots.map_of(material, result)
    if drawn is None:
        return None
    kind = "png" if drawn.others else "svg"  # a map has many cells
    return {**embed(drawn.figure, kind), "over": drawn.over, "others": drawn.others}


def _settings(material: Material) -> dict[str, str]:
    plan = material.plan
    learn = {name: value for name, value in plan.learn.items() if value is not None}
    return {
        "Ratios": material.ratios_from,
        "Features": repr(material.features),
        "Corrections": ", ".join(methods(material)),
        "Step sizes": ", ".join(f"{size:g}" for size in plan.step_sizes),
        "Learning": ", ".join(f"{name} = {value}" for name, value in learn.items()),
        "Judging": f"{plan.folds} parts of the episodes, held out in turn",
        "Intervals": f"{plan.replicates} replicates of the bootstrap over episodes"
        if plan.replicates
        else "none",
        "Seed": str(plan.seed),
    }
