"""Evidence: the results of figures at the paper's scale, which gvf carries.

    gvf/paper/evidence/<figure>/<figure>.csv, claims.json, made-<protocol>.json, seeds.json
    gvf/paper/evidence/<figure>/<figure>.png, <figure>-narrow.png, and what goes with them
    gvf/charts/evidence/<figure>/...    the same files for charts
    gvf/paper/theory.json       the outcome of ``gvf verify``

These are the files that ``gvf reproduce --scale paper`` leaves, with numbers of seven digits.
``seeds.json`` has the verdicts on the same claims under other seeds. ``tools/ship_evidence.py``
writes the folder. Whoever makes the results anew can compare them with ``made-<protocol>.json``,
which has the study's settings and the hash of its results.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import subprocess
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gvf import charts
from gvf.figure.claim import Verdict
from gvf.figure.figure import Figure, Point
from gvf.report.exhibit import Exhibit, Provenance, compared
from gvf.study.encoding import settings, variant
from gvf.study.store import Store, StoreError

PROTOCOLS = ("paper", "authors")
"""The protocols under which a figure can be made."""
MADE = "made-{}.json"
"""The file with the provenance of a figure under a protocol."""
CLAIMS = "claims.json"
"""The file with a figure's verdicts."""
SEEDS = "seeds.json"
"""The file with the verdicts under several seeds."""
THEORY = "theory.json"
"""The file with the outcome of ``gvf verify``."""
NARROW = "-narrow"
"""The end of the name of a picture with one column."""


def room_of(figure: Figure) -> str:
    """Return the name of the folder of gvf that a figure belongs to: "paper" or "charts"."""
    return "charts" if figure.id in charts.FIGURES else "paper"


def evidence(figure: Figure) -> Traversable:
    """Return the folder of a figure's evidence, which may not exist."""
    return files(f"gvf.{room_of(figure)}") / "evidence" / figure.id


@cache
def theory() -> dict[str, Any]:
    """Return the shipped outcome of ``gvf verify``: its origin, and rows by the result's name.

    Example:
        >>> from gvf.report.evidence import theory
        >>> [row["holds"] for row in theory()["findings"]["corollary-3-1-1"]["rows"]]
        [True, True]
    """
    return json.loads((files("gvf.paper") / THEORY).read_text(encoding="utf-8"))


def shipped(figure: Figure) -> Exhibit | None:
    """Return the shipped exhibit of a figure, or None if there is none.

    Example:
        >>> from gvf.paper import get
        >>> from gvf.report.evidence import shipped
        >>> one = shipped(get("markov-step-size"))
        >>> one.made["paper"].scale, one.made["paper"].runs
        ('paper', 100)
    """
    folder = evidence(figure)
    made = recorded(figure, folder)
    if not made:
        return None
    rows = points((folder / f"{figure.id}.csv").read_text(encoding="utf-8"))
    pictures = {
        file.name.removesuffix(".png"): file.read_bytes()
        for file in folder.iterdir()
        if file.name.endswith(".png")
    }
    return Exhibit(
        figure, rows, *compared(figure, rows), verdicts(folder), made,
        shipped=True, place=(f"shipped/{figure.id}", ""), seeds=_seeds(folder), pictures=pictures,
    )  # fmt: skip


def recorded(figure: Figure, folder: Traversable) -> dict[str, Provenance]:
    """Return the provenance of a figure's results in a folder, by protocol."""
    made = {}
    for protocol in PROTOCOLS:
        path = folder / MADE.format(protocol)
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


def verdicts(folder: Traversable) -> list[Verdict]:
    """Return the verdicts in a figure's folder."""
    told = json.loads((folder / CLAIMS).read_text(encoding="utf-8"))
    return [Verdict(**{key: _tuple(value) for key, value in one.items()}) for one in told]


def _tuple(value: Any) -> Any:
    """Return tuples for the lists of JSON."""
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _seeds(folder: Traversable) -> dict[tuple[str, str], dict[int, str]]:
    told = json.loads((folder / SEEDS).read_text(encoding="utf-8"))
    return {
        (protocol, claim): dict(zip(there["seeds"], several, strict=True))
        for protocol, there in told.items()
        for claim, several in there["claims"].items()
    }


def points(text: str) -> list[Point]:
    r"""Read points from the text of a CSV file; an empty cell is nan.

    Example:
        >>> from gvf.report.evidence import points
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


def copies(one: Exhibit) -> dict[str, bytes]:
    """Return the files of a shipped exhibit that a page refers to: all but pictures, by name."""
    folder = evidence(one.figure).iterdir()
    kept = [file for file in folder if not file.name.endswith(".png")]
    return {file.name: file.read_bytes() for file in sorted(kept, key=lambda file: file.name)}


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
    source = Path(__file__).resolve().parents[3]
    if not (source / ".git").exists():
        return ""  # a wheel; a checkout around it would be somebody else's
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        told = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return told.stdout.strip()
