"""The numbers that the pictures of an answer show, and the pictures.

:mod:`gvf.answers.answer_plots` draws arrays. Here they are taken from an answer: the scores of the
candidates, predictions along episodes of the log, and predictions for its states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gvf.answers import answer_plots, build_question
from gvf.answers.answer import Answered
from gvf.answers.cells import methods
from gvf.answers.plan import setting_text
from gvf.answers.read_inputs import Material
from gvf.common.arrays import Array, Floats
from gvf.estimate import percent
from gvf.log import Log

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPISODES = (0.5, 0.8, 1.0)
"""The episodes that are shown, by their place in the order of lengths."""
LONGEST_SHOWN = 500
"""The number of steps of an episode that are shown."""
MAP_STATES = 20_000
"""The number of the log's states that make a map."""


def scores_of(material: Material, result: Answered) -> Figure | None:
    """Draw the scores of all candidates; None if none of them has a step size."""
    judgement = result.judgement
    by_name: dict[str, list[Any]] = {name: [] for name in methods(material)}
    for score in judgement.scores:
        if score.standing != "reference":
            by_name[score.learner].append(score)
    curves, alone = [], []
    for name, scores in by_name.items():
        ordered = sorted(scores, key=lambda score: -1 if score.lane is None else score.lane)
        sizes = [] if ordered[0].lane is None else material.plan.step_sizes
        columns = np.array([list(score.difference) for score in ordered], float).T
        with np.errstate(invalid="ignore"):
            diverged = np.array([score.standing == "diverged" for score in ordered])
            columns[0] = np.where(diverged, np.inf, columns[0])
        (curves if len(sizes) else alone).append(answer_plots.Curve(name, sizes, *columns))
    if not curves:
        return None
    constant = judgement.constant.difference.value
    return answer_plots.scores(curves, alone, constant, judgement.level)


def tracks_of(material: Material, result: Answered) -> Figure:
    """Draw predictions along a few episodes."""
    log = material.log
    order = np.argsort(log.lengths, kind="stable")
    chosen = list(dict.fromkeys(int(order[round(q * (len(order) - 1))]) for q in EPISODES))
    tracks = []
    for at in chosen:
        episode = log.episodes[at]
        predicted, low, high = result.predict(episode.state[:LONGEST_SHOWN])
        end = "ended by the task" if episode.terminated[-1] else "cut"
        title = f"{_name(log, at)}: {len(episode):,} steps, {end}"
        known = result.intervals is not None
        tracks.append(
            answer_plots.Track(title, predicted, low if known else None, high if known else None)
        )
    name = setting_text(material.plan.questions[_place(material, result)].cumulant)
    return answer_plots.tracks(tracks, name, material.plan.level)


def _name(log: Log, at: int) -> str:
    """Return the name of an episode: the log's own, with its place if others have the same."""
    ids = log.ids
    if not ids:
        return f"episode {log.numbers[at]}"
    same = np.all([column == column[at] for column in ids.values()], axis=0)
    name = ", ".join(f"{name} {column[at]}" for name, column in ids.items())
    return name if same.sum() == 1 else f"{name} from {log.place(int(log.lengths[:at].sum()))}"


def _place(material: Material, result: Answered) -> int:
    return next(i for i, asked in enumerate(material.questions) if asked is result.question)


def unknown(material: Material, result: Answered) -> str:
    """Return the share of the log's states with an infinite interval, as text; empty if none."""
    if result.intervals is None:
        return ""
    sample = material.facts.sample
    _, low, high = result.predict(sample[:: max(1, len(sample) // MAP_STATES)])
    share = float(np.isinf(high - low).mean())
    return percent(share) if share else ""


class Map(NamedTuple):
    """A picture of values over states."""

    figure: Figure
    over: str
    """The dimensions that it shows, in words."""
    others: str
    """The other dimensions, over which it averages."""


def map_of(material: Material, result: Answered) -> Map | None:
    """Draw the values over two dimensions, or over numbered states; None if states have neither."""
    facts, level = material.facts, material.plan.level
    sample = facts.sample[:: max(1, len(facts.sample) // MAP_STATES)]
    known = result.intervals is not None
    if facts.states is not None:
        if facts.states > answer_plots.FEW_STATES:
            return None
        counts = np.bincount(facts.sample, minlength=facts.states)
        seen = np.flatnonzero(counts)
        values, low, high = (np.full(facts.states, np.nan) for _ in range(3))
        values[seen], low[seen], high[seen] = result.predict(seen.astype(facts.sample.dtype))
        picture = answer_plots.numbered(
            values, low if known else None, high if known else None, counts
        )
        return Map(picture, "the states", "")
    if sample.ndim != 2 or sample.shape[1] < 2 or sample.dtype.names:
        return None
    values, low, high = result.predict(sample)
    pair = _dimensions(material, sample, values)
    points = sample[:, pair].astype(np.float64)
    names = [facts.names[i] for i in pair]
    picture = answer_plots.value_map(points, values, high - low if known else None, names, level)
    others = [name for i, name in enumerate(facts.names) if i not in pair]
    return Map(picture, " and ".join(names), " and ".join(others))


def _dimensions(material: Material, sample: Array, values: Floats) -> list[int]:
    """Return the two dimensions to show: those of the plan, or those that explain most."""
    chosen = build_question.dimensions(material.plan, material.facts)
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
