"""Exhibits: a figure as it was made here and as it was shipped, each with its provenance.

    gvf_lab/evidence/<figure>/<figure>.csv, claims.json, made-<protocol>.json, seeds.json
    gvf_lab/evidence/<figure>/<figure>.png, <figure>-narrow.png, and what goes with them
    gvf_lab/evidence/theory.json    the outcome of ``gvf verify``

The evidence has the results of figures at the paper's scale, which the laboratory carries: the
files that ``gvf reproduce --scale paper`` leaves, with numbers of seven digits. ``seeds.json`` has
the verdicts on the same claims under other seeds. ``lab/tools/ship_evidence.py`` writes the folder.
Whoever makes the results anew can compare them with ``made-<protocol>.json``, which has the study's
settings and the hash of its results.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gvf_lab.domain import PROTOCOLS, Protocol
from gvf_lab.figure.claim import Verdict
from gvf_lab.figure.figure import Companion, Figure, Point
from gvf_lab.figure.picture import draw
from gvf_lab.figure.published import Match, compare
from gvf_lab.study.base_study import BaseStudy
from gvf_lab.study.results import Results
from gvf_lab.study.settings import settings, variant
from gvf_lab.study.store import Store, StoreError

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
MADE = "made-{}.json"
"""The file with the provenance of a figure under a protocol."""
CLAIMS = "claims.json"
"""The file with a figure's verdicts."""
SEEDS = "seeds.json"
"""The file with the verdicts under several seeds."""
THEORY = "theory.json"
"""The file with the outcome of ``gvf verify``."""
_SHIPPED: dict[str, tuple[Figure, Version | None]] = {}
"""The shipped versions that were read, by folder: a page needs all of them, twice."""
NARROW = "-narrow"
"""The end of the name of a picture with one column."""


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
        results: the hash of all results; see :func:`gvf_lab.report.exhibit.fingerprint`.
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
class Version:
    """A figure as it was made here, or as it was shipped.

    Attributes:
        figure: the figure.
        rows: our points, of every protocol that was run.
        published: the authors' points, if there are any.
        matches: the agreement of our curves with the published ones.
        verdicts: the verdicts on the claims.
        provenance: the provenance by protocol.
        place: folder and name of its files; by default the figure's id, twice.
        results: the results by protocol, if it was made here.
        companions: pictures that go with it, if it was made here.
        colours: the colours of series that should not have their default.
        columns: the number of columns of panels; None: as many as fit a page.
        seeds: the verdicts of a shipped version by seed, for each protocol and claim's id.
        pictures: the pictures of a shipped version as PNG, by the name of the file.
    """

    figure: Figure
    rows: Sequence[Point] = ()
    published: Sequence[Point] = ()
    matches: Sequence[Match] = ()
    verdicts: Sequence[Verdict] = ()
    provenance: Mapping[str, Provenance] = field(default_factory=dict)
    place: tuple[str, str] = ("", "")
    results: Mapping[str, Results] = field(default_factory=dict)
    companions: Mapping[Companion, MatplotlibFigure] = field(default_factory=dict)
    colours: Mapping[str, str] = field(default_factory=dict)
    columns: int | None = None
    seeds: Mapping[tuple[str, str], Mapping[int, str]] = field(default_factory=dict)
    pictures: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        folder, name = self.place
        place = (folder or self.figure.id, name or self.figure.id)
        object.__setattr__(self, "place", place)

    @cached_property
    def once(self) -> bool:
        """True if both protocols have the same points, which then count once, as "paper"."""
        by_protocol = [
            [repr(row[1:]) for row in self.rows if row.protocol == protocol]
            for protocol in Protocol
        ]
        return by_protocol[0] == by_protocol[1] != []

    @property
    def distinct(self) -> dict[str, Provenance]:
        """The provenance of results that differ, by protocol or by both protocols."""
        return (
            {" and ".join(Protocol): self.provenance[Protocol.PAPER]}
            if self.once
            else dict(self.provenance)
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
        if self.figure.part == STUDIES:
            return None
        return self.figure.study(Protocol.PAPER, **provenance.options).runs


@dataclass(frozen=True)
class Exhibit:
    """A figure as it was made here and as it was shipped; either may be missing.

    Attributes:
        figure: the figure.
        made: the version that was made here.
        shipped: the version in the evidence that the laboratory carries.
    """

    figure: Figure
    made: Version | None = None
    shipped: Version | None = None

    @property
    def part(self) -> str:
        """The heading of the page under which it stands."""
        main, others, ours = PAPER
        part = ours if self.figure.ours else main if self.figure.main else others
        return self.figure.part or part

    @property
    def versions(self) -> dict[str, Version]:
        """The version that was made here ("now") and the shipped one, as far as there are any."""
        both = {"now": self.made, "shipped": self.shipped}
        return {origin: version for origin, version in both.items() if version is not None}


def compared(figure: Figure, rows: Sequence[Point]) -> tuple[list[Point], list[Match]]:
    """Return the published points of a figure, and the agreement of our points with them."""
    published: list[Point] = []
    matches: list[Match] = []
    ours = set(figure.study(Protocol.AUTHORS).methods)
    for protocol in dict.fromkeys(row.protocol for row in rows):
        mine = [row for row in rows if row.protocol == protocol]
        for theirs in figure.published:
            points = theirs.rows(row.x for row in mine)
            points = [point for point in points if point.series in ours]
            published += (point for point in points if point not in published)
            if protocol in theirs.protocols:
                matches += compare(mine, theirs, points)
    return published, matches


def evidence(figure: Figure) -> Traversable:
    """Return the folder of a figure's evidence, which may not exist."""
    return files("gvf_lab") / "evidence" / figure.id


@cache
def theory() -> dict[str, Any]:
    """Return the shipped outcome of ``gvf verify``: its origin, and rows by the result's name.

    Example:
        >>> from gvf_lab.report.exhibit import theory
        >>> [row["holds"] for row in theory()["findings"]["corollary-3-1-1"]["rows"]]
        [True, True]
    """
    return json.loads((files("gvf_lab") / "evidence" / THEORY).read_text(encoding="utf-8"))


def shipped(figure: Figure) -> Version | None:
    """Return the shipped version of a figure, or None if there is none.

    Example:
        >>> from gvf_lab.paper import get
        >>> from gvf_lab.report.exhibit import shipped
        >>> version = shipped(get("markov-step-size"))
        >>> version.provenance["paper"].scale, version.provenance["paper"].runs
        ('paper', 100)
    """
    folder = evidence(figure)
    known_figure, version = _SHIPPED.get(str(folder), (None, None))
    if known_figure is not figure:
        version = _read_shipped(figure, folder)
        _SHIPPED[str(folder)] = figure, version
    return version


def _read_shipped(figure: Figure, folder: Traversable) -> Version | None:
    provenance = recorded(figure, folder)
    if not provenance:
        return None
    rows = points((folder / f"{figure.id}.csv").read_text(encoding="utf-8"))
    pictures = {
        file.name.removesuffix(".png"): file.read_bytes()
        for file in folder.iterdir()
        if file.name.endswith(".png")
    }
    return Version(
        figure,
        rows,
        *compared(figure, rows),
        verdicts(folder),
        provenance,
        place=(f"shipped/{figure.id}", ""),
        seeds=_seeds(folder),
        pictures=pictures,
    )


def recorded(figure: Figure, folder: Traversable) -> dict[str, Provenance]:
    """Return the provenance of a figure's results in a folder, by protocol."""
    provenance = {}
    for protocol in PROTOCOLS:
        path = folder / MADE.format(protocol)
        try:
            provenance[protocol] = Provenance(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            continue
        except (json.JSONDecodeError, TypeError) as error:
            raise StoreError(
                f"{path} cannot be read ({error}): delete it, and `gvf reproduce {figure.id}` "
                "makes it"
            ) from None
    return provenance


def verdicts(folder: Traversable) -> list[Verdict]:
    """Return the verdicts in a figure's folder."""
    entries = json.loads((folder / CLAIMS).read_text(encoding="utf-8"))
    return [Verdict(**{key: _tuple(value) for key, value in entry.items()}) for entry in entries]


def _tuple(value: Any) -> Any:
    """Return tuples for the lists of JSON."""
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _seeds(folder: Traversable) -> dict[tuple[str, str], dict[int, str]]:
    by_protocol = json.loads((folder / SEEDS).read_text(encoding="utf-8"))
    return {
        (protocol, claim): dict(zip(entry["seeds"], several, strict=True))
        for protocol, entry in by_protocol.items()
        for claim, several in entry["claims"].items()
    }


def points(text: str) -> list[Point]:
    r"""Read points from the text of a CSV file; an empty cell is nan.

    Example:
        >>> from gvf_lab.report.exhibit import points
        >>> points("protocol,panel,series,x,y,stderr,runs,step_size\npaper,main,IS,1,inf,,25,1")
        [Point(protocol='paper', panel='main', series='IS', x=1.0, y=inf, stderr=nan, runs=25,
         step_size=1.0)]
    """
    lines = csv.reader(io.StringIO(text))
    next(lines)
    return [
        Point(
            protocol, panel, series, _float(x), _float(y), _float(stderr), int(runs), _float(size)
        )
        for protocol, panel, series, x, y, stderr, runs, size in lines
    ]


def _float(cell: str) -> float:
    return float(cell) if cell else math.nan


def copies(figure: Figure) -> dict[str, bytes]:
    """Return the files of a shipped figure that a page refers to: all but pictures, by name."""
    listed = [file for file in evidence(figure).iterdir() if not file.name.endswith(".png")]
    return {file.name: file.read_bytes() for file in sorted(listed, key=lambda file: file.name)}


def fingerprint(store: Store) -> dict[str, Any]:
    """Return settings, variant and hash of a study's results, for a :class:`Provenance`.

    The hash is SHA-256 over a line for each task, in the order of tasks: its name and the checksum
    in the metadata of its file. Results that are equal bit for bit have the same hash, whatever
    version of gvf and of Parquet wrote them.
    """
    import pyarrow.parquet as pq

    study, digest = store.study, hashlib.sha256()
    for task in study.tasks():
        metadata = pq.read_schema(store.path(task)).metadata or {}
        digest.update(f"{task.name} {metadata[b'gvf.checksum'].decode()}\n".encode())
    tasks = {"pairs": study.pairs, "gaps": study.gaps, "runs": study.runs}
    return {
        "settings": settings(study) | tasks,
        "variant": variant(study),
        "results": digest.hexdigest(),
    }


def commit() -> str:
    """Return the commit of gvf's source, "-dirty" if it was changed; "" if it is no checkout."""
    source = Path(__file__).resolve().parents[4]
    if not (source / ".git").exists():
        return ""  # a wheel; a checkout around it would be somebody else's
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        description = subprocess.run(
            command, cwd=source, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return description.stdout.strip()
