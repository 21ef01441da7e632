"""The table on the screen, and the same as JSON."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Row

RESULTS = Path(__file__).with_name("results.json")
_PACKAGES = ("numpy", "numba", "torch", "cpprb", "tianshou", "torchrl")


def show(title: str, rows: list[Row], console: Console) -> None:
    """Print one part; a case's name stands at its first line only."""
    plain = not console.is_terminal
    table = Table(title=title, title_justify="left", box=box.ASCII if plain else box.ROUNDED)
    table.add_column("case", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("measured", justify="right", no_wrap=True)
    against = any(row.ratio is not None for row in rows)
    reached = any(row.reached for row in rows)
    if against:
        table.add_column("against ours", justify="right", no_wrap=True)
    if reached:
        table.add_column("reached", no_wrap=True)
    table.add_column("target", no_wrap=True)
    table.add_column("met")
    case = None
    for row in rows:
        if case not in (None, row.case):
            table.add_section()
        table.add_row(
            row.case if row.case != case else "",
            row.name,
            _number(row),
            *(["" if row.ratio is None else f"{row.ratio:.2f} x"] if against else []),
            *([row.reached] if reached else []),
            row.target,
            "" if row.met is None else ("[green]yes[/]" if row.met else "[red]no[/]"),
            style=None if row.name.startswith("gvf") or row.met is not None else "dim",
        )
        case = row.case
    console.print(table)
    for name, note in dict.fromkeys((row.name, row.note) for row in rows if row.note):
        console.print(f"{name}: {note}")
    console.print()


def save(parts: dict[str, list[Row]]) -> None:
    """Write all parts with the circumstances to results.json."""
    document = {
        "machine": machine(),
        "versions": {name: _version(name) for name in _PACKAGES},
        "parts": {title: [asdict(row) for row in rows] for title, rows in parts.items()},
    }
    RESULTS.write_text(json.dumps(document, indent=1) + "\n")


def machine() -> dict[str, object]:
    """What the numbers depend on besides the code."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _number(row: Row) -> str:
    return "-" if row.value is None else f"{row.value:.3g} {row.unit}"
