"""Policies, and the ratios between them.

A policy gives the probability (or density) of an action in a state, and draws actions. Data comes
from a behaviour mu, and a question is about a target pi. Off-policy learning needs only the
importance ratio of each transition,

    rho = pi(a|s) / mu(a|s),

which :func:`ratio` computes. Everything is vectorised over a batch of m states. Questions
(:mod:`gvf.question`) hold a target policy; samplers and corrections use only ratios.
"""

from gvf.policies.default_behaviour import default_behaviour
from gvf.policies.discrete import Always, Favour, Fixed, Table, Uniform
from gvf.policies.function import Function
from gvf.policies.gaussian import Gaussian
from gvf.policies.mixture import Mixture
from gvf.policies.policy import DiscretePolicy, Policy
from gvf.policies.policy_bank import Bank
from gvf.policies.ratio import largest_ratio, ratio

__all__ = [
    "Always",
    "Bank",
    "DiscretePolicy",
    "Favour",
    "Fixed",
    "Function",
    "Gaussian",
    "Mixture",
    "Policy",
    "Table",
    "Uniform",
    "default_behaviour",
    "largest_ratio",
    "ratio",
]


def __dir__() -> list[str]:
    """List the public names, imported tools left out."""
    return __all__
