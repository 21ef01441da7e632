"""The authors' published curves, and how well ours lie on them.

The files in ``published/`` hold facts read off the vector drawings of the authors' talk and poster:
each says its source. A published point and ours agree when

    |ours - published| <= 2 sqrt(s^2 / R + s^2 / R') + 1e-4 of the axis,

where s is the standard deviation over our R runs, taken for theirs too (R' runs; the drawn bars are
about twice the standard error, and missing in places), and the last term is how well the drawings
could be read. Points where a curve leaves the frame do not count.
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

from gvf.figure.figure import Point

READING = 1e-4
"""How well a drawing could be read, as a share of its axis."""
SNAP = 2e-3
"""How near to a value of our grid an x must be, to have been read from it; a share of x or of 1."""
WITHIN = 2.0
"""Combined standard errors within which points agree."""
MATCHING_SHARE = 0.9
"""The share of points that must agree for a curve to match."""
STEPS, LEARNING = 100_000, 99_000
"""What is divided by the gap to count updates: by the authors all steps, by us those that learn."""


@dataclass(frozen=True)
class Published:
    """A published figure that belongs under one of ours.

    Attributes:
        file: its name, without ``.json``.
        runs: the authors' number of runs.
        panel: of our figure.
        x: what x means there: "plain", or "log10 updates" (of 100,000 steps).
        frame: the largest y inside the frame; None: all are inside.
        rename: our names of series, where they differ.
        stretch: factors that x of a series must be multiplied with.
        protocols: under which the settings are alike enough to be drawn together.
        must_match: whether we say that ours comes out the same, under protocol "authors".
        note: what a reader should know.

    Example:
        >>> from gvf.paper import get
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
    rename: Mapping[str, str] = field(default_factory=dict)
    stretch: Mapping[str, float] = field(default_factory=dict)
    protocols: tuple[str, ...] = ("paper", "authors")
    must_match: bool = False
    note: str = ""

    @property
    def source(self) -> str:
        """Where the numbers come from."""
        return _load(self.file)["source"]

    @property
    def axis(self) -> float:
        """The length of the y axis."""
        largest = max(point["y"] for series in self._series.values() for point in series)
        return self.frame or largest

    @property
    def _series(self) -> dict[str, list[dict[str, Any]]]:
        return _load(self.file)["series"]

    def rows(self, grid: Iterable[float]) -> list[Point]:
        """The points, with x moved to the value of our grid that it was read from, if any."""
        ours = np.array(sorted(set(grid)))
        rows = []
        for name, points in self._series.items():
            series = self.rename.get(name, name)
            for point in points:
                x = point["x"]
                if self.x == "log10 updates":
                    x = LEARNING // round(STEPS / 10.0**x)
                x = _nearest(ours, x * self.stretch.get(name, 1.0))
                spread = math.nan if point["stderr"] is None else point["stderr"]
                rows.append(
                    Point("authors", self.panel, series, x, point["y"], spread, self.runs, math.nan)
                )
        return rows


@cache
def _load(name: str) -> dict[str, Any]:
    file = files("gvf.figure") / "published" / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8"))


def _nearest(grid: np.ndarray, x: float) -> float:
    """The value of the grid that x was read from, or x itself where there is none."""
    if not grid.size:
        return x
    nearest = float(grid[np.abs(grid - x).argmin()])
    return nearest if abs(nearest - x) <= SNAP * max(1.0, abs(x)) else x


@dataclass(frozen=True)
class Match:
    """How well one of our curves lies on the published one.

    Attributes:
        protocol: of ours.
        panel: of the figure.
        series: the method.
        points: how many were compared.
        within: how many agree.
        worst: the largest difference, in combined standard errors, beyond what reading explains.

    Example:
        >>> from gvf.figure import Match
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
        """Of the points, how many agree."""
        return self.within / self.points

    @property
    def matches(self) -> bool:
        """Whether enough points agree."""
        return self.share >= MATCHING_SHARE


def compare(ours: Iterable[Point], published: Published, theirs: Sequence[Point]) -> list[Match]:
    """Compare our rows, of one protocol, with the published ones, series by series.

    Example:
        >>> from gvf.figure import Point, compare
        >>> from gvf.paper import get
        >>> (published,) = get("markov-step-size").published
        >>> ours = [Point("authors", "main", "IR", 0.1, 0.327, 0.002, 100, 0.1)]
        >>> (match,) = compare(ours, published, published.rows([0.1]))
        >>> match.points, match.within, round(match.worst, 2)
        (1, 1, 0.51)
    """
    at = {(row.panel, row.series, row.x): row for row in ours}
    scores: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in theirs:
        mine = at.get((row.panel, row.series, row.x))
        if mine is None or (published.frame is not None and row.y >= published.frame * (1 - 1e-6)):
            continue
        one = mine.stderr**2 * (1.0 + mine.runs / published.runs)
        beyond = max(0.0, abs(mine.y - row.y) - READING * published.axis)
        score = 0.0 if beyond == 0.0 else (beyond / math.sqrt(one) if one > 0 else math.inf)
        scores[mine.protocol, row.panel, row.series].append(score)
    return [
        Match(*key, len(z), sum(score <= WITHIN for score in z), max(z))
        for key, z in scores.items()
    ]
