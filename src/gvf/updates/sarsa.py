"""Sarsa(0) and Expected Sarsa(0): action values, which need no ratio.

Both learn Q(s, a) for the actions that mu chose, and follow pi only from the next state on:

    Sarsa             delta = c + gamma Q(s', a') - Q(s, a),    a' drawn from pi(.|s')
    Expected Sarsa    delta = c + gamma sum_b pi(b|s') Q(s', b) - Q(s, a)

They predict V(s) = sum_a pi(a|s) Q(s, a). Each is TD(0) with one block of weights for each action
(:mod:`gvf.updates.linear_kernels`), so all optimisers work. The right correction is ``OnPolicy()``:
uniform draws with weights 1/k. For a deterministic target, Sarsa(0) and Expected Sarsa(0) are the
same algorithm as TD(0) with ``VTrace(1.0)``, for the weights of the target's action.
"""

from __future__ import annotations

from dataclasses import dataclass

from gvf.updates.td import TD


@dataclass(frozen=True)
class Sarsa(TD):
    """Sarsa(0): bootstraps on one action of the target policy, drawn when a row is observed.

    Args:
        step_size: as in :class:`TD`.
        optimiser: as in :class:`TD`.

    Example:
        >>> import gvf
        >>> gvf.updates.Sarsa(step_size=0.5)
        Sarsa(step_size=0.5, optimiser=SGD())
    """

    action_values = True
    next_action = "sampled"


@dataclass(frozen=True)
class ExpectedSarsa(TD):
    """Expected Sarsa(0): bootstraps on the mean over the target policy's actions.

    Args:
        step_size: as in :class:`TD`.
        optimiser: as in :class:`TD`.

    Example:
        >>> import gvf
        >>> gvf.updates.ExpectedSarsa(step_size=0.5)
        ExpectedSarsa(step_size=0.5, optimiser=SGD())
    """

    action_values = True
    next_action = "expected"
