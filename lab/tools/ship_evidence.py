"""Ship the results of figures at the paper's scale with the package.

    gvf reproduce --scale paper --protocol both --out DIR            makes them
    gvf reproduce --scale paper --protocol both --seed 1 --out DIR1  and again with other seeds
    python lab/tools/ship_evidence.py DIR --seed-folders DIR1 DIR2   writes lab/src/gvf_lab/evidence
    python lab/tools/ship_evidence.py --theory                       writes theory.json there

Every figure that DIR has replaces the one that was shipped before; the others stay. Numbers get
seven digits, and pictures a palette, so that all together stay at a few megabytes. Charts are many,
so they have fewer colours, no pictures for narrow screens, and no large tables. Results are
refused if they are not at the paper's scale or do not belong to the present studies and claims. If
only claims have changed, `gvf reproduce --report DIR` judges the same results anew.
"""

import argparse
import csv
import io
import json
import math
import shlex
import shutil
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from PIL import Image

from gvf.common.version import __version__
from gvf_lab import charts
from gvf_lab.catalogue import Figures
from gvf_lab.figure import Figure, Verdict
from gvf_lab.figure.figure import write_csv
from gvf_lab.figure.picture import render
from gvf_lab.report.exhibit import (
    CLAIMS,
    MADE,
    NARROW,
    SEEDS,
    THEORY,
    Provenance,
    Version,
    compared,
    fingerprint,
    points,
    recorded,
    verdicts,
)
from gvf_lab.study.settings import variant
from gvf_lab.study.store import Store
from gvf_lab.theory import verify
from gvf_lab.theory.finding import NUMBERS

EVIDENCE = Path(__file__).resolve().parents[1] / "src" / "gvf_lab" / "evidence"
FIGURES = Figures("paper", "charts")
DIGITS = 7
"""Significant digits of shipped numbers."""
EXACT = ("x", "step_size")
"""The columns of a CSV file that are not rounded."""
COLOURS = {"paper": 256, "charts": 80}
"""Colours of a shipped picture, by the folder of gvf."""
LARGEST = 100_000
"""Bytes of the largest table that is shipped with a picture; `gvf reproduce` makes all of them."""


class RefusedError(ValueError):
    """The error if results may not be shipped; its message says why and what to do."""


def main(options: argparse.Namespace) -> None:
    """Ship every figure that the folder has, and say how large it is."""
    figures = [
        figure for figure in FIGURES.values() if recorded(figure, options.folder / figure.id)
    ]
    if not figures:
        raise RefusedError(f"{options.folder} has no figures: `gvf reproduce` makes them")
    folders = [options.folder, *options.seed_folders]
    # All are checked before the first is written.
    checked = {
        figure.id: [
            (check(figure, folder, options.commit), folder)
            for folder in folders
            if recorded(figure, folder / figure.id)
        ]
        for figure in figures
    }
    for figure in figures:
        provenance, _ = checked[figure.id][0]
        to = home(figure)
        shutil.rmtree(to, ignore_errors=True)
        ship(figure, options.folder, provenance, to)
        _json(to / SEEDS, agreement(figure, checked[figure.id]))
        size = sum(file.stat().st_size for file in to.iterdir())
        print(f"{figure.id}: {', '.join(provenance)}, {size / 1000:.0f} kB")


def ship_theory(seed: int = 0) -> None:
    """Run ``gvf verify``, and ship its rows as a reader sees them."""
    findings = {
        finding.slug: {
            "result": finding.result,
            "title": finding.title,
            "rows": [
                dict(zip(("claim", *NUMBERS), (row.claim, *row.cells), strict=True))
                | {"basis": row.basis, "holds": row.holds}
                for row in finding.rows
            ],
        }
        for finding in verify(seed=seed)
    }
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    outcome = {"date": date, "version": __version__, "seed": seed, "findings": findings}
    _json(EVIDENCE / THEORY, outcome)


def home(figure: Figure) -> Path:
    """Return the folder of the source that a figure is shipped in."""
    return EVIDENCE / figure.id


def check(figure: Figure, folder: Path, commit: str = "") -> dict[str, Provenance]:
    """Return the provenance of a figure's results, complete; raise an error if they do not fit."""
    provenance = {}
    for protocol, how in recorded(figure, folder / figure.id).items():
        name = f"{figure.id}, protocol {protocol}, in {folder}"
        # Networks may learn on any device; everything else is as in the paper.
        device = {key: value for key, value in how.options.items() if key == "device"}
        study = figure.study(protocol, seed=how.seed, **device)
        if how.scale != "paper" or how.runs != study.runs:
            raise RefusedError(
                f"{name}: {how.runs} runs at the scale {how.scale}, not the paper's {study.runs}"
            )
        if not how.results:  # recorded by an earlier version
            how = replace(how, **fingerprint(Store(study, folder)))
        how = replace(how, commit=how.commit or commit)
        if not how.commit:
            raise RefusedError(f"{name}: the code's commit is not known; name it with --commit")
        if how.variant != variant(study):
            raise RefusedError(f"{name}: the settings are not those of the present study")
        for needed in {needed for claim in figure.claims for needed in claim.needs}:
            if protocol not in recorded(FIGURES[needed], folder / needed):
                raise RefusedError(f"{name}: its claims need {needed} too")
        if stale := differing(figure, protocol, verdicts(folder / figure.id)):
            raise RefusedError(
                f"{name}: claims differ from the present ones ({', '.join(stale)}); "
                f"`gvf reproduce --report {folder}` judges anew"
            )
        provenance[protocol] = replace(how, command=_without_out(how.command))
    return provenance


