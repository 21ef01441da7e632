"""Pictures of an exhibit."""

from dataclasses import replace
from pathlib import Path

import matplotlib
from shown import chain

from gvf_lab.figure.picture import save
from gvf_lab.figure.style import GREY
from gvf_lab.report.exhibit import Exhibit


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


def test_a_quick_picture_says_so() -> None:
    words = [text.get_text() for text in chain("quick", ("paper",)).draw().axes[0].texts]
    assert "quick scale, 25 runs" in words


def test_a_panel_names_its_error_if_protocols_differ() -> None:
    shown = chain("quick")
    figure = replace(shown.figure, measured={"paper": "a mean", "authors": "a root"})
    panels = replace(shown, figure=figure).draw().axes
    assert [panel.texts[0].get_text() for panel in panels] == [
        f"{error}, quick scale, 25 runs" for error in ("a mean", "a root")
    ]


def test_equal_points_give_equal_files(tmp_path: Path) -> None:
    save(chain().draw(), tmp_path / "one", "figure")
    with matplotlib.rc_context({"font.size": 20, "svg.hashsalt": None, "xtick.direction": "in"}):
        save(chain().draw(), tmp_path / "two", "figure")
    for name in ("figure.png", "figure.svg"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert (tmp_path / "one" / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_what_was_made_here_comes_before_what_was_shipped() -> None:
    made, shipped = chain(), replace(chain(), rows=())
    both = Exhibit(made.figure, made, shipped)
    assert list(both.versions.items()) == [("now", made), ("shipped", shipped)]
    assert list(Exhibit(made.figure, None, shipped).versions) == ["shipped"]
    assert Exhibit(made.figure).versions == {}
