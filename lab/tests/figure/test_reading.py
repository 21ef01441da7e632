"""Readings: how results become points, and the file of points."""

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted import DOWN, by_hand

from gvf_lab.figure import Point
from gvf_lab.figure.figure import write_csv
from gvf_lab.figure.points import (
    learning_curves,
    points_by_gap,
    points_by_iteration,
    points_by_step_size,
    points_by_updates,
)
from gvf_lab.study import Study, VarianceStudy
from gvf_lab.study.results import MethodResults, Results, standard_error
from gvf_lab.study.run_study import run
from gvf_lab.study.store import Store

# Readings, by hand.


TWO_GAPS = by_hand(
    {
        # Two runs, three step sizes. The best on average is not the best of any one run.
        (DOWN, 1, "IR"): [[1.0, 3.0, 9.0], [9.0, 3.0, 1.0]],
        (DOWN, 4, "IR"): [[2.0, 3.0, 0.5], [2.0, 3.0, 1.5]],
        (DOWN, 1, "IS"): [[4.0, 5.0, math.inf], [6.0, 5.0, 1.0]],
        (DOWN, 4, "IS"): [[math.inf] * 3, [1.0] * 3],
    }
)


def same(rows: Sequence[Point], expected: Sequence[tuple[Any, ...]]) -> bool:
    """Return True if rows are these, with nan equal to nan."""
    return repr([tuple(row) for row in rows]) == repr([tuple(row) for row in expected])


def test_against_the_gap_the_best_step_size_is_chosen_at_each() -> None:
    at = ("paper", "main")
    expected = [
        (*at, "IR", 1.0, 3.0, 0.0, 2, 1.0),
        (*at, "IR", 4.0, 1.0, 0.5, 2, 2.0),
        # 5 +- 1 and 5 +- 0 are equal on average: the smaller step size.
        (*at, "IS", 1.0, 5.0, 1.0, 2, 0.5),
        (*at, "IS", 4.0, math.inf, math.nan, 2, 0.5),
    ]
    assert same(points_by_gap(TWO_GAPS), expected)
    updates = {1.0: 1000.0, 4.0: 250.0}
    assert same(
        points_by_updates(TWO_GAPS), [(*row[:3], updates[row[3]], *row[4:]) for row in expected]
    )


def test_against_the_step_size_every_one_is_a_point() -> None:
    results = by_hand({(DOWN, 16, "IS"): [[4.0, 5.0, math.inf], [6.0, 5.0, 1.0]]}, "authors")
    at = ("authors", "main", "IS")
    assert same(
        points_by_step_size(results),
        [
            (*at, 0.5, 5.0, 1.0, 2, 0.5),
            (*at, 1.0, 5.0, 0.0, 2, 1.0),
            (*at, 2.0, math.inf, math.nan, 2, 2.0),
        ],
    )


def test_against_steps_x_is_the_middle_of_the_part_averaged_over() -> None:
    base = by_hand({(DOWN, 16, "IR"): [[1.0] * 3] * 2}, points=2, steps=1000)
    columns = {
        **base.of("IR").columns,
        "error": np.array([[9.0, 1.0, 2.0], [9.0, 3.0, 1.0]]),
        "final": np.zeros((2, 3)),
        "curve": np.array(
            [[[7.0, 8.0], [3.0, 1.0], [0.0, 0.0]], [[7.0, 8.0], [5.0, 1.0], [0.0, 0.0]]]
        ),
    }
    cell = MethodResults((0.5, 1.0, 2.0), columns)
    results = replace(base, by_method={(DOWN, 16, "IR"): cell})
    # The last step size is best over the whole run, so its curve is shown.
    at = ("paper", "main", "IR")
    assert same(learning_curves(results), [(*at, x, 0.0, 0.0, 2, 2.0) for x in (250.0, 750.0)])
    # Now it is the second.
    error = np.array([[9.0, 2.0, 5.0], [9.0, 2.0, 1.0]])
    cell = replace(cell, columns=columns | {"error": error})
    results = replace(base, by_method={(DOWN, 16, "IR"): cell})
    assert same(
        learning_curves(results),
        [(*at, 250.0, 4.0, 1.0, 2, 1.0), (*at, 750.0, 1.0, 0.0, 2, 1.0)],
    )


