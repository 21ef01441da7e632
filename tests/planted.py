"""Artificial results: given number by number, or with a planted truth.

With a planted truth every method has the same error, at every step size up to the same limit,
unless the truth says otherwise. Runs differ by a factor that all methods share, and a little by
another factor for each method.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gvf.figure import Figure
from gvf.racing import RacingStudy
from gvf.study import Study, VarianceStudy
from gvf.study.results import MethodResults, Pair, Results
from gvf.study.variance import NORMS

DOWN = ("down", "uniform")
"""A pair of the Four Rooms."""


def by_hand(errors: dict[Any, Any], protocol: str = "paper", **settings: Any) -> Results:
    """Make results with these errors, by (pair, gap, method), and flat curves."""
    keys = list(errors)
    given: dict[str, Any] = {
        "domain": "four-rooms", "methods": tuple(dict.fromkeys(key[2] for key in keys)),
        "step_sizes": (0.5, 1.0, 2.0), "pairs": tuple(dict.fromkeys(key[0] for key in keys)),
        "gaps": tuple(dict.fromkeys(key[1] for key in keys)), "steps": 1010, "warm_up": 10,
        "points": 1, "runs": len(errors[keys[0]]),
    }  # fmt: skip
    study = Study("hand", **(given | settings))
    cells = {}
    for (pair, gap, method), rows in errors.items():
        error = np.array(rows, np.float64)
        curve = np.repeat(error[:, :, None], study.points, axis=2)
        steps = np.broadcast_to(study.curve_steps(study.points), curve.shape)
        columns = {"error": error, "final": error, "curve": curve, "curve_steps": steps}
        cells[pair, gap, method] = MethodResults(study.choices(method), columns)
    return Results(study, protocol, cells)


ERROR = 0.6
"""The error of every method up to its limit."""
BEYOND = 1.5
"""The error beyond the limit: more than 1, and more than twice the best."""
LIMIT = 4.0
"""The largest step size with error ``ERROR``, in the grids of all figures that use it."""
CONSTANT = 1.0
"""The error of the best constant, with images: between ``ERROR`` and ``BEYOND``."""
EARLY, LATE = 1.0, 0.01
"""The variance of updates in the first hundred iterations, and after them."""

NOTHING = 1e-4
"""The error, and the variance, of methods that do not matter."""

Factors = Mapping[str, float]


@dataclass(frozen=True)
class Truth:
    """A planted truth. A method that is not named has the factor 1; IS also means NormIS.

    Attributes:
        error: the factors of the error.
        few: further factors with the fewest updates.
        few_in: further factors with the fewest updates, for one pair only.
        few_with_u0: further factors with the fewest updates, for one u0 of WIS-TD(0) only.
        end: further factors in the last tenth of the run.
        limit: the step sizes up to which methods have this error.
        early: the factors of the early variance of updates.
        late: the factors of the late variance of updates.
        elsewhere: the truth planted in the other figures that a claim needs.
    """

    error: Factors = field(default_factory=dict)
    few: Factors = field(default_factory=dict)
    few_in: Mapping[Pair, Factors] = field(default_factory=dict)
    few_with_u0: Mapping[float, float] = field(default_factory=dict)
    end: Factors = field(default_factory=dict)
    limit: Factors = field(default_factory=dict)
    early: Factors = field(default_factory=dict)
    late: Factors = field(default_factory=dict)
    elsewhere: "Truth | None" = None

    def errors(self, study: Study | RacingStudy, pair: Pair, gap: int, method: str) -> list[float]:
        """Return the error of every choice of a method."""
        name = plain(method)
        few = gap == max(study.gaps)
        level = ERROR * self.error.get(name, 1.0)
        if few:
            level *= self.few.get(name, 1.0) * self.few_in.get(pair, {}).get(name, 1.0)
        limit = self.limit.get(name, LIMIT)

        def error(lane: Any) -> float:
            if isinstance(lane, tuple):
                return level * (self.few_with_u0.get(lane[0], 1.0) if few else 1.0)
            return level if lane <= limit else BEYOND

        return [error(lane) for lane in study.choices(method)]


def plain(method: str) -> str:
    """Return the name by which a truth refers to a method."""
    return "IS" if method == "NormIS" else method


def planted(
    figure: Figure,
    protocol: str,
    truths: Sequence[Truth],
    *,
    about: Collection[str] = (),
    runs: int = 8,
    shared: float = 0.15,
    own: float = 0.002,
) -> Results:
    """Make results of a figure at the scale "quick", with planted truths.

    Args:
        figure: the figure.
        protocol: the protocol.
        truths: the truths; if there are several, runs use them in turn.
        about: the methods that they are about; by default all. The errors and variances of the
            others are tiny at every step size.
        runs: the number of runs.
        shared: the variation over runs that all methods share.
        own: the variation over runs of each method.
    """
    study = figure.study(protocol, "quick", runs)
    rng = np.random.default_rng([runs, len(study.methods)])
    factor = rng.uniform(1 - shared, 1 + shared, runs)
    told = [truths[run % len(truths)] for run in range(runs)]

    def noisy(values: np.ndarray, method: str) -> np.ndarray:
        """Multiply the values of each run by the shared factor and the method's own."""
        if about and plain(method) not in about:
            values = np.full_like(values, NOTHING)
        noise = factor * rng.uniform(1 - own, 1 + own, runs)
        return values * noise.reshape(-1, *[1] * (values.ndim - 1))

    if isinstance(study, VarianceStudy):
        late = np.array(study.iterations) > 100
        cells = {}
        for pair in study.pairs:
            for method in study.methods:
                values = noisy(np.array([_variance(truth, method, late) for truth in told]), method)
                columns: dict[str, np.ndarray] = {norm: values for norm in NORMS}
                cells[pair, None, method] = MethodResults(study.iterations, columns)
        return Results(study, protocol, cells)
    assert isinstance(study, Study | RacingStudy)
    cells = {}
    for pair in study.pairs:
        for gap in study.gaps:
            for method in study.methods:
                errors = [truth.errors(study, pair, gap, method) for truth in truths]
                error = noisy(np.array([errors[run % len(truths)] for run in range(runs)]), method)
                curve = np.repeat(error[:, :, None], study.points, axis=2)
                ends = np.array([truth.end.get(method, 1.0) for truth in told])
                curve[:, :, -(study.points // 10) :] *= ends[:, None, None]
                steps = np.broadcast_to(np.arange(study.points) + 0.5, curve.shape)
                columns = {"error": error, "final": curve[:, :, -1], "curve": curve}
                columns["curve_steps"] = steps
                if isinstance(study, RacingStudy):
                    columns["constant"] = np.full(error.shape, CONSTANT)
                cells[pair, gap, method] = MethodResults(study.choices(method), columns)
    return Results(study, protocol, cells)


def _variance(truth: Truth, method: str, late: np.ndarray) -> np.ndarray:
    early = EARLY * truth.early.get(method, 1.0)
    return np.where(late, LATE * truth.late.get(method, 1.0), early)


def elsewhere(truths: Sequence[Truth]) -> list[Truth]:
    """Return the truths for other figures."""
    return [truth.elsewhere or Truth() for truth in truths]
