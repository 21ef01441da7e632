"""From stored results to a report: points, pictures, verdicts, and the page.

    <out>/<figure>/<figure>.png, .svg, .csv, published.csv, claims.json, made.json
    <out>/report.html

Nothing is computed anew but averages: the report can be rebuilt from results at any time. What was
run, at which scale and under which protocol, is kept in ``made.json`` beside the figure.
"""

from __future__ import annotations

import json
import platform
import secrets
import warnings
from collections.abc import Mapping, Set
from dataclasses import asdict
from pathlib import Path

import gvf
from gvf.paper import FIGURES, Figure, compare, judge
from gvf.paper.figure import Row, write_csv
from gvf.paper.published import Match
from gvf.report.more import more
from gvf.report.page import page
from gvf.report.picture import draw_shown, save
from gvf.report.shown import Made, Shown
from gvf.report.study import leave, show
from gvf.study.local import processors
from gvf.study.results import Results
from gvf.study.store import Store, StoreError, studies
from gvf.study.toml import load

MADE = "made.json"
PAGE = "report.html"


def record(figure: Figure, out: Path, protocol: str, made: Made) -> None:
    """Remember how the results of a figure under a protocol were made."""
    folder = out / figure.id
    folder.mkdir(parents=True, exist_ok=True)
    known = {name: asdict(one) for name, one in recorded(figure, out).items()}
    known[protocol] = asdict(made)
    _write(folder / MADE, json.dumps(known, indent=2))


def recorded(figure: Figure, out: Path) -> dict[str, Made]:
    """How the results of a figure were made, by protocol."""
    path = out / figure.id / MADE
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        # The paper first, whichever was run first.
        return {name: Made(**known[name]) for name in ("paper", "authors") if name in known}
    except FileNotFoundError:
        return {}
    except (json.JSONDecodeError, TypeError) as error:
        raise StoreError(
            f"{path} cannot be read ({error}): delete it, and `gvf reproduce {figure.id}` makes it"
        ) from None


def build(out: Path, command: str) -> list[Shown]:
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
    # The pictures of a study share its results, whose time counts once.
    every = {id(how): how for one in shown for how in one.made.values()}
    text = page(
        shown,
        title=title,
        command=command,
        version=gvf.__version__,
        machine=machine(),
        seconds=sum(how.seconds for how in every.values()),
    )
    _write(out / PAGE, text)
    return shown


def _own(out: Path, figures: Set[str]) -> list[Shown]:
    """What there is to see of studies beside figures that were made; what is left out is named.

    Of a study that was run with several settings, the last is shown.
    """
    last = {path.parent.name: path for path in sorted(studies(out), key=_time)}
    shown = []
    for name, path in last.items():
        if name in figures:
            continue
        try:
            shown += show(load(path).with_(name=name), out)
        except (ValueError, OSError) as error:
            warnings.warn(f"study {name!r} is left out: {error}", RuntimeWarning, stacklevel=2)
    return shown


def _time(path: Path) -> float:
    return path.stat().st_mtime


def _read(figure: Figure, out: Path, protocol: str, made: Made) -> Results:
    study = figure.study(protocol, made.scale, made.runs, **made.options)
    return Results.read(Store(study, out), protocol)


def _show(
    figure: Figure, made: Mapping[str, Made], results: Mapping[tuple[str, str], Results]
) -> Shown:
    rows: list[Row] = []
    matches: list[Match] = []
    verdicts = []
    published: list[Row] = []
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
    pictures = more(figure.more, next(iter(mine.values())))
    return Shown(figure, rows, published, matches, verdicts, made, mine, pictures)


def _leave(shown: Shown, folder: Path) -> None:
    figure = shown.figure
    write_csv(shown.rows, folder / f"{figure.id}.csv")
    if shown.published:
        write_csv(shown.published, folder / "published.csv")
    told = [asdict(verdict) for verdict in shown.verdicts]
    _write(folder / "claims.json", json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False))
    save(draw_shown(shown), folder, figure.id)
    for name, picture in shown.more.items():
        save(picture, folder, name)


def machine() -> str:
    """This machine, in a few words."""
    return (
        f"{platform.system()} {platform.machine()}, {processors()} processors, "
        f"Python {platform.python_version()}"
    )


def _write(path: Path, text: str) -> None:
    """Write beside and rename: a reader never sees half a file."""
    # A name of its own, since another process may be writing the same file.
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        beside.write_text(text + ("" if text.endswith("\n") else "\n"), encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
