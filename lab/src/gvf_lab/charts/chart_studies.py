"""The studies of the charts: eleven online algorithms, and draws from a window, on three tasks.

The grids of the online algorithms are the published ones. Methods with a window make an update
after every step, from mini-batches of 16 or of 1, and learn from the same streams as the online
algorithms. Online algorithms make an update only after steps at which a question is active. Where
this makes a difference, a third study does the same with mini-batches of 1, so that the numbers of
updates and of samples are equal. Half of the runs choose parameters, and the others are reported.
"""

from __future__ import annotations

from typing import Any

from gvf_lab.study.base_study import NamedStudy
from gvf_lab.study.online_study import NAMED, OnlineStudy
from gvf_lab.study.study import ACTIVE, Study

STEPS = {"collision": 20_000, "rooms": 50_000, "high-variance-rooms": 50_000}
"""The tasks, each with the number of steps of a run."""
STEP_SIZES = tuple(2.0**-x for x in range(19))
TRACE_DECAYS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 0.875, 0.9, 0.9375, 0.96875, 0.984375, 1.0)
ETAS = tuple(2.0**x for x in range(-6, 9, 2))
BETAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
WINDOW_METHODS = (
    "IR",
    "BC-IR",
    "WIS-Minibatch",
    "V-trace(1.0)",
    "Emphatic IR",
    "Emphatic BC-IR",
    "Emphatic WIS-Minibatch",
    "Emphatic IS",
)
WINDOW, RUNS, POINTS = 15_000, 100, 20
DRAWS: dict[str, dict[str, Any]] = {
    "window": {"batch_size": 16},
    "window-1": {"batch_size": 1},
    "active": {"batch_size": 1, "when": ACTIVE},
}
"""The settings of studies with a window, by the end of the study's name."""


def draws_of(domain: str) -> dict[str, dict[str, Any]]:
    """Return the settings of a task's studies with a window, by the end of the study's name.

    The question of Collision is active at every step, so there "active" equals "window-1".
    """
    every = domain == "collision"
    return {end: how for end, how in DRAWS.items() if not (every and how.get("when") == ACTIVE)}


def _online(domain: str) -> NamedStudy:
    name = f"{domain}-online"

    def make(protocol: str) -> OnlineStudy:
        return OnlineStudy(
            name,
            domain,
            tuple(NAMED),
            step_sizes=STEP_SIZES,
            trace_decays=TRACE_DECAYS,
            etas=ETAS,
            betas=BETAS,
            zetas=TRACE_DECAYS,
            steps=STEPS[domain],
            points=POINTS,
            runs=RUNS,
        )

    return NamedStudy(name, "eleven online algorithms with traces", make)


def _window(domain: str, end: str) -> NamedStudy:
    name, how = f"{domain}-{end}", DRAWS[end]

    def make(protocol: str) -> Study:
        return Study(
            name,
            domain,
            WINDOW_METHODS,
            STEP_SIZES,
            protocol,
            steps=STEPS[domain],
            window=WINDOW,
            error="root mean square",
            points=POINTS,
            runs=RUNS,
            **how,
        )

    where = "at active steps" if "when" in how else "from a window"
    shows = f"draws of {how['batch_size']} {where}, plain and emphatic"
    return NamedStudy(name, shows, make)


STUDIES = tuple(
    study
    for domain in STEPS
    for study in (_online(domain), *(_window(domain, end) for end in draws_of(domain)))
)
"""All studies of the charts."""
