"""The studies that are known by name: the paper's experiments, as data.

Each is a function of the protocol and has the name of its figure. The protocol "paper" follows the
paper's text, with correct true values; "authors" has the settings that reproduce its authors'
curves. A step size multiplies the weighted sum over the batch, whose weights contain the 1/k.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gvf.common.part_names import known
from gvf.kernels import BETWEEN, PAPER
from gvf_lab import charts
from gvf_lab.domain.domain import PROTOCOLS
from gvf_lab.racing import racing_figure
from gvf_lab.study.base_study import BaseStudy, NamedStudy
from gvf_lab.study.study import Study
from gvf_lab.study.variance_study import VarianceStudy

VTRACE = ("V-trace(1.0)", "V-trace(0.5 max)", "V-trace(0.9 max)")
REWEIGHTING = ("IS", "WIS-Minibatch", "WIS-Buffer", "WIS-Optimal")
BATCH_METHODS = tuple(name for name, method in PAPER.items() if method.update != "wis-td")

GAPS = (*range(1, 9), 16, 24, 32, 48, 64, 80, 96, 114, 128, 160, 192, 224, 256)
"""Steps between updates."""


def _steps(first: float, step: float, last: float) -> tuple[float, ...]:
    """Return first, first + step, ..., last, rounded to six decimals."""
    return tuple(round(first + i * step, 6) for i in range(round((last - first) / step) + 1))


def _doublings(first: int, each: int, last: int) -> tuple[float, ...]:
    """Return 2^first to 2^last in equal factors, `each` to a doubling, with four digits."""
    # Rounding removes differences in the last bit of `pow` between platforms.
    powers = (2.0 ** (i / each) for i in range(first * each, last * each + 1))
    return tuple(float(f"{power:.4g}") for power in powers)


CATALOGUE: dict[str, NamedStudy] = {}
"""All studies known by name."""


def _enter(name: str, shows: str, make: Callable[[str], BaseStudy]) -> None:
    CATALOGUE[name] = NamedStudy(name, shows, make)


def _study(name: str, shows: str, family: Callable[[str], dict[str, Any]], **more: Any) -> None:
    """Enter a study with its family's settings and its own."""

    def make(protocol: str) -> Study:
        return Study(**{"name": name, "protocol": protocol, **family(protocol), **more})

    _enter(name, shows, make)


def get(name: str, protocol: str = "paper") -> BaseStudy:
    """Return a study by name.

    Example:
        >>> from gvf_lab.paper import named_studies as studies
        >>> study = studies.get("four-rooms-gap")
        >>> study.runs, len(study.gaps), len(study.step_sizes)
        (25, 21, 31)
    """
    entry = CATALOGUE[known(name, CATALOGUE, "study", "`gvf study list` shows all")]
    return entry.make(known(protocol, PROTOCOLS, "protocol"))


# Markov chain: a fixed buffer of 15,000 transitions. The protocols do not differ.


def _chain(protocol: str) -> dict[str, Any]:
    return {
        "domain": "markov-chain",
        "methods": BATCH_METHODS,
        "step_sizes": _steps(0.0, 0.1, 12.0),
        "steps": 15_000,
        "window": 15_000,
        "batch_size": 16,
        "updates": 1000,
        "points": 10,
        "runs": 100,
    }


_HARD = (("hard", "hard"),)
_study(
    "markov-step-size",
    "error against step size, hard pair (Fig. 4 left)",
    _chain,
    pairs=_HARD,
    methods=("IR", "BC-IR", *REWEIGHTING, "Sarsa", "Expected Sarsa", "On-policy"),
)
_study(
    "markov-vtrace",
    "V-trace with three clips, hard pair (Fig. 4 centre)",
    _chain,
    pairs=_HARD,
    methods=("IS", *VTRACE),
)
_study("markov-step-size-all", "error against step size, three pairs (appendix)", _chain)
_study(
    "markov-vtrace-all",
    "V-trace with three clips, three pairs (appendix)",
    _chain,
    methods=("IS", *VTRACE),
)
_enter(
    "markov-variance",
    "variance of updates, hard pair (Fig. 4 right)",
    lambda protocol: VarianceStudy("markov-variance", pairs=_HARD),
)
_enter(
    "markov-variance-all",
    "variance of updates, three pairs (authors' code)",
    lambda protocol: VarianceStudy("markov-variance-all"),
)


# Four Rooms with a table: the target goes down, and the behaviour rarely does in 25 cells.


