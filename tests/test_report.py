"""The report: how methods look, what pictures show, what the page says, also in a browser."""

import colorsys
import csv
import itertools
import json
import math
import os
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure as Picture

from gvf.figure import Axes, Figure, Match, Point, Verdict, sensitivity
from gvf.figure.figure import write_csv
from gvf.figure.picture import draw, render, save
from gvf.figure.style import GREY, METHODS, styles
from gvf.paper import get
from gvf.report.exhibit import Exhibit, Provenance
from gvf.report.page import page
from gvf.report.tables import statistic
from gvf.study import NamedStudy, Study

NAMES = (
    "IR", "BC-IR", "IS", "NormIS", "WIS-Minibatch", "WIS-Buffer", "WIS-Optimal", "V-trace(1.0)",
    "V-trace(0.5 max)", "V-trace(0.9 max)", "Sarsa", "Expected Sarsa", "On-policy", "WIS-TD(0)",
    "IR+WIS-TD(0)",
)  # fmt: skip
SIX = [
    f"{target}/{behaviour}"
    for target in ("down", "favoured-down")
    for behaviour in ("uniform", "random-state", "random-state-weight")
]
PLAIN = Axes("step size", "error")
INF = math.inf


def rows(
    series=("IR", "IS"), *, protocols=("paper",), panels=("main",), points=30, stderr=0.02, runs=25
) -> list[Point]:
    """Curves over step sizes up to 1: they fall, rise, and diverge, the later ones sooner."""
    made = []
    for protocol, panel, (i, name) in itertools.product(protocols, panels, enumerate(series)):
        for x in np.linspace(0, 1, points).tolist():
            room = 1 - x * (1.05 + 0.15 * i)
            y = 0.1 + 0.5 * math.exp(-20 * x) + 0.02 / room if room > 0 else INF
            made.append(
                Point(protocol, panel, name, x, y, stderr if y < INF else math.nan, runs, x)
            )
    return made


def verdict(id: str, told: str, protocol: str = "paper", **changes: Any) -> Verdict:
    numbers = (1.234, 1.1, 1.4, 25)
    one = Verdict(id, f"Claim {id}.", *numbers, protocol, told, "a ratio", (1.0, None), "")
    return replace(one, **changes)


def made(protocol: str, scale: str = "paper", runs: int = 100) -> Provenance:
    command = f"gvf reproduce --protocol {protocol} --scale {scale} & co"
    return Provenance(scale, runs, 7, command, "1.2", "2 processors", "2025-11-20T10:11:12Z", 90.0)


def chain(scale: str = "paper", protocols=("paper", "authors")) -> Exhibit:
    """The chain's step sizes, with a published curve, claims of each kind, and matches."""
    figure = get("markov-step-size")
    ours = [row._replace(x=12 * row.x) for row in rows(("IR", "IS"), protocols=protocols)]
    theirs = [r for r in figure.published[0].rows(r.x for r in ours) if r.series in ("IR", "IS")]
    matches = [
        Match(protocol, "main", name, 70, within, worst)
        for protocol in protocols
        for name, within, worst in (("IR", 69, 2.5), ("IS", 20, INF))
    ]
    verdicts = [
        verdict(id, told, protocol, remark="The grid is <coarse>." if told == "fails" else "")
        for protocol in protocols
        for id, told in (("a", "holds"), ("b", "fails"), ("c", "undecided"))
    ]
    how = {protocol: made(protocol, scale) for protocol in protocols}
    return Exhibit(figure, ours, theirs, matches, verdicts, how)


def six_panels() -> Exhibit:
    ours = rows(("IR", "IS", "V-trace(1.0)"), panels=SIX, points=8)
    how = {"paper": made("paper", runs=25)}
    return Exhibit(get("continuous-sgd-step-size-all"), ours, (), (), [verdict("d", "holds")], how)


def write(shown, title="A <report>") -> str:
    told = {"command": "gvf reproduce", "version": "1.2", "machine": "2 processors"}
    return page(shown, title=title, seconds=3723.0, **told)


@pytest.fixture(scope="module")
def text() -> str:
    return write([six_panels(), chain()])


def curves(picture: Picture) -> dict[str, Any]:
    """Lines of the first panel by the names of the legend's entries, told by colour."""
    looks = {style.colour: name for name, style in styles([*METHODS, "mine"]).items()} | {
        GREY: "published"
    }
    return {looks[str(line.get_color())]: line for line in picture.axes[0].lines}