def differing(figure: Figure, protocol: str, judged: list[Verdict]) -> list[str]:
    """Return the ids of claims whose verdicts do not belong to the present claims."""
    judged_claims = {
        (verdict.id, verdict.measure, tuple(verdict.range))
        for verdict in judged
        if verdict.protocol == protocol
    }
    present = {
        (claim.id, claim.measure, (_finite(claim.least), _finite(claim.most)))
        for claim in figure.claims
        if protocol in claim.protocols
    }
    return sorted({id for id, *_ in judged_claims ^ present})


def ship(figure: Figure, folder: Path, provenance: dict[str, Provenance], to: Path) -> None:
    """Write a figure's files."""
    to.mkdir(parents=True)
    name = f"{figure.id}.csv"
    rows = points((folder / figure.id / name).read_text(encoding="utf-8"))
    rows = [row._replace(y=rounded(row.y), stderr=rounded(row.stderr)) for row in rows]
    write_csv(rows, to / name)
    judged = verdicts(folder / figure.id)
    _json(to / CLAIMS, [shorter(verdict) for verdict in judged])
    for protocol, how in provenance.items():
        _json(to / MADE.format(protocol), asdict(how))
    version = Version(figure, rows, *compared(figure, rows), judged, provenance)
    is_chart = figure.id in charts.FIGURES
    colours = COLOURS["charts" if is_chart else "paper"]
    widths = {"": None, NARROW: 1} if not is_chart else {"": None}
    for end, columns in widths.items():
        picture = render(version.draw(titled=False, columns=columns), "png")
        (to / f"{figure.id}{end}.png").write_bytes(smaller(picture, colours))
    for companion in figure.companions:
        picture = folder / figure.id / f"{companion.name}.png"
        if picture.exists():
            (to / picture.name).write_bytes(smaller(picture.read_bytes(), colours))
        table = picture.with_suffix(".csv")
        if companion.read is not None and table.exists():
            text = shorter_table(table.read_text(encoding="utf-8"))
            if len(text) <= LARGEST:
                (to / table.name).write_text(text, encoding="utf-8")


def agreement(figure: Figure, checked: list[tuple[dict[str, Provenance], Path]]) -> dict[str, Any]:
    """Return the verdicts on each claim under each seed, by protocol."""
    by_protocol: dict[str, Any] = {}
    for provenance, folder in checked:
        for protocol in checked[0][0]:
            if protocol not in provenance:
                continue
            under = by_protocol.setdefault(protocol, {"seeds": [], "claims": {}})
            if provenance[protocol].seed in under["seeds"]:
                raise RefusedError(
                    f"{figure.id}: seed {provenance[protocol].seed} twice, in {folder}"
                )
            under["seeds"].append(provenance[protocol].seed)
            for verdict in verdicts(folder / figure.id):
                if verdict.protocol == protocol:
                    under["claims"].setdefault(verdict.id, []).append(verdict.verdict)
    return by_protocol


def rounded(value: float) -> float:
    """Round a number to seven significant digits."""
    return float(f"{value:.{DIGITS}g}")


def shorter(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict for JSON; measured numbers are rounded, and the range is not."""
    numbers = {name: getattr(verdict, name) for name in ("statistic", "low", "high")}
    known = {name: rounded(value) for name, value in numbers.items() if value is not None}
    entry = asdict(verdict) | known
    if not verdict.place:
        del entry["place"]  # most figures are about one publication
    return entry


def shorter_table(text: str) -> str:
    """Round the measured numbers of a CSV file, which are those that are no parameters."""
    names, *rows = csv.reader(io.StringIO(text))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        cells = dict(zip(names, row, strict=True))
        writer.writerow(cell if name in EXACT else _short(cell) for name, cell in cells.items())
    return file.getvalue()


def _short(cell: str) -> str:
    try:
        return f"{float(cell):.{DIGITS}g}"
    except ValueError:
        return cell  # a word, or nothing


def smaller(picture: bytes, colours: int) -> bytes:
    """Return a PNG with a palette, a third of the size."""
    image, file = Image.open(io.BytesIO(picture)).convert("RGB"), io.BytesIO()
    # The colours that differ most, because thin lines must keep theirs.
    method = Image.Quantize.MAXCOVERAGE
    image = image.quantize(colours, method, kmeans=4, dither=Image.Dither.NONE)
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _without_out(command: str) -> str:
    """Remove the folder, which means nothing on another machine."""
    words = shlex.split(command)
    if "--out" in words:
        at = words.index("--out")
        del words[at : at + 2]
    return shlex.join(words)


def _json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Ship results at the paper's scale with the package."
    )
    parser.add_argument("folder", type=Path, nargs="?", metavar="DIR", help="the results to ship")
    parser.add_argument("--theory", action="store_true", help="ship the outcome of `gvf verify`")
    parser.add_argument(
        "--seed-folders", type=Path, nargs="*", default=[], metavar="DIR",
        help="the same figures with other seeds",
    )  # fmt: skip
    parser.add_argument(
        "--commit", default="", help="the commit that made the results, if their records name none"
    )
    options = parser.parse_args()
    if (options.folder is None) != options.theory:
        parser.error("give either a folder of results or --theory")
    try:
        ship_theory() if options.theory else main(options)
    except RefusedError as error:
        sys.exit(f"refused: {error}")
