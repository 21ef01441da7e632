"""The claims as they stand: every field of each, and its number on results drawn at random.

`golden-claims.json` has, by figure, a digest of all fields of all claims, and by claim and protocol
the statistic on results in which every cell has errors of its own. So a claim that reads another
method, pair or gap has another number. After a change of claims on purpose,

    python lab/tests/golden_claims.py

writes the file anew; its diff names the claims that changed.
"""

import hashlib
import json
import math
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gvf_lab.catalogue import Figures
from gvf_lab.figure import Claim, Figure
from gvf_lab.figure.statistics import Bounds
from gvf_lab.racing import RacingStudy
from gvf_lab.study import VarianceStudy
from gvf_lab.study.results import MethodResults, Results

GOLDEN = Path(__file__).with_name("golden-claims.json")
GAPS = (1, 4, 16, 64, 256)
"""The gaps of results, if a figure has several: all at which claims compare methods."""
RUNS = 12


def with_all_gaps(figure: Figure) -> Figure:
    """Return a figure whose quick study has all gaps at which claims compare methods."""
    return (
        replace(figure, quick={**figure.quick, "gaps": GAPS}) if "gaps" in figure.quick else figure
    )


FIGURES = {id: with_all_gaps(figure) for id, figure in Figures("paper", "charts").items()}


def fields(claim: Claim) -> dict[str, Any]:
    """Return all fields of a claim that a reader sees."""
    return {
        "id": claim.id,
        "sentence": claim.sentence,
        "measure": claim.measure,
        "range": [claim.least, claim.most],
        "needs": claim.needs,
        "protocols": claim.protocols,
        "because": claim.because,
        "why": claim.why,
        "history": [[entry.text, entry.knew] for entry in claim.history],
        "not_counted": claim.not_counted,
        "place": claim.place,
    }


def digest(figure: Figure) -> str:
    """Return the digest of all fields of a figure's claims, whatever their order."""
    claims = sorted((fields(claim) for claim in figure.claims), key=lambda claim: claim["id"])
    return hashlib.sha256(json.dumps(claims).encode()).hexdigest()[:16]


def random_results(figure: Figure, protocol: str) -> Results:
    """Return results in which the error of every cell is a curve of its own, drawn at random."""
    study = figure.study(protocol, "quick", RUNS)
    cells = {}
    for pair in study.pairs:
        for gap in study.gaps:
            for method in study.methods:
                key = f"{figure.id} {'/'.join(pair)} {gap} {method}".encode()
                cells[pair, gap, method] = _cell(
                    study, method, np.random.default_rng(zlib.crc32(key))
                )
    results = Results(study, protocol, cells)
    return results.second_half() if figure.fresh else results


def _cell(study: Any, method: str, rng: np.random.Generator) -> MethodResults:
    choices = study.choices(method)
    runs = rng.uniform(0.98, 1.02, (study.runs, 1))
    if isinstance(study, VarianceStudy):
        values = {
            kind: runs * rng.uniform(0.3, 3.0, len(choices)) for kind in ("l1", "scalar", "trace")
        }
        return MethodResults(choices, values)
    sizes = np.array([_size(study, choice) for choice in choices])
    places = np.unique(sizes[sizes > 0])
    low, high = (
        places[int(len(places) * rng.uniform(*share))] for share in ((0.1, 0.35), (0.6, 0.85))
    )
    level = rng.uniform(0.2, 0.4) * rng.uniform(1.0, 1.2, len(choices))
    curve = level + (0.9 - level) / (1 + (sizes / low) ** 3) + (1 - level) * (sizes / high) ** 4
    error = runs * np.minimum(curve, 3.0)
    final = error * rng.uniform(0.3, 0.9)
    points = getattr(study, "points", 10)
    course = error[:, :, None] * rng.uniform(0.5, 1.5, points)
    columns = {
        "error": error, "final": final, "curve": course,
        "curve_steps": np.broadcast_to(np.arange(points) + 0.5, course.shape),
    }  # fmt: skip
    if isinstance(study, RacingStudy):
        columns["constant"] = np.full(error.shape, 0.9)
    return MethodResults(choices, columns)


def _size(study: Any, choice: Any) -> float:
    key = study.key(choice)
    return float(key["step_size"] if "step_size" in key else key["eta"])


def number(claim: Claim, results: Results, others: dict[str, Results]) -> list[float | None]:
    """Return the statistic of a claim, or its bounds: of all runs and of one bootstrap sample."""
    with np.errstate(all="ignore"):
        value = claim.value(results, *(others[name] for name in claim.needs))
    ends = (value.least, value.most) if isinstance(value, Bounds) else (value,)
    known = ends[:1] if all(np.array_equal(ends[0], end) for end in ends) else ends
    return [_short(float(end[at])) for at in (0, 7) for end in known]


def _short(value: float) -> float | None:
    return float(f"{value:.7g}") if math.isfinite(value) else None


def numbers(figure: Figure, cache: dict[tuple[str, str], Results]) -> dict[str, Any]:
    """Return the numbers of a figure's claims by id, under each of their protocols."""

    def results(id: str, protocol: str) -> Results:
        if (id, protocol) not in cache:
            cache[id, protocol] = random_results(FIGURES[id], protocol)
        return cache[id, protocol]

    return {
        claim.id: [
            number(
                claim,
                results(figure.id, protocol),
                {name: results(name, protocol) for name in claim.needs},
            )
            for protocol in claim.protocols
        ]
        for claim in sorted(figure.claims, key=lambda claim: claim.id)
    }


def golden() -> dict[str, Any]:
    """Return what `golden-claims.json` has if it is written now."""
    cache: dict[tuple[str, str], Results] = {}
    return {
        id: {"fields": digest(figure), "numbers": numbers(figure, cache)}
        for id, figure in FIGURES.items()
    }


if __name__ == "__main__":
    text = ",\n".join(
        f'"{id}": {{"fields": "{entry["fields"]}", "numbers": {{\n'
        + ",\n".join(
            f" {json.dumps(claim)}: {json.dumps(value, separators=(',', ':'))}"
            for claim, value in entry["numbers"].items()
        )
        + "\n}}"
        for id, entry in golden().items()
    )
    GOLDEN.write_text(f"{{\n{text}\n}}\n")
