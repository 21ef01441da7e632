"""The charts as figures: for each task one of online algorithms, and two of draws from a window."""

from __future__ import annotations

from typing import Any

from gvf.charts.claims import COLLISION, HIGH_VARIANCE_ROOMS, ROOMS, emphatic_resampling
from gvf.charts.pictures import BEST, CURVES, QUANTITY, TOP, TRACES
from gvf.charts.reading import PANELS, against_step_size
from gvf.charts.studies import BATCHES, STUDIES
from gvf.figure.claim import Claim
from gvf.figure.figure import Axes, Figure

TASKS: dict[str, tuple[str, tuple[Claim, ...]]] = {
    "collision": ("Collision", COLLISION),
    "rooms": ("Rooms", ROOMS),
    "high-variance-rooms": ("High Variance Rooms", HIGH_VARIANCE_ROOMS),
}
"""The tasks, each with its title and the published statements about it."""
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
ONLINE_NOTE = (
    f"{HALVES} One update after every step at which a question is active. All parameters but the "
    "step size are those with the lowest error, chosen anew for every step size; on the right "
    "lambda and zeta are 0. Second step sizes have the even exponents of the published grid."
)


def _figures() -> dict[str, Figure]:
    sources = {source.name: source for source in STUDIES}
    found = {}
    for domain, (title, published) in TASKS.items():
        note = {"paper": ONLINE_NOTE, "authors": ONLINE_NOTE}
        found[f"{domain}-online"] = Figure(
            sources[f"{domain}-online"],
            f"{title}: online algorithms with traces",
            "",
            AXES,
            against_step_size,
            quick=QUICK_ONLINE,
            claims=published,
            notes=note,
            panels=PANELS,
            companions=(CURVES, BEST, TRACES),
            part=title,
            fresh=True,
        )
        for end, size in BATCHES.items():
            told = (
                f"{HALVES} One update after every step, from {size} transition{'s'[: size - 1]} "
                "drawn from the last 15,000. The streams are those of the online algorithms."
            )
            found[f"{domain}-{end}"] = Figure(
                sources[f"{domain}-{end}"],
                f"{title}: mini-batches of {size} from a window",
                "",
                AXES,
                against_step_size,
                quick=QUICK,
                claims=emphatic_resampling(domain),
                notes={"paper": told, "authors": told},
                companions=(CURVES, BEST),
                part=title,
                fresh=True,
            )
    return found


FIGURES = _figures()
"""All charts, by id."""
