"""The command ``python -m benchmarks``: measure, print the table, write results.json.

``python -m benchmarks compare OLD NEW`` compares two such files, row by row.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console

from benchmarks import table
from benchmarks.measure import QUICK, Effort, Row

PARTS = (
    "transitions",
    "indices",
    "compiled",
    "questions",
    "stream",
    "learner",
    "horde",
    "horde_gpu",
    "studies",
    "diagnose",
    "streaming",
    "neural",
    "racing",
    "first_use",
)
SLOW = ("endurance", "logs")


def main() -> None:
    """Compare two files, or run the chosen parts, one after the other."""
    if sys.argv[1:2] == ["compare"]:
        old, new = map(Path, sys.argv[2:])
        table.compare(old, new, Console(highlight=False, width=140))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument(
        "--slow", action="store_true", help=f"also {', '.join(SLOW)}, and longer logs"
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=PARTS + SLOW,
        metavar="NAME",
        help=", ".join(PARTS + SLOW),
    )
    options = parser.parse_args()
    effort = QUICK if options.quick else Effort(slow=options.slow)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 140
    load, cores = os.getloadavg()[0], os.cpu_count()
    console.print(f"Each time is the fastest of {effort.rounds} interleaved rounds, {cores} cores;")
    console.print(", ".join(" ".join(pair) for pair in table.versions().items()) + ".")
    if load > 0.5:
        console.print(f"The machine is busy (load {load:.1f}): repeat this when it is quiet.")
    console.print()
    results: dict[str, list[Row]] = {}
    for name in options.only or PARTS + (SLOW if options.slow else ()):
        part = import_module(f"benchmarks.{name}")
        results[part.TITLE] = part.rows(effort)
        table.show(part.TITLE, results[part.TITLE], console)
        table.save(results)
    judged = [row.met for rows in results.values() for row in rows if row.met is not None]
    console.print(f"{sum(judged)} of {len(judged)} targets met; numbers in {table.RESULTS.name}.")


if __name__ == "__main__":
    main()
