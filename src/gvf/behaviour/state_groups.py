"""Groups of states, and the share of a target's mass that is lost in each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.estimate import Estimate, mean_by_episode

_BINS = 8
"""The number of groups into which a dimension of the states is cut."""


class StateGroup(NamedTuple):
    """Some states of a log, and what the target loses there."""

    name: str
    """The states in words: ``state 3``, ``state[2] from -0.1 to 0.2``, or ``age = 2``."""
    rows: int
    """The number of rows."""
    lost: Estimate
    """The share of the target's mass that is lost, with a 95 % interval over episodes."""
    middle: float
    """The state, or the middle of the group."""


def by_value(states: NDArray[Any], lost: Floats, episode: NDArray[Any]) -> list[StateGroup]:
    """Return a group for each state, int[m], with the lost mass of its rows [m]."""
    order = np.argsort(states, kind="stable")
    names, starts = np.unique(states[order], return_index=True)
    return [
        StateGroup(
            f"state {name}",
            len(members),
            mean_by_episode(lost[members], episode[members]),
            float(name),
        )
        for name, members in zip(names, np.split(order, starts[1:]), strict=True)
    ]


def by_quantile(name: str, x: Floats, lost: Floats, episode: NDArray[Any]) -> list[StateGroup]:
    """Return the lost mass of rows [m] in groups of equal size of a dimension, or by its value."""
    values, place = np.unique(x, return_inverse=True)
    if len(values) > _BINS:
        edges = np.unique(np.quantile(x, np.linspace(0, 1, _BINS + 1)))
        place = np.searchsorted(edges[1:-1], x, side="right")
    groups = []
    for k in np.unique(place):
        members = place == k
        low, high = x[members].min(), x[members].max()
        words = f"{name} from {low:.3g} to {high:.3g}" if low < high else f"{name} = {low:.3g}"
        share = mean_by_episode(lost[members], episode[members])
        groups.append(StateGroup(words, int(members.sum()), share, float(np.median(x[members]))))
    return groups
