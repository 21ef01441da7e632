"""What pictures show."""

import itertools
import math
import os
import subprocess
import sys
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure as Picture
from shown import INF, NAMES, PLAIN, SIX, rows

from gvf_lab.figure import Axes, Point, sensitivity
from gvf_lab.figure.picture import draw, render
from gvf_lab.figure.style import GREY, METHODS, styles


def curves(picture: Picture) -> dict[str, Any]:
    """Lines of the first panel by the names of the legend's entries, told by colour."""
    looks = {style.colour: name for name, style in styles([*METHODS, "mine"]).items()} | {
        GREY: "published"
    }
    return {looks[str(line.get_color())]: line for line in picture.axes[0].lines}


def corners(panel: Any) -> np.ndarray:
    """Of the only band, or the first: [corners, 2]."""
    return np.asarray(panel.collections[0].get_paths()[0].vertices)


def legend(picture: Picture) -> list[str]:
    return [entry.get_text() for entry in picture.legends[0].get_texts()]


# Pictures


def test_a_curve_goes_through_its_points_within_a_band_of_one_standard_error() -> None:
    points = [Point("paper", "main", "IR", x, 1 + x, 0.1 * x, 25, x) for x in (0.0, 1.0, 2.0)]
    panel = draw(points, PLAIN).axes[0]
    (line,) = panel.lines
    assert np.array_equal(line.get_xydata(), [[0, 1], [1, 2], [2, 3]])
    edge = {tuple(corner) for corner in np.round(corners(panel), 9).tolist()}
    assert {(1.0, 1.9), (1.0, 2.1), (2.0, 2.8), (2.0, 3.2)} <= edge
    assert max(x for x, _ in edge) == 2.0


def test_points_without_a_standard_error_have_no_band() -> None:
    assert not draw(rows(stderr=math.nan), PLAIN).axes[0].collections


def test_order_of_rows_does_not_matter() -> None:
    points = rows()
    assert render(draw(points[::-1], PLAIN), "svg") == render(draw(points, PLAIN), "svg")


def test_a_curve_ends_before_it_diverges() -> None:
    ys = [0.5, 0.2, 0.4, INF, 0.3, INF]
    points = [Point("paper", "main", "IR", x, y, 0.01, 25, x) for x, y in enumerate(ys)]
    panel = draw(points, Axes("step size", "error", y_top=1.0)).axes[0]
    (line,) = panel.lines
    x, y = np.asarray(line.get_xydata()).T
    assert panel.get_ylim() == (0.0, 1.0)
    assert x.tolist() == [0, 1, 2]
    assert y.tolist() == [0.5, 0.2, 0.4]
    assert corners(panel)[:, 0].max() == 2


def test_a_curve_that_is_only_too_large_is_cut_off_by_the_edge() -> None:
    points = [
        Point("", "main", "IR", x, y, 0.0, 2, x) for x, y in enumerate([3.0, 0.5, 0.4, 1e300])
    ]
    panel = draw(points, Axes("step size", "error", y_top=1.0)).axes[0]
    x, y = np.asarray(panel.lines[0].get_xydata()).T
    assert x.tolist() == [0, 1, 2, 3]
    assert y[:3].tolist() == [3.0, 0.5, 0.4]
    assert panel.lines[0].get_clip_on()


@pytest.mark.parametrize("y_log", [False, True])
def test_a_band_ends_with_the_axis_however_large_the_errors_are(y_log: bool) -> None:
    made = [(0, 0.5, 0.01), (1, 0.2, 0.01), (2, 0.8, 1e30), (3, 1e200, 1e199), (4, INF, math.nan)]
    points = [Point("", "main", "IR", x, y, stderr, 20, x) for x, y, stderr in made]
    panel = draw(points, Axes("step size", "error", y_top=1.0, y_log=y_log)).axes[0]
    x, y = corners(panel).T
    assert x.max() == 2
    assert np.abs(y).max() < 5


def test_a_method_that_is_never_on_the_axis_is_said_to_be_off_it() -> None:
    points = [
        Point("", "main", name, x, y, 0.0, 2, x)
        for name, y in (("IR", 0.5), ("IS", INF), ("Sarsa", 2.0))
        for x in (0.0, 1.0)
    ]
    picture = draw(points, Axes("step size", "error", y_top=1.0))
    assert legend(picture) == ["IR", "IS (off the axis)", "Sarsa (off the axis)"]


