"""Measure how often the intervals of docs/clinic.md cover the truth, over simulated studies.

    python docs/clinic/measure.py 200       writes the table of the page; about 3 minutes on a core

Run it in any folder; the blocks of the page, which it takes its functions from, run in one that is
thrown away.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import gvf

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def page() -> dict[str, Any]:
    """Return the names that the blocks of the page define."""
    names: dict[str, Any] = {"__name__": "__main__"}
    text = Path(__file__).parents[1].joinpath("clinic.md").read_text(encoding="utf-8")
    quiet = contextlib.redirect_stdout(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), quiet:
        exec("".join(BLOCK.findall(text)), names)
    return names


def main(studies: int) -> None:
    """Write the coverage of intervals of 95 %, with two standard errors over studies."""
    names = page()
    some, columns = names["some"], dict(names["columns"])
    truths = {
        name: names["truth"](names[name], some, np.random.default_rng(7), patients=20_000)
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
    covered = np.zeros((len(settings), studies, len(some)))
    error = np.zeros_like(covered)
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
        for j, (_, policy, options, estimates) in enumerate(settings):
            learner = gvf.LSTDLearner(
                gvf.GVF(gvf.policies.Function(names[policy], actions=3), "reward", 0.9),
                gvf.features.Dense(11, names["curves"]),
                behaviour=None if estimates else known,
            )
            source = estimated if estimates else cut if options else log
            point, low, high = gvf.bootstrap(learner, source, seed=k, progress=False).predict(some)
            covered[j, k] = (low <= truths[policy]) & (truths[policy] <= high)
            error[j, k] = point - truths[policy]
    lines = ["| asked | age groups 0 and 1 | age group 2 |", "|---|---|---|"]
    for j, (name, *_) in enumerate(settings):
        cells = []
        for group in (some[:, 1] < 2, some[:, 1] == 2):
            shares = covered[j][:, group].mean(axis=1)
            spread = 2 * shares.std() / np.sqrt(studies)
            bias = error[j][:, group].mean()
            cells.append(f"{100 * shares.mean():.0f} ± {100 * spread:.0f} %, error {bias:+.1f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    text = "\n".join([*lines, ""])
    Path(__file__).with_name("coverage.markdown").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(int(sys.argv[1]) if sys.argv[1:] else 200)
