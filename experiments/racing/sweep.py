"""Check that there are results of the racing car, which ``gvf reproduce racing-step-size`` makes.

Recordings take hours and the learning a GPU, so no experiment makes them by the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gvf_lab.study.store import latest


def measure(folder: Path, parts: Sequence[str] = (), quick: bool = False) -> None:
    """Raise SystemExit if gvf-results has none; there is neither a part nor a quick measure."""
    if "racing-step-size" not in latest("gvf-results"):
        raise SystemExit("no results in gvf-results: `gvf reproduce racing-step-size` makes them")
