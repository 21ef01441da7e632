"""Grids of step sizes and gaps of the paper's studies, and how a study gets its settings.

A study by name is a function of the protocol. The protocol "paper" follows the paper's text, with
correct true values; "authors" has the settings that reproduce its authors' curves. A step size
multiplies the weighted sum over the batch, whose weights contain the 1/k.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gvf_lab.study.base_study import NamedStudy
from gvf_lab.study.study import Study

VTRACE = ("V-trace(1.0)", "V-trace(0.5 max)", "V-trace(0.9 max)")
REWEIGHTING = ("IS", "WIS-Minibatch", "WIS-Buffer", "WIS-Optimal")
GAPS = (*range(1, 9), 16, 24, 32, 48, 64, 80, 96, 114, 128, 160, 192, 224, 256)
"""Steps between updates."""
Settings = Callable[[str], dict[str, Any]]
"""The settings that studies of a world share, under a protocol."""


def steps(first: float, step: float, last: float) -> tuple[float, ...]:
    """Return first, first + step, ..., last, rounded to six decimals."""
    return tuple(round(first + i * step, 6) for i in range(round((last - first) / step) + 1))


def doublings(first: int, each: int, last: int) -> tuple[float, ...]:
    """Return 2^first to 2^last in equal factors, `each` to a doubling, with four digits."""
    # Rounding removes differences in the last bit of `pow` between platforms.
    powers = (2.0 ** (i / each) for i in range(first * each, last * each + 1))
    return tuple(float(f"{power:.4g}") for power in powers)


def study_from(name: str, shows: str, settings: Settings, **more: Any) -> NamedStudy:
    """Return a study by name, with the settings of its world and those of its own."""

    def make(protocol: str) -> Study:
        return Study(**{"name": name, "protocol": protocol, **settings(protocol), **more})

    return NamedStudy(name, shows, make)
