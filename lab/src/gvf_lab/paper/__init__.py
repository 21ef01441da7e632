"""The paper: one module for each of its figures, with what to run, draw and claim."""

from gvf.common.part_names import known
from gvf_lab.figure import Figure
from gvf_lab.paper import (
    continuous_four_rooms_figures,
    emphatic_figures,
    four_rooms_figures,
    markov_chain_figures,
    markov_pairs_figures,
)
from gvf_lab.racing import racing_figure

FIGURES = {
    figure.id: figure
    for module in (
        four_rooms_figures,
        continuous_four_rooms_figures,
        racing_figure,
        markov_chain_figures,
        markov_pairs_figures,
        emphatic_figures,
    )
    for figure in module.FIGURES
}
"""All figures, by id."""

__all__ = ["FIGURES", "get"]


def get(id: str) -> Figure:
    """Return a figure by its id.

    Example:
        >>> from gvf_lab import paper
        >>> paper.get("four-rooms-gap").where
        'Fig. 1 centre'
    """
    return FIGURES[known(id, FIGURES, "figure", "`gvf reproduce --help` shows all")]
