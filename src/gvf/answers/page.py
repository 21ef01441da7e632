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

import numpy as np

from gvf.answers import parts, pictures
from gvf.answers.answer import Answer, Answered
from gvf.answers.cells import methods
from gvf.answers.material import Material
from gvf.answers.plan import Asked
from gvf.answers.support import Diagnosed, warnings_of
from gvf.behaviour import Support
from gvf.common.arrays import Array, Floats
from gvf.common.page import css, templates
from gvf.common.pictures import embed
from gvf.common.version import __version__
from gvf.diagnosis import Diagnosis
from gvf.diagnosis.ratios import RatioStatistics
from gvf.judging.judgement import LARGEST_K_HAT, Judgement

ROWS = 12
"""The number of candidates in a table."""
EPISODES = (0.5, 0.8, 1.0)
"""The episodes that are shown, by their place in the order of lengths."""
LONGEST_SHOWN = 500
"""The number of steps of an episode that are shown."""
SHOWN_LOSS = 0.001
"""The share of the target's actions from which on a picture shows where they are lost."""
MAP_STATES = 20_000
"""The number of the log's states that make a map."""


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
                **_question(asked, one.ratios, one.support, one.diagnosis),
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
        {**_question(asked, one.ratios, one.support, one.diagnosis), "doubts": list(one.doubts)}
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
    asked: Asked, ratios: RatioStatistics, support: Support, diagnosis: Diagnosis | None
) -> dict[str, Any]:
    """Return what is told of a question and of its support."""
    warnings, lost = warnings_of(ratios, support), support.lost[support.least]
    share = 100 * ratios.effective_sample_size / ratios.window
    return {
        "name": asked.name,
        "facts": {
            "Policy": told(asked.policy),
            "Cumulant": told(asked.cumulant),
            "Continuation": told(asked.continuation),
        },
        "support": {
            "Worth": f"{ratios.effective_sample_size:,.0f} of {ratios.window:,} transitions "
            f"({share:.2g} %)",
            "Mean ratio": f"{ratios.mean_ratio:.3g} ± {ratios.mean_ratio_error:.1g} "
            "(1 if the behaviour's probabilities are right)",
            "Largest ratio": f"{ratios.max_ratio:.3g}, {100 * ratios.max_share:.2g} % of the sum",
            "Ratios of 0": f"{100 * ratios.zero_ratios:.2g} %",
            "Hardly taken": f"{100 * lost.value:.2g} % of the target's actions (below "
            f"{support.least:g})",
        },
        "warnings": warnings,
        "supported": not warnings,
        "cover": embed(pictures.cover(support)) if lost.value > SHOWN_LOSS else None,
        "diagnosis": None if diagnosis is None else embed(pictures.ratios(diagnosis)),
        "advice": "" if diagnosis is None else diagnosis.reason,
        "recommended": "" if diagnosis is None else diagnosis.recommendation.name,
    }


def told(given: Any) -> str:
    """Return a setting of a question as text, as it stands in the file.

    Example:
        >>> from gvf.answers.page import told
        >>> told({"kind": "favour", "action": 1, "probability": 0.9, "actions": None})
        'favour, action = 1, probability = 0.9'
    """
    if not isinstance(given, dict):
        return str(given)
    rest = {name: value for name, value in given.items() if name != "kind" and value is not None}
    parts = [
        f"{name} = {told(value) if isinstance(value, dict) else value}"
        for name, value in rest.items()
    ]
    return ", ".join([*([given["kind"]] if "kind" in given else []), *parts])


def _verdict_badge(one: Answered) -> dict[str, str]:
    verdict = one.judgement.verdict
    kind = "bad" if verdict.startswith("cannot tell") else "good"
    return {"kind": "open" if "cannot be told from" in verdict else kind, "text": verdict}


def _short(one: Answered) -> str:
    verdict = one.judgement.verdict
    if verdict.startswith("cannot tell"):
        return f"{one.question.name}: cannot tell"
    return f"{one.question.name}: {one.chosen.name}"


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
        "scores": embed(_curves(material, judgement)),
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
    interval = "" if best or not math.isfinite(d.value) else f"{d.low:.3g} to {d.high:.3g}"
    kinds = {"best": "good", "as good": "open", "worse": "quick", "diverged": "bad"}
    words = {"as good": "cannot be told from the best"}
    return {
        "name": score.name,
        "error": _number(score.score),
        "above": "" if best else _number(d.value),
        "interval": interval,
        "chance": f"{100 * score.chance:.0f} %",
        "kind": kinds[score.standing],
        "standing": words.get(score.standing) or score.standing,
    }


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "infinite"


