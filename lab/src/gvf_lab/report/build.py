"""The report: points, pictures, verdicts and the page, made from stored results.

    <out>/<figure>/<figure>.png, .svg, .csv, published.csv, claims.json, made-<protocol>.json
    <out>/<figure>/<companion>.png, .svg, .csv
    <out>/shipped/<figure>/     the same figure in the evidence that gvf carries
    <out>/report.html, charts.html

Only averages are computed, so the report can be rebuilt from results at any time. A file
``made-<protocol>.json`` beside a figure keeps the scale of its results under a protocol. Each
protocol has its own, so that commands that run at once do not overwrite each other's. The page
shows the whole paper: a figure that was not made here is shown as it was shipped
(:mod:`gvf_lab.report.exhibit`). The page of charts does the same.
"""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Mapping, Set
from dataclasses import asdict
from pathlib import Path

from gvf.common.files import replaced, write_text
from gvf.common.progress import progress_of
from gvf.common.version import __version__
from gvf.jobs import processors
from gvf_lab import charts, paper
from gvf_lab.figure import Figure, judge
from gvf_lab.figure.figure import Point, write_csv
from gvf_lab.figure.picture import save
from gvf_lab.report.exhibit import (
    CLAIMS,
    MADE,
    Exhibit,
    Provenance,
    Version,
    compared,
    copies,
    recorded,
    shipped,
)
from gvf_lab.report.page import page
from gvf_lab.report.study_pages import finished, study_versions, write_pictures
from gvf_lab.study.results import Results
from gvf_lab.study.store import Store, latest
from gvf_lab.study.study_file import load

PAGE, CHARTS = "report.html", "charts.html"
"""The names of the pages: that of the paper and of studies, and that of the charts."""


def record(figure: Figure, out: Path, protocol: str, provenance: Provenance) -> None:
    """Record how the results of a figure under a protocol were made."""
    folder = out / figure.id
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / MADE.format(protocol), json.dumps(asdict(provenance), indent=2))


def build(out: Path, command: str) -> list[Exhibit]:
    """Draw every figure that was made under a folder, judge its claims, and write the pages.

    One page is the paper's. It shows the other figures of the paper as they were shipped, unless
    the folder has only charts, or studies that are not the paper's. The charts have a page of their
    own if one was made. In an empty folder all figures and charts are the shipped ones.
    """
    every = [*paper.FIGURES.values(), *charts.FIGURES.values()]
    provenance = {figure.id: recorded(figure, out / figure.id) for figure in every}
    of_studies = _versions_of_studies(
        out, {id for id, by_protocol in provenance.items() if by_protocol}
    )
    results = {
        (figure.id, protocol): _read(figure, out, protocol, origin)
        for figure in every
        for protocol, origin in provenance[figure.id].items()
    }
    figures, drawn = [figure for figure in every if provenance[figure.id]], dict[str, Version]()
    total = len(figures) + len(of_studies)
    with progress_of("drawing and judging", total, transient=True) as advance:
        for figure in figures:
            drawn[figure.id] = _judged(figure, provenance[figure.id], results)
            _write_files(drawn[figure.id], out / figure.id)
            advance()
        for version in of_studies:
            write_pictures(version, out)
            advance()
    empty = not drawn and not of_studies
    chosen = (
        drawn if not empty else [id for id, figure in charts.FIGURES.items() if shipped(figure)]
    )
    of_charts = _with_shipped(charts.FIGURES, drawn, out) if {*chosen} & {*charts.FIGURES} else []
    if of_charts:
        title = "Online algorithms and importance resampling on the same tasks"
        _write(out / CHARTS, of_charts, title, command)
    of_paper = {*drawn} & {*paper.FIGURES}
    if of_charts and not (of_paper or of_studies or empty):
        return of_charts
    exhibits = _with_shipped(paper.FIGURES, drawn, out) if of_paper or not of_studies else []
    title = "Importance resampling for off-policy prediction, reproduced" if exhibits else "Studies"
    exhibits += [Exhibit(version.figure, version) for version in of_studies]
    _write(out / PAGE, exhibits, title, command)
    return [*exhibits, *of_charts]


