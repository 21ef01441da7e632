"""Pictures: the house style, and their bytes."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOK: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "axes.labelcolor": "#222222",
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 8.5,
    "figure.constrained_layout.h_pad": 0.06,
    "figure.titlesize": 10,
    "font.size": 8.5,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "svg.fonttype": "path",  # looks the same if the font is not installed
    "svg.hashsalt": "gvf",
    "xtick.color": "#555555",
    "xtick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.color": "#555555",
    "ytick.labelsize": 7.5,
    "ytick.major.width": 0.6,
    "ytick.minor.width": 0.4,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Use matplotlib's defaults with our changes, and ignore the user's settings."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(LOOK)
        yield


def render(figure: Figure, kind: str) -> bytes:
    """Return the bytes of a picture as "png" or "svg"; equal pictures give equal bytes."""
    file = io.BytesIO()
    unsaid = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
    with house_style():
        figure.savefig(file, format=kind, dpi=150, metadata=unsaid[kind])
    return file.getvalue()


PER_INCH = 110
"""Pixels per inch of a picture on a wide screen."""


def embed(picture: Figure, kind: str = "svg") -> dict[str, Any]:
    """Embed a picture in an address, so that names inside it cannot clash with others.

    Returns:
        The address ``src`` for an image of a page, and its ``width`` in pixels.
    """
    code = b64encode(render(picture, kind)).decode()
    width = round(picture.get_figwidth() * PER_INCH)
    return {
        "src": f"data:image/{'svg+xml' if kind == 'svg' else kind};base64,{code}",
        "width": width,
    }
