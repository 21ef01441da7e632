"""Corrections of the mismatch of behaviour and target: rules to draw and to weigh transitions.

A correction of one's own is a subclass of :class:`Correction`. Its :func:`kernel` functions read
the inputs of rows in the places ``RATIO`` and ``TRACE``, and the means of the window in these and
in ``MASS``; ``mass = WINDOW`` puts the whole window into every batch.
"""

from gvf.corrections.correction import (
    MASS,
    RATIO,
    TRACE,
    WINDOW,
    Correction,
    kernel,
)
from gvf.corrections.correction_names import by_name
from gvf.corrections.emphatic_corrections import (
    EmphaticBCIR,
    EmphaticIR,
    EmphaticIS,
    EmphaticWISMinibatch,
)
from gvf.corrections.plain_corrections import (
    BCIR,
    IR,
    IS,
    BCInterpolated,
    Interpolated,
    NormIS,
    OnPolicy,
    PrioritisedIR,
    StateRatioIR,
    VTrace,
    WISBuffer,
    WISMinibatch,
    WISOptimal,
)

__all__ = [
    "BCIR",
    "BCInterpolated",
    "Correction",
    "EmphaticBCIR",
    "EmphaticIR",
    "EmphaticIS",
    "EmphaticWISMinibatch",
    "IR",
    "IS",
    "Interpolated",
    "MASS",
    "NormIS",
    "OnPolicy",
    "PrioritisedIR",
    "RATIO",
    "StateRatioIR",
    "TRACE",
    "VTrace",
    "WINDOW",
    "WISBuffer",
    "WISMinibatch",
    "WISOptimal",
    "by_name",
    "kernel",
]


def __dir__() -> list[str]:
    """List the public names, imported tools left out."""
    return __all__
