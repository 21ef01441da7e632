"""Exhibits: a figure with its points, the published points, its verdicts and its provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gvf.figure.claim import Verdict
from gvf.figure.companion import Companion
from gvf.figure.figure import Figure, Point
from gvf.figure.picture import draw
from gvf.figure.published import Match
from gvf.study.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


@dataclass(frozen=True)
class Provenance:
    """The origin of a figure's results, under one protocol.

    Attributes:
        scale: "quick" or "paper".
        runs: the number of runs.
        seed: the seed of the study.
        command: the command that makes the results and redraws the figure alone.
        version: the version of gvf.
        machine: a description of the machine.
        finished: the time of completion, as ISO 8601 in UTC.
        seconds: the processor time of all tasks together.
        options: settings of the study besides scale and runs.
        stream: the hashes of the recorded streams behind it, if there are any.
    """

    scale: str
    runs: int
    seed: int
    command: str
    version: str
    machine: str
    finished: str
    seconds: float
    options: Mapping[str, Any] = field(default_factory=dict)
    stream: str = ""


@dataclass(frozen=True)
class Exhibit:
    """A figure with its points, comparisons, verdicts and provenance.

    Attributes:
        figure: the figure.
        rows: our points, of every protocol that was run.
        published: the authors' points, if there are any.
        matches: the agreement of our curves with the published ones.
        verdicts: the verdicts on the claims.
        made: the provenance by protocol.
        results: the results by protocol.
        companions: pictures that go with it.
        part: the heading of the page under which it stands; by default it follows from the figure.
        place: folder and name of its files; by default the figure's id, twice.
        colours: the colours of series that should not have their default.
        columns: the number of columns of panels; None: as many as fit a page.
    """

    figure: Figure
    rows: Sequence[Point]
    published: Sequence[Point]
    matches: Sequence[Match]
    verdicts: Sequence[Verdict]
    made: Mapping[str, Provenance]
    results: Mapping[str, Results] = field(default_factory=dict)
    companions: Mapping[Companion, MatplotlibFigure] = field(default_factory=dict)
    part: str = ""
    place: tuple[str, str] = ("", "")
    colours: Mapping[str, str] = field(default_factory=dict)
    columns: int | None = None

    def __post_init__(self) -> None:
        main = "Figures of the main text" if self.figure.main else "Figures of the appendix"
        object.__setattr__(self, "part", self.part or main)
        folder, name = self.place
        place = (folder or self.figure.id, name or self.figure.id)
        object.__setattr__(self, "place", place)

    @property
    def title(self) -> str:
        """The figure's title, with the figure's remarks on its studies."""
        remarks = (self.figure.remark(results.study) for results in self.results.values())
        said = "; ".join(remark for remark in dict.fromkeys(remarks) if remark)
        return f"{self.figure.title} ({said})" if said else self.figure.title

    def draw(self, *, titled: bool = True, columns: int | None = None) -> MatplotlibFigure:
        """Draw our points, and the published ones if they can be compared."""
        beneath = {
            row._replace(protocol=protocol): None
            for theirs in self.figure.published
            for protocol in theirs.protocols
            for row in self.published
            if row.panel == theirs.panel
        }
        quick = {name: "quick scale" for name, made in self.made.items() if made.scale == "quick"}
        return draw(
            self.rows,
            self.figure.axes,
            published=beneath,
            title=self.title if titled else "",
            remarks=quick,
            columns=columns or self.columns,
            colours=self.colours,
            names=self.figure.panels,
        )

    def paper_runs(self, protocol: str) -> int | None:
        """Return the paper's number of runs; None for a study that is not the paper's."""
        if self.part == "Studies":
            return None
        return self.figure.study(protocol, **self.made[protocol].options).runs
