"""True values, against which predictions are measured.

The value of a state under a question (pi, C, gamma) is the expected return

    v(s) = E_pi[ C_{t+1} + gamma_{t+1} C_{t+2} + gamma_{t+1} gamma_{t+2} C_{t+3} + ... | S_t = s ].

With a model it is computed exactly (:mod:`gvf.truth.dynamic_programming`). Without one it is
sampled, in any environment (:mod:`gvf.truth.returns`). The weights that linear methods converge to
in a model are in :mod:`gvf.truth.fixed_points`.
"""

from gvf.truth.dynamic_programming import Model, exact_values
from gvf.truth.fixed_points import FixedPoint, fixed_point
from gvf.truth.returns import CutError, Estimate, HeldOutReturns, ReturnError, held_out_returns
from gvf.truth.values import TrueValues

__all__ = [
    "CutError",
    "Estimate",
    "FixedPoint",
    "HeldOutReturns",
    "Model",
    "ReturnError",
    "TrueValues",
    "exact_values",
    "fixed_point",
    "held_out_returns",
]
