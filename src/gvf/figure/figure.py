"""A figure: what a study shows, next to what was published and what is claimed.

A figure is data, like a study: which study it runs, how the results become points, what its axes
say, which published curves belong under it, and which sentences of the paper it can judge.
:mod:`gvf.report` shows it. The figures of the paper are in :mod:`gvf.paper`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gvf.common.files import replaced
from gvf.common.names import known

if TYPE_CHECKING:
    from gvf.figure.claim import Claim
    from gvf.figure.companion import Companion
    from gvf.figure.published import Published
    from gvf.study.base import BaseStudy, NamedStudy
    from gvf.study.results import Results

SCALES = ("quick", "paper")
"""A look within minutes; the paper's numbers of runs and its grids."""


class Point(NamedTuple):
    """A point of a figure: a line of its CSV file.

    Attributes:
        protocol: "paper" or "authors".
        panel: "main", or the pair that the panel shows.
        series: the method.
        x: never a logarithm.
        y: mean over runs; inf where a run diverged.
        stderr: of the mean; nan where there is none.
        runs: how many.
        step_size: the one that was chosen; nan where none was.

    Example:
        >>> from gvf.figure import Point
        >>> Point("paper", "main", "IR", 16.0, 0.3, 0.01, 25, 0.8).series
        'IR'
    """

    protocol: str
    panel: str
    series: str
    x: float
    y: float
    stderr: float
    runs: int
    step_size: float


def write_csv(rows: Iterable[Point], path: Path) -> None:
    """Write points as CSV; what is not a number is left empty, a diverged one is ``inf``.

    Example:
        >>> from gvf.figure.figure import Point, write_csv
        >>> from pathlib import Path
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "points.csv"
        >>> nan, inf = float("nan"), float("inf")
        >>> write_csv([Point("paper", "main", "IS", 16.0, inf, nan, 25, 0.8)], path)
        >>> print(path.read_text(), end="")
        protocol,panel,series,x,y,stderr,runs,step_size
        paper,main,IS,16,inf,,25,0.8
    """
    with replaced(path) as unfinished, unfinished.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Point._fields)
        for row in rows:
            writer.writerow(["" if value != value else _short(value) for value in row])


def _short(value: Any) -> Any:
    """Whole numbers without a point, and no digits that a double does not have."""
    if isinstance(value, float) and math.isfinite(value):
        return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return value


@dataclass(frozen=True)
class Axes:
    """What the axes of a figure say.

    Attributes:
        x: label, with its unit.
        y: label.
        x_log: whether x is drawn on a logarithmic scale.
        y_log: whether y is.
        y_top: where the axis ends, so that a diverging curve leaves it; None: wherever curves end.

    Example:
        >>> from gvf.paper import get
        >>> get("four-rooms-gap").axes.x
        'steps between updates'
    """

    x: str
    y: str
    x_log: bool = False
    y_log: bool = False
    y_top: float | None = None


@dataclass(frozen=True)
class Figure:
    """What to run, what to draw, what is claimed.

    Attributes:
        source: the study that it shows; the figure has its name.
        title: a line above it.
        where: in the paper.
        axes: what they say.
        read: turns results into points; see :mod:`gvf.figure.reading`.
        quick: what the study changes at the scale "quick".
        main: whether it belongs to the paper's main text.
        published: the authors' curves that belong under it.
        claims: the sentences that it judges.
        notes: what a reader should know, for each protocol.
        on_request: whether it is made only where it is asked for by name.
        remark: what its title has to add about a study.
        companions: pictures that go with it.

    Example:
        >>> from gvf.paper import get
        >>> figure = get("markov-step-size")
        >>> figure.study("paper", "paper").runs, figure.study("authors", "quick").protocol
        (100, 'authors')
    """

    source: NamedStudy
    title: str
    where: str
    axes: Axes
    read: Callable[[Results], Sequence[Point]]
    quick: Mapping[str, Any] = field(default_factory=dict)
    main: bool = True
    published: tuple[Published, ...] = ()
    claims: tuple[Claim, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    on_request: bool = False
    remark: Callable[[Any], str] = lambda study: ""
    companions: tuple[Companion, ...] = ()

    @property
    def id(self) -> str:
        """The name of the figure, and of its study."""
        return self.source.name

    def study(
        self, protocol: str, scale: str = "paper", runs: int | None = None, **options: Any
    ) -> BaseStudy:
        """Its study under a protocol, at a scale, with so many runs (by default the scale's).

        Options are other attributes of the study, such as the ``device`` of one with networks.
        """
        study = self.source.make(protocol)
        changes = dict(self.quick) if known(scale, SCALES, "scale") == "quick" else {}
        changes |= options
        if runs is not None:
            changes["runs"] = runs
        return study.with_(**changes)
