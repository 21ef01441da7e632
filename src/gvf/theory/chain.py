"""The Markov chain of the paper, small enough to enumerate all that can happen in a window.

Values are frozen, linear in the position: ``v(s) = theta . phi(s)``, ``phi(s) = (1, s / 9)``, and
the update of a transition is TD's, ``Delta = (c + gamma v(s') - v(s)) phi(s)``. A transition's
*kind* is its state and action. What is known exactly: the stationary distribution d_mu of the
states (an end is followed by a new start), the probability of every window of n transitions in a
row, and how the numbers ``y_t = rho_t Delta_t`` of a stream vary together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gvf.common.arrays import Array
from gvf.domain import markov_chain

DOMAIN = markov_chain.domain("paper")
THETA = (2.0, -2.0)
"""Far from the truth, so that updates are large, and differ from state to state."""


@dataclass(frozen=True, repr=False)
class Chain:
    """The chain under a behaviour, and a question about a target.

    Attributes:
        mu: (left, right).
        pi: (left, right).
        state: probability of each of S states, stationary, [S].
        kind: probability of each of K = S * actions kinds, row ``state * 2 + action``, [K].
        ratio: rho of each kind, [K].
        update: Delta of each kind, [K, d].
        follow: probability of each state after a kind, [K, S].

    Example:
        >>> from gvf.theory.chain import Chain
        >>> chain = Chain.of((0.5, 0.5), (0.1, 0.9))
        >>> chain.expected_update.round(3)
        array([-0.212, -0.068])
        >>> kinds, probability = chain.windows(3)
        >>> kinds.shape, round(float(probability.sum()), 12)
        ((204, 3), 1.0)
    """

    mu: tuple[float, float]
    pi: tuple[float, float]
    state: Array
    kind: Array
    ratio: Array
    update: Array
    follow: Array

    @classmethod
    def of(cls, mu: tuple[float, float], pi: tuple[float, float]) -> Chain:
        """The chain under a behaviour mu, with ratios to pi."""
        model, starts = DOMAIN.model, DOMAIN.starts
        following = model.next_state[:, :, 0]
        states, actions = following.shape
        follow = np.zeros((states, actions, states))
        ends = model.terminal[following]
        follow[*np.nonzero(~ends), following[~ends]] = 1.0
        follow[*np.nonzero(ends)] = np.isin(np.arange(states), starts) / len(starts)
        step = np.einsum("a,sat->st", mu, follow)
        # d = d P, and sums to 1; nothing leads to the ends, which get 0.
        equations = np.vstack([step.T - np.eye(states), np.ones(states)])
        state = np.linalg.lstsq(equations, np.eye(states + 1)[-1], rcond=None)[0]
        state = np.where(model.terminal, 0.0, state)
        cumulant, continuation = (signal[:, :, 0] for signal in DOMAIN.signals("easy"))
        phi = np.stack([np.ones(states), np.arange(states) / (states - 1)], axis=1)
        value = phi @ np.array(THETA)
        error = cumulant + continuation * value[following] - value[:, None]
        return cls(
            mu,
            pi,
            state,
            np.outer(state, mu).ravel(),
            np.tile(np.divide(pi, mu), states),
            (error[:, :, None] * phi[:, None, :]).reshape(states * actions, -1),
            follow.reshape(states * actions, states),
        )

    @property
    def target(self) -> Array:
        """Probability of each kind under d_mu pi P, [K]."""
        return self.kind * self.ratio

    @property
    def expected_update(self) -> Array:
        """E_pi[Delta], [d]: what all corrections are after."""
        return self.target @ self.update

    def windows(self, n: int) -> tuple[Array, Array]:
        """All windows of n transitions in a row, kinds int64[W, n], and their probabilities [W]."""
        state = np.flatnonzero(self.state)
        probability, kinds = self.state[state], np.empty((len(state), 0), np.int64)
        for age in range(n):
            if age:
                row, state = np.nonzero(self.follow[kinds[:, -1]])
                probability = probability[row] * self.follow[kinds[row, -1], state]
                kinds = kinds[row]
            action = np.flatnonzero(self.mu)
            last = (2 * state[:, None] + action).ravel()
            kinds = np.column_stack([np.repeat(kinds, len(action), axis=0), last])
            probability = np.outer(probability, np.array(self.mu)[action]).ravel()
        return kinds, probability

    def covariances(self, lags: int) -> Array:
        """Cov(y_0, y_h) of y = rho Delta, summed over components, for h = 0 ... lags - 1."""
        y = self.ratio[:, None] * self.update - self.expected_update
        actions = len(self.mu)
        chance = np.tile(self.mu, len(self.state))
        # After lag 1 only the state matters: E[y_h | S_1] = P^(h - 1) times the state's mean y.
        later = (chance[:, None] * y).reshape(-1, actions, y.shape[1]).sum(axis=1)
        step = (chance[:, None] * self.follow).reshape(-1, actions, len(self.state)).sum(axis=1)
        out = np.empty(lags)
        out[0] = self.kind @ (y**2).sum(axis=1)
        for h in range(1, lags):
            out[h] = self.kind @ (y * (self.follow @ later)).sum(axis=1)
            later = step @ later
        return out


EASY = Chain.of((0.5, 0.5), (0.1, 0.9))
"""The paper's easy pair: ratios 0.2 and 1.8."""
HARD = Chain.of((0.9, 0.1), (0.1, 0.9))
"""The hard pair: ratios 1/9 and 9."""
ONLY_RIGHT = Chain.of((0.5, 0.5), (0.0, 1.0))
"""A deterministic target: ratios 0 and 2, so that windows may have no mass."""
