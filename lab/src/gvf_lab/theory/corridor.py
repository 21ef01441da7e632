"""A corridor of S states, in which the follow-on trace is a function of the state.

Each step goes on to the next state, or turns away and ends the episode; the last state ends it in
any case. The reward is 1 for going on from the last state. Continuations and interests differ by
state. So everything is a short sum: the trace

    F(0) = i(0),    F(s) = gamma(s) rho(on) F(s - 1) + i(s),

and the fixed points of TD(0) and of emphatic TD(0), the solutions theta of

    sum_s m(s) phi(s) (sum_a pi(a) (c + gamma(s') phi(s') . theta) - phi(s) . theta) = 0,

where m is the share d_mu of visits for TD(0), and d_mu F for emphatic TD(0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf_lab.study.base_study import seed_for

MU, PI = np.array([0.5, 0.5]), np.array([0.1, 0.9])
"""The probabilities of turning away and of going on, of behaviour and target."""


@dataclass(frozen=True)
class Stream:
    """T transitions of the behaviour, episode after episode.

    Attributes:
        ratio: the ratios, [T].
        continuation: the continuations, [T].
        interest: the interests, [T].
        ended: True at the ends of episodes, bool[T].
        row: the number of each transition's kind, ``state * 2 + action``, int64[T].
    """

    ratio: Floats
    continuation: Floats
    interest: Floats
    ended: NDArray[np.bool_]
    row: NDArray[np.int64]


@dataclass(frozen=True)
class Corridor:
    """A corridor, with K = 2 S kinds of transition, ``state * 2 + action``.

    Attributes:
        ratio: rho of each kind, [K].
        cumulant: the cumulant of each kind, [K].
        continuation: the continuation of each kind, [K].
        interest: the interest in each state, [S].
        phi: the features of each state, [S, d].
        phi_next: the features of each kind's next state, [K, d]; 0 at the end.

    Example:
        >>> from gvf_lab.theory.corridor import Corridor
        >>> corridor = Corridor.of(3)
        >>> corridor.trace.round(3)
        array([1.   , 1.94 , 4.743])
    """

    ratio: Floats
    cumulant: Floats
    continuation: Floats
    interest: Floats
    phi: Floats
    phi_next: Floats

    @classmethod
    def of(cls, states: int) -> Corridor:
        """Make a corridor of this many states."""
        place = np.arange(states)
        phi = np.stack([np.ones(states), place / max(states - 1, 1)], axis=1)
        cumulant, continuation = np.zeros((2, states, 2))
        cumulant[-1, 1] = 1.0
        continuation[:-1, 1] = 0.9 - 0.1 * (place[1:] % 2)
        phi_next = np.zeros((states, 2, 2))
        phi_next[:-1, 1] = phi[1:]
        return cls(
            np.tile(PI / MU, states),
            cumulant.ravel(),
            continuation.ravel(),
            1.0 + 0.3 * (place % 3) - 0.8 * (place % 2),
            phi,
            phi_next.reshape(-1, 2),
        )

    @property
    def states(self) -> int:
        """The number of states, S."""
        return len(self.interest)

    @property
    def trace(self) -> Floats:
        """The follow-on trace F in each state, [S]."""
        trace = self.interest.copy()
        for s in range(1, self.states):
            into = 2 * (s - 1) + 1
            trace[s] += self.continuation[into] * self.ratio[into] * trace[s - 1]
        return trace

    @property
    def visits(self) -> Floats:
        """The number of visits of each state in an episode of the behaviour, [S]."""
        return MU[1] ** np.arange(self.states)

    @property
    def values(self) -> Floats:
        """The true values, [S]."""
        return self._solve(np.ones(self.states), np.eye(self.states), self._shifted())

    def fixed_point(self, emphasis: Floats) -> Floats:
        """Return the weights [d] at which the expected update is 0, for weights of states [S]."""
        return self._solve(emphasis, self.phi, self.phi_next)

    def _shifted(self) -> Floats:
        after = np.zeros((self.states, 2, self.states))
        after[:-1, 1] = np.eye(self.states)[1:]
        return after.reshape(-1, self.states)

    def _solve(self, emphasis: Floats, phi: Floats, phi_next: Floats) -> Floats:
        """Solve sum_s m(s) phi(s) E_pi[delta] = 0 for features of states and next states."""
        weight = np.outer(emphasis, PI).ravel()
        here = phi.repeat(2, axis=0)
        moved = here - self.continuation[:, None] * phi_next
        matrix, vector = (weight[:, None] * here).T @ moved, (weight * self.cumulant) @ here
        return np.asarray(np.linalg.solve(matrix, vector), np.float64)

    def updates(self, theta: Floats) -> Floats:
        """Return the TD update of each kind at weights theta, [K, d]."""
        here = self.phi.repeat(2, axis=0)
        moved = self.continuation[:, None] * self.phi_next - here
        return (self.cumulant + moved @ theta)[:, None] * here

    def stream(self, episodes: int, *, seed: int, run: int) -> Stream:
        """Walk some episodes.

        Example:
            >>> from gvf_lab.theory.corridor import Corridor
            >>> stream = Corridor.of(3).stream(100, seed=0, run=0)
            >>> int(stream.ended.sum())
            100
        """
        rng = np.random.default_rng(seed_for(seed, run, "theory", "corridor"))
        on = rng.random((episodes, self.states)) < MU[1]
        reached = np.cumprod(np.column_stack([np.ones(episodes), on[:, :-1]]), axis=1) > 0.0
        kind = (2 * np.arange(self.states) + on)[reached]
        ended = self.continuation[kind] == 0.0
        return Stream(
            self.ratio[kind], self.continuation[kind], self.interest[kind // 2], ended, kind
        )
