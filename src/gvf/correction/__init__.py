"""Corrections of the mismatch of behaviour and target: rules to draw and to weigh transitions."""

from gvf.correction.base import (
    MASS,
    RATIO,
    SIGNATURES,
    TRACE,
    WINDOW,
    Correction,
    Draw,
    by_ratio,
    kernel,
)
from gvf.correction.emphatic import (
    EmphaticBCIR,
    EmphaticIR,
    EmphaticIS,
    EmphaticWISMinibatch,
)
from gvf.correction.table import (
    BCIR,
    IR,
    IS,
    BCInterpolated,
    Interpolated,
    NormIS,
    OnPolicy,
    VTrace,
    WISBuffer,
    WISMinibatch,
    WISOptimal,
)

__all__ = [
    "BCIR",
    "IR",
    "IS",
    "MASS",
    "RATIO",
    "SIGNATURES",
    "TRACE",
    "WINDOW",
    "BCInterpolated",
    "Correction",
    "Draw",
    "EmphaticBCIR",
    "EmphaticIR",
    "EmphaticIS",
    "EmphaticWISMinibatch",
    "Interpolated",
    "NormIS",
    "OnPolicy",
    "VTrace",
    "WISBuffer",
    "WISMinibatch",
    "WISOptimal",
    "by_ratio",
    "kernel",
]