def test_with_a_fixed_buffer_x_is_counted_in_updates() -> None:
    settings = {"domain": "markov-chain", "updates": 100, "points": 4, "warm_up": 0}
    results = by_hand({(("hard", "hard"), 1, "IR"): [[1.0] * 3] * 2}, **settings)
    assert [row.x for row in learning_curves(results)] == [12.5, 37.5, 62.5, 87.5]


def test_of_wis_td_the_step_size_is_eta() -> None:
    results = by_hand(
        {(DOWN, 1, "WIS-TD(0)"): [[3.0, 1.0], [3.0, 1.0]]},
        step_sizes=(), u0=(4.0,), mu=(0.5, 1.0), update="incremental",
    )  # fmt: skip
    (row,) = points_by_gap(results)
    assert (row.y, row.step_size) == (1.0, 0.25)


def test_one_run_has_no_standard_error() -> None:
    (row,) = points_by_gap(by_hand({(DOWN, 1, "IR"): [[2.0, 1.0, 3.0]]}))
    assert same([row], [("paper", "main", "IR", 1.0, 1.0, math.nan, 1, 1.0)])


def test_standard_errors_of_enormous_numbers_are_numbers() -> None:
    values = np.array([[1.0, 1e300, 1.7e308, 0.0], [3.0, 3e300, 1.7e308, 0.0]])
    np.testing.assert_allclose(standard_error(values), [1.0, 1e300, 0.0, 0.0])
    rows = points_by_step_size(by_hand({(DOWN, 1, "IR"): values[:, :3]}))
    np.testing.assert_allclose([row.y for row in rows], [2.0, 2e300, 1.7e308])


# Readings, of a study that was really run, against its files read the obvious way.


CHAIN = Study(
    "chain", "markov-chain", ("IR", "WIS-Optimal"), (0.5, 1.0, 1e200), updates=20, steps=200,
    points=4, runs=3,
)  # fmt: skip
ROOMS = Study(
    "rooms", "four-rooms", ("IS", "WIS-TD(0)"), (0.1, 0.5, 1e200), update="incremental",
    pairs=(DOWN, ("favoured-down", "uniform"), ("down", "random-state")), u0=(1.0, 64.0),
    mu=(0.1, 1.0), steps=700, warm_up=100, window=300, gaps=(3, 50), points=7, runs=4,
)  # fmt: skip


def stored(study: Study | VarianceStudy, folder: Path) -> tuple[Results, list[dict[str, Any]]]:
    run(study, folder)
    store = Store(study, folder)
    return Results.read(store, "paper"), store.read().to_pylist()


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    if math.inf in values:
        return math.inf, math.nan
    squares = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(squares / len(values))


def by_lane(rows: list[dict[str, Any]], **where: Any) -> dict[Any, list[dict[str, Any]]]:
    """Rows of each lane, over runs in order, where columns have these values."""
    lanes: dict[Any, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["run"]):
        if all(row[name] == value for name, value in where.items()):
            lanes.setdefault((row["step_size"], row["u0"], row["eta"]), []).append(row)
    return lanes


def best_of(lanes: dict[Any, list[dict[str, Any]]]) -> Any:
    return min(lanes, key=lambda lane: mean_and_error([row["error"] for row in lanes[lane]])[0])


def check(rows: Sequence[Point], expected: list[tuple[Any, ...]]) -> None:
    assert [row[:3] for row in rows] == [row[:3] for row in expected]
    ours, theirs = ([row[3:] for row in some] for some in (rows, expected))
    np.testing.assert_allclose(
        np.array(ours, np.float64), np.array(theirs, np.float64), rtol=1e-12, atol=1e-15
    )
    # Plain types only: what is written and compared should not depend on where it came from.
    kinds = (str, str, str, float, float, float, int, float)
    assert {tuple(map(type, row)) for row in rows} == {kinds}


def test_points_against_the_step_size_are_those_of_the_files(tmp_path: Path) -> None:
    results, rows = stored(CHAIN, tmp_path)
    expected = []
    for panel in ("easy", "hard", "hardest"):
        for method in CHAIN.methods:
            for lane, some in by_lane(rows, question=panel, method=method).items():
                mean, error = mean_and_error([row["error"] for row in some])
                expected.append(("paper", panel, method, lane[0], mean, error, 3, lane[0]))
    check(points_by_step_size(results), expected)
    assert math.inf in {row[4] for row in expected}


