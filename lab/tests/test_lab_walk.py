"""The way from `gvf reproduce markov-step-size` to its page stays short.

A file is passed if a function of it, public or private, is called after the imports. Left out are
templates, and files that are passed only for figures that were not asked for, which are counted
alone: their studies are made to show them as they are shipped. See :mod:`walks`, also for doors:
each function and each class of the library counts once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from walks import Walk, walk_of

import gvf
import gvf_lab

# What is reached; a walk that becomes shorter lowers its number.
FILES, FILES_OF_OTHER_FIGURES, DOORS = 38, 9, 21
COMMAND = ("reproduce", "markov-step-size", "--runs", "1", "--workers", "1", "--out")
OTHERS = (
    "domain/continuous_four_rooms.py",
    "domain/four_rooms.py",
    "paper/continuous_four_rooms_figures.py",
    "paper/emphatic_figures.py",
    "paper/four_rooms_figures.py",
    "racing/",
    "study/variance_study.py",
)
"""What only other figures need."""


def house(package: Any) -> str:
    """The folder of a package."""
    return f"{Path(package.__file__).parent}/"


def walk_of_command(out: str) -> Walk:
    """From the command to its last line, in a process where nothing was computed before."""
    from gvf.cli import main
    from gvf_lab import charts, paper

    # Whatever is imported later would be counted.
    for module in ("report.build", "report.sentence_verdicts", "study.run_study"):
        import_module(f"gvf_lab.{module}")
    for figures in (paper.FIGURES, charts.FIGURES):
        assert all(figures.values())
    return walk_of(
        lambda: main([*COMMAND, out]),
        begins=lambda frame: frame.f_code.co_qualname == "_reproduce",
        house=house(gvf_lab),
        next_door=house(gvf),
        with_private=True,
        left_out=("common/", "report/templates/"),
    )


def test_a_figure_asked_for_becomes_a_page_by_a_short_way(tmp_path: Path) -> None:
    """Targets: 26 files, none of other figures, and 4 doors."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "GVF_CACHE_DIR": str(tmp_path / "cache"),  # nothing was computed before
    }
    command = [sys.executable, __file__, str(tmp_path / "walk.json")]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    walk = Walk(*json.loads((tmp_path / "walk.json").read_text()))
    files = [file for file in walk.files if not file.startswith(OTHERS)]
    others = [file for file in walk.files if file.startswith(OTHERS)]
    assert "study/study_loop.py" in files
    assert "report/page.py" in files
    assert len(files) <= FILES, "\n".join(files)
    assert len(others) <= FILES_OF_OTHER_FIGURES, "\n".join(others)
    doors = [
        f"{file}: {name}" for file, name, caller in walk.doors if not caller.startswith(OTHERS)
    ]
    assert len(doors) <= DOORS, "\n".join(doors)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        walk = walk_of_command(str(Path(folder) / "out"))
    Path(sys.argv[1]).write_text(json.dumps([walk.functions, walk.doors]))