def test_an_axis_without_an_end_keeps_in_view_what_does_not_explode() -> None:
    ys = {"IR": [0.5, 0.1, 0.2, 0.3], "IS": [0.5, 0.2, 700.0, INF]}
    points = [Point("", "main", m, x, y, 0.0, 2, x) for m, c in ys.items() for x, y in enumerate(c)]
    low, top = draw(points, PLAIN).axes[0].get_ylim()
    assert low == 0
    assert 0.5 < top < 2


@pytest.mark.parametrize("log", [{"x_log": True}, {"y_log": True}])
def test_a_logarithmic_axis_of_few_decades_has_several_labels(log: dict[str, bool]) -> None:
    points = [Point("", "main", "IR", size, size, 0.0, 2, size) for size in (0.03, 0.1, 0.3)]
    picture = draw(points, Axes("learning rate", "error", **log))
    picture.canvas.draw()
    axis = picture.axes[0].xaxis if "x_log" in log else picture.axes[0].yaxis
    low, high = axis.get_view_interval()
    labels = [
        label.get_text()
        for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
        if low <= place <= high
    ]
    assert labels == ["0.03", "0.1", "0.3"]


def test_axes_are_as_asked() -> None:
    points = [
        Point("", "main", "IR", x, y, 0.0, 2, x) for x, y in ((0.0, 1.0), (1.0, 0.0), (9.0, 2.0))
    ]
    panel = draw(points, Axes("updates", "variance", x_log=True, y_log=True)).axes[0]
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("updates", "variance")
    # 0 has no logarithm.
    assert np.asarray(panel.lines[0].get_xydata()).tolist() == [[9, 2]]
    assert draw(rows(), PLAIN).axes[0].get_ylim()[0] == 0


@pytest.mark.parametrize(
    ("protocols", "panels", "columns", "shape"),
    [
        (("paper",), ("main",), None, (1, 1)),
        (("authors", "paper"), ("main",), None, (1, 2)),
        (("paper",), ("main", "scalar"), None, (1, 2)),
        (("paper", "authors"), ("main", "scalar"), None, (2, 2)),
        (("paper",), ("easy", "hard", "hardest"), None, (1, 3)),
        (("paper",), SIX, None, (2, 3)),
        (("authors", "paper"), SIX, None, (4, 3)),
        (("authors", "paper"), ("main",), 1, (2, 1)),
        (("paper",), SIX, 1, (6, 1)),
    ],
)
def test_panels_stand_in_a_grid_and_nothing_covers_anything(
    protocols, panels, columns, shape
) -> None:
    points = rows(NAMES[:12], protocols=protocols, panels=panels, points=8)
    axes = Axes("step size", "absolute value error, averaged over all of the run", y_top=1.0)
    picture = draw(points, axes, title="A title", columns=columns, published=points)
    assert len(picture.axes) == len(protocols) * len(panels)
    spec = picture.axes[0].get_subplotspec()
    assert spec is not None
    assert spec.get_geometry()[:2] == shape
    assert [panel.get_title("left") != "" for panel in picture.axes] == [len(picture.axes) > 1] * (
        len(picture.axes)
    )
    if len(protocols) == 2 and len(panels) == 1:
        assert [p.get_title("left") for p in picture.axes] == ["protocol paper", "protocol authors"]
    picture.draw_without_rendering()
    boxes = [panel.get_tightbbox() for panel in picture.axes]
    boxes += [picture.legends[0].get_window_extent(), picture.texts[0].get_window_extent()]
    for one, other in itertools.combinations(boxes, 2):
        assert one is not None
        assert other is not None
        assert not one.padded(-1).overlaps(other.padded(-1))
    sheet = picture.bbox.padded(1)
    for box in boxes:
        assert box is not None
        assert sheet.containsx(box.x0)
        assert sheet.containsx(box.x1)
        assert sheet.containsy(box.y0)
        assert sheet.containsy(box.y1)


def test_panels_say_what_they_show_and_on_how_many_runs() -> None:
    points = rows(panels=("down/uniform", "scalar")) + rows(
        protocols=("authors",), panels=("scalar",)
    )
    names = {"scalar": "signed sum"}
    picture = draw(points, PLAIN, remarks={"paper": "quick scale"}, names=names)
    told = [(p.get_title("left"), p.texts[0].get_text()) for p in picture.axes]
    assert told == [
        ("down / uniform", "protocol paper, quick scale, 25 runs"),
        ("signed sum", "protocol paper, quick scale, 25 runs"),
        ("signed sum", "protocol authors, 25 runs"),
    ]


