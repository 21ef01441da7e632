"""The report: points, pictures, verdicts and the page, made from stored results.

    <out>/<figure>/<figure>.png, .svg, .csv, published.csv, claims.json, made-<protocol>.json
    <out>/report.html

Only averages are computed, so the report can be rebuilt from results at any time. A file
``made-<protocol>.json`` beside a figure keeps the scale of its results under a protocol. Each
protocol has its own, so that commands that run at once do not overwrite each other's.
"""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Mapping, Set
from dataclasses import asdict
from pathlib import Path

from gvf.common.files import write_text
from gvf.common.version import __version__
from gvf.figure import Figure, compare, judge
from gvf.figure.figure import Point, write_csv
from gvf.figure.picture import save
from gvf.figure.published import Match
from gvf.paper import FIGURES
from gvf.report.exhibit import Exhibit, Provenance
from gvf.report.page import page
from gvf.report.study import leave, show
from gvf.study.local import processors
from gvf.study.results import Results
from gvf.study.store import Store, StoreError, latest
from gvf.study.toml import load

MADE = "made-{}.json"
PAGE = "report.html"


def record(figure: Figure, out: Path, protocol: str, made: Provenance) -> None:
    """Record how the results of a figure under a protocol were made."""
    folder = out / figure.id
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / MADE.format(protocol), json.dumps(asdict(made), indent=2))


def recorded(figure: Figure, out: Path) -> dict[str, Provenance]:
    """Return the provenance of a figure's results, by protocol."""
    made = {}
    for protocol in ("paper", "authors"):
        path = out / figure.id / MADE.format(protocol)
        try:
            made[protocol] = Provenance(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            continue
        except (json.JSONDecodeError, TypeError) as error:
            raise StoreError(
                f"{path} cannot be read ({error}): delete it, and `gvf reproduce {figure.id}` "
                "makes it"
            ) from None
    return made


def build(out: Path, command: str) -> list[Exhibit]:
    """Draw every figure that was made under a folder, judge its claims, and write the page."""
    made = {figure.id: recorded(figure, out) for figure in FIGURES.values()}
    own = _own(out, {id for id, there in made.items() if there})
    if not own and not any(made.values()):
        raise ValueError(
            f"no figures were made in {out}: `gvf reproduce --out {out}` makes those of the paper, "
            f"and `gvf run STUDY --out {out}` results of your own"
        )
    results = {
        (figure.id, protocol): _read(figure, out, protocol, one)
        for figure in FIGURES.values()
        for protocol, one in made[figure.id].items()
    }
    shown = []
    for figure in FIGURES.values():
        if made[figure.id]:
            shown.append(_show(figure, made[figure.id], results))
            _leave(shown[-1], out / figure.id)
    title = "Importance resampling for off-policy prediction, reproduced" if shown else "Studies"
    for one in own:
        leave(one, out)
        shown.append(one)
    # The pictures of a study share its results, so their time counts once.
    every = {id(how): how for one in shown for how in one.made.values()}
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
            shown += show(load(path).with_(name=name), out)
        except (ValueError, OSError) as error:
            warnings.warn(f"study {name!r} is left out: {error}", RuntimeWarning, stacklevel=2)
    return shown


def _read(figure: Figure, out: Path, protocol: str, made: Provenance) -> Results:
    study = figure.study(protocol, made.scale, made.runs, **made.options)
    return Results.read(Store(study, out), protocol)


def _show(
    figure: Figure, made: Mapping[str, Provenance], results: Mapping[tuple[str, str], Results]
) -> Exhibit:
    rows: list[Point] = []
    matches: list[Match] = []
    verdicts = []
    published: list[Point] = []
    for protocol in made:
        mine = figure.read(results[figure.id, protocol])
        rows += mine
        for theirs in figure.published:
            points = theirs.rows(row.x for row in mine)
            ours = set(figure.study("authors").methods)
            points = [point for point in points if point.series in ours]
            published += (point for point in points if point not in published)
            if protocol in theirs.protocols:
                matches += compare(mine, theirs, points)
        others = {id: one for (id, under), one in results.items() if under == protocol}
        verdicts += (
            judge(claim, results[figure.id, protocol], others)
            for claim in figure.claims
            if protocol in claim.protocols
        )
    mine = {protocol: results[figure.id, protocol] for protocol in made}
    drawn = {one: one.draw(next(iter(mine.values()))) for one in figure.companions}
    pictures = {one: picture for one, picture in drawn.items() if picture is not None}
    return Exhibit(figure, rows, published, matches, verdicts, made, mine, pictures)


def _leave(shown: Exhibit, folder: Path) -> None:
    figure = shown.figure
    write_csv(shown.rows, folder / f"{figure.id}.csv")
    if shown.published:
        write_csv(shown.published, folder / "published.csv")
    verdicts = [asdict(verdict) for verdict in shown.verdicts]
    write_text(
        folder / "claims.json", json.dumps(verdicts, indent=2, ensure_ascii=False, allow_nan=False)
    )
    save(shown.draw(), folder, figure.id)
    for companion, picture in shown.companions.items():
        save(picture, folder, companion.name)


def machine() -> str:
    """Describe this machine in a few words."""
    return (
        f"{platform.system()} {platform.machine()}, {processors()} processors, "
        f"Python {platform.python_version()}"
    )
