"""Corrections that the library does not have, as a user would write them."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

import gvf
from gvf.corrections import MASS, RATIO, TRACE, kernel


@dataclass(frozen=True)
class SquareRoot(gvf.corrections.Correction):
    """A correction with a new mass: p = sqrt(rho), w = sqrt(rho) / k."""

    @staticmethod
    def mass(inputs, parameters):
        return np.sqrt(inputs[RATIO])

    @staticmethod
    def weigh(inputs, p, means, parameters, out):
        out[:] = np.sqrt(inputs[RATIO]) / out.size


@dataclass(frozen=True)
class FollowOn(gvf.corrections.Correction):
    """An emphasis carried along the stream: F = gamma rho F + 1, drawn by rho F."""

    @staticmethod
    def trace(carry, ratio, continuation, interest, restart, parameters):
        return interest if restart else continuation * ratio * carry + interest

    @staticmethod
    def mass(inputs, parameters):
        return inputs[RATIO] * inputs[TRACE]

    weigh = gvf.corrections.IR.weigh


@dataclass(frozen=True)
class EmphaticIS(gvf.corrections.Correction):
    """The same emphasis in the weight, with its own discount: w = rho F / k."""

    beta: float

    @staticmethod
    def trace(carry, ratio, continuation, interest, restart, parameters):
        return interest if restart else parameters[0] * ratio * carry + interest

    @staticmethod
    def weigh(inputs, p, means, parameters, out):
        out[:] = inputs[RATIO] * inputs[TRACE] / out.size


@dataclass(frozen=True)
class Prioritised(gvf.corrections.Correction):
    """Masses that change when drawn: p = rho (|delta|^power + floor), undone by the weight."""

    power: float
    floor: float = 0.1

    @staticmethod
    def mass(inputs, parameters):
        return inputs[RATIO] * (1.0 + parameters[1])

    @staticmethod
    def weigh(inputs, p, means, parameters, out):
        for i in range(out.size):
            out[i] = means[MASS] * inputs[RATIO, i] / (p[i] * out.size) if p[i] > 0.0 else 0.0

    @staticmethod
    def refresh(delta, inputs, parameters, out):
        for i in range(out.size):
            out[i] = inputs[RATIO, i] * (abs(delta[i]) ** parameters[0] + parameters[1])


@kernel
def by_mass(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = means[MASS] * inputs[RATIO, i] / p[i] / out.size


@dataclass(frozen=True)
class Unguarded(gvf.corrections.Correction):
    """Bias-corrected square roots, whose weight is undefined for rows without mass."""

    mass = SquareRoot.mass
    weigh = by_mass


@kernel
def by_largest(inputs, p, means, parameters, out):
    out[:] = inputs[RATIO] / inputs[RATIO].max() / out.size


@dataclass(frozen=True)
class Peak(gvf.corrections.Correction):
    """Square-root draws, with weights that depend on the whole batch: w = rho / (k largest)."""

    mass = SquareRoot.mass
    weigh = by_largest


@kernel
def fading(carry, ratio, continuation, interest, restart, parameters):
    return interest if restart else interest + 0.5 * carry


@kernel
def emphatic(inputs, parameters):
    return inputs[RATIO] * inputs[TRACE]


@kernel
def without_trace(inputs, p, means, parameters, out):
    out[:] = means[MASS] / inputs[TRACE] / out.size


@dataclass(frozen=True)
class Carried(gvf.corrections.Correction):
    """An unbiased correction: draws by ratio times a trace, by which weights are divided."""

    trace = fading
    mass = emphatic
    weigh = without_trace


@kernel
def above_nine(inputs, parameters):
    return max(inputs[RATIO] - 9.0, 0.0)


@dataclass(frozen=True)
class Large(gvf.corrections.Correction):
    """A correction that draws only ratios above 9, so a window with ratios may have no mass."""

    mass = above_nine
    weigh = SquareRoot.weigh


@kernel
def infinite(inputs, p, means, parameters, out):
    out[:] = np.inf


@dataclass(frozen=True)
class Infinite(gvf.corrections.Correction):
    """A mistake: weights that are not finite."""

    weigh = infinite


@kernel
def below_zero(inputs, parameters):
    return -1.0


@dataclass(frozen=True)
class Negative(gvf.corrections.Correction):
    """A mistake: negative masses."""

    mass = below_zero
    weigh = SquareRoot.weigh


def enumerated_square_root(window, updates, k):
    """Mean and variance of SquareRoot's update over all batches of k, each with its chance."""
    p = np.sqrt(window) / np.sqrt(window).sum()
    mean, second = np.zeros(2), 0.0
    for batch in itertools.product(range(len(window)), repeat=k):
        x = sum((math.sqrt(window[i]) / k * updates[i] for i in batch), np.zeros(2))
        chance = math.prod(p[i] for i in batch)
        mean, second = mean + chance * x, second + chance * x @ x
    return mean, second - mean @ mean
