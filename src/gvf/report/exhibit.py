"""Exhibits: a figure with its points, the published ones, its verdicts, and how it was made."""

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
    """How the results of a figure were made, under one protocol.

    Attributes:
        scale: "quick" or "paper".
        runs: how many.
        seed: of the study.
        command: that makes them, and redraws the figure alone.
        version: of gvf.
        machine: in words.
        finished: when, as ISO 8601 in UTC.
        seconds: of processor time that all its tasks took together.
        options: of the study, besides scale and runs.
        stream: hash of the recorded stream behind it, where there is one.
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
    """A figure with all that is known about it.

    Attributes:
        figure: what it shows.
        rows: our points, of every protocol that was run.
        published: the authors' points, where there are some.
        matches: how well ours lie on them.
        verdicts: about the claims.
        made: by protocol.
        results: by protocol.
        companions: pictures that go with it.
        part: the heading of the page under which it stands; by default it follows from the figure.
        place: folder and name of its files; by default the figure's id, twice.
        colours: of series that are to have another than their own.
        columns: of panels; None: as many as fit a page.
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
        """The figure's, with what has to be said of the study."""
        remarks = (self.figure.remark(results.study) for results in self.results.values())
        said = "; ".join(remark for remark in dict.fromkeys(remarks) if remark)
        return f"{self.figure.title} ({said})" if said else self.figure.title

    def draw(self, *, titled: bool = True, columns: int | None = None) -> MatplotlibFigure:
        """Draw our points, and the published ones where they may be compared."""
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
        )

    def paper_runs(self, protocol: str) -> int | None:
        """The paper's number of runs; None for a study that is not the paper's."""
        if self.part == "Studies":
            return None
        return self.figure.study(protocol, **self.made[protocol].options).runs
