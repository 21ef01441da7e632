"""Styles: one colour, marker and dash for each method, the same in every picture.

The colours are those of :mod:`gvf.common.colours`. Methods of a family share a hue and differ in
shade, dash and marker. No marker occurs twice, so that curves stay distinct in grey.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from gvf.common.colours import METHOD_COLOURS, ONLINE_COLOURS, colours_of

Dash = str | tuple[float, tuple[float, ...]]

SOLID: Dash = "solid"
DASHED: Dash = (0.0, (5.0, 2.0))
DOTTED: Dash = (0.0, (1.2, 1.4))
MIXED: Dash = (0.0, (6.0, 1.6, 1.4, 1.6))

GREY = "#8a8a8a"
"""The colour of published curves."""

THIN_MARKERS = "*+PXx12"
"""Markers with little surface."""


@dataclass(frozen=True)
class Style:
    """The style of one method's curve.

    Attributes:
        colour: the colour as a hexadecimal number.
        marker: a matplotlib marker.
        dash: a matplotlib line style.
        width: the width of the line, in points.
    """

    colour: str
    marker: str
    dash: Dash = SOLID
    width: float = 1.3

    @property
    def ours(self) -> dict[str, Any]:
        """Properties of a matplotlib line."""
        # A white rim separates neighbouring markers, but hides thin ones.
        thin = self.marker in THIN_MARKERS
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
        """Properties of the published curve's line: thin, grey, with the method's marker."""
        return {
            "color": GREY,
            "linewidth": 0.8,
            "marker": self.marker,
            "markersize": 6.0,
            "markeredgewidth": 0.7,
            "markerfacecolor": "none",
        }


_SHAPES: dict[str, tuple[Any, ...]] = {
    "IR": ("o", SOLID, 2.2),
    "BC-IR": ("D", DOTTED),
    "IR+WIS-TD(0)": ("p", DASHED),
    "WIS-TD(0)": ("h",),
    "IS": ("s",),
    "NormIS": ("+", DASHED),
    "WIS-Minibatch": ("^",),
    "WIS-Buffer": ("v", DASHED),
    "WIS-Optimal": ("*", MIXED),
    "V-trace(1.0)": (">",),
    "V-trace(0.5 max)": ("<", DASHED),
    "V-trace(0.9 max)": ("d", DOTTED),
    "Sarsa": ("P",),
    "Expected Sarsa": ("X", DASHED),
    "On-policy": ("x", MIXED),
    "Emphatic IR": ("H", SOLID, 1.8),
    "Emphatic BC-IR": ("8", DOTTED),
    "Emphatic WIS-Minibatch": ("2",),
    "Emphatic IS": ("1",),
}
"""Marker, dash and width of each method that has a colour of its own."""

METHODS: Mapping[str, Style] = MappingProxyType(
    {name: Style(colour, *_SHAPES[name]) for name, colour in METHOD_COLOURS.items()}
)
"""The methods that have a style of their own, in the order of legends."""

_ONLINE_SHAPES: dict[str, tuple[Any, ...]] = {
    "TD(lambda)": ("o",),
    "GTD(lambda)": ("s",),
    "GTD2(lambda)": ("^", DASHED),
    "HTD(lambda)": ("v", DOTTED),
    "Proximal GTD2(lambda)": ("D",),
    "TDRC(lambda)": ("P", DASHED),
    "Emphatic TD(lambda)": ("*", SOLID, 2.0),
    "Emphatic TD(lambda, beta)": ("X", DASHED),
    "Tree Backup(lambda)": ("<",),
    "V-trace(lambda)": (">", DASHED),
    "ABTD(zeta)": ("p", DOTTED),
}

ONLINE: Mapping[str, Style] = MappingProxyType(
    {name: Style(colour, *_ONLINE_SHAPES[name]) for name, colour in ONLINE_COLOURS.items()}
)
"""The online algorithms, which have pictures of their own, in the order of legends."""

REFERENCES: Mapping[str, Style] = MappingProxyType(
    {
        "best constant": Style("#5c5c63", "", DASHED),
        "TD fixed point": Style("#5c5c63", "", DASHED),
        "emphatic TD fixed point": Style("#5c5c63", "", MIXED),
        "the same, beta = .6": Style("#a0a0a8", "", MIXED),
        "best representable": Style("#5c5c63", "", DOTTED),
    }
)
"""Lines that are no method, but a height to compare methods with."""

# Five spare colours, eight markers and three dashes give 120 combinations before one repeats.
_MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*")
_DASHES = (SOLID, DASHED, DOTTED)


def styles(names: Iterable[str], colours: Mapping[str, str] | None = None) -> dict[str, Style]:
    """Return the styles of some methods, in the order of legends.

    Methods of the table come first and always look the same. Other names follow in their given
    order and get the next spare style, or the colour that is given for them.

    Example:
        >>> from gvf_lab.figure.style import styles
        >>> looks = styles(["my own", "IS", "IR"])
        >>> list(looks), looks["IR"].colour
        (['IR', 'IS', 'my own'], '#d55e00')
    """
    wanted = dict.fromkeys(names)
    looks = {name: style for name, style in {**METHODS, **ONLINE}.items() if name in wanted}
    without_look = (name for name in wanted if name not in looks and name not in REFERENCES)
    for position, (name, colour) in enumerate(colours_of(without_look).items()):
        marker, dash = _MARKERS[position % len(_MARKERS)], _DASHES[position % len(_DASHES)]
        looks[name] = Style(colour, marker, dash)
    looks |= {name: style for name, style in REFERENCES.items() if name in wanted}
    chosen = {
        name: chosen_colour
        for name, chosen_colour in (colours or {}).items()
        if chosen_colour and name in looks
    }
    return looks | {
        name: replace(looks[name], colour=chosen_colour) for name, chosen_colour in chosen.items()
    }
