"""Companions: pictures that go with a figure, drawn from the same results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gvf_lab.figure.figure import Axes
from gvf_lab.figure.picture import draw
from gvf_lab.figure.points import learning_curves
from gvf_lab.study.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Companion:
    """A picture that goes with a figure.

    Attributes:
        name: the name of its file, without the extension.
        caption: a sentence that describes it.
        draw: the function that draws it from results, or returns None if something is missing.
        read: the function from results to the rows of a CSV file of the same name: named tuples,
            for example points; None if it has no such file.
    """

    name: str
    caption: str
    draw: Callable[[Results], Figure | None]
    read: Callable[[Results], Sequence[Any]] | None = None


def _learning_curves(results: Results) -> Figure:
    return draw(learning_curves(results), Axes(results.study.curve_unit, results.study.quantity))


LEARNING_CURVES = Companion(
    "learning-curves",
    "Error while learning, at each method's best learning rate. Bands: one standard error.",
    _learning_curves,
)
