"""Policies, and the ratios between them.

A policy gives the probability (or density) of an action in a state, and draws actions. Data comes
from a behaviour mu, and a question is about a target pi. Off-policy learning needs only the
importance ratio of each transition,

    rho = pi(a|s) / mu(a|s),

which :func:`ratio` computes. Everything is vectorised over a batch of m states. Questions
(:mod:`gvf.question`) hold a target policy; samplers and corrections use only ratios.
"""

from gvf.policy.base import DiscretePolicy, Policy, describe
from gvf.policy.discrete import Always, Favour, Fixed, Table, Uniform
from gvf.policy.function import FunctionPolicy
from gvf.policy.gaussian import Gaussian
from gvf.policy.mixture import Mixture
from gvf.policy.ratios import largest_ratio, ratio

__all__ = [
    "Always",
    "DiscretePolicy",
    "Favour",
    "Fixed",
    "FunctionPolicy",
    "Gaussian",
    "Mixture",
    "Policy",
    "Table",
    "Uniform",
    "describe",
    "largest_ratio",
    "ratio",
]
