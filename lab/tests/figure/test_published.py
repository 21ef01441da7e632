"""Published curves: they load, lie on our grids, and are compared with ours as agreed."""

import inspect
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gvf_lab.figure
from gvf_lab import domain as domains
from gvf_lab import paper
from gvf_lab.figure import Figure, Point, Published, compare
from gvf_lab.figure.points import points_by_updates
from gvf_lab.racing import RacingStudy
from gvf_lab.study import NAMED, Study, VarianceStudy, run_task
from gvf_lab.study.results import standard_error

FIGURES = list(paper.FIGURES.values())
PUBLISHED = [
    pytest.param(figure, published, id=f"{figure.id}-{published.file}")
    for figure in FIGURES
    for published in figure.published
]
FILES = {
    "continuous_four_rooms_incremental_uniform_favoured": True,
    "continuous_four_rooms_rmsprop_uniform_down": True,
    "continuous_four_rooms_sgd_step_size_uniform_down": False,
    "four_rooms_step_size_31250_updates": False,
    "four_rooms_step_size_500k_updates": True,
    "markov_chain_step_size_rho9": True,
    "markov_chain_variance_l1_rho9": True,
    "markov_chain_variance_l1_rho99": False,
    "markov_chain_variance_scalar_rho9": True,
}
"""The files that we have, and whether our curves must match them."""
SHARES = {"four_rooms_step_size_500k_updates": 0.4}
"""The files with finer grids than ours, and the least share of their points that we have too."""


