"""Emphatic corrections: the table's rows with rho F in place of rho.

The follow-on trace F of emphatic TD (Sutton, Mahmood and White, 2016) sums the interest in the
states that led to a state, as far as the target would have come from there:

    F_t = beta rho_{t-1} F_{t-1} + i_t.

The ratio is that of the transition before, and i_t is the interest of the state
(:class:`gvf.GVF`). Without a beta the decay is the continuation into the state, as in emphatic TD;
a smaller beta gives less variance and more bias. The trace begins anew, F = i, at the beginning of
an episode, and wherever the continuation into the state is 0.

Draws by rho F, or weights of rho F, have the fixed point of emphatic TD(0), where those by rho have
the fixed point of TD(0). F is known when a transition arrives and never changes, so
:mod:`gvf.corrections.carried` computes it once, and transitions must come in the order of the
stream. :mod:`gvf.corrections.plain_corrections` has the other corrections.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gvf.common.checks import brief, is_number
from gvf.corrections.correction import MASS, RATIO, TRACE, Correction, by_ratio_and_trace, kernel
from gvf.corrections.plain_corrections import IR


@kernel
def _follow_on(carry, ratio, continuation, interest, restart, parameters):
    if restart or continuation == 0.0:
        return interest
    beta = parameters[0]
    return (continuation if np.isnan(beta) else beta) * ratio * carry + interest


@kernel
def _emphasis_over_k(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = inputs[RATIO, i] * inputs[TRACE, i] / out.size


@kernel
def _share_of_batch(inputs, p, means, parameters, out):
    total = 0.0
    for i in range(out.size):
        total += inputs[RATIO, i] * inputs[TRACE, i]
    for i in range(out.size):
        out[i] = inputs[RATIO, i] * inputs[TRACE, i] / total if total > 0.0 else 0.0


@kernel
def _mean_mass(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = means[MASS] / out.size


@dataclass(frozen=True)
class EmphaticIS(Correction):
    """Emphatic importance sampling: uniform draws, w = rho F / k.

    It is unbiased for the update of emphatic TD(0), with the largest variance.

    Args:
        beta: the decay of the follow-on trace F, from 0 to 1; None for the continuation.

    Example:
        The inputs of a row are its ratio and its trace:

        >>> import gvf
        >>> from gvf.corrections.carried import carried
        >>> correction = gvf.corrections.EmphaticIS()
        >>> inputs = carried(correction, ratio=[2.0, 0.5], continuation=[0.5, 0.5])
        >>> inputs
        array([[2. , 0.5],
               [1. , 2. ]])
        >>> correction.weights(inputs, correction.means(inputs))
        array([1. , 0.5])
    """

    beta: float | None = None
    trace = _follow_on
    weigh = _emphasis_over_k
    label = "Emphatic IS"
    emphatic = True

    def __post_init__(self) -> None:
        if not (self.beta is None or (is_number(self.beta) and 0.0 <= self.beta <= 1.0)):
            raise ValueError(f"beta must be from 0 to 1, or None, got {brief(self.beta)}")


@dataclass(frozen=True)
class EmphaticWISMinibatch(EmphaticIS):
    """Emphatic weighted importance sampling: uniform draws, w = rho F / sum over the batch.

    All weights are 0 if the sum is 0.

    Args:
        beta: the decay of the follow-on trace F, from 0 to 1; None for the continuation.

    Example:
        >>> import gvf
        >>> correction = gvf.corrections.EmphaticWISMinibatch()
        >>> ratios_and_traces = [[2.0, 0.5], [1.0, 2.0]]
        >>> correction.weights(ratios_and_traces, correction.means(ratios_and_traces))
        array([0.66666667, 0.33333333])
    """

    weigh = _share_of_batch
    label = "Emphatic WIS-Minibatch"


@dataclass(frozen=True)
class EmphaticIR(EmphaticIS):
    """Emphatic importance resampling: draw by rho F, then update as if on-policy, w = 1 / k.

    Given the window, its mean update is emphatic weighted importance sampling over the window. Its
    bias falls as 1 / n, and its limit has the fixed point of emphatic TD(0).

    Args:
        beta: the decay of the follow-on trace F, from 0 to 1; None for the continuation.

    Example:
        >>> import gvf
        >>> correction = gvf.corrections.EmphaticIR()
        >>> correction.masses([[2.0, 0.5], [1.0, 2.0]])
        array([2., 1.])
        >>> correction.name, gvf.corrections.EmphaticIR(beta=0.6).name
        ('Emphatic IR', 'Emphatic IR(0.6)')
    """

    mass = by_ratio_and_trace
    weigh = IR.weigh
    label = "Emphatic IR"


@dataclass(frozen=True)
class EmphaticBCIR(EmphaticIR):
    """Emphatic importance resampling, bias-corrected: w = (mean of rho F over the window) / k.

    Args:
        beta: the decay of the follow-on trace F, from 0 to 1; None for the continuation.

    Example:
        >>> import gvf
        >>> correction = gvf.corrections.EmphaticBCIR()
        >>> ratios_and_traces = [[2.0, 0.5], [1.0, 2.0]]
        >>> correction.weights(ratios_and_traces, correction.means(ratios_and_traces))
        array([0.75, 0.75])
    """

    weigh = _mean_mass
    label = "Emphatic BC-IR"
