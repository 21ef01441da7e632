"""The paper: one module for each of its figures, with what to run, draw and claim."""

from gvf.common.names import known
from gvf.figure import Figure
from gvf.paper import (  # noqa: F401
    continuous_four_rooms,
    emphatic,
    four_rooms,
    markov_chain,
    markov_pairs,
    studies,
)
from gvf.racing import figure as racing

FIGURES = {
    figure.id: figure
    for module in (
        four_rooms,
        continuous_four_rooms,
        racing,
        markov_chain,
        markov_pairs,
        emphatic,
    )
    for figure in module.FIGURES
}
"""All figures, by id."""

__all__ = ["FIGURES", "get"]


def get(id: str) -> Figure:
    """Return a figure by its id.

    Example:
        >>> from gvf import paper
        >>> paper.get("four-rooms-gap").where
        'Fig. 1 centre'
    """
    return FIGURES[known(id, FIGURES, "figure", "`gvf reproduce --help` shows all")]
