"""The table of the page about the clinic: coverage, with two standard errors over studies."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments.tables import column, read_rows, write_table


def write(folder: Path) -> None:
    """Write the table from coverage.csv."""
    rows = read_rows(folder / "coverage.csv")
    ages = list(dict.fromkeys(row["ages"] for row in rows))
    lines = [["asked", *ages]]
    for asked in dict.fromkeys(row["asked"] for row in rows):
        cells = []
        for group in ages:
            mine = [row for row in rows if row["asked"] == asked and row["ages"] == group]
            shares, error = column(mine, "covered"), column(mine, "error").mean()
            spread = 2 * shares.std() / np.sqrt(len(shares))
            cells.append(f"{100 * shares.mean():.0f} ± {100 * spread:.0f} %, error {error:+.1f}")
        lines.append([asked, *cells])
    write_table(folder / "coverage.markdown", lines)
