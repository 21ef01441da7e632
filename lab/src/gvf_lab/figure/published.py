"""The authors' published curves, compared with ours.

The files in ``published/`` hold numbers read off the vector drawings of the authors' talk and
poster, each with its source. A published point and ours agree if

    |ours - published| <= 2 sqrt(s^2 / R + s^2 / R') + 1e-4 of the axis.

Here s is the standard deviation over our R runs. It is also used for their R' runs, because the
drawn error bars are about twice the standard error and partly missing. The last term is the
precision of the reading. Points where a curve leaves the frame do not count, and neither do points
whose combined standard error is above a tenth of the axis: any value would agree there.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from gvf_lab.figure.figure import Point

READING_ERROR = 1e-4
"""The precision to which a drawing could be read, as a share of its axis."""
GRID_TOLERANCE = 2e-3
"""The largest distance of a read x from its value in our grid, as a share of x or of 1."""
AGREEMENT_ERRORS = 2.0
"""Combined standard errors within which points agree."""
LARGEST_ERROR = 0.1
"""The largest combined standard error of a point that is compared, as a share of the axis."""
MATCHING_SHARE = 0.9
"""The share of points that must agree for a curve to match."""
STEPS, LEARNING = 100_000, 99_000
"""The steps divided by the gap to count updates: all for the authors, those after warm-up here."""


@dataclass(frozen=True)
class Published:
    """A published figure that is drawn under one of ours.

    Attributes:
        file: the file's name, without ``.json``.
        runs: the authors' number of runs.
        panel: the panel of our figure.
        x: the meaning of x: "plain", or "log10 updates" (of 100,000 steps).
        frame: the largest y inside the frame; None: all points are inside.
        times: the factor that multiplies every published y; `frame` is in the units after it.
        rename: our names of series, if they differ.
        stretch: factors that multiply the x of a series.
        protocols: the protocols whose settings are similar enough to draw both together.
        must_match: True if our curves must match under protocol "authors".
        note: a note to the reader.

    Example:
        >>> from gvf_lab.paper import get
        >>> (published,) = get("markov-step-size").published
        >>> published.source
        "authors' slides p41, recovered from the vector drawing"
        >>> published.rows([0.0, 0.1])[1][2:5]
        ('IR', 0.1, 0.328536)
    """

    file: str
    runs: int
    panel: str = "main"
    x: str = "plain"
    frame: float | None = 1.0
    times: float = 1.0
    rename: Mapping[str, str] = field(default_factory=dict)
    stretch: Mapping[str, float] = field(default_factory=dict)
    protocols: tuple[str, ...] = ("paper", "authors")
    must_match: bool = False
    note: str = ""

    @property
    def source(self) -> str:
        """The source of the numbers."""
        return _load(self.file)["source"]

    @property
    def axis(self) -> float:
        """The length of the y axis."""
        largest = max(point["y"] for series in self._series.values() for point in series)
        return self.frame or self.times * largest

    @property
    def _series(self) -> dict[str, list[dict[str, Any]]]:
        return _load(self.file)["series"]

    def rows(self, grid: Iterable[float]) -> list[Point]:
        """Return the points, with each x moved to the nearby value of our grid, if any."""
        ours = np.array(sorted(set(grid)))
        rows = []
        for name, points in self._series.items():
            series = self.rename.get(name, name)
            for point in points:
                x = point["x"]
                if self.x == "log10 updates":
                    x = LEARNING // round(STEPS / 10.0**x)
                x = _nearest(ours, x * self.stretch.get(name, 1.0))
                y = self.times * point["y"]
                spread = math.nan if point["stderr"] is None else self.times * point["stderr"]
                rows.append(Point("authors", self.panel, series, x, y, spread, self.runs, math.nan))
        return rows


@cache
def _load(name: str) -> dict[str, Any]:
    file = files("gvf_lab.figure") / "published" / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8"))


def _nearest(grid: np.ndarray, x: float) -> float:
    """Return the value of the grid that x was read from, or x itself if there is none."""
    if not grid.size:
        return x
    nearest = float(grid[np.abs(grid - x).argmin()])
    return nearest if abs(nearest - x) <= GRID_TOLERANCE * max(1.0, abs(x)) else x


@dataclass(frozen=True)
class Match:
    """The agreement of one of our curves with the published one.

    Attributes:
        protocol: the protocol of our curve.
        panel: the panel of the figure.
        series: the method.
        points: the number of points compared.
        within: the number of points that agree.
        worst: the largest difference beyond the reading precision, in combined standard errors.

    Example:
        >>> from gvf_lab.figure import Match
        >>> match = Match("authors", "main", "IR", points=10, within=9, worst=2.3)
        >>> match.share, match.matches
        (0.9, True)
    """

    protocol: str
    panel: str
    series: str
    points: int
    within: int
    worst: float

    @property
    def share(self) -> float:
        """The share of points that agree."""
        return self.within / self.points

    @property
    def matches(self) -> bool:
        """True if enough points agree."""
        return self.share >= MATCHING_SHARE


def compare(ours: Iterable[Point], published: Published, theirs: Sequence[Point]) -> list[Match]:
    """Compare our rows, of one protocol, with the published ones, series by series.

    Example:
        >>> from gvf_lab.figure import Point, compare
        >>> from gvf_lab.paper import get
        >>> (published,) = get("markov-step-size").published
        >>> ours = [Point("authors", "main", "IR", 0.1, 0.327, 0.002, 100, 0.1)]
        >>> (match,) = compare(ours, published, published.rows([0.1]))
        >>> match.points, match.within, round(match.worst, 2)
        (1, 1, 0.51)
    """
    at, axis = {(row.panel, row.series, row.x): row for row in ours}, published.axis
    scores: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in theirs:
        mine = at.get((row.panel, row.series, row.x))
        if mine is None or (published.frame is not None and row.y >= published.frame * (1 - 1e-6)):
            continue
        variance = mine.stderr**2 * (1.0 + mine.runs / published.runs)
        if (LARGEST_ERROR * axis) ** 2 < variance < math.inf:
            continue
        beyond = max(0.0, abs(mine.y - row.y) - READING_ERROR * axis)
        score = (
            0.0 if beyond == 0.0 else (beyond / math.sqrt(variance) if variance > 0 else math.inf)
        )
        scores[mine.protocol, row.panel, row.series].append(score)
    return [
        Match(*key, len(z), sum(score <= AGREEMENT_ERRORS for score in z), max(z))
        for key, z in scores.items()
    ]
