"""The Markov chain of the paper, which is small enough to enumerate all windows.

Values are frozen and linear in the position: ``v(s) = theta . phi(s)``, ``phi(s) = (1, s / 9)``.
The update of a transition is TD's, ``Delta = (c + gamma v(s') - v(s)) phi(s)``. A transition's
*kind* is its state and action. Three things are computed exactly: the stationary distribution d_mu
of the states (after an end comes a new start), the probability of every window of n consecutive
transitions, and the covariances of ``y_t = rho_t Delta_t`` along a stream.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf_lab.domain import markov_chain

DOMAIN = markov_chain.domain("paper")
THETA = (2.0, -2.0)
"""Frozen weights. They are far from the truth, so that updates are large and differ by state."""


@dataclass(frozen=True, repr=False)
class Chain:
    """The chain under a behaviour, with a question about a target.

    Attributes:
        mu: the behaviour's probabilities of (left, right).
        state: the stationary probability of each of S states, [S].
        kind: the probability of each of K = S * actions kinds, row ``state * 2 + action``, [K].
        ratio: rho of each kind, [K].
        update: Delta of each kind, [K, d].
        follow: the probability of each state after a kind, [K, S].

    Example:
        >>> from gvf_lab.theory.chain import Chain
        >>> chain = Chain.of((0.5, 0.5), (0.1, 0.9))
        >>> chain.expected_update.round(3)
        array([-0.212, -0.068])
        >>> kinds, probability = chain.windows(3)
        >>> kinds.shape, round(float(probability.sum()), 12)
        ((204, 3), 1.0)
    """

    mu: tuple[float, float]
    state: Floats
    kind: Floats
    ratio: Floats
    update: Floats
    follow: Floats

    @classmethod
    def of(cls, mu: tuple[float, float], pi: tuple[float, float]) -> Chain:
        """Make the chain under a behaviour mu, with the ratios of pi to mu."""
        model, starts = DOMAIN.model, DOMAIN.starts
        following = model.next_state[:, :, 0]
        states, actions = following.shape
        follow = np.zeros((states, actions, states))
        ends = model.terminal[following]
        follow[*np.nonzero(~ends), following[~ends]] = 1.0
        follow[*np.nonzero(ends)] = np.isin(np.arange(states), starts) / len(starts)
        step = np.einsum("a,sat->st", mu, follow)
        # Solve d = d P with sum(d) = 1. No transition leads to an end, so the ends get 0.
        equations = np.vstack([step.T - np.eye(states), np.ones(states)])
        state = np.linalg.lstsq(equations, np.eye(states + 1)[-1], rcond=None)[0]
        state = np.where(model.terminal, 0.0, state)
        cumulant, continuation = (signal[:, :, 0] for signal in DOMAIN.signals("easy"))
        phi = np.stack([np.ones(states), np.arange(states) / (states - 1)], axis=1)
        value = phi @ np.array(THETA)
        error = cumulant + continuation * value[following] - value[:, None]
        return cls(
            mu,
            state,
            np.outer(state, mu).ravel(),
            np.tile(np.divide(pi, mu), states),
            (error[:, :, None] * phi[:, None, :]).reshape(states * actions, -1),
            follow.reshape(states * actions, states),
        )

    @property
    def target(self) -> Floats:
        """The probability of each kind under d_mu pi P, [K]."""
        return self.kind * self.ratio

    @property
    def expected_update(self) -> Floats:
        """The update E_pi[Delta] that all corrections aim at, [d]."""
        return self.target @ self.update

    def windows(self, n: int) -> tuple[NDArray[np.int64], Floats]:
        """Return all windows of n consecutive transitions: kinds int64[W, n], probabilities [W]."""
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

    def covariances(self, lags: int) -> Floats:
        """Return Cov(y_0, y_h) of y = rho Delta, summed over components, for h = 0 ... lags - 1."""
        y = self.ratio[:, None] * self.update - self.expected_update
        actions = len(self.mu)
        chance = np.tile(self.mu, len(self.state))
        # From lag 1 on only the state matters: E[y_h | S_1] = P^(h - 1) times the states' mean y.
        later = (chance[:, None] * y).reshape(-1, actions, y.shape[1]).sum(axis=1)
        step = (chance[:, None] * self.follow).reshape(-1, actions, len(self.state)).sum(axis=1)
        out = np.empty(lags)
        out[0] = self.kind @ (y**2).sum(axis=1)
        for h in range(1, lags):
            out[h] = self.kind @ (y * (self.follow @ later)).sum(axis=1)
            later = step @ later
        return out


EASY_CHAIN = Chain.of((0.5, 0.5), (0.1, 0.9))
"""The chain with the paper's easy pair of policies: ratios 0.2 and 1.8."""
HARD_CHAIN = Chain.of((0.9, 0.1), (0.1, 0.9))
"""The chain with the hard pair: ratios 1/9 and 9."""
DETERMINISTIC_CHAIN = Chain.of((0.5, 0.5), (0.0, 1.0))
"""The chain with a deterministic target: ratios 0 and 2, so that windows may have no mass."""
