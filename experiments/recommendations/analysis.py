"""Nothing is left to do for the page about recommendations: its sweep writes the tables."""

from __future__ import annotations

from pathlib import Path


def write(folder: Path) -> None:
    """Check that both tables are there."""
    for name in ("obd", "estimates"):
        if not (folder / f"{name}.markdown").exists():
            raise SystemExit(f"no {name}.markdown in {folder}: the sweep writes it")
