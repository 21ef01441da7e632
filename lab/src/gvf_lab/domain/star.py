"""The star: Baird's counterexample, where off-policy TD diverges and gradient TD does not.

There are seven states. The action "dashed" (0) leads to one of the first six, all equally likely,
"solid" (1) to the seventh. All cumulants and values are 0, but the states share a weight in the
eight features

    x(i) = 2 e_i + e_8  (i = 1..6),    x(7) = e_7 + 2 e_8.

The target is always solid; the behaviour is mostly dashed. The star is not in the paper, but in its
authors' code; the other domains are :mod:`gvf_lab.domain.markov_chain` and the rooms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gvf import GVF
from gvf.common.arrays import Floats
from gvf.features import Dense
from gvf.policies import Always, Fixed
from gvf_lab.domain.small_pictures import BLUE, GRID, PAPER, Image, blank, disc, segment
from gvf_lab.domain.tabular import TabularDomain, TabularEnvironment
from gvf_lab.truth import Model

STATES, CENTRE = 7, 6
ACTIONS = ("dashed", "solid")
CONTINUATION = 0.99
_STARTS = np.arange(STATES)


class Star(TabularEnvironment):
    """The star as a Gymnasium environment, ``gvf/Star-v0``.

    Example:
        >>> from gvf_lab.domain.star import Star
        >>> env = Star(render_mode="ansi")
        >>> env.reset(seed=0)
        (4, {})
        >>> env.step(1)
        (6, 0.0, False, False, {})
        >>> print(env.render())
        . . . . . .
             A
    """

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(model(), _STARTS, ACTIONS, render_mode)

    def _text(self) -> str:
        marks = ["A" if state == self._state else "." for state in range(STATES)]
        return f"{' '.join(marks[:CENTRE])}\n     {marks[CENTRE]}"

    def _picture(self) -> Image:
        spacing = 60
        image = blank(4 * spacing, CENTRE * spacing)
        places = [(spacing, (state + 0.5) * spacing) for state in range(CENTRE)]
        places.append((3 * spacing, CENTRE * spacing / 2))
        for place in places[:CENTRE]:
            segment(image, place, places[CENTRE], 2, GRID)
        for state, (y, x) in enumerate(places):
            disc(image, y, x, 20, GRID)
            disc(image, y, x, 17, PAPER)
            if state == self._state:
                disc(image, y, x, 12, BLUE)
        return image


def model() -> Model:
    """Make the model: six outcomes of "dashed", one of "solid"."""
    shape = (STATES, 2, CENTRE)
    probability, following = np.zeros(shape), np.full(shape, CENTRE)
    probability[:, 0], following[:, 0] = 1 / CENTRE, np.arange(CENTRE)
    probability[:, 1, 0] = 1
    return Model(probability, following, np.zeros(shape), np.zeros(STATES, bool))


def features(states: ArrayLike) -> Floats:
    """Compute the features of a batch of states, float64[m, 8]."""
    rows = np.hstack([2 * np.eye(STATES), np.ones((STATES, 1))])
    rows[CENTRE, [CENTRE, STATES]] = 1, 2
    return rows[np.asarray(states)]


def domain(protocol: str) -> TabularDomain:
    """Make the star with its one behaviour and question; the protocols do not differ here."""
    weights = np.ones(STATES + 1)
    weights[CENTRE] = 10
    return TabularDomain(
        name="star",
        protocol=protocol,
        environment="gvf/Star-v0",
        behaviours={"mostly-dashed": Fixed([6 / 7, 1 / 7])},
        questions={"solid": GVF(Always(1, 2), "reward", CONTINUATION, "solid")},
        pairs=(("solid", "mostly-dashed"),),
        features=Dense(STATES + 1, features),
        initial_weights=weights,
        model=model(),
        starts=_STARTS,
        counted=_STARTS,
    )
