"""Between IS and IR: the studies, what the experiment makes of results, and the page."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from experiments.interpolation import analysis
from experiments.interpolation import sweep as interpolation
from gvf.learners.method import BETWEEN
from gvf_lab.catalogue import study_of
from gvf_lab.study import Study
from gvf_lab.study.results import MethodResults, Results

PAGE = Path(__file__).parents[2] / "docs" / "interpolation"
METHOD_NAMES = ("IS", "IR", "BC-IR", *BETWEEN)


# The studies.


@pytest.mark.parametrize("protocol", ["paper", "authors"])
@pytest.mark.parametrize("name", interpolation.STUDIES)
def test_the_studies_have_all_methods_and_fine_grids(name, protocol):
    study = study_of(name, protocol)
    assert isinstance(study, Study)
    assert study.methods == METHOD_NAMES
    steps = np.diff(np.log2(study.step_sizes))
    assert steps.min() > 0
    np.testing.assert_allclose(steps, steps[0], rtol=0.01)
    assert steps.max() < 0.252
    assert study.step_sizes[-1] / study.step_sizes[0] > 500
    assert study.runs % 2 == 0


# What the experiment makes of results.


def results(errors):
    """Results of a study of the chain from errors [runs, step sizes] of some methods."""
    runs, count = next(iter(errors.values())).shape
    sizes = tuple(2.0**i for i in range(count))
    study = Study("s", "markov-chain", METHOD_NAMES, sizes, pairs=(("hard", "hard"),), updates=9,
                  runs=runs)  # fmt: skip
    cells = {}
    for name in METHOD_NAMES:
        error = errors.get(name, errors["IR"])
        cells[study.pairs[0], 1, name] = MethodResults(sizes, {"error": error})
    return Results(study, "paper", cells)


def planted(first, second, runs=20):
    """The same errors [sizes] in every run of a half."""
    return np.repeat([first, second], runs // 2, axis=0)


def test_the_first_half_of_the_runs_chooses_and_the_second_judges():
    errors = {
        "IR": planted([9.0, 2.0, 3.0, 9.0], [9.0, 4.0, 1.0, 9.0]),
        "IS": planted([9.0, 3.0, 9.0, 9.0], [9.0, 3.0, 9.0, 9.0]),
        "BC-IR": planted([9.0, 5.0, 9.0, 9.0], [9.0, 5.0, 9.0, 9.0]),
        "Interpolated(0.5)": planted([9.0, 8.0, 1.0, 9.0], [9.0, 1.0, 2.0, 9.0]),
        "Interpolated(0.25)": planted([9.0, 8.0, 5.0, 9.0], [9.0, 1.0, 3.5, 9.0]),
        "Interpolated(0.75)": planted([9.0, 8.0, 5.0, 9.0], [9.0, 1.0, 5.0, 9.0]),
    }
    points = {point.method: point for point in interpolation.judged(results(errors))}
    assert points["IR"].step_size == 2.0
    assert points["IR"].error == 4.0
    half = points["Interpolated(0.5)"]
    assert (half.step_size, half.error, half.runs, half.better_end) == (4.0, 2.0, 10, "IR")
    assert (half.ratio, half.low, half.high) == (0.5, 0.5, 0.5)
    assert half.verdict == "beats both"
    # Better than IR, which was chosen, but not than IS.
    assert points["Interpolated(0.25)"].verdict == "undecided"
    assert points["Interpolated(0.75)"].verdict == "loses"
    assert points["IS"].verdict == ""


def test_a_best_step_size_at_the_edge_is_refused():
    flat = planted([9.0, 2.0, 9.0], [9.0, 2.0, 9.0])
    edge = planted([9.0, 2.0, 1.0], [9.0, 2.0, 9.0])
    with pytest.raises(SystemExit, match=r"of Interpolated\(0.5\) is at the edge .*chain, hard"):
        list(interpolation.judged(results({"IR": flat, "Interpolated(0.5)": edge})))
    with pytest.raises(SystemExit, match="usable step sizes reach the edge"):
        list(interpolation.judged(results({"IR": planted([9.0, 2.0, 2.9], [9.0, 2.0, 2.9])})))


def test_usable_step_sizes_end_between_those_of_the_grid():
    """The bound 3 is passed half-way from 2 to 4.5, in logarithms; and where all diverges, at 8."""
    error = planted([9.0, 4.5, 2.0, 2.0, np.inf], [9.0, 4.5, 2.0, 2.0, np.inf])
    smallest, largest = interpolation.usable(error, np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
    np.testing.assert_allclose(smallest, np.sqrt(8.0))
    np.testing.assert_allclose(largest, 8.0)


# What was published.


def published():
    with (PAGE / "interpolation.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_numbers_are_those_of_the_catalogue_and_no_best_step_size_is_at_an_edge():
    rows = published()
    assert [row["study"] for row in rows] == sorted(row["study"] for row in rows)
    for name in interpolation.STUDIES:
        study, mine = study_of(name), [row for row in rows if row["study"] == name]
        assert isinstance(study, Study)
        assert len(mine) == len(study.pairs) * len(study.gaps) * len(study.methods)
        assert {row["method"] for row in mine} == set(study.methods)
        for row in mine:
            assert float(row["step_size"]) in study.step_sizes[1:-1]
            usable = [float(row[key]) for key in ("smallest", "largest")]
            assert study.step_sizes[0] < usable[0] <= usable[1] < study.step_sizes[-1]
            assert int(row["runs"]) == study.runs // 2


def test_the_tables_show_the_numbers():
    """Every error in the table is one of the file's, and none is missing."""
    shown = re.findall(r"(\d\.\d{4}) ±", (PAGE / "errors.markdown").read_text(encoding="utf-8"))
    expected = []
    for row in published():
        # IS is an end of both families.
        expected += [f"{float(row['error']):.4f}"] * (2 if row["method"] == "IS" else 1)
    assert sorted(shown) == sorted(expected)


def test_what_the_page_says_in_words_holds_in_the_numbers():
    rows = {(row["case"], row["method"]): row for row in published()}
    cases = list(dict.fromkeys(case for case, _ in rows))

    def value(case, method, column):
        return float(rows[case, method][column])

    for case in cases:
        for method in ("Interpolated(0.75)", "BC-Interpolated(0.75)"):
            assert value(case, method, "to_ir") < 1.1
            assert value(case, method, "width") > 2 / 3
        # Beyond 0.75 there is little to gain.
        half, more = (value(case, f"Interpolated({b})", "error") for b in (0.5, 0.75))
        assert half > 0.9 * more
        for beta in (0.25, 0.5, 0.75):
            plain, corrected = (
                value(case, f"{family}({beta})", "error") for family in analysis.FAMILIES
            )
            assert corrected == pytest.approx(plain, rel=0.03)
    assert rows["chain, easy", "IR"]["better_end"] == "IS"
    assert all(rows[case, "IR"]["better_end"] != "IS" for case in cases if case != "chain, easy")
    down = [case for case in cases if "rooms, down" in case]
    assert len(down) == 2
    for case in down:
        assert {rows[case, name]["verdict"] for name in BETWEEN} == {"loses"}
    many = next(case for case in down if case.endswith("gap 4"))
    assert all(value(many, name, "to_ir") < 1.005 for name in BETWEEN)
