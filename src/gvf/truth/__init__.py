"""Truth: what a question's predictions are measured against.

The value of a state under a question (pi, C, gamma) is the expected return

    v(s) = E_pi[ C_{t+1} + gamma_{t+1} C_{t+2} + gamma_{t+1} gamma_{t+2} C_{t+3} + ... | S_t = s ].

It is computed from a model where there is one (:mod:`gvf.truth.dynamic_programming`), and sampled
where there is not: :mod:`gvf.truth.returns`, for any environment.
"""

from gvf.truth.dynamic_programming import Model, exact_values
from gvf.truth.returns import Estimate, HeldOutReturns, ReturnError, held_out_returns
from gvf.truth.values import TrueValues

__all__ = [
    "Estimate",
    "HeldOutReturns",
    "Model",
    "ReturnError",
    "TrueValues",
    "exact_values",
    "held_out_returns",
]
