"""Simulated updates: the draws and weights that the studies use, at frozen values.

Walks come from the domain :mod:`gvf_lab.domain.markov_chain`, draws from
:mod:`gvf.window.draw_batches`, and weights from the corrections' own kernels. So a simulation here
runs the code of every study. If all batches can be enumerated,
:mod:`gvf_lab.theory.enumeration` needs no simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gvf import draw_batches as draw
from gvf.common.arrays import Floats
from gvf.corrections import Correction
from gvf.kernels import Draws
from gvf.policies import Fixed
from gvf_lab.study.base_study import seed_for
from gvf_lab.theory.chain import DOMAIN, Chain

Draw = Callable[..., Draws]
SETTLING_STEPS = 1000
"""Steps after which the chain's state hardly depends on its start."""


def updates(correction: Correction, update: Floats, draws: Draws) -> Floats:
    """Return a correction's update of each of U batches, [U, d]; 0 if the window has no mass.

    Args:
        correction: the correction that gives the weights; it must draw as `draws` does.
        update: the updates of all T transitions, [T, d].
        draws: the rows of each batch.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.window.draw_batches import draw_batches as draw
        >>> from gvf_lab.theory.simulation import updates
        >>> ratio, update = np.array([0.0, 2.0]), np.array([[5.0], [1.0]])
        >>> seed = np.random.SeedSequence(0)
        >>> draws = draw(
        ...     gvf.corrections.BCIR(), ratio, window=2, batch_size=4, updates=3, seed=seed
        ... )
        >>> updates(gvf.corrections.BCIR(), update, draws).ravel()
        array([1., 1., 1.])
    """
    rows, w = draws.batches(), draws.weights(correction)
    out = np.zeros((len(rows), update.shape[1]))
    for j in range(rows.shape[1]):
        out += w[:, j, None] * update[rows[:, j]]
    return out


def stream(chain: Chain, steps: int, *, seed: int, run: int) -> tuple[Floats, Floats]:
    """Walk SETTLING_STEPS + steps steps along the chain; return ratios [T] and updates [T, d].

    Example:
        >>> from gvf_lab.theory.chain import EASY_CHAIN
        >>> from gvf_lab.theory.simulation import stream
        >>> ratio, update = stream(EASY_CHAIN, 10, seed=0, run=0)
        >>> ratio.shape, update.shape
        ((1010,), (1010, 2))
    """
    seed_of_walk = seed_for(seed, run, "theory", "walk")
    path = DOMAIN.walk(Fixed(chain.mu), [], SETTLING_STEPS + steps, seed_of_walk)
    assert path.kind is not None  # each state and action has one outcome, which is a kind
    return chain.ratio[path.kind], chain.update[path.kind]


def sliding(
    correction: Correction,
    ratio: Floats,
    update: Floats,
    window: int,
    k: int,
    *,
    seed: int,
    run: int,
    draw: Draw = draw,
) -> Floats:
    """Return a correction's updates [steps, d] along a stream, one after every step.

    The first SETTLING_STEPS steps have no updates.

    Example:
        >>> import gvf
        >>> from gvf_lab.theory.chain import EASY_CHAIN
        >>> from gvf_lab.theory.simulation import sliding, stream
        >>> path = stream(EASY_CHAIN, 10, seed=0, run=0)
        >>> sliding(gvf.corrections.IR(), *path, window=4, k=2, seed=0, run=0).shape
        (10, 2)
    """
    draws = draw(
        correction,
        ratio,
        window=window,
        batch_size=k,
        seed=seed_for(seed, run, "theory", "draws"),
        warm_up=SETTLING_STEPS,
    )
    return updates(correction, update, draws)


def mean_and_error(values: Floats) -> tuple[Any, Any]:
    """Return the mean over the first axis, and its standard error.

    Example:
        >>> import numpy as np
        >>> from gvf_lab.theory.simulation import mean_and_error
        >>> mean_and_error(np.array([1.0, 3.0]))
        (np.float64(2.0), np.float64(1.0))
    """
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
