"""Emphatic corrections on the paper's domains: where they would have stood in Figures 1, 2 and 4.

Emphasis changes the fixed point of a linear method (:mod:`gvf.corrections.emphatic_corrections`).
In a table every fixed point is the true values, so emphasis has nothing to gain there. It has a
cost, the variance of the follow-on trace, and it shifts accuracy towards states that follow from
many others. The figures measure both, and whether the tiles of the continuous rooms leave it
something to gain.

Each figure exists twice. One has the errors of the paper's figure: states count equally in a table,
and as often as the behaviour visits them in the continuous rooms. The other, "by emphasis", weighs
states by d_mu(s) E[F | s], as emphatic methods themselves do. Walks and draws are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf_lab.figure.claim import Claim
from gvf_lab.figure.figure import Axes, Figure, Point
from gvf_lab.figure.history import HistoryEntry
from gvf_lab.figure.points import points_by_gap, points_by_step_size, points_by_updates
from gvf_lab.figure.statistics import Bounds, named
from gvf_lab.paper import continuous_four_rooms_figures, four_rooms_figures, markov_chain_figures
from gvf_lab.paper.comparisons import PASSES, STEPS_TIE, TIE, bears_more, compared
from gvf_lab.paper.named_studies import CATALOGUE
from gvf_lab.study.results import Results

Places = Mapping[int | None, str]
"""Gaps at which methods are compared, each with words for it; None is the only gap."""

EVERY: Places = {gap: f"an update every {gap} steps" for gap in (4, 16, 256)}
UPDATES: Places = {**continuous_four_rooms_figures.UPDATES_AT}
STEP_SIZE_GAP = 16
"""The gap of Figure 1 right."""
HISTORY = (
    HistoryEntry(
        "2026-11-16: written before any result of an emphatic method on the paper's domains was "
        "seen. Known was that in a table emphasis has no better fixed point to offer, and that "
        "with every step of the target the follow-on trace grows by gamma rho, 3.6 to 18 here."
    ),
)
NOT_AHEAD = 1 / 1.1
NOT_AHEAD_WHY = (
    "The sentence says not ahead. Errors that differ by less than a tenth count as a tie, as in "
    "other comparisons."
)
NO_EXCEPTION = f"{TIE} The smallest ratio counts, so that no number of updates is left out."
PLAIN = {"Emphatic WIS-Minibatch": "WIS-Minibatch", "Emphatic IS": "IS"}
"""The plain forms of emphatic methods that draw uniformly."""
SLUGS = {
    "IS": "is",
    "Emphatic IS": "emphatic-is",
    "Emphatic WIS-Minibatch": "emphatic-wis-minibatch",
}
KEPT_WINDOW = (
    "The window is kept, and few of its transitions have most of the mass rho F. So the values to "
    "which its draws lead are off by more than the whole error of IR."
)
MOST_COUNTED = (
    f"{KEPT_WINDOW} They are off most in the states that emphasis counts most, which follow from "
    "long runs towards the target."
)
MILD_RATIOS = "Ratios are at most 3.6 here. So with many updates IS is nearly as good as IR."
SELDOM_VISITED = (
    "Half of the cells get 4 % of the behaviour's visits. Errors are large there with both "
    "methods, and differ by a smaller factor. By emphasis these cells count less."
)
WEIGHTED = (
    "Errors weigh states by emphasis: the share of the behaviour's visits times the mean of the "
    "follow-on trace. Otherwise as {figure}, with the same walks and draws."
)


def _over(results: Results, first: str, second: str, gap: int | None) -> Array:
    """Return the best error of one method over that of another at a gap, [1 + B]."""
    return results.best(named(results, first), gap) / results.best(named(results, second), gap)


def _claim(
    id: str, sentence: str, measure: str, statistic: Callable[..., Array | Bounds], **more: Any
) -> Claim:
    settings: dict[str, Any] = {"least": 1.0, "why": TIE, "history": HISTORY} | more
    return Claim(id, sentence, measure, statistic, protocols=("paper",), **settings)


def _always(id: str, sentence: str, first: str, second: str, places: Places) -> Claim:
    """Make the claim that one method's error is above that of another at all places."""
    return _claim(
        id,
        sentence,
        f"error of {first} over that of {second}, averaged over the run, best step sizes"
        f"{', smallest over the numbers of updates' if len(places) > 1 else ''}",
        lambda results: np.min([_over(results, first, second, gap) for gap in places], axis=0),
        why=NO_EXCEPTION if len(places) > 1 else TIE,
    )


def _costs(places: Places, by_emphasis: bool) -> tuple[Claim, ...]:
    """Make the claims that emphasis gains nothing, for each method that has an emphatic form."""
    if by_emphasis:
        id, says = "emphatic-ir-not-ahead", "Emphatic IR is not ahead of IR"
        kept = {"least": NOT_AHEAD, "why": NOT_AHEAD_WHY}
    else:
        id, says = "emphatic-ir-behind", "Emphatic IR has a higher error than IR"
        kept = {"least": 1.0, "why": TIE}
    return (
        *(
            compared(
                id, says, "Emphatic IR", "IR", gap=gap, at=at, history=HISTORY,
                protocols=("paper",), **kept,
            )
            for gap, at in places.items()
        ),
        *(
            _always(
                f"{SLUGS[emphatic]}-behind",
                f"{emphatic} has a higher error than {plain}.",
                emphatic,
                plain,
                places,
            )
            for emphatic, plain in PLAIN.items()
        ),
    )  # fmt: skip