def corners(panel: Any) -> np.ndarray:
    """Return the corners of the first band, [corners, 2]."""
    return np.asarray(panel.collections[0].get_paths()[0].vertices)


def legend(picture: Picture) -> list[str]:
    return [entry.get_text() for entry in picture.legends[0].get_texts()]


# Style


def test_every_method_looks_different_and_has_a_marker_of_its_own() -> None:
    assert set(METHODS) == set(NAMES)
    looks = list(METHODS.values())
    assert len({(look.colour, look.marker, look.dash) for look in looks}) == len(looks)
    assert len({look.marker for look in looks}) == len(looks)
    others = (METHODS[name].width for name in NAMES[1:])
    assert METHODS["IR"].width > max(others)


def test_methods_of_a_family_share_a_hue() -> None:
    def hue(name: str) -> float:
        colour = METHODS[name].colour
        return 360 * colorsys.rgb_to_hls(*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))[0]

    for family in (("IR", "BC-IR", "IR+WIS-TD(0)"), ("IS", "NormIS"), NAMES[4:7], NAMES[7:10]):
        hues = [hue(name) for name in family]
        assert max(hues) - min(hues) < 20, family


# How colour-blind eyes see linear RGB (Machado, Oliveira and Fernandes, 2009, severity 1).
EYES = {
    "usual": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TOGETHER = (
    [name for name in NAMES if "TD(0)" not in name and name != "NormIS"],
    ["IR", "IS", "WIS-Minibatch", "V-trace(1.0)", "WIS-TD(0)", "IR+WIS-TD(0)"],
    ["IR", "NormIS", "WIS-Minibatch", "V-trace(1.0)", "WIS-TD(0)", "IR+WIS-TD(0)"],
)


@pytest.mark.parametrize("eye", EYES)
def test_colours_drawn_together_are_apart_for_colour_blind_eyes_too(eye: str) -> None:
    def lightness_and_hue(name: str) -> np.ndarray:
        """CIELAB, in which a distance of 2.3 can just be noticed."""
        colour = np.array([int(METHODS[name].colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
        seen = np.clip(EYES[eye] @ linear, 0, 1)
        to_xyz = np.array([[0.412, 0.358, 0.180], [0.213, 0.715, 0.072], [0.019, 0.119, 0.951]])
        xyz = to_xyz @ seen / to_xyz.sum(axis=1)
        f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    for names in TOGETHER:
        for one, other in itertools.combinations(names, 2):
            distance = np.linalg.norm(lightness_and_hue(one) - lightness_and_hue(other))
            assert distance > 12, (one, other)


def test_unknown_methods_get_looks_of_their_own_and_do_not_change_the_known() -> None:
    own = [f"method {i}" for i in range(60)]
    looks = styles(["IS", *own, "IR"])
    assert list(looks) == ["IR", "IS", *own]
    assert looks["IR"] == METHODS["IR"]
    assert len({(look.colour, look.marker, look.dash) for look in looks.values()}) == 62


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


def test_a_diverging_curve_crosses_the_top_and_ends_there() -> None:
    ys = [0.5, 0.2, 0.4, INF, 0.3, INF]
    points = [Point("paper", "main", "IR", x, y, 0.01, 25, x) for x, y in enumerate(ys)]
    panel = draw(points, Axes("step size", "error", y_top=1.0)).axes[0]
    (line,) = panel.lines
    x, y = np.asarray(line.get_xydata()).T
    assert panel.get_ylim() == (0.0, 1.0)
    assert x.tolist() == [0, 1, 2, 3]
    assert y[:3].tolist() == [0.5, 0.2, 0.4]
    assert 1.0 < y[3] < INF
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
    picture = draw(points, PLAIN, remarks={"paper": "quick scale"})
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


def test_published_curves_are_drawn_only_under_the_protocols_they_fit() -> None:
    shown = chain()
    figure = replace(
        shown.figure, published=(replace(shown.figure.published[0], protocols=("authors",)),)
    )
    for drawn, expected in ((shown, [2, 2]), (replace(shown, figure=figure), [0, 2])):
        panels = drawn.draw().axes
        assert [sum(li.get_color() == GREY for li in panel.lines) for panel in panels] == expected
        assert [panel.get_title("left") for panel in panels] == [
            "protocol paper",
            "protocol authors",
        ]


def test_many_points_do_not_all_have_markers() -> None:
    for points, thinned in ((10, False), (121, True)):
        for line in draw(rows(points=points), Axes("x", "y", y_top=1)).axes[0].lines:
            assert (line.get_markevery() is not None) == thinned


def test_a_quick_picture_says_so() -> None:
    words = [text.get_text() for text in chain("quick", ("paper",)).draw().axes[0].texts]
    assert "quick scale, 25 runs" in words


def test_equal_points_give_equal_files(tmp_path: Path) -> None:
    save(chain().draw(), tmp_path / "one", "figure")
    with matplotlib.rc_context({"font.size": 20, "svg.hashsalt": None, "xtick.direction": "in"}):
        save(chain().draw(), tmp_path / "two", "figure")
    for name in ("figure.png", "figure.svg"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert (tmp_path / "one" / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_another_process_draws_the_same_bytes_without_pyplot() -> None:
    program = (
        "import sys\n"
        "from gvf.figure import Axes, Point\n"
        "from gvf.figure.picture import draw, render\n"
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
    assert x.tolist() == [0.1, 0.2, 0.4]
    assert y[:2] == pytest.approx(errors[:, :2].mean(axis=0))
    assert y[2] > 2
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


# The page


VOID = {"img", "link", "meta", "source"}


class Reader(HTMLParser):
    """Collects elements and JSON, and checks that each element is closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, str] = {}
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        if self.open[-1:] == ["script"]:
            id = str(self.found[-1][1]["id"])
            self.inside[id] = self.inside.get(id, "") + data

    def all(self, attribute: str) -> list[str]:
        return [str(found[attribute]) for _, found in self.found if attribute in found]


def test_the_page_is_sound_and_stands_alone(text: str) -> None:
    reader = Reader(text)
    ids = reader.all("id")
    assert len(ids) == len(set(ids))
    for address in reader.all("href"):
        inside = address.startswith("#") and address[1:] in ids
        assert inside or re.fullmatch(r"[a-z-]+/[a-z-]+\.(csv|json|png|svg)", address), address
    pictures = reader.all("src")
    assert pictures
    assert all(address.startswith("data:") for address in pictures + reader.all("srcset"))
    names = [name for name, _ in reader.found]
    scripts = [found["type"] for name, found in reader.found if name == "script"]
    assert scripts == ["application/json"] * 2  # data, which no browser executes
    assert "link" not in names
    assert names.count("h1") == 1
    assert all(found["alt"] for name, found in reader.found if name == "img")
    assert "url(" not in text


def test_the_page_says_how_it_was_made(text: str) -> None:
    assert "<h1>A &lt;report&gt;</h1>" in text
    for fact in (
        "gvf 1.2",
        "gvf reproduce",
        "2 processors",
        "1 h 2 min",
        "2025-11-20 10:11:12 UTC",
    ):
        assert fact in text
    assert "<dt>Seeds</dt><dd>7</dd>" in text
    for protocol in ("paper", "authors"):
        command = f"gvf reproduce --protocol {protocol} --scale paper &amp; co"
        assert f"<pre><code>{command}</code></pre>" in text


def test_the_page_counts_verdicts_and_matches(text: str) -> None:
    summary = text[: text.index("<main>")]
    assert re.findall(r"[✓✗?] \d+ \w+", summary) == [
        "✓ 2 hold", "✗ 1 fail", "? 1 undecided", "✓ 1 hold", "✗ 1 fail", "? 1 undecided",
        "✗ 1 of",
    ]  # fmt: skip
    assert "1 of 2 that must match do" in summary


def test_every_claim_has_its_row(text: str) -> None:
    table = text[text.index('<table class="claims">') :]
    table = table[: table.index("</table>")]
    assert table.count("<tr>") == 1 + 2 + 7
    assert re.findall(r"[✓✗?] (\w+)", table) == [
        "holds", "holds", "fails", "fails", "undecided", "undecided", "holds",
    ]  # fmt: skip
    for cell in ("Claim b.", "a ratio", "The grid is &lt;coarse&gt;.", "1.23 [1.10, 1.40]", "≥ 1"):
        assert cell in table


def test_a_curve_that_must_match_and_does_not_is_told_from_one_that_may_differ(text: str) -> None:
    table = text[text.index('<table class="matches">') :]
    lines = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", table[: table.index("</table>")])
    plain = [re.sub(r"<[^>]*>", " ", line).split() for line in lines]
    assert [" ".join(line) for line in plain] == [
        "IR ✓ matches 70 69 (99%) 2.50 paper may differ",
        "IS ≠ differs 70 20 (29%) ∞ paper may differ",
        "IR ✓ matches 70 69 (99%) 2.50 authors must match",
        "IS ✗ does not match 70 20 (29%) ∞ authors must match",
    ]


def test_main_text_comes_before_the_appendix(text: str) -> None:
    for start in (
        '<article id="{}">',
        '<li><a href="#{}">',
        '<th scope="rowgroup" colspan="6"><a href="#{}">',
    ):
        first, second = (
            text.index(start.format(f))
            for f in ("markov-step-size", "continuous-sgd-step-size-all")
        )
        assert first < second


def test_quick_results_are_marked_and_others_are_not(text: str) -> None:
    marked = "not the paper's numbers"
    assert marked not in text
    quick = write([chain("quick", ("paper",))])
    assert quick.count(marked) == 2
    assert quick.index(marked) < quick.index("<main>")


def test_fewer_runs_than_the_papers_are_told() -> None:
    few = replace(chain(protocols=("paper",)), made={"paper": made("paper", runs=3)})
    told = write([few])
    assert "3 (paper: 100)" in told


def test_a_figure_shows_its_notes_and_the_source_of_what_was_published(text: str) -> None:
    article = text[text.index('<article id="markov-step-size">') :]
    article = article[: article.index("</article>")]
    figure = get("markov-step-size")
    for said in (
        figure.title,
        figure.where,
        figure.notes["paper"],
        "slides p41",
        "100 runs",
        "Grey",
    ):
        assert said in article
    assert f"<dt>Protocol authors</dt><dd>{figure.notes['authors']}</dd>" in article
    assert "2 of 4 curves match" in article
    assert "✗ fails, authors" in article
    other = text[text.index('<article id="continuous-sgd-step-size-all">') :]
    assert "Grey" not in other
    assert "published.csv" not in other


def test_what_is_noted_about_both_protocols_is_said_once() -> None:
    shown = chain()
    figure = replace(shown.figure, notes={"paper": "As it is.", "authors": "As it is."})
    assert "<dt>Protocols paper and authors</dt><dd>As it is.</dd>" in write(
        [replace(shown, figure=figure)]
    )


@pytest.mark.parametrize(
    ("told", "numbers", "expected"),
    [
        ("holds", (1.0, 0.5, 2.0), "1.00 [0.500, 2.00]"),
        ("undecided", (None, None, None), "–"),
        ("holds", (None, None, None), "∞ [∞, ∞]"),
        ("holds", (3.0, 2.0, None), "3.00 [2.00, ∞]"),
        ("holds", (None, 2.0, None), "∞ [2.00, ∞]"),
        ("fails", (-3.0, None, -2.0), "−3.00 [−∞, −2.00]"),
    ],
)
def test_statistics_are_told_with_what_is_infinite(told, numbers, expected) -> None:
    value, low, high = numbers
    assert statistic(verdict("a", told, statistic=value, low=low, high=high)) == expected


# The data that the page carries


def numbers(text: str) -> dict[str, Any]:
    """The JSON of every figure, by the script's id; what is no JSON is refused."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    inside = Reader(text).inside
    return {id: json.loads(said, parse_constant=refuse) for id, said in inside.items()}


@pytest.mark.parametrize("make", [chain, six_panels])
def test_the_page_carries_the_points_of_the_csv_files(make, tmp_path: Path) -> None:
    shown = make()
    told = numbers(write([shown]))[f"data-{shown.figure.id}"]
    for points, name in ((shown.rows, "rows"), (shown.published, "published")):
        write_csv(points, tmp_path / f"{name}.csv")
        with (tmp_path / f"{name}.csv").open(newline="") as file:
            lines = list(csv.DictReader(file))
        assert len(told[name]) == len(lines) == len(points)
        for point, line in zip(told[name], lines, strict=True):
            assert list(point) == list(line)
            for key, cell in line.items():
                if key in ("protocol", "panel", "series"):
                    assert point[key] == cell
                elif cell in ("", "inf"):
                    assert point[key] == (cell or None)
                else:
                    assert point[key] == float(cell)
    assert {point["y"] for point in told["rows"]} >= {"inf"}
    assert {point["stderr"] for point in told["rows"]} >= {None}


def test_the_page_carries_what_was_judged_and_how_it_was_made(text: str) -> None:
    told = numbers(text)
    assert set(told) == {"data-markov-step-size", "data-continuous-sgd-step-size-all"}
    mine, shown = told["data-markov-step-size"], chain()
    figure = shown.figure
    assert [mine[key] for key in ("id", "title", "where")] == [
        figure.id, figure.title, figure.where,
    ]  # fmt: skip
    assert mine["axes"] == asdict(figure.axes)
    assert mine["verdicts"] == json.loads(json.dumps([asdict(v) for v in shown.verdicts]))
    told_of = [(m["protocol"], m["series"], m["worst"], m["must_match"]) for m in mine["matches"]]
    assert told_of == [
        ("paper", "IR", 2.5, False),
        ("paper", "IS", "inf", False),
        ("authors", "IR", 2.5, True),
        ("authors", "IS", "inf", True),
    ]
    assert mine["made"] == {protocol: asdict(how) for protocol, how in shown.made.items()}


def test_a_hostile_title_ends_no_element() -> None:
    title = "</script><b>&amp;'\""
    shown = chain()
    text = write([replace(shown, figure=replace(shown.figure, title=title))], title=title)
    reader = Reader(text)
    assert [found for name, found in reader.found if name == "b"] == []
    assert numbers(text)["data-markov-step-size"]["title"] == title
    assert text.count("</script>") == 1
    assert text.count("&lt;/script&gt;&lt;b&gt;&amp;amp;") >= 5  # title, headings, links, table


# A study of one's own


def own(protocol: str = "", **changes: Any) -> Exhibit:
    """No claims, nothing published, no place in the paper, no scale."""
    source = NamedStudy("mine", "", lambda protocol: Study("mine", "markov-chain", ("IR",), (1.0,)))
    figure = Figure(source, "My < study", "", PLAIN, lambda results: [], **changes)
    how = made(protocol, scale="", runs=3)
    points = rows(protocols=(protocol,))
    return Exhibit(figure, points, (), (), (), {protocol: how}, part="Studies")


def test_a_study_of_ones_own_shows_nothing_that_it_does_not_have() -> None:
    text = write([own()])
    reader = Reader(text)
    assert set(reader.all("id")) == {"made", "contents", "mine", "data-mine"}
    for absent in ("paper:", "Schlegel", "Protocol", "Scale", "claims.json", "published", "Grey"):
        assert absent not in text[text.index("<body>") : text.index("<script")], absent
    assert re.findall(r"<(\w+)[^>]*>\s*</\1>", text) == []
    assert '<h2 class="sheet">Studies</h2>' in text
    assert "<h3>My &lt; study</h3>" in text
    headings = re.findall(r'<th scope="col">(.*?)</th>', text)
    assert headings == ["Runs", "Seed", "Time", "Finished", "Version"]
    assert '<td data-label="Runs"><span>3</span></td>' in text
    told = numbers(text)["data-mine"]
    assert len(told["rows"]) == 60
    assert told["part"] == "Studies"
    assert told["published"] == told["verdicts"] == told["matches"] == []


def test_the_protocol_of_ones_own_study_is_named_and_not_explained_as_the_papers() -> None:
    text = write([own("paper", notes={"paper": "A first look."})])
    assert "<dt>Protocol paper</dt><dd>A first look.</dd>" in text
    assert '<th scope="row">paper</th>' in text
    assert "what we stand behind" not in text
    assert "<dt>Note</dt><dd>A first look.</dd>" in write([own(notes={"": "A first look."})])


def test_own_studies_come_after_the_figures_of_the_paper() -> None:
    text = write([own(), six_panels(), chain()])
    assert re.findall(r'<h2 class="sheet">(.*?)</h2>', text) == [
        "Figures of the main text",
        "Figures of the appendix",
        "Studies",
    ]
    articles = re.findall('<article id="(.*?)">', text)
    assert articles == ["markov-step-size", "continuous-sgd-step-size-all", "mine"]
    assert "Schlegel" in text
    assert "Studies that are not the paper's come after its figures." in text
    assert "come after" not in write([chain()])
    claims = text[text.index('<section id="claims">') : text.index('<h2 class="sheet">')]
    assert "My &lt; study" not in claims


def test_a_place_in_the_paper_is_told_wherever_the_figure_is_named(text: str) -> None:
    shown = chain()
    assert text[: text.index("<script")].count("Fig. 4 left") == 4  # contents, two tables, article
    nowhere = write([replace(shown, figure=replace(shown.figure, where=""))])
    assert "<small></small>" not in nowhere
    assert '<p class="small"></p>' not in nowhere
    assert "()" not in nowhere


# The page in a browser

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Browser:
    """A browser without a window, over the pipe of the Chrome DevTools protocol."""

    def __init__(self, command: str, profile: Path) -> None:
        import fcntl  # not on every system, and nothing else here needs it

        (child_in, self.to), (self.back, child_out) = os.pipe(), os.pipe()
        # The browser listens on 3 and answers on 4: move ours out of the way.
        moved = [fcntl.fcntl(file, fcntl.F_DUPFD, 10) for file in (child_in, child_out)]
        start = (
            "import os, sys; os.dup2({}, 3); os.dup2({}, 4); os.execv(sys.argv[1], sys.argv[1:])"
        )
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-c", start.format(*moved), command, "--headless"),
                *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
                *("--remote-debugging-pipe", f"--user-data-dir={profile}"),
            ],
            pass_fds=moved,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for file in (child_in, child_out, *moved):
            os.close(file)
        self.left = b""
        self.count = 0
        self.events: list[dict[str, Any]] = []
        self.session: dict[str, str] = {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        nothing = {"latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        self.call("Network.emulateNetworkConditions", offline=True, **nothing)

    def hear(self) -> dict[str, Any]:
        while b"\0" not in self.left:
            assert select.select([self.back], [], [], 60)[0], "the browser does not answer"
            got = os.read(self.back, 1 << 20)
            assert got, "the browser is gone"
            self.left += got
        message, _, self.left = self.left.partition(b"\0")
        return json.loads(message)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.count += 1
        asked = {"id": self.count, "method": method, "params": parameters, **self.session}
        os.write(self.to, json.dumps(asked).encode() + b"\0")
        while (message := self.hear()).get("id") != self.count:
            self.events.append(message)
        assert "error" not in message, message
        return message["result"]

    def show(self, path: Path, width: int, height: int = 800) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", mobile=width < 500, **size)
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.hear())

    def ask(self, expression: str) -> Any:
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return told["result"]["value"]

    def heard(self, *methods: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["method"] in methods]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        os.close(self.to)
        os.close(self.back)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    if BROWSER is None:
        pytest.skip("no browser: install chromium to see the page in one")
    browser = Browser(BROWSER, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def report(text: str, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [360, 1280])
def test_a_browser_opens_the_page_offline_without_complaints(browser, report, width) -> None:
    browser.show(report, width)
    assert browser.ask("document.title") == "A <report>"
    assert (
        browser.heard("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown") == []
    )
    asked = browser.heard("Network.requestWillBeSent")
    addresses = {event["params"]["request"]["url"].partition(":")[0] for event in asked}
    assert addresses <= {"file", "data"}


@pytest.mark.parametrize("width", [360, 1280])
def test_a_browser_loads_all_pictures(browser, report, width) -> None:
    browser.show(report, width)
    sizes = browser.ask(
        "[...document.images].map(i => [i.complete, i.naturalWidth, i.naturalHeight])"
    )
    assert len(sizes) == 2
    for complete, wide, high in sizes:
        assert complete
        assert wide > 0
        assert (high > wide) == (width == 360)  # panels one below the other


@pytest.mark.parametrize("width", [320, 360, 577, 737, 1280])
def test_the_page_fits_the_screen(browser, report, width) -> None:
    browser.show(report, width)
    assert browser.ask("innerWidth") == width
    assert browser.ask("document.documentElement.scrollWidth") <= width
    wide = "[...document.querySelectorAll('body *')].filter(e => e.scrollWidth > innerWidth)"
    assert browser.ask(f"{wide}.map(e => e.tagName)") == []


@pytest.mark.parametrize("width", [360, 1280])
def test_the_table_of_claims_is_filled_and_can_be_read(browser, report, width) -> None:
    browser.show(report, width)
    lines = browser.ask(
        "[...document.querySelectorAll('table.claims tbody tr')].map(e => e.innerText)"
    )
    assert len(lines) == 2 + 7
    assert sum("holds" in line for line in lines) == 3
    cells = "[...document.querySelectorAll('table.claims td')]"
    widths = browser.ask(f"{cells}.map(cell => cell.getBoundingClientRect().width)")
    assert len(widths) == 7 * 5
    assert min(widths) > 0


def test_the_page_fits_a_sheet_of_paper(browser, report) -> None:
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.show(report, 688)  # A4 less its margins
    assert browser.ask("document.documentElement.scrollWidth") <= 688
    paper = "getComputedStyle(document.querySelector('thead')).display"
    assert browser.ask(paper) == "table-header-group"
    browser.call("Emulation.setEmulatedMedia", media="")
