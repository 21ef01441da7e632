"""The cases of the laboratory: each function turns the data of a case into calls of its API.

Results of studies lie in a folder that all cases of a run share, because claims compare figures.
After a renaming only this file and ``library.py`` change; the data of the cases stay.
"""

from __future__ import annotations

import io
import os
import tempfile
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from library import as_text

from gvf_lab import catalogue, report, theory
from gvf_lab import domain as domains
from gvf_lab import study as studies
from gvf_lab.charts import chart_studies
from gvf_lab.figure import judge
from gvf_lab.figure.figure import write_csv
from gvf_lab.report.build import CHARTS, PAGE, build
from gvf_lab.study.base_study import seed_for
from gvf_lab.study.encoding import encode
from gvf_lab.study.results import Results
from gvf_lab.study.run_study import run
from gvf_lab.study.settings import variant
from gvf_lab.study.store import Store

PROTOCOLS = ("paper", "authors")
Outputs = dict[str, Any]


def figure_of(name: str) -> Any:
    """Return a figure of the paper or a chart."""
    return catalogue.figure_of(name)


def verify(seed: int) -> Outputs:
    """Compute the rows of ``gvf verify``."""
    return {
        f"{number}": [
            [row.predicted, row.measured, row.tolerance, row.relation, row.holds]
            for row in finding.rows
        ]
        for number, finding in enumerate(theory.verify(seed=seed))
    }


def random_streams(domain: str) -> Outputs:
    """Draw the seeds and walks of studies in a domain, and compute its truth's first states."""
    outputs: Outputs = {}
    for protocol in PROTOCOLS:
        world = domains.get(domain, protocol)
        target, behaviour = world.pairs[0]
        seed = seed_for(3, 1, "walk", behaviour)
        path: Any = world.walk(world.behaviour(behaviour), [target], 200, seed)
        signals = path.signals[target]
        outputs[f"{protocol}, seed"] = seed.generate_state(4)
        outputs[f"{protocol}, action"] = path.action
        outputs[f"{protocol}, features"] = path.x
        outputs[f"{protocol}, ratio"] = signals.ratio
        outputs[f"{protocol}, cumulant"] = signals.cumulant
        outputs[f"{protocol}, continuation"] = signals.continuation
    return outputs


def variants(study: str) -> Outputs:
    """Return the digests of a named study, and of the figure that shows it, at both scales."""
    outputs: Outputs = {p: variant(catalogue.study_of(study, p)) for p in PROTOCOLS}
    if study in catalogue.FIGURES:
        for protocol in PROTOCOLS:
            quick = figure_of(study).study(protocol, "quick")
            outputs[f"{protocol}, quick"] = variant(quick)
            outputs[f"{protocol}, quick, tasks"] = [task.name for task in quick.tasks()][:400]
    return outputs


def plain(value: Any) -> Any:
    """Return the fields of a data class, without functions."""
    if is_dataclass(value):
        pairs = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: plain(value) for name, value in pairs.items() if not callable(value)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value


def claims(figure: str) -> Outputs:
    """Return all fields of the claims of a figure, except their functions, by their first names."""
    rows = {claim.id: plain(claim) for claim in figure_of(figure).claims}
    for row in rows.values():
        row["given"] = row.pop("not_counted")
        row["history"] = [entry["text"] for entry in row["history"]]
        for name in ("of", "family", "names"):
            del row[name]
    return rows


def shipped(figure: str) -> Outputs:
    """Return the shipped numbers and verdicts of a figure, and how they compare with the paper."""
    version = report.shipped(figure_of(figure))
    if version is None:
        return {"shipped": False}
    return {
        "points": [list(point) for point in version.rows],
        "published": [list(point) for point in version.published],
        "verdicts": [plain(verdict) for verdict in version.verdicts],
        "seeds": {f"{key}": verdicts for key, verdicts in (version.seeds or {}).items()},
        "provenance": {
            protocol: plain(provenance) for protocol, provenance in version.provenance.items()
        },
    }


def study(study: Any) -> Outputs:
    """Compute every task of a small study, as the columns and metadata of its Parquet file."""
    import pyarrow.parquet as pq

    kind, settings = study
    options = {
        name: tuple(map(tuple, value)) if name == "pairs" else tuple(value)
        if isinstance(value, list) else value
        for name, value in settings.items()
    }  # fmt: skip
    if options.get("methods") == "all":
        options["methods"] = tuple(chart_studies.NAMED)  # pyright: ignore
    chosen = getattr(studies, kind)("small", **options)
    outputs: Outputs = {"variant": variant(chosen)}
    for task in chosen.tasks():
        table = pq.read_table(io.BytesIO(encode(task, chosen.compute(task, lambda: False))))
        metadata = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
        del metadata["gvf.version"]
        outputs[f"{task.name}, metadata"] = metadata
        outputs[f"{task.name}, types"] = [f"{field.name} {field.type}" for field in table.schema]
        for name in ("error", "final", "trace", "curve"):
            values = [np.ravel(x) for x in table[name].to_pylist() if x is not None]
            if values:
                outputs[f"{task.name}, {name}"] = np.concatenate(values).astype(float)
    return outputs


def results_folder() -> Path:
    """Return the folder of results that the cases of this run share."""
    shared = os.environ.get("SAME_RESULTS_FOLDER")
    return Path(shared or tempfile.mkdtemp()) / "results"


@cache
def results_of(figure: str, protocol: str) -> Any:
    """Return the quick results of a figure; run what is missing."""
    chosen = figure_of(figure)
    quick = chosen.study(protocol, "quick")
    run(quick, results_folder(), workers=1)
    results = Results.read(Store(quick, results_folder()), protocol)
    return results.second_half() if chosen.fresh else results


def figure(figure: str) -> Outputs:
    """Return the CSV files of a quick figure in both protocols, and the verdicts on its claims."""
    chosen, points, verdicts = figure_of(figure), [], []
    companions: dict[str, str] = {}
    for protocol in PROTOCOLS:
        results = results_of(figure, protocol)
        points += chosen.read(results)
        for claim in chosen.claims:
            if protocol in claim.protocols:
                needed = {name: results_of(name, protocol) for name in claim.needs}
                verdict = judge(claim, results, {figure: results, **needed})
                verdicts.append(asdict(verdict))
        for companion in chosen.companions:
            if companion.read is not None:
                name = f"{companion.name}, {protocol}"
                companions[name] = csv_of(companion.read(results))
    return {"points": csv_of(points), **companions, "verdicts": verdicts}


def csv_of(rows: Any) -> str:
    """Return rows as the text of a CSV file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "points.csv")
        write_csv(rows, path)
        return path.read_text(encoding="utf-8")


def page() -> Outputs:
    """Return the texts of the pages that show what is shipped."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), "gvf report")
        pages = {name: Path(folder, name).read_text(encoding="utf-8") for name in (PAGE, CHARTS)}
    return {name: as_text(text) for name, text in pages.items()}
