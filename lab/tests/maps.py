"""The map of the rooms, read the obvious way."""

import math

from grid_world import MAP

from gvf_lab.domain import TabularDomain, get


def tabular(name: str) -> TabularDomain:
    domain = get(name)
    assert isinstance(domain, TabularDomain)
    return domain


def is_wall(y: float, x: float) -> bool:
    """Whether a point is in a wall or outside the map, the dumb way."""
    row, column = math.floor(y), math.floor(x)
    inside = 0 <= row < 11 and 0 <= column < 11
    return not inside or MAP[row][column] == "#"
