"""Studies that are run by engines and commands, and how to run and compare them."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gvf_lab.study import Study

STUDY = Study(
    "sweep", "four-rooms", ("IR", "IS", "WIS-Optimal", "Sarsa"), (0.0, 0.5, 8.0, 60.0),
    pairs=(("down", "random-state"),), steps=10_000, warm_up=100, window=500, gaps=(1, 4),
    points=20, runs=15,
)  # fmt: skip
"""Thirty tasks of some hundredths of a second; one of its step sizes diverges."""

CHAIN = Study(
    "chain", "markov-chain", ("IR", "IS"), (0.5, 1.0), updates=20, steps=200, points=4, runs=2
)
needs_posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.glob("results/**/*.parquet")
    }


def start(toml: Path, out: Path, workers: int, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "gvf", "study", "run", toml),
            *("--out", out, "--workers", str(workers), *more),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def beside_progress(errors: str) -> str:
    """What is on stderr besides lines of progress, which a slow machine has, and Ray's own log."""
    return re.sub(
        r"^(sweep: .* (left|so far)|\[\S+ \S+ [EW] .*\.cc:.*)\n", "", errors, flags=re.MULTILINE
    )


STOPPED = "gvf: stopped; what is done is kept: the same command goes on\n"


def command(*given: object) -> list[str]:
    return [sys.executable, "-m", "gvf", *map(str, given)]
