"""Exhibits: a figure with its points, the published points, its verdicts and its provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gvf_lab.figure.claim import Verdict
from gvf_lab.figure.figure import Companion, Figure, Point
from gvf_lab.figure.picture import draw
from gvf_lab.figure.published import Match, compare
from gvf_lab.study.base_study import BaseStudy
from gvf_lab.study.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

PAPER = (
    "Figures of the main text",
    "Figures of the appendix, the talk and the code",
    "Tests of ours",
)
"""The parts of the page about the paper: its figures, and our tests of its sentences."""
STUDIES = "Studies"
"""The part of the page about studies that belong to no figure of gvf."""


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
        options: settings of the study besides scale, runs and seed.
        stream: the hashes of the recorded streams behind it, if there are any.
        commit: the commit of gvf's source; "" if the source is no git checkout, as in a wheel.
        settings: all settings of the study.
        variant: the digest of the settings that all tasks share; it names the folder of results.
        results: the hash of all results; see :func:`gvf_lab.report.evidence.fingerprint`.
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
    commit: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""
    results: str = ""


@dataclass(frozen=True)
class Exhibit:
    """A figure with its points, comparisons, verdicts and provenance.

    A figure that was neither made nor shipped has no provenance and no points.

    Attributes:
        figure: the figure.
        rows: our points, of every protocol that was run.
        published: the authors' points, if there are any.
        matches: the agreement of our curves with the published ones.
        verdicts: the verdicts on the claims.
        provenance: the provenance by protocol.
        results: the results by protocol.
        companions: pictures that go with it.
        part: the heading of the page under which it stands; by default it follows from the figure.
        place: folder and name of its files; by default the figure's id, twice.
        colours: the colours of series that should not have their default.
        columns: the number of columns of panels; None: as many as fit a page.
        shipped: True if it comes with gvf; see :mod:`gvf_lab.report.evidence`.
        beside: the shipped exhibit of the same figure, if this one was made here.
        seeds: the verdicts of a shipped exhibit by seed, for each protocol and claim's id.
        pictures: the pictures of a shipped exhibit as PNG, by the name of the file.
    """

    figure: Figure
    rows: Sequence[Point]
    published: Sequence[Point]
    matches: Sequence[Match]
    verdicts: Sequence[Verdict]
    provenance: Mapping[str, Provenance]
    results: Mapping[str, Results] = field(default_factory=dict)
    companions: Mapping[Companion, MatplotlibFigure] = field(default_factory=dict)
    part: str = ""
    place: tuple[str, str] = ("", "")
    colours: Mapping[str, str] = field(default_factory=dict)
    columns: int | None = None
    shipped: bool = False
    beside: Exhibit | None = None
    seeds: Mapping[tuple[str, str], Mapping[int, str]] = field(default_factory=dict)
    pictures: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        main, others, ours = PAPER
        part = ours if self.figure.ours else main if self.figure.main else others
        object.__setattr__(self, "part", self.part or self.figure.part or part)
        folder, name = self.place
        place = (folder or self.figure.id, name or self.figure.id)
        object.__setattr__(self, "place", place)

    @cached_property
    def once(self) -> bool:
        """True if both protocols have the same points, which then count once, as "paper"."""
        by_protocol = [
            [repr(row[1:]) for row in self.rows if row.protocol == protocol]
            for protocol in ("paper", "authors")
        ]
        return by_protocol[0] == by_protocol[1] != []

    @property
    def distinct(self) -> dict[str, Provenance]:
        """The provenance of results that differ, by protocol or by both protocols."""
        return (
            {"paper and authors": self.provenance["paper"]} if self.once else dict(self.provenance)
        )

    @property
    def title(self) -> str:
        """The figure's title, with the figure's remarks on its studies."""
        remarks = (self.figure.remark(self._study(protocol)) for protocol in self.provenance)
        remarks_text = "; ".join(remark for remark in dict.fromkeys(remarks) if remark)
        return f"{self.figure.title} ({remarks_text})" if remarks_text else self.figure.title

    def _study(self, protocol: str) -> BaseStudy:
        """Return the study behind it, which the provenance describes if there are no results."""
        if protocol in self.results:
            return self.results[protocol].study
        provenance = self.provenance[protocol]
        scale = provenance.scale or "paper"
        return self.figure.study(
            protocol, scale, provenance.runs, seed=provenance.seed, **provenance.options
        )

    def draw(self, *, titled: bool = True, columns: int | None = None) -> MatplotlibFigure:
        """Draw our points, and the published ones if they can be compared."""
        beneath = {
            row._replace(protocol=protocol): None
            for theirs in self.figure.published
            for protocol in theirs.protocols
            for row in self.published
            if row.panel == theirs.panel
        }
        remarks = {
            name: (self.figure.measured.get(name), "quick scale" * (provenance.scale == "quick"))
            for name, provenance in self.provenance.items()
        }
        return draw(
            self.rows,
            self.figure.axes,
            published=beneath,
            title=self.title if titled else "",
            remarks={name: ", ".join(filter(None, words)) for name, words in remarks.items()},
            columns=columns or self.columns,
            colours=self.colours,
            names=self.figure.panels,
        )

    def paper_runs(self, provenance: Provenance) -> int | None:
        """Return the paper's number of runs; None for a study that is not the paper's."""
        if self.part == STUDIES:
            return None
        return self.figure.study("paper", **provenance.options).runs


def compared(figure: Figure, rows: Sequence[Point]) -> tuple[list[Point], list[Match]]:
    """Return the published points of a figure, and the agreement of our points with them."""
    published: list[Point] = []
    matches: list[Match] = []
    ours = set(figure.study("authors").methods)
    for protocol in dict.fromkeys(row.protocol for row in rows):
        mine = [row for row in rows if row.protocol == protocol]
        for theirs in figure.published:
            points = theirs.rows(row.x for row in mine)
            points = [point for point in points if point.series in ours]
            published += (point for point in points if point not in published)
            if protocol in theirs.protocols:
                matches += compare(mine, theirs, points)
    return published, matches