def test_learning_curves_are_those_of_the_files(tmp_path: Path) -> None:
    results, rows = stored(CHAIN, tmp_path)
    expected = []
    for panel in ("easy", "hard", "hardest"):
        for method in CHAIN.methods:
            lanes = by_lane(rows, question=panel, method=method)
            best = best_of(lanes)
            for part, x in enumerate((2.5, 7.5, 12.5, 17.5)):
                mean, error = mean_and_error([row["curve"][part] for row in lanes[best]])
                expected.append(("paper", panel, method, x, mean, error, 3, best[0]))
    check(learning_curves(results), expected)


@pytest.mark.parametrize("reading", [points_by_gap, points_by_updates])
def test_points_against_the_gap_are_those_of_the_files(
    reading: Callable[[Results], list[Point]], tmp_path: Path
) -> None:
    results, rows = stored(ROOMS, tmp_path)
    expected = []
    for question, behaviour in ROOMS.pairs:
        for method in ROOMS.methods:
            for gap, updates in ((3, 200), (50, 12)):
                where = {"question": question, "behaviour": behaviour, "method": method}
                lanes = by_lane(rows, gap=gap, **where)
                best = best_of(lanes)
                mean, error = mean_and_error([row["error"] for row in lanes[best]])
                x = float(updates if reading is points_by_updates else gap)
                size = best[0] if method == "IS" else best[2]
                at = ("paper", f"{question}/{behaviour}", method)
                expected.append((*at, x, mean, error, 4, size))
    check(reading(results), expected)


@pytest.mark.parametrize("pairs", [(("hard", "hard"),), ()])
def test_variances_are_those_of_the_files(pairs: Any, tmp_path: Path) -> None:
    study = VarianceStudy(
        "v", pairs=pairs, iterations=(0, 5, 9), batches=20, buffer=100, runs=3, methods=("IR", "IS")
    )
    results, rows = stored(study, tmp_path)
    kinds = (
        {"main": "l1", "scalar": "scalar", "trace": "trace"}
        if pairs
        else dict.fromkeys(("easy", "hard", "hardest"), "l1")
        | dict.fromkeys(("easy, trace", "hard, trace", "hardest, trace"), "trace")
    )
    expected = []
    for panel, kind in kinds.items():
        question = "hard" if pairs else panel.partition(",")[0]
        for method in study.methods:
            for iteration in study.iterations:
                values = [
                    row[kind]
                    for row in rows
                    if (row["question"], row["method"], row["iteration"])
                    == (question, method, iteration)
                ]
                assert len(values) == 3
                mean, error = mean_and_error(values)
                expected.append(
                    ("paper", panel, method, float(iteration), mean, error, 3, math.nan)
                )
    check(points_by_iteration(results), expected)


# The file of points.


def test_points_are_written_as_agreed(tmp_path: Path) -> None:
    rows = [
        Point("paper", "main", "V-trace(0.5 max)", 16.0, 0.1 + 0.2, 1e-7, 25, 0.05),
        Point("authors", "down/uniform", "IS", 1.0, math.inf, math.nan, 25, 12.0),
        Point("paper", "hard", "IR", 5.0, 1e300, math.nan, 1, math.nan),
    ]
    write_csv(rows, tmp_path / "points.csv")
    assert (tmp_path / "points.csv").read_bytes() == (
        b"protocol,panel,series,x,y,stderr,runs,step_size\n"
        b"paper,main,V-trace(0.5 max),16,0.30000000000000004,1e-07,25,0.05\n"
        b"authors,down/uniform,IS,1,inf,,25,12\n"
        b"paper,hard,IR,5,1e+300,,1,\n"
    )


def test_what_is_written_is_read_back_bit_for_bit(tmp_path: Path) -> None:
    results, _ = stored(CHAIN, tmp_path / "results")
    rows = [*points_by_step_size(results), *learning_curves(results)]
    write_csv(rows, tmp_path / "points.csv")
    with (tmp_path / "points.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["protocol"] for line in lines] == ["paper"] * len(rows)
    assert [line["series"] for line in lines] == [row.series for row in rows]
    for name in ("x", "y", "stderr", "runs", "step_size"):
        told = [float(line[name] or "nan") for line in lines]
        np.testing.assert_array_equal(told, [getattr(row, name) for row in rows])
