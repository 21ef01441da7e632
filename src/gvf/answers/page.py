"""The page of an answer: one HTML file, for all questions.

It tells what the log is, whether it supports each question, which correction and step size won and
by how much, the predictions along episodes, and the values over two dimensions of the state. The
functions here prepare plain data; the template lays them out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gvf.answers import pictures, shown
from gvf.answers.answer import Answer, Answered, edge_of
from gvf.answers.cells import methods
from gvf.answers.material import Material
from gvf.answers.plan import Asked, told
from gvf.answers.support import Diagnosed, warnings_of, warnings_of_material
from gvf.answers.values import value_remarks, value_rows
from gvf.behaviour import Support
from gvf.common.arrays import Array
from gvf.common.page import css, templates
from gvf.common.pictures import embed
from gvf.common.version import __version__
from gvf.diagnosis import Diagnosis
from gvf.diagnosis.advice import percent
from gvf.diagnosis.ratios import RatioStatistics
from gvf.judging import Outcome
from gvf.judging.judgement import LARGEST_K_HAT, Judgement

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
        badges_shown=[_verdict_badge(one) | {"text": _short(one)} for one in answer.answers],
        questions=[
            {
                **_question(material, asked, one.ratios, one.support, one.diagnosis),
                **_judged(material, one),
                "tracks": _tracks(material, one),
                "map": _map(material, one),
            }
            for asked, one in zip(material.plan.questions, answer.answers, strict=True)
        ],
        settings=_settings(material),
        files=list(files),
    )


def diagnosis_page(material: Material, found: Sequence[Diagnosed]) -> str:
    """Write the page of `gvf diagnose`: what the log is, and whether it supports each question.

    Args:
        material: the log, and what was made for it.
        found: the support of each question.
    """
    questions = [
        {
            **_question(material, asked, one.ratios, one.support, one.diagnosis),
            "doubts": list(one.doubts),
        }
        for asked, one in zip(material.plan.questions, found, strict=True)
    ]
    return _render(
        material,
        kind="diagnosis",
        badges_shown=[],
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
        log=log.describe(),
        transitions=len(log),
        episodes=len(log.episodes),
        ended=int(log.terminated.sum()),
        lengths=_between(log.lengths),
        source=log.source,
        estimated=material.source == "estimated",
        behaviour=_behaviour(material),
        ratios_from=material.ratios_from,
        level=f"{100 * material.plan.level:g} %",
        replicates=material.plan.replicates,
        in_memory=log.in_memory,
        **more,
    )


def _behaviour(material: Material) -> dict[str, Any] | None:
    """Return what is told of an estimated behaviour."""
    found = material.estimated
    if found is None:
        return None
    return {"told": repr(found), "reliability": embed(pictures.reliability(found.reliability()))}


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
            "Policy": told(asked.policy),
            "Cumulant": told(asked.cumulant),
            "Continuation": told(asked.continuation),
        },
        "support": {
            "Worth": f"{ratios.effective_sample_size:,.0f} of {ratios.window:,} transitions "
            f"({percent(ratios.effective_sample_size / ratios.window)})",
            "Mean ratio": f"{ratios.mean_ratio:.3g} ± {ratios.mean_ratio_error:.1g} "
            "(1 if the behaviour's probabilities are right)",
            "Largest ratio": f"{ratios.max_ratio:.3g}, {percent(ratios.max_share)} of the sum",
            "Ratios of 0": percent(ratios.zero_ratios),
            "Hardly taken": f"{percent(min(lost.value, 1.0))} of the target's actions (below "
            f"{support.least:g})",
        },
        "warnings": warnings,
        "supported": not warnings,
        "cover": embed(pictures.cover(support)) if lost.value > SHOWN_LOSS else None,
        "diagnosis": None if diagnosis is None else embed(pictures.ratios(diagnosis)),
        "advice": "" if diagnosis is None else diagnosis.reason,
        "recommended": "" if diagnosis is None else diagnosis.recommendation.name,
    }


def _verdict_badge(one: Answered) -> dict[str, str]:
    verdict = one.verdict
    kinds = {Outcome.BEST: "good", Outcome.TIED: "open"}
    return {"kind": kinds.get(verdict.outcome, "bad"), "text": str(verdict)}


def _short(one: Answered) -> str:
    return f"{one.question.name}: {one.chosen.name if one.sure else 'cannot tell'}"


def _judged(material: Material, one: Answered) -> dict[str, Any]:
    """Return the verdict, the picture of scores, and the table of the best candidates."""
    judgement = one.judgement
    size, episodes = judgement.effective_sample_size, judgement.episodes
    k_hat = "unknown" if math.isnan(judgement.k_hat) else f"{judgement.k_hat:.2g}"
    scores = [score for score in judgement.scores if score.standing != "reference"]
    rows = [_score(judgement, score) for score in scores[:ROWS]]
    return {
        "verdict": _verdict_badge(one),
        "chosen": one.chosen.name,
        "sure": one.sure,
        "values": value_rows(one.values),
        "value_remarks": value_remarks(judgement, one.verdict),
        "edge": edge_of(material.plan, one),
        "remarks": [str(remark) for remark in one.remarks],
        "epochs": one.epochs,
        "has_intervals": one.intervals is not None,
        "unknown": shown.unknown(material, one),
        "scores": embed(shown.scores_of(material, one)),
        "candidates": rows,
        "left_out": len(scores) - len(rows),
        "constant": _number(judgement.constant.score),
        "weights": f"{size:,.3g} of {episodes:,} episodes; k-hat {k_hat}, trusted up to "
        f"{LARGEST_K_HAT}; {100 * judgement.beyond:.2g} % of the values lie beyond the "
        "ends of cut episodes",
    }


def _score(judgement: Judgement, score: Any) -> dict[str, str]:
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
        "chance": f"{100 * score.chance:.0f} %",
        "kind": kinds[score.standing],
        "standing": words.get(score.standing) or score.standing,
    }


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "infinite"


def _tracks(material: Material, one: Answered) -> dict[str, Any] | None:
    """Return the picture of predictions along episodes; None if all are single steps."""
    return embed(shown.tracks_of(material, one)) if material.log.lengths.max() > 1 else None


def _map(material: Material, one: Answered) -> dict[str, Any] | None:
    drawn = shown.map_of(material, one)
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