def _four_rooms(protocol: str) -> dict[str, Any]:
    unscaled = (0.0, 0.001, 0.01, *_steps(0.025, 0.025, 0.2), *_steps(0.25, 0.05, 1.0))
    authors = protocol == "authors"
    # Two of the published step sizes are not in the paper's grid.
    scaled = sorted(round(16 * a, 6) for a in (*unscaled, *_steps(1.25, 0.25, 2.0)))
    scaled = sorted([*scaled, 3.6, 4.4]) if authors else scaled
    return {
        "domain": "four-rooms",
        "pairs": (("down", "random-state"),),
        "methods": ("IR", "BC-IR", *REWEIGHTING, *VTRACE, "Sarsa"),
        "step_sizes": tuple(scaled),
        "steps": 500_000 if authors else 250_000,
        "warm_up": 1000,
        "gaps": (16,),
        "window": 2500,
        "batch_size": 16,
        "error": "root mean square" if authors else "absolute",
        "points": 10,
        "runs": 25,
    }


def _four_rooms_step_size(protocol: str) -> dict[str, Any]:
    # The published errors are those of the left column.
    rooms = "four-rooms-left-column" if protocol == "authors" else "four-rooms"
    return _four_rooms(protocol) | {"domain": rooms}


_study(
    "four-rooms-learning-curves",
    "error against steps (Fig. 1 left)",
    _four_rooms,
    points=100,
)
_study(
    "four-rooms-gap",
    "error against steps between updates (Fig. 1 centre)",
    _four_rooms,
    gaps=GAPS,
)
_study("four-rooms-step-size", "error against step size (Fig. 1 right)", _four_rooms_step_size)
_study(
    "four-rooms-targets",
    "error against steps, two targets (not in the paper)",
    _four_rooms,
    pairs=(("down", "random-state"), ("favoured-down", "random-state")),
    methods=("IR", "IS", "WIS-Minibatch", *VTRACE),
    points=100,
)
_study(
    "four-rooms-step-size-often",
    "error against step size, gap 1 (authors' talk)",
    _four_rooms,
    methods=("IR", "IS", "WIS-Minibatch", "V-trace(1.0)"),
    gaps=(1,),
    # All published step sizes up to 3.6, and some of the larger ones.
    step_sizes=(
        *_steps(0.0, 0.1, 3.6), 4.3, 5.2, 6.6, 9.0, 14.2, 17.4, 18.6, 18.8, 20.6, 24.0, 26.0, 27.0,
        28.0, 28.4,
    ),
    error="absolute",
)  # fmt: skip


# Continuous Four Rooms: 64 tilings of 8x8 tiles.


def _continuous(protocol: str) -> dict[str, Any]:
    # The authors' IS is NormIS.
    plain = "NormIS" if protocol == "authors" else "IS"
    return {
        "domain": "continuous-four-rooms",
        "methods": ("IR", plain, "WIS-Minibatch", "V-trace(1.0)"),
        "steps": 100_000,
        "warm_up": 1000,
        "gaps": GAPS,
        "window": 15_000,
        "batch_size": 16,
        "measure_every": 100,
        "evaluation_states": 1000,
        "points": 10,
        "runs": 25,
    }


def _rmsprop(protocol: str) -> dict[str, Any]:
    return _continuous(protocol) | {
        "update": "rmsprop",
        "step_sizes": (1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3),
        "evaluation_states": 100 if protocol == "authors" else 1000,
    }


def _sgd(protocol: str) -> dict[str, Any]:
    return _continuous(protocol) | {
        "update": "sgd",
        "step_sizes": _steps(0.0, 0.025, 1.0),
        "evaluation_states": 100 if protocol == "authors" else 1000,
    }


def _incremental(protocol: str) -> dict[str, Any]:
    shared = _continuous(protocol)
    # The published curves of WIS-TD(0) and IR+WIS-TD(0) have one u0 each.
    u0 = (1.0, 10.0) if protocol == "authors" else (1 / 64, 1.0, 5.0, 10.0, 50.0)
    return shared | {
        "update": "incremental",
        "methods": (*shared["methods"], "WIS-TD(0)", "IR+WIS-TD(0)"),
        "step_sizes": tuple(a / 64 for a in _steps(0.0, 0.05, 1.0)),
        "u0": tuple(64 * u for u in u0),
        # Rounding removes differences in the last bit of `pow` between platforms.
        "mu": tuple(float(f"{10.0**exponent:.12g}") for exponent in _steps(-2.0, 0.25, 1.0)),
    }


