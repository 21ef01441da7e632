"""The edge of a grid: a best step size beyond which none was tried."""

from collections.abc import Iterable


def edge_text(best: float | None, sizes: Iterable[float]) -> str:
    """Tell that the best step size is the last of its grid; empty if it is not.

    Nothing is smaller than 0, so a best step size of 0 is no edge.

    Example:
        >>> from gvf.common.grid_edge import edge_text
        >>> edge_text(0.3, [0.1, 0.3, 0.03])
        '0.3 is the largest of the step sizes: a larger one may be better'
        >>> edge_text(0.1, [0.1, 0.3, 0.03])
        ''
    """
    ordered = sorted({*sizes})
    if len(ordered) < 2 or not best or best not in (ordered[0], ordered[-1]):
        return ""
    most, other = ("smallest", "smaller") if best == ordered[0] else ("largest", "larger")
    return f"{best:g} is the {most} of the step sizes: a {other} one may be better"
