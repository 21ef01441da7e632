"""The charts as figures: for each task one of online algorithms, others of draws from a window.

`chart_figures.toml` has the claims.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gvf_lab import domain as domains
from gvf_lab.charts import chart_statistics
from gvf_lab.charts.chart_pictures import (
    BEST,
    CURVES,
    PANELS,
    QUANTITY,
    TOP,
    TRACES,
    chart_points_by_step_size,
)
from gvf_lab.charts.chart_studies import STUDIES, WINDOW, draws_of
from gvf_lab.domain import TabularDomain
from gvf_lab.figure.families import ClaimFile
from gvf_lab.figure.figure import Axes, Figure
from gvf_lab.study.study import ACTIVE

TITLES = {
    "collision": "Collision",
    "rooms": "Rooms",
    "high-variance-rooms": "High Variance Rooms",
}
"""The tasks, each with its title."""
CLAIMS = ClaimFile(__name__, chart_statistics)
AXES = Axes("step size", f"{QUANTITY}, averaged over the run", x_log=True, y_top=TOP)
QUICK: dict[str, Any] = {
    "runs": 10,
    "step_sizes": tuple(2.0**-x for x in range(0, 19, 2)),
}
QUICK_ONLINE: dict[str, Any] = QUICK | {
    "trace_decays": (0.0, 0.5, 0.9, 1.0),
    "zetas": (0.0, 0.5, 0.9, 1.0),
    "etas": (0.0625, 1.0, 16.0),
    "betas": (0.2, 0.6, 0.8),
}
HALVES = (
    "The first half of the runs chose parameters, and everything shown comes from the second half."
)
ITSELF = "that step itself"
STREAMS = "The streams are those of the online algorithms."
GRID = (
    "All parameters but the step size are those with the lowest error, chosen anew for every step "
    "size; on the right lambda and zeta are 0. Second step sizes have the even exponents of the "
    "published grid."
)


@cache
def active_share(domain: str) -> float:
    """Compute the share of steps at which a question of a task is active, averaged over questions.

    Example:
        >>> from gvf_lab.charts.chart_figures import active_share
        >>> round(active_share("collision"), 9), round(active_share("rooms"), 2)
        (1.0, 0.25)
    """
    world = domains.get(domain)
    assert isinstance(world, TabularDomain)
    return float(np.mean([world.visits(b)[world.active_cells(q)].sum() for q, b in world.pairs]))


def _equal(domain: str, size: int, when: str) -> bool:
    """Return True if draws have as many updates and samples as online algorithms."""
    return size == 1 and (when == ACTIVE or round(active_share(domain), 9) == 1.0)


def _note(domain: str, drawn: str, size: int, when: str) -> str:
    """Say which runs are shown, when updates come, and how many updates and samples there are."""
    share = active_share(domain)
    often = share if when == ACTIVE else 1.0
    where = " at which a question is active" if when == ACTIVE else ""
    equal = drawn != ITSELF and _equal(domain, size, when)
    online = ", as many of both as online algorithms have" if equal else ""
    return (
        f"{HALVES} An update comes after every step{where}, from {drawn}. A question is active at "
        f"{100 * share:.3g} % of the steps, on average over questions. Updates a step and "
        f"question: {often:.3g}; samples: {size * often:.3g}{online}."
    )


def _figures() -> tuple[Figure, ...]:
    sources = {source.name: source for source in STUDIES}
    figures = []
    for domain, title in TITLES.items():
        note = f"{_note(domain, ITSELF, 1, ACTIVE)} {GRID}"
        online = Figure(
            sources[f"{domain}-online"],
            f"{title}: online algorithms with traces",
            "",
            AXES,
            chart_points_by_step_size,
            quick=QUICK_ONLINE,
            claims_of=CLAIMS,
            notes={"paper": note, "authors": note},
            panels=PANELS,
            companions=(CURVES, BEST, TRACES),
            part=title,
            fresh=True,
            world=title,
        )
        figures.append(online)
        for end, how in draws_of(domain).items():
            size, when = how["batch_size"], how.get("when", "")
            drawn = f"{size} transition{'s'[: size - 1]} drawn from the last {WINDOW:,}"
            note = f"{_note(domain, drawn, size, when)} {STREAMS}"
            active = ", while active" if when == ACTIVE else ""
            window = Figure(
                sources[f"{domain}-{end}"],
                f"{title}: mini-batches of {size} from a window{active}",
                "",
                AXES,
                chart_points_by_step_size,
                quick=QUICK,
                claims_of=CLAIMS,
                notes={"paper": note, "authors": note},
                companions=(CURVES, BEST),
                part=title,
                fresh=True,
                world=title,
            )
            figures.append(window)
    return tuple(figures)


FIGURES = _figures()
"""All charts."""
