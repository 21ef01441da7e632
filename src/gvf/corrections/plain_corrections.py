"""The table of corrections of the mismatch of behaviour and target, as pairs (p, w).

Draw slot i with probability proportional to p_i, then add ``w_i * update_i``, summed over the
batch of k. With ratios rho, their mean over the window r, and m the window's mean of p (paper,
sections 3 and 5), TD errors delta and weights u(s) of states:

====================== ================ =======================================
correction             p_i              w_i
====================== ================ =======================================
``IS``                 1                rho_i / k
``VTrace(clip)``       1                min(rho_i, clip) / k
``WISMinibatch``       1                rho_i / sum of rho over the batch
``WISBuffer``          1                rho_i / (k r)
``NormIS(max)``        1                rho_i / (k max)
``IR``                 rho_i            1 / k
``BCIR``               rho_i            r / k
``Interpolated(b)``    rho_i^b          rho_i^(1-b) / k
``BCInterpolated(b)``  rho_i^b          m rho_i^(1-b) / k
``WISOptimal``         the whole window rho_i / sum of rho over the window
``OnPolicy``           1                1 / k (the data come from the target)
``EmphaticIR(b)``      rho_i F_i        1 / k
``EmphaticBCIR(b)``    rho_i F_i        m / k
``EmphaticIS(b)``      1                rho_i F_i / k
``EmphaticWIS-         1                rho_i F_i / sum of rho F over the batch
Minibatch(b)``
``StateRatioIR``       rho_i u(s_i)     1 / k
``PrioritisedIR``      rho_i b_i        m / (b_i k), with b_i = abs(delta_i)^a + floor
====================== ================ =======================================

The emphatic ones are in :mod:`gvf.corrections.emphatic_corrections`, with F the follow-on trace.

Note the 1/k: a step size multiplies the weighted *sum*, here and everywhere. A new correction is a
subclass of :class:`gvf.corrections.Correction` with a kernel or two.
"""

from __future__ import annotations

from dataclasses import dataclass

from gvf.common.checks import brief, is_number
from gvf.corrections.correction import (
    MASS,
    RATIO,
    WINDOW,
    Correction,
    by_ratio,
    by_ratio_and_trace,
    kernel,
)
from gvf.sampling.prefix_sums import LARGEST_RATIO


@kernel
def _to_the_power(inputs, parameters):
    return inputs[RATIO] ** parameters[0]


