"""Benchmark of the first use, with nothing compiled yet and with a warm cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import gvf
from benchmarks.measure import LIMITS, QUICK, Effort, Row, at_most

TITLE = "First use"
SOURCE = Path(str(gvf.__file__)).parents[1]
QUICKSTART = Path(__file__).parents[1] / "examples" / "quickstart.py"
TIMED_IMPORT = (
    "from time import perf_counter; start = perf_counter(); import gvf; "
    "print(perf_counter() - start)"
)


def rows(effort: Effort) -> list[Row]:
    """Measure the wall time of the quickstart and of the import, each in its own process."""
    repeats = 1 if effort == QUICK else 3
    cold, warm, imports = [], [], []
    for _ in range(repeats):
        with TemporaryDirectory() as folder:
            cold.append(_quickstart(folder))
            warm.append(_quickstart(folder))
            imports += [float(_python(folder, "-c", TIMED_IMPORT)) for _ in range(2)]
    limits = LIMITS["first_use"]
    return [
        at_most("quickstart", "cold", min(cold), "s", limits["quickstart-cold"]),
        at_most("quickstart", "warm", min(warm), "s", limits["quickstart-warm"]),
        at_most("import gvf", "warm", min(imports), "s", limits["import"]),
    ]


def _quickstart(folder: str) -> float:
    start = perf_counter()
    _python(folder, str(QUICKSTART))
    return perf_counter() - start


def _python(folder: str, *arguments: str) -> str:
    """Run Python in a folder, which also holds the compiled code, and return its output."""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(Path(folder, "numba")),
        "PYTHONPATH": str(SOURCE),
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout
