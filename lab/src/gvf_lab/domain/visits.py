"""The shares of a policy's visits to the states of a table: the stationary law of its walk.

After an episode the next one begins, so a walk is a Markov chain on the states that are not
terminal,

    P(s, s') = sum_a mu(a|s) [ p(s'|s, a) + p(end|s, a) start(s') ],

and the share of its steps that it spends in each state, in the long run, solves

    d(s') = sum_s d(s) P(s, s'),    sum_s d(s) = 1.

It is solved by :func:`gvf.truth.target_visits.stationary`. :mod:`gvf_lab.domain.tabular` weighs
states by these shares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Bools, Floats
from gvf.kernels import stationary
from gvf_lab.truth import Model


def reached(model: Model, starts: NDArray[np.int64], possible: Bools) -> Bools:
    """Return True for states in which transitions start if episodes begin in ``starts``, bool[S].

    Args:
        model: the table of outcomes.
        starts: the states in which episodes begin, int64[n], none of them terminal.
        possible: True if an action may be taken in a state, bool[S, A].

    Example:
        >>> from gvf_lab.domain import get
        >>> from gvf_lab.domain.visits import reached
        >>> import numpy as np
        >>> chain = get("markov-chain")
        >>> only_left = np.tile([True, False], (10, 1))
        >>> reached(chain.model, np.array([3]), only_left).nonzero()[0]
        array([1, 2, 3])
    """
    follows = (model.probability > 0) & possible[:, :, None]
    reached_states, new = np.zeros(len(model.terminal), bool), np.unique(starts)
    while new.size:
        reached_states[new] = True
        following = np.unique(model.next_state[new][follows[new]])
        new = following[~reached_states[following] & ~model.terminal[following]]
    return reached_states


def long_run(model: Model, starts: NDArray[np.int64], mu: Floats) -> Floats:
    """Compute the share of steps that a policy spends in each state in the long run, float64[S].

    Args:
        model: the table of outcomes.
        starts: the states in which episodes begin, int64[n], all equally likely, none terminal.
        mu: the policy as a table, float64[S, A].

    Example:
        Right from state 1 to the end, in eight steps, again and again:

        >>> from gvf_lab.domain import get
        >>> from gvf_lab.domain.visits import long_run
        >>> import numpy as np
        >>> chain = get("markov-chain")
        >>> long_run(chain.model, np.array([1]), np.tile([0.0, 1.0], (10, 1)))
        array([0.   , 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.   ])
    """
    visited = np.flatnonzero(reached(model, starts, mu > 0))
    share = np.zeros(len(model.terminal))
    share[visited] = stationary(_moves(model, starts, mu, visited))
    return share


def _moves(
    model: Model, starts: NDArray[np.int64], mu: Floats, visited: NDArray[np.intp]
) -> Floats:
    """Compute the chain P among n visited states, float64[n, n]."""
    place = np.zeros(len(model.terminal), np.int64)
    place[visited] = np.arange(len(visited))
    chance = (mu[:, :, None] * model.probability)[visited]
    following = model.next_state[visited]
    ends = model.terminal[following]
    moves = np.zeros((len(visited), len(visited)))
    row = np.broadcast_to(np.arange(len(visited))[:, None, None], chance.shape)
    goes_on = ~ends & (chance > 0)
    np.add.at(moves, (row[goes_on], place[following[goes_on]]), chance[goes_on])
    begin = np.bincount(place[starts], minlength=len(visited)) / len(starts)
    return moves + np.where(ends, chance, 0.0).sum(axis=(1, 2))[:, None] * begin
