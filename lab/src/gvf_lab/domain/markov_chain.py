"""The Markov chain: eight states in a row between two ends (the paper's Figure 4 and appendix).

        0 -- 1 -- 2 -- ... -- 8 -- 9       actions: 0 left, 1 right; 0 and 9 end the episode

The cumulant is 1 on entering the right end, else 0; the continuation is 0 at an end, else .9.
Episodes begin in any of the eight states. There are three pairs of behaviour and target, with
largest ratios of 1.8 (easy), 9 (hard) and 99 (hardest). The chain is the smallest of the domains;
the next is :mod:`gvf_lab.domain.four_rooms`.
"""

from __future__ import annotations

import numpy as np

from gvf import GVF
from gvf.features import OneHot
from gvf.policies import Fixed
from gvf_lab.domain.small_pictures import BLUE, GREEN, GRID, INK, PAPER, Image, blank, disc, segment
from gvf_lab.domain.tabular import TabularDomain, TabularEnvironment
from gvf_lab.truth import Model

STATES = 10
ACTIONS = ("left", "right")
CONTINUATION = 0.9
PAIRS = {
    "easy": ((0.5, 0.5), (0.1, 0.9)),
    "hard": ((0.9, 0.1), (0.1, 0.9)),
    "hardest": ((0.99, 0.01), (0.01, 0.99)),
}
"""The pairs (mu, pi), each as probabilities (left, right)."""
_STARTS = np.arange(1, STATES - 1)


class MarkovChain(TabularEnvironment):
    """The chain as a Gymnasium environment, ``gvf/MarkovChain-v0``.

    Example:
        >>> from gvf_lab.domain.markov_chain import MarkovChain
        >>> env = MarkovChain(render_mode="ansi")
        >>> env.reset(seed=1)
        (5, {})
        >>> env.step(1)
        (6, 0.0, False, False, {})
        >>> print(env.render())
        [.] . . . . . A . . [.]
    """

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(model(), _STARTS, ACTIONS, render_mode)

    def _text(self) -> str:
        marks = ["A" if state == self._state else "." for state in range(STATES)]
        return " ".join([f"[{marks[0]}]", *marks[1:-1], f"[{marks[-1]}]"])

    def _picture(self) -> Image:
        spacing = 48
        image = blank(2 * spacing, STATES * spacing)
        places = [(spacing, (state + 0.5) * spacing) for state in range(STATES)]
        segment(image, places[0], places[-1], 2, GRID)
        for state, (y, x) in enumerate(places):
            disc(image, y, x, 17, INK if state in (0, STATES - 1) else GRID)
            disc(image, y, x, 14, PAPER)
            if state == self._state:
                disc(image, y, x, 10, GREEN if self._reward else BLUE)
        return image


def model() -> Model:
    """Make the model: one outcome for each state and action; the ends are absorbing."""
    state = np.arange(STATES)
    terminal = (state == 0) | (state == STATES - 1)
    moved = np.stack([state - 1, state + 1], axis=1)
    following = np.where(terminal[:, None], state[:, None], moved)[:, :, None]
    entered = (following == STATES - 1) & ~terminal[:, None, None]
    return Model(np.ones(following.shape), following, entered.astype(np.float64), terminal)


def domain(protocol: str) -> TabularDomain:
    """Make the chain with its three pairs; the protocols do not differ here."""
    questions = {
        name: GVF(Fixed(pi), "reward", CONTINUATION, name) for name, (_, pi) in PAIRS.items()
    }
    return TabularDomain(
        name="markov-chain",
        protocol=protocol,
        environment="gvf/MarkovChain-v0",
        behaviours={name: Fixed(mu) for name, (mu, _) in PAIRS.items()},
        questions=questions,
        pairs=tuple((name, name) for name in PAIRS),
        features=OneHot(STATES),
        model=model(),
        starts=_STARTS,
        counted=np.arange(STATES),
    )
