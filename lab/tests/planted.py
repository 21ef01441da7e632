"""Artificial results: given number by number, or with a planted truth.

With a planted truth every method has the same error, at every step size above 0 and up to the same
limit, unless the truth says otherwise. A truth may be that of one pair and gap only, and another
one that of all others. Runs differ by a factor that all methods share, and a little by another
factor for each method.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from gvf_lab.figure import Figure
from gvf_lab.racing import RacingStudy
from gvf_lab.study import Study, VarianceStudy
from gvf_lab.study.results import MethodResults, Pair, Results
from gvf_lab.study.variance_study import KINDS

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


ERROR = 0.4
"""The error of every method up to its limit."""
BEYOND = 1.5
"""The error beyond the limit: more than 1, and more than twice ``ERROR``."""
BELOW = 0.9
"""The error below the floor and without learning: less than 1, and more than twice ``ERROR``."""
LIMIT = 4.0
"""The largest step size with error ``ERROR``, in the grids of most figures that use it."""
CONSTANT = 1.0
"""The error of the best constant, with images: between ``ERROR`` and ``BEYOND``."""
EARLY, LATE = 1.0, 0.01
"""The variance of updates in the first hundred iterations, and after them."""

NOTHING = 1e-4
"""The error, and the variance, of methods that do not matter."""

Factors = Mapping[str, float]
Cell = tuple[Pair, int | None, str]


@dataclass(frozen=True)
class Truth:
    """A planted truth. A method that is not named has the factor 1; IS also means NormIS.

    Attributes:
        error: the factors of the error.
        u0: further factors of the error, by u0 of WIS-TD(0).
        end: further factors in the last tenth of the run.
        floor: the step size below which every method has the error ``BELOW``.
        limit: the step sizes up to which methods have this error.
        beyond: the errors beyond the limit; by default ``BEYOND``, or the error up to the limit if
            that is larger.
        early: the factors of the early variance of updates.
        middle: the factors of the variance of updates after iteration 25 and up to 100; by default
            the early ones.
        late: the factors of the late variance of updates.
        pair: the only pair that it is about; None: all.
        gap: the only gap that it is about; None: all.
        otherwise: the truth of all other pairs and gaps; by default nothing is planted there.
        elsewhere: the truth planted in the other figures that a claim needs.
    """

    error: Factors = field(default_factory=dict)
    u0: Mapping[float, float] = field(default_factory=dict)
    end: Factors = field(default_factory=dict)
    floor: float = 0.0
    limit: Factors = field(default_factory=dict)
    beyond: Factors = field(default_factory=dict)
    early: Factors = field(default_factory=dict)
    middle: Factors | None = None
    late: Factors = field(default_factory=dict)
    pair: Pair | None = None
    gap: int | None = None
    otherwise: "Truth | None" = None
    elsewhere: "Truth | None" = None

    def at(self, pair: Pair, gap: int | None) -> "Truth":
        """Return the truth about a pair and gap."""
        if self.pair in (None, pair) and self.gap in (None, gap):
            return self
        return self.otherwise.at(pair, gap) if self.otherwise else Truth()

    def errors(self, name: str, choices: Sequence[Any]) -> np.ndarray:
        """Return the error of every choice of a method, if the truth is about all places."""
        level = ERROR * self.error.get(name, 1.0)
        limit, beyond = self.limit.get(name, LIMIT), self.beyond.get(name, max(BEYOND, level))
        return np.array([
            level * self.u0.get(choice[0], 1.0)
            if isinstance(choice, tuple)
            else max(BELOW, 1.1 * level) if choice == 0
            else BELOW if choice < self.floor
            else level if choice <= limit else beyond
            for choice in choices
        ])  # fmt: skip

    def variances(self, name: str, iterations: Sequence[int]) -> np.ndarray:
        """Return the variance of a method's updates at every iteration."""
        at = np.array(iterations)
        early, late = EARLY * self.early.get(name, 1.0), LATE * self.late.get(name, 1.0)
        middle = early if self.middle is None else EARLY * self.middle.get(name, 1.0)
        return np.where(at > 100, late, np.where(at > 25, middle, early))


class Cells(Mapping[Cell, MethodResults]):
    """Results by pair, gap and method, made when they are read."""

    def __init__(self, study: Any, make: Callable[[Cell], MethodResults]) -> None:
        self._made: dict[Cell, MethodResults | None] = dict.fromkeys(
            product(study.pairs, study.gaps, study.methods)
        )
        self._make = make

    def __getitem__(self, cell: Cell) -> MethodResults:
        made = self._made[cell] or self._make(cell)
        self._made[cell] = made
        return made

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


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
    cells = list(product(study.pairs, study.gaps, study.methods))
    noise = dict(zip(cells, rng.uniform(1 - own, 1 + own, (len(cells), runs)), strict=True))

    def make(cell: Cell) -> MethodResults:
        pair, gap, method = cell
        name = "IS" if method == "NormIS" and "IS" not in study.methods else method
        here = [truth.at(pair, gap) for truth in truths]
        turn = np.arange(runs) % len(here)
        choices = study.choices(method)
        variance = isinstance(study, VarianceStudy)
        values = np.array([
            truth.variances(name, choices) if variance else truth.errors(name, choices)
            for truth in here
        ])[turn]  # fmt: skip
        if about and name not in about:
            values[:] = NOTHING
        values *= (factor * noise[cell])[:, None]
        if variance:
            return MethodResults(choices, dict.fromkeys(KINDS, values))
        assert isinstance(study, Study | RacingStudy)
        curve = np.repeat(values[:, :, None], study.points, axis=2)
        ends = np.array([truth.end.get(name, 1.0) for truth in here])[turn]
        curve[:, :, -(study.points // 10) :] *= ends[:, None, None]
        steps = np.broadcast_to(np.arange(study.points) + 0.5, curve.shape)
        columns = {"error": values, "final": curve[:, :, -1], "curve": curve, "curve_steps": steps}
        if isinstance(study, RacingStudy):
            columns["constant"] = np.full(values.shape, CONSTANT)
        return MethodResults(choices, columns)

    return Results(study, protocol, Cells(study, make))


def elsewhere(truths: Sequence[Truth]) -> list[Truth]:
    """Return the truths for other figures."""
    return [truth.elsewhere or Truth() for truth in truths]
