"""The output: a table on the screen, and the same as JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Row

RESULTS = Path(__file__).with_name("results.json")
_PACKAGES = ("numpy", "numba", "torch", "cpprb", "tianshou", "torchrl", "d3rlpy", "scope-rl")


def show(title: str, rows: list[Row], console: Console) -> None:
    """Print one part, without repeating what a line shares with the one above."""
    against = any(row.ratio is not None for row in rows)
    reached = any(row.reached for row in rows)
    style = box.ROUNDED if console.is_terminal else box.ASCII
    table = Table("case", "what", title=title, title_justify="left", box=style)
    table.add_column("measured", justify="right", no_wrap=True)
    if against:
        table.add_column("against ours", justify="right")
    if reached:
        table.add_column("reached")
    table.add_column("target", no_wrap=True)
    table.add_column("met")
    case, what = "", ("", "")
    for row in rows:
        if case and case != row.case:
            table.add_section()
        shown = (row.name, _measured(row))
        table.add_row(
            row.case if row.case != case else "",
            *(shown if (row.case, *shown) != (case, *what) else ("", "")),
            *(["" if row.ratio is None else f"{row.ratio:,.2f} x"] if against else []),
            *([row.reached] if reached else []),
            row.target,
            {None: "", True: "[green]yes[/]", False: "[red]no[/]"}[row.met],
        )
        case, what = row.case, shown
    console.print(table)
    for note, name in {row.note: row.name for row in reversed(rows) if row.note}.items():
        console.print(f"{name}: {note}")
    console.print()


def save(parts: dict[str, list[Row]]) -> None:
    """Write all parts, with machine, commit and versions, to results.json."""
    before = json.loads(RESULTS.read_text())["parts"] if RESULTS.exists() else {}
    now = {title: [asdict(row) for row in rows] for title, rows in parts.items()}
    document = {
        "machine": machine(),
        "commit": commit(),
        "versions": versions(),
        "parts": before | now,
    }
    RESULTS.write_text(json.dumps(document, indent=1) + "\n")


def machine() -> dict[str, object]:
    """Describe the machine, on which the numbers depend."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def commit() -> str:
    """Return the commit of the source, "-dirty" if it was changed; "" if it is no checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        described = subprocess.run(
            command, cwd=RESULTS.parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return described.stdout.strip()


LESS_IS_BETTER = ("ns", "us", "ms", "s", "MB", "bytes/transition")
"""Units of numbers that should be small."""
NOISE = 0.03
"""The share by which a number may get worse before a comparison marks it."""


def compare(old: Path, new: Path, console: Console) -> int:
    """Print each row of two files with the ratio of its numbers; return how many got worse.

    A ratio is above 1 if the new number is the better one. Rows that only one file has are left
    out. Numbers of other machines say nothing of the code, which is said first.
    """
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (old, new))
    if before["machine"]["system"] != after["machine"]["system"] or (
        before["machine"]["cores"] != after["machine"]["cores"]
    ):
        console.print("The files are of different machines.")
    console.print(f"old: {before.get('commit') or old}, new: {after.get('commit') or new}")
    worse = 0
    for title in before["parts"]:
        earlier = {(row["case"], row["name"]): row for row in before["parts"][title]}
        for row in after["parts"].get(title, []):
            other = earlier.get((row["case"], row["name"]))
            if other is None or not row["value"] or not other["value"]:
                continue
            ratio = other["value"] / row["value"]
            ratio = ratio if row["unit"] in LESS_IS_BETTER else 1.0 / ratio
            mark = " worse" if ratio < 1.0 - NOISE else ""
            worse += bool(mark)
            numbers = f"{other['value']:.4g} -> {row['value']:.4g} {row['unit']}"
            console.print(f"{ratio:5.2f}{mark:7}{title}: {row['case']}, {row['name']}: {numbers}")
    console.print(f"{worse} numbers are worse by more than {NOISE:.0%}")
    return worse


def versions() -> dict[str, str]:
    """Return the installed versions of the peers and of our dependencies."""
    found = {}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _measured(row: Row) -> str:
    if row.value is None:
        return "-"
    return f"{row.value:,.0f} {row.unit}" if row.value >= 1000 else f"{row.value:.3g} {row.unit}"
