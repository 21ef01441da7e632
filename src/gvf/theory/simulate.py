"""Simulated updates: the draws and weights that the studies use, at frozen values.

The draws are those of :mod:`gvf.study.draws`, from walks of :mod:`gvf.study.walk`; the weights come
from the corrections' own weighers. So a row about a simulation is a row about the code that every
study runs. Where everything can be enumerated, :mod:`gvf.theory.exact` needs no chance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gvf.correction import Correction
from gvf.study.draws import Draws, draw
from gvf.study.walk import seed_for, walk
from gvf.theory.chain import DOMAIN, Chain
from gvf.theory.exact import weigh
from gvf.theory.row import Array

Draw = Callable[..., Draws]
SETTLE = 1000
"""Steps until the chain has forgotten where it began."""


def updates(correction: Correction, ratio: Array, update: Array, draws: Draws) -> Array:
    """A correction's update of each of U batches, [U, d]; 0 where there was no mass.

    Args:
        correction: its draws and weights.
        ratio: of all T transitions, [T].
        update: of all transitions, [T, d].
        draws: which of them each batch has.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.study.draws import draw
        >>> from gvf.theory.simulate import updates
        >>> ratio, update = np.array([0.0, 2.0]), np.array([[5.0], [1.0]])
        >>> seed = np.random.SeedSequence(0)
        >>> draws = draw(ratio, window=2, batch_size=4, updates=3, seed=seed)
        >>> updates(gvf.BCIR(), ratio, update, draws).ravel()
        array([1., 1., 1.])
    """
    rows = draws.uniform
    if correction.draw == "ratio":
        rows = draws.by_ratio
    elif correction.draw == "window":
        rows = draws.first[:, None] + np.arange(draws.last[0] - draws.first[0])
    w = weigh(correction, ratio, rows, draws.mean)
    w[rows[:, 0] < 0] = 0.0
    out = np.zeros((len(rows), update.shape[1]))
    for j in range(rows.shape[1]):
        out += w[:, j, None] * update[rows[:, j]]
    return out


def stream(
    chain: Chain, steps: int, window: int, k: int, *, seed: int, run: int, draw: Draw = draw
) -> tuple[Array, Array, Draws]:
    """A walk of the chain with an update after every step: ratios [T], updates [T, d], draws.

    The first steps, until the chain has settled, come without updates.

    Example:
        >>> from gvf.theory.chain import EASY
        >>> from gvf.theory.simulate import stream
        >>> ratio, update, draws = stream(EASY, 10, window=4, k=2, seed=0, run=0)
        >>> draws.by_ratio.shape, draws.last[:3] - draws.first[:3]
        ((10, 2), array([4, 4, 4]))
    """
    mu = np.tile(chain.mu, (len(chain.state), 1))
    path = walk(DOMAIN, "easy", mu, SETTLE + steps, seed_for(seed, run, "theory", "walk"))
    kind = path.cell[:, 0] * len(chain.mu) + path.action
    ratio = chain.ratio[kind]
    draws = draw(
        ratio,
        window=window,
        batch_size=k,
        seed=seed_for(seed, run, "theory", "draws"),
        warm_up=SETTLE,
    )
    return ratio, chain.update[kind], draws
