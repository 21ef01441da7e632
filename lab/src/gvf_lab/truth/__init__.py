"""Exact truth: values and fixed points of worlds that have a table of outcomes.

With a table, the value of every state is computed exactly (:mod:`gvf_lab.truth.exact_values`), and
so are the weights that linear methods converge to (:mod:`gvf_lab.truth.fixed_point`).
"""

from gvf_lab.truth.exact_values import Model, exact_values
from gvf_lab.truth.fixed_point import FixedPoint, fixed_point
from gvf_lab.truth.true_values import TrueValues

__all__ = ["FixedPoint", "Model", "TrueValues", "exact_values", "fixed_point"]
