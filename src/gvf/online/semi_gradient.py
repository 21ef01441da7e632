"""Online TD with traces: TD(lambda), emphatic TD, Tree Backup, V-trace(lambda) and ABTD.

All five add ``alpha delta z`` to the weights, or ``alpha rho delta z``. They differ in how the
ratios of earlier actions enter their traces:

    TD(lambda)     z <- rho (gamma lambda z + x)                        w += alpha delta z
    emphatic TD    z <- rho (gamma lambda z + m x)                      w += alpha delta z
                   with F <- beta rho_before F + i,  m = lambda i + (1 - lambda) F
    Tree Backup    z <- gamma lambda pi_before z + x                    w += alpha rho delta z
    V-trace        z <- gamma lambda min(1, rho_before) z + x           w += alpha rho delta z
    ABTD(zeta)     z <- gamma nu_before pi_before z + x                 w += alpha rho delta z
                   with nu = min(xi, 1 / max(pi, mu))

gamma is the continuation into the state, and delta bootstraps by that of the transition. The
equations are those of the comparisons by Ghiassian and Sutton (2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from numba import njit

from gvf.common.checks import brief, is_number
from gvf.common.vector import choose, load, store, zeros
from gvf.online.algorithm import Algorithm
from gvf.online.lane_vectors import WIDTH, add_features, add_trace, fade, of_lanes, td_error
from gvf.updates.update import Lanes


@njit(cache=True, nogil=True)
def td_lambda(state, trace, x, x_next, i, now, first, last):
    """Take a step of TD(lambda); lanes: alpha, lambda."""
    w, z = state.weights, trace.traces[0]
    for lane in range(first, last, WIDTH):
        alpha, decay = of_lanes(state, 0, lane), of_lanes(state, 1, lane)
        fade(z, now.rho * now.gamma * decay, trace, lane)
        add_features(z, now.rho, x, i, lane)
        delta = td_error(w, x, x_next, i, now, lane)
        add_trace(w, alpha * delta, z, trace, lane)


@njit(cache=True, nogil=True, forceinline=True)
def follow(trace, beta, decay, now, lane):
    """Move the follow-on trace, F <- beta rho_before F + i, and return the emphasis m."""
    follow_on = zeros(WIDTH) + now.interest
    if now.gamma != 0.0:  # else an episode begins
        follow_on += beta * now.rho_before * load(beta, trace.follow_on, 0, lane)
    store(trace.follow_on, 0, lane, follow_on)
    return decay * now.interest + (1.0 - decay) * follow_on


@njit(cache=True, nogil=True)
def emphatic_td(state, trace, x, x_next, i, now, first, last):
    """Take a step of emphatic TD; lanes: alpha, lambda, beta (negative: the continuation)."""
    w, z = state.weights, trace.traces[0]
    for lane in range(first, last, WIDTH):
        alpha, decay = of_lanes(state, 0, lane), of_lanes(state, 1, lane)
        beta = of_lanes(state, 2, lane)
        emphasis = follow(trace, choose(beta, 0.0, now.gamma, beta), decay, now, lane)
        fade(z, now.rho * now.gamma * decay, trace, lane)
        add_features(z, now.rho * emphasis, x, i, lane)
        delta = td_error(w, x, x_next, i, now, lane)
        add_trace(w, alpha * delta, z, trace, lane)


@njit(cache=True, nogil=True, forceinline=True)
def outer_ratio_step(state, trace, x, x_next, i, now, lane, decay):
    """Take a step z <- gamma decay z + x,  w += alpha rho delta z."""
    w, z = state.weights, trace.traces[0]
    fade(z, now.gamma * decay, trace, lane)
    add_features(z, 1.0, x, i, lane)
    delta = td_error(w, x, x_next, i, now, lane)
    add_trace(w, of_lanes(state, 0, lane) * now.rho * delta, z, trace, lane)


@njit(cache=True, nogil=True)
def tree_backup(state, trace, x, x_next, i, now, first, last):
    """Take a step of Tree Backup(lambda); lanes: alpha, lambda."""
    for lane in range(first, last, WIDTH):
        decay = now.pi_before * of_lanes(state, 1, lane)
        outer_ratio_step(state, trace, x, x_next, i, now, lane, decay)


@njit(cache=True, nogil=True)
def v_trace(state, trace, x, x_next, i, now, first, last):
    """Take a step of V-trace(lambda); lanes: alpha, lambda."""
    for lane in range(first, last, WIDTH):
        decay = min(1.0, now.rho_before) * of_lanes(state, 1, lane)
        outer_ratio_step(state, trace, x, x_next, i, now, lane, decay)


@njit(cache=True, nogil=True)
def abtd(state, trace, x, x_next, i, now, first, last):
    """Take a step of ABTD(zeta); lanes: alpha, zeta; numbers: xi_0, xi_max.

    ``nu pi = min(xi pi, pi / max(pi, mu)) = min(xi pi, 1, rho)`` needs no mu.
    """
    for lane in range(first, last, WIDTH):
        zeta, xi_0, xi_max = of_lanes(state, 1, lane), state.numbers[0], state.numbers[1]
        above = choose(0.5, zeta, 2.0 * zeta - 1.0, 0.0)
        most = (2.0 * xi_0 * zeta + above * (xi_max - 2.0 * xi_0)) * now.pi_before
        limit = min(1.0, now.rho_before)
        outer_ratio_step(state, trace, x, x_next, i, now, lane, choose(most, limit, most, limit))


@dataclass(frozen=True)
class TDLambda(Algorithm):
    """Off-policy TD(lambda), with the ratio in the trace.

    Args:
        step_size: the step size alpha; a number or one for each lane.
        trace_decay: lambda, in [0, 1]; likewise.

    Example:
        >>> import gvf
        >>> gvf.online.TDLambda(step_size=0.1, trace_decay=[0.0, 0.9]).lanes
        2
    """

    step_size: Lanes
    trace_decay: Lanes = 0.0

    lane_fields = ("step_size", "trace_decay")
    unit_fields = ("trace_decay",)
    kernel = staticmethod(td_lambda)
    traces = 1


@dataclass(frozen=True)
class EmphaticTD(TDLambda):
    """Emphatic TD(lambda), and Emphatic TD(lambda, beta).

    The follow-on trace F weighs each state by how much earlier states of interest depend on it.
    Emphatic TD is stable where TD may diverge, and its fixed point is often better. The products of
    ratios in F vary a lot; a smaller beta lowers both the variance and that advantage.

    Args:
        step_size: as in :class:`TDLambda`.
        trace_decay: as in :class:`TDLambda`.
        beta: the decay of the follow-on trace, in [0, 1]; None for the continuation into the state,
            which is Emphatic TD(lambda). The trace begins anew where that continuation is 0.

    Example:
        >>> import gvf
        >>> gvf.online.EmphaticTD(step_size=0.01, trace_decay=0.5)
        EmphaticTD(step_size=0.01, trace_decay=0.5, beta=None)
    """

    beta: Lanes | None = None

    lane_fields = ("step_size", "trace_decay", "beta")
    unit_fields = ("trace_decay", "beta")
    unset: ClassVar[Mapping[str, float]] = {"beta": -1.0}
    uses_interest = True
    remedy = "take a smaller step size or a smaller beta"
    kernel = staticmethod(emphatic_td)


@dataclass(frozen=True)
class TreeBackup(TDLambda):
    """Tree Backup(lambda) for state values: the target's probabilities decay the trace.

    A product of ratios never enters, so the variance is low. Where the target is not deterministic
    the trace is short. The target must have discrete actions.

    Args:
        step_size: as in :class:`TDLambda`.
        trace_decay: as in :class:`TDLambda`.

    Example:
        >>> import gvf
        >>> gvf.online.TreeBackup(step_size=0.1, trace_decay=1.0)
        TreeBackup(step_size=0.1, trace_decay=1.0)
    """

    kernel = staticmethod(tree_backup)
    needs_probabilities = True


@dataclass(frozen=True)
class VTraceLambda(TDLambda):
    """V-trace(lambda): ratios clipped at 1 decay the trace.

    The error keeps its whole ratio here, so the fixed point for lambda = 0 is that of TD. The
    correction :class:`gvf.corrections.VTrace` is another thing: it clips the ratio of the update.

    Args:
        step_size: as in :class:`TDLambda`.
        trace_decay: as in :class:`TDLambda`.

    Example:
        >>> import gvf
        >>> gvf.online.VTraceLambda(step_size=0.1, trace_decay=0.9)
        VTraceLambda(step_size=0.1, trace_decay=0.9)
    """

    kernel = staticmethod(v_trace)


@dataclass(frozen=True)
class ABTD(Algorithm):
    """ABTD(zeta): the bootstrapping depends on the action, so that ratios cancel.

    The trace decays by ``nu pi = min(xi pi, 1, rho)`` of the action before, with
    ``xi = 2 zeta xi_0 + max(0, 2 zeta - 1) (xi_max - 2 xi_0)``. The target must have discrete
    actions.

    Args:
        step_size: the step size alpha; a number or one for each lane.
        zeta: the amount of tracing, in [0, 1]; a number or one for each lane.
        xi_0: the smallest ``1 / max(pi, mu)`` of any action in any state; 1 if one is certain.
        xi_max: the largest: 2 for two actions of probability 0.5, for example.

    Example:
        >>> import gvf
        >>> gvf.online.ABTD(step_size=0.1, zeta=0.5)
        ABTD(step_size=0.1, zeta=0.5, xi_0=1.0, xi_max=2.0)
    """

    step_size: Lanes
    zeta: Lanes = 0.0
    xi_0: float = 1.0
    xi_max: float = 2.0

    lane_fields = ("step_size", "zeta")
    unit_fields = ("zeta",)
    kernel = staticmethod(abtd)
    traces = 1
    needs_probabilities = True

    def __post_init__(self) -> None:
        super().__post_init__()
        numbers = is_number(self.xi_0) and is_number(self.xi_max)
        if not (numbers and 0.0 < self.xi_0 <= self.xi_max):
            raise ValueError(
                f"xi_0 and xi_max must be above 0 and in order, got {brief(self.xi_0)} and "
                f"{brief(self.xi_max)}"
            )

    def numbers(self) -> Sequence[float]:
        """Return xi_0 and xi_max."""
        return self.xi_0, self.xi_max