@kernel
def _ratio(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = inputs[RATIO, i] / out.size


@kernel
def _clipped_ratio(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = min(inputs[RATIO, i], parameters[0]) / out.size


@kernel
def _share_of_batch(inputs, p, means, parameters, out):
    total = 0.0
    for i in range(out.size):
        total += inputs[RATIO, i]
    for i in range(out.size):
        out[i] = inputs[RATIO, i] / total if total > 0.0 else 0.0


@kernel
def _ratio_to_mean(inputs, p, means, parameters, out):
    mean = means[RATIO]
    for i in range(out.size):
        out[i] = inputs[RATIO, i] / (out.size * mean) if mean > 0.0 else 0.0


@kernel
def _ratio_to_largest(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = inputs[RATIO, i] / (out.size * parameters[0])


@kernel
def _equal(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = 1.0 / out.size


@kernel
def _mean_ratio(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = means[RATIO] / out.size


@kernel
def _ratio_to_mass(inputs, p, means, parameters, out):
    # rho / rho^beta, so that only the mass, computed once for each row, needs a power.
    for i in range(out.size):
        out[i] = inputs[RATIO, i] / p[i] / out.size if p[i] > 0.0 else 0.0


@kernel
def _ratio_to_relative_mass(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = means[MASS] * (inputs[RATIO, i] / p[i]) / out.size if p[i] > 0.0 else 0.0


@kernel
def _interest(carry, ratio, continuation, interest, restart, parameters):
    return interest


@kernel
def _prioritised(ratio, error, parameters):
    return ratio * (error ** parameters[0] + parameters[1])


@kernel
def _first_priority(inputs, parameters):
    return _prioritised(inputs[RATIO], parameters[2], parameters)


@kernel
def _new_priority(delta, inputs, parameters, out):
    for i in range(out.size):
        p = _prioritised(inputs[RATIO, i], abs(delta[i]), parameters)
        # The errors of a learner that diverges overflow; its report says so, and no draw fails.
        out[i] = p if p <= LARGEST_RATIO else LARGEST_RATIO


def _positive(correction: Correction, name: str) -> None:
    value = getattr(correction, name)
    if not (is_number(value) and value > 0.0):
        raise ValueError(f"{name} must be a positive number, got {brief(value)}")


def _from_0_to_1(correction: Correction, name: str) -> None:
    value = getattr(correction, name)
    if not (is_number(value) and 0.0 <= value <= 1.0):
        raise ValueError(f"{name} must be from 0 to 1, got {brief(value)}")


@dataclass(frozen=True)
class IS(Correction):
    """Importance sampling: uniform draws, w = rho / k. Unbiased, with the largest variance.

    Example:
        >>> import gvf
        >>> gvf.corrections.IS().weights([0.5, 8.0], means=1.0)
        array([0.25, 4.  ])
    """

    weigh = _ratio


@dataclass(frozen=True)
class NormIS(Correction):
    """Importance sampling with ratios divided by the largest possible one, so that w <= 1 / k.

    It equals ``IS`` with a smaller step size. The largest ratio is known from the policies
    (:func:`gvf.policies.largest_ratio`).

    Example:
        >>> import gvf
        >>> gvf.corrections.NormIS(max_ratio=8.0).weights([0.5, 8.0], means=1.0)
        array([0.03125, 0.5    ])
    """

    max_ratio: float
    weigh = _ratio_to_largest

    def __post_init__(self) -> None:
        _positive(self, "max_ratio")

    @property
    def name(self) -> str:
        """``NormIS``, without the largest ratio, which belongs to the policies."""
        return "NormIS"


@dataclass(frozen=True)
class VTrace(Correction):
    """V-trace(0): ratios clipped from above. A lower clip gives less variance and more bias.

    Example:
        >>> import gvf
        >>> gvf.corrections.VTrace(clip=1.0).weights([0.5, 8.0], means=1.0)
        array([0.25, 0.5 ])
    """

    clip: float = 1.0
    weigh = _clipped_ratio
    label = "V-trace"

    def __post_init__(self) -> None:
        _positive(self, "clip")


@dataclass(frozen=True)
class WISMinibatch(Correction):
    """Weighted importance sampling in the batch: w = rho / sum over the batch; 0 if the sum is 0.

    Example:
        >>> import gvf
        >>> gvf.corrections.WISMinibatch().weights([1.0, 3.0], means=1.0)
        array([0.25, 0.75])
    """

    weigh = _share_of_batch
    label = "WIS-Minibatch"


@dataclass(frozen=True)
class WISBuffer(Correction):
    """Weighted importance sampling over the window: w = rho / (k * mean ratio of the window).

    Example:
        >>> import gvf
        >>> gvf.corrections.WISBuffer().weights([1.0, 3.0], means=0.5)
        array([1., 3.])
    """

    weigh = _ratio_to_mean
    label = "WIS-Buffer"


@dataclass(frozen=True)
class WISOptimal(Correction):
    """The whole window in every update, w = rho / sum over the window: the mean update of IR.

    It is the best that a window allows, but costs n instead of k samples an update.

    Example:
        >>> import gvf
        >>> gvf.corrections.WISOptimal().weights([1.0, 3.0], means=2.0)
        array([0.25, 0.75])
    """

    mass = WINDOW
    weigh = _share_of_batch
    skips_zeros = True
    label = "WIS-Optimal"


@dataclass(frozen=True)
class IR(Correction):
    """Importance resampling: draw by ratio, then update as if on-policy, w = 1 / k.

    Its bias equals that of WIS-Optimal and falls as 1 / n (Theorem 3.1).

    Example:
        >>> import gvf
        >>> (
        ...     gvf.corrections.IR().masses([1.0, 3.0]),
        ...     gvf.corrections.IR().weights([1.0, 3.0], means=2.0),
        ... )
        (array([1., 3.]), array([0.5, 0.5]))
    """

    mass = by_ratio
    weigh = _equal


@dataclass(frozen=True)
class BCIR(Correction):
    """Bias-corrected importance resampling: w = (mean ratio of the window) / k. Unbiased.

    Example:
        >>> import gvf
        >>> gvf.corrections.BCIR().weights([1.0, 3.0], means=2.0)
        array([1., 1.])
    """

    mass = by_ratio
    weigh = _mean_ratio
    label = "BC-IR"


@dataclass(frozen=True)
class Interpolated(Correction):
    """Interpolation of importance sampling and resampling: p = rho^beta, w = rho^(1-beta) / k.

    ``beta = 0`` is ``IS`` and ``beta = 1`` is ``IR``. In between, part of a ratio is in the draw
    and the rest in the weight. Given the window, its mean update is that of ``IS`` divided by the
    mean mass, so it is longer than that of ``IS`` if the mean mass is below 1.
    :class:`BCInterpolated` multiplies by the mean mass.

    Args:
        beta: the exponent of the ratio in the draw, from 0 to 1.

    Example:
        >>> import gvf
        >>> correction = gvf.corrections.Interpolated(beta=0.5)
        >>> correction.masses([1.0, 9.0])
        array([1., 3.])
        >>> correction.weights([1.0, 9.0], means=correction.means([1.0, 9.0]))
        array([0.5, 1.5])
    """

    beta: float
    mass = _to_the_power
    weigh = _ratio_to_mass

    def __post_init__(self) -> None:
        _from_0_to_1(self, "beta")


@dataclass(frozen=True)
class BCInterpolated(Interpolated):
    """Interpolated draws, bias-corrected: p = rho^beta, w = (mean mass) rho^(1-beta) / k.

    It is unbiased for every beta; ``beta = 0`` is ``IS`` and ``beta = 1`` is ``BCIR``.

    Args:
        beta: the exponent of the ratio in the draw, from 0 to 1.

    Example:
        >>> import gvf
        >>> correction = gvf.corrections.BCInterpolated(beta=0.5)
        >>> correction.weights([1.0, 9.0], means=correction.means([1.0, 9.0]))
        array([1., 3.])
    """

    weigh = _ratio_to_relative_mass
    label = "BC-Interpolated"


@dataclass(frozen=True)
class OnPolicy(Correction):
    """No correction: uniform draws, w = 1 / k. It is right for data from the target policy.

    Sarsa(0) needs it too, because it learns action values and uses no ratio.

    Example:
        >>> import gvf
        >>> gvf.corrections.OnPolicy().weights([1.0, 3.0], means=2.0)
        array([0.5, 0.5])
    """

    weigh = _equal
    label = "On-policy"
    needs_ratios = False


@dataclass(frozen=True)
class StateRatioIR(Correction):
    """Resampling that also corrects how often states are visited: p = rho u(s), w = 1 / k.

    Ratios correct actions, not states: ``IR`` learns as if states came as the behaviour visits
    them. With a weight u(s) for each state, here the interest in it, states count as in
    d_mu(s) u(s), where d_mu are the behaviour's visits. The fixed point is that of TD(0) under
    these visits. If u is the ratio of the visits of target and behaviour
    (:func:`gvf.truth.visit_ratios`), it is the fixed point of learning on-policy, where linear
    TD(0) is stable.

    It helps where features are too few to represent the values. In a table all weights above 0 have
    the same fixed point, and weights only make the effective sample size smaller. Their scale has
    no effect.

    The weights are the ``interest`` of the question: 1 by default, a column, or a function such as
    ``lambda t: u[t.state]``. Rows may come in any order.

    Example:
        >>> import gvf, numpy as np
        >>> correction = gvf.corrections.StateRatioIR()
        >>> ratio, weight = np.array([2.0, 0.5, 1.0]), np.array([0.1, 1.0, 3.0])
        >>> correction.masses([ratio, weight])
        array([0.2, 0.5, 3. ])
    """

    trace = _interest
    mass = by_ratio_and_trace
    weigh = _equal
    label = "State-ratio IR"
    looks_back = False
    emphatic = True


@dataclass(frozen=True)
class PrioritisedIR(Correction):
    """Resampling by ratio and priority: p = rho b, w = (mean mass) / (b k).

    The priority ``b = abs(delta)^a + floor`` follows the TD error delta of the row. The weights
    undo it: given the window, the mean update is that of :class:`BCIR` and :class:`IS`, whatever
    the priorities are. Only the variance depends on them. It is least, for given values, if the
    mass is proportional to the ratio times the length of the update.

    A priority is that of the last time when a row was drawn, so it lags behind the values. It helps
    where rows are drawn many times while they are in the window. It harms where they are drawn
    rarely: a row whose error has grown since it was found to be small is hardly drawn, and then
    with a large weight. The floor bounds weights by (mean mass) / (floor k).

    It is for a learner with one step size: several would share their draws, and studies draw
    beforehand.

    Args:
        exponent: the exponent a of the error, from 0 (``BCIR``) to 1.
        floor: the least priority, above 0, so that no row is lost.
        initial: the error that a row is taken to have until it is first drawn. The largest error
            expected is a good choice: new rows are then drawn soon. A mass is made before its row
            has an error, and the expected update does not depend on it.

    Example:
        >>> import gvf, numpy as np
        >>> correction = gvf.corrections.PrioritisedIR(exponent=0.5, floor=0.5)
        >>> correction.masses([1.0, 3.0])
        array([1.5, 4.5])
        >>> new = np.empty(2)
        >>> correction.refresh(np.array([-4.0, 0.0]), np.array([[1.0, 3.0]]),
        ...                    correction.parameters, new)
        >>> new
        array([2.5, 1.5])
        >>> correction.weights([1.0, 3.0], means=[2.0, 2.0], p=new)
        array([0.4, 2. ])
    """

    exponent: float = 0.6
    floor: float = 0.1
    initial: float = 1.0
    mass = _first_priority
    weigh = _ratio_to_relative_mass
    refresh = _new_priority
    label = "Prioritised IR"

    def __post_init__(self) -> None:
        _from_0_to_1(self, "exponent")
        _positive(self, "floor")
        _positive(self, "initial")
