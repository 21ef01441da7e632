"""A figure: the results of a study, next to published curves and claims.

A figure is data, like a study: the study that it runs, the function from results to points, the
axes, the published curves that are drawn under ours, and the sentences of the paper that it judges.
:mod:`gvf_lab.report` shows it. The figures of the paper are in :mod:`gvf_lab.paper`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gvf.common.files import replaced
from gvf.common.part_names import known

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from gvf_lab.figure.claim import Claim
    from gvf_lab.figure.published import Published
    from gvf_lab.study.base_study import BaseStudy, NamedStudy
    from gvf_lab.study.results import Results

SCALES = ("quick", "paper")
"""Fewer runs and smaller grids, done within minutes; the paper's runs and grids."""


class Point(NamedTuple):
    """A point of a figure, and a line of its CSV file.

    Attributes:
        protocol: "paper" or "authors".
        panel: "main", or the pair that the panel shows.
        series: the method.
        x: the x coordinate, never its logarithm.
        y: the mean over runs; inf if a run diverged.
        stderr: the standard error of the mean; nan if unknown.
        runs: the number of runs.
        step_size: the chosen step size; nan if none was chosen.

    Example:
        >>> from gvf_lab.figure import Point
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


def write_csv(rows: Iterable[NamedTuple], path: Path) -> None:
    """Write points, or other tuples with names, as CSV.

    A value that is None or nan is an empty cell, and a diverged one is ``inf``.

    Example:
        >>> from gvf_lab.figure.figure import Point, write_csv
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
        points = list(rows)
        writer.writerow((points[0] if points else Point)._fields)
        for row in points:
            writer.writerow(["" if value != value else _short(value) for value in row])


def _short(value: Any) -> Any:
    """Write whole numbers without a point, and others with the fewest exact digits."""
    if isinstance(value, float) and math.isfinite(value):
        return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return value


@dataclass(frozen=True)
class Axes:
    """The labels and scales of a figure's axes.

    Attributes:
        x: the label of the x axis, with its unit.
        y: the label of the y axis.
        x_log: True if x is drawn on a logarithmic scale.
        y_log: True if y is drawn on a logarithmic scale.
        y_top: the end of the y axis, which cuts off diverging curves; None: chosen from the curves.

    Example:
        >>> from gvf_lab.paper import get
        >>> get("four-rooms-gap").axes.x
        'steps between updates'
    """

    x: str
    y: str
    x_log: bool = False
    y_log: bool = False
    y_top: float | None = None


@dataclass(frozen=True)
class Companion:
    """A picture that goes with a figure, drawn from the same results.

    Attributes:
        name: the name of its file, without the extension.
        caption: a sentence that describes it.
        draw: the function that draws it from results, or returns None if something is missing.
        read: the function from results to the rows of a CSV file of the same name: named tuples,
            for example points; None if it has no such file.
    """

    name: str
    caption: str
    draw: Callable[[Results], Picture | None]
    read: Callable[[Results], Sequence[Any]] | None = None


@dataclass(frozen=True)
class Figure:
    """A study to run, with its axes, published curves and claims.

    Attributes:
        source: the study that it shows; the figure has its name.
        title: the line above the figure.
        where: the place in the paper.
        axes: the axes.
        read: the function from results to points; see :mod:`gvf_lab.figure.points`.
        quick: the settings that the study changes at the scale "quick".
        main: True if it belongs to the paper's main text.
        ours: True if it is not the paper's but a test of ours.
        published: the authors' curves that are drawn under ours.
        claims_of: the function from its id to the claims that it judges, in practice a
            :class:`gvf_lab.figure.families.ClaimFile`.
        notes: notes to the reader, by protocol.
        on_request: True if it is made only when named.
        remark: the function from a study to an addition to the title.
        panels: the titles of panels whose own names do not say what they show.
        measured: the quantity on the y axis by protocol, if protocols differ.
        companions: pictures that go with it.
        part: the heading of the page under which it stands; by default the paper's main text or
            its appendix.
        fresh: True if only the second half of the runs is shown and judged, with the parameters
            that the first half chooses.
        world: the world of the experiment, by which comparisons are counted.

    Example:
        >>> from gvf_lab.paper import get
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
    ours: bool = False
    published: tuple[Published, ...] = ()
    claims_of: Callable[[str], tuple[Claim, ...]] = lambda figure: ()
    notes: Mapping[str, str] = field(default_factory=dict)
    on_request: bool = False
    remark: Callable[[Any], str] = lambda study: ""
    companions: tuple[Companion, ...] = ()
    panels: Mapping[str, str] = field(default_factory=dict)
    measured: Mapping[str, str] = field(default_factory=dict)
    part: str = ""
    fresh: bool = False
    world: str = ""

    @property
    def id(self) -> str:
        """The name of the figure, and of its study."""
        return self.source.name

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that it judges."""
        return self.claims_of(self.id)

    def study(
        self, protocol: str, scale: str = "paper", runs: int | None = None, **options: Any
    ) -> BaseStudy:
        """Return its study under a protocol, at a scale; `runs` defaults to the scale's.

        Options are other settings of the study, such as the ``device`` of its networks.
        """
        study = self.source.make(protocol)
        changes = dict(self.quick) if known(scale, SCALES, "scale") == "quick" else {}
        changes |= options
        if runs is not None:
            changes["runs"] = runs
        return study.with_(**changes) if changes else study
