"""One colour for one method, in every picture."""

import ast
import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

import gvf
from gvf.common.colours import METHOD_COLOURS, SPARE_COLOURS

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "src" / "gvf" / "common" / "colours.py"
FOLDERS = ("src/gvf", "lab/src/gvf_lab", "lab/tools", "examples", "tools")
SOURCES = sorted({path for name in FOLDERS for path in (ROOT / name).rglob("*.py")} - {TABLE})
CYCLE = re.compile(r"C\d|tab:\w+")


def is_grey(colour: str) -> bool:
    channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return max(channels) - min(channels) < 16


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_other_module_writes_a_colour_but_grey(source: Path) -> None:
    tree = ast.parse(source.read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    written = [text for text in texts if isinstance(text, str)]
    assert not [text for text in written if CYCLE.fullmatch(text)]
    colours = [text for text in written if re.fullmatch("#[0-9a-fA-F]{6}", text)]
    assert [colour for colour in colours if not is_grey(colour)] == []


def test_no_colour_is_in_the_table_twice() -> None:
    every = [*METHOD_COLOURS.values(), *SPARE_COLOURS]
    assert len(set(every)) == len(every)


def test_a_diagnosis_draws_the_recommended_correction_in_its_colour() -> None:
    found = gvf.diagnose(np.array([0.2, 1.8, 0.2, 1.8]), np.array([1.0, 2.0, 3.0, 4.0]))
    axes = found.plot().axes[1]
    names = [label.get_text() for label in axes.get_yticklabels()]
    drawn = {name: bar.get_facecolor() for name, bar in zip(names, axes.patches, strict=True)}
    plt.close("all")
    best = found.recommendation.name
    assert to_hex(drawn[best]) == METHOD_COLOURS[best]


def test_the_quickstart_draws_methods_in_their_colours(tmp_path: Path) -> None:
    quickstart = runpy.run_path(str(ROOT / "examples" / "quickstart.py"))
    names = ("IR", "WIS-Minibatch", "IS")
    curves = {name: np.ones((quickstart["PIECES"], 1)) for name in names}
    map_, land = np.linspace(0, 1, 49), np.ones(49, bool)
    best = dict.fromkeys(names, 0)
    quickstart["draw"](tmp_path / "picture.png", map_, map_, land, curves, best)
    lines = plt.gcf().axes[2].lines
    plt.close("all")
    shown = {str(line.get_label()).partition(",")[0]: line.get_color() for line in lines}
    assert shown == {name: METHOD_COLOURS[name] for name in names}
