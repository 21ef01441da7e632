"""The families of claims: they expand to the golden list, and each reads what it names."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from golden_claims import FIGURES, GOLDEN, digest, number, numbers, random_results

from gvf_lab.figure.claim import Claim
from gvf_lab.study.results import Results

LIST = json.loads(GOLDEN.read_text(encoding="utf-8"))
CACHE: dict[tuple[str, str], Results] = {}


def test_the_golden_list_has_every_claim_once() -> None:
    assert {id: [*entry["numbers"]] for id, entry in LIST.items()} == {
        id: sorted(claim.id for claim in figure.claims) for id, figure in FIGURES.items()
    }


@pytest.mark.parametrize("id", FIGURES)
def test_a_figure_has_the_claims_of_the_golden_list(id: str) -> None:
    assert digest(FIGURES[id]) == LIST[id]["fields"]


@pytest.mark.parametrize("id", [id for id, figure in FIGURES.items() if figure.claims])
def test_claims_have_the_numbers_of_the_golden_list(id: str) -> None:
    measured = numbers(FIGURES[id], CACHE)
    for claim, golden in LIST[id]["numbers"].items():
        for ours, theirs in zip(measured[claim], golden, strict=True):
            assert _floats(ours) == pytest.approx(_floats(theirs), rel=1e-5, nan_ok=True), claim


def _floats(values: list[float | None]) -> list[float]:
    return [np.nan if value is None else value for value in values]


class Recorded(Mapping[Any, Any]):
    """Results by cell that remember which cells were read."""

    def __init__(self, cells: Mapping[Any, Any]) -> None:
        self.cells, self.read = cells, set[Any]()

    def __getitem__(self, cell: Any) -> Any:
        self.read.add(cell)
        return self.cells[cell]

    def __contains__(self, cell: object) -> bool:
        return cell in self.cells

    def __iter__(self) -> Iterator[Any]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)


def cells_read(id: str, claim: Claim, protocol: str) -> tuple[Results, set[Any]]:
    """Return the results of a figure, and the cells that the statistic of a claim reads."""
    recorded: list[Recorded] = []
    all_results = []
    for name in (id, *claim.needs):
        results = CACHE.setdefault((name, protocol), random_results(FIGURES[name], protocol))
        cells = Recorded(results.by_method)
        recorded.append(cells)
        all_results.append(replace(results, by_method=cells))
    number(claim, all_results[0], dict(zip(claim.needs, all_results[1:], strict=True)))
    return all_results[0], recorded[0].read


@pytest.mark.parametrize("id", [id for id, figure in FIGURES.items() if figure.claims])
def test_a_claim_reads_the_pair_the_gap_and_the_methods_that_it_names(id: str) -> None:
    for claim in FIGURES[id].claims:
        results, cells = cells_read(id, claim, "paper")
        pairs, gaps, methods = (set(values) for values in zip(*cells, strict=True))
        study, of = results.study, claim.of
        if "pairs" in of or "pair" in of:
            assert pairs == {*of.get("pairs", ()), *([of["pair"]] if "pair" in of else [])}, (
                claim.id
            )
        else:
            assert pairs <= {*study.pairs}
        at = {"largest": max(study.gaps), "smallest": min(study.gaps)} if study.gaps[0] else {}
        if "gap" in of:
            extra = {*study.gaps} if claim.statistic.__name__ == "needed_updates_ratio" else set()
            assert gaps - extra <= {at.get(of["gap"], of["gap"])}, claim.id
        named = {of[name] for name in ("method", "other") if name in of}
        named |= {method for name in ("methods", "others") for method in of.get(name, ())}
        if "method" in of and "other" in of and not claim.needs:
            assert methods == named, claim.id
        elif named and claim.statistic.__name__ not in TAKES_ALL:
            assert methods <= named, claim.id


TAKES_ALL = ("best_of_all", "least_stable_step_of_others")
"""Statistics that compare with all other methods of a figure."""
