"""Dynamic programming: the exact values of a question in a tabular environment.

A model lists the possible outcomes of each state and action, with their probabilities p. The values
are the fixed point of

    v(s) = sum_a pi(a|s) sum_outcomes p (C + gamma v(s')),    v = 0 in terminal states,

found by iterating until no value changes by more than 1e-15. The question gives the cumulant C and
the continuation gamma of each transition. Without a model, see :mod:`gvf.truth.held_out_returns`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gvf import GVF, Transitions
from gvf.common.arrays import Floats
from gvf.policies import DiscretePolicy


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A table of the outcomes, up to B, of each of S states and A actions.

    Nothing follows a terminal state; its rows must only be distributions.

    Attributes:
        probability: the probability of each outcome, float64[S, A, B]; sums to 1 over outcomes.
        next_state: the next state, int64[S, A, B].
        reward: the reward, float64[S, A, B].
        terminal: True for terminal states, bool[S].

    Example:
        Two states and one action, which ends in state 1 half of the time:

        >>> from gvf_lab.truth import Model
        >>> import numpy as np
        >>> Model(
        ...     probability=np.array([[[0.5, 0.5]], [[1.0, 0.0]]]),
        ...     next_state=np.array([[[0, 1]], [[1, 1]]]),
        ...     reward=np.array([[[0.0, 1.0]], [[0.0, 0.0]]]),
        ...     terminal=np.array([False, True]),
        ... )
        Model(2 states, 1 of them terminal; 1 action; 2 outcomes)
    """

    probability: Floats
    next_state: NDArray[np.int64]
    reward: Floats
    terminal: NDArray[np.bool_]

    def __post_init__(self) -> None:
        shape = self.probability.shape
        if len(shape) != 3 or 0 in shape:
            raise ValueError(f"probability has shape {shape}, expected [states, actions, outcomes]")
        for name, expected in (
            ("next_state", shape),
            ("reward", shape),
            ("terminal", shape[:1]),
        ):
            if getattr(self, name).shape != expected:
                raise ValueError(
                    f"{name} has shape {getattr(self, name).shape}, expected {expected} beside "
                    f"probabilities of shape {shape}"
                )
        good = (self.probability >= 0).all(axis=2)
        good &= np.abs(self.probability.sum(axis=2) - 1) <= 1e-12
        if not good.all():
            state, action = np.argwhere(~good)[0]
            raise ValueError(
                f"the probabilities of what follows state {state}, action {action} are "
                f"{self.probability[state, action]}; they must not be negative and sum to 1"
            )
        inside = (self.next_state >= 0) & (self.next_state < shape[0])
        if not inside.all():
            state, action, outcome = np.argwhere(~inside)[0]
            raise ValueError(
                f"state {self.next_state[state, action, outcome]} may follow state {state}, action "
                f"{action}, but is not one of 0 to {shape[0] - 1}"
            )

    @property
    def transitions(self) -> Transitions:
        """Return all outcomes as transitions, in rows ``(state * A + action) * B + outcome``."""
        state, action, _ = np.indices(self.probability.shape)
        following = self.next_state.ravel()
        return Transitions(
            state=state.ravel(),
            action=action.ravel(),
            reward=self.reward.ravel(),
            next_state=following,
            terminated=self.terminal[following],
            truncated=np.zeros(following.size, bool),
        )

    def signals(self, question: GVF) -> tuple[Floats, Floats]:
        """Compute cumulant and continuation of every outcome, each float64[S, A, B]."""
        transitions, shape = self.transitions, self.probability.shape
        cumulants, continuations = (
            question.cumulants(transitions),
            question.continuations(transitions),
        )
        return cumulants.reshape(shape), continuations.reshape(shape)

    def __repr__(self) -> str:
        states, actions, outcomes = self.probability.shape
        return (
            f"Model({_count(states, 'state')}, {int(self.terminal.sum())} of them terminal; "
            f"{_count(actions, 'action')}; {_count(outcomes, 'outcome')})"
        )


def exact_values(model: Model, question: GVF, *, sweeps: int = 100_000) -> Floats:
    """Compute the value of every state of a model, float64[S]; 0 in terminal states.

    The iteration ends when no value changes by more than 1e-15 (relative to the largest value, if
    that is above 1).

    Args:
        model: the table of outcomes.
        question: the question; its policy must be discrete, with the model's actions.
        sweeps: the largest number of iterations; more are an error.

    Example:
        Half of the time the walk ends, with reward 1: v = 1/2 + 1/2 * 0.9 v.

        >>> import gvf
        >>> from gvf_lab.truth import Model, exact_values
        >>> import numpy as np
        >>> model = Model(
        ...     probability=np.array([[[0.5, 0.5]], [[1.0, 0.0]]]),
        ...     next_state=np.array([[[0, 1]], [[1, 1]]]),
        ...     reward=np.array([[[0.0, 1.0]], [[0.0, 0.0]]]),
        ...     terminal=np.array([False, True]),
        ... )
        >>> exact_values(model, gvf.GVF(gvf.policies.Uniform(1), continuation=0.9))
        array([0.90909091, 0.        ])
    """
    policy, (states, actions, _) = question.policy, model.probability.shape
    if not isinstance(policy, DiscretePolicy) or policy.actions != actions:
        raise ValueError(f"{policy} is not a discrete policy over the {actions} actions of {model}")
    pi = policy.probabilities(np.arange(states))
    chance = pi[:, :, None] * model.probability * ~model.terminal[:, None, None]
    cumulant, continuation = model.signals(question)
    now, later = (chance * cumulant).sum(axis=(1, 2)), chance * continuation
    values, change = np.zeros(states), np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(sweeps):
            # Not a matrix product, because BLAS rounds differently on different machines.
            improved = now + (later * values[model.next_state]).sum(axis=(1, 2))
            change = np.abs(improved - values).max()
            values = improved
            if change <= 1e-15 * max(1.0, np.abs(values).max()):
                return values
    raise ValueError(
        f"the values of {question} still change by {change:.2g} after {sweeps} sweeps; a "
        "continuation of 1 needs episodes that end, whatever the policy does"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
