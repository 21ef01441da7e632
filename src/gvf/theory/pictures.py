"""How the pictures look: colours that everybody can tell apart, plain axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gvf.theory.row import Finding

BLACK, BLUE, ORANGE, GREEN, PINK, SKY, AMBER = (
    "#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00",
)  # fmt: skip
"""From the palette of Okabe and Ito."""
COLOURS = {"IR": BLUE, "BC-IR": GREEN}
"""One colour a method."""


def panel(axis: Any, x: str, y: str, title: str, *, legend: str = "best") -> None:
    """Label an axis, put the legend in its place, and take away what is not needed."""
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.set_title(title, fontsize="medium")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize="small", loc=legend)


def save(finding: Finding, folder: Path) -> Path:
    """Draw a finding into ``folder/<name>.png``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    finding.picture(figure)
    path = folder / f"{finding.slug}.png"
    figure.savefig(path, dpi=120)
    return path
