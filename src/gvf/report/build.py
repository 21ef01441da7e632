"""The report: points, pictures, verdicts and the page, made from stored results.

    <out>/<figure>/<figure>.png, .svg, .csv, published.csv, claims.json, made-<protocol>.json
    <out>/shipped/<figure>/     the same figure in the evidence that gvf carries
    <out>/report.html

Only averages are computed, so the report can be rebuilt from results at any time. A file
``made-<protocol>.json`` beside a figure keeps the scale of its results under a protocol. Each
protocol has its own, so that commands that run at once do not overwrite each other's. The page
shows the whole paper: a figure that was not made here is shown as it was shipped
(:mod:`gvf.report.evidence`).
"""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Mapping, Set
from dataclasses import asdict, replace
from pathlib import Path

from gvf.common.files import replaced, write_text
from gvf.common.version import __version__
from gvf.figure import Figure, judge
from gvf.figure.figure import Point, write_csv
from gvf.figure.picture import save
from gvf.paper import FIGURES
from gvf.report.evidence import CLAIMS, MADE, copies, recorded, shipped
from gvf.report.exhibit import Exhibit, Provenance, compared
from gvf.report.page import page
from gvf.report.study import finished, leave, show
from gvf.study.local import processors
from gvf.study.results import Results
from gvf.study.store import Store, latest
from gvf.study.toml import load

PAGE = "report.html"


def record(figure: Figure, out: Path, protocol: str, made: Provenance) -> None:
    """Record how the results of a figure under a protocol were made."""
    folder = out / figure.id
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / MADE.format(protocol), json.dumps(asdict(made), indent=2))


def build(out: Path, command: str) -> list[Exhibit]:
    """Draw every figure that was made under a folder, judge its claims, and write the page.

    The page shows the other figures of the paper as they were shipped, unless the folder has only
    studies that are not the paper's. In an empty folder all figures are the shipped ones.
    """
    made = {figure.id: recorded(figure, out / figure.id) for figure in FIGURES.values()}
    own = _own(out, {id for id, there in made.items() if there})
    results = {
        (figure.id, protocol): _read(figure, out, protocol, one)
        for figure in FIGURES.values()
        for protocol, one in made[figure.id].items()
    }
    shown = []
    for figure in FIGURES.values() if results or not own else ():
        there = shipped(figure)
        if made[figure.id]:
            shown.append(replace(_show(figure, made[figure.id], results), beside=there))
            _leave(shown[-1], out / figure.id)
        else:
            shown.append(there or Exhibit(figure, (), (), (), (), {}))
        if there is not None:
            _copy(there, out)
    title = "Importance resampling for off-policy prediction, reproduced" if shown else "Studies"
    for one in own:
        leave(one, out)
        shown.append(one)
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
    write_text(out / PAGE, text)
    return shown


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
            if name in FIGURES and finished(study, out).runs < study.runs:
                raise ValueError(f"it is not finished; `gvf reproduce {name}` goes on")
            shown += show(study, out)
        except (ValueError, OSError) as error:
            warnings.warn(f"study {name!r} is left out: {error}", RuntimeWarning, stacklevel=2)
    return shown


def _read(figure: Figure, out: Path, protocol: str, made: Provenance) -> Results:
    study = figure.study(protocol, made.scale, made.runs, seed=made.seed, **made.options)
    return Results.read(Store(study, out), protocol)


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
