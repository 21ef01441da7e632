"""Simulated updates: the draws and weights that the studies use, at frozen values.

The draws are those of :mod:`gvf.study.draws`, from walks of :mod:`gvf.study.walk`; the weights come
from the corrections' own kernels. So a row about a simulation is a row about the code that every
study runs. Where everything can be enumerated, :mod:`gvf.theory.exact` needs no chance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gvf.common.arrays import Array
from gvf.correction import Correction
from gvf.policy import Fixed
from gvf.study.base import seed_for
from gvf.study.draws import Draws, draw
from gvf.theory.chain import DOMAIN, Chain

Draw = Callable[..., Draws]
SETTLE = 1000
"""Steps until the chain has forgotten where it began."""


def updates(correction: Correction, update: Array, draws: Draws) -> Array:
    """A correction's update of each of U batches, [U, d]; 0 where there was no mass.

    Args:
        correction: its weights; it draws as `draws` were made.
        update: of all T transitions, [T, d].
        draws: which of them each batch has.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.study.draws import draw
        >>> from gvf.theory.simulate import updates
        >>> ratio, update = np.array([0.0, 2.0]), np.array([[5.0], [1.0]])
        >>> seed = np.random.SeedSequence(0)
        >>> draws = draw(gvf.BCIR(), ratio, window=2, batch_size=4, updates=3, seed=seed)
        >>> updates(gvf.BCIR(), update, draws).ravel()
        array([1., 1., 1.])
    """
    rows, w = draws.batches(), draws.weights(correction)
    out = np.zeros((len(rows), update.shape[1]))
    for j in range(rows.shape[1]):
        out += w[:, j, None] * update[rows[:, j]]
    return out


def stream(chain: Chain, steps: int, *, seed: int, run: int) -> tuple[Array, Array]:
    """A walk of the chain: ratios [SETTLE + steps] and updates [SETTLE + steps, d].

    Example:
        >>> from gvf.theory.chain import EASY
        >>> from gvf.theory.simulate import stream
        >>> ratio, update = stream(EASY, 10, seed=0, run=0)
        >>> ratio.shape, update.shape
        ((1010,), (1010, 2))
    """
    seed_of_walk = seed_for(seed, run, "theory", "walk")
    path = DOMAIN.walk(Fixed(chain.mu), [], SETTLE + steps, seed_of_walk)
    assert path.kind is not None  # one outcome for each state and action: the kind of the chain
    return chain.ratio[path.kind], chain.update[path.kind]


def sliding(
    correction: Correction,
    ratio: Array,
    update: Array,
    window: int,
    k: int,
    *,
    seed: int,
    run: int,
    draw: Draw = draw,
) -> Array:
    """A correction's updates [steps, d] along a stream, one after every step.

    The first steps, until the chain has settled, come without updates.

    Example:
        >>> import gvf
        >>> from gvf.theory.chain import EASY
        >>> from gvf.theory.simulate import sliding, stream
        >>> sliding(gvf.IR(), *stream(EASY, 10, seed=0, run=0), window=4, k=2, seed=0, run=0).shape
        (10, 2)
    """
    draws = draw(
        correction,
        ratio,
        window=window,
        batch_size=k,
        seed=seed_for(seed, run, "theory", "draws"),
        warm_up=SETTLE,
    )
    return updates(correction, update, draws)
