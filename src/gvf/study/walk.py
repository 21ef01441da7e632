"""Walks: what a behaviour does in a domain, as columns that learning loops read.

A run's stream is made once and kept whole, so that all methods learn from the same one: row t is
the t-th transition, and the window at time t is the rows before it. Each random purpose has a seed
of its own, made from the study's seed, the run, and what it is for; nothing else that is running
changes it.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numba import njit

from gvf import xoshiro
from gvf.domain import body
from gvf.domain.continuous_four_rooms import ContinuousDomain
from gvf.domain.domain import Domain
from gvf.domain.tabular import TabularDomain, draw_outcome, draw_start, first_above, outcome_sums
from gvf.learner.linear import Array, Experience
from gvf.policy.base import thresholds


def seed_for(seed: int, run: int, *purpose: object) -> np.random.SeedSequence:
    """The seed of one purpose in one run."""
    key = zlib.crc32("/".join(map(str, purpose)).encode())
    return np.random.SeedSequence(seed, spawn_key=(run, key))


@dataclass(frozen=True)
class Walk:
    """A stream of T transitions.

    Attributes:
        x: features of the states, int32[T, a] or float64[T, size].
        x_next: features of the next states.
        cell: int64[T], the cell each transition starts in (the state, in a table); with one more
            column for where it leads: int64[T, 2].
        action: int64[T].
        cumulant: float64[T].
        continuation: float64[T].
        kind: int64[T], equal where transitions are alike; None where they hardly ever are.
    """

    x: Array
    x_next: Array
    cell: Array
    action: Array
    cumulant: Array
    continuation: Array
    kind: Array | None

    def experience(self, share: Array, share_next: Array) -> Experience:
        """The columns that updates read, with the shares of the blocks of weights."""
        return Experience(self.x, share, self.x_next, share_next, self.cumulant, self.continuation)


@njit(cache=True, nogil=True)
def walk_table(mu, outcomes, next_state, terminal, starts, stream, state, action, outcome):
    """Fill state, action and outcome [T] with a walk through a table of what follows what."""
    actions = mu.shape[1]
    s = draw_start(starts, xoshiro.uniform(stream))
    for t in range(state.size):
        a = first_above(mu, s, xoshiro.uniform(stream))
        row = draw_outcome(outcomes, actions, s, a, xoshiro.uniform(stream))
        state[t], action[t], outcome[t] = s, a, row
        s = next_state[row]
        if terminal[s]:
            s = draw_start(starts, xoshiro.uniform(stream))


@njit(cache=True, nogil=True)
def walk_body(mu, solid, noise, ahead, resting, stream, position, kept, cell, action, collision):
    """Fill positions [T + 1, 2], cells [T + 1], actions and collisions [T] of a body's walk.

    Where a step begins is kept [T, 2] `ahead` by a share of the step, if that is not 0.
    """
    u_cell, u_y, u_x = xoshiro.uniform(stream), xoshiro.uniform(stream), xoshiro.uniform(stream)
    y, x = body.start_body(u_cell, u_y, u_x, resting)
    for t in range(action.size):
        position[t, 0], position[t, 1] = y, x
        cell[t] = body.cell_of(y, x)
        a = first_above(mu, cell[t], xoshiro.uniform(stream))
        u1, u2, u3 = xoshiro.uniform(stream), xoshiro.uniform(stream), xoshiro.uniform(stream)
        if ahead > 0.0:
            dy, dx = body.displacement(a, u1, u2, u3, noise)
            kept[t, 0], kept[t, 1] = y + ahead * dy, x + ahead * dx
        y, x, collided = body.move_body(y, x, a, u1, u2, u3, solid, noise)
        action[t], collision[t] = a, collided
    position[action.size, 0], position[action.size, 1] = y, x
    cell[action.size] = body.cell_of(y, x)


def walk(
    domain: Domain, question: str, mu: Array, steps: int, seed: np.random.SeedSequence
) -> Walk:
    """A walk of a behaviour, given as a table [cells, actions], with a question's signals."""
    stream = xoshiro.streams(1, seed)[0]
    action = np.empty(steps, np.int64)
    if isinstance(domain, TabularDomain):
        state, outcome = np.empty(steps, np.int64), np.empty(steps, np.int64)
        following = np.ascontiguousarray(domain.model.next_state).ravel()
        terminal, starts = domain.model.terminal, domain.starts
        sums = outcome_sums(domain.model)
        walk_table(
            thresholds(mu), sums, following, terminal, starts, stream, state, action, outcome
        )
        cumulant, continuation = domain.signals(question)
        after = following[outcome]
        return Walk(
            domain.features(state),
            domain.features(after),
            np.stack([state, after], axis=1),
            action,
            cumulant.ravel()[outcome],
            continuation.ravel()[outcome],
            outcome,
        )
    if isinstance(domain, ContinuousDomain):
        position, cell = np.empty((steps + 1, 2)), np.empty(steps + 1, np.int64)
        collision, ahead = np.empty(steps, np.int64), body.AHEAD[domain.protocol]
        kept = np.empty((steps, 2)) if ahead else position
        walk_body(
            thresholds(mu), body.SOLID, domain.noise, ahead, body.RESTING,
            stream, position, kept, cell, action, collision,
        )  # fmt: skip
        cumulant, continuation = domain.signals(question)
        seen = domain.features(position)
        x = domain.features(kept) if ahead else seen[:-1]
        cells = np.stack([cell[:-1], cell[1:]], axis=1)
        return Walk(x, seen[1:], cells, action, cumulant[collision], continuation[collision], None)
    raise TypeError(f"no walk is known for {type(domain).__name__}")
