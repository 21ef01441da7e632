"""The paper: one module for the figures of each of its worlds, with what to run, draw and claim."""

from gvf.common.part_names import known
from gvf_lab.catalogue import Figures
from gvf_lab.figure.figure import Figure

FIGURES = Figures("paper")
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
