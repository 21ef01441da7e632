"""True values, against which predictions are measured, from samples alone.

The value of a state under a question (pi, C, gamma) is the expected return

    v(s) = E_pi[ C_{t+1} + gamma_{t+1} C_{t+2} + gamma_{t+1} gamma_{t+2} C_{t+3} + ... | S_t = s ].

It is sampled in any environment (:mod:`gvf.truth.held_out_returns`). The states that a target
policy would visit are estimated from a log of another (:mod:`gvf.truth.target_visits`).
"""

from gvf.truth.held_out_returns import CutError
from gvf.truth.held_out_returns import HeldOutReturns as HeldOutReturns
from gvf.truth.held_out_returns import ReturnError as ReturnError
from gvf.truth.held_out_returns import held_out_returns as held_out_returns
from gvf.truth.target_visits import target_visits, visit_ratios

__all__ = ["CutError", "target_visits", "visit_ratios"]


def __dir__() -> list[str]:
    """List the public names, imported tools left out."""
    return __all__
