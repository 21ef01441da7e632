"""Evidence: the results of figures at the paper's scale, which the laboratory carries.

    gvf_lab/evidence/<figure>/<figure>.csv, claims.json, made-<protocol>.json, seeds.json
    gvf_lab/evidence/<figure>/<figure>.png, <figure>-narrow.png, and what goes with them
    gvf_lab/evidence/theory.json    the outcome of ``gvf verify``

These are the files that ``gvf reproduce --scale paper`` leaves, with numbers of seven digits.
``seeds.json`` has the verdicts on the same claims under other seeds. ``lab/tools/ship_evidence.py``
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

from gvf_lab.figure.claim import Verdict
from gvf_lab.figure.figure import Figure, Point
from gvf_lab.report.exhibit import Exhibit, Provenance, compared
from gvf_lab.study.encoding import settings, variant
from gvf_lab.study.store import Store, StoreError

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


def evidence(figure: Figure) -> Traversable:
    """Return the folder of a figure's evidence, which may not exist."""
    return files("gvf_lab") / "evidence" / figure.id


@cache
def theory() -> dict[str, Any]:
    """Return the shipped outcome of ``gvf verify``: its origin, and rows by the result's name.

    Example:
        >>> from gvf_lab.report.evidence import theory
        >>> [row["holds"] for row in theory()["findings"]["corollary-3-1-1"]["rows"]]
        [True, True]
    """
    return json.loads((files("gvf_lab") / "evidence" / THEORY).read_text(encoding="utf-8"))


def shipped(figure: Figure) -> Exhibit | None:
    """Return the shipped exhibit of a figure, or None if there is none.

    Example:
        >>> from gvf_lab.paper import get
        >>> from gvf_lab.report.evidence import shipped
        >>> one = shipped(get("markov-step-size"))
        >>> one.provenance["paper"].scale, one.provenance["paper"].runs
        ('paper', 100)
    """
    folder = evidence(figure)
    provenance = recorded(figure, folder)
    if not provenance:
        return None
    rows = points((folder / f"{figure.id}.csv").read_text(encoding="utf-8"))
    pictures = {
        file.name.removesuffix(".png"): file.read_bytes()
        for file in folder.iterdir()
        if file.name.endswith(".png")
    }
    return Exhibit(
        figure, rows, *compared(figure, rows), verdicts(folder), provenance,
        shipped=True, place=(f"shipped/{figure.id}", ""), seeds=_seeds(folder), pictures=pictures,
    )  # fmt: skip


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
        >>> from gvf_lab.report.evidence import points
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


def copies(exhibit: Exhibit) -> dict[str, bytes]:
    """Return the files of a shipped exhibit that a page refers to: all but pictures, by name."""
    folder = evidence(exhibit.figure).iterdir()
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
