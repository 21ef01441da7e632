"""The table of colours of the methods, which every picture uses.

The hues are those of Okabe and Ito, which colour-blind people can distinguish. Methods of a family
share a hue: resampling is vermilion, plain reweighting blue, weighted reweighting green, clipping
purple, Sarsa amber. Emphatic methods have hues next to those of their plain forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle
from types import MappingProxyType

METHOD_COLOURS: Mapping[str, str] = MappingProxyType(
    {
        "IR": "#d55e00",
        "BC-IR": "#8f2d00",
        "IR+WIS-TD(0)": "#a83200",
        "WIS-TD(0)": "#56b4e9",
        "IS": "#0072b2",
        "NormIS": "#003f66",
        "WIS-Minibatch": "#009e73",
        "WIS-Buffer": "#7fd8c0",
        "WIS-Optimal": "#00543d",
        "V-trace(1.0)": "#cc79a7",
        "V-trace(0.5 max)": "#9c4a80",
        "V-trace(0.9 max)": "#6b2460",
        "Sarsa": "#e69f00",
        "Expected Sarsa": "#c9b458",
        "On-policy": "#222222",
        "Emphatic IR": "#f00b53",
        "Emphatic BC-IR": "#7f0f59",
        "Emphatic WIS-Minibatch": "#90d83c",
        "Emphatic IS": "#2229b5",
    }
)
"""The colours of the paper's methods and of the emphatic ones, in the order of legends."""

ONLINE_COLOURS: Mapping[str, str] = MappingProxyType(
    {
        "TD(lambda)": "#222222",
        "GTD(lambda)": "#0072b2",
        "GTD2(lambda)": "#56b4e9",
        "HTD(lambda)": "#4053d3",
        "Proximal GTD2(lambda)": "#009e73",
        "TDRC(lambda)": "#7fd8c0",
        "Emphatic TD(lambda)": "#e69f00",
        "Emphatic TD(lambda, beta)": "#8a5a00",
        "Tree Backup(lambda)": "#cc79a7",
        "V-trace(lambda)": "#9c4a80",
        "ABTD(zeta)": "#6b2460",
    }
)
"""The colours of online algorithms: gradients are blue and green, clipped traces purple."""

SPARE_COLOURS = ("#332288", "#999933", "#882255", "#117733", "#5b5b5b")
"""Colours for other methods, and for curves that show no method."""


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Assign methods of the table their colours, and other names the spare colours in turn.

    Example:
        >>> from gvf.common.colours import colours_of
        >>> colours_of(["mine", "IR", "yours"])
        {'mine': '#332288', 'IR': '#d55e00', 'yours': '#999933'}
    """
    spare = cycle(SPARE_COLOURS)
    return {name: METHOD_COLOURS.get(name) or next(spare) for name in dict.fromkeys(names)}
