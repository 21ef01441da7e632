"""The shares of a policy's visits to the states of a table: the stationary law of its walk.

After an episode the next one begins, so a walk is a Markov chain on the states that are not
terminal,

    P(s, s') = sum_a mu(a|s) [ p(s'|s, a) + p(end|s, a) start(s') ],

and the share of its steps that it spends in each state, in the long run, solves

    d(s') = sum_s d(s) P(s, s'),    sum_s d(s) = 1.

It is solved by the elimination of Grassmann, Taksar and Heyman, which has no subtractions, so each
share is right to almost all digits, however rare the state. :mod:`gvf.domain.tabular` weighs states
by these shares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Bools, Floats
from gvf.truth import Model


def reached(model: Model, starts: NDArray[np.int64], possible: Bools) -> Bools:
    """Return True for states in which transitions start if episodes begin in ``starts``, bool[S].

    Args:
        model: the table of outcomes.
        starts: the states in which episodes begin, int64[n], none of them terminal.
        possible: True if an action may be taken in a state, bool[S, A].

    Example:
        >>> from gvf.domain import get
        >>> from gvf.domain.visits import reached
        >>> import numpy as np
        >>> chain = get("markov-chain")
        >>> only_left = np.tile([True, False], (10, 1))
        >>> reached(chain.model, np.array([3]), only_left).nonzero()[0]
        array([1, 2, 3])
    """
    follows = (model.probability > 0) & possible[:, :, None]
    found, new = np.zeros(len(model.terminal), bool), np.unique(starts)
    while new.size:
        found[new] = True
        following = np.unique(model.next_state[new][follows[new]])
        new = following[~found[following] & ~model.terminal[following]]
    return found


def long_run(model: Model, starts: NDArray[np.int64], mu: Floats) -> Floats:
    """Compute the share of steps that a policy spends in each state in the long run, float64[S].

    Args:
        model: the table of outcomes.
        starts: the states in which episodes begin, int64[n], all equally likely, none terminal.
        mu: the policy as a table, float64[S, A].

    Example:
        Right from state 1 to the end, in eight steps, again and again:

        >>> from gvf.domain import get
        >>> from gvf.domain.visits import long_run
        >>> import numpy as np
        >>> chain = get("markov-chain")
        >>> long_run(chain.model, np.array([1]), np.tile([0.0, 1.0], (10, 1)))
        array([0.   , 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.   ])
    """
    visited = np.flatnonzero(reached(model, starts, mu > 0))
    share = np.zeros(len(model.terminal))
    share[visited] = stationary(_moves(model, starts, mu, visited))
    return share


def stationary(moves: Floats) -> Floats:
    """Compute the law d = d P of a chain P [n, n], float64[n]; raise ValueError if it has several.

    Example:
        >>> from gvf.domain.visits import stationary
        >>> import numpy as np
        >>> stationary(np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.25, 0.75]])).round(4)
        array([0.    , 0.3333, 0.6667])
    """
    again = np.flatnonzero(_recurrent(moves > 0))
    law = np.zeros(len(moves))
    law[again] = _stationary(moves[np.ix_(again, again)])
    return law


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


def _recurrent(edges: Bools) -> Bools:
    """Return True for the recurrent states of a chain, bool[n], or raise if it is reducible."""
    state = 0
    while True:
        ahead, behind = connected(edges, state), connected(edges.T, state)
        lost = np.flatnonzero(ahead & ~behind)  # the chain never returns from these
        if not lost.size:
            break
        state = int(lost[0])
    if not behind.all():
        raise ValueError(
            "how often states are visited in the long run depends on chance, "
            "since there are several sets of states that a walk never leaves"
        )
    return ahead


def connected(edges: Bools, state: int) -> Bools:
    """Return True for states to which edges [n, n] lead from a state, itself included, bool[n]."""
    found, new = np.zeros(len(edges), bool), np.array([state])
    while new.size:
        found[new] = True
        new = np.flatnonzero(edges[new].any(axis=0) & ~found)
    return found


def _stationary(moves: Floats) -> Floats:
    """Compute the law d = d P of an irreducible chain [n, n], float64[n]."""
    moves, law = moves.copy(), np.ones(len(moves))
    for last in range(len(moves) - 1, 0, -1):  # eliminate a state, keeping the paths through it
        moves[:last, last] /= moves[last, :last].sum()
        moves[:last, :last] += moves[:last, last, None] * moves[last, :last]
    for state in range(1, len(moves)):
        law[state] = (law[:state] * moves[:state, state]).sum()
    return law / law.sum()
