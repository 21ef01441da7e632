"""The report: points, pictures, verdicts and the page, made from stored results.

    <out>/<figure>/<figure>.png, .svg, .csv, published.csv, claims.json, made-<protocol>.json
    <out>/<figure>/<companion>.png, .svg, .csv
    <out>/shipped/<figure>/     the same figure in the evidence that gvf carries
    <out>/report.html, charts.html

Only averages are computed, so the report can be rebuilt from results at any time. A file
``made-<protocol>.json`` beside a figure keeps the scale of its results under a protocol. Each
protocol has its own, so that commands that run at once do not overwrite each other's. The page
shows the whole paper: a figure that was not made here is shown as it was shipped
(:mod:`gvf.report.evidence`). The page of charts does the same.
"""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Mapping, Set
from dataclasses import asdict, replace
from pathlib import Path

from gvf import charts, paper
from gvf.common.files import replaced, write_text
from gvf.common.progress import progress_of
from gvf.common.version import __version__
from gvf.figure import Figure, judge
from gvf.figure.figure import Point, write_csv
from gvf.figure.picture import save
from gvf.report.evidence import CLAIMS, MADE, copies, recorded, shipped
from gvf.report.exhibit import Exhibit, Provenance, compared
from gvf.report.page import page
from gvf.report.study import finished, leave, show
from gvf.study.local import processors
from gvf.study.results import Results
from gvf.study.store import Store, latest
from gvf.study.toml import load

PAGE, CHARTS = "report.html", "charts.html"
"""The names of the pages: that of the paper and of studies, and that of the charts."""


def record(figure: Figure, out: Path, protocol: str, made: Provenance) -> None:
    """Record how the results of a figure under a protocol were made."""
    folder = out / figure.id
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / MADE.format(protocol), json.dumps(asdict(made), indent=2))


def build(out: Path, command: str) -> list[Exhibit]:
    """Draw every figure that was made under a folder, judge its claims, and write the pages.

    One page is the paper's. It shows the other figures of the paper as they were shipped, unless
    the folder has only charts, or studies that are not the paper's. The charts have a page of their
    own if one was made. In an empty folder all figures and charts are the shipped ones.
    """
    every = [*paper.FIGURES.values(), *charts.FIGURES.values()]
    made = {figure.id: recorded(figure, out / figure.id) for figure in every}
    own = _own(out, {id for id, there in made.items() if there})
    results = {
        (figure.id, protocol): _read(figure, out, protocol, one)
        for figure in every
        for protocol, one in made[figure.id].items()
    }
    there, drawn = [figure for figure in every if made[figure.id]], dict[str, Exhibit]()
    total = len(there) + len(own)
    with progress_of("drawing and judging", total, transient=True) as advance:
        for figure in there:
            one = _show(figure, made[figure.id], results)
            drawn[figure.id] = replace(one, beside=shipped(figure))
            _leave(one, out / figure.id)
            advance()
        for one in own:
            leave(one, out)
            advance()
    empty = not drawn and not own
    chosen = drawn if not empty else [id for id, one in charts.FIGURES.items() if shipped(one)]
    of_charts = _with_shipped(charts.FIGURES, drawn, out) if {*chosen} & {*charts.FIGURES} else []
    if of_charts:
        title = "Online algorithms and importance resampling on the same tasks"
        _write(out / CHARTS, of_charts, title, command)
    of_paper = {*drawn} & {*paper.FIGURES}
    if of_charts and not (of_paper or own or empty):
        return of_charts
    shown = _with_shipped(paper.FIGURES, drawn, out) if of_paper or not own else []
    title = "Importance resampling for off-policy prediction, reproduced" if shown else "Studies"
    _write(out / PAGE, [*shown, *own], title, command)
    return [*shown, *own, *of_charts]


def _with_shipped(
    figures: Mapping[str, Figure], drawn: Mapping[str, Exhibit], out: Path
) -> list[Exhibit]:
    """Return all figures of a page: as drawn here, else as shipped, else without points."""
    shown = []
    for figure in figures.values():
        there = shipped(figure)
        shown.append(drawn.get(figure.id) or there or Exhibit(figure, (), (), (), (), {}))
        if there is not None:
            _copy(there, out)
    return shown


def _write(path: Path, shown: list[Exhibit], title: str, command: str) -> None:
    """Write a page."""
    # The pictures of a study share its results, so their time counts once.
    every = {id(how): how for one in shown if not one.shipped for how in one.made.values()}
    text = page(
        shown,
        title=title,
        command=command,
        version=__version__,
        machine=machine(),
        seconds=sum(how.seconds for how in every.values()),
    )
    write_text(path, text)


def _own(out: Path, figures: Set[str]) -> list[Exhibit]:
    """Return exhibits of the studies that belong to no figure; a warning names those left out.

    If a study was run with several settings, the last ones are shown.
    """
    shown = []
    for name, path in latest(out).items():
        if name in figures:
            continue
        try:
            study = load(path).with_(name=name)
            if name in {*paper.FIGURES, *charts.FIGURES} and finished(study, out).runs < study.runs:
                raise ValueError(f"it is not finished; `gvf reproduce {name}` goes on")
            shown += show(study, out)
        except (ValueError, OSError) as error:
            warnings.warn(f"study {name!r} is left out: {error}", RuntimeWarning, stacklevel=2)
    return shown


def _read(figure: Figure, out: Path, protocol: str, made: Provenance) -> Results:
    study = figure.study(protocol, made.scale, made.runs, seed=made.seed, **made.options)
    results = Results.read(Store(study, out), protocol)
    return results.second_half() if figure.fresh else results


def _show(
    figure: Figure, made: Mapping[str, Provenance], results: Mapping[tuple[str, str], Results]
) -> Exhibit:
    rows: list[Point] = []
    verdicts = []
    for protocol in made:
        rows += figure.read(results[figure.id, protocol])
        others = {id: one for (id, under), one in results.items() if under == protocol}
        verdicts += (
            judge(claim, results[figure.id, protocol], others)
            for claim in figure.claims
            if protocol in claim.protocols
        )
    mine = {protocol: results[figure.id, protocol] for protocol in made}
    drawn = {one: one.draw(next(iter(mine.values()))) for one in figure.companions}
    pictures = {one: picture for one, picture in drawn.items() if picture is not None}
    return Exhibit(figure, rows, *compared(figure, rows), verdicts, made, mine, pictures)


def _leave(shown: Exhibit, folder: Path) -> None:
    figure = shown.figure
    write_csv(shown.rows, folder / f"{figure.id}.csv")
    if shown.published:
        write_csv(shown.published, folder / "published.csv")
    verdicts = [asdict(verdict) for verdict in shown.verdicts]
    write_text(folder / CLAIMS, json.dumps(verdicts, indent=2, ensure_ascii=False, allow_nan=False))
    save(shown.draw(), folder, figure.id)
    for companion, picture in shown.companions.items():
        save(picture, folder, companion.name)
        if companion.read is not None:
            rows = companion.read(next(iter(shown.results.values())))
            write_csv(rows, folder / f"{companion.name}.csv")


def _copy(one: Exhibit, out: Path) -> None:
    """Copy the files of a shipped exhibit to a folder, so that the page can refer to them."""
    folder = out / one.place[0]
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in copies(one).items():
        with replaced(folder / name) as unfinished:
            unfinished.write_bytes(content)


def machine() -> str:
    """Describe this machine in a few words."""
    return (
        f"{platform.system()} {platform.machine()}, {processors()} processors, "
        f"Python {platform.python_version()}"
    )