def _with_shipped(
    figures: Mapping[str, Figure], drawn: Mapping[str, Version], out: Path
) -> list[Exhibit]:
    """Return all figures of a page: as drawn here, else as shipped, else without points."""
    exhibits = [
        Exhibit(figure, drawn.get(figure.id), shipped(figure)) for figure in figures.values()
    ]
    for exhibit in exhibits:
        if exhibit.shipped is not None:
            _copy(exhibit.shipped, out)
    return exhibits


def _write(path: Path, exhibits: list[Exhibit], title: str, command: str) -> None:
    """Write a page."""
    # The pictures of a study share its results, so their time counts once.
    every = {
        id(how): how
        for exhibit in exhibits
        if exhibit.made is not None
        for how in exhibit.made.provenance.values()
    }
    text = page(
        exhibits,
        title=title,
        command=command,
        version=__version__,
        machine=machine(),
        seconds=sum(how.seconds for how in every.values()),
    )
    write_text(path, text)


def _versions_of_studies(out: Path, figures: Set[str]) -> list[Version]:
    """Return the pictures of the studies that belong to no figure; a warning names those left out.

    If a study was run with several settings, the last ones are shown.
    """
    versions = []
    for name, path in latest(out).items():
        if name in figures:
            continue
        try:
            study = load(path).with_(name=name)
            if name in {*paper.FIGURES, *charts.FIGURES} and finished(study, out).runs < study.runs:
                raise ValueError(f"it is not finished; `gvf reproduce {name}` goes on")
            versions += study_versions(study, out)
        except (ValueError, OSError) as error:
            warnings.warn(f"study {name!r} is left out: {error}", RuntimeWarning, stacklevel=2)
    return versions


def _read(figure: Figure, out: Path, protocol: str, provenance: Provenance) -> Results:
    study = figure.study(
        protocol, provenance.scale, provenance.runs, seed=provenance.seed, **provenance.options
    )
    results = Results.read(Store(study, out), protocol)
    return results.second_half() if figure.fresh else results


def _judged(
    figure: Figure, provenance: Mapping[str, Provenance], results: Mapping[tuple[str, str], Results]
) -> Version:
    rows: list[Point] = []
    verdicts = []
    for protocol in provenance:
        rows += figure.read(results[figure.id, protocol])
        others = {id: other for (id, under), other in results.items() if under == protocol}
        verdicts += (
            judge(claim, results[figure.id, protocol], others)
            for claim in figure.claims
            if protocol in claim.protocols
        )
    mine = {protocol: results[figure.id, protocol] for protocol in provenance}
    drawn = {
        companion: companion.draw(next(iter(mine.values()))) for companion in figure.companions
    }
    pictures = {companion: picture for companion, picture in drawn.items() if picture is not None}
    return Version(
        figure,
        rows,
        *compared(figure, rows),
        verdicts,
        provenance,
        results=mine,
        companions=pictures,
    )


def _write_files(version: Version, folder: Path) -> None:
    figure = version.figure
    write_csv(version.rows, folder / f"{figure.id}.csv")
    if version.published:
        write_csv(version.published, folder / "published.csv")
    verdicts = [asdict(verdict) for verdict in version.verdicts]
    write_text(folder / CLAIMS, json.dumps(verdicts, indent=2, ensure_ascii=False, allow_nan=False))
    save(version.draw(), folder, figure.id)
    for companion, picture in version.companions.items():
        save(picture, folder, companion.name)
        if companion.read is not None:
            rows = companion.read(next(iter(version.results.values())))
            write_csv(rows, folder / f"{companion.name}.csv")


def _copy(version: Version, out: Path) -> None:
    """Copy the files of a shipped figure to a folder, so that the page can refer to them."""
    folder = out / version.place[0]
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in copies(version.figure).items():
        with replaced(folder / name) as unfinished:
            unfinished.write_bytes(content)


def machine() -> str:
    """Describe this machine in a few words."""
    return (
        f"{platform.system()} {platform.machine()}, {processors()} processors, "
        f"Python {platform.python_version()}"
    )
