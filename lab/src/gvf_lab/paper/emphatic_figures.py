"""Emphatic corrections on the paper's domains: where they would have stood in Figures 1, 2 and 4.

Emphasis changes the fixed point of a linear method (:mod:`gvf.corrections.emphatic_corrections`).
In a table every fixed point is the true values, so emphasis has nothing to gain there. It has a
cost, the variance of the follow-on trace, and it shifts accuracy towards states that follow from
many others. The figures measure both, and whether the tiles of the continuous rooms leave it
something to gain.

Each figure exists twice. One has the errors of the paper's figure: states count equally in a table,
and as often as the behaviour visits them in the continuous rooms. The other, "by emphasis", weighs
states by d_mu(s) E[F | s], as emphatic methods themselves do. Walks and draws are the same.
`emphatic_figures.toml` has the claims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf_lab.figure.families import ClaimFile
from gvf_lab.figure.figure import Axes, Figure, Point
from gvf_lab.figure.points import points_by_gap, points_by_step_size, points_by_updates
from gvf_lab.figure.statistics import named
from gvf_lab.paper import continuous_four_rooms_figures as tiles
from gvf_lab.paper import four_rooms_figures as rooms
from gvf_lab.paper import markov_chain_figures as chain
from gvf_lab.paper.grids import Settings, doublings, study_from
from gvf_lab.study.results import Results

GAPS = (4, 16, 256)
METHODS = ("Emphatic IR", "Emphatic IS", "Emphatic WIS-Minibatch")
WEIGHTED = (
    "Errors weigh states by emphasis: the share of the behaviour's visits times the mean of the "
    "follow-on trace. Otherwise as {figure}, with the same walks and draws."
)


def _found_ratio(results: Results, method: str, other: str, gap: int | None) -> Array:
    """Return the best error on the grid of one method over that of another at a gap, [1 + B]."""
    first, second = (results.best(named(results, name), gap) for name in (method, other))
    return first / second


def least_found_ratio(results: Results, method: str, other: str) -> Array:
    """Return the best error on the grid of one method over that of another, smallest of all gaps.

    It has no bounds: an error is the one that was found, also at an end of the grid.
    """
    return np.min([_found_ratio(results, method, other, gap) for gap in results.study.gaps], axis=0)


def found_ratio_over_that_of_figure(
    results: Results, others: Results, method: str, other: str, gap: int
) -> Array:
    """Return an error ratio of another figure over the same of this one, at a gap."""
    theirs = _found_ratio(others, method, other, gap)
    return theirs / _found_ratio(results, method, other, gap)


CLAIMS = ClaimFile(__name__)


def _both(
    name: str,
    shows: str,
    settings: Settings,
    title: str,
    where: str,
    axes: Axes,
    read: Callable[[Results], Sequence[Point]],
    notes: Mapping[str, str],
    figure: Mapping[str, Any],
    **more: Any,
) -> tuple[Figure, Figure]:
    """Make the figure with the paper's weighting of states, and the one by emphasis.

    `figure` has further fields of the figures, `more` further settings of the studies. The grids
    begin far below the paper's, since emphatic IS needs small step sizes.
    """

    def emphatic(protocol: str, weighting: str = "") -> dict[str, Any]:
        shared = settings(protocol)
        plain = "IS" if "IS" in shared["methods"] else "NormIS"
        return shared | {
            "domain": shared["domain"] + weighting,
            "methods": ("IR", plain, "WIS-Minibatch", *METHODS),
        }

    plain = Figure(
        study_from(name, shows, emphatic, **more),
        f"{title}, with emphasis",
        f"beside {where}",
        axes,
        read,
        main=False,
        ours=True,
        claims_of=CLAIMS,
        notes=notes,
        **figure,
    )
    by_emphasis = f"{name}-by-emphasis"
    weighted = replace(
        plain,
        source=study_from(
            by_emphasis,
            f"{shows}, by emphasis",
            lambda protocol: emphatic(protocol, "-emphasis"),
            **more,
        ),
        title=f"{plain.title}, states weighted by it",
        notes=dict.fromkeys(notes, WEIGHTED.format(figure=name)),
    )
    return plain, weighted


FIGURES = (
    *_both(
        "emphatic-rooms",
        "emphatic methods: Four Rooms",
        rooms.four_rooms,
        "Four Rooms: the fewer updates",
        "Fig. 1 centre",
        rooms.GAP.axes,
        points_by_gap,
        rooms.NOTES,
        {"quick": {"runs": 8}, "measured": rooms.MEASURED, "world": "Four Rooms"},
        gaps=GAPS,
        step_sizes=doublings(-12, 4, 5),
    ),
    *_both(
        "emphatic-tiles",
        "emphatic methods: tiles, incremental",
        tiles.incremental,
        "Continuous Four Rooms: one by one, favoured-down / uniform",
        "Fig. 2 left",
        tiles.UPDATES,
        points_by_updates,
        tiles.NOTES,
        {"quick": {"runs": 8}, "world": "Continuous Four Rooms"},
        pairs=(("favoured-down", "uniform"),),
        gaps=GAPS,
        step_sizes=doublings(-20, 2, -5),
        u0=(),
        mu=(),
    ),
    *_both(
        "emphatic-rmsprop",
        "emphatic methods: tiles, RMSProp",
        tiles.rmsprop,
        "Continuous Four Rooms: RMSProp, down / uniform",
        "Fig. 2 right",
        tiles.UPDATES,
        points_by_updates,
        tiles.NOTES,
        {"quick": {"runs": 8}, "world": "Continuous Four Rooms"},
        pairs=(("down", "uniform"),),
        gaps=GAPS,
    ),
    *_both(
        "emphatic-chain",
        "emphatic methods: chain, hard pair",
        chain.chain,
        "Markov chain: sensitivity to the step size",
        "Fig. 4 left",
        replace(chain.ERROR, x_log=True),
        points_by_step_size,
        chain.NOTES,
        {"world": "Markov chain"},
        pairs=chain.HARD,
        step_sizes=doublings(-12, 4, 4),
    ),
)
