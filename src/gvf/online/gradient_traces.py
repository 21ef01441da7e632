"""Online gradient TD with traces: GTD, GTD2, HTD, Proximal GTD2 and TDRC, all with lambda.

Secondary weights h learn to predict the TD error, with a step size of eta alpha. With the trace
``z <- rho (gamma lambda z + x)``, and with gamma' the continuation of the transition:

    GTD             w += alpha (delta z - gamma' (1 - lambda) (z.h) x')
                    h += eta alpha (delta z - (x.h) x)
    TDRC            the same, with h += eta alpha (delta z - (x.h) x - h)
    GTD2            w += alpha ((x.h) x - gamma' (1 - lambda) (z.h) x'),  h as GTD
    HTD             w += alpha (delta z + ((z - z_b).h) (x - gamma' x'))
                    h += eta alpha (delta z - (z_b.h) (x - gamma' x'))
                    with the trace of the behaviour z_b <- gamma lambda z_b + x
    Proximal GTD2   a step of GTD2 to a middle (w, h), then from the start a step of GTD2 with the
                    errors at the middle

Both lines use the h from before the step. The equations are those of the comparisons by Ghiassian
and Sutton (2021). At lambda = 0, GTD is TDC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from numba import njit

from gvf.common.vector import load, store
from gvf.online.algorithm import Algorithm
from gvf.online.lane_vectors import (
    WIDTH,
    add_features,
    add_trace,
    fade,
    inner,
    of_lanes,
    overlap,
    td_error,
    value,
)
from gvf.updates.update import Lanes


@njit(cache=True, nogil=True, forceinline=True)
def parameters(state, lane):
    """Return alpha, lambda and the second step size."""
    alpha = of_lanes(state, 0, lane)
    return alpha, of_lanes(state, 1, lane), alpha * of_lanes(state, 2, lane)


@njit(cache=True, nogil=True, forceinline=True)
def move_trace(z, decay, trace, x, i, now, lane):
    """Take the step z <- rho (gamma lambda z + x)."""
    fade(z, now.rho * now.gamma * decay, trace, lane)
    add_features(z, now.rho, x, i, lane)


@njit(cache=True, nogil=True)
def gtd(state, trace, x, x_next, i, now, first, last):
    """Take a step of GTD or TDRC; lanes: alpha, lambda, eta; numbers: the pull of h to 0."""
    w, h, z = state.weights, state.memory[0], trace.traces[0]
    for lane in range(first, last, WIDTH):
        alpha, decay, second = parameters(state, lane)
        move_trace(z, decay, trace, x, i, now, lane)
        delta = td_error(w, x, x_next, i, now, lane)
        expected = value(h, x, i, lane)
        if now.gamma_next != 0.0:
            along = inner(z, h, trace, lane)
            step = -now.gamma_next * alpha * (1.0 - decay) * along
            add_features(w, step, x_next, i, lane)
        add_trace(w, alpha * delta, z, trace, lane)
        if state.numbers[0] != 0.0:
            kept = 1.0 - state.numbers[0] * second
            for row in range(h.shape[0]):
                store(h, row, lane, kept * load(kept, h, row, lane))
        add_trace(h, second * delta, z, trace, lane)
        add_features(h, 0.0 - second * expected, x, i, lane)


@njit(cache=True, nogil=True)
def gtd2(state, trace, x, x_next, i, now, first, last):
    """Take a step of GTD2; lanes: alpha, lambda, eta."""
    w, h, z = state.weights, state.memory[0], trace.traces[0]
    for lane in range(first, last, WIDTH):
        alpha, decay, second = parameters(state, lane)
        move_trace(z, decay, trace, x, i, now, lane)
        delta = td_error(w, x, x_next, i, now, lane)
        expected = value(h, x, i, lane)
        if now.gamma_next != 0.0:
            along = inner(z, h, trace, lane)
            step = -now.gamma_next * alpha * (1.0 - decay) * along
            add_features(w, step, x_next, i, lane)
        add_features(w, alpha * expected, x, i, lane)
        add_trace(h, second * delta, z, trace, lane)
        add_features(h, 0.0 - second * expected, x, i, lane)


@njit(cache=True, nogil=True)
def htd(state, trace, x, x_next, i, now, first, last):
    """Take a step of HTD; lanes: alpha, lambda, eta; traces: z, z_b."""
    w, h, z, z_b = state.weights, state.memory[0], trace.traces[0], trace.traces[1]
    for lane in range(first, last, WIDTH):
        alpha, decay, second = parameters(state, lane)
        move_trace(z, decay, trace, x, i, now, lane)
        fade(z_b, now.gamma * decay, trace, lane)
        add_features(z_b, 1.0, x, i, lane)
        delta = td_error(w, x, x_next, i, now, lane)
        behind = inner(z_b, h, trace, lane)
        ahead = alpha * (inner(z, h, trace, lane) - behind)
        behind = second * behind
        add_trace(w, alpha * delta, z, trace, lane)
        add_trace(h, second * delta, z, trace, lane)
        add_features(w, ahead, x, i, lane)
        add_features(h, 0.0 - behind, x, i, lane)
        if now.gamma_next != 0.0:
            add_features(w, -now.gamma_next * ahead, x_next, i, lane)
            add_features(h, now.gamma_next * behind, x_next, i, lane)


@njit(cache=True, nogil=True)
def proximal_gtd2(state, trace, x, x_next, i, now, first, last):
    """Take a step of Proximal GTD2; lanes: alpha, lambda, eta.

    The middle is not stored, since the step only needs its products with x, x' and z.
    """
    w, h, z = state.weights, state.memory[0], trace.traces[0]
    x_x, x_y, y_y = overlap(x, x, i), overlap(x, x_next, i), overlap(x_next, x_next, i)
    for lane in range(first, last, WIDTH):
        alpha, decay, second = parameters(state, lane)
        move_trace(z, decay, trace, x, i, now, lane)
        back = now.gamma_next * (1.0 - decay)
        z_x, z_z = value(z, x, i, lane), inner(z, z, trace, lane)
        delta = td_error(w, x, x_next, i, now, lane)
        expected, along = value(h, x, i, lane), inner(z, h, trace, lane)
        middle_delta = delta - alpha * (expected * x_x - back * along * x_y)
        middle_delta += now.gamma_next * alpha * (expected * x_y - back * along * y_y)
        middle_expected = expected + second * (delta * z_x - expected * x_x)
        middle_along = along + second * (delta * z_z - expected * z_x)
        add_features(w, alpha * middle_expected, x, i, lane)
        if now.gamma_next != 0.0:
            add_features(w, 0.0 - alpha * back * middle_along, x_next, i, lane)
        add_trace(h, second * middle_delta, z, trace, lane)
        add_features(h, 0.0 - second * middle_expected, x, i, lane)


@dataclass(frozen=True)
class GTD(Algorithm):
    """GTD(lambda): TD with gradient correction, along traces.

    Args:
        step_size: the step size alpha; a number or one for each lane.
        trace_decay: lambda, in [0, 1]; likewise.
        eta: the second step size, in units of the first; likewise.

    Example:
        >>> import gvf
        >>> gvf.online.GTD(step_size=0.01, trace_decay=0.9, eta=[0.25, 4.0]).lanes
        2
    """

    step_size: Lanes
    trace_decay: Lanes = 0.0
    eta: Lanes = 1.0

    lane_fields = ("step_size", "trace_decay", "eta")
    unit_fields = ("trace_decay",)
    regulariser: ClassVar[float] = 0.0
    kernel = staticmethod(gtd)
    traces = 1

    def memories(self, rows: int) -> int:
        """Return 1, for h."""
        return 1

    def numbers(self) -> Sequence[float]:
        """Return the strength of the pull of h to 0."""
        return (self.regulariser,)


@dataclass(frozen=True)
class TDRCLambda(GTD):
    """TDRC(lambda): GTD with one step size, and h regularised towards 0.

    There is nothing to tune but the step size and lambda. Every weight of h changes at every step.

    Args:
        step_size: as in :class:`GTD`.
        trace_decay: as in :class:`GTD`.
        eta: as in :class:`GTD`; 1 in the publication.

    Example:
        >>> import gvf
        >>> gvf.online.TDRCLambda(step_size=0.01)
        TDRCLambda(step_size=0.01, trace_decay=0.0, eta=1.0)
    """

    regulariser = 1.0


@dataclass(frozen=True)
class GTD2(GTD):
    """GTD2(lambda): the gradient of the projected Bellman error, without a TD error in w.

    Args:
        step_size: as in :class:`GTD`.
        trace_decay: as in :class:`GTD`.
        eta: as in :class:`GTD`.

    Example:
        >>> import gvf
        >>> gvf.online.GTD2(step_size=0.01, eta=4.0)
        GTD2(step_size=0.01, trace_decay=0.0, eta=4.0)
    """

    kernel = staticmethod(gtd2)


@dataclass(frozen=True)
class HTD(GTD):
    """HTD(lambda), a hybrid: it is TD(lambda) where behaviour and target agree.

    Args:
        step_size: as in :class:`GTD`.
        trace_decay: as in :class:`GTD`.
        eta: as in :class:`GTD`.

    Example:
        >>> import gvf
        >>> gvf.online.HTD(step_size=0.01, trace_decay=0.5)
        HTD(step_size=0.01, trace_decay=0.5, eta=1.0)
    """

    kernel = staticmethod(htd)
    traces = 2


@dataclass(frozen=True)
class ProximalGTD2(GTD):
    """Proximal GTD2(lambda): GTD2 with the errors of a point half-way, a mirror-prox step.

    Args:
        step_size: as in :class:`GTD`.
        trace_decay: as in :class:`GTD`.
        eta: as in :class:`GTD`.

    Example:
        >>> import gvf
        >>> gvf.online.ProximalGTD2(step_size=0.01)
        ProximalGTD2(step_size=0.01, trace_decay=0.0, eta=1.0)
    """

    kernel = staticmethod(proximal_gtd2)