def test_published_curves_lie_under_ours_thin_and_grey() -> None:
    theirs = rows(("IS", "NormIS"))
    picture = draw(rows(), PLAIN, published=theirs)
    ours, grey = [], []
    for line in picture.axes[0].lines:
        (grey if line.get_color() == GREY else ours).append(line)
    assert [line.get_marker() for line in grey] == [METHODS["IS"].marker, METHODS["NormIS"].marker]
    assert max(line.get_zorder() for line in grey) < min(line.get_zorder() for line in ours)
    assert max(line.get_linewidth() for line in grey) < min(line.get_linewidth() for line in ours)
    assert legend(picture) == ["IR", "IS", "published"]
    # Ours has no NormIS, whose marker would tell it: it is named where it ends.
    assert [t.get_text() for t in picture.axes[0].texts if t.get_text() in NAMES] == ["NormIS"]


def test_many_points_do_not_all_have_markers() -> None:
    for points, thinned in ((10, False), (121, True)):
        for line in draw(rows(points=points), Axes("x", "y", y_top=1)).axes[0].lines:
            assert (line.get_markevery() is not None) == thinned


def test_another_process_draws_the_same_bytes_without_pyplot() -> None:
    program = (
        "import sys\n"
        "from gvf_lab.figure import Axes, Point\n"
        "from gvf_lab.figure.picture import draw, render\n"
        "rows = [Point('', 'main', m, x, x, 0.1, 2, x) for m in ('IR', 'mine') for x in (1, 9)]\n"
        "picture = render(draw(rows, Axes('x', 'y', x_log=True)), 'svg')\n"
    )
    here: dict[str, Any] = {}
    exec(program, here)
    show = "assert 'matplotlib.pyplot' not in sys.modules\nsys.stdout.buffer.write(picture)"
    done = subprocess.run(
        [sys.executable, "-c", program + show],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == here["picture"]


def test_drawing_leaves_a_users_settings_alone() -> None:
    before = dict(matplotlib.rcParams)
    render(draw(rows(), PLAIN), "png")
    assert dict(matplotlib.rcParams) == before


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(ValueError, match="rows is empty"):
        draw([], PLAIN)


# A user's own errors


def test_sensitivity_draws_means_and_standard_errors() -> None:
    errors = np.random.default_rng(0).random((20, 3))
    errors[3, 2] = INF
    picture = sensitivity(
        {"mine": errors, "IR": errors / 2}, [0.1, 0.2, 0.4], y="my error", y_top=2
    )
    assert legend(picture) == ["IR", "mine"]
    panel = picture.axes[0]
    assert (panel.get_xlabel(), panel.get_ylabel(), panel.get_ylim()[1]) == (
        "step size",
        "my error",
        2,
    )
    x, y = np.asarray(curves(picture)["mine"].get_xydata()).T
    assert x.tolist() == [0.1, 0.2]
    assert y == pytest.approx(errors[:, :2].mean(axis=0))
    assert panel.get_xlim()[1] > 0.4  # where both diverge
    expected = errors[:, 0].mean() + errors[:, 0].std(ddof=1) / math.sqrt(20)
    assert np.abs(corners(panel) - [0.1, expected]).sum(axis=1).min() < 1e-12


@pytest.mark.parametrize(
    ("errors", "sizes", "message"),
    [
        (
            {"mine": np.zeros((5, 2))},
            [0.1, 0.2, 0.3],
            r"errors\['mine'\] must be \[runs, 3\].*\(5, 2\)",
        ),
        ({"mine": np.zeros(3)}, [0.1, 0.2, 0.3], r"a column for each step size.*\(3,\)"),
        ({"mine": [[0.0, math.nan]]}, [0.1, 0.2], r"errors\['mine'\]\[0, 1\] is nan.*inf"),
        ({"mine": np.zeros((5, 2))}, [0.2, 0.1], r"ascending order, got \[0.2, 0.1\]"),
        ({}, [0.1], "nothing to draw"),
    ],
)
def test_sensitivity_refuses_what_it_cannot_draw(errors, sizes, message) -> None:
    with pytest.raises(ValueError, match=message):
        sensitivity(errors, sizes)
