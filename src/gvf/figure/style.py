"""How a method is drawn: one colour, one marker and one dash for each, the same in every picture.

The hues are those of Okabe and Ito, which colour-blind eyes can tell apart. Methods of a family
share a hue: resampling is vermilion, plain reweighting blue, weighted reweighting green, clipping
purple, Sarsa amber. Inside a family shade, dash and marker differ; no marker occurs twice, so that
a curve printed in grey can still be told by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

Dash = str | tuple[float, tuple[float, ...]]

SOLID: Dash = "solid"
DASHED: Dash = (0.0, (5.0, 2.0))
DOTTED: Dash = (0.0, (1.2, 1.4))
MIXED: Dash = (0.0, (6.0, 1.6, 1.4, 1.6))

GREY = "#8a8a8a"
"""Of published curves."""

THIN = "*+PXx"
"""Markers with little surface."""


@dataclass(frozen=True)
class Style:
    """How the curve of one method is drawn.

    Attributes:
        colour: as a hexadecimal number.
        marker: a matplotlib marker.
        dash: a matplotlib line style.
        width: of the line, in points.
    """

    colour: str
    marker: str
    dash: Dash = SOLID
    width: float = 1.3

    @property
    def ours(self) -> dict[str, Any]:
        """Properties of a matplotlib line."""
        # A white rim parts the markers of neighbours, but eats up thin ones.
        thin = self.marker in THIN
        return {
            "color": self.colour,
            "linestyle": self.dash,
            "linewidth": self.width,
            "marker": self.marker,
            "markersize": 5.5 if thin else 4.5,
            "markeredgecolor": self.colour if thin else "white",
            "markeredgewidth": 0.8 if thin else 0.4,
        }

    @property
    def published(self) -> dict[str, Any]:
        """The same for the published curve: thin and grey, told by its marker."""
        return {
            "color": GREY,
            "linewidth": 0.8,
            "marker": self.marker,
            "markersize": 6.0,
            "markeredgewidth": 0.7,
            "markerfacecolor": "none",
        }


METHODS: Mapping[str, Style] = MappingProxyType(
    {
        "IR": Style("#d55e00", "o", width=2.2),
        "BC-IR": Style("#8f2d00", "D", DOTTED),
        "IR+WIS-TD(0)": Style("#a83200", "p", DASHED),
        "WIS-TD(0)": Style("#56b4e9", "h"),
        "IS": Style("#0072b2", "s"),
        "NormIS": Style("#003f66", "+", DASHED),
        "WIS-Minibatch": Style("#009e73", "^"),
        "WIS-Buffer": Style("#7fd8c0", "v", DASHED),
        "WIS-Optimal": Style("#00543d", "*", MIXED),
        "V-trace(1.0)": Style("#cc79a7", ">"),
        "V-trace(0.5 max)": Style("#9c4a80", "<", DASHED),
        "V-trace(0.9 max)": Style("#6b2460", "d", DOTTED),
        "Sarsa": Style("#e69f00", "P"),
        "Expected Sarsa": Style("#c9b458", "X", DASHED),
        "On-policy": Style("#222222", "x", MIXED),
    }
)
"""The paper's methods, in the order of legends."""

# Lengths without a common divisor: 120 names go by before a combination comes again.
_COLOURS = ("#332288", "#999933", "#882255", "#117733", "#5b5b5b")
_MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*")
_DASHES = (SOLID, DASHED, DOTTED)


def styles(names: Iterable[str], colours: Mapping[str, str] | None = None) -> dict[str, Style]:
    """The styles of some methods, in the order of legends.

    The paper's methods come first and always look the same; names that are not known come after
    them, as they come, and get the next spare style, or the colour that is given for them.

    Example:
        >>> from gvf.figure.style import styles
        >>> looks = styles(["my own", "IS", "IR"])
        >>> list(looks), looks["IR"].colour
        (['IR', 'IS', 'my own'], '#d55e00')
    """
    wanted = dict.fromkeys(names)
    found = {name: style for name, style in METHODS.items() if name in wanted}
    own = (name for name in wanted if name not in METHODS)
    found |= {name: _spare(position) for position, name in enumerate(own)}
    given = {name: one for name, one in (colours or {}).items() if one and name in found}
    return found | {name: replace(found[name], colour=one) for name, one in given.items()}


def _spare(position: int) -> Style:
    return Style(
        _COLOURS[position % len(_COLOURS)],
        _MARKERS[position % len(_MARKERS)],
        _DASHES[position % len(_DASHES)],
    )