_study(
    "continuous-incremental",
    "incremental, favoured-down / uniform (Fig. 2 left)",
    _incremental,
    pairs=(("favoured-down", "uniform"),),
)
_study(
    "continuous-rmsprop",
    "mini-batch RMSProp, down / uniform (Fig. 2 right)",
    _rmsprop,
    pairs=(("down", "uniform"),),
)
_study("continuous-sgd-all", "mini-batch SGD, 2 targets x 3 behaviours (appendix)", _sgd)
_study("continuous-rmsprop-all", "RMSProp, 2 targets x 3 behaviours (appendix)", _rmsprop)
_study(
    "continuous-incremental-all",
    "incremental, 2 targets x 3 behaviours (appendix)",
    _incremental,
)
_study(
    "continuous-sgd-step-size-all",
    "SGD against step size, gap 1 (appendix)",
    _sgd,
    gaps=(1,),
    # The paper's grid begins at .025. Most ranges begin below it, and IS has its best there.
    step_sizes=(0.0, *(0.0001 * 2**i for i in range(8)), *_steps(0.025, 0.025, 1.0)),
)

# The racing car is a slice of its own, and so are the charts.

CATALOGUE.update({study.name: study for study in (*racing_figure.STUDIES, *charts.STUDIES)})

# Between IS and IR, not in the paper: can a ratio that is split between draw and weight beat both?
# Each method's best step size lies well inside these grids.

_ENDS_AND_BETWEEN = ("IS", "IR", "BC-IR", *BETWEEN)
_study(
    "interpolation-chain",
    "between IS and IR: chain, three pairs",
    _chain,
    methods=_ENDS_AND_BETWEEN,
    step_sizes=_doublings(-5, 8, 4),
    runs=200,
)
_study(
    "interpolation-rooms",
    "between IS and IR: Four Rooms, two gaps",
    _four_rooms,
    methods=_ENDS_AND_BETWEEN,
    pairs=(("down", "random-state"), ("favoured-down", "random-state")),
    gaps=(4, 128),
    step_sizes=_doublings(-4, 8, 6),
    runs=100,
)
_study(
    "interpolation-tiles",
    "between IS and IR: continuous Four Rooms",
    _continuous,
    methods=_ENDS_AND_BETWEEN,
    update="incremental",
    pairs=(("favoured-down", "uniform"), ("favoured-down", "random-state-weight")),
    gaps=(16, 128),
    step_sizes=_doublings(-19, 4, -5),
    measure_every=200,
    runs=40,
)

# Emphatic corrections on the paper's domains, not in the paper: once with the errors of the paper's
# figures, and once with states that count by their emphasis. Walks and draws are the same in both.
# The grids begin far below the paper's, since emphatic IS needs small step sizes.

EMPHATIC_GAPS = (4, 16, 256)


def _emphatic(name: str, shows: str, family: Callable[[str], dict[str, Any]], **more: Any) -> None:
    """Enter a study with plain and emphatic methods under both weightings of states."""

    def settings(protocol: str, weighting: str = "") -> dict[str, Any]:
        shared = family(protocol)
        plain = "IS" if "IS" in shared["methods"] else "NormIS"
        emphatic = ("Emphatic IR", "Emphatic IS", "Emphatic WIS-Minibatch")
        return shared | {
            "domain": shared["domain"] + weighting,
            "methods": ("IR", plain, "WIS-Minibatch", *emphatic),
        }

    _study(name, shows, settings, **more)
    _study(
        f"{name}-by-emphasis",
        f"{shows}, by emphasis",
        lambda protocol: settings(protocol, "-emphasis"),
        **more,
    )


_emphatic(
    "emphatic-rooms",
    "emphatic methods: Four Rooms",
    _four_rooms,
    gaps=EMPHATIC_GAPS,
    step_sizes=_doublings(-12, 4, 5),
)
_emphatic(
    "emphatic-tiles",
    "emphatic methods: tiles, incremental",
    _incremental,
    pairs=(("favoured-down", "uniform"),),
    gaps=EMPHATIC_GAPS,
    step_sizes=_doublings(-20, 2, -5),
    u0=(),
    mu=(),
)
_emphatic(
    "emphatic-rmsprop",
    "emphatic methods: tiles, RMSProp",
    _rmsprop,
    pairs=(("down", "uniform"),),
    gaps=EMPHATIC_GAPS,
)
_emphatic(
    "emphatic-chain",
    "emphatic methods: chain, hard pair",
    _chain,
    pairs=_HARD,
    step_sizes=_doublings(-12, 4, 4),
)

_study(
    "quick-check",
    "a few seconds on the chain, to see that all works",
    _chain,
    methods=("IR", "IS", "WIS-Optimal", "On-policy"),
    step_sizes=_steps(0.0, 0.5, 8.0),
    updates=500,
    runs=10,
)
