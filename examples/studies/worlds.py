"""Two worlds and a correction for the studies cartpole.toml and pendulum.toml.

The studies refer to them by names such as "worlds:cartpole", because this file is beside them. They
need the laboratory: in a clone, ``pip install . ./lab``.
"""

from dataclasses import dataclass

import numpy as np

import gvf
import gvf_lab
from gvf.corrections import RATIO


def towards_the_lean(states):
    """Return the probabilities of pushing left and right: mostly to where the pole leans."""
    right = np.where(states[:, 2] > 0, 0.9, 0.1)
    return np.column_stack([1 - right, right])


def falls(transitions):
    """Return the cumulant: 1 if the pole falls, else 0."""
    return transitions.terminated


def cartpole() -> gvf_lab.GymnasiumDomain:
    """Make the domain: how soon a pole falls if pushed to where it leans, from random pushes."""
    target = gvf.policies.Function(towards_the_lean, actions=2)
    return gvf_lab.GymnasiumDomain(
        "CartPole-v1",
        behaviours={"uniform": gvf.policies.Uniform(2)},
        questions={"falls": gvf.GVF(target, falls, continuation=0.9)},
        features=gvf.features.TileCoder(
            [-2.4, -3, -0.21, -3], [2.4, 3, 0.21, 3], tiles=4, tilings=16
        ),
        rollouts=10,
        run_length=200,
    )


def damp(states):
    """Return a torque against the swing."""
    return -0.25 * states[:, 2:3]


def upright(transitions):
    """Return the cumulant: 1 if the pendulum points up, -1 if it points down."""
    return transitions.next_state[:, 0]


def pendulum() -> gvf_lab.GymnasiumDomain:
    """Make the domain: how upright a damped pendulum will be, from random torques."""
    return gvf_lab.GymnasiumDomain(
        "Pendulum-v1",
        behaviours={"random": gvf.policies.Gaussian(0.0, 1.5)},
        questions={"upright": gvf.GVF(gvf.policies.Gaussian(damp, 0.5), upright, continuation=0.9)},
        features=gvf.features.TileCoder([-1, -1, -8], [1, 1, 8], tiles=6, tilings=16),
        rollouts=10,
        run_length=200,
    )


@dataclass(frozen=True)
class SquareRoot(gvf.corrections.Correction):
    """A correction with the root of the ratio in both draw and weight: p = w k = sqrt(rho)."""

    label = "square root"

    @staticmethod
    def mass(inputs, parameters):
        """Return the root of the ratio."""
        return np.sqrt(inputs[RATIO])

    @staticmethod
    def weigh(inputs, p, means, parameters, out):
        """Weigh by the rest of the ratio."""
        out[:] = inputs[RATIO] / p / out.size