def _stands(places: Places, because: str) -> tuple[Claim, ...]:
    """Make the claims that emphatic IR beats the methods that draw uniformly."""
    claims = (
        _always(
            f"emphatic-ir-beats-{SLUGS[other]}",
            f"Emphatic IR has a lower error than {other}.",
            other,
            "Emphatic IR",
            places,
        )
        for other in (*PLAIN, "IS")
    )
    return tuple(replace(claim, because=because) for claim in claims)


def _at(results: Results, gap: int | None) -> Results:
    """Return the results at one gap alone."""
    return results if gap is None else replace(results, study=results.study.with_(gaps=(gap,)))


def _step_sizes(gap: int | None) -> tuple[Claim, ...]:
    """Make the claims about the step sizes that methods bear."""

    def more(id: str, first: str, second: str) -> Claim:
        return _claim(
            id,
            f"{first} bears larger step sizes than {second}.",
            f"{PASSES}, that of {first} over that of {second}",
            lambda results: bears_more(first, second)(_at(results, gap)),
            why=STEPS_TIE,
        )

    return (
        more("ir-bears-larger-steps-than-emphatic-ir", "IR", "Emphatic IR"),
        more("emphatic-ir-bears-larger-steps-than-emphatic-is", "Emphatic IR", "Emphatic IS"),
    )


def _nearer(figure: str, places: Places, because: str) -> tuple[Claim, ...]:
    """Make the claims that emphatic IR is nearer to IR if states count by their emphasis."""

    def nearer(gap: int | None, at: str) -> Claim:
        end = f"-{at.replace(' ', '-').replace(',', '')}" if at else ""
        return _claim(
            f"emphatic-ir-nearer{end}",
            f"By emphasis, emphatic IR is nearer to IR{f' ({at})' if at else ''}.",
            "error of Emphatic IR over that of IR, best step sizes, with the paper's weighting of "
            "states over the same by emphasis",
            lambda results, equal: (
                _over(equal, "Emphatic IR", "IR", gap) / _over(results, "Emphatic IR", "IR", gap)
            ),
            needs=(figure,),
            because=because,
        )

    return tuple(nearer(gap, at) for gap, at in places.items())


def _both(
    name: str,
    title: str,
    where: str,
    axes: Axes,
    read: Callable[[Results], list[Point]],
    places: Places,
    notes: Mapping[str, str],
    steps: tuple[Claim, ...] = (),
    behind: str = "",
    farther: str = "",
    **more: Any,
) -> tuple[Figure, Figure]:
    """Make the figure with the paper's weighting of states, and the one by emphasis.

    `behind` is the reason why emphatic IR does not beat methods that draw uniformly, and `farther`
    the reason why it is not nearer to IR by emphasis, if known.
    """
    plain = Figure(
        CATALOGUE[name],
        f"{title}, with emphasis",
        f"beside {where}",
        axes,
        read,
        main=False,
        ours=True,
        claims=(*_costs(places, by_emphasis=False), *_stands(places, behind), *steps),
        notes=notes,
        **more,
    )
    weighted = replace(
        plain,
        source=CATALOGUE[f"{name}-by-emphasis"],
        title=f"{plain.title}, states weighted by it",
        claims=(
            *_costs(places, by_emphasis=True),
            *_stands(places, behind),
            *_nearer(name, places, farther),
        ),
        notes=dict.fromkeys(notes, WEIGHTED.format(figure=name)),
    )
    return plain, weighted


FIGURES = (
    *_both(
        "emphatic-rooms",
        "Four Rooms: the fewer updates",
        "Fig. 1 centre",
        four_rooms_figures.GAP.axes,
        points_by_gap,
        EVERY,
        four_rooms_figures.NOTES,
        _step_sizes(STEP_SIZE_GAP),
        farther=SELDOM_VISITED,
        quick={"runs": 8},
        measured=four_rooms_figures.MEASURED,
        world="Four Rooms",
    ),
    *_both(
        "emphatic-tiles",
        "Continuous Four Rooms: one by one, favoured-down / uniform",
        "Fig. 2 left",
        continuous_four_rooms_figures.UPDATES,
        points_by_updates,
        UPDATES,
        continuous_four_rooms_figures.NOTES,
        behind=MILD_RATIOS,
        quick={"runs": 8},
        world="Continuous Four Rooms",
    ),
    *_both(
        "emphatic-rmsprop",
        "Continuous Four Rooms: RMSProp, down / uniform",
        "Fig. 2 right",
        continuous_four_rooms_figures.UPDATES,
        points_by_updates,
        UPDATES,
        continuous_four_rooms_figures.NOTES,
        quick={"runs": 8},
        world="Continuous Four Rooms",
    ),
    *_both(
        "emphatic-chain",
        "Markov chain: sensitivity to the step size",
        "Fig. 4 left",
        replace(markov_chain_figures.ERROR, x_log=True),
        points_by_step_size,
        {None: ""},
        markov_chain_figures.NOTES,
        _step_sizes(None),
        behind=KEPT_WINDOW,
        farther=MOST_COUNTED,
        world="Markov chain",
    ),
)
