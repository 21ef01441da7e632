"""Weights of states: how much more often the target would visit a state than the behaviour does.

    u(s) = d_pi(s) / d_mu(s)

where d are shares of visits in the long run. :class:`gvf.corrections.StateRatioIR` draws by rho
u(s). :func:`visit_ratios` divides two tables of visits: exact ones
(:meth:`gvf_lab.domain.TabularDomain.visits`), or counts. :func:`target_visits` estimates those of
the target from a log of the behaviour.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gvf.common.arrays import Bools, Floats
from gvf.common.checks import whole
from gvf.links import in_order
from gvf.policies import Policy
from gvf.question import GVF
from gvf.transition import Transitions


def visit_ratios(target: ArrayLike, behaviour: ArrayLike) -> Floats:
    """Divide the target's shares of visits to states by those of the behaviour, float64[S].

    Args:
        target: the target's visits to each state, as counts or shares, [S].
        behaviour: the behaviour's visits, likewise.

    Returns:
        The weights of states; 0 for a state that neither visits.

    Raises:
        ValueError: if the target visits a state that the behaviour never does, or if a number is
            negative or not finite.

    Example:
        >>> import gvf
        >>> gvf.truth.visit_ratios([6, 3, 1, 0], [2, 2, 4, 0])
        array([2.4, 1.2, 0.2, 0. ])
    """
    shares = []
    for name, policy in (("target", target), ("behaviour", behaviour)):
        visits = np.asarray(policy, np.float64)
        if visits.ndim != 1 or not (np.isfinite(visits) & (visits >= 0.0)).all():
            raise ValueError(f"visits of the {name} must be numbers [S], finite and not negative")
        if not visits.any():
            raise ValueError(f"the {name} visits no state")
        shares.append(visits / visits.sum())
    pi, mu = shares
    if pi.shape != mu.shape:
        raise ValueError(f"the target has visits to {len(pi)} states, the behaviour to {len(mu)}")
    missed = (pi > 0.0) & (mu == 0.0)
    if missed.any():
        raise ValueError(
            f"the target visits state {missed.argmax()} and the behaviour never does, so no weight "
            "can make up for it"
        )
    return np.divide(pi, mu, out=np.zeros(len(pi)), where=mu > 0.0)


def target_visits(
    transitions: Transitions, question: GVF, *, states: int, behaviour: Policy | None = None
) -> Floats:
    """Estimate the shares of visits of a question's policy from a log of another, float64[S].

    The chain of the target is estimated by weighted importance sampling in each state, with the
    ratios of the log as weights. The shares are its stationary law, undiscounted. After an episode
    the next one begins, in states as the log's episodes do. A state after which nothing is known,
    since the log has no action there that the target takes, counts as an end.

    Args:
        transitions: a log in the order of its streams, whose states are integers from 0 to S - 1.
        question: the question, for its policy.
        states: the number of states, S; the time grows with its cube.
        behaviour: the policy that chose the actions, unless the log has their probabilities.

    Raises:
        ValueError: if states are not such integers, no action of the log is one of the target's, or
            the law depends on chance because there are several sets of states that a walk never
            leaves.

    Example:
        Three states in a ring; the behaviour steps on as often as it stays, and the target stays
        with probability 0.9 in state 0 only:

        >>> import gvf, numpy as np
        >>> state = np.repeat([0, 1, 2], 2)
        >>> log = gvf.Transitions(
        ...     state=state, action=[0, 1] * 3, next_state=[0, 1, 1, 2, 2, 0],
        ...     terminated=np.zeros(6, bool),
        ... )
        >>> question = gvf.GVF(gvf.policies.Table([[0.9, 0.1], [0.0, 1.0], [0.0, 1.0]]))
        >>> shares = gvf.truth.target_visits(
        ...     log, question, states=3, behaviour=gvf.policies.Uniform(2)
        ... )
        >>> shares.round(4)
        array([0.8333, 0.0833, 0.0833])
        >>> gvf.truth.visit_ratios(shares, np.bincount(state, minlength=3))
        array([2.5 , 0.25, 0.25])
    """
    states = whole("states", states, 1)
    if not len(transitions):
        raise ValueError("the log is empty")
    ended = np.zeros(len(transitions), bool)
    if "terminated" in transitions:
        ended = np.asarray(transitions["terminated"]).astype(bool)
    at = _checked("state", transitions["state"], states)
    # No state follows an end, whatever the column says.
    after = _checked("next_state", np.where(ended, at, transitions["next_state"]), states)
    ratio = question.ratios(transitions, behaviour=behaviour)
    known = np.bincount(at, ratio, states) > 0.0
    if not known.any():
        raise ValueError("no transition of the log has an action that the target takes")
    begin = at[_begins(transitions)]
    starts = np.bincount(begin[known[begin]], minlength=states).astype(np.float64)
    if not starts.any():
        raise ValueError("in no state where an episode begins has the log an action of the target")
    moves = np.zeros((states, states))
    ends = ended | ~known[after]
    np.add.at(moves, (at[~ends], after[~ends]), ratio[~ends])
    moves += np.bincount(at[ends], ratio[ends], states)[:, None] * (starts / starts.sum())
    moves[known] /= moves[known].sum(axis=1, keepdims=True)
    is_connected = np.any(
        [connected(moves > 0, s) for s in np.flatnonzero(starts).tolist()], axis=0
    )
    visited = np.flatnonzero(is_connected)
    shares = np.zeros(states)
    shares[visited] = stationary(moves[np.ix_(visited, visited)])
    return shares


def _checked(name: str, column: NDArray[Any], states: int) -> NDArray[np.int64]:
    """Return a column of states, int64[m], or raise ValueError if one is no number of a state."""
    numbers = column.dtype.kind in "biu" and column.ndim == 1
    if not numbers or not ((column >= 0) & (column < states)).all():
        raise ValueError(
            f"column {name!r} must have integers from 0 to {states - 1}, one for each transition"
        )
    return column.astype(np.int64)


def _begins(transitions: Transitions) -> Bools:
    """Return True for the transitions with which an episode begins, bool[m]."""
    names = [n for n in ("stream", "episode", "terminated", "truncated") if n in transitions]
    ends = Transitions(**{n: transitions[n] for n in names}, row=np.arange(len(transitions)))
    ordered, last = in_order(ends)
    begins = np.zeros(len(transitions), bool)
    begins[ordered["row"]] = np.roll(last, 1)
    return begins


def stationary(moves: Floats) -> Floats:
    """Compute the law d = d P of a chain P [n, n], float64[n]; raise ValueError if it has several.

    It is solved by the elimination of Grassmann, Taksar and Heyman, which has no subtractions, so
    each share is right to almost all digits, however rare the state.

    Example:
        >>> from gvf.truth.target_visits import stationary
        >>> import numpy as np
        >>> stationary(np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.25, 0.75]])).round(4)
        array([0.    , 0.3333, 0.6667])
    """
    again = np.flatnonzero(_recurrent(moves > 0))
    law = np.zeros(len(moves))
    law[again] = _stationary(moves[np.ix_(again, again)])
    return law


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
    reached, new = np.zeros(len(edges), bool), np.array([state])
    while new.size:
        reached[new] = True
        new = np.flatnonzero(edges[new].any(axis=0) & ~reached)
    return reached


def _stationary(moves: Floats) -> Floats:
    """Compute the law d = d P of an irreducible chain [n, n], float64[n]."""
    moves, law = moves.copy(), np.ones(len(moves))
    for last in range(len(moves) - 1, 0, -1):  # eliminate a state, keeping the paths through it
        moves[:last, last] /= moves[last, :last].sum()
        moves[:last, :last] += moves[:last, last, None] * moves[last, :last]
    for state in range(1, len(moves)):
        law[state] = (law[:state] * moves[:state, state]).sum()
    return law / law.sum()