def _curves(material: Material, judgement: Judgement) -> Any:
    by_name: dict[str, list[Any]] = {name: [] for name in methods(material)}
    for score in judgement.scores:
        if score.standing != "reference":
            by_name[score.learner].append(score)
    curves, alone = [], []
    for name, found in by_name.items():
        ordered = sorted(found, key=lambda one: -1 if one.lane is None else one.lane)
        sizes = [] if ordered[0].lane is None else material.plan.step_sizes
        columns = np.array([list(one.difference) for one in ordered], float).T
        with np.errstate(invalid="ignore"):
            diverged = np.array([one.standing == "diverged" for one in ordered])
            columns[0] = np.where(diverged, np.inf, columns[0])
        (curves if len(sizes) else alone).append(pictures.Curve(name, sizes, *columns))
    constant = judgement.constant.difference.value
    return pictures.scores(curves, alone, constant, judgement.confidence)


def _tracks(material: Material, one: Answered) -> dict[str, Any]:
    """Return the picture of predictions along a few episodes."""
    log = material.log
    order = np.argsort(log.lengths, kind="stable")
    chosen = list(dict.fromkeys(int(order[round(q * (len(order) - 1))]) for q in EPISODES))
    shown = []
    for at in chosen:
        episode = log.episodes[at]
        predicted, low, high = one.predict(episode.state[:LONGEST_SHOWN])
        end = "ended by the task" if episode.terminated[-1] else "cut"
        title = f"episode {log.numbers[at]}: {len(episode):,} steps, {end}"
        known = one.intervals is not None
        shown.append(
            pictures.Track(title, predicted, low if known else None, high if known else None)
        )
    name = told(material.plan.questions[_place(material, one)].cumulant)
    return embed(pictures.tracks(shown, name, material.plan.level))


def _place(material: Material, one: Answered) -> int:
    return next(i for i, asked in enumerate(material.questions) if asked is one.question)


def _map(material: Material, one: Answered) -> dict[str, Any] | None:
    """Return the picture of values over two dimensions, or over numbered states."""
    facts, level = material.facts, material.plan.level
    sample = facts.sample[:: max(1, len(facts.sample) // MAP_STATES)]
    known = one.intervals is not None
    if facts.states is not None:
        if facts.states > pictures.FEW_STATES:
            return None
        counts = np.bincount(facts.sample, minlength=facts.states)
        seen = np.flatnonzero(counts)
        values, low, high = (np.full(facts.states, np.nan) for _ in range(3))
        values[seen], low[seen], high[seen] = one.predict(seen.astype(facts.sample.dtype))
        picture = pictures.numbered(values, low if known else None, high if known else None, counts)
        return {**embed(picture), "over": "the states", "others": ""}
    if sample.ndim != 2 or sample.shape[1] < 2 or sample.dtype.names:
        return None
    values, low, high = one.predict(sample)
    pair = _dimensions(material, sample, values)
    points = sample[:, pair].astype(np.float64)
    names = [facts.names[i] for i in pair]
    picture = pictures.value_map(points, values, high - low if known else None, names, level)
    others = [name for i, name in enumerate(facts.names) if i not in pair]
    return {**embed(picture, "png"), "over": " and ".join(names), "others": ", ".join(others)}


def _dimensions(material: Material, sample: Array, values: Floats) -> list[int]:
    """Return the two dimensions to show: those of the plan, or those that explain most."""
    chosen = parts.dimensions(material.plan, material.facts)
    if len(chosen) < 2:
        shares = [_explained(column, values) for column in sample.T]
        order = [int(i) for i in np.argsort(shares)[::-1] if int(i) not in chosen]
        chosen = [*chosen, *order][:2]
    return chosen


def _explained(column: Array, values: Floats, bins: int = 20) -> float:
    """Return the share of the variance of values that bins of a column explain."""
    edges = np.unique(np.nanquantile(column, np.linspace(0, 1, bins + 1)[1:-1]))
    place = np.searchsorted(edges, column)
    count = np.bincount(place, minlength=len(edges) + 1)
    total = np.bincount(place, weights=values, minlength=len(edges) + 1)
    mean = np.divide(total, count, out=np.zeros(len(count)), where=count > 0)
    return float(np.var(mean[place]))


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
