"""Measure how often the intervals of docs/clinic.md cover the truth, over simulated studies.

    python -m experiments clinic            200 studies, in about 3 minutes on a core

Worlds and policies are those of the page: the blocks that define them run in a folder that is
thrown away.
"""

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import gvf
from experiments.tables import write_rows

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clinic.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def page() -> dict[str, Any]:
    """Return the names that the blocks of the page define, up to the last policy."""
    names: dict[str, Any] = {"__name__": "__main__"}
    quiet = contextlib.redirect_stdout(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), quiet:
        for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            if "gentler_guideline" not in names:
                exec(block, names)
    return names


def measure(folder: Path, parts: Sequence[str] = (), quick: bool = False) -> None:
    """Write the coverage of intervals of 95 % and the mean error, by study, setting and age.

    The quick measure has two studies.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    studies = 2 if quick else 200
    names = page()
    some, columns = names["some"], dict(names["columns"])
    truths = {
        name: names["truth"](
            names[name], some, np.random.default_rng(7), patients=200 if quick else 20_000
        )
        for name in ("guideline", "gentler_guideline")
    }
    settings = [
        ("the guideline", "guideline", {}, True),
        ("the gentler guideline", "gentler_guideline", {}, True),
        ("the same, probabilities known", "gentler_guideline", {}, False),
        (
            "the same, drop-out taken for recovery",
            "gentler_guideline",
            {"ends": "terminated"},
            False,
        ),
    ]
    groups = {"age groups 0 and 1": some[:, 1] < 2, "age group 2": some[:, 1] == 2}
    written = []
    for k in range(studies):
        rows = names["study"](600, np.random.default_rng([1, k]))
        table = dict(zip(names["names"].split(","), rows.T, strict=True))
        for name in ("patient", "visit", "treatment"):
            table[name] = table[name].astype(int)
        table["recovered"] = table["recovered"].astype(bool)
        log = gvf.read_log(table, **columns, terminated="recovered", quiet=True)
        cut = gvf.read_log(table, **columns, ends="terminated", quiet=True)
        estimated = gvf.estimate_behaviour(log, progress=False).log
        known = gvf.policies.Function(names["doctors"], actions=3)
        for asked, policy, options, estimates in settings:
            learner = gvf.LSTDLearner(
                gvf.GVF(gvf.policies.Function(names[policy], actions=3), "reward", 0.9),
                gvf.features.Dense(11, names["curves"]),
                behaviour=None if estimates else known,
            )
            source = estimated if estimates else cut if options else log
            point, low, high = gvf.bootstrap(learner, source, seed=k, progress=False).predict(some)
            covered = (low <= truths[policy]) & (truths[policy] <= high)
            error = point - truths[policy]
            written += [
                {
                    "asked": asked,
                    "ages": ages,
                    "study": k,
                    "covered": float(covered[group].mean()),
                    "error": float(error[group].mean()),
                }
                for ages, group in groups.items()
            ]
    write_rows(folder / "coverage.csv", written)
