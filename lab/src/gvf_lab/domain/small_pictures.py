"""Small pictures in NumPy, for ``render()``.

An image is uint8[height, width, 3]. A shape covers each pixel by a share in [0, 1], one minus the
pixel's distance beyond the edge, so that edges are smooth:

    pixel = (1 - share) pixel + share colour.

The colours are Okabe and Ito's, which colour-blind people can distinguish.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
Colour = tuple[int, int, int]

PAPER: Colour = (250, 249, 245)
GRID: Colour = (226, 224, 216)
INK: Colour = (66, 70, 77)
BLUE: Colour = (0, 114, 178)
ORANGE: Colour = (213, 94, 0)
GREEN: Colour = (0, 158, 115)


def blank(height: int, width: int, colour: Colour = PAPER) -> Image:
    """Make a canvas of one colour."""
    return np.full((height, width, 3), colour, np.uint8)


def rectangle(
    image: Image, top: float, left: float, height: float, width: float, colour: Colour
) -> None:
    """Fill a rectangle, to the nearest pixel."""
    rows = slice(round(top), round(top + height))
    image[rows, round(left) : round(left + width)] = colour


def disc(image: Image, y: float, x: float, radius: float, colour: Colour) -> None:
    """Fill a disc."""
    rows, columns = _pixels(image)
    _paint(image, radius + 0.5 - np.hypot(rows - y, columns - x), colour)


def segment(
    image: Image, start: tuple[float, float], end: tuple[float, float], width: float, colour: Colour
) -> None:
    """Draw a straight line from start to end, both (y, x)."""
    rows, columns = _pixels(image)
    (y, x), (dy, dx) = start, (end[0] - start[0], end[1] - start[1])
    along = ((rows - y) * dy + (columns - x) * dx) / (dy * dy + dx * dx)
    nearest = along.clip(0, 1)
    distance = np.hypot(rows - y - nearest * dy, columns - x - nearest * dx)
    _paint(image, width / 2 + 0.5 - distance, colour)


def board(walls: NDArray[np.bool_], cell: int) -> Image:
    """Draw a map from above, ``cell`` pixels a cell: walls dark, floor with a faint grid."""
    height, width = walls.shape
    image = blank(height * cell + 1, width * cell + 1)
    for row in range(height + 1):
        rectangle(image, row * cell, 0, 1, width * cell + 1, GRID)
    for column in range(width + 1):
        rectangle(image, 0, column * cell, height * cell + 1, 1, GRID)
    for row, column in np.argwhere(walls):
        rectangle(image, row * cell, column * cell, cell + 1, cell + 1, INK)
    return image


def text_map(walls: NDArray[np.bool_], row: int, column: int) -> str:
    """Draw a map in characters: ``#`` for a wall, ``.`` for floor, ``A`` for the agent."""
    characters = np.where(walls, "#", ".")
    characters[row, column] = "A"
    return "\n".join("".join(line) for line in characters)


def _pixels(image: Image) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the centres of pixels, rows as a column and columns as a row, to broadcast."""
    height, width, _ = image.shape
    return np.arange(height)[:, None] + 0.5, np.arange(width)[None, :] + 0.5


def _paint(image: Image, share: NDArray[np.float64], colour: Colour) -> None:
    cover = share.clip(0, 1)[:, :, None]
    image[:] = np.rint(image * (1 - cover) + np.array(colour) * cover).astype(np.uint8)