def grid_of(figure: Figure, protocol: str = "authors") -> set[float]:
    """All x of a figure."""
    study = figure.study(protocol)
    if isinstance(study, VarianceStudy):
        return {float(iteration) for iteration in study.iterations}
    assert isinstance(study, Study | RacingStudy)
    if figure.read is points_by_updates:
        return {float((study.steps - study.warm_up) // gap) for gap in study.gaps}
    return set(study.step_sizes)


def inside(published: Published, row: Point) -> bool:
    return published.frame is None or row.y < published.frame * (1 - 1e-6)


def test_every_published_file_belongs_under_a_figure() -> None:
    folder = Path(inspect.getfile(gvf_lab.figure)).parent / "published"
    assert {path.stem for path in folder.glob("*.json")} == set(FILES)
    used = {(one.file, one.must_match) for figure in FIGURES for one in figure.published}
    assert used == set(FILES.items())


@pytest.mark.parametrize(("figure", "published"), PUBLISHED)
def test_published_points_are_ours_to_draw(figure: Figure, published: Published) -> None:
    assert "authors'" in published.source
    assert published.runs == figure.study("authors").runs
    rows = published.rows(grid_of(figure))
    assert rows
    assert {row.panel for row in rows} == {published.panel}
    assert {row.protocol for row in rows} == {"authors"}
    assert {row.series for row in rows} <= set(NAMED)
    assert {row.series for row in rows} & set(figure.study("authors").methods)
    assert all(math.isfinite(row.x) and math.isfinite(row.y) for row in rows)
    assert published.axis >= max(row.y for row in rows if inside(published, row))


@pytest.mark.parametrize(("figure", "published"), PUBLISHED)
def test_published_points_lie_on_our_grid(figure: Figure, published: Published) -> None:
    grid = grid_of(figure)
    rows = [row for row in published.rows(grid) if inside(published, row)]
    on = [row for row in rows if row.x in grid]
    # Of the file for Four Rooms, two step sizes are not on the grid. Of that with an update after
    # every step, with hundreds of points, some are.
    share = 1.0 if published.must_match else 0.9
    assert len(on) >= SHARES.get(published.file, share) * len(rows)
    for series in {row.series for row in rows}:
        xs = [row.x for row in on if row.series == series]
        assert len(xs) == len(set(xs)), f"two points of {series} were moved to one x"


def test_numbers_of_updates_are_those_of_the_same_gap() -> None:
    figure = paper.get("continuous-rmsprop")
    (published,) = figure.published
    # The authors count 100,000 / gap updates; 1,000 of these steps are without.
    rows = [row for row in published.rows(grid_of(figure)) if row.series == "IR"]
    assert [row.x for row in rows] == sorted(grid_of(figure))
    assert (rows[0].x, rows[-1].x) == (386.0, 99000.0)
    assert {row.series for row in published.rows([])} == {
        "IR", "NormIS", "WIS-Minibatch", "V-trace(1.0)",
    }  # fmt: skip


def test_a_published_x_that_is_not_ours_stays_where_it_is() -> None:
    published = Published("markov_chain_step_size_rho9", runs=100)
    first, second = (row.x for row in published.rows([0.0, 12.0])[:2])
    assert (first, second) == (0.0, 0.1001)
    assert [row.x for row in published.rows([])[:2]] == [1e-05, 0.1001]


def test_published_values_may_be_multiplied() -> None:
    plain = Published("four_rooms_step_size_500k_updates", runs=25)
    more = replace(plain, times=2.0, frame=2.0)
    for one, two in zip(plain.rows([]), more.rows([]), strict=True):
        assert (two.x, two.y) == (one.x, 2 * one.y)
        assert two.stderr == pytest.approx(2 * one.stderr, nan_ok=True)
        assert inside(plain, one) == inside(more, two)
    assert (more.axis, replace(more, frame=None).axis) == (2.0, 2 * replace(plain, frame=None).axis)


def test_errors_over_all_cells_become_errors_over_free_cells() -> None:
    """With step size 0 the error is the mean true value of the free cells."""
    (published,) = paper.get("four-rooms-step-size-often").published
    truth = domains.get("four-rooms").truth("down", "random-state")
    starts = {row.series: row.y for row in published.rows([0.0]) if row.x == 0.0}
    assert len(starts) == 4
    assert list(starts.values()) == pytest.approx([truth.values.mean()] * 4, abs=1e-4)


def test_published_errors_in_four_rooms_are_those_of_the_left_column() -> None:
    """With a small step size runs hardly differ, and one tells which cells were counted."""
    figure = paper.get("four-rooms-step-size")
    (published,) = figure.published
    study = figure.study("authors", runs=1)
    assert isinstance(study, Study)
    left = study.with_(methods=("V-trace(1.0)",), step_sizes=(0.016,))
    every = left.with_(domain="four-rooms", pairs=left.pairs)
    (theirs,) = (
        row.y for row in published.rows([0.016]) if (row.series, row.x) == ("V-trace(1.0)", 0.016)
    )
    one, other = (float(run_task(next(study.tasks()))[0].error[0]) for study in (left, every))
    assert one == pytest.approx(theirs, abs=0.006)
    assert other != pytest.approx(theirs, abs=0.03)


def mine(
    y: float, stderr: float = 0.01, runs: int = 100, x: float = 1.0, series: str = "IR"
) -> Point:
    return Point("authors", "main", series, x, y, stderr, runs, x)


def theirs(y: float, x: float = 1.0, series: str = "IR") -> Point:
    return Point("authors", "main", series, x, y, math.nan, 100, math.nan)


FRAMED = Published("markov_chain_step_size_rho9", runs=100)
READ = 1e-4
"""The precision with which a drawing was read; the axis of this one is 1 long."""


@pytest.mark.parametrize(
    ("ours", "y", "worst"),
    [
        (mine(0.5), 0.5, 0.0),
        (mine(0.5), 0.5 + READ, 0.0),
        # Both have 100 runs: the combined standard error is .01 sqrt 2.
        (mine(0.5), 0.5 + 0.01 * math.sqrt(2) + READ, 1.0),
        (mine(0.5), 0.5 - 0.03 * math.sqrt(2) - READ, 3.0),
        # Ours of 25 runs: theirs, of 100, is half of it. sqrt(1 + 1/4).
        (mine(0.5, runs=25), 0.5 + 0.02 * math.sqrt(1.25) + READ, 2.0),
        # Ours of 400 runs: theirs is twice of it. sqrt(1 + 4).
        (mine(0.5, runs=400), 0.5 + 0.02 * math.sqrt(5) + READ, 2.0),
        # Nothing varies: only what reading explains is allowed.
        (mine(0.5, stderr=0.0), 0.5 + 0.9 * READ, 0.0),
        (mine(0.5, stderr=0.0), 0.5 + 1.1 * READ, math.inf),
        # Diverged, or one run: nothing explains a difference.
        (mine(math.inf, stderr=math.nan), 0.5, math.inf),
        (mine(0.4, stderr=math.nan, runs=1), 0.5, math.inf),
    ],
)  # fmt: skip
def test_differences_are_counted_in_combined_standard_errors(
    ours: Point, y: float, worst: float
) -> None:
    (match,) = compare([ours], FRAMED, [theirs(y)])
    assert match.worst == pytest.approx(worst, abs=1e-9)
    assert (match.points, match.within) == (1, int(worst <= 2.0))
    assert match.matches == (worst <= 2.0)


def test_points_where_a_curve_leaves_the_frame_do_not_count() -> None:
    ours = [mine(0.5, x=1.0), mine(7.0, x=2.0)]
    points = [theirs(0.5, x=1.0), theirs(1.0, x=2.0)]
    (match,) = compare(ours, FRAMED, points)
    assert (match.points, match.within) == (1, 1)
    (match,) = compare(ours, replace(FRAMED, frame=None), points)
    assert (match.points, match.within) == (2, 1)
    assert compare(ours, FRAMED, points[1:]) == []


def test_points_that_agree_with_any_value_do_not_count() -> None:
    points = [theirs(0.5, x=1.0), theirs(0.5, x=2.0)]
    for stderr, counted in ((0.07, 2), (0.08, 1)):  # times sqrt 2: below and above a tenth
        (match,) = compare([mine(0.5, x=1.0), mine(0.5, stderr, x=2.0)], FRAMED, points)
        assert (match.points, match.within) == (counted, counted)


def test_series_are_compared_one_by_one_where_both_have_points() -> None:
    ours = [mine(0.5, x=x, series=series) for x in (1.0, 2.0) for series in ("IR", "IS", "Sarsa")]
    points = [theirs(0.5), theirs(0.9, series="IS"), theirs(0.5, x=2.0), theirs(0.5, x=3.0)]
    points += [theirs(0.5, series="BC-IR"), theirs(0.5)._replace(panel="scalar")]
    told = {match.series: match for match in compare(ours, FRAMED, points)}
    assert set(told) == {"IR", "IS"}
    assert (told["IR"].points, told["IR"].within, told["IR"].panel) == (2, 2, "main")
    assert (told["IS"].points, told["IS"].within) == (1, 0)


@pytest.mark.parametrize(("agree", "matches"), [(9, True), (8, False)])
def test_nine_points_of_ten_must_agree(agree: int, matches: bool) -> None:
    ours = [mine(0.5, x=float(x)) for x in range(10)]
    points = [theirs(0.5 if x < agree else 0.9, x=float(x)) for x in range(10)]
    (match,) = compare(ours, FRAMED, points)
    assert match.share == agree / 10
    assert match.matches is matches


@pytest.mark.parametrize(("ours", "authors"), [(25, 25), (100, 25), (50, 100)])
def test_two_experiments_of_one_truth_agree_as_often_as_they_should(
    ours: int, authors: int
) -> None:
    rng = np.random.default_rng([ours, authors])
    points = 2000
    values = rng.normal(0.5, 0.05, (ours, points))
    rows = [
        mine(float(y), float(error), ours, x=float(x))
        for x, (y, error) in enumerate(
            zip(values.mean(axis=0), standard_error(values), strict=True)
        )
    ]
    drawn = rng.normal(0.5, 0.05, (authors, points)).mean(axis=0)
    read = [theirs(float(y), x=float(x)) for x, y in enumerate(drawn)]
    (match,) = compare(rows, replace(FRAMED, runs=authors), read)
    # Within two standard errors: 95.4 %, less what estimating them costs, more what reading allows.
    assert 0.93 <= match.share <= 0.97
    # With another truth, two thirds of a standard deviation away, hardly any point agrees.
    (match,) = compare([row._replace(y=row.y + 0.05) for row in rows], FRAMED, read)
    assert match.share < 0.3
